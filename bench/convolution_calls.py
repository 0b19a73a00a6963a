"""What the benches of calls share: convolutions, their sizes and inputs, and how calls are compared on the CPU."""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable
from typing import Any

import clebsch
import numpy as np

EDGES, NODES = 4500, 100
ROWS = {"node": NODES, "edge": EDGES}
SIZES = {
    "MACE, medium": ("128x0e+128x1o", "0e+1o+2e+3o", "0e+1o+2e+3o"),
    "Nequix MP-1": ("128x0e+64x1o+32x2e+32x3o", "0e+1o+2e+3o", "128x0e+64x1o+32x2e+32x3o"),
    "NequIP, small": ("32x0e+32x1o+32x2e", "0e+1o+2e", "0e+1o+2e"),
}


def passes_of(
    forward: clebsch.Operation, index_type: Any, nodes: int = NODES, edges: int = EDGES
) -> list[tuple[str, clebsch.Operation, dict[str, np.ndarray]]]:
    """Forward and backward, each with its inputs (standard normal) and indices (receivers ascend) by name."""
    backward, rows = forward.vjp("x", "y", "weights"), {"node": nodes, "edge": edges}
    rng = np.random.default_rng(0)
    arrays = {o.name: rng.standard_normal((rows[o.space], o.row_size), dtype=np.float32) for o in backward.inputs}
    index = {
        "sender": rng.integers(0, nodes, edges, dtype=index_type),
        "receiver": np.repeat(np.arange(nodes, dtype=index_type), edges // nodes),
    }
    return [
        (which, operation, {o.name: arrays[o.name] for o in operation.inputs} | index)
        for which, operation in (("forward", forward), ("backward", backward))
    ]


def measured(function: Callable[[], Any]) -> tuple[float, int]:
    """Microseconds of processor time, of all threads, and pages given, of a call after one that is not counted."""
    function()
    pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    begin = time.process_time_ns()
    function()
    passed = (time.process_time_ns() - begin) / 1e3
    return passed, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - pages


def compare(name: str, calls: dict[str, Callable[[], Any]], other: str, turns: int) -> None:
    """Each beside `other`, in an order of chance: lower quartiles, the median of the quotients of turns, and pages per call."""
    times: dict[str, list[float]] = {key: [] for key in calls}
    pages = dict.fromkeys(calls, 0)
    for _ in range(turns):
        for key in random.sample(list(calls), len(calls)):
            passed, given = measured(calls[key])
            times[key].append(passed)
            pages[key] += given
    print(f"{name}: {np.quantile(times[other], 0.25):.0f} us {other}", end="")
    for key in calls:
        if key != other:
            quotient = np.median(np.array(times[key]) / np.array(times[other]))
            print(f"; {np.quantile(times[key], 0.25):.0f} {key}, {quotient:.3f} ({pages[key] / turns:.0f} pages)", end="")
    print(flush=True)
