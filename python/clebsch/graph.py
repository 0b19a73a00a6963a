"""Neighbour lists as receiver-sorted graphs."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref
from dataclasses import dataclass

import numpy as np

from ._arguments import real_number
from ._library import call_handle, find_vesin, library
from ._structures import structures_of


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
    find_vesin()
    batch = structures_of(positions, cell, periodic, structure)
    options = batch.options(real_number("cutoff", cutoff))
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
