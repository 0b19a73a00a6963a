"""cuEquivariance's SegmentedPolynomial: its descriptor as an operation, one per kind of rows that a call has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cuequivariance as cue
import torch
from torch import Tensor

from ... import torch as ct
from ..._library import ClebschError
from ._description import Rows, description_of

_METHODS = ("", "naive", "uniform_1d", "fused_tp", "indexed_linear")


class SegmentedPolynomial(torch.nn.Module):
    """`cuequivariance_torch.SegmentedPolynomial`. `method` is checked and means nothing: one implementation takes every polynomial.

    Indices are in any order; the indexed outputs of one call may be faster where they ascend.
    """

    def __init__(
        self,
        polynomial: Any,
        method: str = "",
        math_dtype: str | torch.dtype | None = None,
        output_dtype_map: list[int] | None = None,
        name: str = "segmented_polynomial",
        options: dict[str, Any] | None = None,
        layouts: Mapping[int, str] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(polynomial, cue.SegmentedPolynomial):
            raise ValueError(
                f"polynomial: expected a cue.SegmentedPolynomial (of a descriptor: .polynomial), got {type(polynomial)}"
            )
        if method not in _METHODS:
            raise ValueError(f"method: expected one of {', '.join(_METHODS[1:])}, got {method!r}")
        self.polynomial, self.method, self.name = polynomial, method, name
        self.num_inputs, self.num_outputs = polynomial.num_inputs, polynomial.num_outputs
        self.math_dtype = getattr(torch, math_dtype) if isinstance(math_dtype, str) else math_dtype
        self.output_dtype_map = output_dtype_map or [0 if self.num_inputs else -1] * self.num_outputs
        self._layouts = dict(layouts or {})
        self._operations: dict[Rows, ct.Operation] = {}
        self._operation(Rows(("each",) * (self.num_inputs + self.num_outputs)))  # what cannot be described is an error here

    def _operation(self, rows: Rows) -> ct.Operation:
        if rows not in self._operations:
            self._operations[rows] = ct.Operation(description_of(self.polynomial, rows, self._layouts))
        return self._operations[rows]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_operations": {}}  # type: ignore[misc]

    def forward(
        self,
        inputs: list[Tensor],
        input_indices: dict[int, Tensor] | None = None,
        output_shapes: dict[int, Tensor] | None = None,
        output_indices: dict[int, Tensor] | None = None,
    ) -> list[Tensor]:
        inputs, input_indices = list(inputs), input_indices or {}
        output_shapes, output_indices = output_shapes or {}, output_indices or {}
        if len(inputs) != self.num_inputs:
            raise ClebschError(f"inputs: expected {self.num_inputs} tensors, got {len(inputs)}")
        batch = self._batch(inputs, input_indices, output_indices)
        kinds, tensors, rows = [], {}, {"batch": batch}
        dtype = self.math_dtype or _common_dtype(inputs)
        for i, tensor in enumerate(inputs):
            size = self.polynomial.inputs[i].size
            if tensor.dim() != 2 or tensor.shape[1] != size:
                raise ClebschError(f"input {i}: expected shape (rows, {size}), got {tuple(tensor.shape)}")
            if i in input_indices:
                kinds.append("indexed")
                tensors[f"index_{i}"], rows[f"rows_{i}"] = input_indices[i], tensor.shape[0]
            else:
                kinds.append("shared" if tensor.shape[0] == 1 and batch != 1 else "each")
                if kinds[-1] == "each" and tensor.shape[0] != batch:
                    raise ClebschError(f"input {i}: expected {batch} rows or 1, got {tensor.shape[0]}")
            tensors[f"input_{i}"] = tensor.to(dtype)
        for i in range(self.num_outputs):
            if i in output_indices:
                if i not in output_shapes:
                    raise ClebschError(f"output {i}: expected its number of rows in output_shapes, as it is indexed")
                kinds.append("indexed")
                tensors[f"to_{i}"], rows[f"out_{i}"] = output_indices[i], output_shapes[i].shape[0]
            else:
                count = output_shapes[i].shape[0] if i in output_shapes else batch
                if count not in (1, batch):
                    raise ClebschError(f"output {i}: expected {batch} rows or 1 without an index, got {count}")
                kinds.append("each" if count == batch else "shared")
        operation = self._operation(Rows(tuple(kinds)))
        found = operation(rows={space: rows[space] for space in operation.spaces}, **tensors)
        outputs = [found] if self.num_outputs == 1 else [found[f"output_{i}"] for i in range(self.num_outputs)]
        wanted = [dtype if source < 0 else inputs[source].dtype for source in self.output_dtype_map]
        return [output.to(kind) for output, kind in zip(outputs, wanted, strict=True)]

    def _batch(self, inputs: list[Tensor], input_indices: dict[int, Tensor], output_indices: dict[int, Tensor]) -> int:
        """Rows of the batch: of an index, else of an input that has more than one."""
        for index in (*input_indices.values(), *output_indices.values()):
            return index.shape[0]
        sizes = [tensor.shape[0] for tensor in inputs if tensor.dim() == 2]
        return next((size for size in sizes if size != 1), 1)

    def extra_repr(self) -> str:
        return str(self.polynomial)


def _common_dtype(inputs: list[Tensor]) -> torch.dtype:
    dtype = inputs[0].dtype if inputs else torch.get_default_dtype()
    for tensor in inputs[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype
