"""Convolutions in PyTorch and JAX on a GPU beside the same calls of the C interface, which writes into arrays that are kept:
16,384 nodes, forward and as automatic differentiation runs them forward and backward.

    ./dev bench --gpu-calls [--neighbours N]

A process for each framework. Fifty calls are queued and then waited for; turns alternate. Times are wall clock per call: the
shortest of all turns, the median of the turns' quotients, and how long the host took to queue a call.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import clebsch
import numpy as np
from convolution_calls import SIZES, passes_of

NODES, QUEUED = 16_384, 50

Call = Callable[[], Any]


def compare(name: str, calls: dict[str, Call], wait: Callable[[], None], turns: int) -> None:
    """The first beside the second."""
    times: dict[str, list[float]] = {key: [] for key in calls}
    queued: dict[str, list[float]] = {key: [] for key in calls}
    for turn in range(-2, turns):
        for key in sorted(calls, reverse=turn % 2 == 0):
            wait()
            begin = time.perf_counter()
            for _ in range(QUEUED):
                calls[key]()
            returned = time.perf_counter()
            wait()
            if turn >= 0:
                times[key].append((time.perf_counter() - begin) / QUEUED * 1e6)
                queued[key].append((returned - begin) / QUEUED * 1e6)
    ours, other = calls
    quotient = np.median(np.array(times[ours]) / np.array(times[other]))
    print(
        f"{name}: {min(times[ours]):.1f} us {ours}, {min(times[other]):.1f} us {other}: {min(times[ours]) / min(times[other]):.3f} "
        f"(median of turns {quotient:.3f}); queued in {min(queued[ours]):.1f} and {min(queued[other]):.1f} us",
        flush=True,
    )


def agree(name: str, found: Any, expected: Any) -> None:
    """Both on the host. Sums through senders have no order on a GPU."""
    for ours, theirs in zip(found, expected, strict=True):
        worst = np.abs(ours - theirs).max() / np.abs(theirs).max()
        assert worst < 1e-5, f"{name} differs by {worst:.0e} of the largest"


class InC:
    """A convolution's passes by the C interface, bound to arrays that `moved` makes of the host's."""

    def __init__(self, forward: clebsch.Operation, index_type: Any, edges: int, moved: Callable[[np.ndarray], Any]) -> None:
        passes = passes_of(forward, index_type, NODES, edges)
        self.arrays = {name: moved(array) for _, _, given in passes for name, array in given.items()}
        self.forward, self.backward = (
            operation.plan("float32", device="cuda").bind(**{name: self.arrays[name] for name in given})
            for _, operation, given in passes
        )
        (self.cotangent,) = (each.name for each in passes[1][1].inputs if each.name not in passes[0][2])

    def both(self) -> Any:
        """The gradients."""
        self.forward()
        return self.backward()


def in_torch(name: str, edges: int, turns: int) -> None:
    import clebsch.torch as ct
    import torch

    convolution = ct.Convolution(*SIZES[name])
    c = InC(clebsch.Operation(convolution.operation.text), np.int64, edges, lambda array: torch.from_numpy(array).cuda())
    inputs = [c.arrays[key].clone().requires_grad_() for key in ("x", "y", "weights")]
    index, cotangent = [c.arrays["sender"], c.arrays["receiver"]], c.arrays[c.cotangent]

    def module() -> Any:
        with torch.no_grad():
            return convolution(*inputs, *index)

    def step() -> Any:
        return torch.autograd.grad(convolution(*inputs, *index), inputs, cotangent)

    agree(name, [module().cpu().numpy()], [c.forward().cpu().numpy()])
    agree(name, [each.cpu().numpy() for each in step()], [each.cpu().numpy() for each in c.both().values()])
    compare(f"{name}, forward", {"in torch": module, "in C": c.forward}, torch.cuda.synchronize, turns)
    compare(f"{name}, forward and backward", {"in torch": step, "in C": c.both}, torch.cuda.synchronize, turns)


def in_jax(name: str, edges: int, turns: int) -> None:
    import clebsch.jax as cj
    import cupy
    import jax

    convolution = cj.Convolution(*SIZES[name])
    c = InC(convolution.description, np.int32, edges, cupy.asarray)
    floats = [jax.device_put(c.arrays[key].get()) for key in ("x", "y", "weights")]
    index = [jax.device_put(c.arrays[key].get()) for key in ("sender", "receiver")]
    cotangent = jax.device_put(c.arrays[c.cotangent].get())
    last: list[Any] = [None]

    def derived(floats: Any, index: Any, cotangent: Any) -> Any:
        found, back = jax.vjp(lambda *floats: convolution(*floats, *index), *floats)
        return found, back(cotangent)

    compiled, compiled_step = jax.jit(convolution), jax.jit(derived)

    def function() -> Any:
        last[0] = compiled(*floats, *index)
        return last[0]

    def step() -> Any:
        last[0] = compiled_step(floats, index, cotangent)
        return last[0]

    def wait() -> None:
        jax.block_until_ready(last)
        cupy.cuda.get_current_stream().synchronize()

    agree(name, [np.asarray(function())], [c.forward().get()])
    agree(name, [np.asarray(each) for each in step()[1]], [each.get() for each in c.both().values()])
    compare(f"{name}, forward", {"in JAX": function, "in C": c.forward}, wait, turns)
    compare(f"{name}, forward and backward", {"in JAX": step, "in C": c.both}, wait, turns)


FRAMEWORKS = {"torch": in_torch, "jax": in_jax}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(FRAMEWORKS), help="in this process")
    parser.add_argument("--neighbours", type=int, default=16, help="of every node")
    parser.add_argument("--turns", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.only:
        edges = NODES * arguments.neighbours
        print(f"{arguments.only} {version(arguments.only)}, {NODES} nodes, {edges} edges, float32", flush=True)
        for name in SIZES:
            FRAMEWORKS[arguments.only](name, edges, arguments.turns)
        return
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    for name in FRAMEWORKS:
        subprocess.run([sys.executable, __file__, "--only", name, *sys.argv[1:]], env=environment, check=False)


if __name__ == "__main__":
    main()
