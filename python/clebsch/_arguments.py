"""What every function asks of its arguments: arrays without masks, dtypes by any of NumPy's names."""

from __future__ import annotations

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
    return np.asarray(value)


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
