"""What the benches of calls share: convolutions of 4,500 edges, their sizes and inputs."""

from __future__ import annotations

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


def passes_of(forward: clebsch.Operation, index_type: Any) -> list[tuple[str, clebsch.Operation, dict[str, np.ndarray]]]:
    """Forward and backward, each with its inputs (standard normal) and indices (receivers ascend) by name."""
    backward = forward.vjp("x", "y", "weights")
    rng = np.random.default_rng(0)
    arrays = {o.name: rng.standard_normal((ROWS[o.space], o.row_size), dtype=np.float32) for o in backward.inputs}
    index = {
        "sender": rng.integers(0, NODES, EDGES, dtype=index_type),
        "receiver": np.repeat(np.arange(NODES, dtype=index_type), EDGES // NODES),
    }
    return [
        (which, operation, {o.name: arrays[o.name] for o in operation.inputs} | index)
        for which, operation in (("forward", forward), ("backward", backward))
    ]
