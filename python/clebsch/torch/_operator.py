"""One operator for every operation: torch.ops.clebsch.run(text, inputs, indices, rows). Its derivative is itself with another text.

What travels in a traced or exported graph is the operation's canonical text; here it is parsed once.
"""

from __future__ import annotations

from ctypes import byref, c_int64, sizeof
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import torch

from .. import _library as lib
from .._library import ClebschError, call
from .._threads import times_set
from ..operation import DTYPES, Operation, Plan

_DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.bfloat16: "bfloat16", torch.float16: "float16"}
_INDEX_TYPES = {torch.int32: 0, torch.int64: 1}


@dataclass
class Known:
    """An operation as the operator needs it: names, sizes and row spaces by position, and its plans."""

    operation: Operation
    plans: dict[torch.dtype, Prepared] = field(default_factory=dict)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        return tuple(operand.name for operand in self.operation.inputs)

    @cached_property
    def indices(self) -> tuple[str, ...]:
        return tuple(index.name for index in self.operation.indices)

    @cached_property
    def spaces(self) -> tuple[str, ...]:
        return self.operation.spaces

    @cached_property
    def input_shapes(self) -> tuple[tuple[int, int], ...]:
        """(position of the row space, or -1 for one row; numbers per row) of every input."""
        return tuple((self._place(operand.space), operand.row_size) for operand in self.operation.inputs)

    @cached_property
    def output_shapes(self) -> tuple[tuple[int, int], ...]:
        """Likewise of every output."""
        return tuple((self._place(operand.space), operand.row_size) for operand in self.operation.outputs)

    @cached_property
    def index_spaces(self) -> tuple[int, ...]:
        """The row space whose rows have an entry in each index."""
        return tuple(self._place(index.source) for index in self.operation.indices)

    def _place(self, space: str | None) -> int:
        return -1 if space is None else self.spaces.index(space)

    def prepared(self, inputs: list[torch.Tensor]) -> Prepared:
        dtype = inputs[0].dtype if inputs else torch.get_default_dtype()
        if dtype not in self.plans:
            self.plans[dtype] = Prepared(self, dtype)
        return self.plans[dtype]


@dataclass(frozen=True)
class Gradient:
    """The derivative with respect to some inputs, and where its arrays come from in the call that is derived."""

    text: str
    inputs: tuple[int, ...]  #: positions among the call's inputs
    indices: tuple[int, ...]
    cotangents: tuple[int, ...]  #: positions among the call's outputs
    spaces: tuple[int, ...]
    wanted: tuple[int, ...]  #: the input whose gradient each output is


@cache
def known(text: str) -> Known:
    """The operation of a text. Kept for good: a process has few."""
    return Known(Operation(text))


@cache
def gradient_of(text: str, wanted: tuple[int, ...]) -> Gradient:
    """The reverse-mode derivative with respect to the inputs at these positions."""
    forward = known(text)
    operation = forward.operation.vjp(*(forward.inputs[i] for i in wanted))
    derivative = known(operation.text)
    inputs, cotangents = [], []
    for name in derivative.inputs:
        if name in forward.inputs:
            inputs.append(forward.inputs.index(name))
        else:
            cotangents.append(_output_of(name, forward.operation))
    return Gradient(
        operation.text,
        tuple(inputs),
        tuple(forward.indices.index(name) for name in derivative.indices),
        tuple(cotangents),
        tuple(forward.spaces.index(name) for name in derivative.spaces),
        wanted,
    )


def _output_of(cotangent: str, forward: Operation) -> int:
    """The output a cotangent belongs to: it is called after it, with a number where that name was taken."""
    for i, output in enumerate(forward.outputs):
        base = f"{output.name}_cotangent"
        if cotangent == base or (cotangent.startswith(f"{base}_") and cotangent[len(base) + 1 :].isdecimal()):
            return i
    raise AssertionError(f"{cotangent} is the cotangent of no output")


class Frame:
    """The structs of one call. Frames are reused, by one call at a time."""

    def __init__(self, what: Known, dtype: torch.dtype) -> None:
        operands = what.operation.operands
        self.buffers = (lib.Buffer * len(operands))()
        for buffer in self.buffers:
            buffer.dtype = DTYPES[_DTYPES[dtype]]
        self.inputs = [buffer for buffer, operand in zip(self.buffers, operands, strict=True) if not operand.is_output]
        self.outputs = [buffer for buffer, operand in zip(self.buffers, operands, strict=True) if operand.is_output]
        self.indices = (lib.IndexBuffer * len(what.indices))()
        self.rows = (c_int64 * len(what.spaces))()
        self.call = lib.Call(
            size=sizeof(lib.Call),
            buffers=self.buffers,
            buffer_count=len(self.buffers),
            indices=self.indices,
            index_count=len(self.indices),
            rows=self.rows,
            space_count=len(self.rows),
        )
        self.pointer = byref(self.call)


class Prepared:
    """A plan for tensors of one dtype."""

    def __init__(self, what: Known, dtype: torch.dtype) -> None:
        if dtype not in _DTYPES:
            raise ClebschError(f"{what.inputs[0]}: expected float32, float64, bfloat16 or float16, got {dtype}")
        self.what, self.dtype = what, dtype
        self.plan = Plan(what.operation, _DTYPES[dtype])
        self.frames: list[Frame] = []
        self.workspaces: dict[tuple[int, ...], int] = {}
        self.threads_set = times_set()

    def workspace_bytes(self, rows: tuple[int, ...]) -> int:
        if self.threads_set != times_set():
            self.workspaces, self.threads_set = {}, times_set()
        size = self.workspaces.get(rows)
        if size is None:
            size = self.plan.workspace_bytes(dict(zip(self.what.spaces, rows, strict=True)))
            if len(self.workspaces) > 1000:  # the number of edges changes from step to step
                self.workspaces = {}
            self.workspaces[rows] = size
        return size

    def __call__(self, inputs: list[torch.Tensor], indices: list[torch.Tensor], rows: list[int]) -> list[torch.Tensor]:
        what, dtype = self.what, self.dtype
        for given, names, kind in (
            (inputs, what.inputs, "inputs"),
            (indices, what.indices, "indices"),
            (rows, what.spaces, "rows"),
        ):
            if len(given) != len(names):
                raise ClebschError(f"{kind}: expected {len(names)} ({', '.join(names)}), got {len(given)}")
        try:
            frame = self.frames.pop()  # by one thread alone
        except IndexError:
            frame = Frame(what, dtype)
        outputs = [torch.empty((1 if space < 0 else rows[space], size), dtype=dtype) for space, size in what.output_shapes]
        kept = []  # tensors made here, alive until the launch has ended
        for i, (buffer, tensor, (space, size)) in enumerate(zip(frame.inputs, inputs, what.input_shapes, strict=True)):
            count = 1 if space < 0 else rows[space]
            if tensor.dtype is not dtype or tensor.shape != (count, size):
                raise self._unfit(i, tensor, (count, size))
            if not tensor.is_contiguous() and (tensor.stride(0) < size or (size > 1 and tensor.stride(1) != 1)):
                tensor = tensor.contiguous()
                kept.append(tensor)
            buffer.data, buffer.rows, buffer.row_stride = tensor.data_ptr(), count, tensor.stride(0) if count > 1 and size else 0
        for buffer, tensor in zip(frame.outputs, outputs, strict=True):
            buffer.data, buffer.rows, buffer.row_stride = tensor.data_ptr(), tensor.shape[0], 0
        for i, (buffer, index, space) in enumerate(zip(frame.indices, indices, what.index_spaces, strict=True)):
            if index.dtype not in _INDEX_TYPES or index.shape != (rows[space],):
                expected, got = (rows[space],), f"{index.dtype} {tuple(index.shape)}"
                raise ClebschError(f"{what.indices[i]}: expected int32 or int64 of shape {expected}, got {got}")
            index = index.contiguous()
            kept.append(index)
            buffer.data, buffer.type, buffer.count = index.data_ptr(), _INDEX_TYPES[index.dtype], index.shape[0]
        frame.rows[:] = rows  # type: ignore[assignment]
        size = self.workspace_bytes(tuple(rows))
        workspace = torch.empty(size + 64, dtype=torch.uint8)
        address = workspace.data_ptr()
        frame.call.workspace, frame.call.workspace_bytes = address + (-address) % 64, size
        call("clebsch_launch", self.plan._handle, frame.pointer)
        self.frames.append(frame)
        return outputs

    def _unfit(self, i: int, tensor: torch.Tensor, expected: tuple[int, int]) -> ClebschError:
        name, segments = self.what.inputs[i], self.what.operation.inputs[i].segments
        if tensor.dtype is not self.dtype:
            return ClebschError(f"{name}: expected {self.dtype} as {self.what.inputs[0]}, got {tensor.dtype}")
        return ClebschError(f"{name}: expected shape {expected} for {segments}, got {tuple(tensor.shape)}")


torch.library.define("clebsch::run", "(str text, Tensor[] inputs, Tensor[] indices, SymInt[] rows) -> Tensor[]")


@torch.library.impl("clebsch::run", "cpu")
def _run(text: str, inputs: list[torch.Tensor], indices: list[torch.Tensor], rows: list[int]) -> list[torch.Tensor]:
    return known(text).prepared(inputs)(inputs, indices, rows)


@torch.library.register_fake("clebsch::run")
def _shapes(text: str, inputs: list[torch.Tensor], indices: list[torch.Tensor], rows: list[Any]) -> list[torch.Tensor]:
    """What a call returns, for tracing."""
    like = inputs[0] if inputs else torch.empty(())
    return [like.new_empty((1 if space < 0 else rows[space], size)) for space, size in known(text).output_shapes]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: list[torch.Tensor]) -> None:
    """Keeps what the derivative reads, and nothing else."""
    text, tensors, indices, rows = inputs
    wanted = tuple(i for i, tensor in enumerate(tensors) if tensor.requires_grad)
    gradient = gradient_of(text, wanted)
    ctx.gradient, ctx.rows, ctx.counts = gradient, rows, (len(tensors), len(indices))
    ctx.save_for_backward(*(tensors[i] for i in gradient.inputs), *(indices[i] for i in gradient.indices))


def _backward(ctx: Any, cotangents: list[torch.Tensor]) -> tuple[Any, ...]:
    gradient, count = ctx.gradient, len(ctx.gradient.inputs)
    tensors = [*ctx.saved_tensors[:count], *(cotangents[i] for i in gradient.cotangents)]
    indices, rows = list(ctx.saved_tensors[count:]), [ctx.rows[i] for i in gradient.spaces]
    results = run(gradient.text, tensors, indices, rows)
    gradients: list[torch.Tensor | None] = [None] * ctx.counts[0]
    for i, result in zip(gradient.wanted, results, strict=True):
        gradients[i] = result
    return None, gradients, [None] * ctx.counts[1], None if ctx.rows else []


torch.library.register_autograd("clebsch::run", _backward, setup_context=_remember)

run = torch.ops.clebsch.run.default
