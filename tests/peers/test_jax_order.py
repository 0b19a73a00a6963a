"""Sums in a fixed order, and what a GPU makes of receivers that do not ascend: as far as a processor can tell."""

from __future__ import annotations

import clebsch
import clebsch.jax as cj
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from clebsch._derivatives import described
from clebsch.jax import _primitive
from clebsch.jax._primitive import spoiled_unless_sorted
from jax_graph import Graph, _double, near, normal  # noqa: F401 - a fixture


def test_the_choice_of_an_order_goes_to_every_derivative() -> None:
    graph, other = Graph(deterministic=True), Graph()
    assert graph.convolution != other.convolution
    near(graph(*graph.floats), graph.numpy())
    text = str(jax.make_jaxpr(jax.hessian(lambda x: (graph(x, graph.y, graph.weights) ** 2).sum()))(graph.x))
    assert text.count("deterministic=True") == text.count("clebsch[") >= 3
    batched = jax.vmap(cj.Linear("2x0e", "2x0e", deterministic=True), in_axes=(None, 0))
    assert "deterministic=True" in str(jax.make_jaxpr(batched)(jnp.ones((3, 2)), jnp.ones((4, 4))))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", False),
        ("--xla_gpu_deterministic_ops=true", True),
        ("--xla_cpu_fast_math=false --xla_gpu_exclude_nondeterministic_ops", True),
        ("--xla_gpu_deterministic_ops=true --xla_gpu_deterministic_ops=false", False),
    ],
)
def test_order_of_sums_follows_xla(flags: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert cj.Linear("2x0e", "2x0e").deterministic is expected
    assert cj.Linear("2x0e", "2x0e", deterministic=not expected).deterministic is not expected


@pytest.mark.parametrize(
    ("receiver", "falls"),
    [
        ([0, 0, 1, 4, 4], False),
        ([0, -1, 1, 99, 4], False),
        ([1, 2, 3, -1, -1], False),
        ([0, 2, 1, 4, 4], True),
        ([0, 0, 1, 4, 0], True),
        ([1, 3, -1, 2], True),
        ([3, 99, -1, 1, 4], True),
        ([], False),
        ([3], False),
    ],
)
def test_what_a_gpu_makes_of_receivers_that_do_not_ascend(receiver: list[int], falls: bool) -> None:
    """NaN in every row and block; what the lowering for GPUs adds, run here by itself."""
    what = described(cj.Convolution("2x0e+2x1o", "0e+1o", "0e+1o", weights="none").description.text)
    out = normal(1, 5, what.output_shapes[0][1])
    indices = [np.zeros(len(receiver), np.int32), np.array(receiver, np.int32)]
    rows = [{"node": 5, "edge": len(receiver)}[space] for space in what.spaces]
    (found,) = jax.jit(lambda out, *indices: spoiled_unless_sorted([out], indices, what, rows))(out, *indices)
    blocks = clebsch.Irreps(what.operation.outputs[0].segments).slices()
    assert len(blocks) > 2
    spoiled = np.isnan(np.asarray(found))
    assert all(spoiled[:, block].any(axis=1).all() == falls for block in blocks)
    np.testing.assert_array_equal(np.asarray(found)[~spoiled], out[~spoiled])


@pytest.mark.parametrize("count", [12, 15, 16, 47])
def test_falls_are_found_within_blocks_and_across(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_primitive, "_BLOCK", 3)
    monkeypatch.setattr(_primitive, "_BLOCKS", 5)
    rng, limit, found = np.random.default_rng(count), 9, []
    for attempt in range(60):
        receiver = np.sort(rng.integers(0, limit, count)).astype(np.int32)
        receiver[rng.random(count) < (0.1, 0.8)[attempt % 2]] = (-1, limit)[attempt % 3 == 0]
        receiver[rng.integers(0, count, attempt % 3)] = rng.integers(-1, limit + 1)
        inside = (receiver >= 0) & (receiver < limit)
        expected = bool((inside & (receiver < np.maximum.accumulate(np.where(inside, receiver, -1)))).any())
        assert bool(_primitive._falls(jnp.asarray(receiver), limit)) == expected
        found.append(expected)
    assert {True, False} == set(found)
