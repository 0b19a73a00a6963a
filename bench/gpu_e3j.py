"""e3j on the cases of gpu_peers, for gpu_contenders: its Pallas kernel (its plain method on a processor, to try this file)."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from gpu_problems import PROBLEMS, Case, Check, say, times_of

LOOPS, CALLS = 5, 10  # a time is that of a loop, over its calls: what a call costs without waiting for each


def run(library: str, cases: list[tuple[Case, list[str]]], alone: Callable[[], AbstractContextManager[None]], device: str) -> None:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp

    compiled: dict[Any, Any] = {}
    for case, passes in cases:
        try:
            operation = Operation(case, device)
            build = time.perf_counter()
            first = {}
            for what in passes:
                begin = time.perf_counter()
                shapes = operation.shapes(what)
                compiled[case, what] = jax.jit(operation.functions[what]).lower(*shapes).compile()
                first[what] = time.perf_counter() - begin
            say(library=library, problem=case.problem, build_s=time.perf_counter() - build)
            with alone():
                measure(library, case, operation, {what: compiled[case, what] for what in passes}, first, jax, jnp)
        except Exception as error:  # a refusal is a result
            traceback.print_exc()
            say(library=library, case=vars(case), refused=f"{type(error).__name__}: {str(error)[:400]}")


class Operation:
    """e3j keeps channels last: irreps say how often a block of so many channels occurs."""

    def __init__(self, case: Case, device: str):
        from e3j.core import Convolution
        from e3j.spaces import O3Space
        from e3j.utils import options
        from e3j.utils.config import Config

        problem = self.problem = PROBLEMS[case.problem]
        self.case = case
        self.block = int(np.gcd.reduce(list(problem.channels.values())))
        kind = "UNFUSED" if device == "cpu" else "FUSED_MOSAIC_GPU"
        x = " + ".join(f"{multiplicity // self.block}x{degree}{'eo'[degree % 2]}" for multiplicity, degree in problem.nodes)
        _, y, out = problem.irreps(" + ")
        convolution = Convolution(
            (O3Space(x), O3Space(y)),
            O3Space(out),
            graph_ordering="RECEIVER",
            normalization="NONE",
            config=Config(convolution=options.Convolution[kind], tensor_product=options.TensorProduct.UNFUSED),
        )
        if (convolution.target.dim * self.block, convolution.source[2].dim * self.block) != (problem.out_size, problem.s_size):
            raise ValueError("another problem: its outputs and weights have other sizes")
        self.functions = functions(convolution)

    def shape(self, name: str) -> tuple[int, ...]:
        problem, block = self.problem, self.block
        return {
            "x": (self.case.nodes, problem.x_size // block, block),
            "y": (self.case.edges, problem.y_size),
            "s": (self.case.edges, problem.s_size // block, block),
            "g": (self.case.nodes, problem.out_size // block, block),
        }[{"a": "x", "b": "y", "c": "s"}.get(name, name)]

    def shapes(self, what: str) -> list[Any]:
        import jax
        import jax.numpy as jnp

        index = jax.ShapeDtypeStruct((self.case.edges,), jnp.int32)
        return [*(jax.ShapeDtypeStruct(self.shape(name), jnp.float32) for name in ARGUMENTS[what]), index, index]


ARGUMENTS = {"forward": "xys", "backward": "xysg", "double backward": "xysgabc"}
RESULTS = {"forward": ("out",), "backward": ("dx", "dy", "ds"), "double backward": ("Dx", "Dy", "Ds", "Dg")}


def functions(convolution: Any) -> dict[str, Callable[..., Any]]:
    import jax

    def forward(x: Any, y: Any, s: Any, sender: Any, receiver: Any) -> Any:
        return convolution(x, y, s, sender, receiver)

    def backward(x: Any, y: Any, s: Any, g: Any, sender: Any, receiver: Any) -> Any:
        return jax.vjp(lambda *inputs: forward(*inputs, sender, receiver), x, y, s)[1](g)

    def double_backward(x: Any, y: Any, s: Any, g: Any, a: Any, b: Any, c: Any, sender: Any, receiver: Any) -> Any:
        return jax.vjp(lambda *inputs: backward(*inputs, sender, receiver), x, y, s, g)[1]((a, b, c))

    return {"forward": forward, "backward": backward, "double backward": double_backward}


def measure(
    library: str, case: Case, operation: Operation, compiled: dict[str, Any], first: dict[str, float], jax: Any, jnp: Any
) -> None:
    problem, graph = operation.problem, case.graph()
    keys = dict(zip("xysgabc", jax.random.split(jax.random.key(7), 7), strict=True))
    arrays = {name: jax.random.normal(key, operation.shape(name), jnp.float32) for name, key in keys.items()}
    sender, receiver = (jnp.asarray(index) for index in graph)

    def take(name: str, rows: np.ndarray) -> np.ndarray:
        return np.asarray(arrays[name][jnp.asarray(rows)]).reshape(len(rows), -1).astype(np.float64)

    check = Check(case, graph, take, f"chunks:{operation.block}")
    for what, function in compiled.items():
        inputs = [arrays[name] for name in ARGUMENTS[what]]
        begin = time.perf_counter()
        found = jax.block_until_ready(function(*inputs, sender, receiver))
        first[what] += time.perf_counter() - begin
        milliseconds = []
        for loop in range(LOOPS + 1):
            begin = time.perf_counter()
            for _ in range(CALLS):
                found = None
                found = function(*inputs, sender, receiver)
            jax.block_until_ready(found)
            if loop > 0:
                milliseconds.append((time.perf_counter() - begin) / CALLS * 1e3)
        arrays |= dict(zip(RESULTS[what], found if isinstance(found, (tuple, list)) else (found,), strict=True))
        say(
            library=library,
            case=vars(case),
            what=what,
            **times_of(milliseconds),
            bytes=problem.bytes(case.nodes, case.edges, what),
            error=getattr(check, what.replace(" ", "_"))(),
            first_s=first[what],
            peak_bytes=(jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0),
            note="",
        )
        for name in RESULTS[what]:
            if name != "out":
                del arrays[name]
