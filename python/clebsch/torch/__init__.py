"""Clebsch in PyTorch: operations as functions of tensors and modules with e3nn's arguments and weight order.

Differentiable to any order; whole under `torch.compile(fullgraph=True)`.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401 - only to say what is missing
except ImportError as error:
    raise ImportError("clebsch.torch needs PyTorch 2.4 or newer: pip install torch") from error

from ._accelerate import Acceleration, accelerate
from ._launch import check_indices
from ._results import empty_cache
from .edge_frame import Rotate, SO2Linear, WignerMatrices, edge_rotations
from .modules import (
    Convolution,
    ElementwiseTensorProduct,
    FullTensorProduct,
    FullyConnectedTensorProduct,
    Linear,
    Operation,
    SphericalHarmonics,
    SymmetricContraction,
    TensorProduct,
)

__all__ = [
    "Acceleration",
    "Convolution",
    "ElementwiseTensorProduct",
    "FullTensorProduct",
    "FullyConnectedTensorProduct",
    "Linear",
    "Operation",
    "Rotate",
    "SO2Linear",
    "SphericalHarmonics",
    "SymmetricContraction",
    "TensorProduct",
    "WignerMatrices",
    "accelerate",
    "check_indices",
    "edge_rotations",
    "empty_cache",
]
