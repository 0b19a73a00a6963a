"""How long things take to start: medians of interleaved processes.

The `clebsch` program; `import clebsch` beyond NumPy's own import; preparing an operation with its first two derivatives
(describe, derive twice, plan all three) in a process that has prepared nothing yet.

./dev bench --start
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

PREPARED = "nequip-revmd17-benzene", "symmetric-contraction-128"
PREPARE = """
import sys, time
import clebsch
start, processor = time.perf_counter(), time.process_time()
operations = [clebsch.build("named", label=sys.argv[1])]
for _ in range(2):
    operations.append(operations[-1].vjp(*[operand.name for operand in operations[-1].inputs]))
plans = [operation.plan("float32") for operation in operations]
print(time.perf_counter() - start, time.process_time() - processor)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="the clebsch program to start")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    commands = {
        "import numpy": [sys.executable, "-c", "import numpy"],
        "import numpy, clebsch": [sys.executable, "-c", "import numpy, clebsch"],
    }
    if arguments.program:
        commands["clebsch --version"] = [arguments.program, "--version"]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    prepared: dict[str, list[tuple[float, float]]] = {label: [] for label in PREPARED}
    # Python keeps compiled modules, as it does for packages that pip installs, also where a developer told it not to.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for warm in [False] + [True] * arguments.rounds:  # the first round reads files from the disk
        for name, command in commands.items():
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
            wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            if warm:
                times[name].append((1e3 * wall, 1e3 * processor))
        for label, values in prepared.items():
            command = [sys.executable, "-c", PREPARE, label]
            output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
            wall, processor = (1e3 * float(number) for number in output.split())
            if warm:
                values.append((wall, processor))

    def show(name: str, values: list[tuple[float, float]]) -> None:
        walls, processors = zip(*values, strict=True)
        numbers = statistics.median(walls), min(walls), max(walls), statistics.median(processors)
        print(f"{name:38s}" + "".join(f"{number:10.1f}" for number in numbers))

    print(f"{'ms':38s}" + "".join(f"{title:>10s}" for title in ("median", "least", "most", "processor")))
    for name, values in times.items():
        show(name, values)
    pairs = zip(times["import numpy, clebsch"], times["import numpy"], strict=True)
    show("import clebsch beyond NumPy", [(both[0] - alone[0], both[1] - alone[1]) for both, alone in pairs])
    for label, values in prepared.items():
        show(f"prepare {label}", values)


if __name__ == "__main__":
    main()
