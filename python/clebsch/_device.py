"""Arrays in a GPU's memory, of whatever library has them: by DLPack or the CUDA array interface (CuPy, PyTorch, JAX, Numba)."""

from __future__ import annotations

import ctypes
import sys
from contextlib import AbstractContextManager, nullcontext
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._library import ClebschError, call

_CUDA, _CUDA_MANAGED = 2, 13  # DLPack's kinds of devices
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}


class _DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int),
        ("device", c_int),
        ("ndim", c_int),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [py_object, c_char_p]
_capsule_pointer.restype = c_void_p


@dataclass
class DeviceArray:
    """Where an array's numbers are. `strides` in numbers; `owner` keeps them alive."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int
    writeable: bool = True
    owner: Any = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


def _packed(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _current_device(value: Any) -> AbstractContextManager[Any]:
    """PyTorch gives away only tensors of the current GPU."""
    return sys.modules["torch"].cuda.device(value.device) if _library_of(value) == "torch" else nullcontext()


def _from_dlpack(name: str, value: Any, stream: int) -> DeviceArray:
    try:
        with _current_device(value):
            capsule = value.__dlpack__(stream=stream or 1)  # 1: the default stream
    except (BufferError, RuntimeError, TypeError) as error:
        raise ClebschError(f"{name}: the array cannot be read in place: {error}") from error
    tensor = ctypes.cast(_capsule_pointer(capsule, b"dltensor"), POINTER(_DLTensor)).contents
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else _packed(shape)
    dtype = _KINDS.get(tensor.code, "?") + str(tensor.bits)
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, dtype, shape, strides, tensor.device, owner=(capsule, value))


def _from_cuda_interface(name: str, value: Any, device: int) -> DeviceArray:
    """Of an array that does not say which GPU has it: the plan's is believed. Work on the stream it names is waited for."""
    interface = value.__cuda_array_interface__
    stream = interface.get("stream")
    if stream == 0:
        raise ClebschError(f"{name}: expected a stream that the CUDA array interface allows, got 0")
    if stream is not None:
        call("clebsch_stream_synchronize", f"cuda:{device}".encode(), stream)
    dtype = np.dtype(interface["typestr"])
    if not dtype.isnative or interface.get("mask") is not None:
        raise ClebschError(f"{name}: expected an array without a mask in this machine's byte order, got {interface['typestr']}")
    shape = tuple(interface["shape"])
    given = interface.get("strides")
    strides = _packed(shape) if given is None else tuple(step // dtype.itemsize for step in given)
    address, read_only = interface["data"]
    return DeviceArray(address or 0, dtype.name, shape, strides, device, not read_only, owner=value)


def device_array(name: str, value: Any, device: int, stream: int) -> DeviceArray:
    """The array's place on GPU number `device`. Raises ClebschError for what is elsewhere or no array."""
    found: DeviceArray | None = None
    where = "on the host"
    if hasattr(value, "__dlpack_device__"):
        kind, number = value.__dlpack_device__()
        if int(kind) in (_CUDA, _CUDA_MANAGED):
            where = f"on cuda:{number}"
            found = _from_dlpack(name, value, stream) if number == device else None
    elif hasattr(value, "__cuda_array_interface__"):
        found = _from_cuda_interface(name, value, device)
    if found is None:
        raise ClebschError(f"{name}: expected an array on cuda:{device}, got {type(value).__name__} {where}")
    return found


def _library_of(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _usable(values: list[Any]) -> list[str]:
    """Libraries that can make arrays on a GPU: of these values first, else what the process has loaded."""
    used = [name for name in ("torch", "cupy") if any(_library_of(value) == name for value in values)]
    return used or [name for name in ("cupy", "torch") if name in sys.modules]


def current_stream(values: list[Any], device: int) -> int:
    """The stream that the values' library works on; the default stream where it has none."""
    used = [name for name in ("torch", "cupy") if any(_library_of(value) == name for value in values)]
    if "torch" in used:
        return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)
    if "cupy" in used:
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return 0


def stream_is_known(values: list[Any]) -> bool:
    """Whether the values' library works on `current_stream`, so that it waits for a launch there by itself."""
    return any(_library_of(value) in ("torch", "cupy") for value in values)


def empty(values: list[Any], shape: tuple[int, ...], dtype: str, device: int, what: str) -> Any:
    """A new array on the GPU, of the values' library."""
    usable = _usable(values)
    if "torch" in usable[:1]:
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=f"cuda:{device}")
    if usable:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            return cupy.empty(shape, dtype="uint16" if dtype == "bfloat16" else dtype)
    raise ClebschError(f"{what}: these arrays' library is not known to make others; import cupy or torch before")
