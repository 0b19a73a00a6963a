"""What tests of clebsch.jax share: eight simulated devices, float64, arrays of a random graph."""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

from typing import Any

import clebsch.jax as cj
import jax
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _double() -> None:
    jax.config.update("jax_enable_x64", True)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def near(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    assert found.shape == expected.shape
    size = np.abs(expected).max(initial=0.0)
    assert size > 0, "nothing to compare"
    assert np.abs(found - expected).max() <= tolerance * size


class Graph:
    """A convolution and its arrays on a random graph; node 3 has no edges."""

    def __init__(self, nodes: int = 9, edges: int = 40, **options: Any) -> None:
        rng = np.random.default_rng(5)
        self.convolution = cj.Convolution("4x0e+3x1o+2x2e", "0e+1o+2e", "0e+1o+2e", **options)
        self.nodes, self.edges = nodes, edges
        self.x, self.y = normal(1, nodes, self.convolution.irreps_in.dim), normal(2, edges, 9)
        self.weights = normal(3, *(() if options.get("weights") == "shared" else (edges,)), self.convolution.weight_numel)
        self.sender = rng.integers(0, nodes, edges).astype(np.int32)
        receiver = rng.integers(0, nodes, edges)
        self.receiver = np.sort(np.where(receiver == 3, 4, receiver)).astype(np.int32)

    @property
    def floats(self) -> tuple[np.ndarray, ...]:
        return self.x, self.y, self.weights

    def __call__(self, x: Any, y: Any, weights: Any) -> Any:
        return self.convolution(x, y, weights, self.sender, self.receiver)

    def numpy(self, **changed: np.ndarray) -> np.ndarray:
        arrays = {"x": self.x, "y": self.y, "weights": self.weights, "sender": self.sender, "receiver": self.receiver, **changed}
        return self.convolution.description(**arrays)
