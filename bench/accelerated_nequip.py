"""A NequIP model of random weights before and after clebsch.torch.accelerate, on perturbed silicon (64 atoms): energy, forces and
stress, and a training step on them. In NequIP's environment:

    ./dev bench --accelerate
"""

from __future__ import annotations

import numpy as np
import torch
from accelerated import compare, results, weights_gradient
from nequip.model import NequIPGNNModel
from nequip.utils.global_state import set_global_state
from silicon import CUTOFF, edges, silicon

NAMES = ("total_energy", "forces", "stress")  #: of energy, forces and stress


def batch(cells: int = 2) -> dict[str, torch.Tensor]:
    positions, cell = silicon(cells)
    sender, receiver, shift = edges(positions, cell)
    floats = {"pos": positions, "edge_cell_shift": shift, "cell": cell[None]}
    integers = {"edge_index": np.stack([receiver, sender]), "atom_types": np.arange(len(positions)) % 2}
    return {name: torch.tensor(np.asarray(value), dtype=torch.float64) for name, value in floats.items()} | {
        name: torch.tensor(value, dtype=torch.int64) for name, value in integers.items()
    }


def model(dtype: str = "float32", features: tuple[int, ...] = (128, 64, 32), layers: int = 4) -> torch.nn.Module:
    """By default of the size that the authors call M."""
    set_global_state()
    return NequIPGNNModel(
        seed=0,
        model_dtype=dtype,
        compile_mode="eager",
        r_max=CUTOFF,
        type_names=["Si", "Ge"],
        num_layers=layers,
        l_max=len(features) - 1,
        parity=False,
        num_features=list(features),
        type_embed_num_features=32,
        radial_mlp_depth=1,
        radial_mlp_width=128,
        avg_num_neighbors=28.0,
        per_type_energy_scales=1.0,
        per_type_energy_shifts=0.0,
    )


def main() -> None:
    nequip, inputs = model().eval(), batch()
    compare("NequIP, energy, forces and stress", nequip, lambda: tuple(value.detach() for value in results(nequip, inputs, NAMES)))
    compare("NequIP, a training step", nequip, lambda: (weights_gradient(nequip, inputs, NAMES),), turns=5)


if __name__ == "__main__":
    main()
