"""Matrices that irreps transform with, of rotations as tensors: any leading shape, any device, with derivatives."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...irreps import wigner_d

X_FROM_Y = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # the rotation that takes y to x, z to y, x to z


def matrices_of_angles(blocks: Iterable[tuple[int, Any]], alpha: Any, beta: Any, gamma: Any, k: Any = None) -> Tensor:
    """(..., dim, dim) of Ry(alpha) Rx(beta) Ry(gamma), and of inversion where k is odd; blocks are (multiplicity, irrep).

    A turn about y mixes only components m and -m, one about x is a turn about y in other axes. In float64 inside; dtype of `alpha`.
    """
    alpha, beta, gamma = (angle if isinstance(angle, Tensor) else torch.tensor(angle) for angle in (alpha, beta, gamma))
    k = torch.zeros_like(alpha) if k is None else torch.as_tensor(k, device=alpha.device)
    alpha, beta, gamma, k = torch.broadcast_tensors(alpha, beta, gamma, k)
    blocks = list(blocks)
    dim, begin = sum(mul * ir.dim for mul, ir in blocks), 0
    result = torch.zeros(*alpha.shape, dim, dim, dtype=alpha.dtype, device=alpha.device)
    for mul, ir in blocks:
        axes = torch.tensor(_axes(ir.l), dtype=torch.float64, device=alpha.device)
        turns = [_about_y(ir.l, angle.double()) for angle in (alpha, beta, gamma)]
        matrix = turns[0] @ axes @ turns[1] @ axes.T @ turns[2]
        if ir.p == -1:
            matrix = matrix * (1 - 2 * k.double().remainder(2))[..., None, None]
        for _ in range(mul):
            end = begin + ir.dim
            result[..., begin:end, begin:end] = matrix.to(alpha.dtype)
            begin = end
    return result


def angles_of_matrix(rotation: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(alpha, beta, gamma, k) of orthogonal matrices (..., 3, 3): angles without inversion, and k is 1 where there is one.

    Where beta is 0 or pi the angles have no derivative.
    """
    sign = torch.det(rotation.detach()).sign()
    turn = rotation * sign[..., None, None]
    alpha = torch.atan2(turn[..., 0, 1], turn[..., 2, 1])
    beta = torch.atan2(torch.hypot(turn[..., 0, 1], turn[..., 2, 1]), turn[..., 1, 1])
    rest = alpha.cos()[..., None] * turn[..., 0, :] - alpha.sin()[..., None] * turn[..., 2, :]
    return alpha, beta, torch.atan2(rest[..., 2], rest[..., 0]), (1 - sign) / 2


def matrix_of_quaternion(quaternion: Tensor) -> Tensor:
    """(..., 3, 3) of quaternions (..., 4), w first, of any length but zero."""
    w, x, y, z = torch.nn.functional.normalize(quaternion, dim=-1).unbind(-1)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def matrix_of_axis_angle(axis: Tensor, angle: Tensor) -> Tensor:
    """(..., 3, 3) of turns by an angle (...) about axes (..., 3) of any length but zero."""
    angle = angle[..., None]
    axis = torch.nn.functional.normalize(axis, dim=-1)
    return matrix_of_quaternion(torch.cat([torch.cos(angle / 2).expand(*axis.shape[:-1], 1), torch.sin(angle / 2) * axis], dim=-1))


@cache
def _axes(degree: int) -> list[list[float]]:
    return wigner_d(f"{degree}e", X_FROM_Y).tolist()


def _about_y(degree: int, angle: Tensor) -> Tensor:
    """cos(m angle) on the diagonal, sin(m angle) across, m from -degree to degree."""
    orders = torch.arange(-degree, degree + 1, dtype=angle.dtype, device=angle.device)
    phases = angle[..., None] * orders
    return torch.diag_embed(phases.cos()) + torch.diag_embed(-phases.sin()).flip(-1)
