"""Energy and forces of a MACE model of random weights before and after clebsch.torch.accelerate, on perturbed silicon (64 atoms).

One thread; processor time of steps that take turns, so that whatever else runs on the machine slows both. In MACE's environment:

    ./dev bench --accelerate
"""

from __future__ import annotations

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # e3nn 0.4.4 keeps its constants in a pickle
os.environ.setdefault("CLEBSCH_NUM_THREADS", "1")

import time

import clebsch.torch as ct
import numpy as np
import torch
from e3nn import o3
from mace.modules import ScaleShiftMACE, interaction_classes

CUTOFF, LATTICE, TURNS = 5.0, 5.43, 9


def silicon() -> tuple[np.ndarray, np.ndarray]:
    """Positions and cell of 2 x 2 x 2 cubic cells, every atom a little off its site."""
    corners = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    sites = np.concatenate([corners, corners + 0.25])
    cells = np.array([[i, j, k] for i in range(2) for j in range(2) for k in range(2)])
    positions = (cells[:, None] + sites[None]).reshape(-1, 3) * LATTICE
    return positions + np.random.default_rng(0).normal(0, 0.05, positions.shape), np.eye(3) * 2 * LATTICE


def batch() -> dict[str, torch.Tensor]:
    positions, cell = silicon()
    shifts = np.array([[i, j, k] for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)])
    images = positions[None, None] + (shifts @ cell)[:, None, None]  # (shift, 1, sender, 3)
    distances = np.linalg.norm(images - positions[None, :, None], axis=-1)
    where, receiver, sender = np.nonzero((distances < CUTOFF) & (distances > 1e-6))
    order = np.argsort(receiver, kind="stable")
    edges, shift = np.stack([sender, receiver])[:, order], shifts[where[order]]
    floats = {
        "positions": positions,
        "node_attrs": np.ones((len(positions), 1)),
        "shifts": shift @ cell,
        "unit_shifts": shift,
        "cell": cell,
    }
    integers = {"edge_index": edges, "batch": np.zeros(len(positions)), "ptr": [0, len(positions)], "head": [0]}
    return {name: torch.tensor(np.asarray(value), dtype=torch.float32) for name, value in floats.items()} | {
        name: torch.tensor(np.asarray(value), dtype=torch.int64) for name, value in integers.items()
    }


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    block = interaction_classes["RealAgnosticResidualInteractionBlock"]
    return ScaleShiftMACE(
        r_max=CUTOFF,
        num_bessel=10,
        num_polynomial_cutoff=5,
        max_ell=3,
        interaction_cls=block,
        interaction_cls_first=block,
        num_interactions=2,
        num_elements=1,
        hidden_irreps=o3.Irreps("128x0e+128x1o"),
        MLP_irreps=o3.Irreps("16x0e"),
        gate=torch.nn.functional.silu,
        atomic_energies=np.zeros(1),
        avg_num_neighbors=28.0,
        atomic_numbers=[14],
        correlation=3,
        atomic_inter_scale=1.0,
        atomic_inter_shift=0.0,
    )


def main() -> None:
    torch.set_num_threads(1)
    mace, inputs = model(), batch()

    def step() -> tuple[torch.Tensor, torch.Tensor]:
        found = mace({name: value.clone() for name, value in inputs.items()}, compute_force=True)
        return found["energy"].detach(), found["forces"].detach()

    def seconds() -> float:
        begin = time.thread_time()
        step()
        return time.thread_time() - begin

    before, after = [], []
    (energy, forces), _ = step(), step()
    report = ct.accelerate(mace)
    (new_energy, new_forces), _ = step(), step()
    difference = (abs(new_forces - forces).max() / forces.abs().max()).item()
    print(f"energy differs by {abs(new_energy / energy - 1).item():.1e}, forces by {difference:.1e}")
    for _ in range(TURNS):
        after.append(seconds())
        report.undo()
        before.append(seconds())
        report = ct.accelerate(mace, show=False)
        step()
    ratios = sorted(b / a for a, b in zip(after, before, strict=True))
    print(f"energy and forces: {sorted(before)[TURNS // 2]:.3f} s before, {sorted(after)[TURNS // 2]:.3f} s after")
    print(f"ratio {ratios[TURNS // 2]:.1f}x ({ratios[0]:.1f} to {ratios[-1]:.1f})")


if __name__ == "__main__":
    main()
