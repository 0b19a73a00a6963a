"""clebsch.torch in DistributedDataParallel: two processes see half of a batch each and step as one that sees all."""

from __future__ import annotations

from pathlib import Path

import clebsch.torch as ct
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as processes

ROWS = 8


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.product = ct.FullyConnectedTensorProduct("4x0e+2x1o", "1x0e+1x1o", "3x0e+2x1o")
        self.linear = ct.Linear("3x0e+2x1o", "1x0e")

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.linear(self.product(x, y))


def layer_and_batch() -> tuple[Layer, torch.Tensor, torch.Tensor]:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    return Layer(), torch.randn(ROWS, 10), torch.randn(ROWS, 4)


def loss_of(layer: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (layer(x, y) ** 2).mean()


def work(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    layer, x, y = layer_and_batch()
    half = slice(rank * ROWS // 2, (rank + 1) * ROWS // 2)
    together = torch.nn.parallel.DistributedDataParallel(layer)
    loss_of(together, x[half], y[half]).backward()
    if rank == 0:
        torch.save([parameter.grad for parameter in layer.parameters()], f"{folder}/gradients.pt")
    dist.barrier()  # gloo may end a process whose peer has left
    dist.destroy_process_group()


@pytest.mark.skipif(not dist.is_available(), reason="needs torch.distributed")
def test_gradients_are_those_of_the_whole_batch(tmp_path: Path) -> None:
    processes.spawn(work, (str(tmp_path),), nprocs=2)
    layer, x, y = layer_and_batch()
    expected = torch.autograd.grad(loss_of(layer, x, y), list(layer.parameters()))
    for gradient, wanted in zip(torch.load(tmp_path / "gradients.pt"), expected, strict=True):
        torch.testing.assert_close(gradient, wanted)
