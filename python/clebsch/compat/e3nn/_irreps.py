"""e3nn's `o3.Irrep` and `o3.Irreps`: tuples, so that they compare equal to e3nn's own and are accepted wherever those are."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ..._library import ClebschError
from ...irreps import Irreps as Blocks
from ._rotations import angles_of_matrix, matrices_of_angles, matrix_of_axis_angle, matrix_of_quaternion

Sorted = namedtuple("Sorted", ["irreps", "p", "inv"])


class _Represented:
    """Block-diagonal matrices (..., dim, dim) of rotations: of an irrep, or of all blocks of irreps. They have derivatives."""

    __slots__ = ()

    def D_from_angles(self, alpha: Any, beta: Any, gamma: Any, k: Any = None) -> torch.Tensor:  # noqa: N802 - e3nn's names
        """Of Ry(alpha) Rx(beta) Ry(gamma), angles of shapes (...) in radians; where k is odd, with inversion."""
        return matrices_of_angles(Irreps(self), alpha, beta, gamma, k)

    def D_from_quaternion(self, q: torch.Tensor, k: Any = None) -> torch.Tensor:  # noqa: N802
        """Of quaternions (..., 4), w first; where k is odd, with inversion."""
        return self.D_from_angles(*angles_of_matrix(matrix_of_quaternion(q.double()))[:3], k).to(q.dtype)

    def D_from_matrix(self, R: torch.Tensor) -> torch.Tensor:  # noqa: N802, N803
        """Of orthogonal matrices (..., 3, 3)."""
        return self.D_from_angles(*angles_of_matrix(R.double())).to(R.dtype)

    def D_from_axis_angle(self, axis: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:  # noqa: N802
        """Of turns by angles (...) about axes (..., 3)."""
        return self.D_from_angles(*angles_of_matrix(matrix_of_axis_angle(axis.double(), angle.double()))).to(angle.dtype)


class Irrep(_Represented, tuple[int, int]):
    """An irreducible representation of O(3): (l, p). From "1o", (1, -1), l and p, or another."""

    __slots__ = ()

    def __new__(cls, l: Any, p: int | None = None) -> Irrep:  # noqa: E741 - e3nn's name
        if p is None:
            if isinstance(l, Irrep):
                return l
            if isinstance(l, str):
                blocks = Blocks(l)
                if len(blocks) != 1 or blocks[0].mul != 1:
                    raise ClebschError(f"irrep: expected one irrep such as '1o', got {l!r}")
                l, p = blocks[0].ir.l, blocks[0].ir.p  # noqa: E741
            else:
                l, p = l  # noqa: E741
        if not isinstance(l, int) or l < 0:
            raise ClebschError(f"l: expected an integer of at least 0, got {l!r}")
        if p not in (-1, 1):
            raise ClebschError(f"p: expected 1 or -1, got {p!r}")
        return super().__new__(cls, (l, p))

    def __getnewargs__(self) -> tuple[int, int]:
        return self.l, self.p

    @property
    def l(self) -> int:  # noqa: E743
        return self[0]

    @property
    def p(self) -> int:
        return self[1]

    @property
    def dim(self) -> int:
        return 2 * self.l + 1

    def is_scalar(self) -> bool:
        return self == (0, 1)

    @classmethod
    def iterator(cls, lmax: int | None = None) -> Iterator[Irrep]:
        """0e, 0o, 1o, 1e, 2e, ... up to `lmax`, or without an end."""
        for degree in itertools.count() if lmax is None else range(lmax + 1):
            for parity in ((-1) ** degree, -((-1) ** degree)):
                yield cls(degree, parity)

    def __mul__(self, other: Any) -> Iterator[Irrep]:  # type: ignore[override]
        """The irreps of the product, ascending."""
        other = Irrep(other)
        for degree in range(abs(self.l - other.l), self.l + other.l + 1):
            yield Irrep(degree, self.p * other.p)

    def __rmul__(self, mul: Any) -> Irreps:  # type: ignore[override]
        return Irreps([(mul, self)])

    def __add__(self, other: Any) -> Irreps:  # type: ignore[override]
        return Irreps(self) + Irreps(other)

    def __repr__(self) -> str:
        return f"{self.l}{'e' if self.p == 1 else 'o'}"


class MulIr(tuple[int, Irrep]):
    """`mul` copies of an irrep."""

    __slots__ = ()

    def __new__(cls, mul: int, ir: Any) -> MulIr:
        return super().__new__(cls, (mul, Irrep(ir)))

    def __getnewargs__(self) -> tuple[int, Irrep]:
        return self.mul, self.ir

    @property
    def mul(self) -> int:
        return self[0]

    @property
    def ir(self) -> Irrep:
        return self[1]

    @property
    def dim(self) -> int:
        return self.mul * self.ir.dim

    def __repr__(self) -> str:
        return f"{self.mul}x{self.ir}"


class Irreps(_Represented, tuple[MulIr, ...]):
    """A direct sum of irreps: "8x0e+4x1o", an irrep, or a list of blocks (mul, irrep) and irreps."""

    __slots__ = ()

    def __new__(cls, irreps: Any = None) -> Irreps:
        if isinstance(irreps, Irreps):
            return irreps
        if isinstance(irreps, Irrep):
            return super().__new__(cls, [MulIr(1, irreps)])
        if isinstance(irreps, str):
            irreps = [(block.mul, (block.ir.l, block.ir.p)) for block in Blocks(irreps)]
        return super().__new__(cls, [_block(item) for item in irreps or ()])

    def __getnewargs__(self) -> tuple[list[tuple[int, Irrep]]]:
        return ([(mul, ir) for mul, ir in self],)

    @staticmethod
    def spherical_harmonics(lmax: int, p: int = -1) -> Irreps:
        return Irreps([(1, (degree, p**degree)) for degree in range(lmax + 1)])

    @property
    def dim(self) -> int:
        return sum(block.dim for block in self)

    @property
    def num_irreps(self) -> int:
        return sum(mul for mul, _ in self)

    @property
    def ls(self) -> list[int]:
        return [ir.l for mul, ir in self for _ in range(mul)]

    @property
    def lmax(self) -> int:
        if not self.ls:
            raise ClebschError("lmax: there are no irreps")
        return max(self.ls)

    def slices(self) -> list[slice]:
        """Where each block is in a row."""
        ends = list(itertools.accumulate(block.dim for block in self))
        return [slice(end - block.dim, end) for end, block in zip(ends, self, strict=True)]

    @property
    def slice_by_mul(self) -> _Channels:
        """`irreps.slice_by_mul[2:5]`: those channels, counted over all blocks."""
        return _Channels(self)

    def randn(
        self,
        *size: int,
        normalization: str = "component",
        requires_grad: bool = False,
        dtype: torch.dtype | None = None,
        device: Any = None,
    ) -> torch.Tensor:
        """Normal numbers; -1 in `size` is the dimension of the irreps. "norm": every irrep is divided by its norm."""
        if normalization not in ("component", "norm"):
            raise ClebschError(f"normalization: expected 'component' or 'norm', got {normalization!r}")
        place = size.index(-1)
        values = torch.randn(*size[:place], self.dim, *size[place + 1 :], dtype=dtype, device=device)
        if normalization == "norm":
            for (mul, ir), where in zip(self, self.slices(), strict=True):
                block = values.narrow(place, where.start, where.stop - where.start).unflatten(place, (mul, ir.dim))
                block.div_(block.norm(dim=place + 1, keepdim=True))
        return values.requires_grad_(requires_grad)

    def __getitem__(self, i: Any) -> Any:
        item = super().__getitem__(i)
        return Irreps(item) if isinstance(i, slice) else item

    def __contains__(self, irrep: object) -> bool:
        return Irrep(irrep) in [ir for _, ir in self]

    def count(self, irrep: Any) -> int:
        return sum(mul for mul, ir in self if ir == Irrep(irrep))

    def __add__(self, other: Any) -> Irreps:  # type: ignore[override]
        return Irreps([*self, *Irreps(other)])

    def __radd__(self, other: Any) -> Irreps:
        return Irreps(other) + self

    def __mul__(self, times: Any) -> Irreps:  # type: ignore[override]
        if not isinstance(times, int):
            raise ClebschError("irreps * irreps: use o3.FullTensorProduct")
        return Irreps(list(self) * times)

    __rmul__ = __mul__  # type: ignore[assignment]

    def simplify(self) -> Irreps:
        """Neighbours of the same irrep become one block, empty blocks go."""
        result: list[tuple[int, Irrep]] = []
        for mul, ir in self:
            if result and result[-1][1] == ir:
                result[-1] = (result[-1][0] + mul, ir)
            elif mul > 0:
                result.append((mul, ir))
        return Irreps(result)

    def remove_zero_multiplicities(self) -> Irreps:
        return Irreps([block for block in self if block.mul > 0])

    def sort(self) -> Any:
        """(irreps, p, inv): block i goes to place p[i]; the block at place j was inv[j]."""
        inverse = sorted(range(len(self)), key=lambda i: self[i].ir)
        places = tuple(inverse.index(i) for i in range(len(self)))
        return Sorted(Irreps([self[i] for i in inverse]), places, tuple(inverse))

    def regroup(self) -> Irreps:
        return self.sort().irreps.simplify()

    def filter(
        self, keep: Any | Callable[[Any], bool] = None, *, drop: Any | Callable[[Any], bool] = None, lmax: int | None = None
    ) -> Irreps:
        """The blocks whose irrep is kept, is not dropped, or is of a degree up to lmax; one of the three is given."""
        if sum(option is not None for option in (keep, drop, lmax)) > 1:
            raise ClebschError("filter: expected one of keep, drop and lmax")
        if lmax is not None:
            return Irreps([block for block in self if block.ir.l <= lmax])
        for option, wanted in ((keep, True), (drop, False)):
            if option is not None:
                chosen = option if callable(option) else _one_of(option)
                return Irreps([block for block in self if bool(chosen(block)) == wanted])
        return self

    def __repr__(self) -> str:
        return "+".join(map(str, self))


class _Channels:
    def __init__(self, irreps: Irreps) -> None:
        self.irreps = irreps

    def __getitem__(self, channels: slice) -> Irreps:
        if not isinstance(channels, slice) or channels.step not in (None, 1):
            raise ClebschError(f"slice_by_mul: expected a slice without a step, got {channels!r}")
        begin, end, _ = channels.indices(self.irreps.num_irreps)
        result, first = [], 0
        for mul, ir in self.irreps:
            kept = min(end, first + mul) - max(begin, first)
            if kept > 0:
                result.append((kept, ir))
            first += mul
        return Irreps(result)


def _block(item: Any) -> MulIr:
    if isinstance(item, (str, Irrep)):
        blocks = Irreps(item)
        if len(blocks) != 1:
            raise ClebschError(f"irreps: expected one block per item, got {item!r}")
        return blocks[0]
    mul, ir = item
    if not isinstance(mul, int) or mul < 0:
        raise ClebschError(f"irreps: expected a multiplicity of at least 0, got {mul!r}")
    return MulIr(mul, ir)


def _one_of(irreps: Any) -> Callable[[MulIr], bool]:
    if isinstance(irreps, str):
        allowed: Iterable[Any] = [ir for _, ir in Irreps(irreps)]
    elif isinstance(irreps, Irrep):
        allowed = [irreps]
    elif isinstance(irreps, MulIr):
        allowed = [irreps.ir]
    else:
        allowed = [block.ir for block in Irreps(irreps)]
    return lambda block: block.ir in allowed
