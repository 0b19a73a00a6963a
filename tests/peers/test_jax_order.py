"""Sums in a fixed order, as far as a processor can tell."""

from __future__ import annotations

import clebsch.jax as cj
import jax
import jax.numpy as jnp
import pytest
from jax_graph import Graph, _double, near  # noqa: F401 - a fixture


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
