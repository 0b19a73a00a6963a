"""cuEquivariance's PyTorch modules by one import: `from clebsch.compat import cuequivariance_torch as cuet`.

Descriptors and irreps are those of the `cuequivariance` package, which must be there; `cuequivariance_torch` and its CUDA packages
need not. What is not here comes from `cuequivariance_torch` where it is installed.
"""

from __future__ import annotations

from typing import Any

try:
    import cuequivariance as _cue  # noqa: F401 - only to say what is missing
except ImportError as error:
    raise ImportError(
        "clebsch.compat.cuequivariance_torch needs cuEquivariance's descriptors: pip install cuequivariance"
    ) from error

from ._modules import ChannelWiseTensorProduct, FullyConnectedTensorProduct, Linear, SphericalHarmonics, SymmetricContraction
from ._segmented import SegmentedPolynomial

__all__ = [
    "ChannelWiseTensorProduct",
    "FullyConnectedTensorProduct",
    "Linear",
    "SegmentedPolynomial",
    "SphericalHarmonics",
    "SymmetricContraction",
]


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        try:
            import cuequivariance_torch as theirs
        except ImportError:
            message = f"{name} is not part of clebsch.compat.cuequivariance_torch; with cuequivariance_torch it comes from there"
            raise AttributeError(message) from None
        return getattr(theirs, name)
    raise AttributeError(name)
