"""Plans for tensors of one dtype on one device, and their launches: what lies between lists of tensors and the C interface."""

from __future__ import annotations

import weakref
from ctypes import addressof, byref, c_int, c_int64, c_size_t, create_string_buffer, memmove, sizeof
from struct import Struct
from typing import Any

import torch

from .. import _library as lib
from .._library import ClebschError, UnsupportedError, call, call_handle, launch_at, launch_on_stream_at, library, raise_for
from .._threads import times_set
from ..operation import DTYPES
from ._known import Described
from ._native import native
from ._results import LARGE, large_result

_DTYPES = {torch.float32: "float32", torch.float64: "float64", torch.bfloat16: "bfloat16", torch.float16: "float16"}
_INDEX_TYPES = {torch.int32: 0, torch.int64: 1}
_CPU = torch.device("cpu")
_KEPT_WORKSPACE = 64 << 20  #: bytes: a workspace up to this size is kept for the next call

# clebsch_buffer, clebsch_index_buffer and the workspace of clebsch_call, written in one go.
_put_buffer = Struct("=Qi4xqq").pack_into
_put_index = Struct("=Qi4xq").pack_into
_put_workspace = Struct("=QQ").pack_into
assert (sizeof(lib.Buffer), sizeof(lib.IndexBuffer)) == (Struct("=Qi4xqq").size, Struct("=Qi4xq").size)


call_native: Any = None if native is None else native.clebsch_torch_direct_call


class NotPlainError(Exception):
    """A tensor without memory of its own: PyTorch's dispatcher knows what to do."""


class Frame:
    """The structs of one call in one piece of memory. Frames are reused, by one call at a time."""

    def __init__(self, what: Described) -> None:
        operands = what.operation.operands
        self.index_offset = len(operands) * sizeof(lib.Buffer)
        self.row_offset = self.index_offset + len(what.indices) * sizeof(lib.IndexBuffer)
        call_offset = self.row_offset + len(what.spaces) * sizeof(c_int64)
        self.memory = create_string_buffer(call_offset + sizeof(lib.Call))
        begin = addressof(self.memory)
        structs = lib.Call(
            size=sizeof(lib.Call),
            buffer_count=len(operands),
            index_count=len(what.indices),
            space_count=len(what.spaces),
        )
        self.address = begin + call_offset
        memmove(self.address, addressof(structs), sizeof(lib.Call))
        put_pointer = Struct("=Q").pack_into
        for field, offset in ((lib.Call.buffers, 0), (lib.Call.indices, self.index_offset), (lib.Call.rows, self.row_offset)):
            put_pointer(self.memory, call_offset + field.offset, begin + offset)
        self.workspace_offset = call_offset + lib.Call.workspace.offset
        self.put_rows = Struct(f"={len(what.spaces)}q").pack_into


_on_gpus: list[Prepared] = []
_workspaces: list[tuple[torch.Tensor, int]] = []  #: on the processor, with their sizes: as many as calls ran at once


def check_indices() -> None:
    """Waits for the GPUs and raises if a call since the last check met an index out of range, which counts as masked there: kernels
    cannot raise, and looking at indices before every call would stall the GPU. On the CPU calls raise themselves."""
    wrong = [plan for plan in list(_on_gpus) if plan.index_error()]
    if wrong:
        names = sorted({name for plan in wrong for name in plan.what.indices})
        raise ClebschError(
            f"index {' or '.join(map(repr, names))}: expected -1 or a row of its space, ascending where it is declared "
            "sorted, got something else since the last check"
        )


class Prepared:
    """A plan for tensors of one dtype on one device, made when such tensors are first met."""

    def __init__(self, what: Described, dtype: torch.dtype, device: torch.device, deterministic: bool) -> None:
        if dtype not in _DTYPES:
            raise ClebschError(f"{what.inputs[0]}: expected float32, float64, bfloat16 or float16, got {dtype}")
        self.what, self.dtype, self.device, self.deterministic = what, dtype, device, deterministic
        self.number = DTYPES[_DTYPES[dtype]]
        self.gpu = device.index if device.type == "cuda" else None
        self.handle = self._prepared_handle()
        weakref.finalize(self, library.clebsch_plan_destroy, self.handle)
        operands = what.operation.operands
        buffers = [i * sizeof(lib.Buffer) for i in range(len(operands))]
        reads = [place for place, operand in zip(buffers, operands, strict=True) if not operand.is_output]
        writes = [place for place, operand in zip(buffers, operands, strict=True) if operand.is_output]
        indices = [len(operands) * sizeof(lib.Buffer) + i * sizeof(lib.IndexBuffer) for i in range(len(what.indices))]
        # (place of its struct; position of the row space, or -1; numbers per row)
        self.reads = tuple((place, *shape) for place, shape in zip(reads, what.input_shapes, strict=True))
        self.writes = tuple((place, *shape) for place, shape in zip(writes, what.output_shapes, strict=True))
        self.places = tuple((place, source) for place, (source, _) in zip(indices, what.index_spaces, strict=True))
        self.counts = (len(self.reads), len(self.places), len(what.spaces))
        if self.gpu is not None:
            _on_gpus.append(self)
        self.frames: list[Frame] = []
        self.native = self._native_handle()
        self.large_from = LARGE // dtype.itemsize if self.gpu is None else None  #: numbers of a result whose memory is kept
        if native is not None and self.native is not None:
            weakref.finalize(self, native.clebsch_torch_direct_destroy, self.native)
        words = Struct(f"={len(operands) + len(indices) + len(what.spaces)}Q")
        self.put_words, self.words_size = words.pack_into, words.size
        self.words: list[tuple[Any, int]] = []  # memory and its address: used by one call at a time
        self.workspaces: dict[tuple[int, ...], int] = {}
        self.threads_set = times_set()

    def _prepared_handle(self) -> int:
        if self.gpu is not None and torch.cuda.is_current_stream_capturing():
            raise UnsupportedError(
                f"{self.what.inputs[0]}: this operation has no kernels for {self.dtype} on {self.device} yet and a CUDA graph "
                "is being captured; run it once before"
            )
        device = b"cpu" if self.gpu is None else f"cuda:{self.gpu}".encode()
        options = lib.PlanOptions(
            size=sizeof(lib.PlanOptions), dtype=self.number, device=device, deterministic=int(self.deterministic)
        )
        return call_handle("clebsch_plan_prepare", self.what.operation._handle, byref(options))

    def _native_handle(self) -> int | None:
        if native is None or not self.what.inputs:
            return None
        handle: int | None = native.clebsch_torch_direct(
            self.handle, self.what.operation._handle, self.number, -1 if self.gpu is None else self.gpu
        )
        return handle

    def direct(self, inputs: list[torch.Tensor], indices: list[torch.Tensor], rows: list[int]) -> list[torch.Tensor] | None:
        """The call by libclebsch_torch.so, which looks at tensors faster than Python does. None: there is no such library, or
        something is not as the plan wants it, and `__call__` knows what to do or say."""
        if self.native is None or (len(inputs), len(indices), len(rows)) != self.counts:
            return None
        for count in rows:
            if count < 0:
                return None
        like = inputs[0]
        outputs = []
        for _, space, size in self.writes:
            count = 1 if space < 0 else rows[space]
            large = self.large_from is not None and count * size >= self.large_from
            outputs.append(large_result(self.dtype, count, size) if large else like.new_empty((count, size)))
        try:
            memory, address = self.words.pop()
        except IndexError:
            memory = create_string_buffer(self.words_size)
            address = addressof(memory)
        self.put_words(memory, 0, *[tensor._cdata for tensor in (*inputs, *indices, *outputs)], *rows)
        status = call_native(self.native, address)
        self.words.append((memory, address))
        return None if status else outputs

    def workspace_bytes(self, rows: tuple[int, ...]) -> int:
        if self.threads_set != times_set():
            self.workspaces, self.threads_set = {}, times_set()
        size = self.workspaces.get(rows)
        if size is None:
            result = c_size_t()
            call("clebsch_plan_workspace_size", self.handle, (c_int64 * len(rows))(*rows), len(rows), 0, byref(result))
            size = result.value
            if len(self.workspaces) > 1000:  # the number of edges changes from step to step
                self.workspaces = {}
            self.workspaces[rows] = size
        return size

    def __call__(self, inputs: list[torch.Tensor], indices: list[torch.Tensor], rows: list[int]) -> list[torch.Tensor]:
        if (len(inputs), len(indices), len(rows)) != self.counts:
            raise self._miscounted(inputs, indices, rows)
        dtype, device, number = self.dtype, self.device, self.number
        try:
            frame = self.frames.pop()  # by one thread alone
        except IndexError:
            frame = Frame(self.what)
        memory = frame.memory
        kept = []  # tensors made here, alive until the launch has ended
        for (place, space, size), tensor in zip(self.reads, inputs):  # noqa: B905 - as many: counted above
            count = 1 if space < 0 else rows[space]
            if tensor.dtype is not dtype or tensor.device != device or tensor.shape != (count, size):
                raise self._unfit(inputs, rows)
            stride = 0
            if not tensor.is_contiguous():
                stride = tensor.stride(0) if count > 1 and size else 0
                if (count > 1 and stride < size) or (size > 1 and tensor.stride(1) != 1):
                    tensor, stride = tensor.contiguous(), 0
                    kept.append(tensor)
            address = tensor.data_ptr()
            if not address and count and size:
                raise NotPlainError
            _put_buffer(memory, place, address, number, count, stride)
        for (place, space), index in zip(self.places, indices):  # noqa: B905
            kind = _INDEX_TYPES.get(index.dtype)
            if kind is None or index.device != device or index.shape != (rows[space],):
                raise self._unfit_index(indices, rows)
            if not index.is_contiguous():
                index = index.contiguous()
                kept.append(index)
            _put_index(memory, place, index.data_ptr(), kind, rows[space])
        outputs = []
        for place, space, size in self.writes:
            count = 1 if space < 0 else rows[space]
            output = torch.empty((count, size), dtype=dtype, device=device)
            _put_buffer(memory, place, output.data_ptr(), number, count, 0)
            outputs.append(output)
        frame.put_rows(memory, frame.row_offset, *rows)
        size = self.workspace_bytes(tuple(rows))
        status = self._run_here(frame, size) if self.gpu is None else self._run_on_gpu(frame, size, self.gpu)
        if status:
            raise_for(status)
        self.frames.append(frame)
        return outputs

    def _run_here(self, frame: Frame, size: int) -> int:
        try:
            workspace, kept = _workspaces.pop()  # by one thread alone; the system's memory would have to be touched anew
        except IndexError:
            workspace, kept = None, 0
        if workspace is None or kept < size:
            workspace, kept = torch.empty(size + 64, dtype=torch.uint8, device="cpu"), size
        address = workspace.data_ptr()
        _put_workspace(frame.memory, frame.workspace_offset, address + (-address) % 64, size)
        status = launch_at(self.handle, frame.address)
        if kept <= _KEPT_WORKSPACE:
            _workspaces.append((workspace, kept))
        return status

    def _run_on_gpu(self, frame: Frame, size: int, gpu: int) -> int:
        """On the current stream; the caching allocator gives the workspace to nobody else before the stream is past this launch."""
        workspace = torch.empty(size, dtype=torch.uint8, device=self.device) if size else None
        _put_workspace(frame.memory, frame.workspace_offset, 0 if workspace is None else workspace.data_ptr(), size)
        return launch_on_stream_at(self.handle, frame.address, torch._C._cuda_getCurrentRawStream(gpu))

    def index_error(self) -> bool:
        """Waits for the GPU; whether a launch since the last call met an index out of range."""
        found = c_int()
        call("clebsch_plan_index_error", self.handle, byref(found))
        return bool(found.value)

    def _miscounted(self, *given: list[Any]) -> ClebschError:
        names = {"inputs": self.what.inputs, "indices": self.what.indices, "rows": self.what.spaces}
        for what, wanted, found in zip(names, names.values(), given, strict=True):
            if len(found) != len(wanted):
                return ClebschError(f"{what}: expected {len(wanted)} ({', '.join(wanted)}), got {len(found)}")
        raise AssertionError

    def _unfit(self, inputs: list[torch.Tensor], rows: list[int]) -> ClebschError:
        first = self.what.inputs[0]
        for operand, (_, space, size), tensor in zip(self.what.operation.inputs, self.reads, inputs, strict=True):
            shape, name = (1 if space < 0 else rows[space], size), operand.name
            if tensor.dtype is not self.dtype:
                return ClebschError(f"{name}: expected {self.dtype} as {first}, got {tensor.dtype}")
            if tensor.device != self.device:
                return ClebschError(f"{name}: expected a tensor on {self.device} as {first}, got one on {tensor.device}")
            if tensor.shape != shape:
                return ClebschError(f"{name}: expected shape {shape} for {operand.segments}, got {tuple(tensor.shape)}")
        raise AssertionError

    def _unfit_index(self, indices: list[torch.Tensor], rows: list[int]) -> ClebschError:
        for name, (_, space), index in zip(self.what.indices, self.places, indices, strict=True):
            shape, got = (rows[space],), f"{index.dtype} {tuple(index.shape)}"
            if index.dtype not in _INDEX_TYPES or index.shape != shape:
                return ClebschError(f"{name}: expected int32 or int64 of shape {shape}, got {got}")
            if index.device != self.device:
                return ClebschError(f"{name}: expected a tensor on {self.device} as the inputs, got one on {index.device}")
        raise AssertionError


_plans: dict[tuple[Described, torch.dtype, torch.device, bool], Prepared] = {}


def prepared(what: Described, inputs: list[torch.Tensor], indices: list[torch.Tensor]) -> Prepared:
    """The plan for tensors like these. The first input decides dtype and device; PyTorch's own switch, whether sums on a GPU have
    one order."""
    if inputs:
        dtype, device = inputs[0].dtype, inputs[0].device
    else:
        dtype, device = torch.get_default_dtype(), indices[0].device if indices else torch.device("cpu")
    key = (what, dtype, device, device != _CPU and torch.are_deterministic_algorithms_enabled())
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = Prepared(*key)
    return plan
