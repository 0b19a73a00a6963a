"""e3nn's own example networks, which know nothing of this library, moved over as docs/from-e3nn.md says: in their source one name
changes, `e3nn.o3` and `e3nn.nn` become `clebsch.compat.e3nn`'s."""

from __future__ import annotations

import importlib
import re
import runpy
import sys
import types
from importlib.util import find_spec
from pathlib import Path

import clebsch.torch as ct
import e3nn
import pytest
import torch

DEFAULT_DTYPE = torch.float64
NAMES = ("points_convolution", "gate_points_message_passing", "gate_points_networks")


@pytest.fixture(autouse=True)
def _eager() -> None:
    torch.manual_seed(0)
    e3nn.set_optimization_defaults(jit_mode="eager")


def moved(source: str) -> str:
    """What a user does with search and replace."""
    return re.sub(r"^from e3nn(?=(?:\.o3|\.nn)? import)", "from clebsch.compat.e3nn", source, flags=re.MULTILINE)


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> tuple[types.ModuleType, types.ModuleType]:
    """The module of networks as it is in e3nn, and moved over."""
    origin = find_spec("e3nn.nn.models.v2106")
    assert origin is not None
    assert origin.origin is not None
    package = types.ModuleType("moved_over")
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "moved_over", package)
    for name in NAMES:
        file = Path(origin.origin).with_name(f"{name}.py")
        text = moved(file.read_text())
        assert "from clebsch.compat.e3nn" in text
        module = types.ModuleType(f"moved_over.{name}")
        module.__package__ = "moved_over"
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(text, str(file), "exec"), module.__dict__)  # noqa: S102
    return importlib.import_module(f"e3nn.nn.models.v2106.{NAMES[-1]}"), sys.modules[f"moved_over.{NAMES[-1]}"]


def molecule() -> dict[str, torch.Tensor]:
    positions = torch.randn(12, 3)
    distances = (positions[:, None] - positions[None]).norm(dim=-1)
    sender, receiver = torch.nonzero((distances < 2.5) & (distances > 0)).T
    return {
        "pos": positions,
        "edge_index": torch.stack([sender, receiver]),
        "x": torch.randn(12, 5),
        "node_attr": torch.randn(12, 2),
        "edge_attr": torch.randn(len(sender), 3),
    }


def made(networks: types.ModuleType) -> torch.nn.Module:
    return networks.NetworkForAGraphWithAttributes(
        irreps_node_input="3x0e+2x0e",
        irreps_node_attr="2x0e",
        irreps_edge_attr="3x0e",
        irreps_node_output="2x0e+1x1o",
        max_radius=2.5,
        num_neighbors=4.0,
        num_nodes=12,
        mul=8,
        layers=2,
        lmax=2,
        pool_nodes=False,
    )


def results(network: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Outputs, the gradient by positions of an energy, and by weights of a loss on that."""
    pos = inputs["pos"].clone().requires_grad_()
    found = network({**inputs, "pos": pos})
    (forces,) = torch.autograd.grad((found**2).sum(), pos, create_graph=True)
    weights = [parameter for parameter in network.parameters() if parameter.requires_grad]
    return [
        found.detach(),
        forces.detach(),
        *torch.autograd.grad((forces**2).sum(), weights, allow_unused=True, materialize_grads=True),
    ]


def assert_same(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(found) == len(expected)
    for value, wanted in zip(found, expected, strict=True):
        assert wanted.abs().max() > 0
        assert (value - wanted).abs().max() <= 1e-10 * wanted.abs().max()


def test_the_network_moved_over_computes_the_same(networks: tuple[types.ModuleType, types.ModuleType]) -> None:
    theirs, ours = (made(each) for each in networks)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "alpha" in name:
                parameter.normal_()  # e3nn starts them at zero, where messages do not count
    ours.load_state_dict(theirs.state_dict())
    assert any(type(module).__module__.startswith("clebsch") for module in ours.modules())
    assert not any(type(module).__module__.startswith("e3nn") for module in ours.modules())
    inputs = molecule()
    expected = results(theirs, inputs)
    assert_same(results(ours, inputs), expected)
    report = ct.accelerate(theirs, show=False)
    assert not report.left
    assert len(report.changed) == 17  # three layers of five products, two gates
    assert_same(results(theirs, inputs), expected)


def test_the_example_of_one_import(capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "one_import.py"))
    assert example["main"](atoms=60, budget=0.0) > 0
    assert "forces equal to" in capsys.readouterr().out
