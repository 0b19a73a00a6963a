"""Structures of a batch as users pass them, checked, as the C interface takes them."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import sizeof
from dataclasses import dataclass

import numpy as np

from . import _library as lib
from ._arguments import array_of
from ._library import ClebschError


@dataclass(frozen=True)
class Structures:
    """Contiguous arrays of a batch; keep it alive while a call reads them."""

    positions: np.ndarray  #: (atoms, 3) float64
    cells: np.ndarray | None  #: (structures, 3, 3) float64
    periodic: np.ndarray | None  #: (structures, 3) int32
    structure: np.ndarray | None  #: (atoms,) int64
    count: int

    @property
    def atoms(self) -> int:
        """Number of atoms of all structures."""
        return self.positions.shape[0]

    def options(self, cutoff: float = 0.0) -> lib.GraphOptions:
        """Points into the arrays of this object."""

        def address(array: np.ndarray | None) -> int | None:
            return None if array is None else array.ctypes.data

        return lib.GraphOptions(
            size=sizeof(lib.GraphOptions),
            positions=address(self.positions),
            atoms=self.atoms,
            cells=address(self.cells),
            periodic=address(self.periodic),
            structure=address(self.structure),
            structures=self.count,
            cutoff=cutoff,
        )


def structures_of(
    positions: np.ndarray,
    cell: np.ndarray | None,
    periodic: bool | Sequence[bool] | np.ndarray | None,
    structure: np.ndarray | None,
) -> Structures:
    """Raises ClebschError naming the array whose shape or type does not fit."""
    for name, numbers in (("positions", positions), ("cell", cell)):
        if numbers is not None and array_of(name, numbers).dtype.kind not in "fiu":
            raise ClebschError(f"{name}: expected real numbers, got {np.asarray(numbers).dtype.name}")
    if structure is not None:
        array_of("structure", structure)
    points = np.ascontiguousarray(positions, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3:
        raise ClebschError(f"positions: expected shape (atoms, 3), got {points.shape}")
    atoms = points.shape[0]
    batch = None if structure is None else np.ascontiguousarray(structure, dtype=np.int64)
    if batch is not None and (batch.shape != (atoms,) or (atoms and np.asarray(structure).dtype.kind not in "iu")):
        raise ClebschError(f"structure: expected {atoms} integers, got {np.asarray(structure).dtype.name} {batch.shape}")
    if batch is not None and atoms and np.asarray(structure).max() > np.iinfo(np.int64).max:
        raise ClebschError(f"structure: expected numbers below 2^63, got {np.asarray(structure).max()}")
    count = 1
    cells = flags = None
    if cell is not None:
        cells = np.ascontiguousarray(cell, dtype=np.float64).reshape(-1, 3, 3) if np.size(cell) % 9 == 0 else None
        if cells is None or np.asarray(cell).shape[-2:] != (3, 3):
            raise ClebschError(f"cell: expected shape (3, 3) or (structures, 3, 3), got {np.asarray(cell).shape}")
        count = cells.shape[0]
    if batch is not None and atoms:
        count = max(count, int(batch.max()) + 1)
    if cells is not None and cells.shape[0] != count:
        raise ClebschError(f"cell: expected {count} cells (from structure), got {cells.shape[0]}")
    if periodic is not None:
        flags_given = array_of("periodic", periodic)
        if flags_given.dtype.kind not in "biu" or not np.isin(flags_given, (0, 1)).all():
            raise ClebschError(f"periodic: expected True or False for each direction, got {periodic!r}")
        given = flags_given.astype(bool)
        if given.shape not in ((), (3,), (count, 3)):
            raise ClebschError(f"periodic: expected shape (3,) or ({count}, 3), got {given.shape}")
        flags = np.ascontiguousarray(np.broadcast_to(given, (count, 3)), dtype=np.int32)
    return Structures(points, cells, flags, batch, count)
