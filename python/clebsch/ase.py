"""An ASE calculator: `atoms.calc = clebsch.ase.Calculator("nequix-mp-1.nqx")`. Needs `pip install ase vesin`."""

from __future__ import annotations

import os
from typing import Any

from ase.calculators.calculator import Calculator as AseCalculator
from ase.calculators.calculator import all_changes
from ase.stress import full_3x3_to_voigt_6_stress

from .potential import Potential


class Calculator(AseCalculator):
    """Energies (eV), forces (eV/A) and stress (eV/A^3, ASE's sign and order) of a pretrained potential.

    potential: a `clebsch.Potential`, or the path of a checkpoint, then run in `dtype`: float64 for phonons by finite
    differences and tight relaxations, float32 (faster) otherwise. Stress exists for structures periodic in three directions.
    skin: Angstrom, of the neighbour list that is kept while atoms move little; it changes no result.
    table_tolerance, device, deterministic: as of `clebsch.Potential`.
    """

    implemented_properties = ["energy", "free_energy", "energies", "forces", "stress"]

    def __init__(
        self,
        potential: Potential | str | os.PathLike[str],
        dtype: str = "float32",
        skin: float = 0.5,
        table_tolerance: float | None = None,
        device: str = "cpu",
        deterministic: bool = False,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        if not isinstance(potential, Potential):
            potential = Potential(
                potential,
                dtype=dtype,
                skin=skin,
                table_tolerance=table_tolerance,
                device=device,
                deterministic=deterministic,
            )
        self.potential = potential

    def calculate(self, atoms: Any = None, properties: Any = None, system_changes: Any = all_changes) -> None:
        """Called by ASE when something changed; computes everything at once."""
        super().calculate(atoms, properties, system_changes)
        closed = bool(self.atoms.pbc.all())
        prediction = self.potential(
            self.atoms.numbers,
            self.atoms.positions,
            cell=self.atoms.cell.array if self.atoms.pbc.any() else None,
            periodic=self.atoms.pbc if self.atoms.pbc.any() else None,
        )
        self.results = {
            "energy": prediction.energy,
            "free_energy": prediction.energy,
            "energies": prediction.atom_energy,
            "forces": prediction.forces,
        }
        if closed:
            self.results["stress"] = full_3x3_to_voigt_6_stress(prediction.stress)
