"""A whole model before and after clebsch.torch.accelerate, in one thread: processor time of steps that take turns, so that whatever
else runs on the machine slows both."""

from __future__ import annotations

import time
from collections.abc import Callable

import clebsch
import clebsch.torch as ct
import torch

TURNS = 9


def results(model: torch.nn.Module, inputs: dict[str, torch.Tensor], names: tuple[str, ...]) -> tuple[torch.Tensor, ...]:
    """What a model calls energy, forces and stress; of a model in training mode they can be derived again."""
    found = model({name: value.clone() for name, value in inputs.items()})
    return tuple(found[name] for name in names)


def weights_gradient(model: torch.nn.Module, inputs: dict[str, torch.Tensor], names: tuple[str, ...]) -> torch.Tensor:
    """Of a loss on energy, forces and stress, in one vector."""
    energy, forces, stress = results(model.train(), inputs, names)
    loss = energy.square().sum() + forces.square().sum() + stress.square().sum()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    model.eval()
    return torch.cat([gradient.reshape(-1) for gradient in found])


def compare(title: str, model: torch.nn.Module, step: Callable[[], tuple[torch.Tensor, ...]], turns: int = TURNS) -> None:
    """`step` returns what should agree."""
    torch.set_num_threads(1)
    clebsch.set_num_threads(1)

    def seconds() -> float:
        begin = time.thread_time()
        step()
        return time.thread_time() - begin

    before, after = [], []
    expected, _ = step(), step()
    report = ct.accelerate(model, show=False, step=step)
    found = step()
    differences = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, expected, strict=True)]
    print(title)
    print(f"  {str(report).splitlines()[0]}, {len(report.left)} left; {str(report).splitlines()[-1]}")
    print(f"  largest differences, relative to the largest value: {', '.join(f'{each:.1e}' for each in differences)}")
    for _ in range(turns):
        after.append(seconds())
        report.undo()
        before.append(seconds())
        report = ct.accelerate(model, show=False)
        step()
    report.undo()
    ratios = sorted(b / a for a, b in zip(after, before, strict=True))
    print(f"  {sorted(before)[turns // 2]:.3f} s before, {sorted(after)[turns // 2]:.3f} s after", end=": ")
    print(f"{ratios[turns // 2]:.1f}x ({ratios[0]:.1f} to {ratios[-1]:.1f})", flush=True)
