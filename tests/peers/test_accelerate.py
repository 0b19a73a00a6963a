"""clebsch.torch.accelerate on a small e3nn network: the same numbers, parameters and state; what is left and why; and back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import clebsch
import clebsch.torch as ct
import e3nn
import pytest
import torch
from e3nn import nn, o3
from on_devices import needs_gpu

DEFAULT_DTYPE = torch.float64


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    torch.manual_seed(0)
    e3nn.set_optimization_defaults(jit_mode="eager")
    yield
    torch.compiler.reset()


class Scaled(o3.Linear):
    """A user's: with a forward of its own."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(features)


class Network(torch.nn.Module):
    """Gather, product, scatter, gate, twice; energies of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.harmonics = o3.SphericalHarmonics("0e+1o+2e", True, "component")
        self.embed = o3.Linear("3x0e", "8x0e")
        self.layers = torch.nn.ModuleList()
        irreps = o3.Irreps("8x0e")
        for _ in range(2):
            gate = nn.Gate("8x0e", [torch.nn.functional.silu], "8x0e", [torch.sigmoid], "8x1o")
            outputs, instructions = [], []
            for i, (mul, first) in enumerate(irreps):
                for j, (_, second) in enumerate(self.harmonics.irreps_out):
                    for ir in first * second:
                        if ir in gate.irreps_in:
                            instructions.append((i, j, len(outputs), "uvu", True))
                            outputs.append((mul, ir))
            out, places, _ = o3.Irreps(outputs).sort()
            instructions = [(i, j, places[k], mode, weighted) for i, j, k, mode, weighted in instructions]
            product = o3.TensorProduct(irreps, self.harmonics.irreps_out, out, instructions, shared_weights=False)
            layer = {
                "product": product,
                "radial": nn.FullyConnectedNet([1, 16, product.weight_numel], torch.nn.functional.silu),
                "down": o3.Linear(out.simplify(), gate.irreps_in, biases=True),
                "skip": o3.FullyConnectedTensorProduct(irreps, "3x0e", gate.irreps_in),
                "gate": gate,
            }
            self.layers.append(torch.nn.ModuleDict(layer))
            irreps = gate.irreps_out
        self.square = o3.TensorSquare(irreps, "1x0e")
        self.scaled = Scaled(irreps, "1x0e")

    def forward(self, species: torch.Tensor, vectors: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        kinds = torch.nn.functional.one_hot(species, 3).to(vectors.dtype)
        x, y, length = self.embed(kinds), self.harmonics(vectors), vectors.norm(dim=-1, keepdim=True)
        for layer in self.layers:
            messages = layer["product"](x[edges[0]], y, layer["radial"](length))
            sums = messages.new_zeros(len(x), messages.shape[1]).index_add(0, edges[1], messages)
            x = layer["gate"](layer["down"](sums) + layer["skip"](x, kinds))
        return self.square(x) + self.scaled(x)


def inputs(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(2)
    edges = torch.stack([torch.randint(0, 10, (60,), generator=generator), torch.randint(0, 10, (60,), generator=generator)])
    vectors = torch.randn(60, 3, generator=generator, dtype=torch.float64).to(dtype)
    return torch.randint(0, 3, (10,), generator=generator), vectors.requires_grad_(), edges


def step(network: torch.nn.Module, arguments: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """Energies, forces on edges, and weights' gradients of a loss on both."""
    energy = network(*arguments)
    (force,) = torch.autograd.grad(energy.sum(), arguments[1], create_graph=True)
    loss = energy.sum() + (force**2).sum()
    return [energy, force, *torch.autograd.grad(loss, list(network.parameters()), allow_unused=True, materialize_grads=True)]


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-11), (torch.float32, 1e-5)])
def test_a_network_computes_the_same_and_goes_back(dtype: torch.dtype, bound: float, capsys: pytest.CaptureFixture[str]) -> None:
    torch.set_default_dtype(dtype)
    network, arguments = Network(), inputs(dtype)
    state, parameters = copy.deepcopy(network.state_dict()), list(network.parameters())
    expected = step(network, arguments)
    report = ct.accelerate(network)
    printed = capsys.readouterr().out
    assert "layers.1.product: TensorProduct 8x0e+8x1o x 1x0e+1x1o+1x2e" in printed
    changed = {name for name, _ in report.changed}
    assert changed >= {"harmonics", "embed", "layers.0.product", "layers.0.down", "layers.1.skip", "layers.0.gate.mul"}
    left = {name: (kind, why) for name, kind, why in report.left}
    assert left["square"][0] == "TensorSquare"
    assert left["scaled"] == ("Scaled", "its class has a forward of its own")
    found = step(network, arguments)
    for value, wanted in zip(found, expected, strict=True):
        assert (value - wanted).abs().max() <= bound * max(1.0, wanted.abs().max().item())
    assert not torch.equal(found[1], expected[1])
    assert all(a is b for a, b in zip(network.parameters(), parameters, strict=True))
    assert network.state_dict().keys() == state.keys()
    report.undo()
    for value, wanted in zip(step(network, arguments), expected, strict=True):
        assert torch.equal(value, wanted)


def test_a_step_is_timed_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    network, arguments = Network(), inputs()
    expected, seen = network(*arguments), []

    def training() -> None:
        seen.append(network(*arguments))
        seen[-1].sum().backward()

    report = ct.accelerate(network, step=training)
    assert report.seconds is not None
    assert report.share is not None
    assert min(report.seconds) > 0
    assert 0 <= report.share <= 1
    assert f"a step took {report.seconds[0]:.3g} s, {report.share:.0%} of it in what was changed" in capsys.readouterr().out
    assert len(seen) == 8
    before = [torch.equal(values, expected) for values in seen]
    assert before == [False] * 4 + [True] * 4  # changed, as it was ...
    assert torch.equal(network(*arguments), seen[0])  # ... and changed again
    other = Network()
    with pytest.raises(ZeroDivisionError):
        ct.accelerate(other, step=lambda: 1 // 0)
    assert not any("forward" in module.__dict__ for module in other.modules())


def test_training_goes_on_with_the_same_parameters() -> None:
    network, arguments = Network(), inputs()
    optimiser = torch.optim.SGD(network.parameters(), 1e-3)
    report = ct.accelerate(network, show=False)
    before = network(*arguments).detach()
    (network(*arguments) ** 2).sum().backward()
    optimiser.step()
    after = network(*arguments)
    assert not torch.allclose(after, before)
    report.undo()
    torch.testing.assert_close(network(*arguments), after)


def test_copies_pickles_and_compiled_models() -> None:
    network, arguments = Network(), inputs()
    ct.accelerate(network, show=False)
    expected = network(*arguments)
    twin = copy.deepcopy(network)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(1.5)
    assert torch.equal(network(*arguments), expected)  # the copy has parameters of its own
    assert not torch.allclose(twin(*arguments), expected)
    layer = network.layers[1]["skip"]
    assert torch.equal(pickle.loads(pickle.dumps(layer)).weight, layer.weight)
    compiled = torch.compile(network, fullgraph=True, dynamic=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*arguments), expected)


def test_what_cannot_be_changed_is_left_with_a_reason() -> None:
    twice = Network()
    ct.accelerate(twice, show=False)
    again = ct.accelerate(twice, show=False)
    assert not again.changed
    assert ("harmonics", "SphericalHarmonics", "its forward was replaced already") in again.left
    damaged = o3.FullyConnectedTensorProduct("2x1o", "1x1o", "2x0e+2x1e")
    damaged.instructions[0] = damaged.instructions[0]._replace(path_weight=2.0)
    report = ct.accelerate(damaged, show=False)
    assert not report.changed
    assert "differ by" in report.left[0][2]
    assert "(the model)" in str(report)
    several = ct.accelerate(o3.Linear("2x0e", "2x0e", f_in=2, f_out=3), show=False)
    assert several.left[0][2] == "Linear with f_in and f_out"
    e3nn.set_optimization_defaults(jit_mode="script")
    scripted = torch.jit.script(e3nn.util.jit.compile(o3.Linear("2x0e+1x1o", "2x0e+1x1o")))
    assert "TorchScript" in ct.accelerate(torch.nn.Sequential(scripted), show=False).left[0][2]


def test_mistakes_name_the_argument() -> None:
    product = o3.TensorProduct("2x1o", "1x1o", "2x1e", [(0, 0, 0, "uvu", True)], shared_weights=False)
    ct.accelerate(product, show=False)
    with pytest.raises(clebsch.ClebschError, match="^weight: expected a last dimension of 2"):
        product(torch.zeros(4, 6), torch.zeros(4, 3), torch.zeros(4, 3))
    with pytest.raises(clebsch.ClebschError, match="^y: expected a last dimension of 3"):
        product(torch.zeros(4, 6), torch.zeros(4, 4), torch.zeros(4, 2))


@needs_gpu
def test_products_that_mix_channels_of_both_on_a_gpu() -> None:
    """They run here, their weights' gradients too."""
    layer = o3.FullyConnectedTensorProduct("16x0e+8x1o", "9x0e", "16x0e+8x1o").cuda()
    x, y = torch.randn(50, 40, device="cuda"), torch.randn(50, 9, device="cuda", requires_grad=True)

    def step() -> list[torch.Tensor]:
        out = layer(x, y)
        return [out, *torch.autograd.grad(out.square().sum(), [y, *layer.parameters()])]

    expected = step()
    ct.accelerate(layer, show=False)
    with torch.profiler.profile() as profile:
        found = step()
    assert any("clebsch" in event.key for event in profile.key_averages())
    for value, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(value, wanted)
