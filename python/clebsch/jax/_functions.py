"""Operations as functions of arrays, under the names and with the arguments of clebsch.torch; weights are arguments of the call.

`deterministic` of any of them: on a GPU every sum has one order, in derivatives too, so that two calls give the same bits;
None: what XLA_FLAGS says (`--xla_gpu_deterministic_ops`). On the processor that is always so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jax.export import is_symbolic_dim

from .._call_data import row_count
from .._derivatives import described
from .._library import ClebschError
from .._tensor_products import fully_connected, input_sizes, tensor_product
from ..irreps import Irreps
from ..operation import Operation as Description
from ..operation import build
from ._arrays import Taken, on_rows
from ._primitive import run, xla_is_deterministic


class _Function:
    """A description to call. Immutable; equal where the descriptions are, so that it may be a static argument of jax.jit."""

    def _adopt(self, description: Description, deterministic: bool | None) -> None:
        self.description = description
        self.deterministic = xla_is_deterministic() if deterministic is None else deterministic
        self._described = described(description.text)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._value() == other._value()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self._value()))

    def _value(self) -> tuple[str, bool]:
        return self.description.text, self.deterministic

    def __repr__(self) -> str:
        operands = ", ".join(f"{operand.name}: {operand.segments}" for operand in self.description.inputs)
        results = ", ".join(f"{operand.name}: {operand.segments}" for operand in self.description.outputs)
        return f"{type(self).__name__}({operands} -> {results})"


class Operation(_Function):
    """Any operation on arrays by name: `Operation(clebsch.build(...))(x=..., y=..., weights=...)`.

    Arrays have shape (rows, numbers per row); shared ones may leave out their single row. Sizes of row spaces that no input shows
    are given as `rows={"node": n}`. One output: an array; several: a dict. All arrays of a call have one dtype. Entries of indices
    that are no row of their target, such as -1, leave the row out.
    """

    def __init__(self, operation: Description | str, deterministic: bool | None = None) -> None:
        self._adopt(Description(operation) if isinstance(operation, str) else operation, deterministic)

    def __call__(self, /, rows: Mapping[str, Any] | None = None, **arrays: Any) -> Any:
        what, description = self._described, self.description
        known = (*what.inputs, *what.indices)
        for name in arrays:
            if name not in known:
                raise ClebschError(f"no input or index {name!r}; there are {', '.join(known)}")
        for name in known:
            if name not in arrays:
                raise ClebschError(f"{name!r} is missing; given: {', '.join(arrays) or 'none'}")
        taken = Taken()
        sizes = dict(rows or {})
        for given in sizes:
            if given not in what.spaces:
                raise ClebschError(f"rows: no space {given!r}; there are {', '.join(what.spaces) or 'none'}")
            if not is_symbolic_dim(sizes[given]):
                sizes[given] = row_count(given, sizes[given])
        indices = [taken.array(index.name, arrays[index.name], "()", "mul_ir") for index in description.indices]
        inputs = [
            taken.array(operand.name, arrays[operand.name], operand.segments, operand.layout) for operand in description.inputs
        ]
        for i, operand in enumerate(description.inputs):
            if operand.space is None and inputs[i].ndim == 1:
                inputs[i] = inputs[i][None]
        shown = [
            *zip(what.indices, (index.source for index in description.indices), indices, strict=True),
            *zip(what.inputs, (operand.space for operand in description.inputs), inputs, strict=True),
        ]
        for name, space, array in shown:
            if array.ndim == 0:
                raise ClebschError(f"{name}: expected rows, got a single number")
            if space is not None:
                sizes.setdefault(space, array.shape[0])
        for space in what.spaces:
            if space not in sizes:
                raise ClebschError(f"rows: the number of rows of space {space!r} follows from no input; give rows={{{space!r}: n}}")
        results = run(what, inputs, indices, [sizes[space] for space in what.spaces], self.deterministic)
        named = {
            operand.name: taken.result(array, operand.segments, operand.layout)
            for operand, array in zip(description.outputs, results, strict=True)
        }
        return next(iter(named.values())) if len(named) == 1 else named


class _OnRows(_Function):
    """An operation of one row space whose rows are all leading dimensions of its arrays, broadcast."""

    def _run(self, arrays: Mapping[str, Any]) -> Any:
        """`arrays`: all inputs by name; of shared ones, whatever their shape, all numbers are the one row."""
        taken = Taken()
        given = [
            (operand, taken.array(operand.name, arrays[operand.name], operand.segments, operand.layout))
            for operand in self.description.inputs
        ]
        leading, flat = on_rows([(operand.name, array, operand.row_size) for operand, array in given if operand.space is not None])
        shared = []
        for operand, array in given:
            if operand.space is None:
                if array.size != operand.row_size:
                    raise ClebschError(f"{operand.name}: expected {operand.row_size} numbers, got shape {array.shape}")
                shared.append(array.reshape(1, operand.row_size))
        rows_first, shared_next = iter(flat), iter(shared)
        inputs = [next(shared_next) if operand.space is None else next(rows_first) for operand, _ in given]
        (out,) = run(self._described, inputs, [], [math.prod(leading)] * len(self.description.spaces), self.deterministic)
        result = self.description.outputs[0]
        return taken.result(out.reshape(*leading, result.row_size), result.segments, result.layout)


class TensorProduct(_OnRows):
    """e3nn's `o3.TensorProduct`: instructions (i_in1, i_in2, i_out, mode, has_weight[, path_weight]).

    Call: (x, y, weights), weights of `weight_numel` numbers, one set for all rows, or one per row without `shared_weights`.
    `layout`: "mul_ir" (e3nn, e3nn-jax) or "ir_mul", of x, y and the result.
    """

    def __init__(
        self,
        irreps_in1: Any,
        irreps_in2: Any,
        irreps_out: Any,
        instructions: Sequence[tuple[Any, ...]],
        in1_var: Sequence[float] | None = None,
        in2_var: Sequence[float] | None = None,
        out_var: Sequence[float] | None = None,
        irrep_normalization: str = "component",
        path_normalization: str = "element",
        shared_weights: bool = True,
        signs: str = "e3nn-0.5",
        layout: str = "mul_ir",
        deterministic: bool | None = None,
    ) -> None:
        self.irreps_in1, self.irreps_in2, self.irreps_out = _irreps(irreps_in1), _irreps(irreps_in2), _irreps(irreps_out)
        self._adopt(
            tensor_product(
                self.irreps_in1,
                self.irreps_in2,
                self.irreps_out,
                instructions,
                (in1_var, in2_var, out_var),
                irrep_normalization,
                path_normalization,
                shared_weights,
                signs=signs,
                **_all_layouts(layout, "x", "y"),
            ),
            deterministic,
        )
        self.weight_numel = input_sizes(self.description).get("weights", 0)

    def __call__(self, x: Any, y: Any, weights: Any = None) -> Any:
        return self._run({"x": x, "y": y, "weights": weights})


class FullyConnectedTensorProduct(TensorProduct):
    """e3nn's `o3.FullyConnectedTensorProduct`: every allowed triple of blocks, all channels mixed."""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, irreps_out: Any, **options: Any) -> None:
        in1, in2, out = _irreps(irreps_in1), _irreps(irreps_in2), _irreps(irreps_out)
        super().__init__(in1, in2, out, fully_connected(in1, in2, out), **options)


class _Unweighted(_OnRows):
    """A product of two inputs that has no weights. `filter_ir_out` keeps these irreps of the output. Call: (x, y)."""

    builder: str

    def __init__(
        self,
        irreps_in1: Any,
        irreps_in2: Any,
        filter_ir_out: Sequence[Any] | None = None,
        irrep_normalization: str = "component",
        signs: str = "e3nn-0.5",
        layout: str = "mul_ir",
        deterministic: bool | None = None,
    ) -> None:
        self.irreps_in1, self.irreps_in2 = _irreps(irreps_in1), _irreps(irreps_in2)
        self._adopt(
            build(
                self.builder,
                in1=self.irreps_in1,
                in2=self.irreps_in2,
                filter="+".join(map(str, filter_ir_out or [])),
                irrep_normalization=irrep_normalization,
                signs=signs,
                **_all_layouts(layout, "x", "y"),
            ),
            deterministic,
        )
        self.irreps_out = Irreps(self.description.outputs[0].segments)

    def __call__(self, x: Any, y: Any) -> Any:
        return self._run({"x": x, "y": y})


class FullTensorProduct(_Unweighted):
    """e3nn's `o3.FullTensorProduct`: every product of two blocks, outputs sorted."""

    builder = "full_product"


class ElementwiseTensorProduct(_Unweighted):
    """e3nn's `o3.ElementwiseTensorProduct`: channel n with channel n."""

    builder = "elementwise_product"


class Linear(_OnRows):
    """e3nn's `o3.Linear`: channels mixed within equal irreps. Call: (x, weights[, bias])."""

    def __init__(
        self,
        irreps_in: Any,
        irreps_out: Any,
        *,
        shared_weights: bool = True,
        instructions: Sequence[tuple[int, int]] | None = None,
        biases: bool = False,
        path_normalization: str = "element",
        layout: str = "mul_ir",
        deterministic: bool | None = None,
    ) -> None:
        self.irreps_in, self.irreps_out = _irreps(irreps_in), _irreps(irreps_out)
        options = {} if instructions is None else {"instructions": "; ".join(f"{i},{j}" for i, j in instructions)}
        self._adopt(
            build(
                "linear",
                in_=self.irreps_in,
                out=self.irreps_out,
                biases=biases,
                path_normalization=path_normalization,
                weights="shared" if shared_weights else "per_row",
                **_all_layouts(layout, "x"),
                **options,
            ),
            deterministic,
        )
        sizes = input_sizes(self.description)
        self.weight_numel, self.bias_numel = sizes.get("weights", 0), sizes.get("bias", 0)

    def __call__(self, x: Any, weights: Any, bias: Any = None) -> Any:
        return self._run({"x": x, "weights": weights, "bias": bias})


class SphericalHarmonics(_OnRows):
    """e3nn's `o3.SphericalHarmonics` of vectors (..., 3); the gradient at a vector of length zero is 0."""

    def __init__(
        self, irreps_out: Any, normalize: bool, normalization: str = "component", deterministic: bool | None = None
    ) -> None:
        degrees = [irreps_out] if isinstance(irreps_out, int) else irreps_out
        if not hasattr(degrees, "lmax") and not isinstance(degrees, str) and all(isinstance(degree, int) for degree in degrees):
            degrees = [(1, (degree, (-1) ** degree)) for degree in degrees]
        self.irreps_out = _irreps(degrees)
        self._adopt(
            build("spherical_harmonics", irreps=self.irreps_out, normalize=normalize, normalization=normalization), deterministic
        )

    def __call__(self, vectors: Any) -> Any:
        return self._run({self.description.inputs[0].name: vectors})


def spherical_harmonics(irreps_out: Any, vectors: Any, normalize: bool, normalization: str = "component") -> Any:
    """`SphericalHarmonics(irreps_out, normalize, normalization)(vectors)`; arguments as in e3nn-jax."""
    return SphericalHarmonics(irreps_out, normalize, normalization)(vectors)


class Convolution(_Function):
    """out[receiver] += product(x[sender], edge_attr, weights): gather, uvu tensor product and scatter in one.

    `irreps_out` keeps those irreps of the outputs; `self.irreps_out` are the output blocks, one per path, sorted (weight order
    "by_output": MACE, SevenNet, Nequix; "generation": NequIP). Weights per edge (edges, weight_numel), "shared" or "none".
    Receivers are in ascending order unless `sorted` is False; an edge whose sender or receiver is no node (-1, or the number of
    nodes and beyond) is left out, as padding is. Nothing per edge but the inputs is ever in memory.
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
        layout: str = "mul_ir",
        deterministic: bool | None = None,
    ) -> None:
        self.irreps_in, self.irreps_edge = _irreps(irreps_in), _irreps(irreps_edge)
        self._adopt(
            build(
                "convolution",
                in_=self.irreps_in,
                edge=self.irreps_edge,
                out=_irreps(irreps_out),
                weights=weights,
                weight_order=weight_order,
                irrep_normalization=irrep_normalization,
                path_normalization=path_normalization,
                sorted=sorted,
                signs=signs,
                **_all_layouts(layout, "x", "y"),
            ),
            deterministic,
        )
        self.irreps_out = Irreps(self.description.outputs[0].segments)
        self.weight_numel = input_sizes(self.description).get("weights", 0)
        self._operation = Operation(self.description, self.deterministic)

    def __call__(self, x: Any, edge_attr: Any, weights: Any, sender: Any, receiver: Any) -> Any:
        arrays = {"x": x, "y": edge_attr, "sender": sender, "receiver": receiver}
        if self.weight_numel:
            arrays["weights"] = weights
        elif weights is not None:
            raise ClebschError("weights: expected None, the convolution has none")
        return self._operation(**arrays)


class SymmetricContraction(_Function):
    """Powers of features coupled channel by channel, with weights per element (docs/symmetric-contraction.md).

    Call: (x, species, weights): (nodes, irreps_in.dim); (nodes,) integers below the number of elements; (elements, weight_numel).
    `bases`: a basis of one's own as the builder takes it, such as the U tensors of a MACE model.
    """

    def __init__(
        self,
        irreps_in: Any,
        irreps_out: Any,
        correlation: int = 3,
        bases: str | None = None,
        layout: str = "mul_ir",
        deterministic: bool | None = None,
    ) -> None:
        self.irreps_in, self.irreps_out = _irreps(irreps_in), _irreps(irreps_out)
        basis: dict[str, Any] = {"correlation": correlation} if bases is None else {"bases": bases}
        self._adopt(
            build("symmetric_contraction", in_=self.irreps_in, out=self.irreps_out, **_all_layouts(layout, "x"), **basis),
            deterministic,
        )
        self.weight_numel = input_sizes(self.description)["weights"]
        self._operation = Operation(self.description, self.deterministic)

    def __call__(self, x: Any, species: Any, weights: Any) -> Any:
        return self._operation(x=x, species=species, weights=weights)


def _irreps(given: Any) -> Irreps:
    """Ours, of text, blocks or another library's irreps."""
    return given if isinstance(given, Irreps) else Irreps(given if isinstance(given, (list, tuple)) else str(given))


def _all_layouts(layout: str, *operands: str) -> dict[str, str]:
    return {f"{operand}_layout": layout for operand in (*operands, "out")}
