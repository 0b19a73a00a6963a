"""One contender of `bench/models.py`: energy, forces and stress of a structure through a package's own calculator and neighbours.

    python peer_nequix.py clebsch|tables|nequix MODEL.nqx STRUCTURE.xyz THREADS CALLS

Prints one JSON line: seconds of the first result since the process began, of every later call (also of processor time), and memory.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

BEGUN = time.perf_counter()


def resident_megabytes() -> float:
    """Of this process now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    contender, model, file, threads, calls = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    os.environ["CLEBSCH_NUM_THREADS"] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"
    flags = "--xla_cpu_max_isa=AVX2" if os.environ.get("CLEBSCH_INSTRUCTION_SET") == "avx2" else ""  # one instruction set for all
    if threads == 1:
        flags += " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = flags
    import ase.io

    atoms = ase.io.read(file)
    if contender in ("clebsch", "tables"):
        from clebsch.ase import Calculator

        calculator = Calculator(model, dtype="float32", table_tolerance=1e-7 if contender == "tables" else None)
    else:
        from nequix.calculator import NequixCalculator

        calculator = NequixCalculator("nequix-mp-1", model_path=model, backend="jax", use_kernel=False)
    loaded = resident_megabytes()
    displaced = atoms.copy()
    seconds = []
    processor_seconds = []
    first = 0.0
    for call in range(calls + 1):
        # Moved atoms each time, so that nothing can be kept from the last call but what dynamics could keep, too.
        displaced.positions = atoms.positions + 1e-3 * (call % 2)
        start, processor_start = time.perf_counter(), time.process_time()
        calculator.calculate(displaced, properties=["energy", "forces", "stress"], system_changes=["positions"])
        if call == 0:
            first = time.perf_counter() - BEGUN
        else:
            seconds.append(time.perf_counter() - start)
            processor_seconds.append(time.process_time() - processor_start)
    print(
        json.dumps(
            {
                "atoms": len(atoms),
                "energy": float(calculator.results["energy"]),
                "first": first,
                "seconds": seconds,
                "processor_seconds": processor_seconds,
                "loaded_megabytes": loaded,
                "resident_megabytes": resident_megabytes(),
                "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
            }
        )
    )


if __name__ == "__main__":
    main()
