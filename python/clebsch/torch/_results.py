"""Memory of large results on the CPU, which libclebsch_torch.so keeps for the next ones when they go."""

from __future__ import annotations

import ctypes

import torch

from .._library import ClebschError
from ._native import native

LARGE = 1 << 20  #: bytes, as ResultMemory::large: smaller results are PyTorch's allocator's
_DLPACK = {torch.float32: (2, 32), torch.float64: (2, 64), torch.float16: (2, 16), torch.bfloat16: (4, 16)}

_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.argtypes, _capsule.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object


def large_result(dtype: torch.dtype, rows: int, size: int) -> torch.Tensor:
    """Uninitialised, of shape (rows, size). Its memory is reused once no tensor has it any more."""
    assert native is not None
    made = native.clebsch_torch_result(*_DLPACK[dtype], rows, size)
    if not made:
        raise ClebschError(f"result of shape ({rows}, {size}): {native.clebsch_torch_result_error().decode()}")
    result: torch.Tensor = torch.from_dlpack(_capsule(made, b"dltensor", None))
    return result


def empty_cache() -> None:
    """Gives the memory back to the system that is kept for large results to come on the CPU (docs/pytorch.md). Thread safe."""
    if native is not None:
        native.clebsch_torch_empty_cache()
