"""Spherical harmonics of arrays, for those who need nothing else of an operation."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ._library import ClebschError
from .irreps import Irreps
from .operation import Operation, build


@cache
def _operation(irreps: str, normalize: bool, normalization: str) -> Operation:
    return build("spherical_harmonics", irreps=irreps, normalize=normalize, normalization=normalization)


def spherical_harmonics(irreps_out: Any, vectors: Any, normalize: bool, normalization: str = "component") -> np.ndarray:
    """Harmonics of vectors (..., 3), shape (..., irreps_out.dim), float32 or float64 as they are. `irreps_out` such as "0e+1o+2e";
    `normalize`: of the vectors' directions; `normalization`: "component", "norm" or "integral" (docs/conventions.md).

    Derivatives: `clebsch.build("spherical_harmonics", ...).vjp("vector")`."""
    array = np.asarray(vectors)
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    if array.ndim == 0 or array.shape[-1] != 3:
        raise ClebschError(f"vectors: expected a last dimension of 3, got shape {array.shape}")
    irreps = irreps_out if isinstance(irreps_out, Irreps) else Irreps(irreps_out)
    operation = _operation(str(irreps), bool(normalize), normalization)
    result = operation(vector=array.reshape(-1, 3))
    return result.reshape(*array.shape[:-1], irreps.dim)
