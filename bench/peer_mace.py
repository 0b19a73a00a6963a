"""Symmetric contraction of mace-torch 0.3.16: seconds per call, forward and with the gradient to x, as JSON lines."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

# e3nn 0.4.4 keeps its constants in a pickle, which torch.load refuses since 2.6.
os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"

import torch  # noqa: E402
from e3nn import o3  # noqa: E402
from mace.modules.symmetric_contraction import SymmetricContraction  # noqa: E402

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
torch.set_num_threads(1)
torch.manual_seed(0)
nodes = int(sys.argv[1])


def median_seconds(function, rounds: int = 7) -> float:  # noqa: ANN001
    """Median over a few calls after one to warm up."""
    function()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


for reduced in (False, True):
    module = SymmetricContraction(
        o3.Irreps("128x0e+128x1o+128x2e+128x3o"), o3.Irreps("128x0e+128x1o"), correlation=3, num_elements=7, use_reduced_cg=reduced
    )
    x = torch.randn(nodes, 128, 16)
    species = torch.nn.functional.one_hot(torch.randint(0, 7, (nodes,)), 7).float()
    leaf = x.clone().requires_grad_()
    cotangent = torch.randn(nodes, 128 * 4)

    def forward(module=module, x=x, species=species) -> torch.Tensor:  # noqa: ANN001
        with torch.no_grad():
            return module(x, species)

    def backward(module=module, leaf=leaf, species=species, cotangent=cotangent) -> tuple[torch.Tensor, ...]:  # noqa: ANN001
        return torch.autograd.grad(module(leaf, species), leaf, cotangent)

    name = f"mace-torch ({'reduced' if reduced else 'full'} basis)"
    print(json.dumps({"name": name, "forward": median_seconds(forward), "backward": median_seconds(backward)}), flush=True)
