"""clebsch.torch beside e3nn 0.6.0: the same state, values and derivatives to third order; gradcheck, opcheck, torch.compile.

On the processor, and again on a GPU where there is one.
"""

from __future__ import annotations

import copy
import io
import pickle
import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clebsch
import clebsch.torch as ct
import numpy as np
import pytest
import torch
import torch.utils.checkpoint
from comparison import MODES
from e3nn import o3
from on_devices import _defaults, convolution, everywhere, normal, on_gpu, same  # noqa: F401 - a fixture
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

DEFAULT_DTYPE = torch.float64
Tensors = tuple[torch.Tensor, ...]


def mixed_instructions(mode: str) -> tuple[Any, ...]:
    m1, m2, out = MODES[mode]
    irreps = (f"{m1}x1o+{m1}x2e", f"{m2}x2e+{m2}x1o", f"{out}x2o+{out}x1e+1x3e")
    return (*irreps, [(0, 0, 0, mode, True, 0.5), (1, 1, 0, mode, True), (0, 1, 1, mode, True, 2.0)])


# name: (our module, e3nn's, inputs); both made with the same arguments.
MODULES: dict[str, Callable[[], tuple[torch.nn.Module, torch.nn.Module, Tensors]]] = {
    **{
        f"tensor product {mode}": lambda mode=mode: (
            ct.TensorProduct(*mixed_instructions(mode), path_normalization="path"),
            o3.TensorProduct(*mixed_instructions(mode), path_normalization="path"),
            (normal(5, MODES[mode][0] * 8), normal(5, MODES[mode][1] * 8)),
        )
        for mode in MODES
    },
    "tensor product, weights per row": lambda: (
        ct.TensorProduct("3x1o", "1x1o", "3x1e", [(0, 0, 0, "uvu", True)], [2.0], [3.0], [5.0], "norm", shared_weights=False),
        o3.TensorProduct("3x1o", "1x1o", "3x1e", [(0, 0, 0, "uvu", True)], [2.0], [3.0], [5.0], "norm", shared_weights=False),
        (normal(5, 9), normal(5, 3), normal(5, 3)),
    ),
    "tensor product without weights": lambda: (
        ct.TensorProduct("3x1o", "1x1o", "3x1e", [(0, 0, 0, "uvu", False)]),
        o3.TensorProduct("3x1o", "1x1o", "3x1e", [(0, 0, 0, "uvu", False)]),
        (normal(5, 9), normal(5, 3)),
    ),
    "fully connected": lambda: (
        ct.FullyConnectedTensorProduct("4x0e+3x1o", "1x0e+1x1o", "5x0e+2x1o+1x1e"),
        o3.FullyConnectedTensorProduct("4x0e+3x1o", "1x0e+1x1o", "5x0e+2x1o+1x1e"),
        (normal(5, 13), normal(5, 4)),
    ),
    "fully connected, one weight argument": lambda: (
        ct.FullyConnectedTensorProduct("4x0e+3x1o", "1x0e+1x1o", "5x0e+2x1o", "norm", "path", internal_weights=False),
        o3.FullyConnectedTensorProduct("4x0e+3x1o", "1x0e+1x1o", "5x0e+2x1o", "norm", "path", internal_weights=False),
        (normal(5, 13), normal(5, 4), normal(49)),
    ),
    "broadcast": lambda: (
        ct.FullyConnectedTensorProduct("4x0e+3x1o", "1x0e+1x1o", "5x0e+2x1o"),
        o3.FullyConnectedTensorProduct("4x0e+3x1o", "1x0e+1x1o", "5x0e+2x1o"),
        (normal(2, 1, 13), normal(3, 4)),
    ),
    "one row": lambda: (
        ct.FullyConnectedTensorProduct("4x0e+3x1o", "1x0e+1x1o", "5x0e+2x1o"),
        o3.FullyConnectedTensorProduct("4x0e+3x1o", "1x0e+1x1o", "5x0e+2x1o"),
        (normal(13), normal(4)),
    ),
    "linear": lambda: (
        ct.Linear("4x0e+2x1o+3x0e", "5x0e+2x1o"),
        o3.Linear("4x0e+2x1o+3x0e", "5x0e+2x1o"),
        (normal(2, 3, 13),),
    ),
    "linear, biases": lambda: (
        ct.Linear("4x0e+2x1o", "5x0e+2x1o+1x0e", biases=[False, False, True], path_normalization="path"),
        o3.Linear("4x0e+2x1o", "5x0e+2x1o+1x0e", biases=[False, False, True], path_normalization="path"),
        (normal(5, 10),),
    ),
    "linear, several inputs and outputs": lambda: (
        ct.Linear("4x0e+2x1o", "5x0e+2x1o", f_in=2, f_out=3, biases=True),
        o3.Linear("4x0e+2x1o", "5x0e+2x1o", f_in=2, f_out=3, biases=True),
        (normal(5, 2, 10),),
    ),
    "linear, weights per row": lambda: (
        ct.Linear("4x0e+2x1o", "5x0e+2x1o", instructions=[(0, 0)], shared_weights=False),
        o3.Linear("4x0e+2x1o", "5x0e+2x1o", instructions=[(0, 0)], shared_weights=False),
        (normal(5, 10), normal(5, 20)),
    ),
    "full": lambda: (
        ct.FullTensorProduct("2x0e+1x1o", "1x1o+1x2e"),
        o3.FullTensorProduct("2x0e+1x1o", "1x1o+1x2e"),
        (normal(5, 5), normal(5, 8)),
    ),
    "full, some outputs": lambda: (
        ct.FullTensorProduct(o3.Irreps("2x0e+1x1o"), "1x1o+1x2e", [o3.Irrep("1o"), "0e"], "norm"),
        o3.FullTensorProduct("2x0e+1x1o", "1x1o+1x2e", ["1o", "0e"], "norm"),
        (normal(5, 5), normal(5, 8)),
    ),
    "element-wise": lambda: (
        ct.ElementwiseTensorProduct("2x1o+1x0e", o3.Irreps("1x0e+2x1o")),
        o3.ElementwiseTensorProduct("2x1o+1x0e", "1x0e+2x1o"),
        (normal(5, 7), normal(5, 7)),
    ),
    "harmonics": lambda: (
        ct.SphericalHarmonics("0e+1o+2e+3o", True, "component"),
        o3.SphericalHarmonics("0e+1o+2e+3o", True, "component"),
        (normal(2, 3, 3),),
    ),
    "harmonics by degree": lambda: (ct.SphericalHarmonics([0, 2], False), o3.SphericalHarmonics([0, 2], False), (normal(5, 3),)),
}


def made(case: str) -> tuple[torch.nn.Module, torch.nn.Module, Tensors]:
    """e3nn builds its modules on the processor."""
    device = torch.get_default_device()
    with torch.device("cpu"):
        ours, theirs, inputs = MODULES[case]()
    return ours.to(device), theirs.to(device), tuple(tensor.detach().to(device).requires_grad_() for tensor in inputs)


def derivatives(module: torch.nn.Module, inputs: Tensors, order: int) -> list[torch.Tensor]:
    """Values, then gradients of a random combination of the last ones, to inputs and parameters, `order` times."""
    generator = torch.Generator(torch.get_default_device()).manual_seed(1)
    leaves = [*inputs, *(parameter for parameter in module.parameters())]
    found = [module(*inputs)]
    last = found
    for _ in range(order):
        total = sum((torch.randn(value.shape, generator=generator) * value).sum() for value in last)
        if total.requires_grad:
            last = list(torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True, materialize_grads=True))
        else:
            last = [torch.zeros_like(leaf) for leaf in leaves]
        found += last
    return found


@everywhere
@pytest.mark.parametrize("case", MODULES)
def test_modules_take_e3nns_state_and_agree_to_third_order(case: str) -> None:
    ours, theirs, inputs = made(case)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter)  # biases too
    ours.load_state_dict(theirs.state_dict())
    assert str(ours.irreps_out) == str(theirs.irreps_out)
    assert getattr(ours, "weight_numel", 0) == getattr(theirs, "weight_numel", 0)
    found, expected = derivatives(ours, inputs, 3), derivatives(theirs, inputs, 3)
    assert len(found) == len(expected)
    for value, wanted in zip(found, expected, strict=True):
        assert value.shape == wanted.shape
        assert torch.linalg.norm(value - wanted) <= 1e-12 * torch.linalg.norm(wanted)


def test_a_state_with_other_signs_is_refused() -> None:
    product = ("2x1o", "1x2e", "2x2o", [(0, 0, 0, "uvu", True)])
    state = o3.TensorProduct(*product).state_dict()
    assert any("_w3j_1_2_2" in key for key in state)
    with pytest.raises(clebsch.ClebschError, match="^signs: .*_w3j_1_2_2 .*e3nn-0.4"):
        ct.TensorProduct(*product, signs="e3nn-0.4").load_state_dict(state)


def contraction() -> tuple[torch.nn.Module, Tensors]:
    return ct.SymmetricContraction("2x0e+2x1o", "2x0e+2x1o", 2, 3), (normal(4, 8), torch.tensor([0, 2, 1, 2]))


OWN = {"convolution": convolution, "symmetric contraction": contraction}


@everywhere
@pytest.mark.parametrize("case", ["fully connected", "linear, biases", "harmonics", "tensor product u<vw", *OWN])
def test_gradients_are_those_of_finite_differences(case: str) -> None:
    module, inputs = OWN[case]() if case in OWN else made(case)[::2]
    names = [name for name, _ in module.named_parameters()]

    def function(*tensors: torch.Tensor) -> torch.Tensor:
        weights = dict(zip(names, tensors[len(inputs) :], strict=True))
        return torch.func.functional_call(module, weights, tensors[: len(inputs)])

    everything = (*inputs, *module.parameters())
    assert torch.autograd.gradcheck(function, everything, nondet_tol=1e-12 * on_gpu())
    assert torch.autograd.gradgradcheck(function, everything, nondet_tol=1e-12 * on_gpu())


@everywhere
def test_a_convolution_is_gather_product_and_scatter() -> None:
    module, (x, y, weights, sender, receiver) = convolution()
    with torch.device("cpu"):
        product = o3.TensorProduct(
            "2x0e+1x1o",
            "0e+1o",
            str(module.irreps_out),
            [(0, 0, 0, "uvu", True), (1, 1, 1, "uvu", True), (0, 1, 2, "uvu", True), (1, 0, 3, "uvu", True)],
            shared_weights=False,
        )
    product = product.to(x.device)
    expected = torch.zeros(4, product.irreps_out.dim).index_add(0, receiver, product(x[sender], y, weights))
    torch.testing.assert_close(module(x, y, weights, sender, receiver), expected, rtol=1e-13, atol=1e-13)


@everywhere
def test_the_operator_passes_torchs_own_checks() -> None:
    module, inputs = convolution()
    arguments = (module.operation.text, list(inputs), [{"edge": 5, "node": 4}[space] for space in module.operation.spaces])
    torch.library.opcheck(torch.ops.clebsch.run.default, arguments)


class Layer(torch.nn.Module):
    """A message-passing layer on edge vectors, with everything that has a module here."""

    def __init__(self) -> None:
        super().__init__()
        self.harmonics = ct.SphericalHarmonics("0e+1o+2e", True, "component")
        self.up = ct.Linear("4x0e+2x1o", "4x0e+2x1o")
        self.convolution = ct.Convolution("4x0e+2x1o", "0e+1o+2e", "0e+1o")
        self.radial = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.SiLU(), torch.nn.Linear(8, self.convolution.weight_numel))
        self.down = ct.Linear(self.convolution.irreps_out, "4x0e+4x1o")
        self.contraction = ct.SymmetricContraction("4x0e+4x1o", "4x0e", 3, 2)
        self.skip = ct.FullyConnectedTensorProduct("4x0e", "2x0e", "1x0e")

    def forward(self, x: torch.Tensor, vectors: torch.Tensor, sender: torch.Tensor, receiver: torch.Tensor) -> torch.Tensor:
        species = torch.arange(x.shape[0], device=x.device) % 2
        x = self.convolution(self.up(x), self.harmonics(vectors), self.radial(vectors**2), sender, receiver)
        x = self.contraction(self.down(x), species)
        return self.skip(x, torch.nn.functional.one_hot(species, 2).to(x.dtype)).sum()


def graph(nodes: int, edges: int) -> Tensors:
    return torch.randn(nodes, 10), normal(edges, 3), torch.randint(0, nodes, (edges,)), torch.randint(0, nodes, (edges,)).sort()[0]


@everywhere
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_layer_compiles_whole_and_once_for_all_sizes(backend: str) -> None:
    layer = Layer()
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=backend)
    for i, (nodes, edges) in enumerate([(5, 12), (7, 20), (9, 31)]):
        inputs = graph(nodes, edges)
        with torch._dynamo.config.patch(error_on_recompile=i > 0):
            energy = compiled(*inputs)
            found = torch.autograd.grad(energy, [inputs[1], *layer.parameters()])
        expected = layer(*inputs)
        torch.testing.assert_close(energy, expected)
        for gradient, wanted in zip(found, torch.autograd.grad(expected, [inputs[1], *layer.parameters()]), strict=True):
            torch.testing.assert_close(gradient, wanted)


@everywhere
@pytest.mark.parametrize("case", ["fully connected", "linear, biases", "harmonics", "tensor product uvu", "broadcast"])
def test_forward_mode_agrees_with_e3nn(case: str) -> None:
    ours, theirs, inputs = made(case)
    ours.load_state_dict(theirs.state_dict())
    inputs = tuple(tensor.detach() for tensor in inputs)
    tangents = tuple(torch.randn_like(tensor) for tensor in inputs)
    for value, wanted in zip(torch.func.jvp(ours, inputs, tangents), torch.func.jvp(theirs, inputs, tangents), strict=True):
        torch.testing.assert_close(value, wanted, rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradcheck(ours, tuple(t.requires_grad_() for t in inputs), check_forward_ad=True)


@everywhere
def test_forward_mode_reaches_weights_and_second_order() -> None:
    module, inputs = contraction()
    x, species = inputs[0].detach(), inputs[1]
    along = torch.randn_like(module.weight)

    def of_weight(weight: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, {"weight": weight}, (x, species))

    value, tangent = torch.func.jvp(of_weight, (module.weight.detach(),), (along,))
    torch.testing.assert_close(tangent, of_weight(along))  # linear in the weights
    energy = lambda x: module(x, species).sin().sum()  # noqa: E731
    hessian = torch.func.hessian(energy)(x)  # forward over reverse, batched
    double_backward = torch.autograd.functional.hessian(energy, x)
    torch.testing.assert_close(hessian, double_backward)
    torch.testing.assert_close(torch.func.jacfwd(torch.func.jacfwd(energy))(x), double_backward)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(energy))(x), double_backward)
    torch.testing.assert_close(torch.func.grad(energy)(x), torch.autograd.functional.jacobian(energy, x))
    assert value.shape == (4, 8)


@everywhere
@pytest.mark.parametrize(
    "batched", [(0,), (1, 2), (0, 1, 2), (3,), (0, 3, 4), (0, 1, 2, 3, 4)], ids=lambda which: "".join("xywsr"[i] for i in which)
)
@pytest.mark.parametrize("masked", [False, True])
def test_vmap_is_a_loop(batched: tuple[int, ...], masked: bool) -> None:
    module, inputs = convolution()
    inputs = tuple(tensor.detach() for tensor in inputs)
    if masked:
        inputs[3][1] = -1
        inputs[4][:2] = -1
    stacked = [
        torch.stack([t, t.flip(0) * (1 + (t.dtype == torch.float64)), t]) if i in batched else t for i, t in enumerate(inputs)
    ]
    if 4 in batched:
        stacked[4] = stacked[4].sort(dim=1)[0]
    dims = tuple(0 if i in batched else None for i in range(5))
    expected = torch.stack([module(*(t[b] if i in batched else t for i, t in enumerate(stacked))) for b in range(3)])
    torch.testing.assert_close(torch.vmap(module, dims)(*stacked), expected)
    if 0 in batched:  # another place of the batch
        other = (stacked[0].movedim(0, 1), *stacked[1:])
        torch.testing.assert_close(torch.vmap(module, (1, *dims[1:]))(*other), expected)


@pytest.mark.parametrize("entry", ["just beyond", "far beyond", "negative"])
def test_an_index_beyond_its_part_of_a_batch_is_refused(entry: str) -> None:
    module, (x, y, weights, sender, receiver) = convolution()
    senders = torch.stack([sender, sender, sender])
    senders[0, 1] = {"just beyond": len(x), "far beyond": 2 * len(x) + 1, "negative": -2}[entry]
    with pytest.raises(clebsch.ClebschError, match="^index 'sender': .*expected -1 or a row of 'node'"):
        torch.vmap(lambda index: module(x.detach(), y.detach(), weights.detach(), index, receiver))(senders)


@everywhere
def test_vmap_of_weights_and_of_their_gradients() -> None:
    module, inputs = made("fully connected")[::2]
    x, y = (tensor.detach() for tensor in inputs)
    weights = torch.randn(3, module.weight_numel)

    def loss(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (torch.func.functional_call(module, {"weight": weight}, (x, y)) ** 2).sum()

    every = torch.vmap(torch.func.grad(loss), (0, None))(weights, x)
    torch.testing.assert_close(every, torch.stack([torch.func.grad(loss)(weight, x) for weight in weights]))
    per_sample = torch.vmap(
        torch.func.grad(lambda w, x, y: (torch.func.functional_call(module, {"weight": w}, (x, y)) ** 2).sum()), (None, 0, 0)
    )(weights[0], x, y)
    torch.testing.assert_close(per_sample.sum(0), every[0])


@everywhere
def test_training_on_forces_reaches_every_weight() -> None:
    """The gradient of a force is a second derivative: against finite differences along a direction."""
    layer, inputs = Layer(), graph(5, 12)

    def loss() -> torch.Tensor:
        (force,) = torch.autograd.grad(layer(*inputs), inputs[1], create_graph=True)
        return (force**2).sum()

    gradients = torch.autograd.grad(loss(), list(layer.parameters()), allow_unused=True, materialize_grads=True)
    direction = [torch.randn_like(parameter) for parameter in layer.parameters()]
    slope, step, values = sum((g * d).sum() for g, d in zip(gradients, direction, strict=True)), 1e-5, []
    for sign in (1, -2, 1):  # forward, back past the start, and home again
        with torch.no_grad():
            for parameter, along in zip(layer.parameters(), direction, strict=True):
                parameter += sign * step * along
        values.append(loss().item())
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(slope.item(), rel=1e-6)


MEMORY = """
import re, clebsch.torch as ct, torch

def memory(field):
    return 1024 * int(re.search(field + r":\\s+(\\d+) kB", open("/proc/self/status").read()).group(1))

def step(nodes, edges):
    torch.manual_seed(0)
    x, y = torch.randn(nodes, 704, requires_grad=True), torch.randn(edges, 16, requires_grad=True)
    weights = torch.randn(edges, layer.weight_numel, requires_grad=True)
    sender, receiver = torch.randint(0, nodes, (edges,)), torch.randint(0, nodes, (edges,)).sort()[0]
    open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
    before = memory("VmRSS")
    out = layer(x, y, weights, sender, receiver)
    gradients = torch.autograd.grad(out, (x, y, weights), torch.ones_like(out))
    results = (out, out, *gradients)  # out twice: its cotangent
    return memory("VmHWM") - before, sum(tensor.nbytes for tensor in results)

layer = ct.Convolution("128x0e+64x1o+32x2e+32x3o", "0e+1o+2e+3o", "0e+1o+2e+3o")
step(4, 45)
print(*step(200, 18000))
"""


def test_memory_is_inputs_and_results() -> None:
    """Products per edge would be 390 MB, and again for the gradients."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    used, results = map(int, done.stdout.split())
    assert used > 0.5 * results  # the peak is of this call
    assert used < 1.1 * results + (16 << 20)


@everywhere
def test_copies_files_and_dtypes() -> None:
    layer, inputs = Layer(), graph(5, 12)
    expected = layer(*inputs)
    assert same(copy.deepcopy(layer)(*inputs), expected)
    assert same(pickle.loads(pickle.dumps(layer))(*inputs), expected)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other = Layer()
    other.load_state_dict(torch.load(file))
    assert same(other(*inputs), expected)
    single = layer.float()(*(tensor.float() if tensor.is_floating_point() else tensor for tensor in inputs))
    assert single.dtype == torch.float32
    assert single.item() == pytest.approx(expected.item(), rel=1e-4)


@everywhere
def test_rows_apart_expanded_and_sliced() -> None:
    module, (x, y, weights, sender, receiver) = convolution()
    expected = module(x, y, weights, sender, receiver)
    wide = torch.zeros(4, 9)
    wide[:, 2:7] = x.detach()
    assert same(module(wide[:, 2:7], y, weights, sender, receiver), expected)
    assert same(module(x.detach().t().contiguous().t(), y, weights, sender, receiver), expected)
    equal = y.detach()[:1].expand(5, 4)
    assert same(module(x, equal, weights, sender, receiver), module(x, equal.contiguous(), weights, sender, receiver))
    apart = torch.stack([sender, sender], 1)[:, 0]
    assert same(module(x, y, weights, apart.int(), receiver.int()), expected)


@everywhere
def test_an_exported_layer_runs_from_its_file() -> None:
    layer, inputs = Layer(), graph(5, 12)
    edges = torch.export.Dim("edges", min=2)
    shapes = ({}, {0: edges}, {0: edges}, {0: edges})
    file = io.BytesIO()
    torch.export.save(torch.export.export(layer, inputs, dynamic_shapes=shapes), file)
    file.seek(0)
    again = torch.export.load(file).module()
    for other in (inputs, (inputs[0], *graph(5, 23)[1:])):
        torch.testing.assert_close(again(*other), layer(*other))


@everywhere
def test_any_operation_by_name() -> None:
    operation = clebsch.build("gate", scalars="4x0e", scalar_functions="silu", gates="2x0e", gate_functions="sigmoid", gated="2x1o")
    x = normal(5, 12)
    found = ct.Operation(operation)(x=x)
    np.testing.assert_allclose(found.detach().cpu().numpy(), operation(x=x.detach().cpu().numpy()))
    gradient = ct.Operation(clebsch.build("linear", in_="2x0e", out="3x0e").vjp("x", "weights"))
    results = gradient(x=torch.ones(4, 2), weights=torch.ones(6), out_cotangent=torch.ones(4, 3))
    assert {name: tuple(value.shape) for name, value in results.items()} == {"x_gradient": (4, 2), "weights_gradient": (1, 6)}
    half = ct.Operation(operation)(x=x.to(torch.bfloat16))
    assert half.dtype == torch.bfloat16
    assert torch.linalg.norm(half - found) < 1e-2 * torch.linalg.norm(found)


@everywhere
def test_no_edges() -> None:
    module, (x, _, _, _, _) = convolution()
    nothing = torch.zeros(0, dtype=torch.int64)
    out = module(x, torch.zeros(0, 4), torch.zeros(0, module.weight_numel), nothing, nothing)
    assert not out.any()
    assert not torch.autograd.grad(out.sum(), x)[0].any()


@everywhere
def test_autocast_computes_in_float32() -> None:
    torch.set_default_dtype(torch.float32)
    layer, inputs = Layer(), graph(5, 12)
    expected = layer(*inputs)
    for function in (layer, torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")):
        with torch.autocast(torch.get_default_device().type, torch.bfloat16):
            energy = function(*inputs)
        assert energy.dtype == torch.float32
        assert energy.item() == pytest.approx(expected.item(), rel=0.05)
        (force,) = torch.autograd.grad(energy, inputs[1])
        assert force.isfinite().all()


def test_the_training_example_learns() -> None:
    torch.set_default_dtype(torch.float32)
    train = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "train_tetris.py"))["train"]
    losses, right = train()
    assert losses[-1] < 0.05 * losses[0]
    assert right == 1.0


def test_the_page_about_speed() -> None:
    torch.set_default_dtype(torch.float32)
    page = (Path(__file__).resolve().parents[2] / "docs/why-is-it-slow.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/why-is-it-slow.md", "exec"), names)  # noqa: S102
    assert "general: 3 paths" in names["plan"].explain()
    torch.testing.assert_close(torch.from_numpy(names["out"]), torch.from_numpy(names["plan"](x=names["x"], y=names["y"])))
    assert [(name, why) for name, _, why in names["report"].left] == [("1", "its class has a forward of its own")]


def test_the_force_field_example_learns() -> None:
    pytest.importorskip("vesin")
    torch.set_default_dtype(torch.float32)
    fit = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "fit_force_field.py"))["fit"]
    losses, before, after = fit(steps=25, structures=3)
    assert losses[-1] < 0.4 * losses[0]
    assert after < 0.8 * before


@everywhere
def test_checkpoints_compute_a_layer_again() -> None:
    layer, inputs = Layer(), graph(5, 12)
    leaves = [inputs[1], *layer.parameters()]
    expected = torch.autograd.grad(layer(*inputs), leaves)
    energy = torch.utils.checkpoint.checkpoint(layer, *inputs, use_reentrant=False)
    for gradient, wanted in zip(torch.autograd.grad(energy, leaves), expected, strict=True):
        assert same(gradient, wanted)


@everywhere
def test_a_module_serves_several_threads() -> None:
    module, inputs = made("fully connected")[::2]
    expected, wanted = module(*inputs), torch.autograd.grad(module(*inputs).sum(), inputs)
    wrong: list[int] = []

    def work() -> None:
        leaves = tuple(tensor.detach().clone().requires_grad_() for tensor in inputs)
        for _ in range(50):
            out = module(*leaves)
            equal = [same(out, expected)]
            equal += [same(g, w) for g, w in zip(torch.autograd.grad(out.sum(), leaves), wanted, strict=True)]
            wrong.extend(1 for each in equal if not each)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class Seen(TorchDispatchMode):
    """Counts the operator's calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += function is torch.ops.clebsch.run.default
        return function(*args, **(kwargs or {}))


class Named(torch.Tensor):
    """A subclass without behaviour of its own."""


def test_who_listens_to_the_dispatcher_sees_the_operator() -> None:
    """Plain tensors go past it; modes, profilers, tracers and tensors of other kinds do not."""
    linear, x = ct.Linear("2x0e+1x1o", "3x0e+1x1o"), torch.randn(4, 5)
    expected = linear(x).detach()
    with Seen() as seen:
        assert torch.equal(linear(x), expected)
    assert seen.calls == 1
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        linear(x)
    assert any("clebsch::run" in event.key for event in profile.key_averages())
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        fake = linear(mode.from_tensor(x))
    assert isinstance(fake, FakeTensor)
    assert fake.shape == (4, 6)
    negated = torch.complex(torch.zeros_like(x), -x).conj().imag
    assert negated.is_neg()
    assert torch.equal(linear(negated), expected)
    assert torch.equal(linear(x.as_subclass(Named)), expected)
    with torch.device("meta"):
        assert torch.equal(linear(x), expected)
    with torch.inference_mode():
        assert torch.equal(linear(x), expected)
    if not ct._operator.NATIVE:  # Python's operator is traced
        assert torch.equal(torch.jit.trace(linear, (x,), check_trace=False)(2 * x), linear(2 * x))
        return
    with pytest.raises(RuntimeError, match="INTERNAL ASSERT"):  # PyTorch's: it traces no lists; a constant would be worse
        torch.jit.trace(linear, (x,), check_trace=False)


def test_the_page_runs() -> None:
    torch.set_default_dtype(torch.float32)
    page = (Path(__file__).resolve().parents[2] / "docs" / "pytorch.md").read_text()
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/pytorch.md", "exec"), names)  # noqa: S102
    assert "after" in names
