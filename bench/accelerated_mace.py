"""Energy and forces of a MACE model of random weights before and after clebsch.torch.accelerate, on perturbed silicon (64 atoms).
In MACE's environment:

    ./dev bench --accelerate
"""

from __future__ import annotations

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # e3nn 0.4.4 keeps its constants in a pickle

import numpy as np
import torch
from accelerated import compare
from e3nn import o3
from mace.modules import ScaleShiftMACE, interaction_classes
from silicon import CUTOFF, edges, silicon


def batch(cells: int = 2) -> dict[str, torch.Tensor]:
    positions, cell = silicon(cells)
    sender, receiver, shift = edges(positions, cell)
    floats = {
        "positions": positions,
        "node_attrs": np.ones((len(positions), 1)),
        "shifts": shift @ cell,
        "unit_shifts": shift,
        "cell": cell,
    }
    integers = {
        "edge_index": np.stack([sender, receiver]),
        "batch": np.zeros(len(positions)),
        "ptr": [0, len(positions)],
        "head": [0],
    }
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
    mace, inputs = model(), batch()

    def step() -> tuple[torch.Tensor, ...]:
        found = mace({name: value.clone() for name, value in inputs.items()}, compute_force=True)
        return found["energy"].detach(), found["forces"].detach()

    compare("MACE, energy and forces", mace, step)


if __name__ == "__main__":
    main()
