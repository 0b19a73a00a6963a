"""A new user's first minute with an installed wheel and NumPy (or vesin too). Run with the environment's own Python."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import clebsch
import numpy as np

POSITIONS = [[0.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.8, 0.3], [3.0, 3.0, 3.0]]


def check(condition: bool, what: str) -> None:
    """Unlike assert, also under python -O."""
    if not condition:
        raise SystemExit(f"smoke test: {what}")


def installed_alone() -> None:
    """The package of this environment, with the library inside it, and nothing heavy loaded."""
    check("CLEBSCH_LIBRARY" not in os.environ and "PYTHONPATH" not in os.environ, "the environment points at a build")
    check(Path(clebsch.__file__).is_relative_to(sys.prefix), f"clebsch is {clebsch.__file__}, outside {sys.prefix}")
    check(not {"torch", "jax", "ase"} & set(sys.modules), "import clebsch loaded more than NumPy")


def operation_and_gradient() -> None:
    conv = clebsch.build("convolution", in_="8x0e+8x1o", edge="0e+1o+2e", out="0e+1o")
    rng, rows = np.random.default_rng(0), {"node": 3, "edge": 7}
    arrays = {o.name: rng.standard_normal((rows[o.space], o.row_size)) for o in conv.inputs}
    index = {"sender": rng.integers(0, 3, 7), "receiver": np.sort(rng.integers(0, 3, 7))}
    out = conv(rows, **arrays, **index)
    np.testing.assert_allclose(out, conv.reference(rows, **arrays, **index), rtol=1e-12, atol=1e-12)
    gradient = conv.vjp("x", "y", "weights")
    found = gradient(rows, **arrays, **index, out_cotangent=out)
    for name, expected in gradient.reference(rows, **arrays, **index, out_cotangent=out).items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-12, atol=1e-12)


def graph() -> None:
    """With vesin a graph; without it an error that says how to get it."""
    if find_spec("vesin") is not None:
        check(clebsch.neighbor_graph(np.array(POSITIONS), cutoff=1.5).edges == 6, "the graph has other edges")
        return
    try:
        clebsch.neighbor_graph(np.array(POSITIONS), cutoff=1.5)
    except clebsch.MissingError as error:
        check("pip install" in str(error), f"no way to install vesin in: {error}")
    else:
        raise SystemExit("smoke test: a graph without vesin")


def program() -> None:
    """The program lies in the environment's bin and finds the environment's vesin, found by PATH or called by its path."""
    file = Path(sys.prefix) / "bin" / "clebsch"
    elsewhere = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    searched = {**elsewhere, "PATH": f"{file.parent}:{os.environ.get('PATH', '')}"}
    structure = Path("structure.xyz")
    lines = "\n".join("H " + " ".join(map(str, position)) for position in POSITIONS)
    structure.write_text(f"{len(POSITIONS)}\nProperties=species:S:1:pos:R:3\n{lines}\n")
    for command, environment in ((str(file), elsewhere), ("clebsch", searched)):
        for arguments, expected in ((["--version"], clebsch.__version__), (["irreps", "8x0e+8x1o"], "32")):
            done = subprocess.run([command, *arguments], env=environment, capture_output=True, text=True, check=False)
            check(done.returncode == 0 and expected in done.stdout, f"{command} {arguments}: {done.stdout}{done.stderr}")
        arguments = ["graph", str(structure), "--cutoff", "1.5"]
        done = subprocess.run([command, *arguments], env=environment, capture_output=True, text=True, check=False)
        if find_spec("vesin") is not None:
            check(done.returncode == 0 and "6" in done.stdout, f"{command} {arguments}: {done.stdout}{done.stderr}")
        else:
            check(done.returncode != 0 and "pip install" in done.stderr, f"{command} {arguments}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    installed_alone()
    operation_and_gradient()
    graph()
    program()
    vesin = "found" if find_spec("vesin") else "absent"
    print(f"smoke test passed: Python {sys.version.split()[0]}, NumPy {np.__version__}, vesin {vesin}")
