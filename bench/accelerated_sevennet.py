"""A SevenNet model of random weights before and after clebsch.torch.accelerate, on perturbed silicon (64 atoms): energy, forces and
stress, and a training step on them. In SevenNet's environment:

    ./dev bench --accelerate
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sevenn._const
import torch
from accelerated import compare, results, weights_gradient
from sevenn.model_build import build_E3_equivariant_model
from silicon import CUTOFF, edges, silicon

NAMES = ("inferred_total_energy", "inferred_force", "inferred_stress")  #: of energy, forces and stress


def batch(cells: int = 2) -> dict[str, torch.Tensor]:
    positions, cell = silicon(cells)
    sender, receiver, shift = edges(positions, cell)
    real = torch.get_default_dtype()
    vectors = positions[sender] + shift @ cell - positions[receiver]
    return {
        "edge_index": torch.tensor(np.stack([receiver, sender])),
        "edge_vec": torch.tensor(vectors, dtype=real),
        "atomic_numbers": torch.tensor(np.where(np.arange(len(positions)) % 2, 32, 14)),
        "batch": torch.zeros(len(positions), dtype=torch.int64),
        "num_atoms": torch.tensor([len(positions)]),
        "cell_volume": torch.tensor([np.linalg.det(cell)], dtype=real),
    }


def model(features: tuple[int, ...] = (128, 64, 32), layers: int = 5, **options: Any) -> torch.nn.Module:
    """By default of the published size of SevenNet-0. `options`: of SevenNet's configuration."""
    hidden = "+".join(f"{mul}x{l}e" for l, mul in enumerate(features))  # noqa: E741 - the degree
    torch.manual_seed(0)
    return build_E3_equivariant_model(
        sevenn._const.DEFAULT_E3_EQUIVARIANT_MODEL_CONFIG
        | {
            "cutoff": CUTOFF,
            "channel": features[0],
            "lmax": len(features) - 1,
            "is_parity": False,
            "num_convolution_layer": layers,
            "irreps_manual": [f"{features[0]}x0e", *[hidden] * (layers - 1), f"{features[0]}x0e"],
            "radial_basis": {"radial_basis_name": "bessel", "bessel_basis_num": 8},
            "cutoff_function": {"cutoff_function_name": "XPLOR", "cutoff_on": CUTOFF - 0.5},
            "self_connection_type": "linear",
            "conv_denominator": 28.0,
            "shift": 0.0,
            "scale": 1.0,
            "_number_of_species": 2,
            "_type_map": {14: 0, 32: 1},
        }
        | options
    )


def main() -> None:
    sevennet, inputs = model().eval(), batch()
    compare(
        "SevenNet, energy, forces and stress", sevennet, lambda: tuple(value.detach() for value in results(sevennet, inputs, NAMES))
    )
    compare("SevenNet, a training step", sevennet, lambda: (weights_gradient(sevennet, inputs, NAMES),), turns=5)


if __name__ == "__main__":
    main()
