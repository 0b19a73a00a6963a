"""Clebsch beside the libraries people use today, on the same work in the same run, one core: e3nn (eager, TorchScript,
torch.compile), sphericart, torch.mm and mace-torch. Prints medians of interleaved rounds and ratios to the best other one; every
contender's values and gradients are checked against float64 ones first, and none of ours may run on the general kernels.

    ./dev bench --peers                                          # everything: half an hour
    ./dev bench --peers --no-compile                             # without torch.compile, which takes a minute or two per problem
    ./dev bench --peers --only convolution:mace-large,tetris --edges 18000
    ./dev bench --peers --check                                  # the checks alone
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from contenders import (
    Contender,
    Problem,
    aligned,
    check,
    clebsch_contender,
    exact,
    interleaved,
    measure,
    summary,
    torch_contender,
    torch_variants,
)

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
NEIGHBORS = 45
TETRIS = ("64x0e+24x1e+24x1o+16x2e+16x2o", "0e+1o+2e", "0o+6x0e")
PARTS = ("forward", "forward + gradients")


def normal(generator: Any, *shape: int) -> Any:
    return aligned(generator.standard_normal(shape, dtype="float32"))


def convolution(name: str, edges: int, compiled: bool) -> Problem:
    """gather x[sender] + uvu tensor product with per-edge weights + sum at the receiver: us per edge."""
    import clebsch
    import clebsch.torch
    import numpy as np
    import torch
    from e3nn import o3

    irreps_in, irreps_edge, irreps_out = CONVOLUTIONS[name]
    nodes = edges // NEIGHBORS
    edges = nodes * NEIGHBORS
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

    arrays = {
        "x": normal(generator, nodes, in1.dim),
        "y": normal(generator, edges, in2.dim),
        "weights": normal(generator, edges, module().weight_numel),
    }
    cotangent = normal(generator, nodes, sorted_outputs.dim)
    index = {"sender": generator.integers(0, nodes, edges), "receiver": np.repeat(np.arange(nodes), NEIGHBORS)}
    sender, receiver = (torch.from_numpy(index[key]) for key in ("sender", "receiver"))
    dim = sorted_outputs.dim

    def function(tensor_product: Any) -> Any:
        return lambda x, y, w: torch.zeros(nodes, dim, dtype=x.dtype).index_add(0, receiver, tensor_product(x[sender], y, w))

    inputs = {key: torch.from_numpy(array) for key, array in arrays.items()}
    values, gradients = exact(lambda: function(module()), inputs, torch.from_numpy(cotangent))
    contenders = [
        torch_contender(label, variant, inputs, torch.from_numpy(cotangent))
        for label, variant in torch_variants(module, function, compiled)
    ]
    for layout in ("ir_mul", "mul_ir"):
        operation = clebsch.build(
            "convolution", in_=irreps_in, edge=irreps_edge, out=irreps_out, x_layout=layout, out_layout=layout
        )
        contenders.append(clebsch_contender(layout, operation, {**arrays, **index}, cotangent, {"node": nodes}))
    layer = clebsch.torch.Convolution(irreps_in, irreps_edge, irreps_out)
    through_torch = torch_contender(
        "clebsch.torch, mul_ir", lambda x, y, w: layer(x, y, w, sender, receiver), inputs, torch.from_numpy(cotangent)
    )
    contenders.append(through_torch)
    return Problem(f"convolution {name}, {edges} edges", "us per edge", 1e6 / edges, values, gradients, contenders)


def tetris(shared: bool, compiled: bool, rows: int = 10000) -> Problem:
    """Fully connected tensor product with few outputs: us per row."""
    import clebsch
    import numpy as np
    import torch
    from e3nn import o3

    irreps = [o3.Irreps(text) for text in TETRIS]

    def module() -> Any:
        return o3.FullyConnectedTensorProduct(*irreps, shared_weights=shared, internal_weights=False)

    def function(tensor_product: Any) -> Any:
        return lambda x, y, w: tensor_product(x, y, w[0] if shared else w)

    generator = np.random.default_rng(0)
    arrays = {
        "x": normal(generator, rows, irreps[0].dim),
        "y": normal(generator, rows, irreps[1].dim),
        "weights": normal(generator, 1 if shared else rows, module().weight_numel),
    }
    cotangent = normal(generator, rows, irreps[2].dim)
    inputs = {key: torch.from_numpy(array) for key, array in arrays.items()}
    values, gradients = exact(lambda: function(module()), inputs, torch.from_numpy(cotangent))
    contenders = [
        torch_contender(label, variant, inputs, torch.from_numpy(cotangent))
        for label, variant in torch_variants(module, function, compiled)
    ]
    weights = "shared" if shared else "per_row"
    for layout in ("ir_mul", "mul_ir"):
        operation = clebsch.build("fully_connected", in1=TETRIS[0], in2=TETRIS[1], out=TETRIS[2], weights=weights, x_layout=layout)
        contenders.append(clebsch_contender(layout, operation, arrays, cotangent))
    name = f"fully connected, tetris-poly-2, {'shared' if shared else 'per-row'} weights, {rows} rows"
    return Problem(name, "us per row", 1e6 / rows, values, gradients, contenders, (8, 12), 25)


def harmonics(lmax: int, vectors: int = 20000) -> Problem:
    """Normalised spherical harmonics: ns per vector. sphericart's are orthonormal, with z as the polar axis where e3nn has y."""
    import clebsch
    import numpy as np
    import sphericart
    import sphericart.torch
    import torch
    from e3nn import o3

    generator = np.random.default_rng(0)
    vector = normal(generator, vectors, 3)
    cotangent = normal(generator, vectors, (lmax + 1) ** 2)
    operation = clebsch.build("spherical_harmonics", irreps=clebsch.Irreps.spherical_harmonics(lmax), normalize=True)
    name = operation.inputs[0].name
    inputs = {name: torch.from_numpy(vector)}
    degrees = list(range(lmax + 1))
    values, gradients = exact(
        lambda: lambda v: o3.spherical_harmonics(degrees, v, True, "component"), inputs, torch.from_numpy(cotangent)
    )
    native, module = sphericart.SphericalHarmonics(lmax), sphericart.torch.SphericalHarmonics(lmax)
    size = np.sqrt(4 * np.pi)
    turned = np.ascontiguousarray(vector[:, [2, 0, 1]])
    through_torch = torch_contender(
        "sphericart torch", module.compute, {name: torch.from_numpy(turned)}, torch.from_numpy(cotangent)
    )

    def turned_back(gradient: Any) -> dict[str, Any]:
        return {name: size * gradient[:, [1, 2, 0]]}

    contenders = [
        Contender(
            "sphericart",
            lambda: native.compute(turned),
            lambda: native.compute_with_gradients(turned),
            lambda found: size * found,
            lambda found: turned_back(np.einsum("nim,nm->ni", found[1], cotangent)),
        ),
        Contender(
            through_torch.name,
            through_torch.forward,
            through_torch.backward,
            lambda found: size * found.numpy(),
            lambda found: turned_back(found[0].numpy()),
        ),
        clebsch_contender("", operation, {name: vector}, cotangent),
    ]
    title = f"spherical harmonics to l = {lmax}, {vectors} vectors"
    return Problem(title, "ns per vector", 1e9 / vectors, values, gradients, contenders, (6, 8), 60)


def linear(rows: int = 2000) -> Problem:
    """128x0e+128x1o+128x2e to itself against torch.mm of the same flops: ms."""
    import clebsch
    import numpy as np
    import torch
    from e3nn import o3

    text = "128x0e+128x1o+128x2e"
    dim = clebsch.Irreps(text).dim
    generator = np.random.default_rng(0)
    arrays = {"x": normal(generator, rows, dim), "weights": normal(generator, 1, 3 * 128 * 128)}
    cotangent = normal(generator, rows, dim)

    def module() -> Any:
        layer = o3.Linear(text, text, internal_weights=False, shared_weights=True)
        return lambda x, w: layer(x, w[0])

    inputs = {key: torch.from_numpy(array) for key, array in arrays.items()}
    values, gradients = exact(module, inputs, torch.from_numpy(cotangent))
    a, b, c = torch.randn(9 * rows, 128), torch.randn(128, 128), torch.empty(9 * rows, 128)
    g, w = torch.randn(9 * rows, 128), torch.empty(128, 128)

    def both() -> None:
        torch.mm(a, b, out=c)
        torch.mm(g, b.t(), out=c)
        torch.mm(a.t(), g, out=w)

    contenders = [Contender("torch.mm", lambda: torch.mm(a, b, out=c), both)]
    for layout in ("ir_mul", "mul_ir"):
        operation = clebsch.build("linear", in_=text, out=text, x_layout=layout, out_layout=layout)
        contenders.append(clebsch_contender(layout, operation, arrays, cotangent))
    return Problem(f"linear {text}, {rows} rows", "ms", 1e3, values, gradients, contenders, (6, 10), 40)


def contraction(mace_python: str, only_check: bool, nodes: int = 200) -> dict[str, Any]:
    """Symmetric contraction, correlation 3, 128 channels, 0e+1o+2e+3o to 0e+1o: us per node.

    mace-torch has an environment of its own, so processes take turns. It hands over its bases, weights, values and gradients: ours
    runs in the same two bases, and in its own.
    """
    import clebsch
    import numpy as np

    text, out, species = "128x0e+128x1o+128x2e+128x3o", "128x0e+128x1o", 7
    script = [mace_python, str(Path(__file__).with_name("peer_mace.py")), str(nodes)]
    layouts = {"x_layout": "ir_mul", "out_layout": "ir_mul"}
    contenders = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*script, "--export", folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for basis in ("full", "reduced"):
            given = dict(np.load(Path(folder) / f"{basis}.npz"))
            operation = clebsch.build("symmetric_contraction", in_=text, out=out, bases=str(given["bases"]), **layouts)
            arrays = {key: given[key].astype(np.float32) for key in ("x", "weights")} | {"species": given["species"]}
            cotangent = given["cotangent"].astype(np.float32)
            contender = clebsch_contender(f"({basis} basis of MACE)", operation, arrays, cotangent, wanted=("x",))
            name = f"symmetric contraction, {basis} basis of MACE"
            check(Problem(name, "", 1, given["values"], {"x": given["gradient"]}, [contender]))
            contenders.append(contender)

    operation = clebsch.build("symmetric_contraction", in_=text, out=out, correlation=3, **layouts)
    generator = np.random.default_rng(0)
    sizes = {operand.name: operand.row_size for operand in operation.operands}
    arrays = {
        "x": normal(generator, nodes, sizes["x"]),
        "weights": normal(generator, species, sizes["weights"]),
        "species": generator.integers(0, species, nodes),
    }
    cotangent = normal(generator, nodes, sizes["out"])
    contender = clebsch_contender("(own basis)", operation, arrays, cotangent, wanted=("x",))
    check_first_nodes(contender, arrays, cotangent, sizes["weights"])
    contenders.append(contender)
    title = f"symmetric contraction, correlation 3, 128 channels, {nodes} nodes"
    if only_check:
        return {"problem": title}

    times: dict[str, dict[str, list[float]]] = {part: {} for part in PARTS}
    for _ in range(3):
        output = subprocess.run(script, check=True, capture_output=True, text=True).stdout
        for row in (json.loads(line) for line in output.splitlines() if line.startswith("{")):  # mace-torch prints warnings there
            for part, key in zip(PARTS, ("forward", "backward"), strict=True):
                times[part].setdefault(row["name"], []).append(row[key])
        for part, attribute in zip(PARTS, ("forward", "backward"), strict=True):
            found = interleaved({c.name: getattr(c, attribute) for c in contenders}, 20, 3)
            for name, row in found.items():
                times[part].setdefault(name, []).append(row["median"])
    return {
        "problem": title,
        "unit": "us per node",
        "scale": 1e6 / nodes,
        **{part: {name: summary(values) for name, values in times[part].items()} for part in PARTS},
    }


def check_first_nodes(contender: Contender, arrays: dict[str, Any], cotangent: Any, weights: int, nodes: int = 2) -> None:
    """Ours in a basis that no peer has, against the reference evaluator: a node's numbers depend on no other node."""
    import clebsch

    operation = clebsch.build("symmetric_contraction", in_="128x0e+128x1o+128x2e+128x3o", out="128x0e+128x1o", correlation=3)
    assert {operand.name: operand.row_size for operand in operation.operands}["weights"] == weights
    first = {key: array if key == "weights" else array[:nodes] for key, array in arrays.items()}
    values = operation.reference(**first)
    gradient = operation.vjp("x").reference(**first, out_cotangent=cotangent[:nodes])
    of_first = Contender(
        contender.name,
        contender.forward,
        contender.backward,
        lambda found: contender.values(found)[:nodes],
        lambda found: {"x": contender.gradients(found)["x"][:nodes]},
    )
    check(Problem("symmetric contraction, own basis", "", 1, values, {"x": gradient}, [of_first]))


def report(result: dict[str, Any]) -> None:
    """A table of one problem: medians, spread, and the ratio of the best other contender to ours."""
    print(f"\n{result['problem']}  ({result['unit']})")
    for part in PARTS:
        rows = result[part]
        others = {name: row for name, row in rows.items() if not name.startswith("clebsch")}
        best = min((row["median"] for row in others.values()), default=None)
        print(f"  {part}")
        for name, row in rows.items():
            numbers = [row[key] * result["scale"] for key in ("median", "best", "worst")]
            ratio = f"   {best / row['median']:.2f}x the best other" if best and name not in others else ""
            print(f"    {name:40s} {numbers[0]:10.3f}   [{numbers[1]:.3f} .. {numbers[2]:.3f}]{ratio}", flush=True)


def problems(edges: list[int], only: list[str]) -> list[str]:
    """Names of what to run; a convolution's has its number of edges."""
    names = [f"convolution:{name}:{count}" for count in edges for name in CONVOLUTIONS]
    names += ["tetris:shared", "tetris:per_row", "harmonics:3", "harmonics:6", "linear", "contraction"]
    for prefix in only:
        if not any(name.startswith(prefix) for name in names):
            raise SystemExit(f"--only {prefix}: no such problem; there are {', '.join(names)}")
    return [name for name in names if not only or name.startswith(tuple(only))]


def run(problem: str, arguments: argparse.Namespace, settings: dict[str, str], compiled: bool) -> dict[str, Any]:
    """Runs this file on one problem in a process of its own."""
    command = [sys.executable, __file__, "--worker", problem]
    command += ["--no-compile"] if not compiled else []
    command += ["--check"] if arguments.check else []
    if arguments.mace_python:
        command += ["--mace-python", arguments.mace_python]
    environment = {**os.environ, **SETTINGS, **({} if arguments.native else AVX2), **settings}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{problem}: the worker ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(problem: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One problem, and again with malloc keeping memory where that helps e3nn: the better of ours, both of e3nn's."""
    found = run(problem, arguments, {}, not arguments.no_compile)
    if arguments.check:
        print(f"{found['problem']}: values and gradients agree", flush=True)
        return found
    if problem.startswith(("convolution", "tetris")):
        kept = run(problem, arguments, KEEP_MEMORY, False)
        for part in PARTS:
            for name, row in kept[part].items():
                if not name.startswith("clebsch"):
                    found[part][f"{name}, malloc keeps"] = row
                elif row["median"] < found[part][name]["median"]:
                    found[part][name] = row
    report(found)
    return found


def work(arguments: argparse.Namespace) -> dict[str, Any]:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import torch

    torch.set_num_threads(1)
    kind, *details = arguments.worker.split(":")
    if kind == "contraction":
        if not arguments.mace_python:
            raise SystemExit("contraction: needs --mace-python (./dev bench --peers makes that environment)")
        return contraction(arguments.mace_python, arguments.check)
    if kind == "convolution":
        problem = convolution(details[0], int(details[1]), not arguments.no_compile)
    elif kind == "tetris":
        problem = tetris(details[0] == "shared", not arguments.no_compile)
    else:
        problem = harmonics(int(details[0])) if kind == "harmonics" else linear()
    if arguments.check:
        check(problem)
        return {"problem": problem.name}
    return measure(problem)


def main() -> None:
    def numbers(text: str) -> list[int]:
        return [int(field) for field in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only",
        default="",
        help="problems that start so, separated by commas: convolution:NAME, tetris, harmonics, linear, contraction",
    )
    parser.add_argument("--edges", type=numbers, default=[4500, 18000], help="edges of the convolutions, 45 per node (4500,18000)")
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile")
    parser.add_argument("--check", action="store_true", help="check every contender's values and gradients, and time nothing")
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
    only = [field for field in arguments.only.split(",") if field]
    results = [compare(problem, arguments) for problem in problems(arguments.edges, only)]
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
