"""One operator for every operation: torch.ops.clebsch.run(text, tensors, rows). Its derivative is itself with another text.

What travels in a traced or exported graph is the operation's canonical text; here it is parsed once.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch

from ._known import Described, gradient_of, known, tangent_of
from ._launch import NotPlainError, prepared
from ._native import native


def _run(text: str, tensors: list[torch.Tensor], rows: list[int]) -> list[torch.Tensor]:
    what = known(text)
    inputs, indices = tensors[: len(what.inputs)], tensors[len(what.inputs) :]
    return prepared(what, inputs, indices)(inputs, indices, rows)


#: Whether the operator runs without Python.
NATIVE = native is not None
if not NATIVE:
    torch.library.define("clebsch::run", "(str text, Tensor[] tensors, SymInt[] rows) -> Tensor[]")
    torch.library.impl("clebsch::run", ["cpu", "cuda"], _run)


@torch.library.register_fake("clebsch::run")
def _shapes(text: str, tensors: list[torch.Tensor], rows: list[Any]) -> list[torch.Tensor]:
    """What a call returns, for tracing."""
    what = known(text)
    like = tensors[0] if what.inputs else torch.empty(())
    return [like.new_empty((1 if space < 0 else rows[space], size)) for space, size in what.output_shapes]


def call_operator(text: str, inputs: list[torch.Tensor], indices: list[torch.Tensor], rows: list[int]) -> list[torch.Tensor]:
    """The operator takes inputs and indices as one list, which is never empty: packaged models lose empty ones."""
    return torch.ops.clebsch.run.default(text, [*inputs, *indices], rows)


# Derivatives of the operator itself, as compilers trace it
# -----------------------------------------------------------------------------------------------------------------------------


def _remember(ctx: Any, inputs: tuple[Any, ...], output: list[torch.Tensor]) -> None:
    """Keeps what the derivative reads, and nothing else."""
    text, tensors, rows = inputs
    count = len(known(text).inputs)
    gradient = gradient_of(text, tuple(i for i, tensor in enumerate(tensors[:count]) if tensor.requires_grad))
    ctx.gradient, ctx.rows, ctx.count = gradient, rows, len(tensors)
    ctx.save_for_backward(*(tensors[i] for i in gradient.inputs), *(tensors[count + i] for i in gradient.indices))


def _backward(ctx: Any, cotangents: list[torch.Tensor]) -> tuple[Any, ...]:
    gradient, count, saved = ctx.gradient, len(ctx.gradient.inputs), ctx.saved_tensors
    results = gradient(call_operator, saved[:count], saved[count:], cotangents, ctx.rows)
    gradients: list[torch.Tensor | None] = [None] * ctx.count
    for i, result in zip(gradient.wanted, results, strict=True):
        gradients[i] = result
    return None, gradients, None if ctx.rows else []


torch.library.register_autograd("clebsch::run", _backward, setup_context=_remember)


# Eager calls: the same derivatives, and forward mode and vmap, which an operator cannot have from Python
# -----------------------------------------------------------------------------------------------------------------------------


def run(text: str, inputs: list[torch.Tensor], indices: list[torch.Tensor], rows: list[int]) -> list[torch.Tensor]:
    """Runs the operation of a text: tensors and numbers of rows in the text's order. Under autocast in float32: sums over many
    products are what 16-bit numbers are worst at."""
    if torch.compiler.is_compiling():
        return call_operator(text, _without_autocast(inputs), indices, rows)
    if torch._C._is_any_autocast_enabled():
        inputs = _without_autocast(inputs)
    if torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0:
        return list(Run.apply(text, tuple(rows), len(inputs), *inputs, *indices))
    if torch.is_grad_enabled():
        for tensor in inputs:
            if tensor.requires_grad:
                return list(EagerRun.apply(text, rows, len(inputs), *inputs, *indices))
    return _call(text, inputs, indices, rows)


def _without_autocast(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    if inputs and inputs[0].device.type in ("cpu", "cuda") and torch.is_autocast_enabled(inputs[0].device.type):
        return [tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor for tensor in inputs]
    return inputs


_modes = torch._C._len_torch_dispatch_stack
_PLAIN_TYPES = {torch.Tensor, torch.nn.Parameter}


def _call(text: str, inputs: list[torch.Tensor], indices: list[torch.Tensor], rows: list[int]) -> list[torch.Tensor]:
    """The operator without derivatives. The dispatcher takes longer than everything else: it is asked where someone listens to it
    (tracers, profilers, modes) or where tensors are of a kind that it translates."""
    if not (_modes() or torch._C._get_tracing_state() or torch.autograd._profiler_enabled()):
        for tensor in inputs:
            if type(tensor) not in _PLAIN_TYPES or tensor.is_neg():
                break
        else:
            plain = not indices or all([type(index) is torch.Tensor for index in indices])
            if plain and (not inputs or inputs[0].is_cpu or inputs[0].is_cuda):
                plan = prepared(known(text), inputs, indices)
                found = plan.direct(inputs, indices, rows)
                if found is not None:
                    return found
                try:
                    return plan(inputs, indices, rows)
                except NotPlainError:
                    pass
    return call_operator(text, inputs, indices, rows)


class Run(torch.autograd.Function):
    """Arguments: text, rows, number of inputs, inputs and indices."""

    @staticmethod
    def forward(text: str, rows: tuple[int, ...], count: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        return tuple(_call(text, list(tensors[:count]), list(tensors[count:]), list(rows)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        ctx.text, ctx.rows, ctx.count = inputs[:3]
        tensors: list[Any] = list(inputs[3:])
        ctx.save_for_forward(*tensors)
        if not torch._C._are_functorch_transforms_active():  # then only what the derivative reads
            wanted, read = tuple(i for i in range(ctx.count) if ctx.needs_input_grad[3 + i]), set()
            if wanted:
                gradient = gradient_of(ctx.text, wanted)
                read = {*gradient.inputs, *(ctx.count + i for i in gradient.indices)}
            tensors = [tensor if i in read else None for i, tensor in enumerate(tensors)]
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        gradient = gradient_of(ctx.text, tuple(i for i in range(ctx.count) if ctx.needs_input_grad[3 + i]))
        saved = ctx.saved_tensors  # once: checkpoints compute them again for it
        inputs, indices = [saved[i] for i in gradient.inputs], [saved[ctx.count + i] for i in gradient.indices]
        results: list[Any] = [None] * len(ctx.needs_input_grad)
        for i, result in zip(gradient.wanted, gradient(run, inputs, indices, cotangents, ctx.rows), strict=True):
            results[3 + i] = result
        return tuple(results)

    @staticmethod
    def jvp(ctx: Any, *tangents: torch.Tensor | None) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        along = [tangent for tangent in tangents[3 : 3 + ctx.count] if tangent is not None]
        tangent = tangent_of(ctx.text, tuple(i for i in range(ctx.count) if tangents[3 + i] is not None))
        saved = ctx.saved_tensors
        inputs, indices = [saved[i] for i in tangent.inputs], [saved[ctx.count + i] for i in tangent.indices]
        found = dict(zip(tangent.places.outputs, tangent(run, inputs, indices, along, ctx.rows), strict=True))
        shapes = known(ctx.text).output_shapes
        like = saved[0]
        return tuple(
            found[i] if i in found else like.new_zeros((1 if space < 0 else ctx.rows[space], size))
            for i, (space, size) in enumerate(shapes)
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], text: str, rows: tuple[int, ...], count: int, *tensors: torch.Tensor) -> Any:
        batch = Batch(info.batch_size, list(zip(tensors, in_dims[3:], strict=True)))
        return batch.run(run, text, count, list(rows))


class EagerRun(torch.autograd.Function):
    """`Run` for calls under no transform, which cost half as much this way: no forward mode, no vmap."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, text: str, rows: list[int], count: int, *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        gradient = gradient_of(text, tuple([i for i, needed in enumerate(ctx.needs_input_grad[3 : 3 + count]) if needed]))
        ctx.text, ctx.gradient, ctx.rows = text, gradient, rows
        ctx.save_for_backward(*(tensors[i] for i in gradient.inputs), *(tensors[count + i] for i in gradient.indices))
        return tuple(_call(text, list(tensors[:count]), list(tensors[count:]), rows))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        whole, saved = ctx.gradient, ctx.saved_tensors
        count = len(whole.inputs)
        gradient, inputs, indices = whole, saved[:count], saved[count:]
        if len(whole.wanted) > 1:
            asked = tuple([i for i in whole.wanted if _is_asked_for(ctx.next_functions[i][0])])
            if asked and len(asked) < len(whole.wanted):
                gradient = gradient_of(ctx.text, asked)
                inputs = [saved[whole.inputs.index(i)] for i in gradient.inputs]
                indices = [saved[count + whole.indices.index(i)] for i in gradient.indices]
        results: list[Any] = [None] * len(ctx.needs_input_grad)
        for i, result in zip(gradient.wanted, gradient(run, inputs, indices, cotangents, ctx.rows), strict=True):
            results[3 + i] = result
        return tuple(results)


#: The latest backward pass that does not say which leaves it was asked for, as torch.autograd.grad's do not. To ask costs it an
#: exception each time, tens of microseconds.
_silent_about_leaves = [-1]


def _is_asked_for(node: Any) -> bool:
    """Whether this backward pass goes on to a node. `needs_input_grad` says whether one could: forces need none of weights."""
    leaf = type(node).__name__ == "AccumulateGrad"
    if leaf and torch._C._current_graph_task_id() == _silent_about_leaves[0]:
        return True
    try:
        return bool(torch._C._will_engine_execute_node(node))
    except RuntimeError:
        if leaf:
            _silent_about_leaves[0] = torch._C._current_graph_task_id()
        return True


# PyTorch asks for the signature in every call; making it takes longer than the call.
Run.forward.__signature__ = inspect.signature(Run.forward)  # type: ignore[attr-defined]


@dataclass
class Batch:
    """Inputs, then indices, each with the dimension of its batch; None: the same for all."""

    size: int
    tensors: list[tuple[torch.Tensor, int | None]]

    def run(self, call: Any, text: str, count: int, rows: list[int]) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
        """The batch as further rows; one by one where an array of one row is batched or summed into. The batch comes first."""
        what = known(text)
        inputs, indices = self.tensors[:count], self.tensors[count:]
        alone = any(space < 0 for space, _ in what.output_shapes)
        alone |= any(space < 0 and dim is not None for (space, _), (_, dim) in zip(what.input_shapes, inputs, strict=True))
        for index, (tensor, _) in zip(what.operation.indices, indices, strict=True):
            alone |= index.sorted and bool((tensor < 0).any())  # masked rows begin every part
        found = self._one_by_one(call, text, count, rows) if alone else self._folded(call, what, text, count, rows)
        return tuple(found), (0,) * len(found)

    def _one_by_one(self, call: Any, text: str, count: int, rows: list[int]) -> list[torch.Tensor]:
        results = []
        for i in range(self.size):
            one = [tensor if dim is None else tensor.select(dim, i) for tensor, dim in self.tensors]
            results.append(call(text, one[:count], one[count:], rows))
        if not results:
            like = self.tensors[0][0]
            return [like.new_empty((0, 1 if space < 0 else rows[space], size)) for space, size in known(text).output_shapes]
        return [torch.stack(each) for each in zip(*results, strict=True)]

    def _folded(self, call: Any, what: Described, text: str, count: int, rows: list[int]) -> list[torch.Tensor]:
        parts = [tensor.expand(self.size, *tensor.shape) if dim is None else tensor.movedim(dim, 0) for tensor, dim in self.tensors]
        inputs = [
            tensor if space < 0 else part.reshape(self.size * rows[space], size)
            for part, (tensor, _), (space, size) in zip(parts[:count], self.tensors[:count], what.input_shapes, strict=True)
        ]
        indices = []
        for part, index in zip(parts[count:], what.operation.indices, strict=True):
            target = rows[what.spaces.index(index.target)]
            begin = target * torch.arange(self.size, dtype=part.dtype, device=part.device)[:, None]
            # What is no row of its own part must not become one of the next: it goes beyond all, where the call refuses it.
            shift = torch.where(part < target, begin, self.size * target)
            indices.append(torch.where(part < 0, part, part + shift).reshape(-1))
        found = call(text, inputs, indices, [self.size * number for number in rows])
        return [out.reshape(self.size, rows[space], size) for out, (space, size) in zip(found, what.output_shapes, strict=True)]


def _operator_vmap(info: Any, in_dims: Any, text: str, tensors: Any, rows: Any) -> Any:
    batch = Batch(info.batch_size, list(zip(tensors, in_dims[1], strict=True)))
    found, places = batch.run(call_operator, text, len(known(text).inputs), list(rows))
    return list(found), list(places)


if hasattr(torch.library, "register_vmap"):  # PyTorch 2.5
    torch.library.register_vmap("clebsch::run", _operator_vmap)
