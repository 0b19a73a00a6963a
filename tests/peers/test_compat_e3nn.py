"""clebsch.compat.e3nn beside e3nn 0.6.0: random irreps and options; values, gradients, double backward, states both ways."""

from __future__ import annotations

import inspect
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clebsch
import e3nn
import e3nn.nn
import pytest
import torch
from clebsch.compat.e3nn import nn, o3
from e3nn import o3 as their_o3

their_nn = e3nn.nn
SEEDS = range(8)
DEFAULT_DTYPE = torch.float64


@pytest.fixture(autouse=True)
def _eager() -> None:
    torch.manual_seed(0)
    e3nn.set_optimization_defaults(jit_mode="eager")


def some_irreps(random: random.Random, blocks: int = 3, lmax: int = 2, mul: int = 3) -> str:
    return "+".join(
        f"{random.randint(1, mul)}x{random.randint(0, lmax)}{random.choice('eo')}" for _ in range(random.randint(1, blocks))
    )


def same_channels(random: random.Random, irreps: str) -> str:
    """Other irreps with as many channels in all, cut elsewhere."""
    left, blocks = their_o3.Irreps(irreps).num_irreps, []
    while left:
        mul = random.randint(1, left)
        blocks.append(f"{mul}x{random.randint(0, 2)}{random.choice('eo')}")
        left -= mul
    return "+".join(blocks)


def instructions(random: random.Random, irreps: tuple[Any, Any, Any]) -> list[tuple[Any, ...]]:
    """Some of what fits."""
    in1, in2, out = irreps
    fitting = []
    for i, (m1, ir1) in enumerate(in1):
        for j, (m2, ir2) in enumerate(in2):
            for k, (mo, ir) in enumerate(out):
                if ir in ir1 * ir2:
                    modes = ["uvw", "u<vw"] if m1 == m2 > 1 else ["uvw"]
                    modes += [mode for mode, fits in (("uvu", m1 == mo), ("uvv", m2 == mo), ("uvuv", m1 * m2 == mo)) if fits]
                    modes += ["uuw"] * (m1 == m2) + ["uuu"] * (m1 == m2 == mo) + ["uvu<v"] * (m1 == m2 and mo == m1 * (m1 - 1) // 2)
                    mode = random.choice(modes)
                    weighted = mode in ("uvw", "u<vw", "uuw") or random.random() < 0.7
                    fitting.append((i, j, k, mode, weighted, random.choice([1.0, 0.5, 2.0])))
    random.shuffle(fitting)
    return fitting[:6]


def tensor_product(r: random.Random) -> tuple[Any, dict[str, Any]]:
    irreps = tuple(their_o3.Irreps(some_irreps(r)) for _ in range(3))
    options = {
        "irrep_normalization": r.choice([None, "component", "norm"]),
        "path_normalization": r.choice([None, "element", "path"]),
    }
    if r.random() < 0.4:
        options |= {"shared_weights": False}
    if r.random() < 0.3:
        options |= {"in1_var": [r.random() + 0.5 for _ in irreps[0]], "out_var": [r.random() + 0.5 for _ in irreps[2]]}
    return (*map(str, irreps), instructions(r, irreps)), options


def linear(r: random.Random) -> tuple[Any, dict[str, Any]]:
    irreps_in, irreps_out = some_irreps(r, 4, 1), some_irreps(r, 4, 1)
    options: dict[str, Any] = {"path_normalization": r.choice(["element", "path"])}
    if r.random() < 0.5:
        options["biases"] = [b.ir.is_scalar() and r.random() < 0.8 for b in their_o3.Irreps(irreps_out)]
    if r.random() < 0.3:
        options |= {"f_in": 2, "f_out": 3}
    elif r.random() < 0.3 and "biases" not in options:
        options |= {"shared_weights": False, "internal_weights": False}
    return (irreps_in, irreps_out), options


def gate(r: random.Random) -> tuple[Any, dict[str, Any]]:
    functions = {"e": [torch.nn.functional.silu, torch.tanh, torch.sigmoid, torch.nn.SiLU(), torch.nn.functional.softplus, None]}
    functions["o"] = [torch.tanh, torch.abs, None]
    gated = some_irreps(r, 3, 3)

    def scalars(channels: int) -> tuple[str, list[Any]]:
        blocks, acts = [], []
        while channels:
            mul, parity = r.randint(1, channels), r.choice("eeo")
            blocks.append(f"{mul}x0{parity}")
            acts.append(r.choice(functions[parity]))
            channels -= mul
        return "+".join(blocks), acts

    return (*scalars(r.randint(0, 5)), *scalars(their_o3.Irreps(gated).num_irreps), gated), {}


def elementwise(r: random.Random) -> tuple[Any, dict[str, Any]]:
    irreps = some_irreps(r)
    return (irreps, same_channels(r, irreps)), {"irrep_normalization": r.choice([None, "norm"])}


def filtered(r: random.Random) -> dict[str, Any]:
    return {} if r.random() < 0.5 else {"filter_ir_out": ["0e", their_o3.Irrep("1o"), "1e", "2o"]}


def square(r: random.Random) -> tuple[Any, dict[str, Any]]:
    if r.random() < 0.5:
        return (some_irreps(r), some_irreps(r, 4)), {"irrep_normalization": r.choice([None, "norm"])}
    return (some_irreps(r),), filtered(r)


MODULES: dict[str, tuple[str, Callable[[random.Random], tuple[Any, dict[str, Any]]]]] = {
    "TensorProduct": ("o3", tensor_product),
    "FullyConnectedTensorProduct": ("o3", lambda r: ((some_irreps(r), some_irreps(r), some_irreps(r, 4)), {})),
    "FullTensorProduct": ("o3", lambda r: ((some_irreps(r), some_irreps(r)), filtered(r))),
    "ElementwiseTensorProduct": ("o3", elementwise),
    "TensorSquare": ("o3", square),
    "Linear": ("o3", linear),
    "SphericalHarmonics": (
        "o3",
        lambda r: (
            (
                r.choice([3, [0, 2], "0e+1o+2e+3o", "2x1o+2e", "1e+2e"]),
                r.random() < 0.7,
                r.choice(["integral", "component", "norm"]),
            ),
            {},
        ),
    ),
    "Norm": ("o3", lambda r: ((some_irreps(r), r.random() < 0.5), {})),
    "Gate": ("nn", gate),
    "Activation": ("nn", lambda r: (("3x0e+2x1o+2x0o", [r.choice([torch.tanh, torch.sigmoid]), None, torch.tanh]), {})),
    "NormActivation": (
        "nn",
        lambda r: ((their_o3.Irreps(some_irreps(r)), torch.sigmoid), {"epsilon": r.choice([None, 0.5]), "bias": r.random() < 0.5}),
    ),
    "BatchNorm": (
        "nn",
        lambda r: (
            (some_irreps(r, 4),),
            {
                "instance": r.random() < 0.4,
                "affine": r.random() < 0.7,
                "reduce": r.choice(["mean", "max"]),
                "normalization": r.choice(["norm", "component"]),
                "include_bias": r.random() < 0.7,
            },
        ),
    ),
    "ExtractIr": ("nn", lambda r: ((some_irreps(r, 5, 1), r.choice(["0e", "0o", "1o", "1e"])), {})),
    "FullyConnectedNet": (
        "nn",
        lambda r: (
            ([3, 5, 4, 2], r.choice([torch.tanh, torch.nn.functional.silu])),
            {"variance_in": 2, "out_act": r.random() < 0.5},
        ),
    ),
    "Identity": ("nn", lambda r: (("2x0e+1x1o", "2x0e+1x1o"), {})),
}


def inputs_of(module: Any) -> list[torch.Tensor]:
    """By its attributes, which are part of the comparison."""
    rows: tuple[int, ...] = (5,)
    if isinstance(module, torch.nn.Sequential):
        return [torch.randn(5, module.hs[0], requires_grad=True)]
    if hasattr(module, "running_mean"):
        return [torch.randn(4, 3, module.irreps.dim, requires_grad=True)]
    if "Square" in type(module).__name__:
        dims = [module.irreps_in.dim]
    elif hasattr(module, "irreps_in1"):
        dims = [module.irreps_in1.dim, module.irreps_in2.dim]
    else:
        dims = [module.irreps_in.dim]
    if getattr(module, "f_in", None):
        rows = (5, module.f_in)
    given = [torch.randn(*rows, dim, requires_grad=True) for dim in dims]
    if getattr(module, "weight_numel", 0) and not module.internal_weights:
        given.append(torch.randn(5, module.weight_numel, requires_grad=True))
    return given


def derivatives(module: Any, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Values, gradients and gradients of those, to inputs and parameters."""
    generator = torch.Generator().manual_seed(1)
    leaves = [*inputs, *(parameter for _, parameter in sorted(module.named_parameters()))]
    last = [module(*inputs)]
    found = list(last)
    for _ in range(2):
        total = sum((torch.randn(value.shape, generator=generator) * value).sum() for value in last)
        if isinstance(total, torch.Tensor) and total.requires_grad:
            last = list(torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True, materialize_grads=True))
        else:
            last = [torch.zeros_like(leaf) for leaf in leaves]
        found += last
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_e3nns(name: str, seed: int) -> None:
    library, make = MODULES[name]
    arguments, options = make(random.Random(1000 * seed + len(name)))
    theirs = getattr(their_o3 if library == "o3" else their_nn, name)(*arguments, **options)
    ours = getattr(o3 if library == "o3" else nn, name)(*arguments, **options)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter)
    with torch.no_grad():
        for buffer_name, buffer in theirs.named_buffers():
            if buffer_name.startswith("running"):
                buffer.uniform_(0.5, 1.5)
    ours.load_state_dict(theirs.state_dict())
    state = {key: value for key, value in theirs.state_dict().items() if "_compiled" not in key}
    assert {key: value.shape for key, value in ours.state_dict().items()} == {key: value.shape for key, value in state.items()}
    for key, value in ours.state_dict().items():
        assert torch.equal(value, state[key]), key
    theirs.load_state_dict(ours.state_dict(), strict=False)
    for attribute in ("irreps_in", "irreps_in1", "irreps_in2", "irreps_out", "weight_numel", "internal_weights", "shared_weights"):
        if hasattr(theirs, attribute):
            assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    if "TensorProduct" in name or name == "Linear":
        assert len(ours.instructions) == len([ins for ins in theirs.instructions if getattr(ins, "i_in", 0) >= 0])
        for mine, wanted in zip(ours.instructions, theirs.instructions, strict=False):
            assert mine.path_shape == wanted.path_shape
            assert mine.path_weight == pytest.approx(wanted.path_weight, rel=1e-12)
    inputs = inputs_of(ours)
    for training in (True, False) if name == "BatchNorm" else (True,):
        ours.train(training)
        theirs.train(training)
        found, expected = derivatives(ours, inputs), derivatives(theirs, inputs)
        assert len(found) == len(expected)
        for value, wanted in zip(found, expected, strict=True):
            assert value.shape == wanted.shape
            assert torch.linalg.norm(value - wanted) <= 2e-12 * torch.linalg.norm(wanted) + 1e-13
    for key, value in ours.state_dict().items():
        torch.testing.assert_close(value, theirs.state_dict()[key])


@pytest.mark.parametrize("seed", SEEDS)
def test_irreps_are_e3nns(seed: int) -> None:
    r = random.Random(seed)
    text, other = some_irreps(r, 6), some_irreps(r)
    ours, theirs = o3.Irreps(text), their_o3.Irreps(text)
    assert ours == theirs
    assert hash(ours) == hash(theirs)
    assert str(ours) == str(theirs)
    assert their_o3.Irreps(ours) == theirs
    assert o3.Irreps(theirs) == ours
    for property_name in ("dim", "num_irreps", "ls", "lmax"):
        assert getattr(ours, property_name) == getattr(theirs, property_name)
    assert ours.slices() == theirs.slices()
    assert ours.simplify() == theirs.simplify()
    assert ours.sort() == theirs.sort()
    assert ours.regroup() == theirs.regroup()
    assert ours + o3.Irreps(other) == theirs + their_o3.Irreps(other)
    assert 2 * ours == 2 * theirs
    assert ours[1:] == theirs[1:]
    assert ours.filter(["0e", "1o"]) == theirs.filter(["0e", "1o"])
    assert ours.filter(drop=["1o", "2e"]) == theirs.filter(drop=["1o", "2e"])
    assert ours.filter(lmax=1) == theirs.filter(lmax=1)
    assert ours.filter(lambda block: block.ir.l != 1) == theirs.filter(lambda block: block.ir.l != 1)
    assert ours.slice_by_mul[1:4] == theirs.slice_by_mul[1:4]
    assert ours.count("1o") == theirs.count("1o")
    assert ("1o" in ours) == ("1o" in theirs)
    assert [list(a * b) for a in o3.Irrep.iterator(2) for b in o3.Irrep.iterator(2)] == [
        list(a * b) for a in their_o3.Irrep.iterator(2) for b in their_o3.Irrep.iterator(2)
    ]
    assert ours.filter(ours[0]) == theirs.filter(theirs[0])
    assert ours.filter(drop=ours[0]) == theirs.filter(drop=theirs[0])


MATRICES: dict[str, Callable[[], tuple[torch.Tensor, ...]]] = {
    "D_from_angles": lambda: their_o3.rand_angles(3, 1),
    "D_from_angles inverted": lambda: (*their_o3.rand_angles(3, 1), torch.tensor([0.0, 1.0, 2.0])),
    "D_from_matrix": lambda: (torch.tensor([1.0, -1.0])[:, None, None] * their_o3.rand_matrix(3, 2),),
    "D_from_quaternion": lambda: (their_o3.rand_quaternion(3, 2),),
    "D_from_quaternion inverted": lambda: (their_o3.rand_quaternion(3, 2), torch.tensor([0.0, 1.0])),
    "D_from_axis_angle": lambda: their_o3.rand_axis_angle(3, 2),
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_are_e3nns(name: str) -> None:
    """With derivatives: of angles; what else stands for a rotation is constrained, so that derivatives across that are anyone's."""
    method, inputs = name.split()[0], MATRICES[name]()
    for ours, theirs in [
        (o3.Irreps("2x0o+1o+0x2e+2x1e+4o"), their_o3.Irreps("2x0o+1o+0x2e+2x1e+4o")),
        *((o3.Irrep(ir), their_o3.Irrep(ir)) for ir in ("0o", "1o", "2e", "3o")),
    ]:
        given = [[value.clone().requires_grad_() for value in inputs] for _ in range(2)]
        found, expected = (getattr(irreps, method)(*values) for irreps, values in zip((ours, theirs), given, strict=True))
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
        single = getattr(ours, method)(*(value.float() for value in inputs))
        assert single.dtype is torch.float32
        torch.testing.assert_close(single.double(), expected.detach(), rtol=1e-5, atol=1e-5)
        if "angle" in method:
            angles = slice(0, 3) if method == "D_from_angles" else slice(1, 2)
            cotangent = torch.randn(expected.shape)
            first, second = (
                torch.autograd.grad(value, values[angles], cotangent, allow_unused=True, materialize_grads=True)
                for value, values in zip((found, expected), given, strict=True)
            )
            torch.testing.assert_close(first, second, rtol=1e-9, atol=1e-9)


def test_matrices_at_the_poles() -> None:
    """Where a rotation has no one triple of angles its matrices are those of the core."""
    for diagonal in ([1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, -1.0]):
        for bend in (0.0, 1e-9, 1e-4):
            matrix = clebsch.rotation_from_quaternion([1.0, bend, 0.0, 2 * bend]) @ torch.tensor(diagonal).diag().numpy()
            for ir in (o3.Irrep("1o"), o3.Irrep("3e")):
                expected = torch.from_numpy(clebsch.wigner_d(str(ir), matrix))
                torch.testing.assert_close(ir.D_from_matrix(torch.from_numpy(matrix)), expected, rtol=1e-12, atol=1e-12)


def test_random_numbers_of_irreps() -> None:
    irreps = o3.Irreps("3x0o+2x1o+0x1e+2e")
    assert irreps.randn(4, -1, 2).shape == (4, irreps.dim, 2)
    values = irreps.randn(4, -1, 2, normalization="norm", requires_grad=True)
    assert values.requires_grad
    assert values.shape == (4, irreps.dim, 2)
    torch.testing.assert_close(o3.Norm(irreps)(values.transpose(1, 2)), torch.ones(4, 2, irreps.num_irreps))


def test_weights_by_instruction() -> None:
    irreps = ("2x0e+3x1o", "0e+1o", "3x1o+2x0e", [(0, 1, 0, "uvw", True), (1, 0, 0, "uvu", True), (1, 1, 1, "uvw", True)])
    ours, theirs = o3.TensorProduct(*irreps), their_o3.TensorProduct(*irreps)
    ours.load_state_dict(theirs.state_dict())
    for mine, wanted in zip(ours.weight_views(yield_instruction=True), theirs.weight_views(yield_instruction=True), strict=True):
        assert mine[0] == wanted[0]
        assert torch.equal(mine[2], wanted[2])
    assert torch.equal(ours.weight_view_for_instruction(2), theirs.weight_view_for_instruction(2))
    x, y = torch.randn(4, 11), torch.randn(4, 4)
    torch.testing.assert_close(ours(x, y, list(ours.weight_views())), theirs(x, y))
    linear, other = o3.Linear("2x0e+3x1o", "4x1o+0e"), their_o3.Linear("2x0e+3x1o", "4x1o+0e")
    linear.load_state_dict(other.state_dict())
    for mine, wanted in zip(linear.weight_views(), other.weight_views(), strict=True):
        assert torch.equal(mine, wanted)


def test_harmonics_as_a_function() -> None:
    x = torch.randn(5, 3)
    for degrees in (2, [0, 1, 3], "0e+1o", o3.Irreps("1o+2e")):
        found = o3.spherical_harmonics(degrees, x, True, "component")
        given = their_o3.Irreps(degrees) if isinstance(degrees, o3.Irreps) else degrees
        torch.testing.assert_close(found, their_o3.spherical_harmonics(given, x, True, "component"))


def test_dropout_keeps_channels_and_their_mean() -> None:
    drop, x = nn.Dropout("20x0e+20x1o", 0.25), torch.ones(300, 2, 80)
    out = drop(x)
    vectors = out[..., 20:].reshape(300, 2, 20, 3)
    assert torch.equal(vectors, vectors[..., :1].expand_as(vectors))
    assert torch.equal(out[:, 0], out[:, 1])
    assert out.mean() == pytest.approx(1.0, abs=0.02)
    assert torch.equal(drop.eval()(x), x)


def test_gates_of_known_functions_are_one_kernel() -> None:
    silu = torch.nn.functional.silu
    assert nn.Gate("4x0e", [silu], "2x0e", [torch.sigmoid], "2x1o").fused
    assert not nn.Gate("4x0e", [torch.nn.functional.softplus], "2x0e", [torch.sigmoid], "2x1o").fused


def test_arguments_are_e3nns() -> None:
    """Every argument of e3nn's has its name and place here."""
    for name, (library, _) in MODULES.items():
        theirs = inspect.signature(getattr(their_o3 if library == "o3" else their_nn, name).__init__)
        ours = inspect.signature(getattr(o3 if library == "o3" else nn, name).__init__)
        if not any(p.kind is p.VAR_KEYWORD for p in ours.parameters.values()):
            assert list(theirs.parameters) == list(ours.parameters)[: len(theirs.parameters)], name
        else:
            positional = [p.name for p in theirs.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
            assert positional == list(ours.parameters)[: len(positional)], name


def test_names_that_are_not_here_come_from_e3nn() -> None:
    assert o3.rand_matrix is their_o3.rand_matrix
    assert nn.S2Activation is their_nn.S2Activation
    with pytest.raises(AttributeError):
        o3.no_such_name  # noqa: B018
    code = (
        "import sys; sys.modules['e3nn'] = None\n"
        "from clebsch.compat.e3nn import nn, o3\n"
        "nn.Gate('1x0e', [None], '1x0e', [None], '1x1o')\n"
        "try: o3.rand_matrix\n"
        "except AttributeError as error: assert 'e3nn installed' in str(error)\n"
        "else: raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_mistakes() -> None:
    with pytest.raises(clebsch.ClebschError, match="^irreps_in2: expected 3 irreps"):
        o3.ElementwiseTensorProduct("3x1o", "2x0e")
    with pytest.raises(clebsch.ClebschError, match="^irreps_gates: expected 2"):
        nn.Gate("1x0e", [None], "1x0e", [None], "2x1o")
    with pytest.raises(clebsch.ClebschError, match="^acts: expected an even or odd"):
        nn.Activation("1x0o", [torch.sigmoid])
    with pytest.raises(clebsch.ClebschError, match="^irrep: expected one irrep"):
        o3.Irrep("1o+2e")
    with pytest.raises(clebsch.UnsupportedError, match="right"):
        o3.TensorProduct("1x0e", "1x0e", "1x0e", [(0, 0, 0, "uvw", True)], compile_right=True)
    product = o3.FullyConnectedTensorProduct("1x0e", "1x0e", "1x0e")
    with pytest.raises(clebsch.ClebschError, match="^weight: expected 1 tensors"):
        product(torch.zeros(1, 1), torch.zeros(1, 1), [])


def test_the_page_runs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "from-e3nn.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/from-e3nn.md", "exec"), names)  # noqa: S102
    assert names["out"].shape == (10, 32)
    assert names["report"].changed
