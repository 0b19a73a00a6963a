"""A SevenNet model of SevenNet-0's size, random weights: energy, forces, stress and a training step's gradients stay.

In float32 alone: its embedding of elements makes no other numbers.
"""

from __future__ import annotations

import torch
from whole_models import computes_the_same

import accelerated_sevennet as sevennet  # isort: skip - found by whole_models


def test_the_model_computes_the_same() -> None:
    model, inputs = sevennet.model().eval(), sevennet.batch(1)

    def call() -> tuple[torch.Tensor, ...]:
        return *sevennet.results(model, inputs, sevennet.NAMES), sevennet.weights_gradient(model, inputs, sevennet.NAMES)

    report = computes_the_same(model, call, torch.float32)
    kinds = [what.split()[0] for _, what in report.changed]
    assert kinds.count("gather,") == 5
    assert kinds.count("Linear") >= 15
    assert not report.left
