"""cuEquivariance's modules: arguments, weights, their order and names as there, on its own descriptors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import cuequivariance as cue
import torch
from cuequivariance import descriptors
from cuequivariance.group_theory.irreps_array.misc_ui import assert_same_group, default_irreps, default_layout
from torch import Tensor

from ... import torch as ct
from ..._library import ClebschError
from ._segmented import SegmentedPolynomial


class _Module(torch.nn.Module):
    """A descriptor with operands (weights, inputs ..., output) and layouts of one's own; weights inside or given."""

    weight_numel: int

    def _adopt(
        self,
        descriptor: Any,
        layouts: dict[int, Any],
        math_dtype: Any,
        method: str | None,
        use_fallback: bool | None,
        default: str,
    ) -> None:
        if use_fallback is not None:
            warnings.warn("`use_fallback` is deprecated, please use `method` instead", DeprecationWarning, stacklevel=3)
        self.method = method or ("naive" if use_fallback else default)
        chosen = {operand: _layout(layout) for operand, layout in layouts.items()}
        self.f = SegmentedPolynomial(descriptor.polynomial, self.method, math_dtype, layouts=chosen)

    def _decide_weights(self, shared: bool, internal: bool | None, shape: tuple[int, ...], device: Any, dtype: Any) -> None:
        self.shared_weights = shared
        self.internal_weights = shared if internal is None else internal
        if self.internal_weights and not shared:
            raise ValueError("Internal weights should be shared")
        self.weight = torch.nn.Parameter(torch.randn(*shape, device=device, dtype=dtype)) if self.internal_weights else None

    def _weights(self, weight: Tensor | None) -> Tensor:
        if self.weight is not None:
            if weight is not None:
                raise ValueError("Internal weights are used, weight should be None")
            return self.weight
        if weight is None:
            raise ValueError("Internal weights are not used, weight should not be None")
        return weight[None] if weight.dim() == 1 else weight

    def extra_repr(self) -> str:
        return f"shared_weights={self.shared_weights}, internal_weights={self.internal_weights}, weight_numel={self.weight_numel}"

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """cuEquivariance's modules also keep the tensors they were compiled from."""
        for key in [key for key in state_dict if key.startswith((f"{prefix}f.", f"{prefix}transpose_"))]:
            del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _layout(layout: Any) -> str:
    """By name, or as cuEquivariance's own member; None: the one of its `assume` block."""
    names = {cue.mul_ir: "mul_ir", cue.ir_mul: "ir_mul", "mul_ir": "mul_ir", "ir_mul": "ir_mul"}
    if layout is not None and layout not in names:
        raise ClebschError(f"layout: expected mul_ir or ir_mul, got {layout!r}")
    return names[default_layout(layout)]


class ChannelWiseTensorProduct(_Module):
    """`cuequivariance_torch.ChannelWiseTensorProduct`: the channels of the first input kept apart, one weight per path and channel.

    With `indices_1` and `indices_out` it is a convolution: gather, product and scatter in one call.
    """

    def __init__(
        self,
        irreps_in1: Any,
        irreps_in2: Any,
        filter_irreps_out: Sequence[Any] | None = None,
        *,
        layout: Any = None,
        layout_in1: Any = None,
        layout_in2: Any = None,
        layout_out: Any = None,
        shared_weights: bool = True,
        internal_weights: bool | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        math_dtype: Any = None,
        use_fallback: bool | None = None,
        method: str | None = None,
    ) -> None:
        super().__init__()
        self.irreps_in1, self.irreps_in2 = default_irreps(irreps_in1, irreps_in2)
        assert_same_group(self.irreps_in1, self.irreps_in2)
        descriptor = descriptors.channelwise_tensor_product(self.irreps_in1, self.irreps_in2, filter_irreps_out)
        self.irreps_out = descriptor.outputs[0].irreps
        self.weight_numel = descriptor.inputs[0].dim
        self._decide_weights(shared_weights, internal_weights, (1, self.weight_numel), device, dtype)
        layouts = {i: own or layout for i, own in ((1, layout_in1), (2, layout_in2), (3, layout_out))}
        self._adopt(descriptor, layouts, math_dtype, method, use_fallback, "uniform_1d")

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        weight: Tensor | None = None,
        indices_1: Tensor | None = None,
        indices_2: Tensor | None = None,
        indices_out: Tensor | None = None,
        size_out: int | None = None,
    ) -> Tensor:
        indices = {i: index for i, index in ((1, indices_1), (2, indices_2)) if index is not None}
        if indices_out is None:
            return self.f([self._weights(weight), x1, x2], indices)[0]
        if size_out is None:
            raise ValueError("size_out should be provided if indices_out is provided")
        sizes = {0: x1.new_empty(size_out, 1)}
        return self.f([self._weights(weight), x1, x2], indices, sizes, {0: indices_out})[0]


class FullyConnectedTensorProduct(_Module):
    """`cuequivariance_torch.FullyConnectedTensorProduct`: every allowed triple of blocks, all channels mixed."""

    def __init__(
        self,
        irreps_in1: Any,
        irreps_in2: Any,
        irreps_out: Any,
        *,
        layout: Any = None,
        layout_in1: Any = None,
        layout_in2: Any = None,
        layout_out: Any = None,
        shared_weights: bool = True,
        internal_weights: bool | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        math_dtype: Any = None,
        use_fallback: bool | None = None,
        method: str | None = None,
    ) -> None:
        super().__init__()
        self.irreps_in1, self.irreps_in2, self.irreps_out = default_irreps(irreps_in1, irreps_in2, irreps_out)
        assert_same_group(self.irreps_in1, self.irreps_in2, self.irreps_out)
        descriptor = descriptors.fully_connected_tensor_product(self.irreps_in1, self.irreps_in2, self.irreps_out)
        self.weight_numel = descriptor.inputs[0].dim
        self._decide_weights(shared_weights, internal_weights, (1, self.weight_numel), device, dtype)
        layouts = {i: own or layout for i, own in ((1, layout_in1), (2, layout_in2), (3, layout_out))}
        self._adopt(descriptor, layouts, math_dtype, method, use_fallback, "fused_tp")

    def forward(self, x1: Tensor, x2: Tensor, weight: Tensor | None = None) -> Tensor:
        return self.f([self._weights(weight), x1, x2])[0]


class Linear(_Module):
    """`cuequivariance_torch.Linear`: channels mixed within equal irreps; with `weight_classes`, by a class per row."""

    def __init__(
        self,
        irreps_in: Any,
        irreps_out: Any,
        *,
        layout: Any = None,
        layout_in: Any = None,
        layout_out: Any = None,
        shared_weights: bool = True,
        internal_weights: bool | None = None,
        weight_classes: int = 1,
        device: Any = None,
        dtype: torch.dtype | None = None,
        math_dtype: Any = None,
        use_fallback: bool | None = None,
        method: str | None = None,
    ) -> None:
        super().__init__()
        self.irreps_in, self.irreps_out = default_irreps(irreps_in, irreps_out)
        assert_same_group(self.irreps_in, self.irreps_out)
        descriptor = descriptors.linear(self.irreps_in, self.irreps_out)
        self.weight_numel, self.weight_classes = descriptor.inputs[0].dim, weight_classes
        if weight_classes > 1 and not shared_weights:
            raise ValueError("Weight classes require shared weights.")
        self._decide_weights(shared_weights, internal_weights, (weight_classes, self.weight_numel), device, dtype)
        layouts = {i: own or layout for i, own in ((1, layout_in), (2, layout_out))}
        self._adopt(descriptor, layouts, math_dtype, method, use_fallback, "naive")

    def forward(self, x: Tensor, weight: Tensor | None = None, weight_indices: Tensor | None = None) -> Tensor:
        weight = self._weights(weight)
        if self.weight_classes == 1:
            return self.f([weight, x])[0]
        if weight_indices is None:
            raise ValueError("weight_indices should be provided if weight_classes > 1")
        return self.f([weight, x], {0: weight_indices})[0]


class SymmetricContraction(_Module):
    """`cuequivariance_torch.SymmetricContraction`: powers of features coupled channel by channel, weights per element."""

    def __init__(
        self,
        irreps_in: Any,
        irreps_out: Any,
        contraction_degree: int,
        num_elements: int,
        *,
        layout: Any = None,
        layout_in: Any = None,
        layout_out: Any = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        math_dtype: Any = None,
        original_mace: bool = False,
        use_fallback: bool | None = None,
        method: str | None = None,
    ) -> None:
        from cuequivariance.group_theory.experimental.mace.symmetric_contractions import symmetric_contraction

        super().__init__()
        self.irreps_in, self.irreps_out = default_irreps(irreps_in, irreps_out)
        assert_same_group(self.irreps_in, self.irreps_out)
        if len(set(self.irreps_in.muls) | set(self.irreps_out.muls)) != 1:
            raise ValueError("Input/Output irreps must have the same mul")
        self.contraction_degree, self.num_elements = contraction_degree, num_elements
        descriptor, projection = symmetric_contraction(self.irreps_in, self.irreps_out, range(1, contraction_degree + 1))
        self.etp = descriptor
        mul = self.irreps_in.muls[0]
        self.projection: Tensor | None
        if original_mace:
            self.register_buffer("projection", torch.tensor(projection, dtype=dtype, device=device))
            self.weight_shape = (projection.shape[0], mul)
        else:
            self.projection = None
            self.weight_shape = (descriptor.inputs[0].dim // mul, mul)
        self.weight = torch.nn.Parameter(torch.randn(num_elements, *self.weight_shape, device=device, dtype=dtype))
        # Components are segments of the descriptor, so ir_mul is what it is; mul_ir is a permutation of each row.
        order_out = _permutation(self.irreps_out, layout_out or layout, device)
        self._order_in: Tensor | None
        self._order_out: Tensor | None
        self.register_buffer("_order_in", _permutation(self.irreps_in, layout_in or layout, device), persistent=False)
        self.register_buffer("_order_out", None if order_out is None else torch.argsort(order_out), persistent=False)
        self._adopt(descriptor, {}, math_dtype, method, use_fallback, "uniform_1d")

    def forward(self, x: Tensor, indices: Tensor) -> Tensor:
        weight = self._weights(None)
        if self.projection is not None:
            weight = torch.einsum("zau,ab->zbu", weight, self.projection)
        x = x if self._order_in is None else x[:, self._order_in]
        (out,) = self.f([weight.flatten(1), x], {0: indices})
        return out if self._order_out is None else out[:, self._order_out]

    def extra_repr(self) -> str:
        return f"contraction_degree={self.contraction_degree}, weight_shape={self.weight_shape}"


def _permutation(irreps: Any, layout: Any, device: Any) -> Tensor | None:
    """Where each number of an ir_mul row lies in a row of this layout; None: there."""
    if _layout(layout) == "ir_mul":
        return None
    places, begin = [], 0
    for mul, ir in irreps:
        places += [begin + u * ir.dim + i for i in range(ir.dim) for u in range(mul)]
        begin += mul * ir.dim
    return torch.tensor(places, device=device)


class SphericalHarmonics(torch.nn.Module):
    """`cuequivariance_torch.SphericalHarmonics` of vectors (batch, 3); the gradient at a vector of length zero is 0."""

    def __init__(
        self,
        ls: list[int] | int,
        normalize: bool = True,
        device: Any = None,
        math_dtype: Any = None,
        use_fallback: bool | None = None,
        method: str | None = None,
    ) -> None:
        super().__init__()
        if use_fallback is not None:
            warnings.warn("`use_fallback` is deprecated, please use `method` instead", DeprecationWarning, stacklevel=2)
        self.ls = list(ls) if isinstance(ls, (list, tuple)) else [ls]
        if self.ls != sorted(set(self.ls)):
            raise ClebschError(f"ls: expected ascending degrees, each once, got {self.ls}")
        self.normalize, self.method = normalize, method or "uniform_1d"
        self.math_dtype = getattr(torch, math_dtype) if isinstance(math_dtype, str) else math_dtype
        self.f = ct.SphericalHarmonics(self.ls, normalize, "component")

    def forward(self, vectors: Tensor) -> Tensor:
        if vectors.dim() != 2:
            raise ClebschError(f"vectors: expected shape (batch, 3), got {tuple(vectors.shape)}")
        return self.f(vectors.to(self.math_dtype or vectors.dtype)).to(vectors.dtype)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for key in [key for key in state_dict if key.startswith(f"{prefix}f.")]:
            del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, *rest)
