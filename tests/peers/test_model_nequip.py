"""A NequIP model at its authors' size M, random weights: energy, forces, stress and a training step's gradients stay."""

from __future__ import annotations

import pytest
import torch
from whole_models import computes_the_same

import accelerated_nequip as nequip  # isort: skip - found by whole_models


@pytest.mark.parametrize(("name", "dtype"), [("float32", torch.float32), ("float64", torch.float64)])
def test_the_model_computes_the_same(name: str, dtype: torch.dtype) -> None:
    model, inputs = nequip.model(name).eval(), nequip.batch(1)
    report = computes_the_same(
        model, lambda: (*nequip.results(model, inputs, nequip.NAMES), nequip.weights_gradient(model, inputs, nequip.NAMES)), dtype
    )
    kinds = [what.split()[0] for _, what in report.changed]
    assert kinds.count("gather,") == 4
    assert kinds.count("Linear") == 8
    assert kinds.count("FullyConnectedTensorProduct") == 3
    assert not report.left
