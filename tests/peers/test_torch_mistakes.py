"""What clebsch.torch refuses, and that its messages name the operand, what was expected and what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clebsch
import clebsch.torch as ct
import numpy as np
import pytest
import torch
from on_devices import _defaults, convolution, everywhere, on_gpu  # noqa: F401 - a fixture

DEFAULT_DTYPE = torch.float64

MISTAKES: dict[str, tuple[Callable[..., Any], str]] = {
    "width": (lambda m, x, y, w, s, r: m(x[:, 1:], y, w, s, r), r"^x: expected shape \(4, 5\) .*got \(4, 4\)"),
    "rows": (lambda m, x, y, w, s, r: m(x, y[1:], w, s, r), "^y: expected shape"),
    "dtype": (lambda m, x, y, w, s, r: m(x, y, w.float(), s, r), "^weights: expected torch.float64 as x, got torch.float32"),
    "integers": (lambda m, x, y, w, s, r: m(x.long(), y, w, s, r), "^x: expected float32"),
    "index dtype": (lambda m, x, y, w, s, r: m(x, y, w, s.double(), r), "^sender: expected int32 or int64"),
    "index out of range": (lambda m, x, y, w, s, r: m(x, y, w, s + 9, r), "sender"),
    "unsorted": (lambda m, x, y, w, s, r: m(x, y, w, s, r.flip(0)), "receiver"),
    "no weights": (lambda m, x, y, w, s, r: m(x, y, None, s, r), "^weight: expected one"),
    "unknown name": (lambda m, x, y, w, s, r: m.operation(x=x, z=y), "^no input or index 'z'"),
    "a number": (lambda m, x, y, w, s, r: m(x, torch.tensor(1.0), w, s, r), "^y: expected rows"),
    "unknown space": (lambda m, x, y, w, s, r: m.operation({"atom": 3}, x=x, y=y, weights=w, sender=s, receiver=r), "'atom'"),
    "missing": (lambda m, x, y, w, s, r: m.operation(x=x), "^'y' is missing"),
}


@everywhere
@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_name_the_operand(case: str) -> None:
    call, message = MISTAKES[case]
    if on_gpu() and case in ("index out of range", "unsorted"):
        pytest.skip("kernels on a GPU cannot raise: check_indices")
    module, inputs = convolution()
    with torch.no_grad(), pytest.raises(clebsch.ClebschError, match=message):
        call(module, *inputs)


def test_mistakes_of_modules() -> None:
    with pytest.raises(clebsch.ClebschError, match=r"broadcast, got x \(5, 13\), y \(3, 4\)"):
        ct.FullyConnectedTensorProduct("4x0e+3x1o", "1x0e+1x1o", "1x0e")(torch.zeros(5, 13), torch.zeros(3, 4))
    with pytest.raises(TypeError, match="^features: expected a tensor, got ndarray"):
        ct.Linear("2x0e", "1x0e")(np.zeros((3, 2)))
    with pytest.raises(TypeError, match="^x: expected a tensor, got NoneType"):
        ct.Operation(clebsch.build("norm", irreps="2x1o"))(x=None)
    with pytest.raises(clebsch.ClebschError, match="internal_weights"):
        ct.Linear("1x0e", "1x0e", internal_weights=True, shared_weights=False)
    with pytest.raises(clebsch.ClebschError, match="f_in"):
        ct.Linear("1x0e", "1x0e", f_in=2)
    with pytest.raises(clebsch.ClebschError, match="^features: expected a last dimension of 5"):
        ct.Linear("2x0e+1x1o", "1x0e")(torch.zeros(3, 4))
    with pytest.raises(clebsch.ClebschError, match="^weight: expected last dimensions"):
        ct.Linear("2x0e", "1x0e", internal_weights=False)(torch.zeros(3, 2), torch.zeros(3))
    with pytest.raises(clebsch.ClebschError, match="irreps_in"):
        ct.SphericalHarmonics("0e", True, irreps_in="2e")


def test_a_text_that_is_refused_is_refused_again() -> None:
    for _ in range(2):
        with pytest.raises((ValueError, RuntimeError), match="expected 'clebsch polynomial 0'"):
            torch.ops.clebsch.run("nonsense", [torch.randn(3, 4)], [3])


def test_a_weight_of_a_product_without_weights_is_refused() -> None:
    product = clebsch.torch.TensorProduct("2x1o", "2x1o", "2x0e", [(0, 0, 0, "uuu", False)])
    with pytest.raises(clebsch.ClebschError, match="weight: expected None"):
        product(torch.randn(5, 6), torch.randn(5, 6), torch.randn(3))
