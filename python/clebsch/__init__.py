"""Clebsch: E(3)-equivariant operations, described once, derived symbolically, run fast. NumPy front door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._harmonics import spherical_harmonics
from ._library import ClebschError, MissingError, UnsupportedError, call, call_text, encode, library
from ._threads import set_num_threads
from .irreps import Block, Irrep, Irreps, rotation_from_angles, rotation_from_quaternion, wigner_3j, wigner_d
from .operation import Index, Operand, Operation, Plan, build, builders

if TYPE_CHECKING:  # at run time __getattr__ imports them
    from ._verify import verify
    from .graph import Graph, neighbor_graph
    from .potential import Potential, Prediction
    from .row_order import RowOrder

__version__: str = library.clebsch_version().decode()

__all__ = [
    "Block",
    "ClebschError",
    "Graph",
    "Index",
    "Irrep",
    "Irreps",
    "MissingError",
    "Operand",
    "Operation",
    "Plan",
    "Potential",
    "Prediction",
    "RowOrder",
    "UnsupportedError",
    "add_kernel_folder",
    "build",
    "builders",
    "force_instruction_set",
    "info",
    "neighbor_graph",
    "rotation_from_angles",
    "rotation_from_quaternion",
    "set_num_threads",
    "spherical_harmonics",
    "verify",
    "wigner_3j",
    "wigner_d",
]


def info() -> dict[str, Any]:
    """Processor, instruction sets, threads, libraries found or not and why."""
    import json

    return json.loads(call_text("clebsch_info"))


def force_instruction_set(name: str) -> None:
    """Instruction set of plans prepared from now on: "baseline", "avx2", "avx512", "neon" or "" for the best available."""
    call("clebsch_force_instruction_set", encode(name, "instruction set"))


def add_kernel_folder(path: str) -> None:
    """A folder of GPU kernels made by `clebsch prebuild`, where plans prepared from now on look before they compile."""
    call("clebsch_add_kernel_folder", encode(path, "kernel folder"))


def __getattr__(name: str) -> Any:
    """Graphs, potentials and `verify` are imported when first used, to keep `import clebsch` quick."""
    if name in ("Graph", "neighbor_graph"):
        from . import graph

        return getattr(graph, name)
    if name in ("ase", "torch"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    if name in ("Potential", "Prediction"):
        from . import potential

        return getattr(potential, name)
    if name == "RowOrder":
        from .row_order import RowOrder

        return RowOrder
    if name == "verify":
        from ._verify import verify

        return verify
    raise AttributeError(f"module 'clebsch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "ase", "compat", "jax", "torch"]
