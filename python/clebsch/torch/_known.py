"""Derivatives as calls on tensors: what `_derivatives` says about places, with the texts that travel in graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from .. import _derivatives
from .._derivatives import Described
from .._derivatives import described as known

__all__ = ["Derivative", "Described", "gradient_of", "known", "tangent_of"]


@dataclass(frozen=True)
class Derivative:
    """A derivative with respect to some inputs, and where its arrays come from in the call that is derived."""

    text: str
    places: _derivatives.Derivative
    wanted: tuple[int, ...]  #: the inputs it is with respect to: reverse mode has an output for each

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.places.inputs

    @property
    def indices(self) -> tuple[int, ...]:
        return self.places.indices

    def __call__(
        self,
        call: Callable[..., list[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        indices: Sequence[torch.Tensor],
        given: Sequence[torch.Tensor],
        rows: Any,
    ) -> list[torch.Tensor]:
        """Runs it through `call` on the inputs and indices it reads and all cotangents or tangents."""
        tensors = [*inputs, *(given[i] for i in self.places.given)]
        return call(self.text, tensors, list(indices), [rows[i] for i in self.places.spaces])


@cache
def gradient_of(text: str, wanted: tuple[int, ...]) -> Derivative:
    """The reverse-mode derivative with respect to the inputs at these positions, of which there is at least one."""
    places = _derivatives.gradient_of(known(text), wanted)
    return Derivative(places.described.operation.text, places, wanted)


@cache
def tangent_of(text: str, wanted: tuple[int, ...]) -> Derivative:
    """The forward-mode derivative along these inputs."""
    places = _derivatives.tangent_of(known(text), wanted)
    return Derivative(places.described.operation.text, places, wanted)
