"""e3nn's `o3`: irreps, tensor products, linear maps, spherical harmonics, norms."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ... import torch as ct
from ..._library import ClebschError, UnsupportedError
from ..._tensor_products import fully_connected, input_sizes, path_shape
from ...irreps import wigner_3j as _wigner_3j
from ...operation import build
from ...torch.modules import _OnRows, _Weighted
from ._irreps import Irrep, Irreps

__all__ = [
    "ElementwiseTensorProduct",
    "FullTensorProduct",
    "FullyConnectedTensorProduct",
    "Instruction",
    "Irrep",
    "Irreps",
    "Linear",
    "Norm",
    "SphericalHarmonics",
    "TensorProduct",
    "TensorSquare",
    "spherical_harmonics",
    "wigner_3j",
]

Instruction = namedtuple("Instruction", ["i_in1", "i_in2", "i_out", "connection_mode", "has_weight", "path_weight", "path_shape"])
LinearInstruction = namedtuple("LinearInstruction", ["i_in", "i_out", "path_shape", "path_weight"])


def __getattr__(name: str) -> Any:
    """What is not here (rotations, grids, reduced products) comes from e3nn."""
    if not name.startswith("_"):
        try:
            from e3nn import o3 as theirs
        except ImportError:
            raise AttributeError(f"o3.{name} is not part of clebsch.compat.e3nn; with e3nn installed it comes from there") from None
        return getattr(theirs, name)
    raise AttributeError(name)


class _Views:
    """Weights by instruction."""

    instructions: Sequence[Any]
    weight: Tensor
    weight_numel: int
    internal_weights: bool
    shared_weights: bool

    def _weights(self, weight: Tensor | None) -> Tensor:
        if weight is None and not self.internal_weights:
            raise ClebschError("weight: expected one, the module has none inside")
        return self.weight if weight is None else weight

    def _weighted(self) -> list[int]:
        return [i for i, ins in enumerate(self.instructions) if getattr(ins, "has_weight", True)]

    def weight_view_for_instruction(self, instruction: int, weight: Tensor | None = None) -> Tensor:
        """The weights of one instruction, in its shape."""
        if instruction not in self._weighted():
            raise ClebschError(f"instruction: expected one with weights, got {instruction}")
        return dict(self._views(weight))[instruction]

    def weight_views(self, weight: Tensor | None = None, yield_instruction: bool = False) -> Iterable[Any]:
        """The weights of every instruction that has some, in its shape; with its number and itself if wanted."""
        for i, view in self._views(weight):
            yield (i, self.instructions[i], view) if yield_instruction else view

    def _views(self, weight: Tensor | None) -> Iterable[tuple[int, Tensor]]:
        weight, begin = self._weights(weight), 0
        for i in self._weighted():
            shape = self.instructions[i].path_shape
            size = math.prod(shape)
            yield i, weight.narrow(-1, begin, size).reshape(*weight.shape[:-1], *shape)
            begin += size


class TensorProduct(_Views, ct.TensorProduct):
    """e3nn's `o3.TensorProduct`. Weights of a call: a tensor, or a list with one tensor per weighted instruction."""

    def __init__(
        self,
        irreps_in1: Any,
        irreps_in2: Any,
        irreps_out: Any,
        instructions: Sequence[tuple[Any, ...]],
        in1_var: Any = None,
        in2_var: Any = None,
        out_var: Any = None,
        irrep_normalization: str | None = None,
        path_normalization: str | None = None,
        internal_weights: bool | None = None,
        shared_weights: bool | None = None,
        compile_left_right: bool = True,
        compile_right: bool = False,
        normalization: str | None = None,
        _specialized_code: bool | None = None,
        _optimize_einsums: bool | None = None,
        signs: str = "e3nn-0.5",
    ) -> None:
        if compile_right or not compile_left_right:
            raise UnsupportedError("TensorProduct: expected compile_left_right=True, compile_right=False; there is no right()")
        in1, in2, out = Irreps(irreps_in1), Irreps(irreps_in2), Irreps(irreps_out)
        irrep_normalization = irrep_normalization or normalization
        super().__init__(
            in1,
            in2,
            out,
            [tuple(instruction) for instruction in instructions],
            in1_var,
            in2_var,
            out_var,
            irrep_normalization,
            path_normalization,
            internal_weights,
            shared_weights,
            signs=signs,
        )
        self.irreps_in1, self.irreps_in2, self.irreps_out = in1, in2, out  # type: ignore[assignment]
        variances = [
            [1.0] * len(irreps) if v is None else list(v) for irreps, v in ((in1, in1_var), (in2, in2_var), (out, out_var))
        ]
        self.instructions = _normalized(
            (in1, in2, out), instructions, variances, irrep_normalization or "component", path_normalization or "element"
        )

    def forward(self, x: Tensor, y: Tensor, weight: Tensor | Sequence[Tensor] | None = None) -> Tensor:
        if weight is not None and not isinstance(weight, Tensor):
            weight = _one_tensor(weight, [self.instructions[i].path_shape for i in self._weighted()], self.shared_weights)
        return super().forward(x, y, weight)


def _one_tensor(weights: Sequence[Tensor], shapes: Sequence[tuple[int, ...]], shared: bool) -> Tensor:
    if len(weights) != len(shapes):
        raise ClebschError(f"weight: expected {len(shapes)} tensors, one per weighted instruction, got {len(weights)}")
    leading = () if shared else (-1,)
    return torch.cat([w.reshape(*leading, math.prod(shape)) for w, shape in zip(weights, shapes, strict=True)], dim=-1)


def _normalized(
    irreps: tuple[Irreps, Irreps, Irreps], instructions: Any, variances: Any, irrep_normalization: str, path_normalization: str
) -> list[Instruction]:
    """As e3nn's modules show them: with the factor of each path and the shape of its weights (docs/conventions.md)."""
    in1, in2, out = irreps
    v1, v2, vo = variances
    full = [(*ins, 1.0) if len(ins) == 5 else tuple(ins)[:6] for ins in instructions]

    def terms(i: int, j: int, mode: str) -> int:
        m1, m2 = in1[i].mul, in2[j].mul
        return {"uvw": m1 * m2, "uvu": m2, "uvv": m1, "uuw": m1, "u<vw": m1 * (m2 - 1) // 2}.get(mode, 1)

    result = []
    for i, j, k, mode, weighted, weight in full:
        m1, m2, mo = in1[i].mul, in2[j].mul, out[k].mul
        alpha = {"component": out[k].ir.dim, "norm": in1[i].ir.dim * in2[j].ir.dim, "none": 1}[irrep_normalization]
        same = [other for other in full if other[2] == k]
        if path_normalization == "element":
            x = sum(v1[a] * v2[b] * terms(a, b, other_mode) for a, b, _, other_mode, *_ in same)
        elif path_normalization == "path":
            x = v1[i] * v2[j] * terms(i, j, mode) * len(same)
        else:
            x = 1.0
        factor = math.sqrt(float(alpha * vo[k] * weight / x)) if x > 0 else math.sqrt(float(alpha * vo[k] * weight))
        result.append(Instruction(i, j, k, mode, bool(weighted), factor, path_shape(mode, m1, m2, mo)))
    return result


class FullyConnectedTensorProduct(TensorProduct):
    """e3nn's `o3.FullyConnectedTensorProduct`: every allowed triple of blocks, all channels mixed."""

    def __init__(
        self,
        irreps_in1: Any,
        irreps_in2: Any,
        irreps_out: Any,
        irrep_normalization: str | None = None,
        path_normalization: str | None = None,
        **options: Any,
    ) -> None:
        in1, in2, out = Irreps(irreps_in1), Irreps(irreps_in2), Irreps(irreps_out)
        options |= {"irrep_normalization": irrep_normalization, "path_normalization": path_normalization}
        super().__init__(in1, in2, out, fully_connected(in1, in2, out), **options)


class _Unweighted(TensorProduct):
    """A product of two inputs without weights; a subclass names the blocks that meet."""

    def _make(self, in1: Irreps, in2: Irreps, pairs: Sequence[tuple[int, int]], keep: Any, mode: str, options: Any) -> None:
        wanted = None if keep is None else [Irrep(ir) for ir in keep]
        outputs: list[tuple[int, Irrep]] = []
        instructions: list[Any] = []
        for i, j in pairs:
            for ir in in1[i].ir * in2[j].ir:
                if wanted is None or ir in wanted:
                    instructions.append((i, j, len(outputs), mode, False))
                    outputs.append((in1[i].mul * in2[j].mul if mode == "uvuv" else in1[i].mul, ir))
        out, instructions = self._ordered(Irreps(outputs), instructions)
        super().__init__(in1, in2, out, instructions, **options)

    def _ordered(self, outputs: Irreps, instructions: list[Any]) -> tuple[Irreps, list[Any]]:
        return outputs, instructions


class FullTensorProduct(_Unweighted):
    """e3nn's `o3.FullTensorProduct`: every product of two blocks, outputs sorted."""

    def __init__(
        self, irreps_in1: Any, irreps_in2: Any, filter_ir_out: Any = None, irrep_normalization: str | None = None, **options: Any
    ) -> None:
        in1, in2 = Irreps(irreps_in1).simplify(), Irreps(irreps_in2).simplify()
        pairs = [(i, j) for i in range(len(in1)) for j in range(len(in2))]
        self._make(in1, in2, pairs, filter_ir_out, "uvuv", options | {"irrep_normalization": irrep_normalization})

    def _ordered(self, outputs: Irreps, instructions: list[Any]) -> tuple[Irreps, list[Any]]:
        out, places, _ = outputs.sort()
        return out, [(i, j, places[k], mode, weighted) for i, j, k, mode, weighted in instructions]


class ElementwiseTensorProduct(_Unweighted):
    """e3nn's `o3.ElementwiseTensorProduct`: channel n with channel n."""

    def __init__(
        self, irreps_in1: Any, irreps_in2: Any, filter_ir_out: Any = None, irrep_normalization: str | None = None, **options: Any
    ) -> None:
        in1, in2 = Irreps(irreps_in1).simplify(), Irreps(irreps_in2).simplify()
        if in1.num_irreps != in2.num_irreps:
            raise ClebschError(
                f"irreps_in2: expected {in1.num_irreps} irreps as in irreps_in1 ({in1}), got {in2.num_irreps} ({in2})"
            )
        in1, in2 = _aligned(in1, in2), _aligned(in2, in1)
        pairs = [(i, i) for i in range(len(in1))]
        self._make(in1, in2, pairs, filter_ir_out, "uuu", options | {"irrep_normalization": irrep_normalization})


def _aligned(irreps: Irreps, other: Irreps) -> Irreps:
    """Blocks cut where the other's end."""

    def ends(of: Irreps) -> list[int]:
        return [sum(mul for mul, _ in of[: i + 1]) for i in range(len(of))]

    borders = sorted({0, *ends(irreps), *ends(other)})
    channels = [ir for mul, ir in irreps for _ in range(mul)]
    return Irreps([(end - begin, channels[begin]) for begin, end in zip(borders, borders[1:], strict=False)])


class TensorSquare(_Views, _Weighted):
    """e3nn's `o3.TensorSquare`: an input with itself; with `irreps_out` fully connected and weighted."""

    def __init__(
        self,
        irreps_in: Any,
        irreps_out: Any = None,
        filter_ir_out: Any = None,
        irrep_normalization: str | None = None,
        internal_weights: bool | None = None,
        shared_weights: bool | None = None,
        path_normalization: str | None = None,
        signs: str = "e3nn-0.5",
        **options: Any,
    ) -> None:
        super().__init__()
        if irreps_out is not None and filter_ir_out is not None:
            raise ClebschError("filter_ir_out: expected none where irreps_out says what to keep")
        unknown = set(options) - {"compile_left_right", "_specialized_code", "_optimize_einsums"}
        if unknown:
            raise UnsupportedError(f"TensorSquare: unknown option {sorted(unknown)[0]!r}")
        self.irreps_in = self.irreps_in1 = self.irreps_in2 = Irreps(irreps_in).simplify()
        chosen: dict[str, Any] = {} if irreps_out is None else {"out": Irreps(irreps_out).simplify()}
        if filter_ir_out is not None:
            chosen["filter"] = "+".join(str(Irrep(ir)) for ir in filter_ir_out)
        description = build(
            "tensor_square",
            in_=self.irreps_in,
            irrep_normalization=irrep_normalization or "component",
            path_normalization=path_normalization or "element",
            weights="per_row" if shared_weights is False else "shared",
            signs=signs,
            **chosen,
        )
        self._adopt(description)
        sizes = input_sizes(description)
        self.irreps_out = Irreps(description.outputs[0].segments)
        self.weight_numel, self.signs = sizes.get("weights", 0), signs
        self._decide_weights(internal_weights, shared_weights, self.weight_numel > 0)
        self._make_weight("weight", (self.weight_numel,), torch.randn)
        reached = _squares(self.irreps_in)
        self._make_mask(ct.modules.Irreps(self.irreps_out), [k for k, (_, ir) in enumerate(self.irreps_out) if ir in reached])

    def forward(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        per_row, shared = [("x", x, self.irreps_in.dim)], []
        if self.weight_numel:
            weight = self._given("weight", weight, (self.weight_numel,))
            if self.shared_weights:
                shared.append(weight.reshape(1, self.weight_numel))
            else:
                per_row.append(("weight", weight, self.weight_numel))
        return self._run(per_row, shared)

    def extra_repr(self) -> str:
        return f"{self.irreps_in} -> {self.irreps_out}, {self.weight_numel} weights"


def _squares(irreps: Irreps) -> set[Irrep]:
    """What products of two channels of these irreps hold."""
    found: set[Irrep] = set()
    for i, (mul, first) in enumerate(irreps):
        found.update(ir for ir in first * first if mul > 1 or ir.l % 2 == 0)
        for _, second in irreps[i + 1 :]:
            found.update(first * second)
    return found


class Linear(_Views, ct.Linear):
    """e3nn's `o3.Linear`: channels mixed within equal irreps. Weights of a call: a tensor, or one per instruction."""

    def __init__(self, irreps_in: Any, irreps_out: Any, *, _optimize_einsums: bool | None = None, **options: Any) -> None:
        blocks_in, blocks_out = Irreps(irreps_in), Irreps(irreps_out)
        if isinstance(options.get("biases"), Sequence):
            options["biases"] = list(options["biases"])
        super().__init__(blocks_in, blocks_out, **options)
        self.irreps_in, self.irreps_out = blocks_in, blocks_out  # type: ignore[assignment]
        given = options.get("instructions")
        if given is None:
            given = [(i, j) for i, a in enumerate(blocks_in) for j, b in enumerate(blocks_out) if a.ir == b.ir]
        path_normalization = options.get("path_normalization", "element")
        self.instructions = []
        for i, j in given:
            same = [a for a, b in given if b == j]
            fan = {"element": sum(blocks_in[a].mul for a in same), "path": len(same) * blocks_in[i].mul}[path_normalization]
            fan *= options.get("f_in") or 1
            shape = (blocks_in[i].mul, blocks_out[j].mul)
            self.instructions.append(LinearInstruction(i, j, shape, 1.0 if fan == 0 else fan**-0.5))

    def forward(
        self, features: Tensor, weight: Tensor | Sequence[Tensor] | None = None, bias: Tensor | Sequence[Tensor] | None = None
    ) -> Tensor:
        if weight is not None and not isinstance(weight, Tensor):
            weight = _one_tensor(weight, [ins.path_shape for ins in self.instructions], self.shared_weights)
        if bias is not None and not isinstance(bias, Tensor):
            bias = torch.cat([each.reshape(-1) for each in bias])
        return super().forward(features, weight, bias)


class SphericalHarmonics(ct.SphericalHarmonics):
    """e3nn's `o3.SphericalHarmonics` of vectors (..., 3); the gradient at a vector of length zero is 0."""

    def __init__(self, irreps_out: Any, normalize: bool, normalization: str = "integral", irreps_in: Any = None) -> None:
        vectors = None if irreps_in is None else Irreps(irreps_in)
        if isinstance(irreps_out, str) or not (
            isinstance(irreps_out, int) or all(isinstance(degree, int) for degree in irreps_out)
        ):
            irreps_out = Irreps(irreps_out)
            if vectors is None and any(ir.l % 2 and ir.p == 1 for _, ir in irreps_out):
                vectors = Irreps("1e")
        super().__init__(irreps_out, normalize, normalization, vectors)
        self.irreps_in, self.irreps_out = Irreps(self.irreps_in), Irreps(self.irreps_out)  # type: ignore[assignment]


@cache
def _harmonics(degrees: str, normalize: bool, normalization: str) -> SphericalHarmonics:
    return SphericalHarmonics(degrees, normalize, normalization)


def spherical_harmonics(l: Any, x: Tensor, normalize: bool, normalization: str = "integral") -> Tensor:  # noqa: E741
    """e3nn's `o3.spherical_harmonics`: of vectors (..., 3); `l` is a degree, a list of degrees, or irreps."""
    if isinstance(l, (str, Irreps)):
        irreps = Irreps(l)
    elif isinstance(l, int) or all(isinstance(degree, int) for degree in l):
        irreps = Irreps([(1, (degree, (-1) ** degree)) for degree in ([l] if isinstance(l, int) else l)])
    else:
        irreps = Irreps(l)
    return _harmonics(str(irreps), normalize, normalization)(x)


class Norm(_OnRows):
    """e3nn's `o3.Norm`: the norm of every channel; the gradient of a channel that is zero is 0."""

    def __init__(self, irreps_in: Any, squared: bool = False) -> None:
        super().__init__()
        self.irreps_in, self.squared = Irreps(irreps_in).simplify(), squared
        self.irreps_out = Irreps([(mul, (0, 1)) for mul, _ in self.irreps_in]).simplify()
        self._adopt(build("norm", irreps=self.irreps_in, squared=squared))
        self.tp = torch.nn.Module()  # e3nn's state has its buffers
        self.tp.register_buffer("weight", torch.Tensor())
        self.tp.register_buffer("output_mask", torch.ones(self.irreps_out.dim))

    def forward(self, features: Tensor) -> Tensor:
        return self._run([("features", features, self.irreps_in.dim)], [])

    def extra_repr(self) -> str:
        return str(self.irreps_in)


def wigner_3j(l1: int, l2: int, l3: int, dtype: torch.dtype | None = None, device: Any = None) -> Tensor:
    """Coupling coefficients (2 l1 + 1, 2 l2 + 1, 2 l3 + 1), in the default dtype unless said otherwise."""
    return torch.from_numpy(_wigner_3j(l1, l2, l3)).to(dtype=dtype or torch.get_default_dtype(), device=device)
