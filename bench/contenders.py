"""What a comparison needs: contenders on the same inputs, checked against float64 values and gradients, then timed in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: float32 results are sums of up to some thousand terms in another order than the float64 ones.
BOUND = 1e-5


@dataclass(frozen=True)
class Contender:
    """One implementation of a problem. Calls without arguments; what they return is read outside the timing."""

    name: str
    forward: Callable[[], Any]  #: values
    backward: Callable[[], Any]  #: values and all first gradients
    values: Callable[[Any], Any] | None = None  #: the array in what `forward` returned, mul_ir; None: a yardstick of the same flops
    gradients: Callable[[Any], Mapping[str, Any]] | None = None  #: likewise by input, of what `backward` returned


@dataclass(frozen=True)
class Problem:
    """A problem with its float64 results and the implementations that are compared."""

    name: str
    unit: str
    scale: float  #: seconds per call to `unit`
    values: Any
    gradients: Mapping[str, Any]
    contenders: list[Contender]
    seconds: tuple[float, float] = (20, 30)  #: budgets of the two tables
    rounds: int = 15


def relative_error(value: Any, expected: Any) -> float:
    """Norm-wise, in float64."""
    import numpy as np

    value, expected = np.asarray(value, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if value.size != expected.size:
        return float("inf")
    return float(np.linalg.norm(value.ravel() - expected.ravel()) / np.linalg.norm(expected))


def check(problem: Problem) -> None:
    """A contender that computes something else is not measured."""
    for contender in problem.contenders:
        if contender.values is None or contender.gradients is None:
            continue
        found = {"values": contender.values(contender.forward())}
        expected = {"values": problem.values}
        gradients = contender.gradients(contender.backward())
        for name, gradient in problem.gradients.items():
            found[f"gradient of {name}"], expected[f"gradient of {name}"] = gradients[name], gradient
        for what, value in found.items():
            error = relative_error(value, expected[what])
            if not error < BOUND:
                raise SystemExit(f"{problem.name}: {contender.name}: {what}: {error:.2e} (norm-wise) from the float64 ones")


def measure(problem: Problem) -> dict[str, Any]:
    """The tables of a problem, after its check."""
    check(problem)
    return {
        "problem": problem.name,
        "unit": problem.unit,
        "scale": problem.scale,
        "forward": interleaved({c.name: c.forward for c in problem.contenders}, problem.rounds, problem.seconds[0]),
        "forward + gradients": interleaved({c.name: c.backward for c in problem.contenders}, problem.rounds, problem.seconds[1]),
    }


def summary(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "best": min(values), "worst": max(values), "rounds": len(values)}


def interleaved(functions: Mapping[str, Callable[[], Any]], rounds: int, budget: float) -> dict[str, dict[str, float]]:
    """Seconds of processor time per call: each round times every function once (as many calls as take about 10 ms). All run in one
    thread, so that this is the time that passes on a machine without other work."""
    repeats = {}
    for name, function in functions.items():
        function()
        start = time.process_time()
        function()
        repeats[name] = max(1, int(0.01 / max(time.process_time() - start, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + budget
    for done in range(rounds):
        if done >= 3 and time.perf_counter() > end:
            break
        for name, function in functions.items():
            start = time.process_time()
            for _ in range(repeats[name]):
                function()
            times[name].append((time.process_time() - start) / repeats[name])
    return {name: summary(values) for name, values in times.items()}


# PyTorch
# -----------------------------------------------------------------------------------------------------------------------------


def torch_contender(name: str, function: Callable[..., Any], inputs: Mapping[str, Any], cotangent: Any) -> Contender:
    """`function` of torch tensors; gradients through autograd."""
    import torch

    tensors = tuple(inputs.values())
    leaves = tuple(tensor.clone().requires_grad_() for tensor in tensors)

    def forward() -> Any:
        with torch.no_grad():
            return function(*tensors)

    return Contender(
        name,
        forward,
        lambda: torch.autograd.grad(function(*leaves), leaves, cotangent),
        lambda value: value.numpy(),
        lambda gradients: {key: gradient.numpy() for key, gradient in zip(inputs, gradients, strict=True)},
    )


def torch_variants(
    module: Callable[[], Any], function: Callable[[Any], Callable[..., Any]], compiled: bool
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The same function through eager mode, TorchScript and torch.compile. `module()` builds e3nn's module in the current mode."""
    import e3nn
    import torch

    e3nn.set_optimization_defaults(jit_mode="eager")
    eager = function(module())
    yield "e3nn eager", eager
    e3nn.set_optimization_defaults(jit_mode="script")
    yield "e3nn TorchScript", function(module())
    e3nn.set_optimization_defaults(jit_mode="eager")
    if compiled:
        yield "e3nn torch.compile", torch.compile(eager, dynamic=False)


def exact(function: Callable[[], Callable[..., Any]], inputs: Mapping[str, Any], cotangent: Any) -> tuple[Any, dict[str, Any]]:
    """Values and gradients in float64. `function()` is built in that dtype: e3nn keeps couplings in the default one."""
    import torch

    torch.set_default_dtype(torch.float64)
    try:
        leaves = tuple(tensor.double().requires_grad_() for tensor in inputs.values())
        values = function()(*leaves)
        gradients = torch.autograd.grad(values, leaves, cotangent.double())
        return values.detach().numpy(), {key: gradient.numpy() for key, gradient in zip(inputs, gradients, strict=True)}
    finally:
        torch.set_default_dtype(torch.float32)


# Clebsch
# -----------------------------------------------------------------------------------------------------------------------------


def aligned(array: Any) -> Any:
    """The array at a multiple of 64 bytes, as PyTorch allocates its tensors; NumPy's lie anywhere."""
    import numpy as np

    memory = np.empty(array.nbytes + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    copy = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def refuse_general(problem: str, schedule: str) -> None:
    """The family that takes everything is no schedule for a problem that people measure."""
    if "general:" in schedule:
        raise SystemExit(f"{problem}: the general kernel ran:\n{schedule}")


def clebsch_contender(
    name: str,
    operation: Any,
    arrays: Mapping[str, Any],
    cotangent: Any,
    rows: Mapping[str, int] | None = None,
    wanted: tuple[str, ...] | None = None,
) -> Contender:
    """`operation` on mul_ir arrays (indices too), which are brought into the layouts it asks for; results are brought back."""
    operands = {operand.name: operand for operand in operation.operands}
    wanted = wanted or tuple(operand.name for operand in operation.inputs)
    output = operation.outputs[0]
    own = {key: to_layout(array, operands[key]) if key in operands else array for key, array in arrays.items()}
    plan = operation.plan()
    gradient_plan = operation.vjp(*wanted).plan()
    refuse_general(f"clebsch {name}", plan.explain() + gradient_plan.explain())
    needed = {operand.name for operand in gradient_plan.operation.inputs} | {index.name for index in operation.indices}
    given = {**own, f"{output.name}_cotangent": to_layout(cotangent, output)}
    call = plan.bind(rows, **own)
    gradient = gradient_plan.bind(rows, **{key: array for key, array in given.items() if key in needed})

    def gradients(results: tuple[Any, Any]) -> dict[str, Any]:
        found = results[1] if isinstance(results[1], dict) else {f"{wanted[0]}_gradient": results[1]}
        return {key: from_layout(found[f"{key}_gradient"], operands[key]) for key in wanted}

    return Contender(
        f"clebsch {name}".strip(), call, lambda: (call(), gradient()), lambda value: from_layout(value, output), gradients
    )


def to_layout(array: Any, operand: Any) -> Any:
    """A mul_ir array as the operand wants it; weights stay as they are."""
    return aligned(swapped(array, operand, False)) if has_other_layout(operand) else array


def from_layout(array: Any, operand: Any) -> Any:
    """An array of the operand as mul_ir."""
    return swapped(array, operand, True) if has_other_layout(operand) else array


def has_other_layout(operand: Any) -> bool:
    return operand.layout == "ir_mul" and "(" not in operand.segments


def swapped(array: Any, operand: Any, back: bool) -> Any:
    """Reorders the numbers of every block of a row: channels and components change places."""
    import clebsch
    import numpy as np

    irreps = clebsch.Irreps(operand.segments)
    parts = []
    for block, where in zip(irreps, irreps.slices(), strict=True):
        shape = (block.ir.dim, block.mul) if back else (block.mul, block.ir.dim)
        parts.append(array[:, where].reshape(len(array), *shape).transpose(0, 2, 1).reshape(len(array), -1))
    return np.ascontiguousarray(np.concatenate(parts, axis=1))
