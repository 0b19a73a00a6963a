"""The arrays of one call, checked against an operation and laid out for the library: NumPy's, or those in a GPU's memory."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from ctypes import byref, c_int, c_int64, sizeof
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _device
from . import _library as lib
from ._arguments import array_of
from ._library import ClebschError, call

if TYPE_CHECKING:
    from .operation import Operand, Operation

#: NumPy dtypes and the library's numbers for them. bfloat16 arrays are passed as uint16 views with dtype="bfloat16".
DTYPES = {"float32": 0, "float64": 1, "bfloat16": 2, "float16": 3}
_STORAGE = {"float32": np.float32, "float64": np.float64, "bfloat16": np.uint16, "float16": np.float16}


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """At a multiple of 64 bytes, which NumPy gives by chance alone: vectors then lie within cache lines."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + size].view(dtype).reshape(shape)


def row_count(space: str, count: object) -> int:
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


class CallData:
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
        sizes: dict[str, tuple[int, str]] = {space: (row_count(space, count), "rows") for space, count in (rows or {}).items()}
        for space in sizes:
            if space not in operation.spaces:
                raise ClebschError(f"rows: no space {space!r}; there are {', '.join(operation.spaces)}")

        def learn(space: str, count: int, source: str) -> None:
            if space in sizes and sizes[space][0] != count:
                before, origin = sizes[space]
                raise ClebschError(f"{source}: expected {before} rows of space {space!r} (from {origin}), got {count}")
            sizes.setdefault(space, (count, source))

        self.arrays: dict[str, Any] = {}
        self._copies: list[tuple[np.ndarray, np.ndarray]] = []  # (copy, what the caller gave)
        for index in operation.indices:
            self._keep_index(index.name, self._take(arrays, index.name, "index"))
            learn(index.source, self.arrays[index.name].shape[0], index.name)
        for operand, dtype in zip(operation.operands, dtypes, strict=True):
            if operand.is_output and operand.name not in out:
                continue
            array = self._take(out if operand.is_output else arrays, operand.name, "operand")
            if operand.is_output:
                self._check_output(operand.name, array, out[operand.name])
            self._check_dtype(operand.name, array, dtype)
            if operand.space is None and array.shape == (operand.row_size,):
                array = self._as_row(array)
            if len(array.shape) != 2 or array.shape[1] != operand.row_size or (operand.space is None and array.shape[0] != 1):
                where = operand.space or "1"
                raise ClebschError(
                    f"{operand.name}: expected shape ({where}, {operand.row_size}) for {operand.segments}, got {array.shape}"
                )
            self._keep_operand(operand, array)
            if operand.space is not None:
                learn(operand.space, array.shape[0], operand.name)
        for space in operation.spaces:
            if space not in sizes:
                raise ClebschError(f"rows: the number of rows of space {space!r} follows from no input; give rows={{{space!r}: n}}")
        self.rows = {space: sizes[space][0] for space in operation.spaces}
        for operand, dtype in zip(operation.operands, dtypes, strict=True):
            if operand.name not in self.arrays:
                count = 1 if operand.space is None else self.rows[operand.space]
                self._make(operand, count, dtype)
        self._lay_out(dtypes)

    def _keep_index(self, name: str, given: Any) -> None:
        self._keep(name, _index_array(name, given), given)

    def _check_output(self, name: str, array: Any, given: Any) -> None:
        if array is not given:
            raise ClebschError(f"{name}: out must be a NumPy array, got {type(given).__name__}")

    def _check_dtype(self, name: str, array: Any, dtype: str) -> None:
        if array.dtype != _STORAGE[dtype]:
            order = "" if array.dtype.isnative else " of the other byte order"
            raise ClebschError(f"{name}: expected dtype {dtype}, got {array.dtype.name}{order}")

    def _as_row(self, array: Any) -> Any:
        return array[None]

    def _keep_operand(self, operand: Operand, array: Any) -> None:
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

    def _make(self, operand: Operand, count: int, dtype: str) -> None:
        self.arrays[operand.name] = aligned_empty((count, operand.row_size), _STORAGE[dtype])

    def _address(self, array: Any) -> int:
        return int(array.ctypes.data)

    def _row_stride(self, array: Any) -> int:
        return int(array.strides[0] // array.itemsize)

    def workspace(self, size: int) -> Any:
        """Scratch of so many bytes, put into the call."""
        workspace = aligned_empty((size,), np.uint8)
        self.call.workspace = workspace.ctypes.data
        self.call.workspace_bytes = size
        return workspace

    def launch(self, handle: int, call_struct: Any) -> None:
        """Runs the plan."""
        self.refresh()
        call("clebsch_launch", handle, call_struct)

    def _keep(self, name: str, passed: np.ndarray, given: np.ndarray) -> None:
        self.arrays[name] = passed
        if passed is not given:
            self._copies.append((passed, given))

    def refresh(self) -> None:
        """Copies again what the library cannot read in place: the caller may have changed it since."""
        for copy, given in self._copies:
            np.copyto(copy, given, casting="unsafe")

    def _take(self, arrays: Mapping[str, Any], name: str, what: str) -> Any:
        if name not in arrays:
            raise ClebschError(f"{what} {name!r} is missing; given: {', '.join(sorted(arrays)) or 'none'}")
        return self._array(name, arrays[name])

    def _array(self, name: str, value: Any) -> Any:
        return array_of(name, value)

    def _lay_out(self, dtypes: tuple[str, ...]) -> None:
        operation = self.operation
        self.buffers = (lib.Buffer * len(operation.operands))()
        for buffer, operand, dtype in zip(self.buffers, operation.operands, dtypes, strict=True):
            array = self.arrays[operand.name]
            stride = self._row_stride(array) if array.shape[0] > 1 and array.size else 0
            buffer.data, buffer.dtype, buffer.rows, buffer.row_stride = (
                self._address(array),
                DTYPES[dtype],
                array.shape[0],
                stride,
            )
        self.indices = (lib.IndexBuffer * len(operation.indices))()
        for buffer, index in zip(self.indices, operation.indices, strict=True):
            array = self.arrays[index.name]
            buffer.data, buffer.type, buffer.count = self._address(array), int(array.dtype == "int64"), array.shape[0]
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

    def _result_array(self, name: str) -> Any:
        return self.arrays[name]

    def result(self) -> Any:
        results = {operand.name: self._result_array(operand.name) for operand in self.operation.outputs}
        return next(iter(results.values())) if len(results) == 1 else results


class DeviceCallData(CallData):
    """The same for arrays in a GPU's memory, which are used where they are."""

    def __init__(
        self,
        operation: Operation,
        dtypes: tuple[str, ...],
        rows: Mapping[str, int] | None,
        arrays: Mapping[str, Any],
        out: Mapping[str, Any] | None,
        device: int,
    ) -> None:
        self._device = device
        self._values = [*arrays.values(), *(out.values() if isinstance(out, Mapping) else ())]
        self._stream = _device.current_stream(self._values, device)
        self._made: dict[str, Any] = dict(out) if isinstance(out, Mapping) else {}
        super().__init__(operation, dtypes, rows, arrays, out)

    def _array(self, name: str, value: Any) -> _device.DeviceArray:
        return _device.device_array(name, value, self._device, self._stream)

    def _keep_index(self, name: str, given: _device.DeviceArray) -> None:
        if given.dtype not in ("int32", "int64") or len(given.shape) != 1:
            raise ClebschError(f"{name}: expected a 1-D array of int32 or int64, got {given.dtype} {given.shape}")
        if given.shape[0] > 1 and given.strides[0] != 1:
            raise ClebschError(f"{name}: expected a contiguous array, got strides {given.strides}")
        self.arrays[name] = given

    def _check_output(self, name: str, array: _device.DeviceArray, given: Any) -> None:
        if not array.writeable:
            raise ClebschError(f"{name}: out is read-only")

    def _check_dtype(self, name: str, array: _device.DeviceArray, dtype: str) -> None:
        if array.dtype != dtype and (dtype, array.dtype) != ("bfloat16", "uint16"):
            raise ClebschError(f"{name}: expected dtype {dtype}, got {array.dtype}")

    def _as_row(self, array: _device.DeviceArray) -> _device.DeviceArray:
        return replace(array, shape=(1, *array.shape), strides=(0, *array.strides))

    def _keep_operand(self, operand: Operand, array: _device.DeviceArray) -> None:
        (rows, columns), (row_stride, stride) = array.shape, array.strides
        if array.size and ((columns > 1 and stride != 1) or (rows > 1 and row_stride < columns)):
            raise ClebschError(f"{operand.name}: expected contiguous rows that do not overlap, got strides {array.strides}")
        self.arrays[operand.name] = array

    def _make(self, operand: Operand, count: int, dtype: str) -> None:
        made = _device.empty(self._values, (count, operand.row_size), dtype, self._device, operand.name)
        self._made[operand.name] = made
        self.arrays[operand.name] = self._array(operand.name, made)

    def _address(self, array: _device.DeviceArray) -> int:
        return array.address

    def _row_stride(self, array: _device.DeviceArray) -> int:
        return array.strides[0]

    def _result_array(self, name: str) -> Any:
        return self._made[name]

    def workspace(self, size: int) -> Any:
        if size == 0:
            return None
        made = _device.empty(self._values, (size,), "uint8", self._device, "workspace")
        self.call.workspace = self._array("workspace", made).address
        self.call.workspace_bytes = size
        return made

    def launch(self, handle: int, call_struct: Any) -> None:
        stream = _device.current_stream(self._values, self._device)
        call("clebsch_launch_on_stream", handle, call_struct, stream or None)
        if _device.stream_is_known(self._values):
            return
        # JAX's and Numba's arrays: their libraries know nothing of this launch and could use the memory for something else.
        found = c_int()
        call("clebsch_plan_index_error", handle, byref(found))
        if found.value:
            raise ClebschError(
                "an index: expected -1 or a row of its space, ascending where it is declared sorted, got something else"
            )
