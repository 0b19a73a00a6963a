"""clebsch.jax beside cuequivariance_jax 0.13 on its CPU path: convolutions, linear maps, products and harmonics, with gradients and
theirs, in cuEquivariance's layout and order of weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clebsch.jax as cj
import cuequivariance as cue
import cuequivariance_jax as cuex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_graph import _double, near, normal  # noqa: F401 - a fixture

IN, EDGE, OUT = "3x0e+2x1o", "0e+1o", "0e+1o"


def irreps(text: str) -> cue.Irreps:
    return cue.Irreps("O3", text)


def theirs(descriptor: Any, rows: int) -> Callable[..., jax.Array]:
    """Their evaluation of a descriptor of one output."""
    shape = jax.ShapeDtypeStruct((rows, descriptor.outputs[0].dim), np.float64)

    def call(*arrays: Any) -> jax.Array:
        (out,) = cuex.segmented_polynomial(descriptor.polynomial, list(arrays), [shape], method="naive")
        return out

    return call


def same(ours: Callable[..., Any], other: Callable[..., Any], *arrays: np.ndarray) -> None:
    """Values, gradients and gradients of those."""
    every = tuple(range(len(arrays)))

    def first(call: Callable[..., Any]) -> Callable[..., Any]:
        return jax.grad(lambda *given: (jnp.sin(call(*given))).sum(), argnums=every)

    def second(call: Callable[..., Any]) -> Callable[..., Any]:
        return jax.grad(lambda *given: sum((part**2).sum() for part in first(call)(*given)), argnums=every)

    near(ours(*arrays), other(*arrays))
    for derived in (first, second):
        for found, expected in zip(jax.jit(derived(ours))(*arrays), jax.jit(derived(other))(*arrays), strict=True):
            near(found, expected, 1e-10)


def test_convolution() -> None:
    descriptor = cue.descriptors.channelwise_tensor_product(irreps(IN), irreps(EDGE), irreps(OUT))
    convolution = cj.Convolution(IN, EDGE, OUT, layout="ir_mul")
    nodes, edges = 6, 25
    rng = np.random.default_rng(0)
    sender, receiver = rng.integers(0, nodes, edges), np.sort(rng.integers(0, nodes, edges))
    assert convolution.weight_numel == descriptor.inputs[0].dim
    assert str(convolution.irreps_out) == str(descriptor.outputs[0].irreps)
    product = theirs(descriptor, edges)

    def gathered(x: Any, y: Any, weights: Any) -> Any:
        return jnp.zeros((nodes, descriptor.outputs[0].dim)).at[receiver].add(product(weights, x[sender], y))

    arrays = normal(1, nodes, irreps(IN).dim), normal(2, edges, irreps(EDGE).dim), normal(3, edges, convolution.weight_numel)
    same(lambda *given: convolution(*given, sender, receiver), gathered, *arrays)


def test_linear() -> None:
    linear, descriptor = cj.Linear(IN, "5x0e+2x1o", layout="ir_mul"), cue.descriptors.linear(irreps(IN), irreps("5x0e+2x1o"))
    evaluate = theirs(descriptor, 7)
    same(linear, lambda x, weights: evaluate(weights, x), normal(1, 7, irreps(IN).dim), normal(2, 1, linear.weight_numel))


def test_fully_connected() -> None:
    product = cj.FullyConnectedTensorProduct(IN, "2x0e+1x1o", "3x0e+2x1o", layout="ir_mul")
    descriptor = cue.descriptors.fully_connected_tensor_product(irreps(IN), irreps("2x0e+1x1o"), irreps("3x0e+2x1o"))
    evaluate = theirs(descriptor, 7)
    arrays = normal(1, 7, irreps(IN).dim), normal(2, 7, 5), normal(3, 1, product.weight_numel)
    same(product, lambda x, y, weights: evaluate(weights, x, y), *arrays)


@pytest.mark.parametrize("normalize", [True, False])
def test_spherical_harmonics(normalize: bool) -> None:
    def other(vectors: Any) -> Any:
        return cuex.spherical_harmonics([0, 1, 2, 3], cuex.RepArray(irreps("1o"), vectors, cue.ir_mul), normalize).array

    same(lambda vectors: cj.spherical_harmonics("0e+1o+2e+3o", vectors, normalize), other, normal(1, 9, 3))
