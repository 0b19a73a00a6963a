"""Irreducible representations of O(3) and SO(3), coupling coefficients and rotation matrices."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterable, Iterator, Sequence
from ctypes import byref, c_int, c_int64, c_void_p
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np

from ._arguments import array_of
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
        if self.p not in _PARITY:
            raise ClebschError(f"irreps: expected a parity of 1, -1 or 0 (SO(3)), got {self.p!r}")
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


class Sorted(NamedTuple):
    """Sorted irreps: p[old] = new, inverse[new] = old."""

    irreps: Irreps
    p: tuple[int, ...]
    inverse: tuple[int, ...]


class Irreps(Sequence[Block]):
    """A list of irreps with multiplicities. Immutable, hashable.

    From e3nn's text ("128x0e+64x1o"; "32x0+16x1" for SO(3)), or from blocks: (multiplicity, irrep) pairs or irreps, an irrep being
    an `Irrep`, its text or (degree, parity).
    """

    def __init__(self, irreps: str | Irreps | Irrep | Iterable[Any] = "") -> None:
        self._handle = call_handle("clebsch_irreps_parse", encode(_text_of(irreps), "irreps"))
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
    def dims(self) -> tuple[int, ...]:
        """Numbers per row of each block."""
        return tuple(block.dim for block in self)

    @property
    def num_irreps(self) -> int:
        """Sum of the multiplicities."""
        return sum(block.mul for block in self)

    @property
    def lmax(self) -> int:
        """Largest degree with a multiplicity above zero."""
        degrees = [block.ir.l for block in self if block.mul > 0]
        if not degrees:
            raise ClebschError(f"irreps: {str(self)!r} has no irrep, so no largest degree")
        return max(degrees)

    def slices(self) -> list[slice]:
        """Where each block lies in a flat row."""
        ends = np.cumsum([0, *self.dims]).tolist()
        return [slice(begin, end) for begin, end in zip(ends[:-1], ends[1:], strict=True)]

    def count(self, irrep: Any) -> int:
        """Sum of the multiplicities of one irrep."""
        wanted = _one_irrep(irrep)
        return sum(block.mul for block in self if block.ir == wanted)

    def sort(self) -> Sorted:
        """Stable: 0o before 0e before 1o ..."""
        permutation = (c_int * len(self))()
        result = c_void_p()
        call("clebsch_irreps_sort", self._handle, byref(result), permutation)
        assert result.value is not None
        order = tuple(permutation)
        inverse = [0] * len(order)
        for old, new in enumerate(order):
            inverse[new] = old
        return Sorted(_from_handle(result.value), order, tuple(inverse))

    def simplify(self) -> Irreps:
        """Merges adjacent equal irreps, drops multiplicity 0."""
        return _from_handle(call_handle("clebsch_irreps_simplify", self._handle))

    def regroup(self) -> Irreps:
        """Sorted, then simplified."""
        return _from_handle(call_handle("clebsch_irreps_regroup", self._handle))

    def filter(self, keep: Any = None, drop: Any = None, lmax: int | None = None) -> Irreps:
        """The blocks whose irrep is in `keep`, not in `drop`, and of degree at most `lmax`; None: no condition."""
        if lmax is not None and operator.index(lmax) < 0:
            raise ClebschError(f"filter: expected lmax of at least 0, got {lmax}")
        kept, dropped = _list_or_none(keep), _list_or_none(drop)
        highest = -1 if lmax is None else min(operator.index(lmax), 12)
        return _from_handle(call_handle("clebsch_irreps_filter", self._handle, _handle_of(kept), _handle_of(dropped), highest))

    def product(self, other: Any, keep: Any = None) -> Irreps:
        """What two lists couple to, neither sorted nor merged (`.regroup()` does both).

        For every pair of blocks the irreps of their product, ascending, with the product of their multiplicities; those in `keep`
        (None: all; then degrees above 12 are an error).
        """
        second, kept = Irreps(other), _list_or_none(keep)
        return _from_handle(call_handle("clebsch_irreps_product", self._handle, second._handle, _handle_of(kept)))

    @overload
    def __getitem__(self, i: SupportsIndex) -> Block: ...
    @overload
    def __getitem__(self, i: slice) -> Irreps: ...
    def __getitem__(self, i: SupportsIndex | slice) -> Block | Irreps:
        return Irreps(self._blocks[i]) if isinstance(i, slice) else self._blocks[i]

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    def __contains__(self, item: object) -> bool:
        """Whether there is a block like it, or, for an irrep or its text, that irrep with a multiplicity above zero."""
        return item in self._blocks if isinstance(item, Block) else self.count(item) > 0

    def __add__(self, other: Any) -> Irreps:
        return Irreps([*self, *Irreps(other)])

    def __radd__(self, other: Any) -> Irreps:
        return Irreps([*Irreps(other), *self])

    def __mul__(self, times: SupportsIndex) -> Irreps:
        """The list `times` times, one after another."""
        try:
            number = operator.index(times)
        except TypeError:
            raise TypeError(
                f"irreps: expected a number of repetitions, got {times!r} (for what two lists couple to: product)"
            ) from None
        if not 0 <= number < 2**63:
            raise ClebschError(f"irreps: cannot repeat a list {number} times")
        return _from_handle(call_handle("clebsch_irreps_repeat", self._handle, number))

    __rmul__ = __mul__

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

    def __reduce__(self) -> tuple[Any, ...]:
        return Irreps, (str(self),)


def _text_of(irreps: Any) -> str:
    """The text that the library reads."""
    if isinstance(irreps, str):
        return irreps
    if isinstance(irreps, (Irrep, Block)):
        return str(irreps)
    if isinstance(irreps, (bytes, bytearray)) or not isinstance(irreps, Iterable):
        raise TypeError(f"irreps: expected text such as '8x0e+4x1o' or a list of blocks, got {irreps!r}")
    return "+".join(_block_text(item) for item in irreps)


def _block_text(item: Any) -> str:
    if isinstance(item, Block):
        return str(item)
    if isinstance(item, (str, Irrep)):
        return f"1x{_irrep_text(item)}"
    try:
        mul, irrep = item
        return f"{operator.index(mul)}x{_irrep_text(irrep)}"
    except (TypeError, ValueError) as error:
        if isinstance(error, ClebschError):
            raise
        raise TypeError(f"irreps: expected an irrep or a pair (multiplicity, irrep), got {item!r}") from None


def _irrep_text(irrep: Any) -> str:
    if isinstance(irrep, str):
        return irrep
    degree, parity = irrep
    return str(Irrep(operator.index(degree), operator.index(parity)))


def _one_irrep(irrep: Any) -> Irrep:
    blocks = Irreps(irrep if isinstance(irrep, str) else [irrep])
    if len(blocks) != 1 or blocks[0].mul != 1:
        raise ClebschError(f"irreps: expected one irrep such as '1o', got {irrep!r}")
    return blocks[0].ir


def _list_or_none(irreps: Any) -> Irreps | None:
    return None if irreps is None else Irreps(irreps)


def _handle_of(irreps: Irreps | None) -> int | None:
    return None if irreps is None else irreps._handle


def _from_handle(handle: int) -> Irreps:
    try:
        return Irreps(call_text("clebsch_irreps_text", handle))
    finally:
        library.clebsch_irreps_destroy(handle)


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
        irrep = _one_irrep(irrep)
    if not 0 <= irrep.l <= 12 or irrep.p not in _PARITY:
        raise ClebschError(f"wigner_d: expected a degree from 0 to 12 and a parity of 1, -1 or 0, got {tuple(irrep)}")
    matrix = np.ascontiguousarray(array_of("rotation", rotation), dtype=np.float64)
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


def rotation_from_quaternion(quaternion: Sequence[float] | np.ndarray) -> np.ndarray:
    """Rotation matrix of a quaternion (w, x, y, z), float64 (3, 3)."""
    values = np.ascontiguousarray(array_of("quaternion", quaternion), dtype=np.float64)
    if values.shape != (4,):
        raise ClebschError(f"rotation_from_quaternion: expected 4 numbers (w, x, y, z), got shape {values.shape}")
    result = np.zeros((3, 3))
    call("clebsch_rotation_from_quaternion", values.ctypes.data, result.ctypes.data)
    return result
