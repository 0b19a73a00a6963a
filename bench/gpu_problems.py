"""What every contender of gpu_peers is measured on: problems, graphs, bytes, and float64 values of what they must compute.

Numpy and Clebsch's coupling coefficients only. A contender's constant per path is fitted once, on the forward result; layouts,
orders and signs must then agree path by path, in all passes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Blocks = dict[int, np.ndarray]  # degree -> [rows, 2 l + 1, channels] (channel-free: [rows, 2 l + 1])

PASSES = ("forward", "backward", "double backward")
SENDER_WINDOW = 200


@dataclass
class Problem:
    """x[sender] times y with weights s, summed at the receiver: every path of natural parity, each with an output of its own."""

    name: str
    nodes: list[tuple[int, int]]  # multiplicity and degree of x's blocks
    lmax: int  # of y: harmonics 0 .. lmax
    outputs: int  # degrees 0 .. outputs are kept
    paths: list[tuple[int, int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.channels = {degree: multiplicity for multiplicity, degree in self.nodes}
        self.paths = [
            (l1, l2, l3)
            for l3 in range(self.outputs + 1)
            for _, l1 in self.nodes
            for l2 in range(self.lmax + 1)
            if abs(l1 - l2) <= l3 <= l1 + l2 and (l1 + l2 + l3) % 2 == 0
        ]

    def irreps(self, separator: str = "+") -> tuple[str, str, str]:
        """x, y and the kept irreps of outputs."""
        name = lambda degree: f"{degree}{'eo'[degree % 2]}"  # noqa: E731
        return (
            separator.join(f"{multiplicity}x{name(degree)}" for multiplicity, degree in self.nodes),
            separator.join(name(degree) for degree in range(self.lmax + 1)),
            separator.join(name(degree) for degree in range(self.outputs + 1)),
        )

    @property
    def output_blocks(self) -> list[tuple[int, int]]:
        return [(self.channels[l1], l3) for l1, _, l3 in self.paths]

    @property
    def x_size(self) -> int:
        return sum(multiplicity * (2 * degree + 1) for multiplicity, degree in self.nodes)

    @property
    def y_size(self) -> int:
        return (self.lmax + 1) ** 2

    @property
    def s_size(self) -> int:
        return sum(self.channels[l1] for l1, _, _ in self.paths)

    @property
    def out_size(self) -> int:
        return sum(multiplicity * (2 * degree + 1) for multiplicity, degree in self.output_blocks)

    def bytes(self, nodes: int, edges: int, what: str, weights: bool = True) -> int:
        """Every input and output once, float32; indices are not counted."""
        inputs = nodes * self.x_size + edges * self.y_size + (edges * self.s_size if weights else 0)
        out = nodes * self.out_size
        times = {"forward": (1, 1), "backward": (2, 1), "double backward": (3, 2)}[what]
        return 4 * (times[0] * inputs + times[1] * out)


PROBLEMS = {
    "lmax 2": Problem("lmax 2", [(128, degree) for degree in range(3)], 2, 2),
    "lmax 3": Problem("lmax 3", [(128, degree) for degree in range(4)], 3, 3),
    "nequix-main": Problem("nequix-main", [(128, 0), (64, 1), (32, 2), (32, 3)], 3, 3),
    "mace-large": Problem("mace-large", [(128, 0), (128, 1), (128, 2)], 3, 3),
}


@dataclass(frozen=True)
class Case:
    """A problem of one size. `kind`: local, random, symmetric (local, every edge with its reverse) or rows (no graph)."""

    problem: str
    kind: str
    nodes: int
    neighbors: int = 1

    @property
    def rows(self) -> bool:
        return self.kind == "rows"

    @property
    def edges(self) -> int:
        return self.nodes * self.neighbors

    def graph(self) -> tuple[np.ndarray, np.ndarray]:
        """Senders and receivers, sorted by receiver and then by sender."""
        if self.rows:
            row = np.arange(self.nodes, dtype=np.int32)
            return row, row
        random = np.random.default_rng(1)
        receiver = np.repeat(np.arange(self.nodes), self.neighbors)
        if self.kind == "symmetric":
            columns = [np.arange(self.nodes)] if self.neighbors % 2 else []  # an edge to oneself is its own reverse
            for _ in range(self.neighbors // 2):
                group = (np.arange(self.nodes) + random.integers(SENDER_WINDOW // 2)) // (SENDER_WINDOW // 2)
                order = np.argsort(group + random.random(self.nodes))  # a random permutation within groups
                inverse = np.empty_like(order)
                inverse[order] = np.arange(self.nodes)
                columns += [order, inverse]
            sender = np.stack(columns, axis=1)
        else:
            window = SENDER_WINDOW if self.kind == "local" else self.nodes
            drawn = receiver + random.integers(0, window, self.edges) - window // 2
            sender = (drawn % self.nodes).reshape(self.nodes, self.neighbors)
        return np.sort(sender, axis=1).reshape(-1).astype(np.int32), receiver.astype(np.int32)


def split(array: np.ndarray, blocks: list[tuple[int, int]], layout: str) -> list[np.ndarray]:
    """Blocks (multiplicity, degree) of rows as [rows, 2 l + 1, channels]. chunks:C is ir_mul by C channels."""
    result, begin = [], 0
    for multiplicity, degree in blocks:
        size, components = multiplicity * (2 * degree + 1), 2 * degree + 1
        part = array[:, begin : begin + size]
        begin += size
        if layout == "mul_ir":
            part = part.reshape(-1, multiplicity, components).transpose(0, 2, 1)
        elif layout.startswith("chunks:"):
            chunk = int(layout.removeprefix("chunks:"))
            part = (
                part.reshape(-1, multiplicity // chunk, components, chunk)
                .transpose(0, 2, 1, 3)
                .reshape(-1, components, multiplicity)
            )
        else:
            part = part.reshape(-1, components, multiplicity)
        result.append(part)
    assert begin == array.shape[1], (begin, array.shape)
    return result


def deviation(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over the largest magnitude."""
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


class Check:
    """Compares what a contender computed with float64 values: all edges of three receivers and of three senders.

    take(name, rows) gives rows of the contender's array as float64: x, y, s, g, out, dx, dy, ds, then a, b, c (cotangents of the
    gradients) and Dx, Dy, Ds, Dg. Weights are in the order of Problem.paths.
    """

    def __init__(
        self,
        case: Case,
        graph: tuple[np.ndarray, np.ndarray],
        take: Callable[[str, np.ndarray], np.ndarray],
        layout: str,
        weights: bool = True,
    ):
        import clebsch

        self.problem, self.take, self.layout, self.weights = PROBLEMS[case.problem], take, layout, weights
        sender, receiver = graph
        self.receivers = np.array(sorted({0, case.nodes // 2, case.nodes - 1}))
        self.senders = np.array(sorted({1, case.nodes // 3, case.nodes - 2}))
        self.edges = np.unique(np.nonzero(np.isin(receiver, self.receivers) | np.isin(sender, self.senders))[0])
        self.sender, self.receiver = sender[self.edges], receiver[self.edges]
        self.couplings = [np.asarray(clebsch.wigner_3j(*path)) * np.sqrt(2 * path[2] + 1) for path in self.problem.paths]
        self.scale = np.ones(len(self.couplings))
        self.x, self.y, self.s = self._node("x", self.sender), self._y("y"), self._s("s")

    def _node(self, name: str, rows: np.ndarray) -> Blocks:
        degrees = [degree for _, degree in self.problem.nodes]
        return dict(zip(degrees, split(self.take(name, rows), self.problem.nodes, self.layout), strict=True))

    def _y(self, name: str) -> Blocks:
        rows = self.take(name, self.edges)
        return {degree: rows[:, degree**2 : (degree + 1) ** 2] for degree in range(self.problem.lmax + 1)}

    def _s(self, name: str) -> list[np.ndarray]:
        blocks = [(self.problem.channels[l1], 0) for l1, _, _ in self.problem.paths]
        return [block[:, 0] for block in split(self.take(name, self.edges), blocks, "ir_mul")]

    def _out(self, name: str, rows: np.ndarray) -> list[np.ndarray]:
        return split(self.take(name, rows), self.problem.output_blocks, self.layout)

    # The maps that are linear in each argument, per edge.
    def _matrices(self, y: Blocks) -> list[np.ndarray]:
        return [
            scale * np.einsum("nj,ijk->nik", y[l2], coupling)
            for (_, l2, _), coupling, scale in zip(self.problem.paths, self.couplings, self.scale, strict=True)
        ]

    def _forward(self, x: Blocks, y: Blocks, s: list[np.ndarray]) -> list[np.ndarray]:
        return [
            s[p][:, None] * np.einsum("nik,niu->nku", matrix, x[self.problem.paths[p][0]])
            for p, matrix in enumerate(self._matrices(y))
        ]

    def _to_x(self, y: Blocks, s: list[np.ndarray], g: list[np.ndarray]) -> Blocks:
        result: dict[int, Any] = {}
        for p, matrix in enumerate(self._matrices(y)):
            l1 = self.problem.paths[p][0]
            result[l1] = result.get(l1, 0) + np.einsum("nik,nku->niu", matrix, s[p][:, None] * g[p])
        return result

    def _to_y(self, x: Blocks, s: list[np.ndarray], g: list[np.ndarray]) -> Blocks:
        result: dict[int, Any] = {}
        for p, (l1, l2, _) in enumerate(self.problem.paths):
            outer = np.einsum("niu,nku->nik", x[l1], s[p][:, None] * g[p])
            result[l2] = result.get(l2, 0) + self.scale[p] * np.einsum("nik,ijk->nj", outer, self.couplings[p])
        return result

    def _to_s(self, x: Blocks, y: Blocks, g: list[np.ndarray]) -> list[np.ndarray]:
        ones = [np.ones_like(s) for s in self.s]
        return [(value * g[p]).sum(1) for p, value in enumerate(self._forward(x, y, ones))]

    @staticmethod
    def _sums(values: np.ndarray, key: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        return np.stack([values[key == row].sum(0) for row in wanted])

    def forward(self) -> float:
        """Error of out. Fits the contender's constant of every path."""
        self.scale[:] = 1
        expected = [self._sums(value, self.receiver, self.receivers) for value in self._forward(self.x, self.y, self.s)]
        found = self._out("out", self.receivers)
        self.scale = np.array([float((e * f).sum() / (e * e).sum()) for e, f in zip(expected, found, strict=True)])
        return max(deviation(f, scale * e) for f, e, scale in zip(found, expected, self.scale, strict=True))

    def _gradients(self, names: str, x: Blocks, y: Blocks, s: list[np.ndarray]) -> float:
        summed = {degree: self._sums(value, self.sender, self.senders) for degree, value in x.items()}
        found_x, found_y = self._node(names + "x", self.senders), self._y(names + "y")
        errors = [deviation(found_x[degree], summed[degree]) for degree in summed]
        errors += [deviation(found_y[degree], y[degree]) for degree in y]
        if self.weights:
            errors += [deviation(f, e) for f, e in zip(self._s(names + "s"), s, strict=True)]
        return max(errors)

    def backward(self) -> float:
        """Error of dx, dy, ds for the cotangent g of out."""
        g = self._out("g", self.receiver)
        return self._gradients("d", self._to_x(self.y, self.s, g), self._to_y(self.x, self.s, g), self._to_s(self.x, self.y, g))

    def double_backward(self) -> float:
        """Error of the gradients of <a, dx> + <b, dy> + <c, ds>."""
        x, y, s, g = self.x, self.y, self.s, self._out("g", self.receiver)
        a, b, c = self._node("a", self.sender), self._y("b"), self._s("c")

        def added(one: Any, *others: Any) -> Any:
            for other in others:
                one = (
                    {k: one[k] + other[k] for k in one}
                    if isinstance(one, dict)
                    else [i + j for i, j in zip(one, other, strict=True)]
                )
            return one

        error = self._gradients(
            "D",
            added(self._to_x(b, s, g), self._to_x(y, c, g)),
            added(self._to_y(a, s, g), self._to_y(x, c, g)),
            added(self._to_s(a, y, g), self._to_s(x, b, g)),
        )
        out = added(self._forward(a, y, s), self._forward(x, b, s), self._forward(x, y, c))
        expected = [self._sums(value, self.receiver, self.receivers) for value in out]
        found = self._out("Dg", self.receivers)
        return max(error, *(deviation(f, e) for f, e in zip(found, expected, strict=True)))


def say(**fields: Any) -> None:
    """One line of a result, for the program that started this one."""
    print("RESULT " + json.dumps(fields), flush=True)


def times_of(milliseconds: list[float]) -> dict[str, float]:
    return {
        "ms": float(np.median(milliseconds)),
        "ms_min": min(milliseconds),
        "ms_max": max(milliseconds),
        "runs": len(milliseconds),
    }
