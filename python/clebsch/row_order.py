"""Rows in the order of an index that is not sorted, found once for any number of calls."""

from __future__ import annotations

import weakref
from ctypes import byref, c_int64
from typing import Any

import numpy as np

from . import _device
from ._arguments import array_of
from ._library import ClebschError, IndexBuffer, call, call_handle, encode, library

__all__ = ["RowOrder"]


class _Handle:
    """The library's order: it goes with the last that refers to it, an order or its arrays."""

    def __init__(self, value: Any) -> None:
        self.value = value
        weakref.finalize(self, library.clebsch_row_order_destroy, value)


class _DeviceIndex:
    """Integers in a GPU's memory that belong to an order, as the CUDA array interface gives them."""

    def __init__(self, owner: _Handle, address: int, count: int) -> None:
        self._owner = owner  # keeps the memory
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (count,),
            "typestr": "<i8",
            "data": (address, False),
            "strides": None,
            "stream": None,  # found, and waited for
        }


class RowOrder:
    """Where rows are in the order of where `index` leads, for an operation in that order (`Operation.in_order_of`).

    index: (rows,) integers, -1 or below `target_rows`; with `device` "cuda" or "cuda:1" in that GPU's memory. Other values raise
    ClebschError.
    """

    order: Any  #: (rows,) int64: which row is at each place; equal ones as they come
    sorted: Any  #: (rows,) int64: where it leads, not decreasing; masked rows (-1) last

    def __init__(self, index: Any, target_rows: int, device: str = "cpu") -> None:
        kind, _, place = device.partition(":")
        if device != "cpu" and (kind != "cuda" or not (place or "0").isdecimal()):
            raise ClebschError(f'device: expected "cpu", "cuda" or "cuda:NUMBER", got {device!r}')
        if not isinstance(target_rows, (int, np.integer)):
            raise ClebschError(f"target_rows: expected an integer, got {target_rows!r}")
        if device == "cpu":
            array = np.ascontiguousarray(array_of("index", index))
            if array.ndim != 1 or array.dtype.name not in ("int32", "int64"):
                raise ClebschError(f"index: expected a 1-D array of int32 or int64, got {array.dtype.name} {array.shape}")
            given = IndexBuffer(array.ctypes.data, int(array.dtype.name == "int64"), array.shape[0])
        else:
            number = int(place or 0)
            stream = _device.current_stream([index], number)
            found = _device.device_array("index", index, number, stream)
            if found.dtype not in ("int32", "int64") or len(found.shape) != 1 or (found.size > 1 and found.strides[0] != 1):
                raise ClebschError(f"index: expected a contiguous 1-D array of int32 or int64, got {found.dtype} {found.shape}")
            call("clebsch_stream_synchronize", encode(device, "device"), stream or None)
            given = IndexBuffer(found.address, int(found.dtype == "int64"), found.shape[0])
        self._handle = _Handle(call_handle("clebsch_row_order_create", encode(device, "device"), byref(given), target_rows))
        rows, targets = IndexBuffer(), IndexBuffer()
        call("clebsch_row_order_indices", self._handle.value, byref(rows), byref(targets))
        self.order, self.sorted = (self._array(buffer, device) for buffer in (rows, targets))

    def _array(self, buffer: IndexBuffer, device: str) -> Any:
        if device != "cpu":
            return _DeviceIndex(self._handle, buffer.data or 0, buffer.count)
        if buffer.count == 0:
            return np.zeros(0, dtype=np.int64)
        return np.array((c_int64 * buffer.count).from_address(buffer.data))
