"""clebsch.torch.accelerate on a MACE model of random weights: energies, forces, stress and a training step's gradients stay.

Runs in MACE's environment (e3nn 0.4.4, whose couplings have other signs).
"""

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # e3nn 0.4.4 keeps its constants in a pickle

from typing import Any  # noqa: E402

import clebsch  # noqa: E402
import clebsch.torch as ct  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from e3nn import o3  # noqa: E402
from mace.modules import ScaleShiftMACE, interaction_classes  # noqa: E402

ELEMENTS, ATOMS, CUTOFF = 3, 12, 3.5


def model(dtype: torch.dtype) -> torch.nn.Module:
    torch.set_default_dtype(dtype)
    torch.manual_seed(0)
    return ScaleShiftMACE(
        r_max=CUTOFF,
        num_bessel=8,
        num_polynomial_cutoff=5,
        max_ell=3,
        interaction_cls=interaction_classes["RealAgnosticResidualInteractionBlock"],
        interaction_cls_first=interaction_classes["RealAgnosticInteractionBlock"],
        num_interactions=2,
        num_elements=ELEMENTS,
        hidden_irreps=o3.Irreps("16x0e+16x1o"),
        MLP_irreps=o3.Irreps("16x0e"),
        gate=torch.nn.functional.silu,
        atomic_energies=torch.zeros(ELEMENTS).numpy(),
        avg_num_neighbors=8.0,
        atomic_numbers=[1, 6, 8],
        correlation=3,
        atomic_inter_scale=1.0,
        atomic_inter_shift=0.0,
    )


def batch(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    positions = torch.rand(ATOMS, 3, generator=generator, dtype=torch.float64) * 4.0
    near = torch.cdist(positions, positions) < CUTOFF
    receiver, sender = (near & ~torch.eye(ATOMS, dtype=torch.bool)).nonzero(as_tuple=True)
    species = torch.arange(ATOMS) % ELEMENTS
    edges = len(sender)
    return {
        "positions": positions.to(dtype),
        "node_attrs": torch.nn.functional.one_hot(species, ELEMENTS).to(dtype),
        "edge_index": torch.stack([sender, receiver]),
        "shifts": torch.zeros(edges, 3, dtype=dtype),
        "unit_shifts": torch.zeros(edges, 3, dtype=dtype),
        "cell": torch.eye(3, dtype=dtype) * 20,
        "batch": torch.zeros(ATOMS, dtype=torch.long),
        "ptr": torch.tensor([0, ATOMS]),
        "head": torch.zeros(1, dtype=torch.long),
    }


def results(mace: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Energy, forces, stress; gradients of a loss on energy and forces."""
    found = mace({key: value.clone() for key, value in inputs.items()}, training=True, compute_force=True, compute_stress=True)
    loss = found["energy"].sum() + (found["forces"] ** 2).sum()
    parameters = {name: parameter for name, parameter in mace.named_parameters() if parameter.requires_grad}
    gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True, materialize_grads=True)
    quantities = {key: found[key].detach() for key in ("energy", "forces", "stress")}
    return quantities | {"weights": torch.cat([gradient.reshape(-1) for gradient in gradients])}


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_a_mace_model_computes_the_same(dtype: torch.dtype, bound: float, capsys: pytest.CaptureFixture[str]) -> None:
    mace, inputs = model(dtype), batch(dtype)
    state, before = {key: value.clone() for key, value in mace.state_dict().items()}, results(mace, inputs)
    report = ct.accelerate(mace)
    assert "SymmetricContraction" in capsys.readouterr().out
    kinds = [what.split()[0] for _, what in report.changed]
    assert kinds.count("SymmetricContraction") == 2
    assert kinds.count("gather,") == 2  # the products with what is before and after them
    assert kinds.count("TensorProduct") == 0
    assert not report.left
    assert kinds.count("SphericalHarmonics") == 1
    assert kinds.count("Linear") >= 6
    after = results(mace, inputs)
    assert torch.linalg.norm(before["forces"]) > 0
    for name, value in after.items():
        scale = before[name].abs().max()
        assert (value - before[name]).abs().max() <= bound * scale, name
        assert not torch.equal(value, before[name])  # it did run elsewhere
    assert mace.state_dict().keys() == state.keys()
    assert all(torch.equal(value, state[key]) for key, value in mace.state_dict().items())
    report.undo()
    assert not any(hasattr(interaction, "conv_fusion") for interaction in mace.interactions)
    again = results(mace, inputs)
    assert all(torch.equal(again[name], before[name]) for name in ("energy", "forces"))


def test_species_that_are_mixed_are_refused() -> None:
    mace, inputs = model(torch.float64), batch(torch.float64)
    ct.accelerate(mace, show=False)
    inputs["node_attrs"] = inputs["node_attrs"] * 0.5 + 0.5 / ELEMENTS
    with pytest.raises(clebsch.ClebschError, match="^y: expected one 1"):
        mace(inputs)
