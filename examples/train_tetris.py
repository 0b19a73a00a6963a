"""Tetris shapes told apart however they are turned, two of them mirror images: trained on the CPU in seconds.

Every shape is four points. An equivariant network needs no turned copies to learn from: it is trained on one orientation of each
and right for all of them. The two chiral shapes differ in the sign of a pseudoscalar (0o), which mirror images must.

    pip install . torch && python examples/train_tetris.py
"""

from pathlib import Path

import clebsch
import clebsch.torch as ct
import numpy as np
import torch

SHAPES = [
    [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 1, 0)],  # chiral
    [(1, 1, 1), (1, 1, 2), (2, 1, 1), (2, 0, 1)],  # its mirror image
    [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)],  # square
    [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3)],  # line
    [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)],  # corner
    [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0)],  # L
    [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 1)],  # T
    [(0, 0, 0), (1, 0, 0), (1, 1, 0), (2, 1, 0)],  # zigzag
]


class Convolution(torch.nn.Module):
    """All channels of the sender mixed with the edge's harmonics, by weights that every edge shares; summed at the receiver."""

    def __init__(self, irreps_in: str, irreps_edge: str, irreps_out: str) -> None:
        super().__init__()
        description = clebsch.build(
            "convolution", in_=irreps_in, edge=irreps_edge, out=irreps_out, product="fully_connected", weights="shared"
        )
        self.operation = ct.Operation(description)
        self.weight = torch.nn.Parameter(torch.randn(description.inputs[2].row_size))

    def forward(self, x: torch.Tensor, edge: torch.Tensor, sender: torch.Tensor, receiver: torch.Tensor) -> torch.Tensor:
        return self.operation(rows={"node": len(x)}, x=x, y=edge, weights=self.weight, sender=sender, receiver=receiver)


class Classifier(torch.nn.Module):
    """Two convolutions of the neighbours' directions; seven numbers per shape, the first a pseudoscalar."""

    def __init__(self) -> None:
        super().__init__()
        edge, hidden = "1x0e+1x1o+1x2e+1x3o", "64x0e+24x1e+24x1o+16x2e+16x2o"
        self.harmonics = ct.SphericalHarmonics(edge, True, "component")
        self.first = Convolution(edge, edge, hidden)
        self.second = Convolution(hidden, edge, "1x0o+6x0e")

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """points: (shapes, 4, 3)."""
        apart = torch.cdist(points, points)
        shape, receiver, sender = torch.nonzero((apart < 1.1) & (apart > 0.1), as_tuple=True)  # receivers ascending
        nodes = points.reshape(-1, 3)
        receiver, sender = 4 * shape + receiver, 4 * shape + sender
        edge = self.harmonics(nodes[sender] - nodes[receiver])
        x = edge.new_zeros(len(nodes), edge.shape[1]).index_add(0, receiver, edge)
        x = self.first(x / 2**0.5, edge, sender, receiver) / 2**0.5  # two neighbours
        x = self.second(x, edge, sender, receiver) / 2**0.5
        return x.reshape(len(points), 4, 7).sum(dim=1) / 2


def turned(points: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each shape by a rotation of its own, moved elsewhere."""
    rotations = [clebsch.rotation_from_quaternion(torch.randn(4, generator=generator).numpy()) for _ in points]
    matrices = torch.from_numpy(np.stack(rotations)).to(points.dtype)
    return points @ matrices.transpose(1, 2) + torch.randn(len(points), 1, 3, generator=generator)


def train(steps: int = 200) -> tuple[list[float], float]:
    """Losses of the steps, and the share of right answers on turned shapes."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    points = torch.tensor(SHAPES, dtype=torch.float32)
    wanted = torch.cat([torch.eye(7)[:1], -torch.eye(7)[:1], torch.eye(7)[1:]])  # +-1 for the mirror images
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        loss = (model(points) - wanted).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        answers = [model(turned(points, generator)).round() for _ in range(20)]
    return losses, torch.stack([(answer == wanted).all(dim=1).float() for answer in answers]).mean().item()


if __name__ == "__main__":
    from loss_picture import loss_picture

    losses, right = train()
    for step in range(0, len(losses), 20):
        print(f"step {step:4d}  loss {losses[step]:10.5f}  {'#' * max(1, int(40 * losses[step] / losses[0]))}")
    print(f"{100 * right:.0f} % right on 160 turned shapes")
    Path("tetris-loss.svg").write_text(loss_picture(losses, "Eight tetris shapes"))
    print("picture: tetris-loss.svg")
