"""Energy and forces of whole models on a GPU, before and after their layers run here, and with the other libraries that each of
them knows: MACE, NequIP, SevenNet (random weights) and Nequix (its checkpoint), on perturbed silicon.

    ./dev bench --accelerate --gpu [--only NAME ...] [--cells N ...] [--table FILE]

A process for each model, in its environment (.venvs/NAME, or this Python where there is none); what is missing there is named and
left out. Within one process contenders have the same weights and graph; their steps take turns. Times are wall clock of a step
that is waited for.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"mace": "mace-torch", "nequip": "nequip", "sevennet": "sevenn", "nequix": "nequix"}
STEPS = {
    "mace": "energy, forces",
    "nequip": "energy, forces, stress",
    "sevennet": "energy, forces, stress",
    "nequix": "energy, forces, stress (a jitted JAX function)",
}
TURNS, STEPS_PER_TURN = 7, 5

#: Calls a model: energy and forces first.
Step = Callable[[], "tuple[Any, ...]"]
#: Makes the step of a structure.
Maker = Callable[[Any], Step]


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    names = ("torch", "jax", "e3nn", "e3nn-jax", "cuequivariance", "cuequivariance-ops-torch-cu13", "openequivariance")
    for name in (*names, *PACKAGES.values()):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


# Models: their contenders by name, each made when it is asked for, as what is missing fails then; and a structure of so many cells
# -----------------------------------------------------------------------------------------------------------------------------


def on_gpu(inputs: dict[str, Any]) -> dict[str, Any]:
    return {name: value.to("cuda") for name, value in inputs.items()}


def accelerated(model: Any) -> Any:
    import clebsch.torch as ct

    report = ct.accelerate(model, show=False)
    print(f"  accelerate: {len(report.changed)} changed; left: {report.left or 'nothing'}", file=sys.stderr)
    return model


def mace() -> tuple[dict[str, Callable[[], Maker]], Callable[[int], Any]]:
    import accelerated_mace as bench

    def step(model: Any) -> Maker:
        def of(inputs: dict[str, Any]) -> Step:
            def run() -> tuple[Any, ...]:
                found = model(inputs, compute_force=True)
                return found["energy"].detach(), found["forces"].detach()

            return run

        return of

    def cuequivariance() -> Maker:
        import cuequivariance_ops_torch  # noqa: F401 - without it the calls would be PyTorch's
        from mace.cli.convert_e3nn_cueq import run

        return step(run(bench.model().to("cuda"), device="cuda", return_model=True).to("cuda"))

    def openequivariance() -> Maker:
        from mace.cli.convert_e3nn_oeq import run

        return step(run(bench.model().to("cuda"), device="cuda", return_model=True).to("cuda"))

    return {
        "e3nn": lambda: step(bench.model().to("cuda")),
        "clebsch": lambda: step(accelerated(bench.model().to("cuda"))),
        "cuequivariance": cuequivariance,
        "openequivariance": openequivariance,
    }, lambda cells: on_gpu(bench.batch(cells))


def energies_forces_stress(model: Any, names: tuple[str, ...]) -> Maker:
    def of(inputs: dict[str, Any]) -> Step:
        def run() -> tuple[Any, ...]:
            found = model(dict(inputs))
            return tuple(found[name].detach() for name in names)

        return run

    return of


def nequip() -> tuple[dict[str, Callable[[], Maker]], Callable[[int], Any]]:
    import accelerated_nequip as bench
    from nequip.nn._tp_scatter_base import TensorProductScatter

    def made() -> Any:
        return bench.model().eval().to("cuda")

    def openequivariance() -> Maker:
        return energies_forces_stress(TensorProductScatter.enable_OpenEquivariance(made()).to("cuda"), bench.NAMES)

    def cuequivariance() -> Maker:
        import cuequivariance_ops_torch  # noqa: F401

        return energies_forces_stress(TensorProductScatter.enable_CuEquivariance(made()).to("cuda"), bench.NAMES)

    return {
        "e3nn": lambda: energies_forces_stress(made(), bench.NAMES),
        "clebsch": lambda: energies_forces_stress(accelerated(made()), bench.NAMES),
        "cuequivariance": cuequivariance,
        "openequivariance": openequivariance,
    }, lambda cells: on_gpu(bench.batch(cells))


def sevennet() -> tuple[dict[str, Callable[[], Maker]], Callable[[int], Any]]:
    import accelerated_sevennet as bench

    def made(**options: Any) -> Any:
        """The weights of the model without options: how a library keeps constants does not matter."""
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*[Ff]all(ing)? ?back")  # to e3nn, where a library is missing
            model, weights = bench.model(**options).eval(), bench.model().eval().state_dict()
        model.load_state_dict({key: value for key, value in weights.items() if key in model.state_dict()}, strict=False)
        return model.to("cuda")

    def cuequivariance() -> Maker:
        import cuequivariance_ops_torch  # noqa: F401

        return energies_forces_stress(made(cuequivariance_config={"use": True}), bench.NAMES)

    return {
        "e3nn": lambda: energies_forces_stress(made(), bench.NAMES),
        "clebsch": lambda: energies_forces_stress(accelerated(made()), bench.NAMES),
        "cuequivariance": cuequivariance,
        "openequivariance": lambda: energies_forces_stress(made(use_oeq=True), bench.NAMES),
    }, lambda cells: on_gpu(bench.batch(cells))


def nequix() -> tuple[dict[str, Callable[[], Maker]], Callable[[int], Any]]:
    import accelerated_nequix as bench
    import equinox as eqx
    import jax
    from nequix.model import load_model

    model, config = load_model(str(bench.CHECKPOINT))
    evaluate = eqx.filter_jit(lambda model, graph: model(graph))

    def step(model: Any) -> Maker:
        return lambda graph: lambda: jax.block_until_ready(evaluate(model, graph))

    return {
        "e3nn-jax": lambda: step(model),
        "clebsch": lambda: step(bench.swapped(model)),
        "openequivariance": lambda: step(load_model(str(bench.CHECKPOINT), kernel=True)[0]),
    }, lambda cells: bench.batch(cells, config["atomic_numbers"].index(14))


MODELS = {"mace": mace, "nequip": nequip, "sevennet": sevennet, "nequix": nequix}


# One model, in its own process
# -----------------------------------------------------------------------------------------------------------------------------


def waited(step: Step) -> Callable[[], float]:
    """Seconds of a step that has ended."""
    if "torch" in sys.modules and "jax" not in sys.modules:
        import torch

        wait = torch.cuda.synchronize
    else:

        def wait() -> None:
            return

    def run() -> float:
        wait()
        begin = time.perf_counter()
        for _ in range(STEPS_PER_TURN):
            step()
        wait()
        return (time.perf_counter() - begin) / STEPS_PER_TURN

    return run


def deviations(found: tuple[Any, ...], expected: tuple[Any, ...]) -> list[float]:
    """Of energy and forces, relative to the largest."""
    import numpy as np

    arrays = [[np.asarray(part.cpu() if hasattr(part, "cpu") else part, np.float64) for part in all_] for all_ in (found, expected)]
    return [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(*(each[:2] for each in arrays), strict=True)]


def measured(name: str, cells: list[int]) -> Iterator[dict[str, Any]]:
    makers, batch = MODELS[name]()
    contenders: dict[str, Maker] = {}
    for contender, make in makers.items():
        try:
            contenders[contender] = make()
        except Exception as error:
            traceback.print_exc()
            yield {"model": name, "contender": contender, "failed": f"{type(error).__name__}: {str(error).splitlines()[-1:]}"}
    for count in cells:
        inputs, steps, first, results = batch(count), {}, {}, {}
        for contender, of in contenders.items():
            try:
                step, begin = of(inputs), time.perf_counter()
                results[contender] = step()
                waited(step)()
                first[contender] = time.perf_counter() - begin
                steps[contender] = waited(step)
            except Exception as error:
                traceback.print_exc()
                reason = f"{type(error).__name__}: {str(error).splitlines()[-1:]}"
                yield {"model": name, "contender": contender, "atoms": 8 * count**3, "failed": reason}
        if not steps:
            break
        times: dict[str, list[float]] = {contender: [] for contender in steps}
        for _ in range(TURNS):
            for contender, seconds in steps.items():
                times[contender].append(seconds())
        reference = next(iter(steps))
        for contender in steps:
            yield {
                "model": name,
                "contender": contender,
                "atoms": 8 * count**3,
                "edges": int(inputs.n_edge[0] if name == "nequix" else inputs["edge_index"].shape[1]),
                "seconds": times[contender],
                "first": first[contender],
                "deviations": deviations(results[contender], results[reference]),
                "reference": reference,
            }
    yield {"model": name, "versions": versions()}


def alone(name: str, cells: list[int]) -> None:
    for line in measured(name, cells):
        print(json.dumps(line), flush=True)


# All of them
# -----------------------------------------------------------------------------------------------------------------------------


def table(name: str, lines: list[dict[str, Any]]) -> list[str]:
    known = ", ".join(f"{package} {number}" for line in lines for package, number in line.get("versions", {}).items())
    text = [f"**{name}**: {STEPS[name]}. {known}.", ""]
    text += [
        "| atoms | edges | | ms a step (least to most) | | energy, forces deviate by | first steps, s |",
        "|---|---|---|---|---|---|---|",
    ]
    found = [line for line in lines if "seconds" in line]
    before = {line["atoms"]: line for line in found if line["contender"] == line["reference"]}
    for line in found:
        seconds = [1e3 * each for each in line["seconds"]]
        median, base = statistics.median(seconds), before.get(line["atoms"])
        quotient = "" if base is None or base is line else f"{1e3 * statistics.median(base['seconds']) / median:.1f}x"
        deviates = "" if base is line else ", ".join(f"{each:.0e}" for each in line["deviations"])
        text.append(
            f"| {line['atoms']} | {line['edges']} | {line['contender']} | {median:.2f} ({min(seconds):.2f} to {max(seconds):.2f}) "
            f"| {quotient} | {deviates} | {line['first']:.1f} |"
        )
    text.append("")
    for line in lines:
        if "failed" in line:
            text.append(f"Without {line['contender']}: {line['failed']}")
    return [*text, ""]


def python_of(name: str, given: list[str]) -> str:
    chosen = dict(each.split("=", 1) for each in given)
    own = ROOT / ".venvs" / name / "bin/python"
    return chosen.get(name, str(own) if own.exists() else sys.executable)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(MODELS), choices=list(MODELS), metavar="NAME")
    parser.add_argument("--cells", nargs="*", type=int, default=[4, 8], help="cubic cells along an edge: 8 N^3 atoms")
    parser.add_argument("--python", nargs="*", default=[], metavar="NAME=PATH", help="an interpreter with that model's package")
    parser.add_argument("--table", type=Path, help="a file for the tables (Markdown)")
    parser.add_argument("--seconds", type=float, default=600, help="that a model may take")
    parser.add_argument("--alone", choices=list(MODELS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        alone(arguments.alone, arguments.cells)
        return
    text: list[str] = []
    for name in arguments.only:
        command = [python_of(name, arguments.python), __file__, "--alone", name, "--cells", *map(str, arguments.cells)]
        environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        try:
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, text=True, timeout=arguments.seconds, check=False
            )
            output, ended = done.stdout, f"the process ended with {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired as late:
            output, ended = (late.stdout or b"").decode(), f"stopped after {arguments.seconds:.0f} s"
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        text += table(name, lines) + ([f"{name}: {ended}", ""] if ended else [])
        print("\n".join(text[-40:]) if name == arguments.only[-1] else f"{name} is measured", file=sys.stderr, flush=True)
        if arguments.table:
            arguments.table.write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main()
