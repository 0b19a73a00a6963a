"""clebsch.verify on e3nn 0.6.0's modules, as users build them (compiled)."""

import itertools

import clebsch
import e3nn
import pytest
import torch
from e3nn import o3

DEFAULT_DTYPE = torch.float64


@pytest.fixture(autouse=True)
def _scripted() -> None:
    e3nn.set_optimization_defaults(jit_mode="script")


MODES = {
    "uvw": ("3x1o", "2x1o", "4x1e"),
    "uvu": ("3x1o", "2x1o", "3x1e"),
    "uvv": ("3x1o", "2x1o", "2x1e"),
    "uuw": ("3x1o", "3x1o", "4x1e"),
    "uuu": ("3x1o", "3x1o", "3x1e"),
    "uvuv": ("3x1o", "2x1o", "6x1e"),
    "uvu<v": ("4x1o", "4x1o", "6x1e"),
    "u<vw": ("4x1o", "4x1o", "3x1e"),
}
CASES = [
    (mode, weighted, shared)
    for mode, weighted, shared in itertools.product(MODES, (True, False), (True, False))
    if weighted or mode not in ("uvw", "u<vw")
]


def assert_agrees(module: object) -> None:
    report = clebsch.verify(module)
    assert report.passed, f"\n{report}\n{report.operation.text}"


@pytest.mark.parametrize(("mode", "weighted", "shared"), CASES)
def test_channel_modes(mode: str, weighted: bool, shared: bool) -> None:
    irreps = ("3x1o", "3x1o", "1x1e") if mode == "uuw" and not weighted else MODES[mode]
    assert_agrees(o3.TensorProduct(*irreps, [(0, 0, 0, mode, weighted)], shared_weights=shared, internal_weights=False))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    "irreps",
    [
        ("8x0e+5x1o+2x2e", "1x0e+1x1o+1x2e", "4x0e+4x1o+3x2e"),
        ("10x1o+10x1e+8x0e+8x0o", "1x0e+1x1o", "10x1o+10x1e+8x0e+8x0o"),
        ("2x3o+1x4e", "1x2e+3x3o", "2x1o+1x5e+2x6e"),
    ],
)
def test_fully_connected(irreps: tuple[str, str, str], shared: bool) -> None:
    assert_agrees(o3.FullyConnectedTensorProduct(*irreps, shared_weights=shared, internal_weights=False))


def test_full_and_elementwise() -> None:
    assert_agrees(o3.FullTensorProduct("2x0e+1x1o", "1x1o+1x2e"))
    assert_agrees(o3.ElementwiseTensorProduct("2x1o+1x0e", "1x0e+2x1o"))


@pytest.mark.parametrize("shared", [True, False])
def test_linear(shared: bool) -> None:
    assert_agrees(o3.Linear("4x0e+2x1o+3x0e", "5x0e+2x1o", shared_weights=shared, internal_weights=False))


@pytest.mark.parametrize("normalization", ["component", "norm", "integral"])
@pytest.mark.parametrize("normalize", [True, False])
def test_spherical_harmonics(normalization: str, normalize: bool) -> None:
    assert_agrees(o3.SphericalHarmonics("0e+1o+2e+3o+4e+5o+6e", normalize, normalization))


def test_verify_sees_a_difference() -> None:
    class Doubled(o3.TensorProduct):
        def forward(self, x, y, weight=None):  # noqa: ANN001, ANN202
            return 2 * super().forward(x, y, weight)

    report = clebsch.verify(Doubled("3x1o", "2x1o", "3x1e", [(0, 0, 0, "uvu", True)], shared_weights=False, internal_weights=False))
    assert not report.passed
    assert report.values == pytest.approx(0.5)
    with pytest.raises(NotImplementedError, match="BatchNorm"):
        clebsch.verify(torch.nn.BatchNorm1d(3))


@pytest.mark.parametrize("path_normalization", ["element", "path"])
@pytest.mark.parametrize("instructions", [None, [(0, 0), (3, 1), (2, 0)]])
def test_linear_with_paths_of_unlike_widths(path_normalization: str, instructions: list | None) -> None:
    options = {"path_normalization": path_normalization, "instructions": instructions, "internal_weights": False}
    assert_agrees(o3.Linear("5x0e+3x1o+2x0e+1x1o", "4x0e+2x1o", shared_weights=True, **options))


@pytest.mark.parametrize("irreps", [("1x2e", "2x0e"), ("2x0o", "0x0e+1x1o")])
def test_modules_without_paths_are_zero(irreps: tuple[str, str]) -> None:
    assert_agrees(o3.Linear(*irreps, internal_weights=False, shared_weights=True))
    assert_agrees(o3.FullyConnectedTensorProduct(irreps[0], "1x0e", irreps[1], internal_weights=False, shared_weights=True))


def test_a_tensor_square_is_refused_with_what_to_do() -> None:
    with pytest.raises(clebsch.UnsupportedError, match="tensor_square"):
        clebsch.verify(o3.TensorSquare("2x1o"))
