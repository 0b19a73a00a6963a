"""Operations: build, read and print descriptions, take derivatives, and run them on NumPy arrays."""

from __future__ import annotations

import ctypes
import operator
import weakref
from collections.abc import Mapping
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, sizeof
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _library as lib
from ._arguments import array_of, dtype_name
from ._library import ClebschError, call, call_handle, call_text, encode, library
from ._threads import times_set

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

#: NumPy dtypes and the library's numbers for them. bfloat16 arrays are passed as uint16 views with dtype="bfloat16".
DTYPES = {"float32": 0, "float64": 1, "bfloat16": 2, "float16": 3}
_STORAGE = {"float32": np.float32, "float64": np.float64, "bfloat16": np.uint16, "float16": np.float16}
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

    def _derivative(self, function: str, inputs: tuple[str, ...]) -> Operation:
        names = (c_char_p * len(inputs))(*[encode(name, "input name") for name in inputs])
        return Operation._from_handle(call_handle(function, self._handle, names, len(inputs)))

    def plan(
        self,
        dtype: DTypeLike | Mapping[str, DTypeLike] = "float32",
        instruction_set: str | None = None,
        kernel: str | None = None,
    ) -> Plan:
        """Prepares the operation for this machine. `dtype`: one for all operands, or a mapping by operand name (others float32)."""
        return Plan(self, dtype, instruction_set, kernel)

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
        call_data = _CallData(self, ("float64",) * len(self.operands), rows, doubles, None)
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
    ) -> None:
        self.operation = operation
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
        )
        self._handle = call_handle("clebsch_plan_prepare", operation._handle, byref(options))
        weakref.finalize(self, library.clebsch_plan_destroy, self._handle)

    def __reduce__(self) -> tuple[Any, ...]:
        dtypes = {operand.name: name for operand, name in zip(self.operation.operands, self.dtypes, strict=True)}
        return Plan, (self.operation, dtypes, self._instruction_set, self._kernel)  # a copy is prepared again

    def explain(self, copy_gigabytes_per_second: float = 0.0, fma_gigaflops: float = 0.0) -> str:
        """Kernels, reasons, flops, bytes, predicted limit."""
        return call_text("clebsch_plan_explain", self._handle, copy_gigabytes_per_second, fma_gigaflops)

    def workspace_bytes(self, rows: Mapping[str, int]) -> int:
        """Scratch bytes of a call with these rows per space."""
        missing = [space for space in self.operation.spaces if space not in rows]
        if missing:
            raise ClebschError(f"rows: expected a number of rows of space {missing[0]!r}, got {dict(rows)}")
        numbers = (c_int64 * len(self.operation.spaces))(*[_row_count(space, rows[space]) for space in self.operation.spaces])
        result = c_size_t()
        call("clebsch_plan_workspace_size", self._handle, numbers, len(numbers), 0, byref(result))
        return result.value

    def __call__(
        self, /, rows: Mapping[str, int] | None = None, out: Mapping[str, np.ndarray] | None = None, **arrays: np.ndarray
    ) -> Any:
        """Runs on arrays by name. `rows` gives the sizes of spaces that no input shows; `out` takes arrays to write into."""
        return self.bind(rows, out, **arrays)()

    def bind(
        self, /, rows: Mapping[str, int] | None = None, out: Mapping[str, np.ndarray] | None = None, **arrays: np.ndarray
    ) -> BoundCall:
        """A call whose arrays are checked once: calling it runs on what the arrays hold then, into the same outputs."""
        return BoundCall(self, _CallData(self.operation, self.dtypes, rows, arrays, out))


class BoundCall:
    """A plan with its arrays and workspace. Not for several threads at once: they would share outputs and workspace."""

    def __init__(self, plan: Plan, data: _CallData) -> None:
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
        size = self._plan.workspace_bytes(self._data.rows)
        self._workspace = np.empty(size + 64, dtype=np.uint8)
        address = self._workspace.ctypes.data
        self._data.call.workspace = address + (-address) % 64
        self._data.call.workspace_bytes = size

    def __call__(self) -> Any:
        """Runs; one output: its array, several: a dict. The arrays are the same every time."""
        if self._threads_set != times_set():
            self._make_workspace()
        self._data.refresh()
        call("clebsch_launch", self._plan._handle, self._call)
        return self._result


def _dtype_name(operand: str, array: np.ndarray) -> str:
    name = array_of(operand, array).dtype.name
    if name not in DTYPES:
        raise ClebschError(f"{operand}: expected float32, float64 or float16 (bfloat16 as uint16 through a plan), got {name}")
    return name


def _row_count(space: str, count: object) -> int:
    try:
        number = operator.index(count)  # type: ignore[arg-type]
    except TypeError:
        raise ClebschError(f"rows: expected an integer for space {space!r}, got {count!r}") from None
    if not 0 <= number < 2**63:
        raise ClebschError(f"rows: expected 0 to 2^63 - 1 for space {space!r}, got {number}")
    return number


def _index_array(name: str, array: np.ndarray) -> np.ndarray:
    """A contiguous int32 or int64 array in this machine's byte order."""
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ClebschError(f"{name}: expected a 1-D integer array, got {array.dtype.name} {array.shape}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ClebschError(f"{name}: expected -1 or a row, got {array.max()}")
    if array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    return np.require(array, requirements=["C", "A"])


def _can_be_passed(array: np.ndarray) -> bool:
    """Whether the library can use the array as it is: a good address, rows of contiguous numbers, none overlapping another."""
    if array.size == 0:
        return True
    rows, columns = array.shape
    row_stride, stride = array.strides
    return (
        array.ctypes.data % min(4, array.itemsize) == 0
        and (columns == 1 or stride == array.itemsize)
        and (rows == 1 or (row_stride % array.itemsize == 0 and row_stride >= columns * array.itemsize))
    )


class _CallData:
    """Checks the arrays of one call against the operation and lays them out for the library; keeps them alive."""

    def __init__(
        self,
        operation: Operation,
        dtypes: tuple[str, ...],
        rows: Mapping[str, int] | None,
        arrays: Mapping[str, np.ndarray],
        out: Mapping[str, np.ndarray] | None,
    ) -> None:
        self.operation = operation
        for mapping, name in ((rows, "rows"), (out, "out")):
            if mapping is not None and not isinstance(mapping, Mapping):
                what = type(mapping).__name__
                raise ClebschError(f"{name}: expected a mapping by name, got {what} (an operand cannot have this name)")
        out = out or {}
        known = {operand.name for operand in operation.inputs} | {index.name for index in operation.indices}
        for name in arrays:
            if name not in known:
                raise ClebschError(f"no input or index {name!r}; there are {', '.join(sorted(known))}")
        for name in out:
            if name not in {operand.name for operand in operation.outputs}:
                raise ClebschError(f"out: no output {name!r}")
        sizes: dict[str, tuple[int, str]] = {space: (_row_count(space, count), "rows") for space, count in (rows or {}).items()}
        for space in sizes:
            if space not in operation.spaces:
                raise ClebschError(f"rows: no space {space!r}; there are {', '.join(operation.spaces)}")

        def learn(space: str, count: int, source: str) -> None:
            if space in sizes and sizes[space][0] != count:
                before, origin = sizes[space]
                raise ClebschError(f"{source}: expected {before} rows of space {space!r} (from {origin}), got {count}")
            sizes.setdefault(space, (count, source))

        self.arrays: dict[str, np.ndarray] = {}
        self._copies: list[tuple[np.ndarray, np.ndarray]] = []  # (copy, what the caller gave)
        for index in operation.indices:
            given = self._take(arrays, index.name, "index")
            self._keep(index.name, _index_array(index.name, given), given)
            learn(index.source, self.arrays[index.name].shape[0], index.name)
        for operand, dtype in zip(operation.operands, dtypes, strict=True):
            if operand.is_output and operand.name not in out:
                continue
            array = self._take(out if operand.is_output else arrays, operand.name, "operand")
            if operand.is_output and array is not out[operand.name]:
                raise ClebschError(f"{operand.name}: out must be a NumPy array, got {type(out[operand.name]).__name__}")
            if array.dtype != _STORAGE[dtype]:
                order = "" if array.dtype.isnative else " of the other byte order"
                raise ClebschError(f"{operand.name}: expected dtype {dtype}, got {array.dtype.name}{order}")
            if operand.space is None and array.shape == (operand.row_size,):
                array = array[None]
            if array.ndim != 2 or array.shape[1] != operand.row_size or (operand.space is None and array.shape[0] != 1):
                where = operand.space or "1"
                raise ClebschError(
                    f"{operand.name}: expected shape ({where}, {operand.row_size}) for {operand.segments}, got {array.shape}"
                )
            if not _can_be_passed(array):
                if operand.is_output:
                    raise ClebschError(
                        f"{operand.name}: out must have aligned, contiguous rows that do not overlap, got strides {array.strides}"
                    )
                self._keep(operand.name, np.array(array, order="C"), array)
            else:
                self.arrays[operand.name] = array
            if operand.is_output and not array.flags.writeable:
                raise ClebschError(f"{operand.name}: out is read-only")
            if operand.space is not None:
                learn(operand.space, array.shape[0], operand.name)
        for space in operation.spaces:
            if space not in sizes:
                raise ClebschError(f"rows: the number of rows of space {space!r} follows from no input; give rows={{{space!r}: n}}")
        self.rows = {space: sizes[space][0] for space in operation.spaces}
        for operand, dtype in zip(operation.operands, dtypes, strict=True):
            if operand.name not in self.arrays:
                count = 1 if operand.space is None else self.rows[operand.space]
                self.arrays[operand.name] = np.empty((count, operand.row_size), dtype=_STORAGE[dtype])
        self._lay_out(dtypes)

    def _keep(self, name: str, passed: np.ndarray, given: np.ndarray) -> None:
        self.arrays[name] = passed
        if passed is not given:
            self._copies.append((passed, given))

    def refresh(self) -> None:
        """Copies again what the library cannot read in place: the caller may have changed it since."""
        for copy, given in self._copies:
            np.copyto(copy, given, casting="unsafe")

    @staticmethod
    def _take(arrays: Mapping[str, np.ndarray], name: str, what: str) -> np.ndarray:
        if name not in arrays:
            raise ClebschError(f"{what} {name!r} is missing; given: {', '.join(sorted(arrays)) or 'none'}")
        return array_of(name, arrays[name])

    def _lay_out(self, dtypes: tuple[str, ...]) -> None:
        operation = self.operation
        self.buffers = (lib.Buffer * len(operation.operands))()
        for buffer, operand, dtype in zip(self.buffers, operation.operands, dtypes, strict=True):
            array = self.arrays[operand.name]
            stride = array.strides[0] // array.itemsize if array.shape[0] > 1 and array.size else 0
            buffer.data, buffer.dtype, buffer.rows, buffer.row_stride = (
                array.ctypes.data,
                DTYPES[dtype],
                array.shape[0],
                stride,
            )
        self.indices = (lib.IndexBuffer * len(operation.indices))()
        for buffer, index in zip(self.indices, operation.indices, strict=True):
            array = self.arrays[index.name]
            buffer.data, buffer.type, buffer.count = array.ctypes.data, int(array.dtype == np.int64), array.shape[0]
        self.row_counts = (c_int64 * len(operation.spaces))(*self.rows.values())
        self.call = lib.Call(
            size=sizeof(lib.Call),
            buffers=self.buffers,
            buffer_count=len(self.buffers),
            indices=self.indices,
            index_count=len(self.indices),
            rows=self.row_counts,
            space_count=len(self.row_counts),
        )

    def result(self) -> Any:
        results = {operand.name: self.arrays[operand.name] for operand in self.operation.outputs}
        return next(iter(results.values())) if len(results) == 1 else results


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
