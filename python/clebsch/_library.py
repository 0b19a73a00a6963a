"""Loads libclebsch.so and gives its C functions types: the one place that knows ctypes signatures; the rest calls `call`."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import NoReturn

PACKAGE_VERSION = "0.1.0"


class ClebschError(ValueError):
    """Bad input, with the library's message: the operand, what was expected, what came."""


class MissingError(ClebschError, FileNotFoundError):
    """A file or library that is missing."""


class UnsupportedError(ClebschError, NotImplementedError):
    """Valid, but not on this machine or in this build."""


class OperandInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("segments", c_char_p),
        ("is_output", c_int),
        ("layout", c_int),
        ("row_size", c_int64),
        ("space", c_int),
    ]


class PlanOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("dtype", c_int),
        ("dtypes", POINTER(c_int)),
        ("dtype_count", c_size_t),
        ("instruction_set", c_char_p),
        ("kernel", c_char_p),
        ("device", c_char_p),
        ("deterministic", c_int),
        ("nan_if_unsorted", c_int),
    ]


class Buffer(Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int), ("rows", c_int64), ("row_stride", c_int64)]


class IndexBuffer(Structure):
    _fields_ = [("data", c_void_p), ("type", c_int), ("count", c_int64)]


class Call(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("buffers", POINTER(Buffer)),
        ("buffer_count", c_size_t),
        ("indices", POINTER(IndexBuffer)),
        ("index_count", c_size_t),
        ("rows", POINTER(c_int64)),
        ("space_count", c_size_t),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
        ("parallel", c_void_p),
    ]


class GraphOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("positions", c_void_p),
        ("atoms", c_int64),
        ("cells", c_void_p),
        ("periodic", c_void_p),
        ("structure", c_void_p),
        ("structures", c_int64),
        ("cutoff", c_double),
    ]


class PotentialOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("dtype", c_int),
        ("instruction_set", c_char_p),
        ("skin", c_double),
        ("table_tolerance", c_double),
        ("device", c_char_p),
        ("deterministic", c_int),
    ]


class PotentialResult(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("energy", c_void_p),
        ("atom_energy", c_void_p),
        ("forces", c_void_p),
        ("virial", c_void_p),
    ]


_names = POINTER(c_char_p)
_text = POINTER(c_void_p)
_handle = POINTER(c_void_p)

# name: argument types of the functions that return a status
_STATUS_FUNCTIONS: dict[str, list[object]] = {
    "clebsch_info": [_text],
    "clebsch_force_instruction_set": [c_char_p],
    "clebsch_set_num_threads": [c_int],
    "clebsch_irreps_parse": [c_char_p, _handle],
    "clebsch_irreps_text": [c_void_p, _text],
    "clebsch_irreps_block": [c_void_p, c_size_t, POINTER(c_int64), POINTER(c_int), POINTER(c_int)],
    "clebsch_irreps_sort": [c_void_p, _handle, POINTER(c_int)],
    "clebsch_irreps_simplify": [c_void_p, _handle],
    "clebsch_irreps_regroup": [c_void_p, _handle],
    "clebsch_irreps_repeat": [c_void_p, c_int64, _handle],
    "clebsch_irreps_filter": [c_void_p, c_void_p, c_void_p, c_int, _handle],
    "clebsch_irreps_product": [c_void_p, c_void_p, c_void_p, _handle],
    "clebsch_wigner_3j": [c_int, c_int, c_int, c_int, c_void_p],
    "clebsch_wigner_d": [c_int, c_int, c_void_p, c_void_p],
    "clebsch_rotation_from_angles": [c_double, c_double, c_double, c_void_p],
    "clebsch_rotation_from_quaternion": [c_void_p, c_void_p],
    "clebsch_operation_parse": [c_char_p, _handle],
    "clebsch_operation_build": [c_char_p, c_char_p, _handle],
    "clebsch_builders": [_text],
    "clebsch_operation_vjp": [c_void_p, _names, c_size_t, _handle],
    "clebsch_operation_in_order_of": [c_void_p, c_char_p, _handle],
    "clebsch_row_order_create": [c_char_p, POINTER(IndexBuffer), c_int64, _handle],
    "clebsch_row_order_indices": [c_void_p, POINTER(IndexBuffer), POINTER(IndexBuffer)],
    "clebsch_stream_synchronize": [c_char_p, c_void_p],
    "clebsch_add_kernel_folder": [c_char_p],
    "clebsch_operation_jvp": [c_void_p, _names, c_size_t, _handle],
    "clebsch_operation_text": [c_void_p, _text],
    "clebsch_operation_hash": [c_void_p, c_char_p],
    "clebsch_operation_operand": [c_void_p, c_size_t, POINTER(OperandInfo)],
    "clebsch_operation_index": [c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_int), POINTER(c_int), POINTER(c_int)],
    "clebsch_plan_prepare": [c_void_p, POINTER(PlanOptions), _handle],
    "clebsch_plan_explain": [c_void_p, c_double, c_double, _text],
    "clebsch_plan_workspace_size": [c_void_p, POINTER(c_int64), c_size_t, c_int, POINTER(c_size_t)],
    "clebsch_launch": [c_void_p, POINTER(Call)],
    "clebsch_launch_on_stream": [c_void_p, POINTER(Call), c_void_p],
    "clebsch_plan_index_error": [c_void_p, POINTER(c_int)],
    "clebsch_evaluate_reference": [c_void_p, POINTER(Call)],
    "clebsch_graph_build": [POINTER(GraphOptions), _handle],
    "clebsch_set_vesin_library": [c_char_p],
    "clebsch_potential_load": [c_char_p, POINTER(PotentialOptions), _handle],
    "clebsch_potential_explain": [c_void_p, _text],
    "clebsch_potential_evaluate": [c_void_p, POINTER(GraphOptions), c_void_p, POINTER(PotentialResult)],
}

_OTHER_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "clebsch_last_error": (c_char_p, []),
    "clebsch_version": (c_char_p, []),
    "clebsch_free": (None, [c_void_p]),
    "clebsch_irreps_destroy": (None, [c_void_p]),
    "clebsch_irreps_dim": (c_int64, [c_void_p]),
    "clebsch_irreps_count": (c_size_t, [c_void_p]),
    "clebsch_operation_destroy": (None, [c_void_p]),
    "clebsch_operation_operand_count": (c_size_t, [c_void_p]),
    "clebsch_operation_space_count": (c_size_t, [c_void_p]),
    "clebsch_operation_space": (c_char_p, [c_void_p, c_size_t]),
    "clebsch_operation_index_count": (c_size_t, [c_void_p]),
    "clebsch_plan_destroy": (None, [c_void_p]),
    "clebsch_graph_destroy": (None, [c_void_p]),
    "clebsch_row_order_destroy": (None, [c_void_p]),
    "clebsch_graph_edge_count": (c_int64, [c_void_p]),
    "clebsch_graph_node_count": (c_int64, [c_void_p]),
    "clebsch_graph_sender": (POINTER(c_int64), [c_void_p]),
    "clebsch_graph_receiver": (POINTER(c_int64), [c_void_p]),
    "clebsch_graph_offsets": (POINTER(c_int64), [c_void_p]),
    "clebsch_graph_transposed": (POINTER(c_int64), [c_void_p]),
    "clebsch_graph_vectors": (POINTER(c_double), [c_void_p]),
    "clebsch_graph_shifts": (POINTER(c_int32), [c_void_p]),
    "clebsch_graph_structure": (POINTER(c_int64), [c_void_p]),
    "clebsch_potential_destroy": (None, [c_void_p]),
    "clebsch_potential_cutoff": (c_double, [c_void_p]),
    "clebsch_potential_elements": (POINTER(c_int), [c_void_p, POINTER(c_size_t)]),
}

_ERRORS: dict[int, type[Exception]] = {
    3: MissingError,
    4: UnsupportedError,
    5: OSError,
    6: MemoryError,
    7: RuntimeError,
}


def _library_path() -> str:
    """CLEBSCH_LIBRARY, else the copy inside the package."""
    configured = os.environ.get("CLEBSCH_LIBRARY")
    if configured:
        return configured
    folder = os.path.dirname(os.path.realpath(__file__))  # pathlib would be a sixth of the time that importing takes
    for candidate in (os.path.join(folder, "lib", "libclebsch.so"), os.path.join(folder, "libclebsch.so")):
        if os.path.exists(candidate):
            return candidate
    raise ImportError(
        f"clebsch: libclebsch.so is not beside {folder} and CLEBSCH_LIBRARY is not set (pip install . builds and places it)"
    )


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def _load() -> ctypes.CDLL:
    """The library, its functions typed. ImportError with both versions when it is of another minor version or lacks a function."""
    path = _library_path()
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"clebsch: cannot load {path}: {error}") from error
    signatures = {name: (c_int, arguments) for name, arguments in _STATUS_FUNCTIONS.items()} | _OTHER_FUNCTIONS
    version = "unknown"
    try:
        for name in ["clebsch_version", *signatures]:
            function = getattr(loaded, name)
            function.restype, function.argtypes = signatures[name]
            if name == "clebsch_version":
                version = function().decode("utf-8", "replace")
                if _minor(version) != _minor(PACKAGE_VERSION):
                    raise ImportError(
                        f"clebsch: {path} is version {version}, this Python package {PACKAGE_VERSION}:"
                        " expected the same minor version"
                    )
    except AttributeError as error:
        raise ImportError(
            f"clebsch: {path} (version {version}) lacks a function of this Python package (version {PACKAGE_VERSION}): {error};"
            " is CLEBSCH_LIBRARY an older build?"
        ) from error
    return loaded


library = _load()


def _taking_addresses(name: str) -> Callable[..., int]:
    """A function whose pointers are given as numbers, for calls in which making ctypes objects would take longer than the rest."""
    function = library[name]  # a new object: attributes of the library are kept
    function.argtypes, function.restype = [c_void_p] * len(_STATUS_FUNCTIONS[name]), c_int
    return function


launch_at, launch_on_stream_at = _taking_addresses("clebsch_launch"), _taking_addresses("clebsch_launch_on_stream")


def call(name: str, *arguments: object) -> None:
    """Calls a function that returns a status; raises with the library's message when it is not OK."""
    status = getattr(library, name)(*arguments)
    if status:
        raise_for(status)


def raise_for(status: int) -> NoReturn:
    """Raises this thread's last error, which a function returned this status with."""
    message = (library.clebsch_last_error() or b"").decode("utf-8", "replace")
    raise _ERRORS.get(status, ClebschError)(message)


def call_text(name: str, *arguments: object) -> str:
    """Calls a function whose last argument is a `char**` and returns the text."""
    result = c_void_p()
    call(name, *arguments, byref(result))
    try:
        return ctypes.string_at(result).decode("utf-8")
    finally:
        library.clebsch_free(result)


def call_handle(name: str, *arguments: object) -> int:
    """Calls a function whose last argument is a handle's address and returns the handle."""
    result = c_void_p()
    call(name, *arguments, byref(result))
    assert result.value is not None
    return result.value


def encode(text: str, what: str) -> bytes:
    """UTF-8 without a zero inside."""
    if not isinstance(text, str):
        raise TypeError(f"{what}: expected str, got {type(text).__name__}")
    if "\0" in text:
        raise ClebschError(f"{what}: contains a zero character at position {text.index(chr(0))}")
    return text.encode()


_vesin_searched = False


def find_vesin() -> None:
    """Tells the library where this environment's vesin keeps libvesin.so, if it is installed (without importing it). Once."""
    global _vesin_searched
    if _vesin_searched:
        return
    _vesin_searched = True
    for folder in sys.path:
        for name in ("libvesin.so", "libvesin.dylib"):
            candidate = os.path.join(folder, "vesin", "lib", name)
            if os.path.exists(candidate):
                call("clebsch_set_vesin_library", os.fsencode(candidate))
                return
