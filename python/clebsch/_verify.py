"""Compares a user's e3nn module with the same operation here: values, gradients, equivariance, sign table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._library import ClebschError, UnsupportedError
from .irreps import Irreps, rotation_from_quaternion, wigner_d
from .operation import Operation, build


@dataclass(frozen=True)
class Verification:
    """Norm-wise differences between the module and ours, float64. `passed`: all below `bound`."""

    operation: Operation
    sign_table: str  #: "e3nn-0.5" or "e3nn-0.4": the one the module's values agree with
    values: float
    gradients: dict[str, float]
    equivariance: float  #: of ours, under a random rotation (and inversion where the irreps have parity)
    bound: float
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything agrees."""
        return max([self.values, self.equivariance, *self.gradients.values()]) < self.bound

    def __str__(self) -> str:
        lines = [f"values       {self.values:.1e}"]
        lines += [f"gradient {name:3s} {error:.1e}" for name, error in self.gradients.items()]
        lines += [f"equivariance {self.equivariance:.1e}", f"sign table   {self.sign_table}", *self.notes]
        lines.append(f"{'agrees' if self.passed else 'DIFFERS'} (bound {self.bound:.0e})")
        return "\n".join(lines)


def operation_of(module: Any, signs: str = "e3nn-0.5") -> Operation:
    """The operation an e3nn module computes: o3.TensorProduct and its subclasses, o3.Linear, o3.SphericalHarmonics.

    The module's own coefficients (`instruction.path_weight`) are taken, so that variances and path weights need no second look.
    """
    kind = {cls.__name__ for cls in type(module).__mro__}
    if "SphericalHarmonics" in kind:
        if str(module.irreps_in) not in ("1x1o", "1x1e"):
            raise UnsupportedError(f"SphericalHarmonics of {module.irreps_in}: expected 1o or 1e")
        return build(
            "spherical_harmonics", irreps=module.irreps_out, normalize=module.normalize, normalization=module.normalization
        )
    if "Linear" in kind:
        fan_in = bool(getattr(module, "f_in", None)) or bool(getattr(module, "f_out", None))
        if fan_in or bool(getattr(module, "bias_numel", 0)):
            raise UnsupportedError("Linear with f_in, f_out or biases: compare with clebsch.build('linear', ...)")
        return build(
            "linear",
            in_=module.irreps_in,
            out=module.irreps_out,
            instructions="; ".join(f"{ins.i_in},{ins.i_out}" for ins in _linear_paths(module)),
            path_normalization=_linear_normalization(module),
            weights="shared" if module.shared_weights else "per_row",
        )
    if "TensorSquare" in kind:
        raise UnsupportedError("TensorSquare: compare with clebsch.build('tensor_square', ...)")
    if "TensorProduct" in kind:
        instructions = "; ".join(
            f"{ins.i_in1},{ins.i_in2},{ins.i_out},{ins.connection_mode},{'weighted' if ins.has_weight else 'plain'},"
            f"{float(ins.path_weight) ** 2!r}"
            for ins in module.instructions
        )
        return build(
            "tensor_product",
            in1=module.irreps_in1,
            in2=module.irreps_in2,
            out=module.irreps_out,
            instructions=instructions,
            irrep_normalization="none",
            path_normalization="none",
            signs=signs,
            weights="shared" if module.shared_weights else "per_row",
        )
    raise UnsupportedError(
        f"verify: expected an e3nn TensorProduct, Linear or SphericalHarmonics (or a subclass), got {type(module).__name__}"
    )


def _linear_paths(module: Any) -> list[Any]:
    return [ins for ins in module.instructions if ins.i_in >= 0]  # -1: a bias


def _linear_normalization(module: Any) -> str:
    """The path normalisation that gives the module's path weights: e3nn does not keep its name."""
    for name in ("element", "path"):
        for ins in _linear_paths(module):
            same = [other for other in _linear_paths(module) if other.i_out == ins.i_out]
            fan = {
                "element": sum(module.irreps_in[other.i_in].mul for other in same),
                "path": len(same) * module.irreps_in[ins.i_in].mul,
            }[name]
            if fan and abs(float(ins.path_weight) ** 2 * fan - 1) > 1e-9:
                break
        else:
            return name
    raise UnsupportedError("Linear with path weights that neither normalisation gives: compare with clebsch.build('linear', ...)")


def verify(module: Any, rows: int = 7, seed: int = 0, bound: float = 1e-10) -> Verification:
    """Runs the module in float64 on standard normal inputs and compares with ours.

    Build the module under `torch.set_default_dtype(torch.float64)`: e3nn keeps coupling coefficients in the default dtype of that
    moment, and float32 ones are wrong by 1e-8.
    """
    try:
        import torch
    except ImportError as error:
        raise UnsupportedError("verify needs PyTorch and e3nn: pip install torch e3nn") from error

    operation = operation_of(module)
    generator = np.random.default_rng(seed)
    arrays = {
        operand.name: generator.standard_normal((1 if operand.space is None else rows, operand.row_size))
        for operand in operation.inputs
    }
    tensors = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in arrays.items()}
    expected, notes = _run_module(module, tensors), []
    output = operation.outputs[0]
    cotangent = generator.standard_normal((rows, output.row_size))
    if tuple(expected.shape) != cotangent.shape:
        raise ClebschError(f"verify: the module returned shape {tuple(expected.shape)}, expected {cotangent.shape}")
    values = _difference(operation(None, None, **arrays), expected.detach().numpy())
    sign_table = "e3nn-0.5"
    if values > bound:
        try:
            other = operation_of(module, "e3nn-0.4")
            other_values = _difference(other(None, None, **arrays), expected.detach().numpy())
        except UnsupportedError:
            other_values = values
        if other_values < bound:
            operation, values, sign_table = other, other_values, "e3nn-0.4"
            notes.append("the module's couplings have the signs of e3nn 0.4; build with signs='e3nn-0.4'")
        elif values < 1e-6:
            notes.append("differences of float32 size: was the module built under torch.set_default_dtype(torch.float64)?")
    names = list(tensors)
    found: tuple[Any, ...] = (None,) * len(names)  # a module without paths: zeros that depend on nothing
    if expected.requires_grad:
        found = torch.autograd.grad(expected, list(tensors.values()), torch.from_numpy(cotangent), allow_unused=True)
    gradients = [torch.zeros_like(x) if gradient is None else gradient for x, gradient in zip(tensors.values(), found, strict=True)]
    derivative = operation.vjp(*names)
    needed = {operand.name for operand in derivative.inputs}
    given = {**arrays, f"{output.name}_cotangent": cotangent}
    ours = derivative(dict.fromkeys(derivative.spaces, rows), None, **{name: given[name] for name in needed})
    if len(names) == 1:
        ours = {f"{names[0]}_gradient": ours}
    differences = {
        name: _difference(ours[f"{name}_gradient"], gradient.numpy()) for name, gradient in zip(names, gradients, strict=True)
    }
    return Verification(operation, sign_table, values, differences, _equivariance(operation, arrays, seed), bound, notes)


def _run_module(module: Any, tensors: dict[str, Any]) -> Any:
    """Calls the module on float64 tensors; its weights are the argument `weights`."""
    module = module.double()
    inputs = [tensor for name, tensor in tensors.items() if name != "weights"]
    if "weights" not in tensors:
        return module(*inputs)
    weights = tensors["weights"][0] if module.shared_weights else tensors["weights"]
    return module(*inputs, weights)


def _difference(value: np.ndarray, expected: np.ndarray) -> float:
    norm = float(np.linalg.norm(expected))
    difference = float(np.linalg.norm(value.reshape(-1) - expected.reshape(-1)))
    return difference / norm if norm else difference


def _equivariance(operation: Operation, arrays: dict[str, np.ndarray], seed: int) -> float:
    """f(D x) against D f(x) for a random rotation, with inversion if every irrep has a parity."""
    generator = np.random.default_rng(seed + 1)
    rotation = rotation_from_quaternion(generator.standard_normal(4))
    operands = [operand for operand in operation.operands if "(" not in operand.segments]
    if all(block.ir.p != 0 for operand in operands for block in Irreps(operand.segments)):
        rotation = -rotation

    def turn(segments: str, array: np.ndarray) -> np.ndarray:
        irreps = Irreps(segments)
        parts = [
            (array[:, where].reshape(len(array), block.mul, block.ir.dim) @ wigner_d(block.ir, rotation).T).reshape(len(array), -1)
            for block, where in zip(irreps, irreps.slices(), strict=True)
        ]
        return np.concatenate(parts, axis=1) if parts else array

    turned = {operand.name: turn(operand.segments, arrays[operand.name]) for operand in operands if not operand.is_output}
    output = operation.outputs[0]
    return _difference(operation(None, None, **{**arrays, **turned}), turn(output.segments, operation(None, None, **arrays)))
