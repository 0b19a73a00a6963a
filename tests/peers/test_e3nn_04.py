"""Live comparison with e3nn 0.4.4, whose 3j symbols have other signs.

Runs in an environment of its own (./dev test --peers makes it).
"""

import itertools
import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # e3nn 0.4.4 keeps its constants in a pickle

import clebsch  # noqa: E402
import e3nn  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from comparison import ALWAYS_WEIGHTED, MODES, Pair, channel_mode_pair, compare, convolution_pair, of_product  # noqa: E402
from e3nn import nn, o3  # noqa: E402

DEFAULT_DTYPE = torch.float64
e3nn.set_optimization_defaults(jit_script_fx=False)
SIGNS = "e3nn-0.4"
assert e3nn.__version__.startswith("0.4."), f"needs e3nn 0.4, got {e3nn.__version__}"


def test_every_3j_it_has() -> None:
    flips = 0
    for l1, l2, l3 in itertools.product(range(12), repeat=3):
        if not abs(l1 - l2) <= l3 <= l1 + l2:
            continue
        expected = o3.wigner_3j(l1, l2, l3).numpy()
        assert clebsch.wigner_3j(l1, l2, l3, sign_table=4) == pytest.approx(expected, abs=1e-14)
        if l1 <= l2 <= l3:
            flips += not np.allclose(clebsch.wigner_3j(l1, l2, l3), expected)
    assert flips == 44  # of 203: docs/conventions.md


@pytest.mark.parametrize(
    ("mode", "weights"),
    [(mode, w) for mode in MODES for w in ("shared", "per_row", "none") if w != "none" or mode not in ALWAYS_WEIGHTED],
)
def test_channel_modes(mode: str, weights: str) -> None:
    compare(channel_mode_pair(o3, mode, weights, SIGNS))


def test_its_signs_are_not_those_of_today() -> None:
    with pytest.raises(AssertionError, match="^values: "):
        compare(channel_mode_pair(o3, "uvu", "shared", "e3nn-0.5"))


@pytest.mark.parametrize("order", ["by_output", "generation"])
@pytest.mark.parametrize("weights", ["per_row", "shared", "none"])
def test_convolution(weights: str, order: str) -> None:
    compare(convolution_pair(o3, weights, SIGNS, order))


@pytest.mark.parametrize("normalization", ["component", "norm"])
def test_products_of_whole_lists(normalization: str) -> None:
    options = {"irrep_normalization": normalization}
    for module, operation in (
        (
            o3.FullTensorProduct("2x0e+1x1o", "1x1o+1x2e", **options),
            clebsch.build("full_product", in1="2x0e+1x1o", in2="1x1o+1x2e", signs=SIGNS, **options),
        ),
        (
            o3.ElementwiseTensorProduct("2x1o+1x2e", "1x2e+2x2e", **options),
            clebsch.build("elementwise_product", in1="2x1o+1x2e", in2="1x2e+2x2e", signs=SIGNS, **options),
        ),
    ):
        compare(Pair(of_product(module, True), operation))
    for weights in ("shared", "per_row"):
        irreps = ("3x1o+2x2e", "1x1o+1x2e", "3x0e+2x1o+2x2o+3x1e")
        shared = weights == "shared"
        module = o3.FullyConnectedTensorProduct(*irreps, **options, shared_weights=shared, internal_weights=False)
        named = dict(zip(("in1", "in2", "out"), irreps, strict=True))
        compare(
            Pair(of_product(module, shared), clebsch.build("fully_connected", **named, weights=weights, signs=SIGNS, **options))
        )


@pytest.mark.parametrize("options", [{}, {"out": "3x0e+2x1e+2x2e+1x3o", "weights": "per_row"}], ids=["full", "weighted"])
def test_tensor_square(options: dict) -> None:
    irreps = "2x0e+3x1o+1x2e"
    module = o3.TensorSquare(irreps, options.get("out"), internal_weights=False, shared_weights=False)
    product = of_product(lambda x, _, *weights: module(x, *weights), False)
    operation = clebsch.build("tensor_square", in_=irreps, signs=SIGNS, **options)
    compare(Pair(lambda x, **rest: product(x, x, **rest), operation))


def test_harmonics_and_functions_are_those_of_today() -> None:
    irreps = "0e+1o+2e+3o+4e"
    harmonics = clebsch.build("spherical_harmonics", irreps=irreps, normalize=True)
    compare(Pair(lambda vector: o3.spherical_harmonics(irreps, vector, True, "component"), harmonics))
    gate = nn.Gate("4x0e+2x0o", [torch.nn.functional.silu, torch.tanh], "3x0e", [torch.sigmoid], "2x1o+1x2e")
    gate_options = {"scalars": "4x0e+2x0o", "gates": "3x0e", "gated": "2x1o+1x2e"}
    operation = clebsch.build("gate", **gate_options, scalar_functions="silu,tanh", gate_functions="sigmoid")
    compare(Pair(lambda x: gate(x), operation))


@pytest.mark.parametrize(
    ("irreps", "signs"),
    [
        (("3x1o+2x2e", "1x1o+1x2e", "3x0e+2x1o+2x2o+3x1e+2x3o"), "e3nn-0.4"),
        (("3x0e+2x1o", "1x0e", "3x0e+2x1o"), "e3nn-0.5"),  # no coupling whose sign differs
    ],
)
def test_fully_connected_is_told_apart_by_its_signs(irreps: tuple[str, str, str], signs: str) -> None:
    module = o3.FullyConnectedTensorProduct(*irreps, shared_weights=False, internal_weights=False)
    report = clebsch.verify(module)
    assert report.passed, f"\n{report}"
    assert report.sign_table == signs
