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
from e3nn import o3  # noqa: E402

torch.set_default_dtype(torch.float64)
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
