"""Modules on the one operator. Features have e3nn's layout (mul_ir); weights lie in e3nn's order under e3nn's names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .._call_data import row_count
from .._library import ClebschError
from .._tensor_products import fully_connected, input_sizes, tensor_product
from ..irreps import Irreps, wigner_3j
from ..operation import Operation as Description
from ..operation import build
from ._operator import run


class Operation(torch.nn.Module):
    """Any operation on tensors by name: `Operation(clebsch.build(...))(x=..., y=..., weights=...)`.

    Arrays have shape (rows, numbers per row); shared ones may leave out their single row. Sizes of row spaces that no input shows
    are given as `rows={"node": n}`. One output: a tensor; several: a dict. All arrays of a call have one dtype.
    """

    def __init__(self, operation: Description | str) -> None:
        super().__init__()
        description = Description(operation) if isinstance(operation, str) else operation
        self.text = description.text
        self.spaces = description.spaces
        self.inputs = tuple((operand.name, operand.space) for operand in description.inputs)
        self.indices = tuple((index.name, index.source) for index in description.indices)
        self.outputs = tuple(operand.name for operand in description.outputs)

    def forward(self, /, rows: Mapping[str, int] | None = None, **tensors: Tensor) -> Any:
        self._check_names(tensors)
        arrays = [tensors[name] for name, _ in self.inputs]
        indices = [tensors[name] for name, _ in self.indices]
        for i, tensor in enumerate((*arrays, *indices)):
            if not isinstance(tensor, Tensor) or tensor.dim() == 0:
                raise _no_rows([name for name, _ in (*self.inputs, *self.indices)][i], tensor)
        for i, (_, space) in enumerate(self.inputs):
            if space is None and arrays[i].dim() == 1:
                arrays[i] = arrays[i][None]
        results = run(self.text, arrays, indices, self._sizes(rows, tensors))
        return results[0] if len(results) == 1 else dict(zip(self.outputs, results, strict=True))

    def _check_names(self, tensors: Mapping[str, Tensor]) -> None:
        """Every name given is known, every known one given."""
        for names in (self.inputs, self.indices):
            for name, _ in names:
                if name not in tensors:
                    self._check_known(tensors)
                    raise ClebschError(f"{name!r} is missing; given: {', '.join(tensors) or 'none'}")
        if len(tensors) != len(self.inputs) + len(self.indices):
            self._check_known(tensors)

    def _check_known(self, tensors: Mapping[str, Tensor]) -> None:
        known = [name for name, _ in (*self.inputs, *self.indices)]
        for name in tensors:
            if name not in known:
                raise ClebschError(f"no input or index {name!r}; there are {', '.join(known)}")

    def _sizes(self, rows: Mapping[str, int] | None, tensors: Mapping[str, Tensor]) -> list[int]:
        """Rows of every space: as said, else as the first tensor that has them shows."""
        sizes = {} if rows is None else dict(rows)
        for given in sizes:
            if given not in self.spaces:
                raise ClebschError(f"rows: no space {given!r}; there are {', '.join(self.spaces) or 'none'}")
            if not torch.compiler.is_compiling() and not isinstance(sizes[given], torch.SymInt):
                sizes[given] = row_count(given, sizes[given])
        if len(sizes) < len(self.spaces):
            for name, space in (*self.indices, *self.inputs):
                if space is not None:
                    sizes.setdefault(space, tensors[name].shape[0])
        for space in self.spaces:
            if space not in sizes:
                raise ClebschError(f"rows: the number of rows of space {space!r} follows from no input; give rows={{{space!r}: n}}")
        return [sizes[space] for space in self.spaces]

    def extra_repr(self) -> str:
        return f"{', '.join(name for name, _ in self.inputs)} -> {', '.join(self.outputs)}"


class _OnRows(torch.nn.Module):
    """An operation of one row space whose rows are all leading dimensions of its inputs, broadcast."""

    signs = "e3nn-0.5"  #: whose couplings, where there are any

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        _drop_compiled(state_dict, prefix, self.signs)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _adopt(self, description: Description) -> None:
        self.text = description.text
        self.out_dim = description.outputs[0].row_size

    def _run(self, per_row: Sequence[tuple[str, Tensor, int]], shared: Sequence[Tensor]) -> Tensor:
        """`per_row`: (name, tensor, numbers per row) in the order of the operation's inputs, before the shared ones."""
        count = 0
        arrays: list[Tensor] = []
        for _, tensor, dim in per_row:  # most calls: rows, as many of each
            if not isinstance(tensor, Tensor) or tensor.dim() != 2:
                return self._run_any(per_row, shared)
            rows, size = tensor.shape
            if size != dim or (arrays and rows != count):
                return self._run_any(per_row, shared)
            count = rows
            arrays.append(tensor)
        return run(self.text, [*arrays, *shared], [], [count])[0]

    def _run_any(self, per_row: Sequence[tuple[str, Tensor, int]], shared: Sequence[Tensor]) -> Tensor:
        """With any leading dimensions."""
        shapes = []
        for name, tensor, dim in per_row:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{name}: expected a tensor, got {type(tensor).__name__}")
            shape = tensor.shape
            if len(shape) == 0 or shape[-1] != dim:
                raise ClebschError(f"{name}: expected a last dimension of {dim}, got shape {tuple(shape)}")
            shapes.append(shape[:-1])
        leading: tuple[int, ...] = shapes[0]
        arrays = [tensor for _, tensor, _ in per_row]
        for shape in shapes[1:]:
            if shape != leading:
                leading = _broadcast(per_row)
                arrays = [tensor.expand(*leading, dim) for _, tensor, dim in per_row]
                break
        count = math.prod(leading)
        rows = [array.reshape(count, dim) for array, (_, _, dim) in zip(arrays, per_row, strict=True)]
        return run(self.text, [*rows, *shared], [], [count])[0].reshape(*leading, self.out_dim)


def _no_rows(name: str, tensor: Any) -> Exception:
    if isinstance(tensor, Tensor):
        return ClebschError(f"{name}: expected rows, got a single number")
    return TypeError(f"{name}: expected a tensor, got {type(tensor).__name__}")


def _broadcast(per_row: Sequence[tuple[str, Tensor, int]]) -> tuple[int, ...]:
    """The leading dimensions of all."""
    shapes = [tensor.shape[:-1] for _, tensor, _ in per_row]
    if torch.compiler.is_compiling():
        return torch.broadcast_shapes(*shapes)
    try:
        return torch.broadcast_shapes(*shapes)
    except RuntimeError:
        given = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor, _ in per_row)
        raise ClebschError(f"expected leading dimensions that can be broadcast, got {given}") from None


def _drop_compiled(state_dict: dict[str, Tensor], prefix: str, signs: str) -> None:
    """e3nn's modules also keep what they were compiled from; of it the couplings' signs are compared with ours."""
    for key in [key for key in state_dict if key.startswith(f"{prefix}_compiled_main")]:
        value = state_dict.pop(key)
        coupling = re.search(r"_w3j_(\d+)_(\d+)_(\d+)$", key)
        if coupling and value.numel():
            l1, l2, l3 = map(int, coupling.groups())
            ours = torch.from_numpy(wigner_3j(l1, l2, l3, 5 if signs == "e3nn-0.5" else 4))
            if float((value.detach().double().cpu().reshape(-1) * ours.reshape(-1)).sum()) < 0:
                raise ClebschError(f"signs: {key} of this state is minus the coupling of {signs}: make the module with the other")


class _Weighted(_OnRows):
    """Weights inside the module, given with every call, or given for every row."""

    internal_weights: bool
    shared_weights: bool
    weight: Tensor

    def _decide_weights(self, internal: bool | None, shared: bool | None, has_any: bool) -> None:
        """e3nn's rules for what was not said."""
        if shared is False and internal is None:
            internal = False
        self.shared_weights = True if shared is None else shared
        self.internal_weights = self.shared_weights and has_any if internal is None else internal
        if self.internal_weights and not self.shared_weights:
            raise ClebschError("internal_weights: weights for every row cannot be parameters of the module")

    def _make_weight(self, name: str, shape: tuple[int, ...], make: Any) -> None:
        """A parameter, or an empty buffer of the same name as in e3nn."""
        if self.internal_weights and math.prod(shape) > 0:
            self.register_parameter(name, torch.nn.Parameter(make(*shape)))
        else:
            self.register_buffer(name, torch.Tensor())

    def _make_mask(self, irreps: Irreps, reached: Sequence[int]) -> None:
        """e3nn's buffer: 1 where an instruction reaches."""
        mask = [float(i in reached) for i, block in enumerate(irreps) for _ in range(block.dim)]
        self.register_buffer("output_mask", torch.tensor(mask, dtype=torch.get_default_dtype()))

    def _given(self, name: str, value: Tensor | None, shape: tuple[int, ...]) -> Tensor:
        """The module's own or the caller's, whose last dimensions are checked and made one."""
        if value is None:
            value = self._parameters.get(name)  # which PyTorch's attribute access looks through last
            if value is None:
                if math.prod(shape) and not self.internal_weights:
                    raise ClebschError(f"{name}: expected one, the module has none inside")
                value = getattr(self, name)
                if not math.prod(shape):
                    return value.new_zeros((0,))
        given = value.shape
        if given == shape:
            return value if len(shape) == 1 else value.reshape(-1)
        leading = len(given) - len(shape)
        if leading < 0 or given[leading:] != shape:
            raise ClebschError(f"{name}: expected last dimensions {shape}, got shape {tuple(given)}")
        return value if len(shape) == 1 else value.reshape(*given[:leading], math.prod(shape))


class TensorProduct(_Weighted):
    """e3nn's `o3.TensorProduct`: instructions (i_in1, i_in2, i_out, mode, has_weight[, path_weight])."""

    def __init__(
        self,
        irreps_in1: Any,
        irreps_in2: Any,
        irreps_out: Any,
        instructions: Sequence[tuple[Any, ...]],
        in1_var: Sequence[float] | None = None,
        in2_var: Sequence[float] | None = None,
        out_var: Sequence[float] | None = None,
        irrep_normalization: str | None = None,
        path_normalization: str | None = None,
        internal_weights: bool | None = None,
        shared_weights: bool | None = None,
        signs: str = "e3nn-0.5",
    ) -> None:
        super().__init__()
        self.irreps_in1, self.irreps_in2, self.irreps_out = Irreps(irreps_in1), Irreps(irreps_in2), Irreps(irreps_out)
        self._decide_weights(internal_weights, shared_weights, any(instruction[4] for instruction in instructions))
        description = tensor_product(
            self.irreps_in1,
            self.irreps_in2,
            self.irreps_out,
            instructions,
            (in1_var, in2_var, out_var),
            irrep_normalization or "component",
            path_normalization or "element",
            self.shared_weights,
            signs=signs,
        )
        self._adopt(description)
        self.dims = self.irreps_in1.dim, self.irreps_in2.dim
        sizes = input_sizes(description)
        self.has_weights = "weights" in sizes
        self.weight_numel = sizes.get("weights", 0)
        self._make_weight("weight", (self.weight_numel,), torch.randn)
        self.signs = signs
        self._make_mask(self.irreps_out, [ins[2] for ins in instructions if len(ins) < 6 or ins[5] != 0])

    def forward(self, x: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        per_row = [("x", x, self.dims[0]), ("y", y, self.dims[1])]
        if not self.has_weights:
            if weight is not None and weight.numel() > 0:
                raise ClebschError(f"weight: expected None, no path has weights, got {tuple(weight.shape)}")
            return self._run(per_row, [])
        weight = self._given("weight", weight, (self.weight_numel,))
        if self.shared_weights:
            return self._run(per_row, [weight[None] if weight.dim() == 1 else weight.reshape(1, self.weight_numel)])
        return self._run([*per_row, ("weight", weight, self.weight_numel)], [])

    def extra_repr(self) -> str:
        return f"{self.irreps_in1} x {self.irreps_in2} -> {self.irreps_out}, {self.weight_numel} weights"


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
        super().__init__(
            in1,
            in2,
            out,
            fully_connected(in1, in2, out),
            irrep_normalization=irrep_normalization,
            path_normalization=path_normalization,
            **options,
        )


class _Unweighted(_OnRows):
    """A product of two inputs that has no weights. `filter_ir_out` keeps these irreps of the output."""

    builder: str

    def __init__(
        self,
        irreps_in1: Any,
        irreps_in2: Any,
        filter_ir_out: Sequence[Any] | None = None,
        irrep_normalization: str | None = None,
        signs: str = "e3nn-0.5",
    ) -> None:
        super().__init__()
        self.irreps_in1, self.irreps_in2 = Irreps(irreps_in1), Irreps(irreps_in2)
        description = build(
            self.builder,
            in1=self.irreps_in1,
            in2=self.irreps_in2,
            filter="+".join(map(str, filter_ir_out or [])),
            irrep_normalization=irrep_normalization or "component",
            signs=signs,
        )
        self._adopt(description)
        self.irreps_out = Irreps(description.outputs[0].segments)
        self.dims = self.irreps_in1.dim, self.irreps_in2.dim
        self.weight_numel, self.signs = 0, signs
        self.register_buffer("weight", torch.Tensor())  # as in e3nn, whose state these modules take
        self.register_buffer("output_mask", torch.ones(self.irreps_out.dim))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self._run([("x", x, self.dims[0]), ("y", y, self.dims[1])], [])

    def extra_repr(self) -> str:
        return f"{self.irreps_in1} x {self.irreps_in2} -> {self.irreps_out}"


class FullTensorProduct(_Unweighted):
    """e3nn's `o3.FullTensorProduct`: every product of two blocks, outputs sorted."""

    builder = "full_product"


class ElementwiseTensorProduct(_Unweighted):
    """e3nn's `o3.ElementwiseTensorProduct`: channel n with channel n."""

    builder = "elementwise_product"


class Linear(_Weighted):
    """e3nn's `o3.Linear`: channels mixed within equal irreps.

    With f_in and f_out: inputs (..., f_in, dim), outputs (..., f_out, dim).
    """

    def __init__(
        self,
        irreps_in: Any,
        irreps_out: Any,
        *,
        f_in: int | None = None,
        f_out: int | None = None,
        internal_weights: bool | None = None,
        shared_weights: bool | None = None,
        instructions: Sequence[tuple[int, int]] | None = None,
        biases: bool | Sequence[bool] = False,
        path_normalization: str = "element",
    ) -> None:
        super().__init__()
        if (f_in is None) != (f_out is None):
            raise ClebschError(f"f_in and f_out: expected both or neither, got {f_in} and {f_out}")
        self.irreps_in, self.irreps_out = Irreps(irreps_in), Irreps(irreps_out)
        self._decide_weights(internal_weights, shared_weights, True)
        options: dict[str, Any] = {} if f_in is None else {"f_in": f_in, "f_out": f_out}
        if instructions is not None:
            options["instructions"] = "; ".join(f"{i},{j}" for i, j in instructions)
        chosen = [i for i, bias in enumerate(biases) if bias] if not isinstance(biases, bool) else []
        options["biases"] = biases if isinstance(biases, bool) else ",".join(map(str, chosen)) if chosen else False
        description = build(
            "linear",
            in_=self.irreps_in,
            out=self.irreps_out,
            path_normalization=path_normalization,
            weights="shared" if self.shared_weights else "per_row",
            **options,
        )
        self._adopt(description)
        self.dims, self.f_in, self.f_out = (self.irreps_in.dim, self.irreps_out.dim), f_in, f_out
        sizes = input_sizes(description)
        pairs, outputs = ((), ()) if f_in is None or f_out is None else ((f_in, f_out), (f_out,))
        self.weight_numel = sizes["weights"] // math.prod(pairs)
        self.bias_numel = sizes.get("bias", 0) // math.prod(outputs)
        self._weight_shape, self._bias_shape = (*pairs, self.weight_numel), (*outputs, self.bias_numel)
        self._make_weight("weight", self._weight_shape, torch.randn)
        self._make_weight("bias", self._bias_shape, torch.zeros)
        if instructions is None:
            equal = [
                (i, j)
                for i, first in enumerate(self.irreps_in)
                for j, second in enumerate(self.irreps_out)
                if first.ir == second.ir
            ]
            instructions = [(i, j) for i, j in equal if self.irreps_in[i].mul and self.irreps_out[j].mul]
        biased = [i for i, block in enumerate(self.irreps_out) if biases is True and str(block.ir) == "0e"] or chosen
        self._make_mask(self.irreps_out, [*(j for _, j in instructions), *biased])

    def forward(self, features: Tensor, weight: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        x, dim = features, self.dims[0]
        if self.f_in is not None:
            if x.dim() < 2 or tuple(x.shape[-2:]) != (self.f_in, dim):
                raise ClebschError(f"features: expected last dimensions {(self.f_in, dim)}, got shape {tuple(x.shape)}")
            dim *= self.f_in
            x = x.reshape(*x.shape[:-2], dim)
        per_row, shared = [("features", x, dim)], []
        weight = self._given("weight", weight, self._weight_shape)
        if self.shared_weights:
            shared.append(weight[None] if weight.dim() == 1 else weight.reshape(1, math.prod(self._weight_shape)))
        else:
            per_row.append(("weight", weight, math.prod(self._weight_shape)))
        if self.bias_numel:
            shared.append(self._given("bias", bias, self._bias_shape).reshape(1, math.prod(self._bias_shape)))
        out = self._run(per_row, shared)
        return out if self.f_out is None else out.reshape(*out.shape[:-1], self.f_out, self.dims[1])

    def extra_repr(self) -> str:
        return f"{self.irreps_in} -> {self.irreps_out}, {self.weight_numel} weights"


class SphericalHarmonics(_OnRows):
    """e3nn's `o3.SphericalHarmonics` of vectors (..., 3); the gradient at a vector of length zero is 0."""

    def __init__(self, irreps_out: Any, normalize: bool, normalization: str = "integral", irreps_in: Any = None) -> None:
        super().__init__()
        self.irreps_in = Irreps("1o" if irreps_in is None else irreps_in)
        if self.irreps_in not in (Irreps("1o"), Irreps("1e")):
            raise ClebschError(f"irreps_in: expected 1o or 1e, got {self.irreps_in}")
        degrees = [irreps_out] if isinstance(irreps_out, int) else irreps_out
        if not isinstance(degrees, (str, Irreps)) and all(isinstance(degree, int) for degree in degrees):
            parity = self.irreps_in[0].ir.p
            degrees = [(1, (degree, parity**degree)) for degree in degrees]
        self.irreps_out = Irreps(degrees)
        self.normalize, self.normalization = normalize, normalization
        self._adopt(build("spherical_harmonics", irreps=self.irreps_out, normalize=normalize, normalization=normalization))

    def forward(self, x: Tensor) -> Tensor:
        return self._run([("x", x, 3)], [])

    def extra_repr(self) -> str:
        return f"{self.irreps_out}, normalize={self.normalize}, {self.normalization}"


class Convolution(torch.nn.Module):
    """out[receiver] += product(x[sender], edge_attr, weight): what models write as gather, uvu tensor product and scatter.

    `irreps_out` keeps those irreps of the outputs; `self.irreps_out` are the output blocks, one per path, sorted (weight order
    "by_output": MACE, SevenNet, Nequix; "generation": NequIP). Weights per edge (edges, weight_numel), "shared" or "none".
    Receivers are in ascending order unless `sorted` is False. Nothing per edge but the inputs is ever in memory.
    """

    def __init__(
        self,
        irreps_in: Any,
        irreps_edge: Any,
        irreps_out: Any,
        weights: str = "per_edge",
        weight_order: str = "by_output",
        irrep_normalization: str = "component",
        path_normalization: str = "element",
        sorted: bool = True,  # noqa: A002 - the builder's name
        signs: str = "e3nn-0.5",
    ) -> None:
        super().__init__()
        self.irreps_in, self.irreps_edge = Irreps(irreps_in), Irreps(irreps_edge)
        description = build(
            "convolution",
            in_=self.irreps_in,
            edge=self.irreps_edge,
            out=Irreps(irreps_out),
            weights=weights,
            weight_order=weight_order,
            irrep_normalization=irrep_normalization,
            path_normalization=path_normalization,
            sorted=sorted,
            signs=signs,
        )
        self.irreps_out = Irreps(description.outputs[0].segments)
        sizes = input_sizes(description)
        self.weight_numel, self.weights = sizes.get("weights", 0), weights
        self.operation = Operation(description)

    def forward(self, x: Tensor, edge_attr: Tensor, weight: Tensor | None, sender: Tensor, receiver: Tensor) -> Tensor:
        arrays = [x, edge_attr]
        if self.weights != "none":
            if weight is None:
                raise ClebschError("weight: expected one, the module has none inside")
            arrays.append(weight)
        for i, tensor in enumerate((*arrays, sender, receiver)):
            if not isinstance(tensor, Tensor) or tensor.dim() == 0:
                raise _no_rows([name for name, _ in (*self.operation.inputs, *self.operation.indices)][i], tensor)
        if self.weights == "shared" and arrays[2].dim() == 1:
            arrays[2] = arrays[2][None]
        return run(self.operation.text, arrays, [sender, receiver], [sender.shape[0], x.shape[0]])[0]

    def extra_repr(self) -> str:
        return f"{self.irreps_in} x {self.irreps_edge} -> {self.irreps_out}, {self.weight_numel} weights"


class SymmetricContraction(torch.nn.Module):
    """Powers of features coupled channel by channel, with weights per element (docs/symmetric-contraction.md).

    x: (nodes, irreps_in.dim); species: (nodes,) integers below `num_elements`. `bases`: a basis of one's own as the builder takes
    it, such as the U tensors of a MACE model; `weight` is then (num_elements, parameters x channels), lowest correlation first.
    """

    def __init__(
        self, irreps_in: Any, irreps_out: Any, correlation: int = 3, num_elements: int = 1, bases: str | None = None
    ) -> None:
        super().__init__()
        self.irreps_in, self.irreps_out = Irreps(irreps_in), Irreps(irreps_out)
        basis: dict[str, Any] = {"correlation": correlation} if bases is None else {"bases": bases}
        description = build("symmetric_contraction", in_=self.irreps_in, out=self.irreps_out, **basis)
        sizes = input_sizes(description)
        self.num_elements = num_elements
        self.weight = torch.nn.Parameter(torch.randn(num_elements, sizes["weights"]))
        self.operation = Operation(description)

    def forward(self, x: Tensor, species: Tensor) -> Tensor:
        return self.operation(rows={"node": x.shape[0], "element": self.num_elements}, x=x, weights=self.weight, species=species)

    def extra_repr(self) -> str:
        return f"{self.irreps_in} -> {self.irreps_out}"
