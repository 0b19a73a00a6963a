"""clebsch.torch in the frames of edges: rotations there and back, linear maps of components around the edge."""

from __future__ import annotations

import clebsch
import clebsch.torch as ct
import numpy as np
import pytest
import torch
from on_devices import _defaults, everywhere  # noqa: F401 - a fixture

DEFAULT_DTYPE = torch.float64
WITH_PARITIES = "3x0e+2x1o+2x1e+1x2e+1x3e", "2x0e+2x0o+3x1o+2x1e+1x2o+1x3o"
WITHOUT = "3x0+2x1+2x2", "2x0+3x1+1x2+1x3"


class Layer(torch.nn.Module):
    """Rotated to the edge, mixed, rotated back."""

    def __init__(self, irreps_in: str, irreps_out: str, m_max: int | None = None) -> None:
        super().__init__()
        self.there, self.back = ct.Rotate(irreps_in), ct.Rotate(irreps_out, inverse=True)
        self.matrices_in, self.matrices_out = ct.WignerMatrices(irreps_in), ct.WignerMatrices(irreps_out)
        self.linear = ct.SO2Linear(irreps_in, irreps_out, m_max)

    def forward(self, x: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        rotations = ct.edge_rotations(vectors)
        return self.back(self.linear(self.there(x, self.matrices_in(rotations))), self.matrices_out(rotations))


def turned(irreps: str, x: torch.Tensor, rotation: np.ndarray) -> torch.Tensor:
    """Features as they are when everything is turned by an orthogonal matrix."""
    parts, start = [], 0
    for block in clebsch.Irreps(irreps):
        matrix = torch.from_numpy(np.asarray(clebsch.wigner_d(block.ir, rotation))).to(x.device)
        channels = x[:, start : start + block.dim].reshape(len(x), block.mul, block.ir.dim)
        parts.append((channels @ matrix.T).reshape(len(x), block.dim))
        start += block.dim
    return torch.cat(parts, dim=1)


@everywhere
@pytest.mark.parametrize("m_max", [None, 1, 0])
@pytest.mark.parametrize("irreps", [WITH_PARITIES, WITHOUT])
def test_what_is_done_in_the_frame_turns_with_everything(irreps: tuple[str, str], m_max: int | None) -> None:
    layer = Layer(*irreps, m_max)
    x, vectors = torch.randn(6, layer.linear.irreps_in.dim), torch.randn(6, 3)
    with torch.no_grad():
        expected = layer(x, vectors)
        for sign in (1.0, -1.0) if irreps == WITH_PARITIES else (1.0,):  # inversions too
            rotation = sign * clebsch.rotation_from_angles(0.3, 1.1, -0.7)
            found = layer(turned(irreps[0], x, rotation), vectors @ torch.from_numpy(rotation).to(x.device).T)
            torch.testing.assert_close(found, turned(irreps[1], expected, rotation), rtol=1e-12, atol=1e-12)
        assert expected.abs().mean() > 0.1


@everywhere
def test_matrices_are_wigners() -> None:
    rotation = clebsch.rotation_from_angles(-1.0, 0.4, 2.0)
    found = ct.WignerMatrices("1x6e+2x1o+0x4e+1x2e+3x0e")(torch.from_numpy(rotation).to(torch.get_default_device()))
    expected = [np.asarray(clebsch.wigner_d(irrep, rotation)).reshape(-1) for irrep in ("1e", "2e", "6e")]
    np.testing.assert_allclose(found.cpu().numpy(), np.concatenate(expected), rtol=0, atol=1e-14)


def test_weights_are_as_many_as_products_with_harmonics_have() -> None:
    """With all harmonics of the edge, the convolution's paths and the weights of channel pairs span the same maps: here of equal
    number, and a product of features with harmonics is one of the linear maps."""
    irreps = "1x0e+1x1o+1x1e+1x2e"
    linear = ct.SO2Linear(irreps, irreps)
    instructions = [
        (i, k, j, "uvw", True)
        for i, first in enumerate(clebsch.Irreps(irreps))
        for k in range(5)
        for j, second in enumerate(clebsch.Irreps(irreps))
        if abs(first.ir.l - k) <= second.ir.l <= first.ir.l + k and first.ir.p * (-1) ** k == second.ir.p
    ]
    harmonics = "0e+1o+2e+3o+4e"
    assert linear.weight_numel == len(instructions)
    product = ct.TensorProduct(irreps, harmonics, irreps, instructions)
    up, x = torch.tensor([[0.0, 1.0, 0.0]]), torch.randn(8, clebsch.Irreps(irreps).dim)
    y = ct.SphericalHarmonics(harmonics, True, "component")(up).expand(len(x), -1)
    with torch.no_grad():
        ones = torch.eye(linear.weight_numel)
        basis = torch.stack([linear(x, weight).reshape(-1) for weight in ones], dim=1)
        values = torch.stack([product(x, y, weight).reshape(-1) for weight in ones], dim=1)
        assert int(torch.linalg.matrix_rank(basis)) == int(torch.linalg.matrix_rank(values)) == len(instructions)
        found = torch.linalg.lstsq(basis, values).solution
    torch.testing.assert_close(basis @ found, values, rtol=1e-10, atol=1e-10)


@everywhere
def test_derivatives() -> None:
    layer = Layer("2x0e+1x1o", "1x0e+1x1o+1x1e")
    x, vectors = torch.randn(2, 5, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    weight = layer.linear.weight.detach().requires_grad_()

    def function(x: torch.Tensor, vectors: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, {"linear.weight": weight}, (x, vectors))

    assert torch.autograd.gradcheck(function, (x, vectors, weight), fast_mode=True)
    assert torch.autograd.gradgradcheck(function, (x, vectors, weight), fast_mode=True)


@everywhere
def test_compiled_whole_and_with_weights_per_row() -> None:
    layer = Layer("2x0e+1x1o", "1x0e+1x1o")
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (5, 9):
        x, vectors = torch.randn(rows, 5), torch.randn(rows, 3)
        torch.testing.assert_close(compiled(x, vectors), layer(x, vectors))
    per_row = ct.SO2Linear("2x0e+1x1o", "1x0e+1x1o", shared_weights=False)
    assert not list(per_row.parameters())
    found = per_row(x, layer.linear.weight.expand(len(x), -1))
    torch.testing.assert_close(found, layer.linear(x))


def test_mistakes() -> None:
    with pytest.raises(clebsch.ClebschError, match="m_max: expected None or a number from 0 on, got -1"):
        ct.SO2Linear("1x0e", "1x0e", m_max=-1)
    with pytest.raises(clebsch.ClebschError, match=r"matrices: expected a last dimension of 9, got shape \(2, 25\)"):
        ct.Rotate("1x1o")(torch.zeros(2, 3), torch.zeros(2, 25))
    with pytest.raises(clebsch.ClebschError, match=r"rotations: expected last dimensions \(3, 3\)"):
        ct.WignerMatrices("1x1o")(torch.zeros(3))
    with pytest.raises(clebsch.ClebschError, match="vectors: expected a last dimension of 3"):
        ct.edge_rotations(torch.zeros(4))
    nothing = ct.SO2Linear("1x0e", "1x1o", m_max=0)  # one weight: m = 0
    assert nothing.weight_numel == 1
    assert ct.SO2Linear("1x0e", "1x0o").weight_numel == 0
    assert torch.equal(ct.SO2Linear("1x0e", "1x0o")(torch.ones(2, 1)), torch.zeros(2, 1))
