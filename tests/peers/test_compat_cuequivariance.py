"""clebsch.compat.cuequivariance_torch beside cuequivariance_torch 0.13 on its CPU path: states, values, gradients and theirs."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clebsch
import cuequivariance as cue
import cuequivariance_torch as theirs
import numpy as np
import pytest
import torch
from clebsch.compat import cuequivariance_torch as ours

LAYOUTS = {"mul_ir": cue.mul_ir, "ir_mul": cue.ir_mul}
DEFAULT_DTYPE = torch.float64
IN, EDGE, OUT = "4x0e+3x1o", "0e+1o+2e", "0e+1o"


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has no CUDA kernels here
        yield


def irreps(text: str) -> cue.Irreps:
    return cue.Irreps("O3", text)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def same(our_call: Callable[..., torch.Tensor], their_call: Callable[..., torch.Tensor], tensors: list[torch.Tensor]) -> None:
    """Values, gradients and gradients of those, by the tensors given."""
    results = []
    for function in (our_call, their_call):
        value = function()
        cotangent = torch.linspace(-1, 1, value.numel(), dtype=value.dtype).reshape(value.shape)
        first = torch.autograd.grad(value, tensors, cotangent, create_graph=True)
        second = torch.autograd.grad(sum((gradient**2).sum() for gradient in first), tensors)
        results.append([value, *first, *second])
    for found, expected in zip(*results, strict=True):
        assert expected.abs().max() > 0
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def share(made: torch.nn.Module, model: torch.nn.Module) -> list[torch.Tensor]:
    """Our module takes their state, then their very parameters: gradients are by the same tensors."""
    made.load_state_dict(model.state_dict())
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(made.get_parameter(name), parameter)
        setattr(made, name, parameter)
    return list(model.parameters())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shared", [True, False])
def test_channel_wise(layout: str, shared: bool) -> None:
    arguments = irreps(IN), irreps(EDGE), irreps(OUT)
    options = {"layout": LAYOUTS[layout], "shared_weights": shared, "dtype": torch.float64}
    made, model = ours.ChannelWiseTensorProduct(*arguments, **options), theirs.ChannelWiseTensorProduct(*arguments, **options)
    assert made.irreps_out == model.irreps_out
    assert made.weight_numel == model.weight_numel
    parameters = share(made, model)
    x, y = normal(7, 13), normal(7, 9)
    weight = () if shared else (normal(7, made.weight_numel),)
    same(lambda: made(x, y, *weight), lambda: model(x, y, *weight), [x, y, *weight, *parameters])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ascending", [True, False])
def test_convolution(layout: str, ascending: bool) -> None:
    options = {"layout": LAYOUTS[layout], "shared_weights": False, "internal_weights": False}
    arguments = irreps(IN), irreps(EDGE), irreps(OUT)
    made, model = ours.ChannelWiseTensorProduct(*arguments, **options), theirs.ChannelWiseTensorProduct(*arguments, **options)
    x, y, weight = normal(5, 13), normal(20, 9), normal(20, made.weight_numel)
    sender, receiver = torch.randint(0, 5, (20,)), torch.randint(0, 5, (20,))
    if ascending:
        receiver = receiver.sort()[0]
    edges = {"indices_1": sender, "indices_out": receiver, "size_out": 5}
    same(lambda: made(x, y, weight, **edges), lambda: model(x, y, weight, **edges), [x, y, weight])


@pytest.mark.parametrize("layouts", [("mul_ir", "mul_ir"), ("ir_mul", "ir_mul"), ("ir_mul", "mul_ir")])
def test_fully_connected(layouts: tuple[str, str]) -> None:
    arguments = irreps(IN), irreps("2x0e+2x1o"), irreps("3x0e+2x1o")
    options = {"layout_in1": LAYOUTS[layouts[0]], "layout_in2": LAYOUTS[layouts[1]], "layout_out": LAYOUTS[layouts[1]]}
    made, model = (library.FullyConnectedTensorProduct(*arguments, **options) for library in (ours, theirs))
    parameters = share(made, model)
    x, y = normal(6, 13), normal(6, 8)
    same(lambda: made(x, y), lambda: model(x, y), [x, y, *parameters])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("classes", [1, 3])
def test_linear(layout: str, classes: int) -> None:
    options = {"layout": LAYOUTS[layout], "weight_classes": classes, "dtype": torch.float64}
    made, model = (library.Linear(irreps(IN), irreps("2x0e+5x1o"), **options) for library in (ours, theirs))
    parameters = share(made, model)
    x = normal(6, 13)
    chosen = {} if classes == 1 else {"weight_indices": torch.tensor([0, 2, 1, 1, 0, 2])}
    same(lambda: made(x, **chosen), lambda: model(x, **chosen), [x, *parameters])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("original_mace", [True, False])
def test_symmetric_contraction(layout: str, original_mace: bool) -> None:
    options = {"layout": LAYOUTS[layout], "original_mace": original_mace, "dtype": torch.float64}
    arguments = irreps("3x0e+3x1o"), irreps("3x0e+3x1o"), 3, 4
    made, model = (library.SymmetricContraction(*arguments, **options) for library in (ours, theirs))
    parameters = share(made, model)
    x, elements = normal(6, 12), torch.tensor([0, 3, 1, 1, 2, 0])
    same(lambda: made(x, elements), lambda: model(x, elements), [x, *parameters])


@pytest.mark.parametrize("normalize", [True, False])
def test_spherical_harmonics(normalize: bool) -> None:
    made, model = (library.SphericalHarmonics([0, 1, 2, 3], normalize) for library in (ours, theirs))
    made.load_state_dict(model.state_dict())
    vectors = normal(6, 3)
    same(lambda: made(vectors), lambda: model(vectors), [vectors])


ROTATED = cue.Irreps("SO3", "3x0+2x1+2x2")
DESCRIPTORS: dict[str, Callable[[], Any]] = {
    "harmonics": lambda: cue.descriptors.spherical_harmonics(cue.SO3(1), [0, 1, 2]),
    "full product": lambda: cue.descriptors.full_tensor_product(irreps("2x1o"), irreps("3x1o+1x0e")),
    "elementwise": lambda: cue.descriptors.elementwise_tensor_product(irreps("3x1o+2x0e"), irreps("3x1o+2x0e")),
    "flattened": lambda: (
        cue.descriptors.channelwise_tensor_product(irreps("4x0e+4x1o"), irreps(EDGE), irreps(OUT))
        .flatten_coefficient_modes()
        .squeeze_modes()
    ),
    "fully connected": lambda: cue.descriptors.fully_connected_tensor_product(irreps("4x0e+3x1o"), irreps("2x1o"), irreps("2x1o")),
    "linear": lambda: cue.descriptors.linear(irreps("4x0e+3x1o"), irreps("2x0e+5x1o")),
    "channel-wise, simplified": lambda: cue.descriptors.channelwise_tensor_product(
        irreps(IN), irreps(EDGE), irreps(OUT), simplify_irreps3=True
    ),
    "contraction": lambda: cue.descriptors.symmetric_contraction(irreps("4x0e+4x1o"), irreps("4x0e+4x1o"), (1, 2, 3)),
    "inversion": lambda: cue.descriptors.inversion(irreps("3x0e+2x1o+1x0o")),
    "transposed": lambda: cue.descriptors.transpose(irreps("3x0e+2x1o"), cue.mul_ir, cue.ir_mul),
    "rotation about an axis": lambda: cue.descriptors.fixed_axis_angle_rotation(ROTATED, np.array([1.0, 2.0, 3.0]), 0.7),
    **{
        f"rotation {axes}": lambda axes=axes: getattr(cue.descriptors, f"{axes}_rotation")(ROTATED)
        for axes in ("x", "y", "xy", "yx", "yxy")
    },
    "harmonics by irrep": lambda: cue.descriptors.spherical_harmonics_ir_dict(cue.O3(1, -1), [0, 1, 2]),
    "linear by irrep": lambda: cue.descriptors.linear_ir_dict(irreps("4x0e+3x1o"), irreps("2x0e+3x1o")),
    "channel-wise by irrep": lambda: cue.descriptors.channelwise_tensor_product_ir_dict(
        irreps("4x0e+4x1o"), irreps(EDGE), irreps(OUT)
    ),
    "elementwise by irrep": lambda: cue.descriptors.elementwise_tensor_product_ir_dict(irreps("4x0e+4x1o"), irreps("4x1o+4x0e")),
    "full product by irrep": lambda: cue.descriptors.full_tensor_product_ir_dict(irreps("4x0e+3x1o"), irreps("2x1o+4x0e")),
    "fully connected by irrep": lambda: cue.descriptors.fully_connected_tensor_product_ir_dict(
        irreps("4x0e+3x1o"), irreps("2x1o+4x0e"), irreps("2x0e+3x1o")
    ),
    "contraction by irrep": lambda: cue.descriptors.symmetric_contraction_ir_dict(
        irreps("4x0e+4x1o"), irreps("4x0e+4x1o"), (1, 2, 3)
    ),
}


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_segmented_polynomials(name: str) -> None:
    polynomial = DESCRIPTORS[name]().polynomial
    made, model = (library.SegmentedPolynomial(polynomial, method="naive") for library in (ours, theirs))
    inputs = [normal(5, operand.size) for operand in polynomial.inputs]
    # Squared, so that linear ones have second derivatives too.
    same(lambda: torch.cat(made(inputs), dim=1) ** 2, lambda: torch.cat(model(inputs), dim=1) ** 2, inputs)


def test_flattened_descriptors_are_as_few_paths_as_before() -> None:
    """Components that became segments are components again: what ran fast runs as fast."""
    descriptor = cue.descriptors.channelwise_tensor_product(irreps("4x0e+4x1o"), irreps(EDGE), irreps(OUT))
    flat = ours.SegmentedPolynomial(descriptor.flatten_coefficient_modes().squeeze_modes().polynomial, method="uniform_1d")
    (operation,) = flat._operations.values()
    assert operation.text.count("path ") == len(descriptor.polynomial.operations[0][1].paths)


def test_rows_of_segmented_polynomials() -> None:
    """Rows of every kind: of the batch, one for all, by an index; outputs summed by an index or altogether."""
    polynomial = cue.descriptors.channelwise_tensor_product(irreps(IN), irreps(EDGE), irreps(OUT)).polynomial
    made, model = (library.SegmentedPolynomial(polynomial, method="naive") for library in (ours, theirs))
    sizes = [operand.size for operand in polynomial.inputs]
    index, to = torch.tensor([2, 0, 0, 1, 2, 1]), torch.tensor([3, 3, 0, 1, 0, 3])
    for inputs, options in [
        ([normal(1, sizes[0]), normal(6, sizes[1]), normal(6, sizes[2])], {}),
        ([normal(3, sizes[0]), normal(6, sizes[1]), normal(1, sizes[2])], {"input_indices": {0: index}}),
        ([normal(6, size) for size in sizes], {"output_indices": {0: to}, "output_shapes": {0: torch.empty(4, 1)}}),
        ([normal(6, size) for size in sizes], {"output_shapes": {0: torch.empty(1, 1)}}),
    ]:
        same(lambda i=inputs, o=options: made(i, **o)[0], lambda i=inputs, o=options: model(i, **o)[0], inputs)


def test_dtypes() -> None:
    options = {"layout": cue.mul_ir, "math_dtype": torch.float64, "dtype": torch.float32}
    made, model = (library.Linear(irreps(IN), irreps(OUT), **options) for library in (ours, theirs))
    share(made, model)
    x = torch.randn(6, 13, dtype=torch.float32)
    found, expected = made(x), model(x)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected)


def test_copies_and_compiling() -> None:
    made = ours.ChannelWiseTensorProduct(irreps(IN), irreps(EDGE), irreps(OUT), layout=cue.mul_ir, dtype=torch.float64)
    x, y = torch.randn(6, 13), torch.randn(6, 9)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        torch.testing.assert_close(other(x, y), made(x, y))
    compiled = torch.compile(made, fullgraph=True, dynamic=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, y), made(x, y))
    torch.testing.assert_close(compiled(x[:4], y[:4]), made(x[:4], y[:4]))


def test_what_is_refused() -> None:
    with pytest.raises(clebsch.ClebschError, match="layout: expected mul_ir or ir_mul, got"):
        ours.Linear(irreps(IN), irreps(OUT), layout_in="irmul")
    middle = cue.SegmentedTensorProduct.from_subscripts("uiv,jv,ku+ijk")
    segments = [middle.add_segment(0, (2, 3, 4)), middle.add_segment(1, (3, 4)), middle.add_segment(2, (3, 2))]
    middle.add_path(*segments, c=torch.ones(3, 3, 3).numpy())
    polynomial = cue.SegmentedPolynomial.eval_last_operand(middle)
    with pytest.raises(clebsch.ClebschError, match=r"operand 0: expected layout mul_ir .* or ir_mul .*, got modes 'uiv'"):
        ours.SegmentedPolynomial(polynomial, method="naive")
    made = ours.SegmentedPolynomial(DESCRIPTORS["full product"]().polynomial, method="naive")
    with pytest.raises(clebsch.ClebschError, match=r"input 0: expected shape \(rows, 6\), got \(4, 5\)"):
        made([torch.randn(4, 5), torch.randn(4, 10)])
    with pytest.raises(clebsch.ClebschError, match="input 1: expected 4 rows or 1, got 3"):
        made([torch.randn(4, 6), torch.randn(3, 10)])
    with pytest.raises(ValueError, match="method: expected one of naive"):
        ours.SegmentedPolynomial(DESCRIPTORS["full product"]().polynomial, method="fast")
    with pytest.raises(ValueError, match="Internal weights are used"):
        ours.Linear(irreps(IN), irreps(OUT), layout=cue.mul_ir)(torch.randn(2, 13), torch.randn(1, 22))


def test_what_is_not_here_is_theirs() -> None:
    assert ours.TransposeIrrepsLayout is theirs.TransposeIrrepsLayout


def test_the_page() -> None:
    torch.set_default_dtype(torch.float32)
    page = (Path(__file__).resolve().parents[2] / "docs/from-cuequivariance.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "from-cuequivariance.md", "exec"), {})  # noqa: S102
