"""What a call of clebsch.torch costs beside the same call of the C interface, on the CPU, one thread.

Convolutions of 4,500 edges (100 nodes), forward and backward, into arrays that the C interface keeps and into new ones as PyTorch
makes them; and the smallest calls there are. Turns alternate, in an order of chance, each after a call that is not counted; times
are processor time, which other processes lengthen less. Pages that the system had to give during a turn are counted too: its
clearing of them is in the time.

    ./dev bench --torch
"""

from __future__ import annotations

import os

os.environ.setdefault("CLEBSCH_NUM_THREADS", "1")

import argparse
import timeit
from typing import Any

import clebsch
import clebsch.torch as ct
import numpy as np
import torch
from clebsch.torch import _operator
from convolution_calls import EDGES, NODES, ROWS, SIZES, compare, passes_of


def convolution(name: str, turns: int) -> None:
    forward = clebsch.Operation(ct.Convolution(*SIZES[name]).operation.text)
    for which, operation, given in passes_of(forward, np.int64):
        plan = operation.plan("float32")
        inputs = [torch.from_numpy(given[operand.name]) for operand in operation.inputs]
        indices = [torch.from_numpy(given[each.name]) for each in operation.indices]
        text, rows, bound = operation.text, [ROWS[space] for space in operation.spaces], plan.bind(**given)

        def in_torch(text: str = text, inputs: Any = inputs, indices: Any = indices, rows: Any = rows) -> Any:
            return _operator.run(text, inputs, indices, rows)

        def in_new_tensors(operation: clebsch.Operation = operation, plan: clebsch.Plan = plan, given: Any = given) -> Any:
            """As a caller of C that keeps nothing, with memory from PyTorch's allocator."""
            made = {each.name: torch.empty((ROWS[each.space], each.row_size)).numpy() for each in operation.outputs}
            return plan(out=made, **given)

        found = bound()
        found = found if isinstance(found, dict) else {operation.outputs[0].name: found}
        for result, operand in zip(in_torch(), operation.outputs, strict=True):
            np.testing.assert_array_equal(result.numpy(), found[operand.name])
        calls = {"in C": bound, "in torch": in_torch, "in C into new tensors": in_new_tensors}
        compare(f"{name}, {which}", calls, "in C", turns)


def smallest() -> None:
    """The fastest of very many short turns, which a busy machine leaves alone now and then."""
    product = ct.TensorProduct(
        "4x0e+4x1o", "1x0e+1x1o", "4x0e+4x1o", [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True), (0, 1, 1, "uvu", True)]
    )
    linear, x, y = ct.Linear("4x0e+4x1o", "4x0e"), torch.randn(1, 16), torch.randn(1, 4)
    weight = product.weight.detach()[None]
    calls = {
        "x + x": lambda: x + x,
        "a product's operation": lambda: _operator.run(product.text, [x, y, weight], [], [1]),
        "its module": lambda: product(x, y),
        "a linear map's module": lambda: linear(x),
    }
    for recorded in (False, True):
        with torch.set_grad_enabled(recorded):
            print("one row, recorded by autograd:" if recorded else "one row, microseconds:", end="")
            for name, call in calls.items():
                call()
                print(f" {name} {min(timeit.repeat(call, number=40, repeat=1500)) / 40 * 1e6:.1f}", end=";")
        print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=40)
    turns = parser.parse_args().turns
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {os.environ['CLEBSCH_NUM_THREADS']} thread(s), {EDGES} edges, {NODES} nodes, float32")
    for name in SIZES:
        convolution(name, turns)
    smallest()


if __name__ == "__main__":
    main()
