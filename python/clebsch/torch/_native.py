"""libclebsch_torch.so, from PyTorch 2.10 on: the operator without Python, and calls past PyTorch's dispatcher."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_char_p, c_int, c_int64, c_uint64, c_void_p
from pathlib import Path

from .._library import library


def _loaded() -> ctypes.CDLL | None:
    """It lies beside libclebsch.so or where CLEBSCH_TORCH_LIBRARY says (empty: nowhere), and registers the operator."""
    path = os.environ.get("CLEBSCH_TORCH_LIBRARY", str(Path(library._name).parent / "libclebsch_torch.so"))
    if not path or not os.path.exists(path):
        return None
    found = ctypes.CDLL(path)
    found.clebsch_torch_trouble.argtypes, found.clebsch_torch_trouble.restype = [], c_char_p
    if found.clebsch_torch_trouble() is not None:
        return None
    found.clebsch_torch_direct.argtypes, found.clebsch_torch_direct.restype = [c_void_p, c_void_p, c_int, c_int], c_void_p
    found.clebsch_torch_direct_destroy.argtypes, found.clebsch_torch_direct_destroy.restype = [c_void_p], None
    found.clebsch_torch_direct_call.argtypes, found.clebsch_torch_direct_call.restype = [c_void_p, c_void_p], c_int
    found.clebsch_torch_result.argtypes, found.clebsch_torch_result.restype = [c_int, c_int, c_int64, c_int64], c_void_p
    found.clebsch_torch_result_error.argtypes, found.clebsch_torch_result_error.restype = [], c_char_p
    found.clebsch_torch_empty_cache.argtypes, found.clebsch_torch_empty_cache.restype = [], None
    found.clebsch_torch_kept_bytes.argtypes, found.clebsch_torch_kept_bytes.restype = [], c_uint64
    return found


native = _loaded()
