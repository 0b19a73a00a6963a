"""What stands for a module's forward after `accelerate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..operation import Operation as Description
from .modules import _OnRows


class Forward:
    """Stands for a module's forward. Reads the module's own parameters in every call."""

    dtype: torch.dtype

    def __init__(self, module: torch.nn.Module, description: Description) -> None:
        self.module = module
        self.rows = _OnRows()
        self.rows._adopt(description)
        tensors = [*module.parameters(), *module.buffers()]
        floating = [tensor for tensor in tensors if tensor.is_floating_point() and tensor.numel()]
        self.dtype = floating[0].dtype if floating else torch.get_default_dtype()
        self.device = tensors[0].device if tensors else torch.device("cpu")

    def text(self) -> str:
        raise NotImplementedError

    def example(self, normal: Callable[..., Tensor]) -> Sequence[Any]:
        """Arguments to try."""
        raise NotImplementedError

    def __call__(self, *arguments: Any) -> Tensor:
        raise NotImplementedError

    def difference(self) -> float:
        """Between the module and this, norm-wise, on a few random rows."""
        arguments = self.example(self.normal())
        with torch.no_grad():
            expected = self.found(lambda *given: type(self.module).forward(self.module, *given), arguments)
            found = self.found(self, arguments)
        return norm_wise(found, expected)

    def normal(self) -> Callable[..., Tensor]:
        """Makes normal random tensors of the module's dtype on its device, the same every time."""
        generator = torch.Generator().manual_seed(0)

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=self.dtype, device="cpu").to(self.device)

        return normal

    def found(self, call: Callable[..., Any], arguments: Sequence[Any]) -> Tensor:
        """What a call gives, as one tensor."""
        result: Tensor = call(*arguments)
        return result


def norm_wise(found: Tensor, expected: Tensor) -> float:
    """How far results are from what was expected, relative to the size of that."""
    if found.shape != expected.shape:
        return math.inf
    size = torch.linalg.norm(expected.double())
    return float(torch.linalg.norm(found.double() - expected.double()) / size) if size else float(found.abs().sum())
