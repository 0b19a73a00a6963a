"""What every function asks of its arguments: arrays without masks, dtypes by any of NumPy's names."""

from __future__ import annotations

import os
from collections.abc import Container
from typing import Any

import numpy as np

from ._library import ClebschError


def array_of(name: str, value: Any) -> np.ndarray:
    """The value as an array. A mask would be lost without a word: masked arrays are refused."""
    if isinstance(value, np.ma.MaskedArray):
        raise ClebschError(
            f"{name}: expected an array without a mask, got a masked array (fill it, or leave rows out by -1 in an index)"
        )
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):  # another library's, which NumPy would take for an object
        try:
            return np.from_dlpack(value)
        except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
            raise ClebschError(
                f"{name}: expected an array in the host's memory that NumPy reads, got a {type(value).__name__}: {error}"
            ) from None
    try:
        return np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise ClebschError(f"{name}: expected an array, got a {type(value).__name__}: {error}") from None


def real_number(name: str, value: Any) -> float:
    """The number as a float; text is no number."""
    try:
        if isinstance(value, (str, bytes, complex, np.complexfloating)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ClebschError(f"{name}: expected a number, got {value!r}") from None


def path_bytes(name: str, value: Any) -> bytes:
    """The path of a file as the system takes it."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise ClebschError(f"{name}: expected a path, got {value!r}")
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ClebschError(f"{name}: contains a zero character at position {encoded.index(0)}")
    return encoded


def dtype_name(name: str, value: Any, choices: Container[str], text: str) -> str:
    """The dtype's name, one of `choices` (described by `text`): from text, a NumPy dtype or a scalar type."""
    found: str | None = None
    if isinstance(value, str):
        found = value
    elif isinstance(value, (type, np.dtype)):
        try:
            found = np.dtype(value).name
        except TypeError:
            found = None
    if found is None or found not in choices:
        raise ClebschError(f"{name}: expected {text}, got {value!r}")
    return found
