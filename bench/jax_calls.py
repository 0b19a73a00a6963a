"""What a compiled call of clebsch.jax costs beside the same call of the C interface, on the CPU, one thread.

Convolutions of 4,500 edges (100 nodes), forward and backward, into arrays that the C interface keeps and into new ones as XLA makes
them; and the smallest call there is. Turns alternate; times are processor time, which other processes lengthen less: the shortest
of all turns, and the median of the turns' quotients. In an environment with jax:

    ./dev bench --jax
"""

from __future__ import annotations

import os

os.environ.setdefault("CLEBSCH_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable
from typing import Any

import clebsch
import clebsch.jax as cj
import jax
import jax.numpy as jnp
import numpy as np
from convolution_calls import EDGES, NODES, ROWS, SIZES, passes_of


def microseconds(function: Callable[[], Any], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - begin) / calls * 1e6


def compare(name: str, ours: Callable[[], Any], others: dict[str, Callable[[], Any]], turns: int, calls: int) -> None:
    """A line per other: shortest times, their difference and quotient, the median of the quotients of turns."""
    times: dict[str, list[float]] = {"ours": [], **{other: [] for other in others}}
    for _ in range(turns):
        for key, function in (("ours", ours), *others.items()):
            times[key].append(microseconds(function, calls))
    for other in others:
        jax_time, other_time = min(times["ours"]), min(times[other])
        quotient = np.median(np.array(times["ours"]) / np.array(times[other]))
        print(
            f"{name}: {jax_time:.1f} us in JAX, {other_time:.1f} us {other}: "
            f"{jax_time - other_time:+.1f} us, {jax_time / other_time:.3f} (median of turns {quotient:.3f})",
            flush=True,
        )


def convolution(name: str, turns: int) -> None:
    for which, operation, given in passes_of(cj.Convolution(*SIZES[name]).description, np.int32):
        plan, compiled = operation.plan("float32"), jax.jit(cj.Operation(operation))
        inputs = {key: jnp.asarray(value) for key, value in given.items()}
        bound, found = plan.bind(**given), compiled(**inputs)
        for result, expected in zip(jax.tree.leaves(found), jax.tree.leaves(bound()), strict=True):
            np.testing.assert_array_equal(np.asarray(result), expected)

        def in_new_arrays(operation: clebsch.Operation = operation, plan: clebsch.Plan = plan, given: Any = given) -> Any:
            """As a caller of C that keeps nothing: memory from the system, written, given back."""
            made = {operand.name: np.empty((ROWS[operand.space], operand.row_size), np.float32) for operand in operation.outputs}
            return plan(out=made, **given)

        compare(
            f"{name}, {which}",
            lambda compiled=compiled, inputs=inputs: jax.block_until_ready(compiled(**inputs)),
            {"in C": bound, "in C into new arrays": in_new_arrays},
            turns,
            3,
        )


def smallest(turns: int) -> None:
    linear, x, weights = cj.Linear("1x0e", "1x0e"), jnp.ones((1, 1)), jnp.ones((1,))
    ours, product = jax.jit(linear), jax.jit(lambda x, weights: x * weights)
    bound = linear.description.plan("float32").bind(x=np.ones((1, 1), np.float32), weights=np.ones((1, 1), np.float32))
    compare(
        "a product of two numbers",
        lambda: ours(x, weights).block_until_ready(),
        {"in C (through Python)": bound, "as x * weights in JAX": lambda: product(x, weights).block_until_ready()},
        turns,
        400,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=25)
    turns = parser.parse_args().turns
    print(f"jax {jax.__version__}, {os.environ['CLEBSCH_NUM_THREADS']} thread(s), {EDGES} edges, {NODES} nodes, float32")
    for name in SIZES:
        convolution(name, turns)
    smallest(turns)


if __name__ == "__main__":
    main()
