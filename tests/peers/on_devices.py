"""What tests of clebsch.torch share: each runs on the processor, and again on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import clebsch.torch as ct
import e3nn
import pytest
import torch

Tensors = tuple[torch.Tensor, ...]

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]


@pytest.fixture(autouse=True)
def _defaults(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tensors of a test lie on its device, the processor unless it says otherwise."""
    device = getattr(request, "param", "cpu")
    if device != "cpu":
        torch.set_default_device(device)
    torch.manual_seed(0)
    e3nn.set_optimization_defaults(jit_mode="eager")
    yield
    torch.compiler.reset()
    if device != "cpu":  # PyTorch 2.4 knows no default device any more after None
        torch.set_default_device(None)


everywhere = pytest.mark.parametrize("_defaults", DEVICES, indirect=True)


def on_gpu() -> bool:
    return torch.get_default_device().type == "cuda"


def same(value: torch.Tensor, expected: torch.Tensor) -> bool:
    """Bit for bit; on a GPU, where sums through indices have no order, as good as."""
    return torch.allclose(value, expected, rtol=1e-12, atol=1e-13) if on_gpu() else torch.equal(value, expected)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def convolution() -> tuple[torch.nn.Module, Tensors]:
    module = ct.Convolution("2x0e+1x1o", "0e+1o", "0e+1o")
    sender, receiver = torch.tensor([0, 2, 1, 0, 2]), torch.tensor([0, 0, 1, 3, 3])
    return module, (normal(4, 5), normal(5, 4), normal(5, module.weight_numel), sender, receiver)
