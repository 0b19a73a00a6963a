"""Whole models beside their authors' packages in one run: microseconds per atom for energy, forces and stress, memory, time to the
first result. Contenders take turns, a process each; every figure is a median. "tables" is Clebsch with radial networks read from
tables.

    ./dev bench --models                                # one and two threads, 64 silicon atoms
    ./dev bench --models --structure water.xyz --threads 1

Where other work shares the machine, the processor time of one thread says more than time that passed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
AVX2 = {"CLEBSCH_INSTRUCTION_SET": "avx2"}


def silicon(file: Path) -> None:
    """64 atoms of diamond silicon, displaced by 0.05 Angstrom (normal, seed 0)."""
    import ase.build
    import ase.io
    import numpy as np

    atoms = ase.build.bulk("Si", "diamond", a=5.43, cubic=True).repeat((2, 2, 2))
    atoms.positions += np.random.default_rng(0).normal(0, 0.05, atoms.positions.shape)
    ase.io.write(file, atoms)


def run(contender: str, python: str, model: str, structure: str, threads: int, calls: int, native: bool) -> dict[str, Any]:
    environment = {**os.environ, **({} if native else AVX2)}
    processors = sorted(os.sched_getaffinity(0))[-threads:]
    command = ["taskset", "-c", ",".join(map(str, processors)), python, str(Path(__file__).with_name("peer_nequix.py"))]
    command += [contender, model, structure, str(threads), str(calls)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{contender}: the process ended with {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(ROOT / "examples/data/nequix-mp-1.nqx"))
    parser.add_argument("--structure", help="a file ASE reads (default: 64 silicon atoms)")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--native", action="store_true", help="the best instruction set of the machine instead of AVX2")
    parser.add_argument("--calls", type=int, default=3, help="timed calls of the peer per round; five times as many of Clebsch")
    parser.add_argument(
        "--nequix-python", default=os.environ.get("CLEBSCH_NEQUIX_PYTHON"), help="python of an environment with nequix 0.4.5"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        structure = arguments.structure
        if structure is None:
            structure = str(Path(folder) / "si64.xyz")
            silicon(Path(structure))
        for threads in arguments.threads:
            results: dict[str, list[dict[str, Any]]] = {}
            for _ in range(arguments.rounds):
                for contender, python in (
                    ("nequix", arguments.nequix_python),
                    ("clebsch", sys.executable),
                    ("tables", sys.executable),
                ):
                    if python:
                        calls = arguments.calls * (1 if contender == "nequix" else 5)
                        result = run(contender, python, arguments.model, structure, threads, calls, arguments.native)
                        results.setdefault(contender, []).append(result)
            print(f"\n{Path(structure).stem}, {threads} thread{'s' if threads > 1 else ''}, float32")
            for contender, rounds in results.items():
                atoms = rounds[0]["atoms"]
                times = [second / atoms * 1e6 for result in rounds for second in result["seconds"]]
                processor = statistics.median(second for result in rounds for second in result["processor_seconds"]) / atoms * 1e6
                print(
                    f"  {contender:8s} {statistics.median(times):10.1f} us per atom   [{min(times):.1f} .. {max(times):.1f}]   "
                    f"processor time {processor:.1f} us   "
                    f"first result {statistics.median(result['first'] for result in rounds):.2f} s   "
                    f"memory {rounds[-1]['loaded_megabytes']:.0f} MB loaded, {rounds[-1]['peak_megabytes']:.0f} MB at most   "
                    f"energy {rounds[-1]['energy']:.5f} eV"
                )
            for words, key in (("", "seconds"), (" of processor time", "processor_seconds")):
                medians = {name: statistics.median(s for result in rounds for s in result[key]) for name, rounds in results.items()}
                if "nequix" in medians:
                    ratios = [f"{medians['nequix'] / medians[ours]:.1f}x ({ours})" for ours in ("clebsch", "tables")]
                    print(f"  ratio{words}: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
