"""An energy with forces in e3nn, as one writes it: nothing here knows of Clebsch. `one_import.py` runs it twice, once with its
third import changed."""

import math

import torch
from e3nn import nn, o3

CUTOFF, WAVES = 4.0, 8


class Layer(torch.nn.Module):
    """Messages x[sender] times harmonics with weights from a radial network, summed at receivers; a linear map and a gate."""

    def __init__(self, irreps_in: o3.Irreps, irreps_edge: o3.Irreps, gate: torch.nn.Module) -> None:
        super().__init__()
        middle, instructions = [], []
        for i, (mul, first) in enumerate(irreps_in):
            for j, (_, second) in enumerate(irreps_edge):
                for product in first * second:
                    if product in gate.irreps_in:
                        instructions.append((i, j, len(middle), "uvu", True))
                        middle.append((mul, product))
        irreps_middle = o3.Irreps(middle)
        self.product = o3.TensorProduct(irreps_in, irreps_edge, irreps_middle, instructions, shared_weights=False)
        self.radial = nn.FullyConnectedNet([WAVES, 32, self.product.weight_numel], torch.nn.functional.silu)
        self.linear, self.gate = o3.Linear(irreps_middle, gate.irreps_in), gate

    def forward(self, x, edge, basis, sender, receiver):  # noqa: ANN001, ANN201
        messages = self.product(x[sender], edge, self.radial(basis))
        return self.gate(self.linear(torch.zeros(len(x), messages.shape[1]).index_add(0, receiver, messages) / 4))


class Network(torch.nn.Module):
    """Energies of structures from species, positions and edges."""

    def __init__(self, species: int = 2, channels: int = 32, layers: int = 2) -> None:
        super().__init__()
        edge, scalars, vectors = o3.Irreps("0e+1o+2e"), f"{channels}x0e", f"{channels}x1o+{channels}x2e"
        self.species = torch.nn.Embedding(species, channels)
        self.harmonics = o3.SphericalHarmonics(edge, True, "component")
        self.layers, irreps = torch.nn.ModuleList(), o3.Irreps(scalars)
        for _ in range(layers):
            gate = nn.Gate(scalars, [torch.nn.functional.silu], f"{2 * channels}x0e", [torch.sigmoid], vectors)
            self.layers.append(Layer(irreps, edge, gate))
            irreps = gate.irreps_out
        self.readout = o3.Linear(irreps, "1x0e")

    def forward(self, positions, species, sender, receiver):  # noqa: ANN001, ANN201
        vectors = positions[sender] - positions[receiver]
        length = vectors.norm(dim=1, keepdim=True)
        waves = torch.sin(length * torch.arange(1, WAVES + 1) * (math.pi / CUTOFF)) / length
        basis, edge, x = waves * (1 - (length / CUTOFF) ** 2) ** 2, self.harmonics(vectors), self.species(species)
        for layer in self.layers:
            x = layer(x, edge, basis, sender, receiver)
        energy = self.readout(x).sum()
        (gradient,) = torch.autograd.grad(energy, positions)
        return energy.detach(), -gradient
