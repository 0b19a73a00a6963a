"""Irreducible representations of O(3) and SO(3), coupling coefficients and rotation matrices."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from ctypes import byref, c_int, c_int64, c_void_p
from typing import NamedTuple

import numpy as np

from ._library import ClebschError, call, call_handle, call_text, encode, library

_PARITY = {1: "e", -1: "o", 0: ""}


class Irrep(NamedTuple):
    """One irrep: degree `l` and parity `p` (1 even, -1 odd, 0 for SO(3))."""

    l: int  # noqa: E741 - the field's name for it
    p: int

    @property
    def dim(self) -> int:
        """2l + 1."""
        return 2 * self.l + 1

    def __str__(self) -> str:
        return f"{self.l}{_PARITY[self.p]}"


class Block(NamedTuple):
    """`mul` copies of an irrep."""

    mul: int
    ir: Irrep

    @property
    def dim(self) -> int:
        """mul * (2l + 1)."""
        return self.mul * self.ir.dim

    def __str__(self) -> str:
        return f"{self.mul}x{self.ir}"


class Irreps(Sequence):
    """A list of irreps with multiplicities, from e3nn's text ("128x0e+64x1o") or another list of them. Immutable, hashable."""

    def __init__(self, irreps: str | Irreps | Sequence[Block] = "") -> None:
        text = irreps if isinstance(irreps, str) else "+".join(str(block) for block in irreps)
        self._handle = call_handle("clebsch_irreps_parse", encode(text, "irreps"))
        weakref.finalize(self, library.clebsch_irreps_destroy, self._handle)
        blocks = []
        mul, degree, parity = c_int64(), c_int(), c_int()
        for i in range(library.clebsch_irreps_count(self._handle)):
            call("clebsch_irreps_block", self._handle, i, byref(mul), byref(degree), byref(parity))
            blocks.append(Block(mul.value, Irrep(degree.value, parity.value)))
        self._blocks = tuple(blocks)

    @classmethod
    def spherical_harmonics(cls, lmax: int, p: int = -1) -> Irreps:
        """0e + 1o + 2e + ... up to lmax (parity p^l)."""
        if not 0 <= lmax <= 12:
            raise ClebschError(f"spherical_harmonics: expected lmax from 0 to 12, got {lmax}")
        if p not in (-1, 1):
            raise ClebschError(f"spherical_harmonics: expected a parity p of -1 or 1, got {p!r}")
        return cls("+".join(f"1x{degree}{'e' if p**degree == 1 else 'o'}" for degree in range(lmax + 1)))

    @property
    def dim(self) -> int:
        """Numbers per row."""
        return library.clebsch_irreps_dim(self._handle)

    @property
    def num_irreps(self) -> int:
        """Sum of the multiplicities."""
        return sum(block.mul for block in self)

    @property
    def lmax(self) -> int:
        """Largest degree with a multiplicity above zero."""
        return max(block.ir.l for block in self if block.mul > 0)

    def slices(self) -> list[slice]:
        """Where each block lies in a flat row."""
        ends = np.cumsum([0] + [block.dim for block in self]).tolist()
        return [slice(begin, end) for begin, end in zip(ends[:-1], ends[1:], strict=True)]

    def sort(self) -> tuple[Irreps, tuple[int, ...], tuple[int, ...]]:
        """(sorted, p, inverse), p[old] = new; stable, 0o before 0e before 1o ..."""
        permutation = (c_int * len(self))()
        handle = call_handle_with(self._handle, permutation)
        order = tuple(permutation)
        inverse = [0] * len(order)
        for old, new in enumerate(order):
            inverse[new] = old
        return handle, order, tuple(inverse)

    def simplify(self) -> Irreps:
        """Merges adjacent equal irreps, drops multiplicity 0."""
        return _from_handle(call_handle("clebsch_irreps_simplify", self._handle))

    def regroup(self) -> Irreps:
        """Sorted, then simplified."""
        return self.sort()[0].simplify()

    def __getitem__(self, i):  # noqa: ANN001, ANN204 - as tuple's
        return Irreps(self._blocks[i]) if isinstance(i, slice) else self._blocks[i]

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    def __add__(self, other: str | Irreps) -> Irreps:
        return Irreps([*self, *Irreps(other)])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            try:
                other = Irreps(other)
            except ClebschError:
                return False
        return isinstance(other, Irreps) and self._blocks == other._blocks

    def __hash__(self) -> int:
        return hash(self._blocks)

    def __str__(self) -> str:
        return call_text("clebsch_irreps_text", self._handle)

    def __repr__(self) -> str:
        return f"Irreps({str(self)!r})"


def _from_handle(handle: int) -> Irreps:
    try:
        return Irreps(call_text("clebsch_irreps_text", handle))
    finally:
        library.clebsch_irreps_destroy(handle)


def call_handle_with(handle: int, permutation: object) -> Irreps:
    """Sorted irreps; fills `permutation`."""
    result = c_void_p()
    call("clebsch_irreps_sort", handle, byref(result), permutation)
    assert result.value is not None
    return _from_handle(result.value)


def wigner_3j(l1: int, l2: int, l3: int, sign_table: int = 5) -> np.ndarray:
    """Real coupling coefficients, float64, (2 l1 + 1, 2 l2 + 1, 2 l3 + 1). `sign_table`: 5 (e3nn 0.5 and newer) or 4 (e3nn 0.4)."""
    for degree in (l1, l2, l3):
        if not 0 <= degree <= 12:
            raise ClebschError(f"wigner_3j: expected degrees from 0 to 12, got ({l1}, {l2}, {l3})")
    if sign_table not in (4, 5):
        raise ClebschError(f"wigner_3j: expected sign_table 5 (e3nn 0.5 and newer) or 4 (e3nn 0.4), got {sign_table!r}")
    result = np.zeros((2 * l1 + 1, 2 * l2 + 1, 2 * l3 + 1))
    call("clebsch_wigner_3j", l1, l2, l3, sign_table, result.ctypes.data)
    return result


def wigner_d(irrep: str | Irrep, rotation: np.ndarray) -> np.ndarray:
    """Matrix of a 3x3 orthogonal matrix on an irrep, float64, (2l+1, 2l+1)."""
    if isinstance(irrep, str):
        blocks = Irreps(irrep)
        if len(blocks) != 1 or blocks[0].mul != 1:
            raise ClebschError(f"wigner_d: expected one irrep such as '1o', got {irrep!r}")
        irrep = blocks[0].ir
    if not 0 <= irrep.l <= 12 or irrep.p not in _PARITY:
        raise ClebschError(f"wigner_d: expected a degree from 0 to 12 and a parity of 1, -1 or 0, got {tuple(irrep)}")
    matrix = np.ascontiguousarray(rotation, dtype=np.float64)
    if matrix.shape != (3, 3):
        raise ClebschError(f"wigner_d: rotation: expected shape (3, 3), got {matrix.shape}")
    result = np.zeros((irrep.dim, irrep.dim))
    call("clebsch_wigner_d", irrep.l, irrep.p, matrix.ctypes.data, result.ctypes.data)
    return result


def rotation_from_angles(alpha: float, beta: float, gamma: float) -> np.ndarray:
    """R = Ry(alpha) Rx(beta) Ry(gamma), angles in radians, float64 (3, 3)."""
    result = np.zeros((3, 3))
    call("clebsch_rotation_from_angles", alpha, beta, gamma, result.ctypes.data)
    return result


def rotation_from_quaternion(quaternion: Sequence[float]) -> np.ndarray:
    """Rotation matrix of a quaternion (w, x, y, z), float64 (3, 3)."""
    values = np.ascontiguousarray(quaternion, dtype=np.float64)
    if values.shape != (4,):
        raise ClebschError(f"rotation_from_quaternion: expected 4 numbers (w, x, y, z), got shape {values.shape}")
    result = np.zeros((3, 3))
    call("clebsch_rotation_from_quaternion", values.ctypes.data, result.ctypes.data)
    return result
