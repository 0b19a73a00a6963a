"""Live comparison of symmetric contractions with mace-torch 0.3.16, whose U tensors and weights are used as they are.

Runs in an environment of its own (./dev test --peers makes it): mace-torch needs e3nn 0.4.4.
"""

import os
import sys
from pathlib import Path

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # e3nn 0.4.4 keeps its constants in a pickle

import clebsch  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from e3nn import o3  # noqa: E402

DEFAULT_DTYPE = torch.float64

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))
from make_mace_goldens import SymmetricContraction, bases_and_weights, channels_apart  # noqa: E402


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize(
    ("irreps", "out", "correlation"),
    [("5x0e+5x1o", "5x0e+5x1o", 3), ("3x0e+3x1o+3x2e", "3x0e+3x1o+3x2e", 2), ("1x0e+1x1o+1x2e+1x3o", "1x0e+1x1o", 2)],
)
def test_values_and_gradients(irreps: str, out: str, correlation: int, reduced: bool) -> None:
    elements, nodes = 3, 7
    generator = np.random.default_rng(0)
    module = SymmetricContraction(
        o3.Irreps(irreps), o3.Irreps(out), correlation=correlation, num_elements=elements, use_reduced_cg=reduced
    )
    bases, parts = bases_and_weights(module, correlation)
    operation = clebsch.build("symmetric_contraction", in_=irreps, out=out, bases=bases)
    sizes = {operand.name: operand.row_size for operand in operation.inputs}
    assert sizes["weights"] == sum(part.shape[1] * part.shape[2] for part in parts)
    with torch.no_grad():
        for part in parts:
            part.copy_(torch.from_numpy(generator.standard_normal(tuple(part.shape))))
    weights = torch.cat([part.reshape(elements, -1) for part in parts], dim=1).detach().numpy()
    x = torch.from_numpy(generator.standard_normal((nodes, sizes["x"]))).requires_grad_()
    species = generator.integers(0, elements, nodes)
    one_hot = torch.nn.functional.one_hot(torch.from_numpy(species), elements).double()
    expected = module(channels_apart(x, o3.Irreps(irreps)), one_hot)
    cotangent = generator.standard_normal(tuple(expected.shape))
    gradients = torch.autograd.grad(expected, [x, *parts], torch.from_numpy(cotangent))

    arrays = {"x": x.detach().numpy(), "weights": weights, "species": species}
    assert operation(**arrays) == pytest.approx(expected.detach().numpy(), rel=1e-11, abs=1e-11)
    found = operation.vjp("x", "weights")(**arrays, out_cotangent=cotangent)
    assert found["x_gradient"] == pytest.approx(gradients[0].numpy(), rel=1e-11, abs=1e-11)
    of_weights = torch.cat([gradient.reshape(elements, -1) for gradient in gradients[1:]], dim=1).numpy()
    assert found["weights_gradient"] == pytest.approx(of_weights, rel=1e-11, abs=1e-11)
