"""What a compiled call of clebsch.jax costs beside the same call of the C interface, on the CPU, one thread.

Convolutions of 4,500 edges (100 nodes), forward and backward: into arrays that the C interface keeps and that JAX is given back
(donated), and into new ones; and the smallest call there is. Turns alternate, in an order of chance, each after a call that is not
counted; times are processor time, which other processes lengthen less. Pages that the system had to give during a call are counted
too: its clearing of them is in the time. In an environment with jax:

    ./dev bench --jax
"""

from __future__ import annotations

import os

os.environ.setdefault("CLEBSCH_NUM_THREADS", "1")

import argparse
import timeit
from typing import Any

import clebsch.jax as cj
import jax
import jax.numpy as jnp
import numpy as np
from convolution_calls import EDGES, NODES, SIZES, compare, passes_of


def convolution(name: str, turns: int) -> None:
    for which, operation, given in passes_of(cj.Convolution(*SIZES[name]).description, np.int32):
        plan, function = operation.plan("float32"), cj.Operation(operation)
        inputs = {key: jnp.asarray(value) for key, value in given.items()}
        compiled = jax.jit(function)
        bound, found = plan.bind(**given), compiled(**inputs)
        for result, expected in zip(jax.tree.leaves(found), jax.tree.leaves(bound()), strict=True):
            np.testing.assert_array_equal(np.asarray(result), expected)
        calls = {
            "in C": bound,
            "in JAX": lambda compiled=compiled, inputs=inputs: jax.block_until_ready(compiled(**inputs)),
            "in JAX, results donated": Donated(function, inputs, found),
            "in C into new arrays": lambda plan=plan, given=given: plan(**given),
        }
        compare(f"{name}, {which}", calls, "in C", turns)


class Donated:
    """A call whose results take the place of the last call's."""

    def __init__(self, function: Any, inputs: Any, results: Any) -> None:
        self.compiled = jax.jit(lambda results, inputs: function(**inputs), donate_argnums=0, keep_unused=True)
        self.inputs, self.results = inputs, results

    def __call__(self) -> None:
        self.results = jax.block_until_ready(self.compiled(self.results, self.inputs))


def smallest(turns: int) -> None:
    linear, x, weights = cj.Linear("1x0e", "1x0e"), jnp.ones((1, 1)), jnp.ones((1,))
    ours, product = jax.jit(linear), jax.jit(lambda x, weights: x * weights)
    bound = linear.description.plan("float32").bind(x=np.ones((1, 1), np.float32), weights=np.ones((1, 1), np.float32))
    calls = {
        "clebsch.jax": lambda: ours(x, weights).block_until_ready(),
        "x * weights in JAX": lambda: product(x, weights).block_until_ready(),
        "in C (through Python)": bound,
    }
    print("a product of two numbers, microseconds:", end="")
    for name, call in calls.items():
        call()
        print(f" {name} {min(timeit.repeat(call, number=40, repeat=20 * turns)) / 40 * 1e6:.1f}", end=";")
    print(flush=True)


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
