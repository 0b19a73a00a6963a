"""Clebsch beside the libraries people use today, on the same work in the same run, one core: e3nn (eager, TorchScript,
torch.compile), sphericart, torch.mm and mace-torch. Prints medians of interleaved rounds and ratios; every contender is
checked against float64 values first.

    ./dev bench --peers                     # everything but torch.compile
    ./dev bench --peers --compile           # with it (a minute or two per problem to compile)
    ./dev bench --peers --only convolution --edges 18000
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# One core, one instruction set for all: must be set before the libraries start.
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "CLEBSCH_NUM_THREADS": "1",
}
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "CLEBSCH_INSTRUCTION_SET": "avx2",
}
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}

CONVOLUTIONS = {
    "mace-large": ("128x0e+128x1o+128x2e", "0e+1o+2e+3o", "0e+1o+2e+3o"),
    "nequix-main": ("128x0e+64x1o+32x2e+32x3o", "0e+1o+2e+3o", "0e+1o+2e+3o"),
    "SevenNet_l3i5-main": ("128x0e+64x1e+32x2e+32x3e", "0e+1e+2e+3e", "0e+1e+2e+3e"),
    "nequip-lips": ("32x0o+32x0e+32x1o+32x1e+32x2o+32x2e", "0e+1o+2e", "0o+0e+1o+1e+2o+2e"),
}
TETRIS = ("64x0e+24x1e+24x1o+16x2e+16x2o", "0e+1o+2e", "0o+6x0e")

Contender = tuple[str, Callable[[], Any]]


def interleaved(contenders: list[Contender], rounds: int, budget: float) -> dict[str, dict[str, float]]:
    """Seconds per call: each round times every contender once (as many calls as take about 10 ms)."""
    repeats = {}
    for name, function in contenders:
        function()
        start = time.perf_counter()
        function()
        repeats[name] = max(1, int(0.01 / max(time.perf_counter() - start, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name, _ in contenders}
    end = time.perf_counter() + budget
    for done in range(rounds):
        if done >= 3 and time.perf_counter() > end:
            break
        for name, function in contenders:
            start = time.perf_counter()
            for _ in range(repeats[name]):
                function()
            times[name].append((time.perf_counter() - start) / repeats[name])
    return {
        name: {"median": statistics.median(values), "best": min(values), "worst": max(values), "rounds": len(values)}
        for name, values in times.items()
    }


def relative_error(value: Any, expected: Any) -> float:
    """Norm-wise, in float64."""
    import numpy as np

    value, expected = np.asarray(value, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    return float(np.linalg.norm(value - expected) / np.linalg.norm(expected))


def require_close(problem: str, name: str, value: Any, expected: Any, bound: float = 1e-5) -> None:
    """A contender that computes something else is not measured."""
    error = relative_error(value, expected)
    if not error < bound:
        raise SystemExit(f"{problem}: {name} differs from the float64 values by {error:.2e} (norm-wise)")


def mul_ir_to_ir_mul(array: Any, irreps: Any) -> Any:
    """Reorders the numbers of every block of a row."""
    import numpy as np

    parts = []
    for block, where in zip(irreps, irreps.slices(), strict=True):
        part = array[:, where].reshape(len(array), block.mul, block.ir.dim)
        parts.append(part.transpose(0, 2, 1).reshape(len(array), -1))
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def torch_variants(
    module: Any, function: Callable[[Any], Callable[..., Any]], compiled: bool
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


def grad_call(function: Callable[..., Any], inputs: tuple[Any, ...], cotangent: Any) -> Callable[[], Any]:
    """Forward and all first gradients through autograd."""
    import torch

    leaves = tuple(value.clone().requires_grad_() for value in inputs)
    return lambda: torch.autograd.grad(function(*leaves), leaves, cotangent)


def no_grad_call(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Callable[[], Any]:
    import torch

    def run() -> Any:
        with torch.no_grad():
            return function(*inputs)

    return run


def convolution(name: str, edges: int, compiled: bool) -> dict[str, Any]:
    """gather x[sender] + uvu tensor product with per-edge weights + sum at the receiver: us per edge."""
    import clebsch
    import numpy as np
    import torch
    from e3nn import o3

    irreps_in, irreps_edge, irreps_out = CONVOLUTIONS[name]
    neighbors = 45
    nodes = edges // neighbors
    generator = np.random.default_rng(0)

    outputs, instructions = [], []
    keep = [o3.Irrep(str(block.ir)) for block in o3.Irreps(irreps_out)]
    in1, in2 = o3.Irreps(irreps_in), o3.Irreps(irreps_edge)
    for i, (mul, ir1) in enumerate(in1):
        for j, (_, ir2) in enumerate(in2):
            for ir in ir1 * ir2:
                if ir in keep:
                    instructions.append((i, j, len(outputs), "uvu", True))
                    outputs.append((mul, ir))
    sorted_outputs, order, _ = o3.Irreps(outputs).sort()
    instructions = sorted(((i, j, order[k], mode, train) for i, j, k, mode, train in instructions), key=lambda t: t[2])

    def module() -> Any:
        return o3.TensorProduct(in1, in2, sorted_outputs, instructions, shared_weights=False, internal_weights=False)

    weights = module().weight_numel
    arrays = {
        "x": generator.standard_normal((nodes, in1.dim), dtype=np.float32),
        "y": generator.standard_normal((edges, in2.dim), dtype=np.float32),
        "weights": generator.standard_normal((edges, weights), dtype=np.float32),
    }
    cotangent = generator.standard_normal((nodes, sorted_outputs.dim), dtype=np.float32)
    index = {"sender": generator.integers(0, nodes, edges), "receiver": np.repeat(np.arange(nodes), neighbors)}
    sender, receiver = (torch.from_numpy(index[key]) for key in ("sender", "receiver"))
    dim = sorted_outputs.dim

    def function(tensor_product: Any) -> Callable[..., Any]:
        return lambda x, y, w: torch.zeros(nodes, dim).index_add(0, receiver, tensor_product(x[sender], y, w))

    inputs = tuple(torch.from_numpy(array) for array in arrays.values())
    variants = list(torch_variants(module, function, compiled))
    forward: list[Contender] = [(label, no_grad_call(f, inputs)) for label, f in variants]
    backward: list[Contender] = [(label, grad_call(f, inputs, torch.from_numpy(cotangent))) for label, f in variants]

    torch.set_default_dtype(torch.float64)
    exact = torch.zeros(nodes, dim).index_add(
        0, receiver, module()(inputs[0].double()[sender], inputs[1].double(), inputs[2].double())
    )
    torch.set_default_dtype(torch.float32)
    schedule = ""
    for layout in ("ir_mul", "mul_ir"):
        operation = clebsch.build(
            "convolution", in_=irreps_in, edge=irreps_edge, out=irreps_out, x_layout=layout, out_layout=layout
        )
        own = dict(arrays)
        own_cotangent = cotangent
        if layout == "ir_mul":
            own["x"] = mul_ir_to_ir_mul(arrays["x"], clebsch.Irreps(irreps_in))
            own_cotangent = mul_ir_to_ir_mul(cotangent, clebsch.Irreps(str(sorted_outputs)))
        plan = operation.plan()
        call = plan.bind({"node": nodes}, **own, **index)
        expected = exact.numpy() if layout == "mul_ir" else mul_ir_to_ir_mul(exact.numpy(), clebsch.Irreps(str(sorted_outputs)))
        require_close(name, f"clebsch {layout}", call(), expected)
        gradient_plan = operation.vjp("x", "y", "weights").plan()
        gradient = gradient_plan.bind({"node": nodes}, **own, **index, out_cotangent=own_cotangent)
        if layout == "mul_ir":
            values = gradient()
            for key, peer in zip(arrays, backward[0][1](), strict=True):
                require_close(name, f"gradient of {key}", values[f"{key}_gradient"], peer.numpy())
        else:
            schedule = plan.explain() + gradient_plan.explain()
        forward.append((f"clebsch {layout}", call))
        backward.append((f"clebsch {layout}", lambda call=call, gradient=gradient: (call(), gradient())))
    if "general:" in schedule:
        raise SystemExit(f"{name}: the general kernel ran:\n{schedule}")
    return {
        "problem": f"convolution {name}, {edges} edges",
        "unit": "us per edge",
        "scale": 1e6 / edges,
        "forward": interleaved(forward, 15, 20),
        "forward + gradients": interleaved(backward, 15, 30),
    }


def tetris(shared: bool, compiled: bool, rows: int = 10000) -> dict[str, Any]:
    """Fully connected tensor product with few outputs: us per row."""
    import clebsch
    import numpy as np
    import torch
    from e3nn import o3

    irreps = [o3.Irreps(text) for text in TETRIS]

    def module() -> Any:
        return o3.FullyConnectedTensorProduct(*irreps, shared_weights=shared, internal_weights=False)

    generator = np.random.default_rng(0)
    count = module().weight_numel
    arrays = {
        "x": generator.standard_normal((rows, irreps[0].dim), dtype=np.float32),
        "y": generator.standard_normal((rows, irreps[1].dim), dtype=np.float32),
        "weights": generator.standard_normal((1 if shared else rows, count), dtype=np.float32),
    }
    cotangent = generator.standard_normal((rows, irreps[2].dim), dtype=np.float32)
    inputs = tuple(torch.from_numpy(array[0] if shared and key == "weights" else array) for key, array in arrays.items())
    variants = list(torch_variants(module, lambda tensor_product: tensor_product, compiled))
    forward: list[Contender] = [(label, no_grad_call(f, inputs)) for label, f in variants]
    backward: list[Contender] = [(label, grad_call(f, inputs, torch.from_numpy(cotangent))) for label, f in variants]
    torch.set_default_dtype(torch.float64)
    exact = module()(*(value.double() for value in inputs)).numpy()
    torch.set_default_dtype(torch.float32)
    for layout in ("ir_mul", "mul_ir"):
        weights = "shared" if shared else "per_row"
        operation = clebsch.build("fully_connected", in1=TETRIS[0], in2=TETRIS[1], out=TETRIS[2], weights=weights, x_layout=layout)
        own = dict(arrays)
        if layout == "ir_mul":
            own["x"] = mul_ir_to_ir_mul(arrays["x"], clebsch.Irreps(TETRIS[0]))
        call = operation.plan().bind(**own)
        require_close("tetris", f"clebsch {layout}", call(), exact)
        gradient = operation.vjp("x", "y", "weights").plan().bind(**own, out_cotangent=cotangent)
        forward.append((f"clebsch {layout}", call))
        backward.append((f"clebsch {layout}", lambda call=call, gradient=gradient: (call(), gradient())))
    return {
        "problem": f"fully connected, tetris-poly-2, {'shared' if shared else 'per-row'} weights, {rows} rows",
        "unit": "us per row",
        "scale": 1e6 / rows,
        "forward": interleaved(forward, 25, 8),
        "forward + gradients": interleaved(backward, 25, 12),
    }


def harmonics(lmax: int, vectors: int = 20000) -> dict[str, Any]:
    """Normalised spherical harmonics: ns per vector."""
    import clebsch
    import numpy as np
    import sphericart
    import sphericart.torch
    import torch
    from e3nn import o3

    generator = np.random.default_rng(0)
    vector = generator.standard_normal((vectors, 3), dtype=np.float32)
    cotangent = generator.standard_normal((vectors, (lmax + 1) ** 2), dtype=np.float32)
    irreps = str(clebsch.Irreps.spherical_harmonics(lmax))
    operation = clebsch.build("spherical_harmonics", irreps=irreps, normalize=True)
    name = operation.inputs[0].name
    call = operation.plan().bind(**{name: vector})
    gradient_operation = operation.vjp(name)
    gradient = gradient_operation.plan().bind(**{name: vector, f"{operation.outputs[0].name}_cotangent": cotangent})
    exact = o3.spherical_harmonics(list(range(lmax + 1)), torch.from_numpy(vector).double(), True, "component").numpy()
    require_close("harmonics", "clebsch", call(), exact)
    native = sphericart.SphericalHarmonics(lmax)
    module = sphericart.torch.SphericalHarmonics(lmax)
    tensor = torch.from_numpy(vector)
    torch_gradient = grad_call(module.compute, (tensor,), torch.from_numpy(cotangent))
    return {
        "problem": f"spherical harmonics to l = {lmax}, {vectors} vectors",
        "unit": "ns per vector",
        "scale": 1e9 / vectors,
        "forward": interleaved(
            [
                ("sphericart", lambda: native.compute(vector)),
                ("sphericart torch", no_grad_call(module.compute, (tensor,))),
                ("clebsch", call),
            ],
            60,
            6,
        ),
        "forward + gradients": interleaved(
            [
                ("sphericart (values and derivatives)", lambda: native.compute_with_gradients(vector)),
                ("sphericart torch", torch_gradient),
                ("clebsch", lambda: (call(), gradient())),
            ],
            60,
            8,
        ),
    }


def linear(rows: int = 2000) -> dict[str, Any]:
    """128x0e+128x1o+128x2e to itself against torch.mm of the same flops: ms."""
    import clebsch
    import numpy as np
    import torch

    text = "128x0e+128x1o+128x2e"
    irreps = clebsch.Irreps(text)
    generator = np.random.default_rng(0)
    x = generator.standard_normal((rows, irreps.dim), dtype=np.float32)
    weights = generator.standard_normal((1, 3 * 128 * 128), dtype=np.float32)
    cotangent = generator.standard_normal((rows, irreps.dim), dtype=np.float32)
    a, b, c = torch.randn(9 * rows, 128), torch.randn(128, 128), torch.empty(9 * rows, 128)
    g, w = torch.randn(9 * rows, 128), torch.empty(128, 128)

    def both() -> None:
        torch.mm(a, b, out=c)
        torch.mm(g, b.t(), out=c)
        torch.mm(a.t(), g, out=w)

    forward: list[Contender] = [("torch.mm", lambda: torch.mm(a, b, out=c))]
    backward: list[Contender] = [("torch.mm", both)]
    for layout in ("ir_mul", "mul_ir"):
        operation = clebsch.build("linear", in_=text, out=text, x_layout=layout, out_layout=layout)
        arrays = {"x": x, "weights": weights}
        call = operation.plan().bind(**arrays)
        gradient = operation.vjp("x", "weights").plan().bind(**arrays, out_cotangent=cotangent)
        require_close(
            "linear", f"clebsch {layout}", call(), operation.plan("float64")(x=x.astype(float), weights=weights.astype(float))
        )
        forward.append((f"clebsch {layout}", call))
        backward.append((f"clebsch {layout}", lambda call=call, gradient=gradient: (call(), gradient())))
    return {
        "problem": f"linear {text}, {rows} rows",
        "unit": "ms",
        "scale": 1e3,
        "forward": interleaved(forward, 40, 6),
        "forward + gradients": interleaved(backward, 40, 10),
    }


def contraction(mace_python: str | None, nodes: int = 200) -> dict[str, Any]:
    """Symmetric contraction, correlation 3, 128 channels, 0e+1o+2e+3o to 0e+1o: us per node. mace-torch has its own environment."""
    import clebsch
    import numpy as np

    species = 7
    text = "128x0e+128x1o+128x2e+128x3o"
    operation = clebsch.build(
        "symmetric_contraction", in_=text, out="128x0e+128x1o", correlation=3, x_layout="ir_mul", out_layout="ir_mul"
    )
    generator = np.random.default_rng(0)
    sizes = {operand.name: operand.row_size for operand in operation.inputs}
    arrays = {
        operand.name: generator.standard_normal(
            (species if operand.name == "weights" else nodes, operand.row_size), dtype=np.float32
        )
        for operand in operation.inputs
    }
    index = {operation.indices[0].name: generator.integers(0, species, nodes)}
    call = operation.plan().bind(**arrays, **index)
    exact = operation.plan("float64")(**{key: value.astype(float) for key, value in arrays.items()}, **index)
    require_close("symmetric contraction", "clebsch", call(), exact)
    cotangent = generator.standard_normal((nodes, operation.outputs[0].row_size), dtype=np.float32)
    gradient = operation.vjp("x").plan().bind(**arrays, **index, out_cotangent=cotangent)
    result: dict[str, Any] = {
        "problem": f"symmetric contraction, correlation 3, 128 channels, {nodes} nodes, {sizes['weights']} weights per species",
        "unit": "us per node",
        "scale": 1e6 / nodes,
        "forward": {},
        "forward + gradients": {},
    }
    own_forward: list[float] = []
    own_backward: list[float] = []
    peer_forward: dict[str, list[float]] = {}
    peer_backward: dict[str, list[float]] = {}
    for _ in range(3):
        own_forward.append(interleaved([("clebsch", call)], 20, 2)["clebsch"]["median"])
        own_backward.append(interleaved([("clebsch", lambda: (call(), gradient()))], 20, 2)["clebsch"]["median"])
        if mace_python:
            script = Path(__file__).with_name("peer_mace.py")
            output = subprocess.run([mace_python, str(script), str(nodes)], check=True, capture_output=True, text=True).stdout
            for line in (line for line in output.splitlines() if line.startswith("{")):  # mace-torch prints warnings there
                row = json.loads(line)
                peer_forward.setdefault(row["name"], []).append(row["forward"])
                peer_backward.setdefault(row["name"], []).append(row["backward"])
    for key, own, peer in (("forward", own_forward, peer_forward), ("forward + gradients", own_backward, peer_backward)):
        for label, values in {**peer, "clebsch": own}.items():
            result[key][label] = {
                "median": statistics.median(values),
                "best": min(values),
                "worst": max(values),
                "rounds": len(values),
            }
    return result


def report(result: dict[str, Any], target: dict[str, float]) -> None:
    """A table of one problem: medians, spread, and the ratio of the best other contender to ours."""
    print(f"\n{result['problem']}  ({result['unit']})")
    for part in ("forward", "forward + gradients"):
        rows = result[part]
        others = {name: row for name, row in rows.items() if not name.startswith("clebsch")}
        best = min((row["median"] for row in others.values()), default=None)
        print(f"  {part}")
        for name, row in rows.items():
            numbers = [row[key] * result["scale"] for key in ("median", "best", "worst")]
            ratio = f"   {best / row['median']:.2f}x the best other" if best and name not in others else ""
            print(f"    {name:38s} {numbers[0]:10.3f}   [{numbers[1]:.3f} .. {numbers[2]:.3f}]{ratio}")


def workers(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs this file once per problem, and again with malloc keeping memory where that helps e3nn; one core; collects results."""
    problems = [
        *(f"convolution:{name}" for name in CONVOLUTIONS),
        "tetris:shared",
        "tetris:per_row",
        "harmonics:3",
        "harmonics:6",
        "linear:",
        "contraction:",
    ]
    results = []
    for problem in problems:
        if arguments.only and not problem.startswith(arguments.only):
            continue
        found = None
        for kept in (False, True):
            if kept and not problem.startswith(("convolution", "tetris")):
                continue
            environment = {**os.environ, **SETTINGS, **({} if arguments.native else AVX2), **(KEEP_MEMORY if kept else {})}
            command = [sys.executable, __file__, "--worker", problem, "--edges", str(arguments.edges)]
            if arguments.compile and not kept:
                command.append("--compile")
            if arguments.mace_python:
                command += ["--mace-python", arguments.mace_python]
            run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
            if run.returncode:
                raise SystemExit(f"{problem}: the worker ended with {run.returncode}")
            result = json.loads(run.stdout.splitlines()[-1])
            if found is None:
                found = result
                continue
            for part in ("forward", "forward + gradients"):
                for name, row in result[part].items():
                    label = name if name.startswith("clebsch") else f"{name}, malloc keeps"
                    if not name.startswith("clebsch") or row["median"] < found[part][name]["median"]:
                        found[part][label] = row
        results.append(found)
        report(found, {})
    return results


def work(arguments: argparse.Namespace) -> dict[str, Any]:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import torch

    torch.set_num_threads(1)
    kind, _, detail = arguments.worker.partition(":")
    if kind == "convolution":
        return convolution(detail, arguments.edges, arguments.compile)
    if kind == "tetris":
        return tetris(detail == "shared", arguments.compile)
    if kind == "harmonics":
        return harmonics(int(detail))
    if kind == "linear":
        return linear()
    return contraction(arguments.mace_python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="convolution, tetris, harmonics, linear or contraction (or convolution:NAME)")
    parser.add_argument("--edges", type=int, default=4500, help="edges of the convolutions (45 per node)")
    parser.add_argument("--compile", action="store_true", help="measure torch.compile too")
    parser.add_argument("--native", action="store_true", help="the best instruction set of the machine instead of AVX2")
    parser.add_argument(
        "--mace-python", default=os.environ.get("CLEBSCH_MACE_PYTHON"), help="python of an environment with mace-torch 0.3.16"
    )
    parser.add_argument("--json", help="also write the results to this file")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(work(arguments)))
        return
    results = workers(arguments)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
