"""Puts Clebsch's operations into an existing model: e3nn's products, linear maps and harmonics, MACE's symmetric contractions.

A module that is changed stays what it is, with its class, parameters, buffers and hooks; what it computes is looked up in one
attribute, `forward`, and taking that away undoes the change.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .._library import ClebschError, UnsupportedError
from .._verify import operation_of
from ..operation import build
from . import _operator
from ._accelerate_convolution import Convolution, MaceProduct, NequIPScatter, SevenNetConvolution
from ._accelerate_module import Forward
from ._operator import run

LIBRARIES = ("e3nn", "mace", "nequip", "sevenn")
SIGN_TABLES = ("e3nn-0.5", "e3nn-0.4")
#: What may differ on random rows, norm-wise. Modules that were built in float32 keep coefficients of that precision in float64.
BOUNDS = {torch.float32: 2e-5, torch.float64: 2e-6, torch.bfloat16: 5e-2, torch.float16: 5e-3}


@dataclass
class Acceleration:
    """What `accelerate` did: `changed` (name, what it is), `left` (name, class, why)."""

    changed: list[tuple[str, str]] = field(default_factory=list)
    left: list[tuple[str, str, str]] = field(default_factory=list)
    seconds: tuple[float, float] | None = None  #: of the step before and after
    share: float | None = None  #: of the step before that was spent in what is changed now, derivatives included
    _set: list[tuple[torch.nn.Module, str]] = field(default_factory=list, repr=False)

    def undo(self) -> None:
        """The model computes again what it did before; parameters keep what they have learned since."""
        for module, attribute in self._set:
            module.__dict__.pop(attribute, None)
        self._set.clear()

    def __str__(self) -> str:
        lines = [f"changed: {len(self.changed)} modules"]
        lines += [f"  {name or '(the model)'}: {what}" for name, what in self.changed]
        lines.append(f"left as they are: {len(self.left)}")
        lines += [f"  {name or '(the model)'} ({kind}): {why}" for name, kind, why in self.left]
        if self.seconds is not None and self.share is not None:
            before, after = self.seconds
            lines.append(
                f"a step took {before:.3g} s, {self.share:.0%} of it in what was changed; now {after:.3g} s ({before / after:.1f}x)"
            )
        return "\n".join(lines)


def accelerate(model: torch.nn.Module, show: bool = True, step: Callable[[], Any] | None = None) -> Acceleration:
    """Lets modules inside `model` run here, in place, and prints what it changed, what it left and why.

    Known are e3nn's products, linear maps and harmonics, MACE's symmetric contractions, and what NequIP, SevenNet and MACE gather,
    multiply and scatter, as one convolution. Every change is tried on random rows first: a module whose results differ is left.
    Parameters stay the same objects, so that optimisers and `state_dict` know them. `undo()` of the result takes everything back.
    Before `torch.compile`, not after; TorchScript is left as it is.

    `step` calls the model as you do (energies, forces, a training step; four times before and after): how long it took and takes is
    printed too, and what share of it was spent in what is changed.
    """
    report = Acceleration()
    _visit(model, "", report, set())
    if step is not None:
        try:
            _measure(report, step)
        except BaseException:
            report.undo()
            raise
    if show:
        print(report)
    return report


def _measure(report: Acceleration, step: Callable[[], Any]) -> None:
    """What a step leaves to the rest of the model takes as long before as after."""
    changed = [(module, attribute, module.__dict__[attribute]) for module, attribute in report._set]
    after, ours = _seconds(step)
    report.undo()
    try:
        before, _ = _seconds(step)
    finally:
        for module, attribute, value in changed:
            setattr(module, attribute, value)
            report._set.append((module, attribute))
    report.seconds, report.share = (before, after), max(0.0, 1 - (after - ours) / before)


def _seconds(step: Callable[[], Any]) -> tuple[float, float]:
    """Of the fastest of three steps, after one that prepares: all, and in this library's operator."""
    inside, real = [0.0], _operator._call

    def now() -> float:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        return time.perf_counter()

    def timed(text: str, inputs: list[Tensor], indices: list[Tensor], rows: list[int]) -> list[Tensor]:
        begin = now()
        result = real(text, inputs, indices, rows)
        inside[0] += now() - begin
        return result

    step()
    found = []
    _operator._call = timed
    try:
        for _ in range(3):
            inside[0], begin = 0.0, now()
            step()
            found.append((now() - begin, inside[0]))
    finally:
        _operator._call = real
    return min(found)


def _visit(module: Any, name: str, report: Acceleration, seen: set[int]) -> None:
    if id(module) in seen:
        return
    seen.add(id(module))
    try:
        replacement = _replacement(module)
    except (UnsupportedError, ClebschError) as error:
        report.left.append((name, _kind(module), str(error)))
        replacement = None
        if not _has_parts(module):
            return
    if replacement is not None:
        _put(module, replacement, name, report)
        return
    if _asks_for_sums(module):
        product, place = module.conv_tp, f"{name}.conv_tp" if name else "conv_tp"
        try:
            _put(product, _tried(MaceProduct, module), place, report)
            module.conv_fusion = True
            report._set.append((module, "conv_fusion"))
            seen.add(id(product))
        except (UnsupportedError, ClebschError) as error:
            report.left.append((name, f"gather and scatter of {_kind(module)}", str(error)))
    for child_name, child in module.named_children():
        _visit(child, f"{name}.{child_name}" if name else child_name, report, seen)


def _put(module: torch.nn.Module, replacement: Forward, name: str, report: Acceleration) -> None:
    module.forward = replacement
    report.changed.append((name, replacement.text()))
    report._set.append((module, "forward"))


def _asks_for_sums(module: torch.nn.Module) -> bool:
    """Whether it is one of MACE's blocks, which ask `conv_tp` for sums over edges where they have an attribute `conv_fusion`."""
    mace = any((cls.__module__.split(".")[0], cls.__name__) == ("mace", "InteractionBlock") for cls in type(module).__mro__)
    code = getattr(type(module).forward, "__code__", None)
    return mace and code is not None and "conv_fusion" in code.co_consts and not hasattr(module, "conv_fusion")


def _has_parts(module: torch.nn.Module) -> bool:
    """Whether what could not be replaced as a whole has modules inside that may be."""
    names = [(cls.__module__.split(".")[0], cls.__name__) for cls in type(module).__mro__]
    return any(name in _MAKERS and issubclass(_MAKERS[name], Convolution) for name in names)


def _kind(module: torch.nn.Module) -> str:
    return getattr(module, "original_name", type(module).__name__)


def _replacement(module: torch.nn.Module) -> Forward | None:
    """What can stand for the module; nothing for one that is no leaf of this kind. UnsupportedError: it is, but stays, and why."""
    known = [cls for cls in type(module).__mro__ if (cls.__module__.split(".")[0], cls.__name__) in _MAKERS]
    if isinstance(module, torch.jit.ScriptModule):
        if any(_kind(module) == name for _, name in _MAKERS):
            raise UnsupportedError("it is TorchScript: accelerate the model before it is scripted")
        return None
    if not known:
        return None
    if "forward" in module.__dict__:
        raise UnsupportedError("its forward was replaced already")
    if (type(module).forward.__module__ or "").split(".")[0] not in LIBRARIES:
        raise UnsupportedError("its class has a forward of its own")
    return _tried(_MAKERS[known[0].__module__.split(".")[0], known[0].__name__], module)


def _tried(maker: Callable[[Any, str], Forward], module: torch.nn.Module) -> Forward:
    """The replacement with the couplings' signs that give the module's results."""
    difference = math.inf
    for signs in SIGN_TABLES:
        replacement = maker(module, signs)
        difference = replacement.difference()
        if difference < BOUNDS.get(replacement.dtype, 0.0):
            return replacement
    raise UnsupportedError(f"its results differ by {difference:.1e} on random rows")


def _flat(weight: Any, leading: int) -> Any:
    """Weights as one tensor; e3nn also takes a list with one for each instruction."""
    if weight is None or isinstance(weight, Tensor):
        return weight
    return torch.cat([each.reshape(*each.shape[:leading], -1) for each in weight], dim=-1)


class _Weighted(Forward):
    def weights(self, weight: Any) -> tuple[list[Any], list[Tensor]]:
        """(per row, shared) as `_OnRows._run` takes them."""
        module = self.module
        count = module.weight_numel
        if not count:
            return [], []
        leading = 0 if module.shared_weights else 1
        weight = module.weight if weight is None else _flat(weight, leading)
        if weight.shape[-1:] != (count,):
            raise ClebschError(f"weight: expected a last dimension of {count}, got shape {tuple(weight.shape)}")
        return ([], [weight.reshape(1, count)]) if module.shared_weights else ([("weight", weight, count)], [])

    def example_weight(self, normal: Callable[..., Tensor]) -> list[Tensor]:
        module = self.module
        if not module.weight_numel or module.internal_weights:
            return []
        return [normal(module.weight_numel) if module.shared_weights else normal(3, module.weight_numel)]


class _Product(_Weighted):
    """o3.TensorProduct and its subclasses."""

    def __init__(self, module: Any, signs: str) -> None:
        super().__init__(module, operation_of(module, signs))
        self.dims = module.irreps_in1.dim, module.irreps_in2.dim  # tracers cannot look at e3nn's irreps

    def text(self) -> str:
        module: Any = self.module
        return f"{type(module).__name__} {module.irreps_in1} x {module.irreps_in2} -> {module.irreps_out}"

    def example(self, normal: Callable[..., Tensor]) -> Sequence[Any]:
        return normal(3, self.dims[0]), normal(3, self.dims[1]), *self.example_weight(normal)

    def __call__(self, x: Tensor, y: Tensor, weight: Any = None) -> Tensor:  # type: ignore[override]
        per_row, shared = self.weights(weight)
        return self.rows._run([("x", x, self.dims[0]), ("y", y, self.dims[1]), *per_row], shared)


class _Linear(_Weighted):
    """o3.Linear, with biases too."""

    def __init__(self, module: Any, signs: str) -> None:
        if module.weight.dim() > 1 or getattr(module, "f_in", None):
            raise UnsupportedError("Linear with f_in and f_out")
        if not module.weight_numel:
            raise UnsupportedError("Linear without weights")
        self.dim = module.irreps_in.dim
        biased = sorted({ins.i_out for ins in module.instructions if ins.i_in < 0})
        if not biased:
            super().__init__(module, operation_of(module))
            return
        from .._verify import _linear_normalization, _linear_paths

        paths = _linear_paths(module)
        description = build(
            "linear",
            in_=module.irreps_in,
            out=module.irreps_out,
            instructions="; ".join(f"{ins.i_in},{ins.i_out}" for ins in paths),
            path_normalization=_linear_normalization(module),
            weights="shared" if module.shared_weights else "per_row",
            biases=",".join(map(str, biased)),
        )
        super().__init__(module, description)

    def text(self) -> str:
        module: Any = self.module
        return f"{type(module).__name__} {module.irreps_in} -> {module.irreps_out}"

    def example(self, normal: Callable[..., Tensor]) -> Sequence[Any]:
        module: Any = self.module
        given: list[Any] = self.example_weight(normal)
        if getattr(module, "bias_numel", 0) and not module.internal_weights:
            given.append(normal(module.bias_numel))
        return normal(3, self.dim), *given

    def __call__(self, features: Tensor, weight: Any = None, bias: Any = None) -> Tensor:  # type: ignore[override]
        module: Any = self.module
        per_row, shared = self.weights(weight)
        if getattr(module, "bias_numel", 0):
            bias = module.bias if bias is None else _flat(bias, 0)
            shared.append(bias.reshape(1, module.bias_numel))
        return self.rows._run([("features", features, self.dim), *per_row], shared)


class _Harmonics(Forward):
    """o3.SphericalHarmonics."""

    def __init__(self, module: Any, signs: str) -> None:
        super().__init__(module, operation_of(module))

    def text(self) -> str:
        return f"SphericalHarmonics {self.module.irreps_out}"

    def example(self, normal: Callable[..., Tensor]) -> Sequence[Any]:
        return (normal(3, 3),)

    def __call__(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return self.rows._run([("x", x, 3)], [])


class _Contraction(Forward):
    """MACE's SymmetricContraction with its own basis tensors. Its second argument is one-hot, or it is refused on the CPU (on a GPU
    looking would stall the queue)."""

    def __init__(self, module: Any, signs: str) -> None:
        self.channels = {block.mul for block in module.irreps_in}
        if len(self.channels) != 1:
            raise UnsupportedError(f"SymmetricContraction of {module.irreps_in}: expected as many channels of every irrep")
        self.channel_count = next(iter(self.channels))
        text, self.places = _bases(module)
        super().__init__(module, build("symmetric_contraction", in_=module.irreps_in, out=module.irreps_out, bases=text))
        self.dims = [block.ir.dim for block in module.irreps_in]

    def text(self) -> str:
        module: Any = self.module
        return f"SymmetricContraction {module.irreps_in} -> {module.irreps_out}"

    def _weights(self) -> list[Tensor]:
        """(elements, parameters, channels) in the order of the bases."""
        contractions: Any = self.module.contractions
        return [
            contraction.weights_max if place < 0 else contraction.weights[place]
            for contraction, places in zip(contractions, self.places, strict=True)
            for place in places
        ]

    def example(self, normal: Callable[..., Tensor]) -> Sequence[Any]:
        elements = self._weights()[0].shape[0]
        species = torch.nn.functional.one_hot(torch.arange(3, device=self.device) % elements, elements)
        return normal(3, self.channel_count, sum(self.dims)), species.to(self.dtype)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        if x.dim() != 3 or tuple(x.shape[1:]) != (self.channel_count, sum(self.dims)):
            raise ClebschError(f"x: expected shape (nodes, {self.channel_count}, {sum(self.dims)}), got {tuple(x.shape)}")
        if not torch.compiler.is_compiling() and y.is_cpu and bool(((y != 0).sum(1) != 1).any() or (y.sum(1) != 1).any()):
            raise ClebschError("y: expected one 1 in every row, as the kernel picks one element's weights")
        rows = torch.cat([part.flatten(1) for part in x.split(self.dims, dim=2)], dim=1)
        parts = self._weights()
        weights = torch.cat([part.flatten(1) for part in parts], dim=1)
        sizes = {"node": rows.shape[0], "element": weights.shape[0]}
        return run(self.rows.text, [rows, weights], [y.argmax(1)], [sizes[space] for space in ("node", "element")])[0]


def _bases(module: Any) -> tuple[str, list[list[int]]]:
    """The U tensors as the builder's option, and where the weights of each correlation are: in `weights`; -1: `weights_max`."""
    texts, places = [], []
    for segment, contraction in enumerate(module.contractions):
        correlation, of_segment = contraction.correlation, []
        for degree in range(1, correlation + 1):
            basis = contraction.U_tensors(degree)  # (m,) components..., parameter; no m axis for scalars
            basis = basis[None] if basis.dim() == degree + 1 else basis
            where = basis.nonzero()
            values = basis[tuple(where.T)].double().tolist()
            entries = [
                f"{','.join(map(str, components))},{parameter},{m}:{value!r}"
                for (m, *components, parameter), value in zip(where.tolist(), values, strict=True)
            ]
            texts.append(f"{segment},{degree},{basis.shape[-1]}: {' '.join(entries)}")
            of_segment.append(-1 if degree == correlation else correlation - 1 - degree)
        places.append(of_segment)
    return ";".join(texts), places


_MAKERS: dict[tuple[str, str], type[Forward]] = {
    ("e3nn", "TensorProduct"): _Product,
    ("e3nn", "Linear"): _Linear,
    ("e3nn", "SphericalHarmonics"): _Harmonics,
    ("mace", "SymmetricContraction"): _Contraction,
    ("nequip", "TensorProductScatter"): NequIPScatter,
    ("sevenn", "IrrepsConvolution"): SevenNetConvolution,
}
