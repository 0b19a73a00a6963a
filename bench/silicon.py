"""Perturbed silicon and its edges, which benches and tests of whole models share."""

from __future__ import annotations

import itertools

import numpy as np

CUTOFF, LATTICE = 5.0, 5.43


def silicon(cells: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Positions and cell of cells^3 cubic cells (8 atoms each), every atom a little off its site; angstrom."""
    corners = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    sites = np.concatenate([corners, corners + 0.25])
    places = np.array([[i, j, k] for i in range(cells) for j in range(cells) for k in range(cells)])
    positions = (places[:, None] + sites[None]).reshape(-1, 3) * LATTICE
    return positions + np.random.default_rng(seed).normal(0, 0.05, positions.shape), np.eye(3) * cells * LATTICE


def edges(positions: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sender, receiver (ascending) and the sender's cell shift (edges, 3) of all pairs within the cutoff (at most a cell)."""
    lowest, highest = positions.min(0) - CUTOFF, positions.max(0) + CUTOFF
    found = []
    for shift in itertools.product((-1, 0, 1), repeat=3):
        images = positions + np.array(shift) @ cell
        near = np.flatnonzero(((images > lowest) & (images < highest)).all(1))
        distances = np.linalg.norm(images[near] - positions[:, None], axis=-1)  # (receiver, sender)
        receiver, place = np.nonzero((distances < CUTOFF) & (distances > 1e-6))
        found.append((near[place], receiver, np.broadcast_to(shift, (len(place), 3))))
    sender, receiver, shifts = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(receiver, kind="stable")
    return sender[order], receiver[order], shifts[order]
