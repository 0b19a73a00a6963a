"""Gather, tensor product and scatter of other libraries' models as one call: no array of messages, in any derivative.

NequIP and SevenNet have a module whose forward is just that. In MACE it is a part of larger ones, which ask the product for the sum
where an attribute of theirs says that it can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .._library import ClebschError, UnsupportedError
from .._verify import operation_of
from ..operation import Operation as Description
from ._accelerate_module import Forward, norm_wise
from ._operator import run


def gathered(product: Description, is_sorted: bool) -> Description:
    """The convolution of a tensor product whose rows are edges: x is read at senders, out summed at receivers."""
    text = re.sub(r"^rows \w+$", "rows edge", product.text, count=1, flags=re.MULTILINE)
    order = " sorted" if is_sorted else ""
    lines = []
    for line in text.splitlines():
        if line.startswith("input x:"):
            lines += ["index sender: edge -> node", f"index receiver: edge -> node{order}"]
            line = line.replace("@ each", "@ sender")
        elif line.startswith("output out:"):
            line = line.replace("@ each", "@ receiver")
        lines.append(line)
    return Description("\n".join(lines) + "\n")


class Convolution(Forward):
    """What stands for the product of a module that gathers before it and scatters after it."""

    def __init__(self, module: Any, product: Any, signs: str) -> None:
        if not any(cls.__module__.startswith("e3nn.") and cls.__name__ == "TensorProduct" for cls in type(product).__mro__):
            raise UnsupportedError(f"its product is no tensor product of e3nn but {type(product).__name__}")
        if product.shared_weights or not product.weight_numel:
            raise UnsupportedError("its product has no weights for every edge")
        description = operation_of(product, signs)
        super().__init__(module, description)
        self.product = product
        self.sorted, self.unsorted = gathered(description, True), gathered(description, False)
        self.dims = product.irreps_in1.dim, product.irreps_in2.dim, product.weight_numel

    def text(self) -> str:
        product = self.product
        return f"gather, {type(product).__name__} {product.irreps_in1} x {product.irreps_in2} -> {product.irreps_out}, scatter"

    def sums(self, x: Tensor, y: Tensor, weight: Tensor, sender: Tensor, receiver: Tensor) -> Tensor:
        """(nodes, irreps_out.dim)."""
        for name, tensor, dim in (("x", x, self.dims[0]), ("edge_attr", y, self.dims[1]), ("weight", weight, self.dims[2])):
            if tensor.dim() != 2 or tensor.shape[1] != dim:
                raise ClebschError(f"{name}: expected shape (rows, {dim}), got {tuple(tensor.shape)}")
        # Where looking at receivers would stall a GPU's queue or end a compiler's graph, they count as unsorted.
        looked = receiver.is_cpu and not torch.compiler.is_compiling()
        description = self.sorted if looked and bool((receiver[1:] >= receiver[:-1]).all()) else self.unsorted
        sizes = {"edge": sender.shape[0], "node": x.shape[0]}
        rows = [sizes[space] for space in description.spaces]
        return run(description.text, [x, y, weight], [sender, receiver], rows)[0]

    def edges(self) -> tuple[Tensor, Tensor]:
        """Senders and receivers of the four edges that are tried on three nodes."""
        return torch.tensor([2, 0, 1, 1], device=self.device), torch.tensor([0, 0, 1, 2], device=self.device)

    def example_inputs(self, normal: Callable[..., Tensor]) -> list[Tensor]:
        return [normal(3, self.dims[0]), normal(4, self.dims[1]), normal(4, self.dims[2])]


class NequIPScatter(Convolution):
    """NequIP's TensorProductScatter."""

    def __init__(self, module: Any, signs: str) -> None:
        super().__init__(module, module.tp, signs)

    def example(self, normal: Callable[..., Tensor]) -> Sequence[Any]:
        sender, receiver = self.edges()
        return *self.example_inputs(normal), receiver, sender

    def __call__(  # type: ignore[override]
        self, x: Tensor, edge_attr: Tensor, edge_weight: Tensor, edge_dst: Tensor, edge_src: Tensor
    ) -> Tensor:
        return self.sums(x, edge_attr, edge_weight, edge_src, edge_dst)


class SevenNetConvolution(Convolution):
    """SevenNet's IrrepsConvolution, which reads and writes a dictionary."""

    def __init__(self, module: Any, signs: str) -> None:
        if module.is_parallel:
            raise UnsupportedError("it exchanges atoms between processes")
        super().__init__(module, module.convolution, signs)

    def example(self, normal: Callable[..., Tensor]) -> Sequence[Any]:
        module: Any = self.module
        x, y, _ = self.example_inputs(normal)
        width = next(iter(module.weight_nn.parameters())).shape[0]
        sender, receiver = self.edges()
        return (
            {
                module.key_x: x,
                module.key_filter: y,
                module.key_weight_input: normal(4, width),
                module.key_edge_idx: torch.stack([receiver, sender]),
            },
        )

    def found(self, call: Callable[..., Any], arguments: Sequence[Any]) -> Tensor:
        return call(dict(arguments[0]))[self.module.key_x]

    def __call__(self, data: Any) -> Any:  # type: ignore[override]
        module: Any = self.module
        weight = module.weight_nn(data[module.key_weight_input])
        receiver, sender = data[module.key_edge_idx]
        summed = self.sums(data[module.key_x], data[module.key_filter], weight, sender, receiver)
        data[module.key_x] = summed / module.denominator
        return data


class MaceProduct(Convolution):
    """`conv_tp` of MACE's interaction blocks: given the edges, it returns the sums."""

    def __init__(self, block: Any, signs: str) -> None:
        super().__init__(block.conv_tp, block.conv_tp, signs)

    def difference(self) -> float:
        """Between the sums and what the block computes without them."""
        sender, receiver = self.edges()
        x, y, weight = self.example_inputs(self.normal())
        with torch.no_grad():
            messages = type(self.module).forward(self.module, x[sender], y, weight)
            expected = messages.new_zeros(len(x), messages.shape[1]).index_add(0, receiver, messages)
            found = self(x, y, weight, torch.stack([sender, receiver]))
        return norm_wise(found, expected)

    def __call__(self, x: Tensor, y: Tensor, weight: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
        return self.sums(x, y, weight, edge_index[0], edge_index[1])
