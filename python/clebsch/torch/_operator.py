"""One operator for every operation: torch.ops.clebsch.run(text, inputs, indices, rows). Its derivative is itself with another text.

What travels in a traced or exported graph is the operation's canonical text; here it is parsed once.
"""

from __future__ import annotations

import inspect
from ctypes import byref, c_int64, sizeof
from dataclasses import dataclass, field, replace
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
class Derivative:
    """A derivative with respect to some inputs, and where its arrays come from in the call that is derived."""

    text: str
    inputs: tuple[int, ...]  #: positions among the call's inputs
    indices: tuple[int, ...]
    given: tuple[int, ...]  #: positions among the cotangents (one per output) or the tangents (one per wanted input)
    spaces: tuple[int, ...]
    wanted: tuple[int, ...]  #: the inputs it is with respect to: reverse mode has an output for each
    outputs: tuple[int, ...] = ()  #: forward mode: the output whose tangent each output is

    def __call__(self, call: Any, inputs: Any, indices: Any, given: Any, rows: Any) -> list[torch.Tensor]:
        """Runs it through `call` on the inputs and indices it reads and all cotangents or tangents."""
        tensors = [*inputs, *(given[i] for i in self.given)]
        return call(self.text, tensors, list(indices), [rows[i] for i in self.spaces])


@cache
def known(text: str) -> Known:
    """The operation of a text. Kept for good: a process has few."""
    return Known(Operation(text))


@cache
def gradient_of(text: str, wanted: tuple[int, ...]) -> Derivative:
    """The reverse-mode derivative with respect to the inputs at these positions."""
    forward = known(text)
    if not wanted:
        return Derivative("", (), (), (), (), ())
    operation = forward.operation.vjp(*(forward.inputs[i] for i in wanted))
    outputs = [output.name for output in forward.operation.outputs]
    return _derivative(forward, operation, wanted, outputs, "cotangent")


@cache
def tangent_of(text: str, wanted: tuple[int, ...]) -> Derivative:
    """The forward-mode derivative along these inputs."""
    forward = known(text)
    names = [forward.inputs[i] for i in wanted]
    operation = forward.operation.jvp(*names)
    outputs = [output.name for output in forward.operation.outputs]
    places = tuple(_place(output.name, outputs, "tangent") for output in operation.outputs)
    return replace(_derivative(forward, operation, wanted, names, "tangent"), outputs=places)


def _derivative(forward: Known, operation: Operation, wanted: tuple[int, ...], sources: list[str], suffix: str) -> Derivative:
    """Its inputs are some of the forward ones, then what is given: the (co)tangents of `sources`."""
    derivative = known(operation.text)
    own = [name for name in derivative.inputs if name in forward.inputs]
    return Derivative(
        operation.text,
        tuple(forward.inputs.index(name) for name in own),
        tuple(forward.indices.index(name) for name in derivative.indices),
        tuple(_place(name, sources, suffix) for name in derivative.inputs[len(own) :]),
        tuple(forward.spaces.index(name) for name in derivative.spaces),
        wanted,
    )


def _place(name: str, sources: list[str], suffix: str) -> int:
    """The source a cotangent or tangent belongs to: it is called after it, with a number where that name was taken."""
    for i, source in enumerate(sources):
        base = f"{source}_{suffix}"
        if name == base or (name.startswith(f"{base}_") and name[len(base) + 1 :].isdecimal()):
            return i
    raise AssertionError(f"{name} is the {suffix} of nothing")


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


call_operator = torch.ops.clebsch.run.default


# Derivatives of the operator itself, as compilers trace it
# -----------------------------------------------------------------------------------------------------------------------------


def _remember(ctx: Any, inputs: tuple[Any, ...], output: list[torch.Tensor]) -> None:
    """Keeps what the derivative reads, and nothing else."""
    text, tensors, indices, rows = inputs
    gradient = gradient_of(text, tuple(i for i, tensor in enumerate(tensors) if tensor.requires_grad))
    ctx.gradient, ctx.rows, ctx.counts = gradient, rows, (len(tensors), len(indices))
    ctx.save_for_backward(*(tensors[i] for i in gradient.inputs), *(indices[i] for i in gradient.indices))


def _backward(ctx: Any, cotangents: list[torch.Tensor]) -> tuple[Any, ...]:
    gradient, count, saved = ctx.gradient, len(ctx.gradient.inputs), ctx.saved_tensors
    results = gradient(call_operator, saved[:count], saved[count:], cotangents, ctx.rows)
    gradients: list[torch.Tensor | None] = [None] * ctx.counts[0]
    for i, result in zip(gradient.wanted, results, strict=True):
        gradients[i] = result
    return None, gradients, [None] * ctx.counts[1], None if ctx.rows else []


torch.library.register_autograd("clebsch::run", _backward, setup_context=_remember)


# Eager calls: the same derivatives, and forward mode and vmap, which an operator cannot have from Python
# -----------------------------------------------------------------------------------------------------------------------------


def run(text: str, inputs: list[torch.Tensor], indices: list[torch.Tensor], rows: list[int]) -> list[torch.Tensor]:
    """Runs the operation of a text: tensors and numbers of rows in the text's order. Under autocast in float32: sums over many
    products are what 16-bit numbers are worst at."""
    if torch.is_autocast_enabled("cpu"):
        inputs = [tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor for tensor in inputs]
    if torch.compiler.is_compiling() or not _is_derived(inputs):
        return call_operator(text, inputs, indices, rows)
    return list(Run.apply(text, tuple(rows), len(inputs), *inputs, *indices))


def _is_derived(inputs: list[torch.Tensor]) -> bool:
    """Whether a derivative or a transform may follow this call."""
    return (
        (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs))
        or torch._C._are_functorch_transforms_active()
        or torch.autograd.forward_ad._current_level >= 0
    )


class Run(torch.autograd.Function):
    """Arguments: text, rows, number of inputs, inputs and indices."""

    @staticmethod
    def forward(text: str, rows: tuple[int, ...], count: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        return tuple(call_operator(text, list(tensors[:count]), list(tensors[count:]), list(rows)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        ctx.text, ctx.rows, ctx.count = inputs[:3]
        tensors: list[Any] = list(inputs[3:])
        ctx.save_for_forward(*tensors)
        if not torch._C._are_functorch_transforms_active():  # then only what the derivative reads
            gradient = gradient_of(ctx.text, tuple(i for i in range(ctx.count) if ctx.needs_input_grad[3 + i]))
            read = {*gradient.inputs, *(ctx.count + i for i in gradient.indices)}
            tensors = [tensor if i in read else None for i, tensor in enumerate(tensors)]
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        gradient = gradient_of(ctx.text, tuple(i for i in range(ctx.count) if ctx.needs_input_grad[3 + i]))
        saved = ctx.saved_tensors  # once: checkpoints compute them again for it
        inputs, indices = [saved[i] for i in gradient.inputs], [saved[ctx.count + i] for i in gradient.indices]
        results: list[Any] = [None] * len(ctx.needs_input_grad)
        for i, result in zip(gradient.wanted, gradient(run, inputs, indices, cotangents, ctx.rows), strict=True):
            results[3 + i] = result
        return tuple(results)

    @staticmethod
    def jvp(ctx: Any, *tangents: torch.Tensor | None) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        along = [tangent for tangent in tangents[3 : 3 + ctx.count] if tangent is not None]
        tangent = tangent_of(ctx.text, tuple(i for i in range(ctx.count) if tangents[3 + i] is not None))
        saved = ctx.saved_tensors
        inputs, indices = [saved[i] for i in tangent.inputs], [saved[ctx.count + i] for i in tangent.indices]
        found = dict(zip(tangent.outputs, tangent(run, inputs, indices, along, ctx.rows), strict=True))
        shapes = known(ctx.text).output_shapes
        like = saved[0]
        return tuple(
            found[i] if i in found else like.new_zeros((1 if space < 0 else ctx.rows[space], size))
            for i, (space, size) in enumerate(shapes)
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], text: str, rows: tuple[int, ...], count: int, *tensors: torch.Tensor) -> Any:
        batch = Batch(info.batch_size, list(zip(tensors, in_dims[3:], strict=True)))
        return batch.run(run, text, count, list(rows))


# PyTorch asks for the signature in every call; making it takes longer than the call.
Run.forward.__signature__ = inspect.signature(Run.forward)  # type: ignore[attr-defined]


@dataclass
class Batch:
    """Inputs, then indices, each with the dimension of its batch; None: the same for all."""

    size: int
    tensors: list[tuple[torch.Tensor, int | None]]

    def run(self, call: Any, text: str, count: int, rows: list[int]) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
        """The batch as further rows; one by one where an array of one row is batched or summed into. The batch comes first."""
        what = known(text)
        inputs, indices = self.tensors[:count], self.tensors[count:]
        alone = any(space < 0 for space, _ in what.output_shapes)
        alone |= any(space < 0 and dim is not None for (space, _), (_, dim) in zip(what.input_shapes, inputs, strict=True))
        for index, (tensor, _) in zip(what.operation.indices, indices, strict=True):
            alone |= index.sorted and bool((tensor < 0).any())  # masked rows begin every part
        found = self._one_by_one(call, text, count, rows) if alone else self._folded(call, what, text, count, rows)
        return tuple(found), (0,) * len(found)

    def _one_by_one(self, call: Any, text: str, count: int, rows: list[int]) -> list[torch.Tensor]:
        results = []
        for i in range(self.size):
            one = [tensor if dim is None else tensor.select(dim, i) for tensor, dim in self.tensors]
            results.append(call(text, one[:count], one[count:], rows))
        if not results:
            return [torch.empty((0, 1 if space < 0 else rows[space], size)) for space, size in known(text).output_shapes]
        return [torch.stack(each) for each in zip(*results, strict=True)]

    def _folded(self, call: Any, what: Known, text: str, count: int, rows: list[int]) -> list[torch.Tensor]:
        parts = [tensor.expand(self.size, *tensor.shape) if dim is None else tensor.movedim(dim, 0) for tensor, dim in self.tensors]
        inputs = [
            tensor if space < 0 else part.reshape(self.size * rows[space], size)
            for part, (tensor, _), (space, size) in zip(parts[:count], self.tensors[:count], what.input_shapes, strict=True)
        ]
        indices = []
        for part, index in zip(parts[count:], what.operation.indices, strict=True):
            target = rows[what.spaces.index(index.target)]
            begin = target * torch.arange(self.size, dtype=part.dtype)[:, None]
            # What is no row of its own part must not become one of the next: it goes beyond all, where the call refuses it.
            shift = torch.where(part < target, begin, self.size * target)
            indices.append(torch.where(part < 0, part, part + shift).reshape(-1))
        found = call(text, inputs, indices, [self.size * number for number in rows])
        return [out.reshape(self.size, rows[space], size) for out, (space, size) in zip(found, what.output_shapes, strict=True)]


def _operator_vmap(info: Any, in_dims: Any, text: str, inputs: Any, indices: Any, rows: Any) -> Any:
    dims = [*(in_dims[1] or [None] * len(inputs)), *(in_dims[2] or [None] * len(indices))]
    batch = Batch(info.batch_size, list(zip([*inputs, *indices], dims, strict=True)))
    found, places = batch.run(call_operator, text, len(inputs), list(rows))
    return list(found), list(places)


if hasattr(torch.library, "register_vmap"):  # PyTorch 2.5
    torch.library.register_vmap("clebsch::run", _operator_vmap)
