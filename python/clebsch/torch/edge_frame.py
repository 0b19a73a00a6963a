"""Features in the frames of edges: there a product with an edge's harmonics is a linear map that mixes components +m and -m."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .._library import ClebschError
from ..irreps import Irreps, wigner_3j
from ..operation import Operation as Description
from ..operation import build
from .modules import _OnRows, _Weighted


def edge_rotations(vectors: Tensor) -> Tensor:
    """Rotations (..., 3, 3) that take the vectors (..., 3) to the y axis, which e3nn's components m count around.

    Which of these rotations is one of many and jumps where another axis becomes the one that a vector is least along: what is
    computed in the frames and rotated back does not depend on it if it is equivariant under rotations around y, as SO2Linear is.
    """
    if vectors.dim() == 0 or vectors.shape[-1] != 3:
        raise ClebschError(f"vectors: expected a last dimension of 3, got shape {tuple(vectors.shape)}")
    along = torch.nn.functional.normalize(vectors, dim=-1)
    other = torch.nn.functional.one_hot(along.detach().abs().argmin(-1), 3).to(along.dtype)
    across = torch.nn.functional.normalize(torch.linalg.cross(other, along), dim=-1)
    return torch.stack([across, along, torch.linalg.cross(across, along)], dim=-2)


def _degrees(irreps: Irreps) -> list[int]:
    return sorted({block.ir.l for block in irreps if block.mul and block.ir.l})


def _matrix_numel(irreps: Irreps) -> int:
    return sum((2 * degree + 1) ** 2 for degree in _degrees(irreps))


class WignerMatrices(torch.nn.Module):
    """What `Rotate(irreps)` takes: of rotations (..., 3, 3), determinant 1, the matrices (2l+1, 2l+1) of every degree above 0 in
    the irreps, row by row, degrees ascending: (..., matrix_numel). Polynomials of the rotations' numbers, with all derivatives."""

    def __init__(self, irreps: Any) -> None:
        super().__init__()
        self.irreps = Irreps(irreps)
        self.degrees = _degrees(self.irreps)
        self.matrix_numel = _matrix_numel(self.irreps)
        for degree in range(2, max(self.degrees, default=0) + 1):
            # orthonormal rows: irrep `degree` in the product of the one below with a vector
            coupling = torch.tensor(wigner_3j(degree - 1, 1, degree)).reshape(-1, 2 * degree + 1).T
            self.register_buffer(f"coupling_{degree}", math.sqrt(2 * degree + 1) * coupling, persistent=False)

    def forward(self, rotations: Tensor) -> Tensor:
        if rotations.shape[-2:] != (3, 3):
            raise ClebschError(f"rotations: expected last dimensions (3, 3), got shape {tuple(rotations.shape)}")
        leading = rotations.shape[:-2]
        matrix, found = rotations, {1: rotations}
        for degree in range(2, max(self.degrees, default=0) + 1):
            size = 3 * (2 * degree - 1)
            products = torch.einsum("...ac,...bd->...abcd", matrix, rotations).reshape(*leading, size, size)
            coupling = getattr(self, f"coupling_{degree}").to(rotations)
            matrix = found[degree] = coupling @ products @ coupling.T
        packed = [found[degree].reshape(*leading, (2 * degree + 1) ** 2) for degree in self.degrees]
        return torch.cat(packed, dim=-1) if packed else rotations.new_zeros((*leading, 0))

    def extra_repr(self) -> str:
        return f"{self.irreps}"


class Rotate(_OnRows):
    """Features (..., irreps.dim) times the matrices of their rows (..., matrix_numel), which `WignerMatrices(irreps)` makes;
    `inverse`: times the transposed ones."""

    def __init__(self, irreps: Any, inverse: bool = False) -> None:
        super().__init__()
        self.irreps, self.inverse = Irreps(irreps), inverse
        self.dim = self.irreps.dim  # tracers cannot ask the library
        self.matrix_numel = _matrix_numel(self.irreps)
        self._adopt(build("rotation", irreps=self.irreps, inverse=inverse))

    def forward(self, x: Tensor, matrices: Tensor) -> Tensor:
        return self._run([("x", x, self.dim), ("matrices", matrices, self.matrix_numel)], [])

    def extra_repr(self) -> str:
        return f"{self.irreps}{', inverse' if self.inverse else ''}"


class SO2Linear(_Weighted):
    """Channels of all degrees mixed, component by component, in a frame whose y axis is the edge's.

    What commutes with rotations around y: of components (+m, -m) as complex numbers, a product with complex weights, of m = 0 with
    real ones. In lists with parities it commutes with reflections too: between irreps that both have the parity of harmonics of
    their degree, or both not, weights are real, between others imaginary, so that there are as many as a channel-wise product with
    all harmonics of the edge has paths. Lists without parities have both.

    Weights, flat: for every input block, output block and m up to the smaller degree (and `m_max`) that allow some: real, then
    imaginary ones, (input channels, output channels) each. Inside the module, given with every call, or with `shared_weights=False`
    per row, as in Linear. Of standard normal inputs and weights, components that some weight reaches are standard normal, others 0.
    """

    def __init__(
        self,
        irreps_in: Any,
        irreps_out: Any,
        m_max: int | None = None,
        internal_weights: bool | None = None,
        shared_weights: bool | None = None,
    ) -> None:
        super().__init__()
        self.irreps_in, self.irreps_out, self.m_max = Irreps(irreps_in), Irreps(irreps_out), m_max
        if m_max is not None and (not isinstance(m_max, int) or m_max < 0):
            raise ClebschError(f"m_max: expected None or a number from 0 on, got {m_max!r}")
        self._decide_weights(internal_weights, shared_weights, True)
        self.dim, parts = self.irreps_in.dim, self._parts()
        self._adopt(Description(self._text(parts)))
        self.weight_numel = sum(self._numbers(i, j) for i, j, _, _ in parts)
        self._make_weight("weight", (self.weight_numel,), torch.randn)

    def _parts(self) -> list[tuple[int, int, int, bool]]:
        """Input block, output block, m, whether imaginary: of every matrix of weights."""
        found = []
        for i, first in enumerate(self.irreps_in):
            for j, second in enumerate(self.irreps_out):
                if not first.mul or not second.mul:
                    continue
                most = min(first.ir.l, second.ir.l)
                for m in range((most if self.m_max is None else min(most, self.m_max)) + 1):
                    same = _like_harmonics(first.ir) == _like_harmonics(second.ir)
                    if first.ir.p == 0 or same:
                        found.append((i, j, m, False))
                    if m and (first.ir.p == 0 or not same):
                        found.append((i, j, m, True))
        return found

    def _numbers(self, i: int, j: int) -> int:
        return self.irreps_in[i].mul * self.irreps_out[j].mul

    def _text(self, parts: list[tuple[int, int, int, bool]]) -> str:
        terms: dict[tuple[int, int], int] = {}  # that are summed into a component
        for i, j, m, _ in parts:
            terms[j, m] = terms.get((j, m), 0) + self.irreps_in[i].mul
        paths = []
        for number, (i, j, m, imaginary) in enumerate(parts):
            first, second = self.irreps_in[i], self.irreps_out[j]
            one, other = first.ir.l, second.ir.l
            if imaginary:
                entries = f"{one - m},{other + m}: -1; {one + m},{other - m}: 1"
            else:
                entries = "; ".join(f"{one + k},{other + k}: 1" for k in sorted({-m, m}))
            paths.append(
                f"path u={first.mul} v={second.mul}: out.{j}[v|j] += {1 / math.sqrt(terms[j, m])!r} * "
                f"{{{2 * one + 1},{2 * other + 1}; {entries}}}[i,j] * x.{i}[u|i] * weights.{number}[uv]"
            )
        weights = "+".join(f"{self._numbers(i, j)}x(1)" for i, j, _, _ in parts) or "()"
        rows = "shared" if self.shared_weights else "each"
        return "\n".join(
            [
                "clebsch polynomial 0",
                "basis e3nn-0.5",
                "rows row",
                f"input x: {self.irreps_in} mul_ir @ each",
                f"input weights: {weights} mul_ir @ {rows}",
                f"output out: {self.irreps_out} mul_ir @ each",
                *paths,
                "",
            ]
        )

    def forward(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        per_row = [("x", x, self.dim)]
        weight = self._given("weight", weight, (self.weight_numel,))
        if self.shared_weights:
            return self._run(per_row, [weight.reshape(1, self.weight_numel)])
        return self._run([*per_row, ("weight", weight, self.weight_numel)], [])

    def extra_repr(self) -> str:
        most = "" if self.m_max is None else f", m up to {self.m_max}"
        return f"{self.irreps_in} -> {self.irreps_out}{most}, {self.weight_numel} weights"


def _like_harmonics(ir: Any) -> bool:
    """Whether a reflection that keeps y does to its components what it does to harmonics."""
    return bool(ir.p == (-1) ** ir.l)
