"""Symmetric contraction of mace-torch 0.3.16: seconds per call, forward and with the gradient to x, as JSON lines.

usage: peer_mace.py NODES [--export FOLDER]: with it no timing, but FOLDER/full.npz and reduced.npz with the module's basis (text of
the builder's option), inputs (mul_ir), values and gradient in float64.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

# e3nn 0.4.4 keeps its constants in a pickle, which torch.load refuses since 2.6.
os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from e3nn import o3  # noqa: E402
from mace.modules.symmetric_contraction import SymmetricContraction  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "data"))
from make_mace_goldens import bases_and_weights, channels_apart  # noqa: E402

IRREPS, OUT = o3.Irreps("128x0e+128x1o+128x2e+128x3o"), o3.Irreps("128x0e+128x1o")
ELEMENTS, CORRELATION = 7, 3


def module_of(reduced: bool) -> SymmetricContraction:
    return SymmetricContraction(IRREPS, OUT, correlation=CORRELATION, num_elements=ELEMENTS, use_reduced_cg=reduced)


def export(file: Path, reduced: bool, nodes: int) -> None:
    """The module's meaning in numbers."""
    module = module_of(reduced)
    bases, parts = bases_and_weights(module, CORRELATION)
    x = torch.randn(nodes, IRREPS.dim).requires_grad_()
    species = torch.randint(0, ELEMENTS, (nodes,))
    values = module(channels_apart(x, IRREPS), torch.nn.functional.one_hot(species, ELEMENTS).to(x.dtype))
    cotangent = torch.randn(nodes, OUT.dim)
    (gradient,) = torch.autograd.grad(values, x, cotangent)
    np.savez(
        file,
        bases=bases,
        x=x.detach().numpy(),
        weights=torch.cat([part.reshape(ELEMENTS, -1) for part in parts], dim=1).detach().numpy(),
        species=species.numpy(),
        cotangent=cotangent.numpy(),
        values=values.detach().numpy(),
        gradient=gradient.numpy(),
    )


def median_seconds(function, rounds: int = 7) -> float:  # noqa: ANN001
    """Median processor time over a few calls after one to warm up."""
    function()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return statistics.median(times)


def measure(reduced: bool, nodes: int) -> None:
    module = module_of(reduced)
    x = torch.randn(nodes, 128, 16)
    species = torch.nn.functional.one_hot(torch.randint(0, ELEMENTS, (nodes,)), ELEMENTS).float()
    leaf = x.clone().requires_grad_()
    cotangent = torch.randn(nodes, OUT.dim)

    def forward() -> torch.Tensor:
        with torch.no_grad():
            return module(x, species)

    def backward() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(module(leaf, species), leaf, cotangent)

    name = f"mace-torch ({'reduced' if reduced else 'full'} basis)"
    print(json.dumps({"name": name, "forward": median_seconds(forward), "backward": median_seconds(backward)}), flush=True)


if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    torch.manual_seed(0)
    nodes = int(sys.argv[1])
    exporting = "--export" in sys.argv
    # tests/data's module sets float64; what is timed is float32.
    torch.set_default_dtype(torch.float64 if exporting else torch.float32)
    for reduced in (False, True):
        if exporting:
            export(Path(sys.argv[-1]) / f"{'reduced' if reduced else 'full'}.npz", reduced, nodes)
        else:
            measure(reduced, nodes)
