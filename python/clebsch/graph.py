"""Neighbour lists as receiver-sorted graphs."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, sizeof
from dataclasses import dataclass

import numpy as np

from . import _library as lib
from ._library import ClebschError, call_handle, library

_vesin_searched = False


@dataclass(frozen=True)
class Graph:
    """Edges from sender j to receiver i, sorted by receiver, with vectors x_j - x_i + shift . cell in the positions' unit."""

    nodes: int
    sender: np.ndarray  #: (edges,) int64
    receiver: np.ndarray  #: (edges,) int64, non-decreasing
    offsets: np.ndarray  #: (nodes + 1,) int64, first edge of each receiver
    transposed: np.ndarray  #: (edges,) int64, edges ordered by sender
    vectors: np.ndarray  #: (edges, 3) float64
    shifts: np.ndarray  #: (edges, 3) int32, in lattice vectors
    structure: np.ndarray  #: (nodes,) int64

    @property
    def edges(self) -> int:
        """Number of edges."""
        return len(self.sender)


def neighbor_graph(
    positions: np.ndarray,
    cutoff: float,
    cell: np.ndarray | None = None,
    periodic: bool | Sequence[bool] | np.ndarray | None = None,
    structure: np.ndarray | None = None,
) -> Graph:
    """Graph of all pairs closer than `cutoff`.

    positions: (atoms, 3). cell: (3, 3) rows are lattice vectors, or (structures, 3, 3); None: open. periodic: flags (3,) or
    (structures, 3), default all. structure: (atoms,) number of each atom's structure, non-decreasing from 0.
    Needs `pip install vesin`.
    """
    global _vesin_searched
    if not _vesin_searched:
        lib.find_vesin()
        _vesin_searched = True
    points = np.ascontiguousarray(positions, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3:
        raise ClebschError(f"positions: expected shape (atoms, 3), got {points.shape}")
    atoms = points.shape[0]
    batch = None if structure is None else np.ascontiguousarray(structure, dtype=np.int64)
    if batch is not None and (batch.shape != (atoms,) or (atoms and np.asarray(structure).dtype.kind not in "iu")):
        raise ClebschError(f"structure: expected {atoms} integers, got {np.asarray(structure).dtype.name} {batch.shape}")
    structures = 1
    cells = flags = None
    if cell is not None:
        cells = np.ascontiguousarray(cell, dtype=np.float64).reshape(-1, 3, 3) if np.size(cell) % 9 == 0 else None
        if cells is None or np.asarray(cell).shape[-2:] != (3, 3):
            raise ClebschError(f"cell: expected shape (3, 3) or (structures, 3, 3), got {np.asarray(cell).shape}")
        structures = cells.shape[0]
    if batch is not None and atoms:
        structures = max(structures, int(batch.max()) + 1)
    if cells is not None and cells.shape[0] != structures:
        raise ClebschError(f"cell: expected {structures} cells (from structure), got {cells.shape[0]}")
    if periodic is not None:
        given = np.asarray(periodic, dtype=bool)
        if given.shape not in ((), (3,), (structures, 3)):
            raise ClebschError(f"periodic: expected shape (3,) or ({structures}, 3), got {given.shape}")
        flags = np.ascontiguousarray(np.broadcast_to(given, (structures, 3)), dtype=np.int32)
    options = lib.GraphOptions(
        size=sizeof(lib.GraphOptions),
        positions=points.ctypes.data,
        atoms=atoms,
        cells=None if cells is None else cells.ctypes.data,
        periodic=None if flags is None else flags.ctypes.data,
        structure=None if batch is None else batch.ctypes.data,
        structures=structures,
        cutoff=float(cutoff),
    )
    handle = call_handle("clebsch_graph_build", byref(options))
    try:
        edges = library.clebsch_graph_edge_count(handle)
        nodes = library.clebsch_graph_node_count(handle)

        def array(name: str, shape: tuple[int, ...], dtype: type) -> np.ndarray:
            if 0 in shape:
                return np.zeros(shape, dtype=dtype)
            pointer = getattr(library, f"clebsch_graph_{name}")(handle)
            return np.ctypeslib.as_array(pointer, shape=shape).copy()

        return Graph(
            nodes,
            array("sender", (edges,), np.int64),
            array("receiver", (edges,), np.int64),
            array("offsets", (nodes + 1,), np.int64),
            array("transposed", (edges,), np.int64),
            array("vectors", (edges, 3), np.float64),
            array("shifts", (edges, 3), np.int32),
            array("structure", (nodes,), np.int64),
        )
    finally:
        library.clebsch_graph_destroy(handle)
