"""A small equivariant force field fitted to energies and forces of aspirin under a simple pair potential, on the CPU.

The atoms of `data/aspirin.xyz` are moved at random; a Morse potential between all pairs, with radii of the elements, gives what to
learn. The loss has forces in it, minus the gradient of the energy by the positions, so that a training step derives twice.

    pip install . torch vesin && python examples/fit_force_field.py
"""

from pathlib import Path

import clebsch
import clebsch.torch as ct
import numpy as np
import torch

CUTOFF, CHANNELS = 4.0, 16
RADII = {"H": 0.31, "C": 0.76, "O": 0.66}  # angstrom
ELEMENTS = sorted(RADII)


def read_xyz(path: Path) -> tuple[list[str], torch.Tensor]:
    """Symbols and positions of the first frame."""
    lines = path.read_text().splitlines()
    fields = [line.split() for line in lines[2 : 2 + int(lines[0])]]
    return [field[0] for field in fields], torch.tensor([[float(value) for value in field[1:4]] for field in fields])


def morse(positions: torch.Tensor, radii: torch.Tensor) -> torch.Tensor:
    """The energy (eV) of structures (structures, atoms, 3), that is to be learnt: smooth, zero from the cutoff on."""
    first, second = torch.triu_indices(len(radii), len(radii), 1)
    length = (positions[:, first] - positions[:, second]).norm(dim=-1)
    decay = torch.exp(-1.5 * (length - 1.2 * (radii[first] + radii[second])))
    inside = (1 - (length / CUTOFF).clamp(max=1) ** 2) ** 3
    return (0.5 * (decay**2 - 2 * decay) * inside).sum(dim=1)


class ForceField(torch.nn.Module):
    """Two convolutions over neighbours, each with a radial network and a linear map; energies of atoms."""

    def __init__(self) -> None:
        super().__init__()
        edge, hidden = "0e+1o+2e", f"{CHANNELS}x0e+{CHANNELS}x1o"
        self.harmonics = ct.SphericalHarmonics(edge, True, "component")
        self.species = torch.nn.Embedding(len(ELEMENTS), CHANNELS)
        self.convolutions, self.radial, self.linear = (torch.nn.ModuleList() for _ in range(3))
        for irreps_in, kept, irreps_out in ((f"{CHANNELS}x0e", "0e+1o", hidden), (hidden, "0e", f"{CHANNELS}x0e")):
            convolution = ct.Convolution(irreps_in, edge, kept)
            self.convolutions.append(convolution)
            self.radial.append(
                torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.SiLU(), torch.nn.Linear(32, convolution.weight_numel))
            )
            self.linear.append(ct.Linear(convolution.irreps_out, irreps_out))
        self.readout = torch.nn.Sequential(torch.nn.Linear(2 * CHANNELS, 32), torch.nn.SiLU(), torch.nn.Linear(32, 1))
        self.register_buffer("waves", torch.arange(1, 9) * torch.pi / CUTOFF)

    def forward(self, positions: torch.Tensor, species: torch.Tensor, sender: torch.Tensor, receiver: torch.Tensor) -> torch.Tensor:
        """Energies of atoms (atoms,)."""
        vectors = positions[sender] - positions[receiver]
        length = vectors.norm(dim=-1, keepdim=True)
        basis = torch.sin(length * self.waves) / length * (1 - (length / CUTOFF) ** 2) ** 2  # zero at the cutoff, with its slope
        edge = self.harmonics(vectors)
        start = x = self.species(species)
        for convolution, radial, linear in zip(self.convolutions, self.radial, self.linear, strict=True):
            x = linear(convolution(x, edge, radial(basis), sender, receiver)) / 4
        return self.readout(torch.cat([start, x], dim=1))[:, 0]


def fit(steps: int = 200, structures: int = 8) -> tuple[list[float], float, float]:
    """Losses of the steps, and the mean error of force components on structures never seen, before and after (eV/A)."""
    torch.manual_seed(0)
    symbols, at_rest = read_xyz(Path(__file__).parent / "data" / "aspirin.xyz")
    atoms = len(symbols)
    species = torch.tensor([ELEMENTS.index(symbol) for symbol in symbols]).repeat(structures)
    radii = torch.tensor([RADII[symbol] for symbol in symbols])

    def made() -> dict[str, torch.Tensor]:
        """Structures as one graph, with their energies and forces."""
        positions = (at_rest + 0.1 * torch.randn(structures, atoms, 3)).requires_grad_()
        energy = morse(positions, radii)
        (gradient,) = torch.autograd.grad(energy.sum(), positions)
        flat = positions.detach().reshape(-1, 3)
        graph = clebsch.neighbor_graph(flat.double().numpy(), CUTOFF, structure=np.repeat(np.arange(structures), atoms))
        edges = {"sender": torch.from_numpy(graph.sender), "receiver": torch.from_numpy(graph.receiver)}
        return {"positions": flat, "energy": energy.detach(), "forces": -gradient.reshape(-1, 3), **edges}

    train, test = made(), made()
    model = ForceField()

    def predicted(data: dict[str, torch.Tensor], training: bool) -> tuple[torch.Tensor, torch.Tensor]:
        positions = data["positions"].clone().requires_grad_()
        energy = model(positions, species, data["sender"], data["receiver"]).reshape(structures, atoms).sum(dim=1)
        (gradient,) = torch.autograd.grad(energy.sum(), positions, create_graph=training)
        return energy, -gradient

    def error() -> float:
        return (predicted(test, False)[1] - test["forces"]).abs().mean().item()

    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    before, mean, losses = error(), train["energy"].mean(), []
    for _ in range(steps):
        energy, forces = predicted(train, True)
        loss = ((energy - (train["energy"] - mean)) / atoms).square().mean() + (forces - train["forces"]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, before, error()


if __name__ == "__main__":
    from loss_picture import loss_picture

    losses, before, after = fit()
    for step in range(0, len(losses), 20):
        print(f"step {step:4d}  loss {losses[step]:10.5f}")
    print(f"mean error of forces on new structures: {before:.3f} eV/A before, {after:.3f} after")
    Path("force-field-loss.svg").write_text(loss_picture(losses, "Forces and energies of aspirin"))
    print("picture: force-field-loss.svg")
