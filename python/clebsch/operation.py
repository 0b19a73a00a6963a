"""Operations: build, read and print descriptions, take derivatives, and run them on NumPy arrays."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, sizeof
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _library as lib
from ._arguments import array_of, dtype_name
from ._call_data import DTYPES, CallData, DeviceCallData, row_count
from ._library import ClebschError, call, call_handle, call_text, encode, library
from ._threads import times_set

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_LAYOUTS = ("mul_ir", "ir_mul")


@dataclass(frozen=True)
class Operand:
    """One array of a call: `row_size` numbers per row of `space` (None: one row, shared)."""

    name: str
    segments: str
    is_output: bool
    layout: str
    row_size: int
    space: str | None


@dataclass(frozen=True)
class Index:
    """An integer array: for every row of `source` a row of `target`; -1 masks the row."""

    name: str
    source: str
    target: str
    sorted: bool


class Operation:
    """An immutable description: a polynomial or a program. Equality and hash are those of its canonical text."""

    def __init__(self, text: str) -> None:
        self._adopt(call_handle("clebsch_operation_parse", encode(text, "text")))

    @classmethod
    def _from_handle(cls, handle: int) -> Operation:
        operation = cls.__new__(cls)
        operation._adopt(handle)
        return operation

    def _adopt(self, handle: int) -> None:
        self._handle = handle
        weakref.finalize(self, library.clebsch_operation_destroy, handle)

    @cached_property
    def text(self) -> str:
        """Canonical text; `Operation(text)` gives an equal operation."""
        return call_text("clebsch_operation_text", self._handle)

    @cached_property
    def hash(self) -> str:
        """128-bit hash of the text, 32 hexadecimal digits."""
        digits = ctypes.create_string_buffer(33)
        call("clebsch_operation_hash", self._handle, digits)
        return digits.value.decode()

    @cached_property
    def spaces(self) -> tuple[str, ...]:
        """Names of the row spaces."""
        count = library.clebsch_operation_space_count(self._handle)
        return tuple(library.clebsch_operation_space(self._handle, i).decode() for i in range(count))

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """Arrays of a call, in order."""
        result = []
        for i in range(library.clebsch_operation_operand_count(self._handle)):
            info = lib.OperandInfo(size=sizeof(lib.OperandInfo))
            call("clebsch_operation_operand", self._handle, i, byref(info))
            space = None if info.space < 0 else self.spaces[info.space]
            result.append(
                Operand(
                    info.name.decode(),
                    info.segments.decode(),
                    bool(info.is_output),
                    _LAYOUTS[info.layout],
                    info.row_size,
                    space,
                )
            )
        return tuple(result)

    @cached_property
    def indices(self) -> tuple[Index, ...]:
        """Index arrays of a call, in order."""
        result = []
        name, source, target, is_sorted = c_char_p(), c_int(), c_int(), c_int()
        for i in range(library.clebsch_operation_index_count(self._handle)):
            call("clebsch_operation_index", self._handle, i, byref(name), byref(source), byref(target), byref(is_sorted))
            assert name.value is not None
            spaces = self.spaces[source.value], self.spaces[target.value]
            result.append(Index(name.value.decode(), *spaces, bool(is_sorted.value)))
        return tuple(result)

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """The operands that are read."""
        return tuple(operand for operand in self.operands if not operand.is_output)

    @property
    def outputs(self) -> tuple[Operand, ...]:
        """The operands that are written."""
        return tuple(operand for operand in self.operands if operand.is_output)

    def vjp(self, *inputs: str) -> Operation:
        """Reverse-mode derivative with respect to `inputs`: reads `<output>_cotangent`, writes `<input>_gradient`."""
        return self._derivative("clebsch_operation_vjp", inputs)

    def jvp(self, *inputs: str) -> Operation:
        """Forward-mode derivative: reads `<input>_tangent`, writes `<output>_tangent`."""
        return self._derivative("clebsch_operation_jvp", inputs)

    def in_order_of(self, index: str) -> Operation:
        """The same with its rows in the order of `index` (receiver), so that sums through it are as fast as through a sorted
        one: takes `<index>_order` and `<index>_sorted`, which a `RowOrder` has, instead of what only `index` led to."""
        return Operation._from_handle(call_handle("clebsch_operation_in_order_of", self._handle, encode(index, "index")))

    def _derivative(self, function: str, inputs: tuple[str, ...]) -> Operation:
        names = (c_char_p * len(inputs))(*[encode(name, "input name") for name in inputs])
        return Operation._from_handle(call_handle(function, self._handle, names, len(inputs)))

    def plan(
        self,
        dtype: DTypeLike | Mapping[str, DTypeLike] = "float32",
        instruction_set: str | None = None,
        kernel: str | None = None,
        device: str = "cpu",
        deterministic: bool = False,
    ) -> Plan:
        """Prepares the operation for this machine. `dtype`: one for all operands, or a mapping by operand name (others float32).

        device: "cuda", "cuda:1": for arrays in that GPU's memory, of any library with DLPack or the CUDA array interface (CuPy,
        PyTorch, JAX, Numba). deterministic: every sum there in one order, so that results are the same bits every time; slower."""
        return Plan(self, dtype, instruction_set, kernel, device, deterministic)

    def explain(self, copy_gigabytes_per_second: float = 0.0, fma_gigaflops: float = 0.0, dtype: DTypeLike = "float32") -> str:
        """Which kernels would run, why, and the predicted limit for the given peaks."""
        return self.plan(dtype).explain(copy_gigabytes_per_second, fma_gigaflops)

    @cached_property
    def _plans(self) -> dict[Any, Plan]:
        return {}

    def __call__(
        self, /, rows: Mapping[str, int] | None = None, out: Mapping[str, np.ndarray] | None = None, **arrays: np.ndarray
    ) -> Any:
        """Runs on arrays by name (operands and indices); the dtype is that of the arrays. One output: an array; several: a dict.
        `out` takes arrays to write into."""
        given = {**out, **arrays} if isinstance(out, Mapping) else arrays
        names = [
            _dtype_name(operand.name, given[operand.name]) if operand.name in given else "float32" for operand in self.operands
        ]
        compute = "float64" if "float64" in names else next(iter(names), "float32")
        key = tuple(name if operand.name in given else compute for operand, name in zip(self.operands, names, strict=True))
        if key not in self._plans:
            self._plans[key] = self.plan(dict(zip([operand.name for operand in self.operands], key, strict=True)))
        return self._plans[key](rows, out, **arrays)

    def reference(self, rows: Mapping[str, int] | None = None, **arrays: np.ndarray) -> Any:
        """The slow evaluator that defines the meaning, in extended precision, on float64 arrays."""
        doubles = dict(arrays)
        for operand in self.inputs:
            if operand.name in arrays:
                array = array_of(operand.name, arrays[operand.name])
                if array.dtype.kind not in "fiu":
                    raise ClebschError(f"{operand.name}: expected real numbers, got {array.dtype.name}")
                doubles[operand.name] = array.astype(np.float64)
        call_data = CallData(self, ("float64",) * len(self.operands), rows, doubles, None)
        call("clebsch_evaluate_reference", self._handle, byref(call_data.call))
        return call_data.result()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        def describe(operand: Operand) -> str:
            return f"{operand.name}: {operand.segments} @ {operand.space or 'shared'}"

        inputs = ", ".join(describe(operand) for operand in self.inputs)
        outputs = ", ".join(describe(operand) for operand in self.outputs)
        return f"<Operation {self.hash[:12]}: ({inputs}) -> ({outputs})>"

    def _repr_html_(self) -> str:
        """What notebooks show: tables of the arrays and of the paths."""
        from ._html import operation_html

        return operation_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Operation, (self.text,)


class Plan:
    """An operation prepared for this machine and given dtypes. May be called from several threads at once."""

    def __init__(
        self,
        operation: Operation,
        dtype: DTypeLike | Mapping[str, DTypeLike] = "float32",
        instruction_set: str | None = None,
        kernel: str | None = None,
        device: str = "cpu",
        deterministic: bool = False,
    ) -> None:
        self.operation = operation
        self.device, self.deterministic = device, deterministic
        self._instruction_set, self._kernel = instruction_set, kernel
        by_name = dtype if isinstance(dtype, Mapping) else {}
        default: Any = "float32" if isinstance(dtype, Mapping) else dtype
        known = {operand.name for operand in operation.operands}
        for name in by_name:
            if name not in known:
                raise ClebschError(f"dtype: no operand {name!r}; there are {', '.join(sorted(known))}")
        choices = f"one of {', '.join(DTYPES)}"
        self.dtypes = tuple(
            dtype_name("dtype", by_name.get(operand.name, default), DTYPES, choices) for operand in operation.operands
        )
        numbers = (c_int * len(self.dtypes))(*[DTYPES[name] for name in self.dtypes])
        options = lib.PlanOptions(
            size=sizeof(lib.PlanOptions),
            dtype=0,
            dtypes=numbers,
            dtype_count=len(self.dtypes),
            instruction_set=None if instruction_set is None else encode(instruction_set, "instruction_set"),
            kernel=None if kernel is None else encode(kernel, "kernel"),
            device=encode(device, "device"),
            deterministic=int(deterministic),
        )
        self._handle = call_handle("clebsch_plan_prepare", operation._handle, byref(options))
        self._gpu = None if device == "cpu" else int(device.partition(":")[2] or 0)  # the library has read it
        weakref.finalize(self, library.clebsch_plan_destroy, self._handle)

    def __reduce__(self) -> tuple[Any, ...]:
        dtypes = {operand.name: name for operand, name in zip(self.operation.operands, self.dtypes, strict=True)}
        options = (self._instruction_set, self._kernel, self.device, self.deterministic)
        return Plan, (self.operation, dtypes, *options)  # a copy is prepared again

    def __repr__(self) -> str:
        dtypes = list(dict.fromkeys(self.dtypes))
        fixed = ", sums in a fixed order" if self.deterministic and self.device != "cpu" else ""
        return f"<Plan of {self.operation.hash[:12]} for {' and '.join(dtypes) or 'no arrays'} on {self.device}{fixed}>"

    def explain(self, copy_gigabytes_per_second: float = 0.0, fma_gigaflops: float = 0.0) -> str:
        """Kernels, reasons, flops, bytes, predicted limit."""
        return call_text("clebsch_plan_explain", self._handle, copy_gigabytes_per_second, fma_gigaflops)

    def workspace_bytes(self, rows: Mapping[str, int]) -> int:
        """Scratch bytes of a call with these rows per space."""
        missing = [space for space in self.operation.spaces if space not in rows]
        if missing:
            raise ClebschError(f"rows: expected a number of rows of space {missing[0]!r}, got {dict(rows)}")
        numbers = (c_int64 * len(self.operation.spaces))(*[row_count(space, rows[space]) for space in self.operation.spaces])
        result = c_size_t()
        call("clebsch_plan_workspace_size", self._handle, numbers, len(numbers), 0, byref(result))
        return result.value

    def __call__(self, /, rows: Mapping[str, int] | None = None, out: Mapping[str, Any] | None = None, **arrays: Any) -> Any:
        """Runs on arrays by name. `rows` gives the sizes of spaces that no input shows; `out` takes arrays to write into.

        On a GPU: puts the work on the current stream of the arrays' library (PyTorch, CuPy; else on the default one) and does not
        wait. New outputs are that library's."""
        return self.bind(rows, out, **arrays)()

    def bind(self, /, rows: Mapping[str, int] | None = None, out: Mapping[str, Any] | None = None, **arrays: Any) -> BoundCall:
        """A call whose arrays are checked once: calling it runs on what the arrays hold then, into the same outputs."""
        if self._gpu is None:
            return BoundCall(self, CallData(self.operation, self.dtypes, rows, arrays, out))
        return BoundCall(self, DeviceCallData(self.operation, self.dtypes, rows, arrays, out, self._gpu))

    def index_error(self) -> bool:
        """On a GPU: waits; whether a call since the last question met an index out of range (it counted as masked) or a sorted one
        that decreases. Calls on the processor raise instead."""
        found = c_int()
        call("clebsch_plan_index_error", self._handle, byref(found))
        return bool(found.value)


class BoundCall:
    """A plan with its arrays and workspace. Not for several threads at once: they would share outputs and workspace."""

    def __init__(self, plan: Plan, data: CallData) -> None:
        self._plan = plan
        self._data = data
        self._call = byref(data.call)
        self._result = data.result()
        self._make_workspace()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a bound call cannot be copied or pickled: it is tied to its arrays; bind again")

    def _make_workspace(self) -> None:
        """For the threads there are now."""
        self._threads_set = times_set()
        self._workspace = self._data.workspace(self._plan.workspace_bytes(self._data.rows))

    def __call__(self) -> Any:
        """Runs; one output: its array, several: a dict. The arrays are the same every time."""
        if self._threads_set != times_set():
            self._make_workspace()
        self._data.launch(self._plan._handle, self._call)
        return self._result


def _dtype_name(operand: str, array: np.ndarray) -> str:
    name = array_of(operand, array).dtype.name
    if name not in DTYPES:
        raise ClebschError(f"{operand}: expected float32, float64 or float16 (bfloat16 as uint16 through a plan), got {name}")
    return name


def build(name: str, **options: object) -> Operation:
    """An operation from a builder, e.g. build("convolution", in_="8x0e+8x1o", edge="0e+1o", out="0e+1o")."""
    lines = []
    for key, value in options.items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        key = key.removesuffix("_")  # in_ for in, which Python reserves
        text = str(value)
        if "\n" in text or "=" in key:
            raise ClebschError(f"build: option {key!r} must not contain a newline")
        lines.append(f"{key}={text}")
    handle = call_handle("clebsch_operation_build", encode(name, "name"), encode("\n".join(lines), "options"))
    return Operation._from_handle(handle)


def builders() -> dict[str, Any]:
    """All builders with their options, defaults and help."""
    import json

    return json.loads(call_text("clebsch_builders"))
