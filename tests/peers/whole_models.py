"""What tests of whole models share: a model before and after clebsch.torch.accelerate, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clebsch.torch as ct
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))  # where the models and their inputs are made

#: Of the energy, and of the largest force, stress or derivative.
BOUNDS = {torch.float32: 1e-5, torch.float64: 1e-10}


def computes_the_same(model: torch.nn.Module, call: Callable[[], tuple[torch.Tensor, ...]], dtype: torch.dtype) -> ct.Acceleration:
    """`call`: energy, forces, stress, weights' gradients. Returns what was changed, undone."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    expected = [value.detach() for value in call()]
    steps: list[Any] = []
    report = ct.accelerate(model, show=False, step=lambda: steps.append(call()))
    assert len(steps) == 8
    assert report.seconds is not None
    assert report.share is not None
    assert "% of it in what was changed" in str(report)
    found = [value.detach() for value in call()]
    for value, wanted in zip(found, expected, strict=True):
        assert value.dtype == wanted.dtype
        assert wanted.abs().max() > 0
        assert (value - wanted).abs().max() <= BOUNDS[dtype] * wanted.abs().max()
    assert not torch.equal(found[1], expected[1])  # it did run elsewhere
    assert model.state_dict().keys() == state.keys()
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    attributes = {id(module): dict(module.__dict__) for module in model.modules()}
    report.undo()
    assert all("forward" not in module.__dict__ for module in model.modules())
    assert any("forward" in before for before in attributes.values())
    for value, wanted in zip(call(), expected, strict=True):
        assert (value - wanted).abs().max() <= BOUNDS[dtype] * wanted.abs().max()
    return report
