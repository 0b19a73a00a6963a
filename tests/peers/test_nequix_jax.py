"""Nequix 0.4.5's own JAX model with its gather, tensor product and scatter as one call of clebsch.jax: before and after.

The pretrained MP-1 potential for energies, forces and stress; a small one of the same make for a training step's gradients.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest
from ase.build import bulk
from nequix.data import atomic_numbers_to_indices, dict_to_graphstuple, preprocess_graph
from nequix.model import Nequix, load_model

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from accelerated_nequix import CHECKPOINT, swapped  # noqa: E402

TOLERANCES = {"float32": 1e-5, "float64": 1e-10}


def silicon(numbers: list[int], cutoff: float, dtype: str) -> Any:
    """Eight atoms off their sites; edges by receiver."""
    atoms = bulk("Si", "diamond", a=5.43, cubic=True)
    atoms.positions += np.random.default_rng(0).normal(0, 0.08, atoms.positions.shape)
    atoms.numbers[::3] = 8 if 8 in numbers else 14
    graph = preprocess_graph(atoms, atomic_numbers_to_indices(numbers), cutoff, False)
    assert (np.diff(graph["receivers"]) >= 0).all()
    padded = jraph.pad_with_graphs(dict_to_graphstuple(graph), 10, len(graph["receivers"]) + 5, 2)
    return jax.tree.map(lambda a: jnp.asarray(a, dtype if a.dtype.kind == "f" else None), padded)


def near(found: Any, expected: Any, tolerance: float) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert np.abs(expected).max() > 0
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def of_dtype(model: Any, dtype: str) -> Any:
    return jax.tree.map(lambda a: a.astype(dtype) if eqx.is_inexact_array(a) else a, model)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_energies_forces_and_stress(dtype: str) -> None:
    jax.config.update("jax_enable_x64", False)  # the checkpoint is of float32
    model, config = load_model(str(CHECKPOINT))
    jax.config.update("jax_enable_x64", dtype == "float64")
    model = of_dtype(model, dtype)
    graph = silicon(config["atomic_numbers"], config["cutoff"], dtype)
    evaluate = eqx.filter_jit(lambda model, graph: model(graph))
    for found, expected in zip(evaluate(swapped(model), graph), evaluate(model, graph), strict=True):
        assert found.dtype == expected.dtype == dtype
        near(found, expected, TOLERANCES[dtype])


def test_gradients_of_a_training_step() -> None:
    """By every weight, of a loss of energies and forces: a derivative of a derivative."""
    jax.config.update("jax_enable_x64", True)
    sizes = {"hidden_irreps": "8x0e+8x1o+4x2e", "n_layers": 2, "radial_mlp_size": 8, "radial_mlp_layers": 1}
    model = Nequix(jax.random.key(0), 2, lmax=2, cutoff=4.0, avg_n_neighbors=10.0, layer_norm=True, **sizes)
    model = of_dtype(model, "float64")
    graph = silicon([8, 14], 4.0, "float64")

    @eqx.filter_jit
    def gradient(model: Nequix) -> Any:
        def loss(model: Nequix) -> Any:
            energy, forces, stress = model(graph)
            return (energy**2).sum() + (forces**2).sum() + (stress**2).sum()

        return eqx.filter_grad(loss)(model)

    ours, theirs = (jax.tree.leaves(eqx.filter(gradient(each), eqx.is_inexact_array)) for each in (swapped(model), model))
    assert len(ours) == len(theirs) > 10
    largest = max(float(jnp.abs(part).max()) for part in theirs)
    for found, expected in zip(ours, theirs, strict=True):
        assert float(jnp.abs(found - expected).max()) <= 1e-10 * largest
