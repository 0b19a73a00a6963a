"""Pretrained potentials: energies, forces and stresses of atoms."""

from __future__ import annotations

import os
from collections.abc import Sequence
from ctypes import byref, c_size_t, sizeof
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _library as lib
from ._arguments import array_of, dtype_name, path_bytes, real_number
from ._library import ClebschError, call, call_handle, call_text, encode, find_vesin, library
from ._structures import structures_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


@dataclass(frozen=True)
class Prediction:
    """Of one structure, or of a batch (then with a leading axis of structures, except for what is per atom). eV and Angstrom."""

    energy: float | np.ndarray  #: sum over atoms, or (structures,)
    atom_energy: np.ndarray  #: (atoms,)
    forces: np.ndarray  #: (atoms, 3)
    virial: np.ndarray  #: (3, 3) or (structures, 3, 3): dE/d(symmetric strain)
    stress: np.ndarray  #: virial over volume, positive: tension; NaN where a structure is not periodic in three directions


class Potential:
    """A pretrained potential from a checkpoint file (Nequix .nqx), on NumPy arrays.

    dtype: "float32" or "float64", of the model's arithmetic; sums over atoms and edges are float64 always. One evaluation runs at a
    time; memory grows with the largest and is kept. Needs `pip install vesin`.
    skin: Angstrom, 0 to 20; neighbours this far beyond the cutoff are remembered from call to call of a single structure, so that
    atoms that move a little need no new search. It changes no bit of a result.
    table_tolerance: read radial networks from tables that differ from them by at most so much (relative; 1e-7 suits float32, 1e-12
    float64) instead of computing them, which is faster; None: compute them.
    device: "cpu", or "cuda", "cuda:1" for a GPU, where the last bits of results differ from call to call unless
    deterministic: every sum in one order there, which is slower. The processor's results are the same bits always.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        dtype: DTypeLike = "float32",
        instruction_set: str | None = None,
        skin: float = 0.0,
        table_tolerance: float | None = None,
        device: str = "cpu",
        deterministic: bool = False,
    ) -> None:
        self._handle: int | None = None
        kinds = {"float32": 0, "float64": 1}
        name = dtype_name("dtype", dtype, kinds, "float32 or float64")
        skin = real_number("skin", skin)
        if table_tolerance is not None:
            table_tolerance = real_number("table_tolerance", table_tolerance)
        if table_tolerance is not None and not 0 < table_tolerance < 1:
            raise ClebschError(f"table_tolerance: expected a number between 0 and 1, got {table_tolerance}")
        options = lib.PotentialOptions(
            size=sizeof(lib.PotentialOptions),
            dtype=kinds[name],
            instruction_set=None if instruction_set is None else encode(instruction_set, "instruction set"),
            skin=skin,
            table_tolerance=0.0 if table_tolerance is None else table_tolerance,
            device=encode(device, "device"),
            deterministic=int(deterministic),
        )
        self._handle = call_handle("clebsch_potential_load", path_bytes("path", path), byref(options))
        self.path = os.fspath(path)
        self.dtype = name
        self.skin = skin
        self.table_tolerance = table_tolerance
        self.device = device
        self.deterministic = deterministic
        self._instruction_set = instruction_set
        count = c_size_t()
        elements = library.clebsch_potential_elements(self._handle, byref(count))
        self.elements: tuple[int, ...] = tuple(elements[: count.value])  #: atomic numbers the model knows
        self.cutoff: float = library.clebsch_potential_cutoff(self._handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            library.clebsch_potential_destroy(self._handle)

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy reads the file again
        options = (self.dtype, self._instruction_set, self.skin, self.table_tolerance, self.device, self.deterministic)
        return Potential, (self.path, *options)

    def __repr__(self) -> str:
        return f"Potential({self.path!r}, dtype={self.dtype!r})"

    def explain(self) -> str:
        """The steps that run for energies and forces, and the memory they need."""
        return call_text("clebsch_potential_explain", self._handle)

    def __call__(
        self,
        numbers: Sequence[int] | np.ndarray,
        positions: np.ndarray,
        cell: np.ndarray | None = None,
        periodic: bool | Sequence[bool] | np.ndarray | None = None,
        structure: np.ndarray | None = None,
    ) -> Prediction:
        """Energies and derivatives of one structure, or of a batch if `structure` is given.

        numbers: (atoms,) atomic numbers. The others are as in `neighbor_graph`: positions (atoms, 3); cell (3, 3), rows are lattice
        vectors, or (structures, 3, 3), None: open; periodic: flags (3,) or (structures, 3), default all where there is a cell;
        structure: (atoms,) number of each atom's structure, non-decreasing from 0.
        """
        find_vesin()
        batch = structures_of(positions, cell, periodic, structure)
        species = array_of("numbers", numbers)
        if species.shape != (batch.atoms,) or (batch.atoms and species.dtype.kind not in "iu"):
            raise ClebschError(f"numbers: expected {batch.atoms} integers, got {species.dtype.name} {species.shape}")
        outside = np.flatnonzero((species < 0) | (species > np.iinfo(np.intc).max))
        if outside.size:
            raise ClebschError(f"numbers: expected an atomic number of atom {outside[0]}, got {species[outside[0]]}")
        species = np.ascontiguousarray(species, dtype=np.intc)
        energy = np.zeros(batch.count)
        atom_energy = np.zeros(batch.atoms)
        forces = np.zeros((batch.atoms, 3))
        virial = np.zeros((batch.count, 3, 3))
        result = lib.PotentialResult(
            sizeof(lib.PotentialResult), energy.ctypes.data, atom_energy.ctypes.data, forces.ctypes.data, virial.ctypes.data
        )
        options = batch.options()
        call("clebsch_potential_evaluate", self._handle, byref(options), species.ctypes.data, byref(result))

        stress = np.full_like(virial, np.nan)
        if batch.cells is not None:
            closed = np.ones(batch.count, dtype=bool) if batch.periodic is None else batch.periodic.all(axis=1)
            volume = np.abs(np.linalg.det(batch.cells[closed]))
            stress[closed] = virial[closed] / volume[:, None, None]
        if structure is None and (cell is None or np.ndim(cell) == 2):
            return Prediction(float(energy[0]), atom_energy, forces, virial[0], stress[0])
        return Prediction(energy, atom_energy, forces, virial, stress)
