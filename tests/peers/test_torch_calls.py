"""How eager calls of clebsch.torch run: plain tensors past the dispatcher, and no derivative that nobody asked for."""

from __future__ import annotations

from typing import Any

import clebsch
import clebsch.torch as ct
import pytest
import torch
from clebsch.torch import _launch, _operator
from clebsch.torch._native import native

needs_native = pytest.mark.skipif(native is None, reason="libclebsch_torch.so needs PyTorch 2.10 or newer")


def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """From now on: the texts of operations that run."""
    texts: list[str] = []
    real = _operator._call

    def noting(text: str, *rest: Any) -> list[torch.Tensor]:
        texts.append(text)
        return real(text, *rest)

    monkeypatch.setattr(_operator, "_call", noting)
    return texts


def convolution() -> tuple[ct.Convolution, list[torch.Tensor]]:
    torch.manual_seed(0)
    module = ct.Convolution("4x0e+4x1o", "1x0e+1x1o", "0e+1o")
    receiver = torch.randint(0, 5, (12,)).sort()[0]
    tensors = [torch.randn(5, 16), torch.randn(12, 4), torch.randn(12, module.weight_numel), torch.randint(0, 5, (12,)), receiver]
    return module, tensors


def test_forces_need_no_gradients_of_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """`needs_input_grad` says what could be wanted: the weights are parameters. What is asked for are the edges' gradients."""
    module, (x, edge, weight, sender, receiver) = convolution()
    weight = torch.nn.Parameter(weight)
    vectors = edge.requires_grad_()
    out = module(x, vectors * 2, weight * 2, sender, receiver)
    texts = called(monkeypatch)
    (force,) = torch.autograd.grad(out.sum(), vectors, retain_graph=True)
    assert [len(clebsch.Operation(text).outputs) for text in texts] == [1]
    texts.clear()
    both = torch.autograd.grad(out.sum(), [vectors, weight])
    assert [len(clebsch.Operation(text).outputs) for text in texts] == [2]
    torch.testing.assert_close(force, both[0])
    # The same where the tensors asked for are leaves of the call, and through the derivative of a derivative.
    first = module(x, vectors, weight, sender, receiver)
    (force,) = torch.autograd.grad(first.square().sum(), vectors, create_graph=True)
    gradients = torch.autograd.grad(force.square().sum(), [weight, vectors])
    (alone,) = torch.autograd.grad(module(x, vectors, weight, sender, receiver).square().sum(), vectors, create_graph=True)
    (weights,) = torch.autograd.grad(alone.square().sum(), weight)
    torch.testing.assert_close(weights, gradients[0])
    # torch.autograd.grad does not say which leaves it is for, which one pass is asked but once; backward does, before and after.
    for _ in range(2):
        texts.clear()
        module(x, vectors, weight, sender, receiver).sum().backward(inputs=[vectors])
        assert [len(clebsch.Operation(text).outputs) for text in texts] == [1, 1]
        texts.clear()
        torch.autograd.grad(module(x, vectors, weight, sender, receiver).sum(), vectors)
        assert [len(clebsch.Operation(text).outputs) for text in texts] == [1, 2]


@needs_native
def test_plain_calls_are_native(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python fills no structs for them; it does for what the library does not take, with the same results."""
    module, (x, edge, weight, sender, receiver) = convolution()
    expected = module(x, edge, weight, sender, receiver)
    explained = []
    real = _launch.Prepared.__call__

    def noting(self: Any, *arguments: Any) -> list[torch.Tensor]:
        explained.append(self.what)
        return real(self, *arguments)

    monkeypatch.setattr(_launch.Prepared, "__call__", noting)
    wide = torch.randn(5, 40)
    wide[:, :16] = x
    for features in (x, torch.nn.Parameter(x), wide[:, :16]):
        assert torch.equal(module(features, edge, weight, sender, receiver), expected)
    assert torch.equal(module(x, edge, weight, sender.int(), receiver.int()), expected)
    assert not explained
    assert torch.equal(module(x.T.contiguous().T, edge, weight, sender, receiver), expected)
    assert len(explained) == 1
    with pytest.raises(clebsch.ClebschError, match="^y: expected shape"):
        module(x, edge[:, :3], weight, sender, receiver)
    with pytest.raises(clebsch.ClebschError, match="^weights: expected torch.float32 as x, got torch.float64"):
        module(x, edge, weight.double(), sender, receiver)
    with pytest.raises(clebsch.ClebschError, match="sender"):
        module(x, edge, weight, sender + 5, receiver)
    assert len(explained) == 4


@needs_native
def test_workspaces_follow_the_number_of_threads() -> None:
    module, tensors = convolution()
    expected = module(*tensors)
    try:
        for threads in (1, 5, 2):
            clebsch.set_num_threads(threads)
            assert torch.equal(module(*tensors), expected)
    finally:
        clebsch.set_num_threads(0)
