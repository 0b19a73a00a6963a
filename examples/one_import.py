"""One import changed: the network of `e3nn_network.py` with e3nn, and the same source with `from clebsch.compat.e3nn import nn, o3`
in place of `from e3nn import nn, o3`. Energy and forces of a box of water (without its walls) on the CPU, same weights.

    pip install . torch e3nn && python examples/one_import.py
"""

import time
import types
from collections.abc import Callable
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
THEIRS, OURS = "from e3nn import nn, o3\n", "from clebsch.compat.e3nn import nn, o3\n"


def network_of(line: str) -> types.ModuleType:
    """The source with this line as its import of e3nn."""
    source = (HERE / "e3nn_network.py").read_text()
    assert source.count(THEIRS) == 1
    module = types.ModuleType("network")
    exec(compile(source.replace(THEIRS, line), "e3nn_network.py", "exec"), module.__dict__)  # noqa: S102
    return module


def water(cutoff: float, atoms: int) -> tuple[torch.Tensor, ...]:
    """Positions, species, sender and receiver (ascending) of molecules of the box."""
    lines = (HERE / "data" / "water-216.xyz").read_text().splitlines()
    fields = [line.split() for line in lines[2 : 2 + min(atoms, int(lines[0]))]]
    positions = torch.tensor([[float(value) for value in field[1:4]] for field in fields])
    distances = torch.cdist(positions, positions).fill_diagonal_(torch.inf)
    receiver, sender = torch.nonzero(distances < cutoff, as_tuple=True)
    return positions, torch.tensor([field[0] == "O" for field in fields]).long(), sender, receiver


def seconds(step: Callable[[], object], budget: float) -> float:
    """Of the fastest step within the budget, of three at least."""
    found: list[float] = []
    begin = time.perf_counter()
    while len(found) < 3 or (time.perf_counter() - begin < budget and len(found) < 50):
        start = time.perf_counter()
        step()
        found.append(time.perf_counter() - start)
    return min(found)


def main(atoms: int = 216, budget: float = 3.0) -> float:
    """Prints how long a step takes with each; returns how many times as long it took with e3nn."""
    torch.manual_seed(0)
    with_e3nn, with_clebsch = network_of(THEIRS), network_of(OURS)
    theirs, ours = with_e3nn.Network(), with_clebsch.Network()
    ours.load_state_dict(theirs.state_dict())
    positions, *graph = water(with_e3nn.CUTOFF, atoms)

    def step(network: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        return network(positions.clone().requires_grad_(), *graph)

    (_, expected), (_, found) = step(theirs), step(ours)
    step(theirs)  # e3nn compiles in its second call
    difference = float((found - expected).abs().max() / expected.abs().max())
    assert difference < 1e-4, f"forces differ by {difference:.1e} of the largest"
    before, after = seconds(lambda: step(theirs), budget), seconds(lambda: step(ours), budget)
    print(
        f"energy and forces of {len(positions)} atoms of water, {len(graph[1])} edges, float32, {torch.get_num_threads()} threads"
    )
    print(f"    {THEIRS.strip():42} {1e3 * before:8.1f} ms")
    print(f"    {OURS.strip():42} {1e3 * after:8.1f} ms   {before / after:.1f}x, forces equal to {difference:.0e}")
    return before / after


if __name__ == "__main__":
    main()
