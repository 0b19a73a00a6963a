"""Live comparison with e3nn 0.6.0 in float64: every builder, channel mode and normalisation; values, gradients, double backward."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import clebsch
import e3nn
import numpy as np
import pytest
import torch
from comparison import (
    ALWAYS_WEIGHTED,
    MODES,
    ROWS,
    Pair,
    channel_mode_pair,
    compare,
    convolution_pair,
    of_product,
    tensor_product_pair,
)
from e3nn import nn, o3
from e3nn.math import soft_one_hot_linspace

SIGNS = "e3nn-0.5"
FUNCTIONS = {"silu": torch.nn.functional.silu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu, "none": None}


DEFAULT_DTYPE = torch.float64  # in which e3nn keeps couplings


@pytest.fixture(autouse=True)
def _eager() -> None:
    """Compiling modules would take most of the time."""
    e3nn.set_optimization_defaults(jit_mode="eager")


# Tensor products
# -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "weights"),
    [(mode, w) for mode in MODES for w in ("shared", "per_row", "none") if w != "none" or mode not in ALWAYS_WEIGHTED],
)
def test_channel_modes(mode: str, weights: str) -> None:
    compare(channel_mode_pair(o3, mode, weights, SIGNS))


MIXED = [
    (0, 0, 0, "uvu", True, 1.0),
    (0, 1, 1, "uvw", True, 1.0),
    (1, 0, 1, "uvu", False, 2.0),
    (1, 1, 0, "uvw", True, 0.25),
    (1, 1, 0, "uvw", True, 0.0),
]
VARIANCES = {"in1_var": [2.0, 3.0], "in2_var": [5.0, 7.0], "out_var": [11.0, 13.0]}


@pytest.mark.parametrize("weights", ["shared", "per_row"])
@pytest.mark.parametrize("variances", [{}, VARIANCES], ids=["plain", "variances"])
@pytest.mark.parametrize("path", ["element", "path", "none"])
@pytest.mark.parametrize("irrep", ["component", "norm", "none"])
def test_normalisations_variances_and_path_weights(irrep: str, path: str, variances: dict, weights: str) -> None:
    irreps = ("2x0e+3x1o", "2x0e+1x1o", "2x0e+3x1o")
    compare(tensor_product_pair(o3, irreps, MIXED, weights, SIGNS, irrep_normalization=irrep, path_normalization=path, **variances))


FULLY_CONNECTED = {
    "scalars and vectors": ("8x0e+5x1o+2x2e", "1x0e+1x1o+1x2e", "4x0e+4x1o+3x2e"),
    "both parities": ("10x1o+10x1e+8x0e+8x0o", "1x0e+1x1o", "10x1o+10x1e+8x0e+8x0o"),
    "high degrees": ("2x3o+1x4e", "1x2e+3x3o", "2x1o+1x5e+2x6e"),
    "repeated irreps": ("2x1o+1x0e+3x1o", "1x1o+2x1o", "2x0e+1x1e+2x0e"),
    "nothing couples": ("2x0o", "1x0e", "0x0e+1x1o"),
}


@pytest.mark.parametrize("weights", ["shared", "per_row"])
@pytest.mark.parametrize("case", FULLY_CONNECTED)
def test_fully_connected(case: str, weights: str) -> None:
    in1, in2, out = FULLY_CONNECTED[case]
    module = o3.FullyConnectedTensorProduct(in1, in2, out, shared_weights=weights == "shared", internal_weights=False)
    operation = clebsch.build("fully_connected", in1=in1, in2=in2, out=out, weights=weights)
    compare(Pair(of_product(module, weights == "shared"), operation))


@pytest.mark.parametrize("normalization", ["component", "norm", "none"])
@pytest.mark.parametrize("keep", [None, "0e+1o+2e"])
def test_full_and_elementwise(keep: str | None, normalization: str) -> None:
    kept = None if keep is None else [block.ir for block in o3.Irreps(keep)]
    options = {"irrep_normalization": normalization}
    for in1, in2 in (("2x0e+1x1o", "1x1o+1x2e"), ("2x1o+1x1o+3x0e", "1x1o+2x2e")):
        module = o3.FullTensorProduct(in1, in2, kept, **options)
        operation = clebsch.build("full_product", in1=in1, in2=in2, filter=keep or "", **options)
        assert str(module.irreps_out) == operation.outputs[0].segments
        compare(Pair(of_product(module, True), operation))
    for in1, in2 in (("2x1o+1x0e", "1x0e+2x1o"), ("3x1o", "1x2e+2x1o")):
        module = o3.ElementwiseTensorProduct(in1, in2, kept, **options)
        operation = clebsch.build("elementwise_product", in1=in1, in2=in2, filter=keep or "", **options)
        assert str(module.irreps_out) == operation.outputs[0].segments
        compare(Pair(of_product(module, True), operation))


SQUARES = {
    "every product": {},
    "some products": {"filter": "0e+2e"},
    "shared weights": {"out": "3x0e+2x1e+2x2e+1x3o", "weights": "shared"},
    "weights per row": {"out": "3x0e+2x1e+2x2e+1x3o", "weights": "per_row"},
}


@pytest.mark.parametrize("normalization", ["component", "norm", "none"])
@pytest.mark.parametrize("case", SQUARES)
def test_tensor_square(case: str, normalization: str) -> None:
    irreps, options = "2x0e+3x1o+1x2e", SQUARES[case]
    keep = [block.ir for block in o3.Irreps(options["filter"])] if "filter" in options else None
    shared = options.get("weights") != "per_row"
    module = o3.TensorSquare(
        irreps, options.get("out"), keep, irrep_normalization=normalization, internal_weights=False, shared_weights=shared
    )
    operation = clebsch.build("tensor_square", in_=irreps, irrep_normalization=normalization, **options)
    product = of_product(lambda x, _, *weights: module(x, *weights), shared)
    compare(Pair(lambda x, **rest: product(x, x, **rest), operation))


# Convolutions
# -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["by_output", "generation"])
@pytest.mark.parametrize("weights", ["per_row", "shared", "none"])
def test_convolution(weights: str, order: str) -> None:
    compare(convolution_pair(o3, weights, SIGNS, order))


def test_a_layer_from_positions_to_messages() -> None:
    """Harmonics and a radial network on edge vectors, their weights in the convolution: composed as a model composes them."""
    pair = convolution_pair(o3, "per_row", SIGNS)
    harmonics = clebsch.build("spherical_harmonics", irreps="0e+1o+2e", normalize=True, rows="edge")
    basis = clebsch.build("radial_network", outputs=0, basis_size=6, cutoff=4, cutoff_power=0)
    count = next(operand.row_size for operand in pair.operation.inputs if operand.name == "weights")
    network = clebsch.build("perceptron", inputs=6, hidden="7", outputs=count, rows="edge")
    generator = np.random.default_rng(3)
    vectors = generator.standard_normal((ROWS["edge"], 3))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    matrices = {o.name: generator.standard_normal((1, o.row_size)) for o in network.inputs if o.name != "x"}
    x = generator.standard_normal((ROWS["node"], pair.operation.inputs[0].row_size))
    index = {
        "sender": generator.integers(0, ROWS["node"], ROWS["edge"]),
        "receiver": np.sort(generator.integers(0, ROWS["node"], ROWS["edge"])),
    }
    found = pair.operation(
        {"node": ROWS["node"]},
        x=x,
        y=harmonics(vector=vectors),
        weights=network(x=basis(lengths=lengths), **matrices),
        **index,
    )

    module = nn.FullyConnectedNet([6, 7, count], torch.nn.functional.silu)
    layers = {
        f"layer{i}.weight": torch.from_numpy(m).reshape(shape)
        for (i, m), shape in zip(enumerate(matrices.values()), [(6, 7), (7, count)], strict=True)
    }
    radial = soft_one_hot_linspace(torch.from_numpy(lengths[:, 0]), 0.0, 4.0, 6, "bessel", True)
    expected = pair.function(
        x=torch.from_numpy(x),
        y=o3.spherical_harmonics("0e+1o+2e", torch.from_numpy(vectors), True, "component"),
        weights=torch.func.functional_call(module, layers, (radial,)),
        **{name: torch.from_numpy(values) for name, values in index.items()},
    )
    assert np.linalg.norm(found - expected.numpy()) <= 1e-13 * np.linalg.norm(expected.numpy())


# Linear
# -----------------------------------------------------------------------------------------------------------------------------

LINEAR = {
    "plain": {},
    "paths counted alike": {"path_normalization": "path"},
    "some paths": {"instructions": [(0, 0), (3, 1), (2, 0)]},
    "some paths, counted alike": {"instructions": [(0, 0), (3, 1), (2, 0)], "path_normalization": "path"},
    "biases": {"biases": True},
    "one bias": {"biases": [False, False, True]},
    "several inputs and outputs": {"f_in": 2, "f_out": 3},
    "several inputs and outputs, biases": {"f_in": 2, "f_out": 3, "biases": True},
}


def linear_pair(weights: str, options: dict) -> Pair:
    """`weights` "species": row by row with the set of its species."""
    irreps_in, irreps_out = "5x0e+3x1o+2x0e+1x1o", "4x0e+2x1o+1x0e"
    module = o3.Linear(irreps_in, irreps_out, shared_weights=weights != "per_row", internal_weights=False, **options)
    f_in, f_out = options.get("f_in"), options.get("f_out")

    def one_set(x: torch.Tensor, *parts: torch.Tensor) -> torch.Tensor:
        """`parts`: weights, and biases where there are any."""
        if f_in is not None:
            x = x.reshape(len(x), f_in, -1)
            shapes = [(f_in, f_out, module.weight_numel), (f_out, module.bias_numel)]
            parts = tuple(part.reshape(*part.shape[:-1], *shape) for part, shape in zip(parts, shapes, strict=False))
        return module(x, *parts)

    def function(x: torch.Tensor, weights: torch.Tensor, **rest: torch.Tensor) -> torch.Tensor:
        parts = [weights, *([rest["bias"]] if "bias" in rest else [])]
        if "species" in rest:
            sets = enumerate(rest["species"].tolist())
            return torch.cat([one_set(x[row : row + 1], *(part[species] for part in parts)) for row, species in sets])
        return one_set(x, *(part[0] if module.shared_weights else part for part in parts))

    own = {key: value for key, value in options.items() if key not in ("instructions", "biases")}
    if "instructions" in options:
        own["instructions"] = "; ".join(f"{i},{o}" for i, o in options["instructions"])
    if "biases" in options:
        biases = options["biases"]
        own["biases"] = biases if isinstance(biases, bool) else ",".join(str(i) for i, bias in enumerate(biases) if bias)
    return Pair(function, clebsch.build("linear", in_=irreps_in, out=irreps_out, weights=weights, **own))


@pytest.mark.parametrize(
    ("case", "weights"),
    [(case, w) for case in LINEAR for w in ("shared", "per_row", "species") if w != "per_row" or "bias" not in case],
)
def test_linear(case: str, weights: str) -> None:
    """Neither library has biases per row."""
    compare(linear_pair(weights, LINEAR[case]))


# Functions
# -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["component", "norm", "integral"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("irreps", ["0e+1o+2e+3o+4e+5o+6e", "2e+0e+2e"])
def test_spherical_harmonics(irreps: str, normalize: bool, normalization: str) -> None:
    operation = clebsch.build("spherical_harmonics", irreps=irreps, normalize=normalize, normalization=normalization)
    compare(Pair(lambda vector: o3.spherical_harmonics(irreps, vector, normalize, normalization), operation))


@pytest.mark.parametrize("cutoff", [True, False])
@pytest.mark.parametrize("basis", ["bessel", "gaussian", "smooth_finite"])
def test_radial_bases(basis: str, cutoff: bool) -> None:
    operation = clebsch.build("radial_network", outputs=0, basis=basis, basis_size=6, cutoff=3, cutoff_power=0, open_ends=cutoff)
    lengths = np.linspace(0.2, 2.9, ROWS["edge"])[:, None]
    compare(Pair(lambda lengths: soft_one_hot_linspace(lengths[:, 0], 0.0, 3.0, 6, basis, cutoff), operation, {"lengths": lengths}))


@pytest.mark.parametrize("function", ["silu", "tanh", "sigmoid", "relu"])
@pytest.mark.parametrize("sizes", [[8, 16, 12, 5], [3, 4], [1, 9, 1]])
def test_fully_connected_net(sizes: list[int], function: str) -> None:
    module = nn.FullyConnectedNet(sizes, FUNCTIONS[function])

    def network(x: torch.Tensor, **matrices: torch.Tensor) -> torch.Tensor:
        layers = {f"layer{i}.weight": matrices[f"matrix_{i}"].reshape(shape) for i, shape in enumerate(itertools.pairwise(sizes))}
        return torch.func.functional_call(module, layers, (x,))

    hidden = ",".join(map(str, sizes[1:-1]))
    operation = clebsch.build("perceptron", inputs=sizes[0], hidden=hidden, outputs=sizes[-1], function=function)
    compare(Pair(network, operation))


ACTIVATIONS = {
    "even and odd": ("4x0e+2x0o", ["silu", "tanh"]),
    "some without": ("4x0e+2x1o+2x0e", ["sigmoid", "none", "relu"]),
}


@pytest.mark.parametrize("case", ACTIVATIONS)
def test_activation(case: str) -> None:
    irreps, functions = ACTIVATIONS[case]
    module = nn.Activation(irreps, [FUNCTIONS[name] for name in functions])
    operation = clebsch.build("activation", irreps=irreps, functions=",".join(functions))
    assert str(module.irreps_out) == operation.outputs[0].segments
    compare(Pair(lambda x: module(x), operation))


GATES = {
    "MACE and NequIP": ("4x0e+2x0o", ["silu", "tanh"], "3x0e", ["sigmoid"], "2x1o+1x2e"),
    "gates of both parities": ("2x0e", ["silu"], "2x0o+1x0e", ["tanh", "silu"], "2x1e+1x2e"),
    "scalars alone": ("3x0e", ["tanh"], "", [], ""),
}


@pytest.mark.parametrize("case", GATES)
def test_gate(case: str) -> None:
    scalars, scalar_functions, gates, gate_functions, gated = GATES[case]
    functions = [[FUNCTIONS[name] for name in names] for names in (scalar_functions, gate_functions)]
    module = nn.Gate(scalars, functions[0], gates, functions[1], gated)
    operation = clebsch.build(
        "gate",
        scalars=scalars,
        scalar_functions=",".join(scalar_functions),
        gates=gates,
        gate_functions=",".join(gate_functions),
        gated=gated,
    )
    assert str(module.irreps_out) == operation.outputs[0].segments
    compare(Pair(lambda x: module(x), operation))


@pytest.mark.parametrize("squared", [True, False])
def test_norm(squared: bool) -> None:
    module = o3.Norm("2x1o+1x0e+1x2e+2x0o", squared)
    compare(Pair(lambda x: module(x), clebsch.build("norm", irreps="2x1o+1x0e+1x2e+2x0o", squared=squared)))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("function", ["sigmoid", "tanh"])
def test_norm_activation(function: str, bias: bool) -> None:
    """Normalised: e3nn 0.6.0 cannot make the module with normalize=False (it compares None with 0)."""
    irreps = o3.Irreps("2x1o+3x0e+1x2e")
    module = nn.NormActivation(irreps, FUNCTIONS[function], bias=bias)

    def activated(x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        if bias is None:
            return module(x)
        return torch.func.functional_call(module, {"biases": bias[0]}, (x,))

    operation = clebsch.build("norm_activation", irreps=irreps, function=function, bias=bias, normalization="none")
    compare(Pair(activated, operation))


# The comparison itself
# -----------------------------------------------------------------------------------------------------------------------------

DEFECTS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "values": lambda x, y: (1 + 1e-12) * x * y,
    "gradient of x": lambda x, y: x * y + 1e-12 * (x.detach() * y - x * y.detach()),
    "second derivative, x": lambda x, y: x * y + (x - x.detach()) ** 2,
}


@pytest.mark.parametrize("what", DEFECTS)
def test_the_comparison_sees_a_defect(what: str) -> None:
    operation = clebsch.build("elementwise_product", in1="3x0e", in2="3x0e")
    compare(Pair(lambda x, y: x * y, operation))
    with pytest.raises(AssertionError, match=what):
        compare(Pair(DEFECTS[what], operation))
