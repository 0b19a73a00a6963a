"""Clebsch in JAX: operations as pure functions of arrays, on the CPU and on NVIDIA GPUs.

Objects here hold a description and no weights: calling one is a pure function, for jit, grad, jvp, vjp, hessian, vmap and
shard_map.
"""

from __future__ import annotations

try:
    import jax as _jax  # noqa: F401 - only to say what is missing
except ImportError as error:
    raise ImportError("clebsch.jax needs JAX 0.7 or newer: pip install jax") from error

from ._functions import (
    Convolution,
    ElementwiseTensorProduct,
    FullTensorProduct,
    FullyConnectedTensorProduct,
    Linear,
    Operation,
    SphericalHarmonics,
    SymmetricContraction,
    TensorProduct,
    spherical_harmonics,
)

__all__ = [
    "Convolution",
    "ElementwiseTensorProduct",
    "FullTensorProduct",
    "FullyConnectedTensorProduct",
    "Linear",
    "Operation",
    "SphericalHarmonics",
    "SymmetricContraction",
    "TensorProduct",
    "spherical_harmonics",
]
