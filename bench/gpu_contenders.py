"""One library on some cases of gpu_peers, in a process of its own, which reads what to do as JSON from standard input.

Everything that needs no large arrays (building, compiling on a small graph) runs at once; measuring waits for a lock, so that one
process at a time uses the GPU. Results are lines "RESULT {json}" on standard output; a refusal is one too.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from gpu_problems import PASSES, PROBLEMS, Case, Check, Problem, say, times_of

DEVICE = "cuda"
SECONDS = 1.0  # for the timed calls of a pass, at most
RUNS = 25

Arrays = dict[str, Any]


class Missing(Exception):
    """What a library needs and is not here."""


class ClebschContender:
    """Plans through the C interface, on the arrays' device and PyTorch's current stream. mul_ir is e3nn's layout."""

    def __init__(self, problem: Problem, rows: bool, layout: str):
        import clebsch
        import torch
        from clebsch import _library as lib

        self.torch, self.lib, self.layout, self.rows = torch, lib, layout, rows
        in_, edge, out = problem.irreps()
        layouts = {"x_layout": layout, "out_layout": layout}
        if rows:
            operation = clebsch.build("channelwise_product", in1=in_, in2=edge, filter=out, weights="per_row", **layouts)
        else:
            operation = clebsch.build("convolution", in_=in_, edge=edge, out=out, **layouts)
        inputs = ("x", "y", "weights")
        gradients = operation.vjp(*inputs)
        second = gradients.vjp(*inputs, "out_cotangent")
        names = {"x": "x", "y": "y", "weights": "s", "out": "out", "out_cotangent": "g"}
        cotangents = {f"{name}_gradient_cotangent": letter for name, letter in zip(inputs, "abc", strict=True)}
        self.names = {
            "forward": names,
            "backward": names | {f"{name}_gradient": "d" + names[name] for name in inputs},
            "double backward": names | cotangents | {f"{name}_gradient": "D" + names[name] for name in (*inputs, "out_cotangent")},
        }
        self.operations = dict(zip(PASSES, (operation, gradients, second), strict=True))
        self.plans: dict[str, int] = {}
        self.prepared: dict[str, float] = {}
        self.calls: dict[str, Any] = {}

    def prepare(self, what: str) -> None:
        lib = self.lib
        options = lib.PlanOptions(size=ctypes.sizeof(lib.PlanOptions), dtype=0, device=DEVICE.encode())
        begin = time.perf_counter()
        self.plans[what] = lib.call_handle("clebsch_plan_prepare", self.operations[what]._handle, ctypes.byref(options))
        self.prepared[what] = time.perf_counter() - begin

    def pass_function(self, what: str, case: Case, arrays: Arrays) -> tuple[Callable[[], Any], Callable[[Any], Arrays]]:
        if what not in self.plans:
            self.prepare(what)
        lib, torch, operation = self.lib, self.torch, self.operations[what]
        sizes = {"node": case.nodes, "edge": case.edges}
        rows = (ctypes.c_int64 * len(operation.spaces))(*[sizes.get(space, case.edges) for space in operation.spaces])
        outputs: Arrays = {}
        held: list[Any] = [rows]
        buffers = []
        for operand in operation.operands:
            name = self.names[what][operand.name]
            count = rows[operation.spaces.index(operand.space)]
            if operand.is_output:
                array = outputs[name] = torch.empty(count, operand.row_size, device=arrays["x"].device)
            else:
                array = arrays[name].detach()
            held.append(array)
            buffers.append(lib.Buffer(array.data_ptr(), 0, count, operand.row_size))
        given = [arrays[index.name] for index in operation.indices]
        size = ctypes.c_size_t()
        lib.call("clebsch_plan_workspace_size", self.plans[what], rows, len(rows), 0, ctypes.byref(size))
        workspace = torch.empty(size.value + 256, dtype=torch.uint8, device=arrays["x"].device)
        address = workspace.data_ptr() + (-workspace.data_ptr()) % 256
        call = lib.Call(
            size=ctypes.sizeof(lib.Call),
            buffers=(lib.Buffer * len(buffers))(*buffers),
            buffer_count=len(buffers),
            indices=(lib.IndexBuffer * max(1, len(given)))(*[lib.IndexBuffer(i.data_ptr(), 0, len(i)) for i in given]),
            index_count=len(given),
            rows=rows,
            space_count=len(rows),
            workspace=address,
            workspace_bytes=size.value,
        )
        held += [workspace, call]
        plan, passed = self.plans[what], ctypes.byref(call)
        if DEVICE == "cpu":
            return lambda held=held: lib.call("clebsch_launch", plan, passed), lambda _: outputs
        stream = torch.cuda.current_stream().cuda_stream
        return lambda held=held: lib.call("clebsch_launch_on_stream", plan, passed, stream), lambda _: outputs

    def note(self, what: str) -> str:
        text = self.lib.call_text("clebsch_plan_explain", self.plans[what], 0.0, 0.0)
        for schedule in ("stream", "general"):
            if f"{schedule}:" in text or f"{schedule} " in text.split("\n", 1)[0]:
                return schedule
        return text.split("\n", 1)[0][:60]

    def weights(self, array: Any) -> Any:
        return array


class TorchContender:
    """A function of x, y and s, with PyTorch's automatic derivatives."""

    def __init__(
        self, function: Callable[[Case, Arrays], Callable[..., Any]], layout: str, weights: Callable[[Any], Any] | None = None
    ):
        import torch

        self.torch, self.function, self.layout = torch, function, layout
        self.weights = weights or (lambda array: array)
        self.prepared: dict[str, float] = {}
        self.kept: Arrays = {}

    def pass_function(self, what: str, case: Case, arrays: Arrays) -> tuple[Callable[[], Any], Callable[[Any], Arrays]]:
        torch = self.torch
        f = self.function(case, arrays)
        inputs = tuple(arrays[name] for name in "xys")
        if what == "forward":
            for array in inputs:
                array.requires_grad_(False)

            def forward() -> Any:
                with torch.no_grad():
                    return f(*inputs)

            return forward, lambda out: {"out": out}
        for array in (*inputs, arrays["g"]):
            array.requires_grad_(True)
        out = f(*inputs)
        if what == "backward":
            g = arrays["g"].detach()
            return lambda: torch.autograd.grad(out, inputs, g, retain_graph=True), lambda found: dict(
                zip(("dx", "dy", "ds"), found, strict=True)
            )
        first = torch.autograd.grad(out, inputs, arrays["g"], create_graph=True)
        cotangents = tuple(arrays[name] for name in "abc")
        return lambda: torch.autograd.grad(first, (*inputs, arrays["g"]), cotangents, retain_graph=True), lambda found: dict(
            zip(("Dx", "Dy", "Ds", "Dg"), found, strict=True)
        )

    def note(self, what: str) -> str:
        return ""


def instructions(problem: Problem) -> list[tuple[int, int, int, str, bool]]:
    degrees = [degree for _, degree in problem.nodes]
    return [(degrees.index(l1), l2, p, "uvu", True) for p, (l1, l2, _) in enumerate(problem.paths)]


def outputs_text(problem: Problem) -> str:
    return "+".join(f"{multiplicity}x{degree}{'eo'[degree % 2]}" for multiplicity, degree in problem.output_blocks)


def e3nn_contender(problem: Problem, rows: bool) -> TorchContender:
    import torch
    from e3nn import o3

    in_, edge, _ = problem.irreps()
    module = o3.TensorProduct(
        in_, edge, outputs_text(problem), instructions(problem), shared_weights=False, internal_weights=False
    ).to(DEVICE)

    def function(case: Case, arrays: Arrays) -> Callable[..., Any]:
        if rows:
            return module
        sender, receiver = arrays["sender"].long(), arrays["receiver"].long()
        zeros = torch.zeros(case.nodes, problem.out_size, device=DEVICE)
        return lambda x, y, s: zeros.index_add(0, receiver, module(x[sender], y, s))

    return TorchContender(function, "mul_ir")


def cuequivariance_contender(problem: Problem, rows: bool) -> TorchContender:
    import cuequivariance as cue
    import cuequivariance_torch as cuet
    import torch
    from cuequivariance.group_theory.experimental.e3nn import O3_e3nn

    irreps = [cue.Irreps(O3_e3nn, text) for text in problem.irreps()]
    product = cue.descriptors.channelwise_tensor_product(*irreps)
    if [(block.mul, block.ir.l) for block in product.outputs[0].irreps] != problem.output_blocks:
        raise Missing("the paths in another order")
    product = product.flatten_coefficient_modes().squeeze_modes()
    if len(set(problem.channels.values())) > 1:
        product = product.split_mode("u", 32)  # its kernel takes one number of channels
    method = "naive" if DEVICE == "cpu" else "uniform_1d"
    module = cuet.SegmentedPolynomial(product.polynomial, method=method, math_dtype=torch.float32, name="peer").to(DEVICE)

    def function(case: Case, arrays: Arrays) -> Callable[..., Any]:
        options: dict[str, Any] = {}
        if not rows:
            index = [arrays[name].long() if DEVICE == "cpu" else arrays[name] for name in ("sender", "receiver")]
            shape = torch.empty(case.nodes, 1, device=DEVICE)
            options = {"input_indices": {1: index[0]}, "output_shapes": {0: shape}, "output_indices": {0: index[1]}}
        return lambda x, y, s: module([s, x, y], **options)[0]

    return TorchContender(function, "ir_mul")


def openequivariance_contender(problem: Problem, rows: bool, deterministic: bool) -> TorchContender:
    import openequivariance as oeq
    import torch

    in_, edge, _ = problem.irreps()
    described = oeq.TPProblem(
        in_, edge, outputs_text(problem), instructions(problem), shared_weights=False, internal_weights=False, layout="ir_mul"
    )
    module = oeq.TensorProduct(described) if rows else oeq.TensorProductConv(described, deterministic=deterministic)

    def function(case: Case, arrays: Arrays) -> Callable[..., Any]:
        if rows:
            return module
        sender, receiver = arrays["sender"].long(), arrays["receiver"].long()
        turned = torch.argsort(sender * case.nodes + receiver, stable=True) if deterministic else None
        return lambda x, y, s: module(x, y, s, receiver, sender, turned)

    return TorchContender(function, "ir_mul", lambda array: module.reorder_weights_to_e3nn(array.contiguous(), has_batch_dim=True))


LIBRARIES: dict[str, Callable[[Problem, bool], Any]] = {
    "clebsch": lambda problem, rows: ClebschContender(problem, rows, "ir_mul"),
    "clebsch, mul_ir": lambda problem, rows: ClebschContender(problem, rows, "mul_ir"),
    "e3nn": e3nn_contender,
    "cuequivariance": cuequivariance_contender,
    "openequivariance": lambda problem, rows: openequivariance_contender(problem, rows, False),
    "openequivariance, deterministic": lambda problem, rows: openequivariance_contender(problem, rows, True),
}


def make_arrays(case: Case, problem: Problem, graph: tuple[np.ndarray, np.ndarray]) -> Arrays:
    import torch

    generator = torch.Generator(device=DEVICE).manual_seed(7)
    normal = lambda rows, size: torch.randn(rows, size, device=DEVICE, generator=generator)  # noqa: E731
    arrays = {name: torch.from_numpy(index).to(DEVICE) for name, index in zip(("sender", "receiver"), graph, strict=True)}
    arrays["x"], arrays["y"] = normal(case.nodes, problem.x_size), normal(case.edges, problem.y_size)
    arrays["s"], arrays["g"] = normal(case.edges, problem.s_size), normal(case.nodes, problem.out_size)
    arrays["a"], arrays["b"] = normal(case.nodes, problem.x_size), normal(case.edges, problem.y_size)
    arrays["c"] = normal(case.edges, problem.s_size)
    return arrays


def synchronize() -> None:
    import torch

    if DEVICE == "cuda":
        torch.cuda.synchronize()


def timed(function: Callable[[], Any]) -> tuple[list[float], float]:
    """Milliseconds of calls between events, after three that do not count; milliseconds the host needs to start one."""
    import torch

    for _ in range(3):
        function()
    synchronize()
    begin = time.perf_counter()
    function()
    synchronize()
    runs = int(min(RUNS, max(5, SECONDS / max(1e-5, time.perf_counter() - begin))))
    if DEVICE == "cpu":
        return [(time.perf_counter() - begin) * 1e3], 0.0
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(runs)]
    begin = time.perf_counter()
    for first, last in events:
        first.record()
        function()
        last.record()
    host = (time.perf_counter() - begin) / runs * 1e3
    synchronize()
    return [first.elapsed_time(last) for first, last in events], host


def measure(library: str, contender: Any, case: Case, passes: list[str], first_seconds: dict[str, float]) -> None:
    import torch

    problem, graph = PROBLEMS[case.problem], case.graph()
    arrays = make_arrays(case, problem, graph)

    def take(name: str, rows: np.ndarray) -> np.ndarray:
        part = arrays[name].detach()[torch.as_tensor(rows, dtype=torch.int64, device=DEVICE)]
        return (contender.weights(part) if name in ("s", "ds", "Ds", "c") else part).double().cpu().numpy()

    check = Check(case, graph, take, contender.layout)
    for what in passes:
        if DEVICE == "cuda":
            torch.cuda.reset_peak_memory_stats()
        function, named = contender.pass_function(what, case, arrays)
        milliseconds, host = timed(function)
        arrays |= named(function())
        synchronize()
        peak = torch.cuda.max_memory_allocated() if DEVICE == "cuda" else 0
        say(
            library=library,
            case=vars(case),
            what=what,
            **times_of(milliseconds),
            host_ms=host,
            bytes=problem.bytes(case.nodes, case.edges, what),
            error=getattr(check, what.replace(" ", "_"))(),
            first_s=first_seconds.get(what),
            peak_bytes=peak,
            note=contender.note(what),
        )
        for name in ("dx", "dy", "ds", "Dx", "Dy", "Ds", "Dg"):
            arrays.pop(name, None)


@contextlib.contextmanager
def alone(lock: str) -> Iterator[None]:
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def first_calls(contender: Any, case: Case, passes: list[str]) -> dict[str, float]:
    """Seconds of each pass's first call, on a small graph."""
    small = Case(case.problem, case.kind, 64, min(4, case.neighbors))
    arrays = make_arrays(small, PROBLEMS[small.problem], small.graph())
    seconds = {}
    for what in passes:
        begin = time.perf_counter()
        function, _ = contender.pass_function(what, small, arrays)
        function()
        synchronize()
        seconds[what] = time.perf_counter() - begin
    return seconds


def run(library: str, cases: list[tuple[Case, list[str]]], lock: str) -> None:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    begin = time.perf_counter()
    first_case, passes = cases[0]
    contender = LIBRARIES[library](PROBLEMS[first_case.problem], first_case.rows)
    build = time.perf_counter() - begin
    first_seconds = first_calls(contender, first_case, passes)
    say(library=library, problem=first_case.problem, build_s=build)
    for case, passes in cases:
        with alone(lock):
            try:
                measure(library, contender, case, passes, first_seconds)
            except Exception as error:  # a refusal is a result
                traceback.print_exc()
                say(library=library, case=vars(case), refused=f"{type(error).__name__}: {str(error)[:400]}")
            contender.kept = {}
            gc.collect()
            if DEVICE == "cuda":
                torch.cuda.empty_cache()


def copy_bandwidth() -> None:
    import torch

    source = torch.randn(1 << 30, device=DEVICE)
    target = torch.empty_like(source)
    milliseconds, _ = timed(lambda: target.copy_(source))
    times = times_of(milliseconds)
    say(copy=8 * source.numel() / times["ms"] / 1e6, **times, gpu=torch.cuda.get_device_name(), torch=torch.__version__)


def main() -> None:
    global DEVICE
    asked = json.load(sys.stdin)
    DEVICE = asked["device"]
    library = asked["library"]
    cases = [(Case(**case), passes) for case, passes in asked["cases"]]
    try:
        if library == "copy":
            with alone(asked["lock"]):
                copy_bandwidth()
        elif library.startswith("e3j"):
            import gpu_e3j

            gpu_e3j.run(library, cases, lambda: alone(asked["lock"]), DEVICE)
        else:
            run(library, cases, asked["lock"])
    except Exception as error:
        traceback.print_exc()
        for case, _ in cases:
            say(library=library, case=vars(case), refused=f"{type(error).__name__}: {str(error)[:400]}")


if __name__ == "__main__":
    main()
