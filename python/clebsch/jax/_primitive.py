"""One JAX primitive for every operation: parameters are a description, numbers of rows and whether sums on a GPU have one order;
arrays are the inputs, then the indices.

Its derivative along inputs and its transpose are the same primitive with another description, so any order and any mix of forward
and reverse mode works. XLA calls the handlers of libclebsch_jax.so: nothing of Python runs when a compiled function does.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

from .._derivatives import Described, gradient_of, tangent_of
from .._library import ClebschError, _library_path
from ..operation import DTYPES

_TARGET = "clebsch_run"


def _load() -> ctypes.CDLL:
    """libclebsch_jax.so, whose handlers become known to XLA."""
    path = Path(_library_path()).parent / "libclebsch_jax.so"
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"clebsch.jax: cannot load {path}: {error}") from error
    handlers = {"instantiate": library.clebsch_jax_host_instantiate, "execute": library.clebsch_jax_host_execute}
    on_gpu = {"initialize": library.clebsch_jax_gpu_initialize, "execute": library.clebsch_jax_gpu_execute}
    for platform, stages in (("cpu", handlers), ("CUDA", on_gpu)):
        capsules = {stage: jax.ffi.pycapsule(handler) for stage, handler in stages.items()}
        jax.ffi.register_ffi_target(_TARGET, capsules, platform=platform)
    library.clebsch_jax_gpu_workspace_size.restype = c_int
    library.clebsch_jax_gpu_workspace_size.argtypes = [
        *(c_char_p, c_char_p, c_int, c_int, c_int, POINTER(c_int64), c_size_t),
        *(POINTER(c_size_t), c_char_p, c_size_t),
    ]
    return library


_library = _load()

run_p = Primitive("clebsch")
run_p.multiple_results = True


def run(
    what: Described, inputs: Sequence[Any], indices: Sequence[Any], rows: Sequence[Any], deterministic: bool
) -> list[jax.Array]:
    """Runs an operation: arrays and numbers of rows in the description's order. So do its derivatives."""
    return run_p.bind(*_alike([*inputs, *indices]), operation=what, rows=tuple(rows), deterministic=deterministic)


def xla_is_deterministic() -> bool:
    """Whether XLA_FLAGS asks for results on a GPU that have the same bits every time."""
    names = "xla_gpu_deterministic_ops|xla_gpu_exclude_nondeterministic_ops"
    given = dict(re.findall(rf"--({names})(?:=(\S+))?", os.environ.get("XLA_FLAGS", "")))
    return any(value.lower() in ("", "1", "true") for value in given.values())


# Shapes, and what is refused
# -----------------------------------------------------------------------------------------------------------------------------


def _shapes(*arrays: Any, operation: Described, rows: tuple[Any, ...], deterministic: bool) -> list[Any]:
    """Checks what a call gets and says what it gives, while JAX traces."""
    count = len(operation.inputs)
    inputs, indices = arrays[:count], arrays[count:]
    if len(arrays) != count + len(operation.indices) or len(rows) != len(operation.spaces):
        names = ", ".join((*operation.inputs, *operation.indices))
        raise ClebschError(f"expected arrays {names} and rows of {', '.join(operation.spaces)}, got {len(arrays)} and {len(rows)}")
    dtype = inputs[0].dtype if inputs else np.dtype(np.float32)
    for name, array, (space, size), operand in zip(
        operation.inputs, inputs, operation.input_shapes, operation.operation.inputs, strict=True
    ):
        if array.dtype.name not in DTYPES:
            raise ClebschError(f"{name}: expected float32, float64, bfloat16 or float16, got {array.dtype.name}")
        if array.dtype != dtype:
            raise ClebschError(f"{name}: expected {dtype.name} as {operation.inputs[0]}, got {array.dtype.name}")
        expected = (1 if space < 0 else rows[space], size)
        if array.shape != expected:
            where = "all rows" if space < 0 else f"the rows of '{operation.spaces[space]}'"
            raise ClebschError(f"{name}: expected shape {expected} for {operand.segments} of {where}, got {array.shape}")
    for name, array, (space, _) in zip(operation.indices, indices, operation.index_spaces, strict=True):
        if array.dtype.name not in ("int32", "int64"):
            raise ClebschError(f"{name}: expected int32 or int64, got {array.dtype.name}")
        if array.shape != (rows[space],):
            raise ClebschError(
                f"{name}: expected shape {(rows[space],)}, one per row of '{operation.spaces[space]}', got {array.shape}"
            )
    shapes = [(1 if space < 0 else rows[space], size) for space, size in operation.output_shapes]
    if not inputs:
        return [jax.core.ShapedArray(shape, dtype) for shape in shapes]
    # The first input tells over which axes of a mesh results vary (inside shard_map); else every device has all of them.
    sharding = NamedSharding(inputs[0].sharding.mesh, PartitionSpec(None, None))
    return [inputs[0].update(shape=shape, dtype=dtype, weak_type=False, sharding=sharding) for shape in shapes]


def _alike(arrays: list[Any]) -> list[Any]:
    """Arrays as one call takes them. Those that JAX's types divide over devices become whole. Inside shard_map all differ between
    devices along the same axes, as operations with one result ask for; the others' gradients are then summed over the devices."""
    arrays = [_whole(array) for array in arrays]
    axes = [_varying_axes(array) for array in arrays]
    everywhere = frozenset().union(*axes)
    return [
        _make_varying(array, tuple(sorted(everywhere - own))) if everywhere - own else array
        for array, own in zip(arrays, axes, strict=True)
    ]


def _whole(array: Any) -> Any:
    kind = jax.typeof(array)
    if all(axis is None for axis in kind.sharding.spec):
        return array
    return jax.sharding.reshard(array, PartitionSpec(*[None] * kind.ndim))


def _varying_axes(array: Any) -> frozenset[str]:
    kind = jax.typeof(array)
    manual = getattr(kind, "manual_axis_type", None) or getattr(kind, "mat", None)
    return frozenset(manual.varying if manual is not None else getattr(kind, "vma", ()))


def _make_varying(array: Any, axes: tuple[str, ...]) -> Any:
    lax: Any = jax.lax
    return lax.pcast(array, axes, to="varying") if hasattr(lax, "pcast") else lax.pvary(array, axes)


run_p.def_abstract_eval(_shapes)


@functools.partial(jax.jit, static_argnames=("operation", "rows", "deterministic"))
def _compiled(*arrays: Any, operation: Described, rows: tuple[int, ...], deterministic: bool) -> list[jax.Array]:
    return run_p.bind(*arrays, operation=operation, rows=rows, deterministic=deterministic)


run_p.def_impl(_compiled)

# What XLA is given
# -----------------------------------------------------------------------------------------------------------------------------


def _attributes(ctx: Any, operation: Described, rows: tuple[Any, ...]) -> dict[str, Any]:
    dtype = next(aval.dtype.name for aval in (*ctx.avals_in[: len(operation.inputs)], *ctx.avals_out))
    numbers = [number if isinstance(number, int) else -1 for number in rows]  # -1: symbolic; the arrays of a call tell
    shape = {"rows": np.array(numbers, dtype=np.int64)} if rows else {}
    return {"hash": operation.operation.hash, "text": operation.operation.text, "dtype": np.int64(DTYPES[dtype]), **shape}


def _on_host(ctx: Any, *arrays: Any, operation: Described, rows: tuple[Any, ...], deterministic: bool) -> Any:
    # There sums always have one order.
    return jax.ffi.ffi_lowering(_TARGET)(ctx, *arrays, **_attributes(ctx, operation, rows))


def _on_gpu(ctx: Any, *arrays: Any, operation: Described, rows: tuple[Any, ...], deterministic: bool) -> Any:
    attributes = {**_attributes(ctx, operation, rows), "deterministic": np.int64(deterministic)}
    if not all(isinstance(number, int) for number in rows):
        raise ClebschError(f"rows: expected numbers on a GPU, whose workspace is planned when JAX compiles, got {rows}")
    numbers = (c_int64 * len(rows))(*rows)
    size, message = c_size_t(), ctypes.create_string_buffer(4096)
    failed = _library.clebsch_jax_gpu_workspace_size(
        *(operation.operation.hash.encode(), operation.operation.text.encode(), int(attributes["dtype"]), 0, int(deterministic)),
        *(numbers, len(rows), byref(size), message, len(message)),
    )
    if failed:
        raise ClebschError(message.value.decode("utf-8", "replace"))
    workspace = jax.core.ShapedArray((size.value,), np.uint8)
    wider = ctx.replace(avals_out=[*ctx.avals_out, workspace])
    return jax.ffi.ffi_lowering(_TARGET)(wider, *arrays, **attributes)[:-1]


mlir.register_lowering(run_p, _on_host, platform="cpu")
mlir.register_lowering(run_p, _on_gpu, platform="cuda")

# Derivatives
# -----------------------------------------------------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, operation: Described, rows: tuple[Any, ...], deterministic: bool
) -> Any:
    outputs = run_p.bind(*primals, operation=operation, rows=rows, deterministic=deterministic)
    count = len(operation.inputs)
    wanted = tuple(i for i in range(count) if not isinstance(tangents[i], ad.Zero))
    results: list[Any] = [ad.Zero(jax.typeof(output).to_tangent_aval()) for output in outputs]
    if wanted:
        tangent = tangent_of(operation, wanted)
        inputs = [*(primals[i] for i in tangent.inputs), *(tangents[wanted[i]] for i in tangent.given)]
        indices, sizes = [primals[count + i] for i in tangent.indices], [rows[i] for i in tangent.spaces]
        found = run(tangent.described, inputs, indices, sizes, deterministic)
        for i, result in zip(tangent.outputs, found, strict=True):
            results[i] = result
    return outputs, results


def _transpose(
    cotangents: Sequence[Any], *arrays: Any, operation: Described, rows: tuple[Any, ...], deterministic: bool
) -> list[Any]:
    """Of a call that is linear in the inputs that are not known: the gradient of what is known and the cotangents."""
    count = len(operation.inputs)
    wanted = tuple(i for i in range(count) if ad.is_undefined_primal(arrays[i]))
    gradient = gradient_of(operation, wanted)
    unknown = [operation.inputs[i] for i in gradient.inputs if i in wanted]
    if unknown:
        raise ClebschError(f"{', '.join(unknown)}: the operation is not linear in it, so it has no transpose there")
    given = [ad.instantiate_zeros(cotangents[i]) for i in gradient.given]
    inputs = [*(arrays[i] for i in gradient.inputs), *given]
    indices, sizes = [arrays[count + i] for i in gradient.indices], [rows[i] for i in gradient.spaces]
    found = run(gradient.described, inputs, indices, sizes, deterministic)
    results: list[Any] = [None] * len(arrays)
    for i, result in zip(wanted, found, strict=True):
        results[i] = result
    return results


ad.primitive_jvps[run_p] = _jvp
ad.primitive_transposes[run_p] = _transpose

# Batches
# -----------------------------------------------------------------------------------------------------------------------------


def _batched(
    arrays: Sequence[Any], dims: Sequence[int | None], *, operation: Described, rows: tuple[Any, ...], deterministic: bool
) -> Any:
    """The batch as further rows; one by one where an array of one row is batched or summed into. The batch comes first."""
    count = len(operation.inputs)
    size = next(array.shape[dim] for array, dim in zip(arrays, dims, strict=True) if dim is not None)
    shared = any(space < 0 for space, _ in operation.output_shapes)
    shared |= any(space < 0 and dim is not None for (space, _), dim in zip(operation.input_shapes, dims, strict=False))
    if shared:
        batched = [jnp.moveaxis(array, dim, 0) for array, dim in zip(arrays, dims, strict=True) if dim is not None]

        def one(parts: list[Any]) -> list[Any]:
            rest = iter(parts)
            all_arrays = [array if dim is None else next(rest) for array, dim in zip(arrays, dims, strict=True)]
            return run(operation, all_arrays[:count], all_arrays[count:], rows, deterministic)

        found = jax.lax.map(one, batched)
        return found, [0] * len(found)
    parts = [
        jnp.broadcast_to(array, (size, *array.shape)) if dim is None else jnp.moveaxis(array, dim, 0)
        for array, dim in zip(arrays, dims, strict=True)
    ]
    inputs = [
        array if space < 0 else part.reshape(size * rows[space], width)
        for array, part, (space, width) in zip(arrays[:count], parts[:count], operation.input_shapes, strict=True)
    ]
    indices = []
    for part, (_, target) in zip(parts[count:], operation.index_spaces, strict=True):
        first = rows[target] * jnp.arange(size, dtype=part.dtype)[:, None]
        inside = (part >= 0) & (part < rows[target])  # what is no row of its own part must not become one of another
        indices.append(jnp.where(inside, part + first, -1).reshape(-1))
    found = run(operation, inputs, indices, [size * number for number in rows], deterministic)
    shapes = [(size, rows[space], width) for space, width in operation.output_shapes]
    return [array.reshape(shape) for array, shape in zip(found, shapes, strict=True)], [0] * len(found)


batching.primitive_batchers[run_p] = _batched
