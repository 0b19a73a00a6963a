"""Clebsch on a GPU beside e3nn, cuEquivariance, OpenEquivariance and e3j, on the same problems in the same run: medians and spread
of every pass, errors against float64, first calls, the copy bandwidth of the run. What is not installed is named with its needs.

    CLEBSCH_GPU_PYTHON=python3 ./dev bench --gpu --report docs/reports/gpu-peers-h200      everything, about four minutes
    CLEBSCH_GPU_PYTHON=python3 ./dev bench --gpu --only clebsch,cuequivariance --problems 'lmax 2'

Every library runs in a process of its own, with the Python of this one (CLEBSCH_GPU_PYTHON: one that has PyTorch for CUDA, else
.venv's); --path LIBRARY=FOLDER puts a folder in front of its modules, so that libraries that exclude one another can be
compared. Processes prepare side by side and measure one at a time.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu_problems import PASSES, Case

FOLDER = Path(__file__).resolve().parent

CASES: dict[str, list[Case]] = {
    "lmax 2": [Case("lmax 2", "local", 16384, 45), Case("lmax 2", "random", 16384, 45)],
    "lmax 3": [Case("lmax 3", "local", 16384, 45), Case("lmax 3", "random", 16384, 45)],
    "nequix-main": [Case("nequix-main", "symmetric", 14000, 50), Case("nequix-main", "symmetric", 1000, 50)],
    "mace-large": [Case("mace-large", "rows", 200000)],
}
E3NN_NODES = 4096  # it keeps every path's numbers of every edge: larger graphs do not fit

# Modules that must be there, and what brings them.
MODULES = {
    "clebsch": {"clebsch": "the Python package of this repository", "torch": "torch"},
    "e3nn": {"torch": "torch", "e3nn": "e3nn"},
    "cuequivariance": {
        "torch": "torch",
        "cuequivariance": "cuequivariance",
        "cuequivariance_torch": "cuequivariance-torch",
        "cuequivariance_ops_torch": "cuequivariance-ops-torch-cu13 (or -cu12)",
    },
    "openequivariance": {"torch": "torch", "openequivariance": "openequivariance"},
    "e3j": {"jax": "jax with its CUDA plugin", "e3j": "e3j"},
}
LIBRARIES = [
    "clebsch",
    "clebsch, mul_ir",
    "cuequivariance",
    "openequivariance",
    "openequivariance, deterministic",
    "e3j",
    "e3nn",
]


def family(library: str) -> str:
    return library.split(",")[0]


def cases_of(library: str, problem: str, scale: int) -> list[tuple[Case, list[str]]]:
    """What a library can do of a problem. `scale` divides sizes."""
    result = []
    for case in CASES[problem]:
        nodes = case.nodes
        kind = case.kind
        if library == "e3nn" and not case.rows:
            if kind == "random" or case.edges == 700000:
                continue
            nodes = min(nodes, E3NN_NODES)
        if family(library) == "e3j" and (case.rows or problem == "nequix-main"):
            continue  # its product has no weights; its fast kernel takes multiples of 128 channels
        if library == "openequivariance, deterministic":
            if case.rows:
                continue
            kind = "symmetric"  # elsewhere its gradients are wrong without a word
            if case.kind == "random":
                continue
        if library == "clebsch, mul_ir" and case.rows:
            continue
        result.append((Case(problem, kind, max(64, nodes // scale), min(case.neighbors, 50 if scale == 1 else 8)), list(PASSES)))
    return result


def environment(library: str, paths: dict[str, list[str]]) -> dict[str, str]:
    own = paths.get(library, []) + paths.get(family(library), [])
    before = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([*own, str(FOLDER.parent / "python"), *before]),
        "PYTHONWARNINGS": "ignore",
        "CLEBSCH_CACHE": "",  # first calls compile
        "OMP_NUM_THREADS": "4",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    }


def missing(library: str, paths: dict[str, list[str]], device: str) -> str:
    """What is not installed; empty if nothing."""
    needed = MODULES[family(library)]
    code = f"import importlib.util as u; print(*[m for m in {list(needed)!r} if u.find_spec(m) is None])"
    found = subprocess.run([sys.executable, "-c", code], env=environment(library, paths), capture_output=True, text=True)
    names = [needed[name] for name in found.stdout.split() if device == "cuda" or name != "cuequivariance_ops_torch"]
    return ", ".join(names)


def measure(library: str, cases: list[tuple[Case, list[str]]], lock: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The result lines of one process; a last one says how it ended if that was not well."""
    asked = {
        "library": library,
        "device": arguments.device,
        "lock": lock,
        "cases": [(vars(case), passes) for case, passes in cases],
    }
    command = [sys.executable, str(FOLDER / "gpu_contenders.py")]
    begin = time.monotonic()
    process = subprocess.Popen(
        command,
        env=environment(library, arguments.paths),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    left = arguments.until - time.monotonic()
    try:
        output, errors = process.communicate(json.dumps(asked), timeout=max(1.0, left))
        ended = f"exit status {process.returncode}" if process.returncode else ""
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        ended = "the time was up"
    rows = [json.loads(line.removeprefix("RESULT ")) for line in output.splitlines() if line.startswith("RESULT ")]
    if ended:
        last = [line for line in errors.splitlines() if line.strip()]
        rows.append(
            {
                "library": library,
                "problem": cases[0][0].problem if cases else "",
                "ended": ended,
                "message": last[-1] if last else "",
            }
        )
    if arguments.log:
        with open(arguments.log, "a") as file:
            file.write(
                f"== {library}, {cases[0][0].problem if cases else ''}: {time.monotonic() - begin:.1f} s\n{output}{errors}\n"
            )
    for row in rows:
        print(line_of(row), flush=True)
    return rows


def line_of(row: dict[str, Any]) -> str:
    if "copy" in row:
        return f"copy {row['copy']:.0f} GB/s on {row['gpu']}"
    if "what" in row:
        case = row["case"]
        return (
            f"{row['library']:32} {case['problem']:12} {case['kind']:10} {case['nodes'] * case['neighbors']:7} {row['what']:16} "
            f"{row['ms']:9.3f} ms ({row['ms_min']:.3f}-{row['ms_max']:.3f}) error {row['error']:.1e}"
        )
    return " ".join(f"{key}: {value}" for key, value in row.items())


def place(case: dict[str, Any], problem: str) -> int:
    """Which of the problem's cases a measured one belongs to: those on another graph or fewer nodes stand with the first."""
    edges = case["nodes"] * case["neighbors"]
    for i, own in enumerate(CASES[problem]):
        if own.kind == case["kind"] and own.edges == edges:
            return i
    return 0


def table(results: list[dict[str, Any]], copy: float) -> list[str]:
    lines = []
    measured = [row for row in results if "what" in row]
    for problem in CASES:
        for what in PASSES:
            rows = [row for row in measured if row["case"]["problem"] == problem and row["what"] == what]
            if not rows:
                continue
            lines += ["", f"**{problem}, {what}**", ""]
            lines.append("| library | graph | rows | ms (least to most) | GB/s | of copy | first call, s | memory, GB | error |")
            lines.append("|---|---|---|---|---|---|---|---|---|")
            rows.sort(key=lambda row: (place(row["case"], problem), row["ms"] / row["bytes"]))
            for row in rows:
                case = row["case"]
                speed = row["bytes"] / row["ms"] / 1e6
                first = "-" if row.get("first_s") is None else f"{row['first_s']:.2f}"
                host = f"; the host takes {row['host_ms']:.2f}" if row.get("host_ms", 0) > 0.9 * row["ms"] else ""
                graph = "-" if case["kind"] == "rows" else case["kind"]
                spread = f"{row['ms_min']:.3f} to {row['ms_max']:.3f}{host}"
                lines.append(
                    f"| {row['library']} | {graph} | {case['nodes'] * case['neighbors']} | {row['ms']:.3f} ({spread}) | "
                    f"{speed:.0f} | {100 * speed / copy:.0f} % | {first} | {row['peak_bytes'] / 1e9:.1f} | {row['error']:.0e} |"
                )
    return lines


NOTES = """
- Problems: x[sender] times y with a weight per edge, path and channel, summed at the receiver; every path of natural parity has an
  output of its own. lmax 2, lmax 3: 128 channels; nequix-main: 128x0e+64x1o+32x2e+32x3o with harmonics to 3; mace-large:
  128x0e+128x1o+128x2e with harmonics to 3, a product of rows without a graph. Receivers have 45 edges (nequix-main 50), sorted.
- Graphs: local, senders within 100 rows of the receiver; random; symmetric, local with every edge and its reverse.
- backward: gradients of x, y and the weights. double backward: gradients of <a, dx> + <b, dy> + <c, ds> for x, y, the weights and
  the cotangent of the output.
- Times: medians (least to most) of up to 25 calls between events on the GPU; e3j: wall clock of loops of 10 calls. Zeroing outputs
  is in them. GB/s count every input and output once. First call: compiling, on a small graph, while other libraries did the same.
- Error: largest deviation from float64 values over the largest magnitude, per path, over all edges of three receivers and senders.
- clebsch keeps channels innermost (ir_mul), as cuEquivariance and OpenEquivariance do here; `clebsch, mul_ir` and e3nn components.
- e3nn keeps every path of every edge: 4,096 nodes. e3j's kernel takes multiples of 128 channels and a graph. OpenEquivariance's
  deterministic kernel needs symmetric graphs.
"""

COLOURS = {
    "clebsch": "#1b6ca8",
    "cuequivariance": "#76b041",
    "openequivariance": "#e08e2b",
    "openequivariance, deterministic": "#b5651d",
    "e3j": "#8e5ea2",
    "e3nn": "#8a8a8a",
}


def picture(results: list[dict[str, Any]], copy: float) -> str:
    """Bars: share of the copy bandwidth, by problem and pass."""
    groups = [
        ("lmax 2", "local", 0),
        ("lmax 3", "local", 0),
        ("nequix-main", "symmetric", 700000),
        ("nequix-main", "symmetric", 50000),
    ]
    groups.append(("mace-large", "rows", 0))
    titles = ["lmax 2", "lmax 3", "nequix-main", "nequix-main, 50,000 rows", "mace-large, no graph"]
    bar, gap, left, height, top = 20, 30, 52, 150, 48
    panel = height + 62
    widths = gap + len(groups) * (len(COLOURS) * bar + gap)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + widths}" height="{top + 3 * panel}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="16" font-size="13">Share of the copy bandwidth ({copy / 1000:.2f} TB/s)</text>',
    ]
    x = left
    for library, colour in COLOURS.items():
        parts.append(f'<rect x="{x}" y="23" width="10" height="10" fill="{colour}"/><text x="{x + 14}" y="32">{library}</text>')
        x += 30 + 6.4 * len(library)
    for p, what in enumerate(PASSES):
        base = top + p * panel + height + 26
        parts.append(f'<text x="{left}" y="{base - height - 10}" font-weight="bold">{what}</text>')
        for share in (0, 25, 50, 75, 100):
            y = base - height * share / 100
            parts.append(f'<line x1="{left}" y1="{y}" x2="{left + widths - gap}" y2="{y}" stroke="#ddd"/>')
            parts.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{share} %</text>')
        for g, (problem, kind, edges) in enumerate(groups):
            begin = left + gap + g * (len(COLOURS) * bar + gap)
            parts.append(f'<text x="{begin}" y="{base + 14}">{titles[g]}</text>')
            for i, (library, colour) in enumerate(COLOURS.items()):
                for row in results:
                    if "what" not in row or row["what"] != what or row["library"] != library:
                        continue
                    case = row["case"]
                    rows = case["nodes"] * case["neighbors"]
                    alone = library in ("e3nn", "openequivariance, deterministic")
                    if case["problem"] != problem or not (case["kind"] == kind or alone) or (edges and rows != edges):
                        continue
                    share = 100 * row["bytes"] / row["ms"] / 1e6 / copy
                    size = height * share / 100
                    parts.append(
                        f'<rect x="{begin + i * bar}" y="{base - size:.1f}" width="{bar - 2}" height="{size:.1f}" fill="{colour}"/>'
                        f'<text x="{begin + i * bar + 9}" y="{base - size - 2:.1f}" text-anchor="middle" '
                        f'font-size="9">{share:.0f}</text>'
                    )
                    break
    return "\n".join([*parts, "</svg>", ""])


def versions(paths: dict[str, list[str]]) -> dict[str, str]:
    names = [
        "torch",
        "triton",
        "jax",
        "numpy",
        "e3nn",
        "cuequivariance",
        "cuequivariance-ops-torch-cu13",
        "openequivariance",
        "e3j",
    ]
    code = (
        "import importlib.metadata as m, json\n"
        f"found = {{}}\nfor n in {names!r}:\n"
        "    try: found[n] = m.version(n)\n    except Exception: pass\nprint(json.dumps(found))"
    )
    found: dict[str, str] = {}
    for library in LIBRARIES:
        output = subprocess.run(
            [sys.executable, "-c", code], env=environment(library, paths), capture_output=True, text=True
        ).stdout
        found = json.loads(output or "{}") | found
    return found


def report(arguments: argparse.Namespace, results: list[dict[str, Any]], absent: dict[str, str]) -> None:
    (rate,) = [row for row in results if "copy" in row] or [{"copy": 1.0, "gpu": "a processor", "ms": 1, "ms_min": 1}]
    copy = rate["copy"] * rate["ms"] / rate["ms_min"]  # the fastest: what the memory can do
    found = versions(arguments.paths)
    target = Path(arguments.report)
    lines = [
        f"# Clebsch beside other libraries on one {rate['gpu']}",
        "",
        f"Written by `./dev bench --gpu` in one run: {', '.join(f'{name} {version}' for name, version in found.items())}.",
        f"A copy within the GPU's memory reads and writes {copy:.0f} GB/s (the fastest of {rate.get('runs', 1)}). float32, "
        "standard normal numbers.",
        "",
        *NOTES.strip().splitlines(),
    ]
    lines += table(results, copy)
    refused = [row for row in results if "refused" in row or "ended" in row]
    if refused or absent:
        lines += ["", "**Not measured**", ""]
        lines += [f"- {library}: {what} is missing" for library, what in absent.items()]
        for row in refused:
            where = row.get("problem") or " ".join(str(value) for value in row["case"].values())
            lines.append(f"- {row['library']}, {where}: {row.get('refused') or row['ended'] + ': ' + row['message']}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_suffix(".md").write_text("\n".join([*lines, "", f"![share of the copy bandwidth]({target.name}.svg)", ""]))
    target.with_suffix(".json").write_text(json.dumps({"versions": found, "missing": absent, "results": results}, indent=1) + "\n")
    target.with_suffix(".svg").write_text(picture(results, copy))
    print(f"written: {target}.md, .json, .svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(LIBRARIES), help="libraries, separated by ';' or ','")
    parser.add_argument("--problems", default=",".join(CASES))
    parser.add_argument("--path", action="append", default=[], metavar="LIBRARY=FOLDER", help="in front of a library's modules")
    parser.add_argument("--seconds", type=float, default=600, help="whatever is not measured by then is left out")
    parser.add_argument("--report", default="", help="write FILE.md, FILE.json and FILE.svg")
    parser.add_argument("--log", default="", help="append what every process said to this file")
    parser.add_argument("--jobs", type=int, default=6, help="processes at a time")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: to try this program, in small")
    arguments = parser.parse_args()
    arguments.until = time.monotonic() + arguments.seconds
    arguments.paths = {}
    for text in arguments.path:
        library, folder = text.split("=", 1)
        arguments.paths.setdefault(library, []).append(os.path.abspath(folder))
    wanted = arguments.only.split(";") if ";" in arguments.only else None
    chosen = [name for name in LIBRARIES if (name in wanted if wanted else family(name) in arguments.only)]
    absent = {}
    for library in {family(name): None for name in chosen}:
        if what := missing(library, arguments.paths, arguments.device):
            absent[library] = what
            print(f"{library}: missing {what}")
    chosen = [name for name in chosen if family(name) not in absent]
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        lock = os.path.join(folder, "gpu")
        if arguments.device == "cuda":
            results += measure("copy", [], lock, arguments)  # alone: others compile on small graphs while one measures
        tasks = []
        for problem in arguments.problems.split(","):
            for library in chosen:
                if cases := cases_of(library, problem, 1 if arguments.device == "cuda" else 256):
                    tasks.append(pool.submit(measure, library, cases, lock, arguments))
        for task in tasks:
            results += task.result()
    if arguments.report:
        report(arguments, results, absent)
    if any("error" in row and not row["error"] < 1e-4 for row in results):
        sys.exit("an error above 1e-4: some library computes something else")


if __name__ == "__main__":
    main()
