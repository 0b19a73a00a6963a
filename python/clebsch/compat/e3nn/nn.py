"""e3nn's `nn`: gates, activations, batch norm and what picks blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..._library import ClebschError
from ...operation import build
from ...torch.modules import _OnRows
from . import o3
from ._irreps import Irrep, Irreps

__all__ = [
    "Activation",
    "BatchNorm",
    "Dropout",
    "Extract",
    "ExtractIr",
    "FullyConnectedNet",
    "Gate",
    "Identity",
    "NormActivation",
]

# Functions that kernels know, by what users pass.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "silu": (torch.nn.functional.silu, torch.nn.SiLU),
    "tanh": (torch.tanh, torch.nn.functional.tanh, torch.Tensor.tanh, torch.nn.Tanh),
    "sigmoid": (torch.sigmoid, torch.nn.functional.sigmoid, torch.Tensor.sigmoid, torch.nn.Sigmoid),
    "relu": (torch.relu, torch.nn.functional.relu, torch.Tensor.relu, torch.nn.ReLU),
    "absolute": (torch.abs, torch.Tensor.abs),
}
_NAMES = {function: name for name, functions in _FUNCTIONS.items() for function in functions}


def __getattr__(name: str) -> Any:
    """What is not here (functions on spheres and rotations) comes from e3nn."""
    if not name.startswith("_"):
        try:
            from e3nn import nn as theirs
        except ImportError:
            raise AttributeError(f"nn.{name} is not part of clebsch.compat.e3nn; with e3nn installed it comes from there") from None
        return getattr(theirs, name)
    raise AttributeError(name)


class _Normalized(torch.nn.Module):
    """A function times the factor that makes the mean of its square under the normal distribution 1, estimated as e3nn does: from
    the million numbers of seed 0."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        parameter = next(function.parameters(), None) if isinstance(function, torch.nn.Module) else None
        device = torch.device("cpu") if parameter is None else parameter.device
        with torch.no_grad():
            numbers = torch.randn(1_000_000, generator=torch.Generator(device).manual_seed(0), dtype=torch.float64, device=device)
            factor = function(numbers).pow(2).mean().pow(-0.5).item()
        self.f, self.cst = function, factor
        self._is_id = abs(factor - 1) < 1e-4  # nothing to correct

    def forward(self, x: Tensor) -> Tensor:
        return self.f(x) if self._is_id else self.f(x) * self.cst

    def parity(self) -> int:
        """1 even, -1 odd, 0 neither."""
        parameter = next(self.parameters(), None)
        x = torch.linspace(0, 10, 256, device=None if parameter is None else parameter.device)
        plus, minus = self(x), self(-x)
        if (plus - minus).abs().max() < 1e-5:
            return 1
        return -1 if (plus + minus).abs().max() < 1e-5 else 0

    def text(self) -> str | None:
        """The function and its factor as builders take them, or nothing where kernels do not know it."""
        name = _NAMES.get(type(self.f) if isinstance(self.f, torch.nn.Module) else self.f)
        return None if name is None else f"{name}:{1.0 if self._is_id else self.cst!r}"


class Activation(torch.nn.Module):
    """e3nn's `nn.Activation`: functions of scalar blocks, None where a block stays; they are made to keep the second moment."""

    def __init__(self, irreps_in: Any, acts: Sequence[Callable[[Tensor], Tensor] | None]) -> None:
        super().__init__()
        self.irreps_in = Irreps(irreps_in)
        if len(acts) != len(self.irreps_in):
            raise ClebschError(f"acts: expected one per block of {self.irreps_in} ({len(self.irreps_in)}), got {len(acts)}")
        functions: list[Any] = [None if act is None else _Normalized(act) for act in acts]
        self.acts = torch.nn.ModuleList(functions)
        blocks = []
        for (mul, ir), act in zip(self.irreps_in, functions, strict=True):
            if act is not None and ir.l != 0:
                raise ClebschError(f"acts: expected None for a block that is not scalar, got a function for {mul}x{ir}")
            parity = ir.p if act is None or ir.p == 1 else act.parity()
            if parity == 0:
                raise ClebschError(f"acts: expected an even or odd function for {mul}x{ir}, got one that is neither")
            blocks.append((mul, (ir.l, parity)))
        self.irreps_out = Irreps(blocks)

    def texts(self) -> str | None:
        """The functions as builders take them: one for every simplified block, or nothing where kernels do not know them all."""
        names: list[str] = []
        last = None
        act: Any
        for (mul, ir), act in zip(self.irreps_in, self.acts, strict=True):
            name = "none" if act is None else act.text()
            if mul == 0:
                continue
            if name is None or (ir == last and name != names[-1]):
                return None
            if ir != last:
                names.append(name)
            last = ir
        return ",".join(names)

    def forward(self, features: Tensor, dim: int = -1) -> Tensor:
        parts, begin = [], 0
        for (mul, ir), act in zip(self.irreps_in, self.acts, strict=True):
            part = features.narrow(dim, begin, mul * ir.dim)
            parts.append(part if act is None else act(part))
            begin += mul * ir.dim
        return torch.cat(parts, dim) if parts else torch.zeros_like(features)

    def extra_repr(self) -> str:
        return f"{self.irreps_in} -> {self.irreps_out}"


class Gate(_OnRows):
    """e3nn's `nn.Gate`: scalars through functions, other channels times scalars through functions. One kernel where it knows the
    functions (silu, tanh, sigmoid), else PyTorch's functions and a product."""

    def __init__(
        self,
        irreps_scalars: Any,
        act_scalars: Sequence[Callable[[Tensor], Tensor] | None],
        irreps_gates: Any,
        act_gates: Sequence[Callable[[Tensor], Tensor] | None],
        irreps_gated: Any,
    ) -> None:
        super().__init__()
        scalars, gates, gated = Irreps(irreps_scalars), Irreps(irreps_gates), Irreps(irreps_gated)
        for name, irreps in (("irreps_scalars", scalars), ("irreps_gates", gates)):
            if any(ir.l > 0 for _, ir in irreps):
                raise ClebschError(f"{name}: expected scalars, got {irreps}")
        if gates.num_irreps != gated.num_irreps:
            raise ClebschError(f"irreps_gates: expected {gated.num_irreps} as irreps_gated has ({gated}), got {gates.num_irreps}")
        self.irreps_scalars, self.irreps_gates, self.irreps_gated = scalars.simplify(), gates.simplify(), gated.simplify()
        parts = [*self.irreps_scalars, *self.irreps_gates, *self.irreps_gated]
        in_order, places, _ = Irreps(parts).sort()
        self.irreps_in = in_order.simplify()
        self._slices = [in_order.slices()[place] for place in places]
        self.act_scalars, self.act_gates = Activation(scalars, act_scalars), Activation(gates, act_gates)
        self.mul = o3.ElementwiseTensorProduct(gated, self.act_gates.irreps_out)
        self.irreps_out = self.act_scalars.irreps_out + self.mul.irreps_out
        functions = [self.act_scalars.texts(), self.act_gates.texts()]
        self.fused = None not in functions and gated.dim > 0
        if self.fused:
            self._adopt(
                build(
                    "gate",
                    scalars=self.irreps_scalars,
                    scalar_functions=functions[0],
                    gates=self.irreps_gates,
                    gate_functions=functions[1],
                    gated=self.irreps_gated,
                )
            )

    def forward(self, features: Tensor) -> Tensor:
        if self.fused:
            return self._run([("features", features, self.irreps_in.dim)], [])
        if features.shape[-1] != self.irreps_in.dim:
            raise ClebschError(f"features: expected a last dimension of {self.irreps_in.dim}, got shape {tuple(features.shape)}")
        parts = [features[..., where] for where in self._slices]
        first, second = len(self.irreps_scalars), len(self.irreps_scalars) + len(self.irreps_gates)
        results = []
        if first:
            results.append(self.act_scalars(torch.cat(parts[:first], dim=-1)))
        if second > first:
            results.append(self.mul(torch.cat(parts[second:], dim=-1), self.act_gates(torch.cat(parts[first:second], dim=-1))))
        return torch.cat(results, dim=-1) if results else torch.zeros_like(features)

    def extra_repr(self) -> str:
        return f"{self.irreps_in} -> {self.irreps_out}"


class NormActivation(torch.nn.Module):
    """e3nn's `nn.NormActivation`: every channel times a function of its norm, over its norm if `normalize`."""

    def __init__(
        self,
        irreps_in: Any,
        scalar_nonlinearity: Callable[[Tensor], Tensor],
        normalize: bool = True,
        epsilon: float | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        if epsilon is not None and not normalize:
            raise ClebschError("epsilon: expected None where normalize is False")
        if epsilon is not None and not epsilon > 0:
            raise ClebschError(f"epsilon: expected a positive number, got {epsilon}")
        self.irreps_in = self.irreps_out = Irreps(irreps_in)
        self.epsilon = 1e-8 if epsilon is None and normalize else epsilon
        self.norm = o3.Norm(self.irreps_in, squared=self.epsilon is not None)
        self.scalar_nonlinearity, self.normalize, self.bias = scalar_nonlinearity, normalize, bias
        if bias:
            self.biases = torch.nn.Parameter(torch.zeros(self.irreps_in.num_irreps))
        self.scalar_multiplier = o3.ElementwiseTensorProduct(self.norm.irreps_out, self.irreps_in)

    def forward(self, features: Tensor) -> Tensor:
        norms = self.norm(features)
        if self.epsilon is not None:
            norms = torch.where(norms < self.epsilon**2, self.epsilon**2, norms).sqrt()
        scales = self.scalar_nonlinearity(norms + self.biases if self.bias else norms)
        return self.scalar_multiplier(scales / norms if self.normalize else scales, features)


class BatchNorm(torch.nn.Module):
    """e3nn's `nn.BatchNorm`: scalars 0e lose their mean, every channel is divided by the root of its mean squared norm (over the
    batch, or with `instance` over the samples of each of its members) and multiplied by a weight."""

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self,
        irreps: Any,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        reduce: str = "mean",
        instance: bool = False,
        include_bias: bool = True,
        normalization: str = "component",
    ) -> None:
        super().__init__()
        for name, value, choices in (
            ("reduce", reduce, ("mean", "max")),
            ("normalization", normalization, ("norm", "component")),
        ):
            if value not in choices:
                raise ClebschError(f"{name}: expected {choices[0]!r} or {choices[1]!r}, got {value!r}")
        self.irreps, self.eps, self.momentum, self.affine = Irreps(irreps), eps, momentum, affine
        self.reduce, self.instance, self.include_bias, self.normalization = reduce, instance, include_bias, normalization
        channels, scalars = self.irreps.num_irreps, self.irreps.count("0e")
        self.register_buffer("running_mean", None if instance else torch.zeros(scalars))
        self.register_buffer("running_var", None if instance else torch.ones(channels))
        self.register_parameter("weight", torch.nn.Parameter(torch.ones(channels)) if affine else None)
        if include_bias:
            self.register_parameter("bias", torch.nn.Parameter(torch.zeros(scalars)) if affine else None)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - e3nn's name
        if input.shape[-1] != self.irreps.dim:
            raise ClebschError(f"input: expected a last dimension of {self.irreps.dim}, got shape {tuple(input.shape)}")
        rows = input.reshape(input.shape[0], -1, self.irreps.dim)
        measured = self.training or self.instance
        fields, means, variances = [], [], []
        channel = scalar = 0
        for (mul, ir), where in zip(self.irreps, self.irreps.slices(), strict=True):
            field = rows[..., where].reshape(*rows.shape[:2], mul, ir.dim)
            if ir.is_scalar():
                mean = self._mean(field) if measured else self.running_mean[scalar : scalar + mul]
                means.append(mean)
                field = field - mean.reshape(-1, 1, mul, 1)
            variance = self._variance(field) if measured else self.running_var[channel : channel + mul]
            variances.append(variance)
            scale = (variance + self.eps).rsqrt()
            if self.affine:
                scale = scale * self.weight[channel : channel + mul]
            field = field * scale.reshape(-1, 1, mul, 1)
            if ir.is_scalar():
                if self.affine and self.include_bias:
                    field = field + self.bias[scalar : scalar + mul].reshape(mul, 1)
                scalar += mul
            channel += mul
            fields.append(field.reshape(*rows.shape[:2], mul * ir.dim))
        if self.training and not self.instance:
            self._remember(means, variances)
        return torch.cat(fields, dim=-1).reshape(input.shape) if fields else input

    def _mean(self, field: Tensor) -> Tensor:
        return field.mean((1, 3)) if self.instance else field.mean((0, 1, 3))

    def _variance(self, field: Tensor) -> Tensor:
        """Of every channel: (mul), or with `instance` (batch, mul)."""
        squares = field.pow(2).sum(-1) if self.normalization == "norm" else field.pow(2).mean(-1)
        samples = squares.mean(1) if self.reduce == "mean" else squares.amax(1)
        return samples if self.instance else samples.mean(0)

    def _remember(self, means: list[Tensor], variances: list[Tensor]) -> None:
        for running, measured in ((self.running_mean, means), (self.running_var, variances)):
            if measured:
                running.lerp_(torch.cat(measured).detach().to(running.dtype), self.momentum)

    def extra_repr(self) -> str:
        return f"{self.irreps}, eps={self.eps}, momentum={self.momentum}"


class Dropout(torch.nn.Module):
    """e3nn's `nn.Dropout`: whole channels of a member of the batch become zero, the rest grows so that the mean stays."""

    def __init__(self, irreps: Any, p: float) -> None:
        super().__init__()
        self.irreps, self.p = Irreps(irreps), p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        kept = min(max(1.0 - self.p, 0.0), 1.0)
        factors = []
        for mul, ir in self.irreps:
            chosen = x.new_empty(x.shape[0], mul).bernoulli_(kept)
            factors.append((chosen / kept if kept > 0 else chosen).repeat_interleave(ir.dim, dim=1))
        factor = torch.cat(factors, dim=1)
        return x * factor.reshape(x.shape[0], *[1] * (x.dim() - 2), factor.shape[1])

    def extra_repr(self) -> str:
        return f"{self.irreps}, p={self.p}"


class Extract(torch.nn.Module):
    """e3nn's `nn.Extract`: outputs made of blocks of the input, by their numbers."""

    def __init__(
        self, irreps_in: Any, irreps_outs: Sequence[Any], instructions: Sequence[Sequence[int]], squeeze_out: bool = False
    ):
        super().__init__()
        self.irreps_in, self.irreps_outs = Irreps(irreps_in), tuple(Irreps(irreps) for irreps in irreps_outs)
        self.instructions, self.squeeze_out = [tuple(each) for each in instructions], squeeze_out
        chosen = [Irreps([self.irreps_in[i] for i in each]) for each in self.instructions]
        if [irreps.dim for irreps in chosen] != [irreps.dim for irreps in self.irreps_outs]:
            raise ClebschError(f"irreps_outs: expected {chosen}, as the instructions say, got {list(self.irreps_outs)}")

    def forward(self, x: Tensor) -> Any:
        if x.shape[-1] != self.irreps_in.dim:
            raise ClebschError(f"x: expected a last dimension of {self.irreps_in.dim}, got shape {tuple(x.shape)}")
        places = self.irreps_in.slices()
        results = tuple(
            torch.cat([x[..., places[i]] for i in each], dim=-1) if each else x.new_zeros(*x.shape[:-1], 0)
            for each in self.instructions
        )
        return results[0] if self.squeeze_out and len(results) == 1 else results


class ExtractIr(Extract):
    """e3nn's `nn.ExtractIr`: the blocks of one irrep."""

    def __init__(self, irreps_in: Any, ir: Any) -> None:
        irreps, wanted = Irreps(irreps_in), Irrep(ir)
        places = [i for i, (_, each) in enumerate(irreps) if each == wanted]
        super().__init__(irreps, [Irreps([irreps[i] for i in places])], [places], squeeze_out=True)
        self.irreps_out = self.irreps_outs[0]


class Identity(torch.nn.Module):
    """e3nn's `nn.Identity`: the input; irreps in and out are the same."""

    def __init__(self, irreps_in: Any, irreps_out: Any) -> None:
        super().__init__()
        self.irreps_in, self.irreps_out = Irreps(irreps_in).simplify(), Irreps(irreps_out).simplify()
        if self.irreps_in != self.irreps_out:
            raise ClebschError(f"irreps_out: expected {self.irreps_in}, got {self.irreps_out}")
        self.register_buffer("output_mask", torch.ones(self.irreps_out.dim))

    def forward(self, features: Tensor) -> Tensor:
        return features


class _Layer(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int, act: torch.nn.Module | None, var_in: float, var_out: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(inputs, outputs))
        self.act, self.var_out = act, var_out
        self.scale = (inputs * var_in) ** -0.5

    def forward(self, x: Tensor) -> Tensor:
        x = x @ (self.weight * self.scale)
        return (x if self.act is None else self.act(x)) * self.var_out**0.5


class FullyConnectedNet(torch.nn.Sequential):
    """e3nn's `nn.FullyConnectedNet`: a perceptron without biases whose functions keep the second moment; none after the last layer
    unless `out_act`."""

    def __init__(
        self,
        hs: Sequence[int],
        act: Callable[[Tensor], Tensor] | None = None,
        variance_in: float = 1,
        variance_out: float = 1,
        out_act: bool = False,
    ) -> None:
        super().__init__()
        self.hs = list(hs)
        normalized = None if act is None else _Normalized(act)
        for i, (inputs, outputs) in enumerate(zip(self.hs, self.hs[1:], strict=False)):
            last = i == len(self.hs) - 2
            layer = _Layer(
                inputs,
                outputs,
                None if last and not out_act else normalized,
                variance_in if i == 0 else 1,
                variance_out if last else 1,
            )
            self.add_module(f"layer{i}", layer)
