"""clebsch.jax: values beside NumPy plans and e3nn-jax, derivatives to third order, batches, padding, what is refused.

On a machine whose default backend is a GPU the same tests run there, except those that say what the CPU alone has.
"""

from __future__ import annotations

import copy
import functools
import pickle
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clebsch
import clebsch.jax as cj
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from jax_graph import Graph, _double, near, normal  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[2]
ON_GPU = jax.default_backend() != "cpu"
TOLERANCES = {"float64": 1e-12, "float32": 3e-5, "bfloat16": 3e-2, "float16": 4e-3}


# Operations with the rows of their spaces
OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "convolution": ("convolution", {"in_": "4x0e+3x1o", "edge": "0e+1o+2e", "out": "0e+1o+1e"}),
    "convolution, ir_mul, unsorted": (
        "convolution",
        {"in_": "4x0e+3x1o", "edge": "0e+1o", "out": "0e+1o", "x_layout": "ir_mul", "out_layout": "ir_mul", "sorted": False},
    ),
    "fully connected": ("fully_connected", {"in1": "3x0e+2x1o", "in2": "0e+1o", "out": "2x0e+2x1o"}),
    "weights per row": ("fully_connected", {"in1": "3x0e+2x1o", "in2": "0e+1o", "out": "2x0e+2x1o", "weights": "per_row"}),
    "full product": ("full_product", {"in1": "2x1o", "in2": "3x2e"}),
    "linear": ("linear", {"in_": "5x0e+4x1o", "out": "3x0e+2x1o", "biases": True}),
    "harmonics": ("spherical_harmonics", {"irreps": "0e+1o+2e+3o"}),
    "contraction": ("symmetric_contraction", {"in_": "3x0e+3x1o", "out": "3x0e+3x1o", "correlation": 2}),
    "pooling": ("pooling", {"irreps": "3x0e+1x1o"}),
    "radial network": ("radial_network", {"cutoff": 5.0, "outputs": 6, "hidden": "8,8"}),
}


def arrays_of(operation: clebsch.Operation, dtype: str) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    rows = {space: 5 + 6 * i for i, space in enumerate(reversed(operation.spaces))}
    arrays: dict[str, Any] = {}
    for operand in operation.inputs:
        numbers = rng.normal(size=(1 if operand.space is None else rows[operand.space], operand.row_size))
        arrays[operand.name] = np.abs(numbers) + 0.5 if operand.name == "lengths" else numbers
    arrays = {name: np.asarray(jnp.asarray(array, dtype=dtype)) for name, array in arrays.items()}
    for index in operation.indices:
        values = rng.integers(0, rows[index.target], rows[index.source])
        arrays[index.name] = np.sort(values) if index.sorted else values
    return {"rows": rows, **arrays}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_values_are_those_of_numpy_plans(name: str, dtype: str) -> None:
    builder, options = OPERATIONS[name]
    operation = clebsch.build(builder, **options)
    arrays = arrays_of(operation, dtype)
    passed = {
        key: value.view(np.uint16) if str(getattr(value, "dtype", "")) == "bfloat16" else value for key, value in arrays.items()
    }
    expected = operation.plan(dtype)(**passed)
    if dtype == "bfloat16":
        expected = expected.view(jnp.bfloat16)
    found = jax.jit(lambda arrays: cj.Operation(operation)(rows=arrays_rows, **arrays))
    arrays_rows = arrays.pop("rows")
    result = found(arrays)
    assert result.dtype.name == dtype
    if ON_GPU:
        near(result, expected, TOLERANCES[dtype])
    else:  # the same plan on the same numbers
        np.testing.assert_array_equal(np.asarray(result), expected)


# Derivatives
# -----------------------------------------------------------------------------------------------------------------------------

CONTRACTION = cj.SymmetricContraction("2x0e+2x1o", "2x0e", 2)
DERIVED: dict[str, Callable[[], tuple[Any, tuple[np.ndarray, ...]]]] = {
    "convolution": lambda: (Graph(6, 15), Graph(6, 15).floats),
    "harmonics": lambda: (cj.SphericalHarmonics("0e+1o+2e", True), (normal(1, 4, 3),)),
    "shared weights": lambda: (
        cj.FullyConnectedTensorProduct("2x0e+2x1o", "0e+1o", "2x0e+2x1o"),
        (normal(1, 3, 8), normal(2, 3, 4), normal(3, 16)),
    ),
    "contraction": lambda: (
        lambda x, weights: CONTRACTION(x, np.array([1, 0, 1]), weights),
        (normal(1, 3, 8), normal(2, 2, CONTRACTION.weight_numel)),
    ),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_to_third_order(name: str) -> None:
    function, arrays = DERIVED[name]()
    check_grads(jax.jit(function), arrays, order=3, modes=["fwd", "rev"], rtol=1e-4, atol=1e-4)


def test_gradient_is_the_librarys_own() -> None:
    graph = Graph()
    cotangent = normal(9, *graph(*graph.floats).shape)
    _, pull = jax.vjp(graph, *graph.floats)
    arrays = {"x": graph.x, "y": graph.y, "weights": graph.weights, "sender": graph.sender, "receiver": graph.receiver}
    expected = graph.convolution.description.vjp("x", "y", "weights")(out_cotangent=cotangent, **arrays)
    for found, name in zip(pull(jnp.asarray(cotangent)), ("x", "y", "weights"), strict=True):
        near(found, expected[f"{name}_gradient"])


def test_mixed_modes_agree() -> None:
    graph = Graph(5, 8)

    def loss(y: Any) -> Any:
        return (graph(graph.x, y, graph.weights) ** 3).sum()

    hessian = jax.hessian(loss)(graph.y)
    near(hessian, jax.jacrev(jax.jacrev(loss))(graph.y))
    direction = normal(4, *graph.y.shape)
    near(jax.jvp(jax.grad(loss), (graph.y,), (direction,))[1], jnp.tensordot(hessian, direction, 2))
    near(jax.grad(lambda y: jax.jvp(loss, (y,), (direction,))[1])(graph.y), jnp.tensordot(hessian, direction, 2))


def test_transpose_of_a_linear_argument() -> None:
    graph = Graph()
    transposed = jax.linear_transpose(lambda x: graph(x, graph.y, graph.weights), graph.x)
    cotangent = normal(9, *graph(*graph.floats).shape)
    near(transposed(cotangent)[0], jax.vjp(graph, *graph.floats)[1](cotangent)[0])
    harmonics = cj.SphericalHarmonics("2e", False)
    with pytest.raises(clebsch.ClebschError, match="not linear"):
        jax.linear_transpose(harmonics, normal(1, 4, 3))(normal(2, 4, 5))


def test_gradient_of_some_inputs_reads_no_others() -> None:
    graph = Graph()
    text = str(jax.make_jaxpr(jax.grad(lambda x: graph(x, graph.y, graph.weights).sum()))(graph.x))
    assert "-> x_tangent_gradient>" in text


# Batches
# -----------------------------------------------------------------------------------------------------------------------------


def test_vmap_over_graphs_is_one_call() -> None:
    graph = Graph()
    x, sender = normal(1, 3, *graph.x.shape), np.stack([graph.sender, np.roll(graph.sender, 1), graph.sender])
    receiver = np.stack([graph.receiver, graph.receiver, np.where(graph.receiver > 6, graph.nodes, graph.receiver)])
    batched = jax.vmap(graph.convolution, in_axes=(0, None, None, 0, 0))
    found = jax.jit(batched)(x, graph.y, graph.weights, sender, receiver)
    for i in range(3):
        near(found[i], graph.convolution(x[i], graph.y, graph.weights, sender[i], receiver[i]))
    assert str(jax.make_jaxpr(batched)(x, graph.y, graph.weights, sender, receiver)).count("clebsch[") == 1


def test_vmap_over_shared_weights() -> None:
    product = cj.FullyConnectedTensorProduct("2x0e+2x1o", "0e+1o", "2x0e+2x1o")
    x, y, weights = normal(1, 5, 8), normal(2, 5, 4), normal(3, 4, 16)
    found = jax.vmap(product, in_axes=(None, None, 0), out_axes=1)(x, y, weights)
    for i in range(4):
        near(found[:, i], product(x, y, weights[i]))
    per_row = jax.vmap(jax.grad(lambda w, x, y: product(x, y, w).sum()), in_axes=(None, 0, 0))(weights[0], x, y)
    near(per_row.sum(0), jax.grad(lambda w: product(x, y, w).sum())(weights[0]))


# Padding, donation, compiling, memory, time
# -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sentinel", [-1, 9, 10**6])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_padding_is_left_out(sentinel: int, dtype: Any) -> None:
    graph = Graph()
    padding = np.full(7, sentinel, dtype=dtype)
    sender, receiver = (np.concatenate([index.astype(dtype), padding]) for index in (graph.sender, graph.receiver))
    y, weights = (np.concatenate([array, np.full((7, array.shape[1]), np.inf)]) for array in (graph.y, graph.weights))
    near(jax.jit(graph.convolution)(graph.x, y, weights, sender, receiver), graph.numpy())
    gradient = jax.grad(lambda y: graph.convolution(graph.x, y, weights, sender, receiver).sum())(y)
    assert not np.asarray(gradient[-7:]).any()
    near(gradient[:-7], jax.grad(lambda y: graph(graph.x, y, graph.weights).sum())(graph.y))


def test_padded_graphs_as_jraph_makes_them() -> None:
    """Graphs side by side, padded to fixed numbers of nodes and edges: padding edges join padding nodes."""
    graph = Graph()
    nodes, edges = 16, 64
    x = np.concatenate([graph.x, np.zeros((nodes - graph.nodes, graph.x.shape[1]))])
    y, weights = (np.concatenate([array, np.zeros((edges - graph.edges, array.shape[1]))]) for array in (graph.y, graph.weights))
    to_padding = np.full(edges - graph.edges, graph.nodes)  # jraph: the first padding node
    inside = np.arange(edges) < graph.edges

    @jax.jit
    def convolution(x: Any, y: Any, weights: Any, sender: Any, receiver: Any, inside: Any) -> Any:
        skipped = jnp.where(inside, receiver, -1)
        return graph.convolution(x, y, weights, sender, skipped)

    sender, receiver = (np.concatenate([index, to_padding]) for index in (graph.sender, graph.receiver))
    found = convolution(x, y, weights, sender, receiver, inside)
    near(found[: graph.nodes], graph.numpy())
    assert not np.asarray(found[graph.nodes :]).any()
    # Left in, padding edges are computed for nothing, into padding nodes: the same result at the nodes that are real.
    near(graph.convolution(x, y, weights, sender, receiver)[: graph.nodes], graph.numpy())


def test_donated_arrays() -> None:
    linear = cj.Linear("8x0e+4x1o", "8x0e+4x1o")
    x, weights = normal(1, 50, 20), normal(2, linear.weight_numel)
    step = jax.jit(lambda x, weights: x + linear(x, weights), donate_argnums=0)
    expected, given = x + linear.description(x=x, weights=weights[None]), jnp.array(x)
    near(step(given, weights), expected)
    assert given.is_deleted()


def test_same_shapes_compile_once() -> None:
    graph, traces = Graph(), []

    @functools.partial(jax.jit, static_argnums=0)
    def loss(convolution: Any, *arrays: Any) -> Any:
        traces.append(1)
        return (convolution(*arrays) ** 2).sum()

    for scale in (1.0, 2.0, 3.0):  # an equal function, made anew, is the same static argument
        equal = cj.Convolution("4x0e+3x1o+2x2e", "0e+1o+2e", "0e+1o+2e")
        loss(equal, scale * graph.x, graph.y, graph.weights, graph.sender, graph.receiver)
    assert len(traces) == 1
    assert loss._cache_size() == 1


def test_nothing_of_python_runs_when_compiled_code_does() -> None:
    graph = Graph()
    compiled = jax.jit(jax.grad(lambda x: graph(x, graph.y, graph.weights).sum())).lower(graph.x).compile()
    text = compiled.as_text()
    assert 'custom_call_target="clebsch_run"' in text
    assert "callback" not in text


def test_no_array_of_messages() -> None:
    """Beyond arguments and results a gradient step needs less memory than one array of messages (edges x output row) would."""
    graph = Graph(50, 4000)
    step = jax.jit(jax.value_and_grad(lambda *arrays: (graph(*arrays) ** 2).sum(), argnums=(0, 1, 2)))
    memory = step.lower(*graph.floats).compile().memory_analysis()
    messages = graph.edges * graph.convolution.irreps_out.dim * 8
    assert memory.temp_size_in_bytes < messages / (1 if ON_GPU else 10)


@pytest.mark.skipif(ON_GPU, reason="of the CPU")
def test_overhead_of_a_call() -> None:
    linear, x, weights = cj.Linear("1x0e", "1x0e"), jnp.ones((1, 1)), jnp.ones((1,))
    ours, identity = jax.jit(linear), jax.jit(lambda x, weights: x * weights)

    def shortest(function: Any) -> float:
        times = []
        for _ in range(2000):
            begin = time.perf_counter()
            function(x, weights).block_until_ready()
            times.append(time.perf_counter() - begin)
        return min(times)

    shortest(ours)
    assert shortest(ours) - shortest(identity) < 10e-6


@pytest.mark.skipif(ON_GPU, reason="symbolic sizes are for the CPU")
def test_export_with_symbolic_sizes() -> None:
    from jax import export

    graph = Graph()
    nodes, edges = export.symbolic_shape("nodes, edges")
    shapes = [(nodes, graph.x.shape[1]), (edges, 9), (edges, graph.convolution.weight_numel)]
    specs = [jax.ShapeDtypeStruct(shape, np.float64) for shape in shapes] + [jax.ShapeDtypeStruct((edges,), np.int32)] * 2
    allowed = [export.DisabledSafetyCheck.custom_call("clebsch_run")]
    exported = export.export(jax.jit(graph.convolution), disabled_checks=allowed)(*specs)
    near(exported.call(*graph.floats, graph.sender, graph.receiver), graph.numpy())


def test_functions_are_values() -> None:
    graph = Graph()
    for other in (pickle.loads(pickle.dumps(graph.convolution)), copy.deepcopy(graph.convolution)):
        assert other == graph.convolution
        assert hash(other) == hash(graph.convolution)
        near(other(*graph.floats, graph.sender, graph.receiver), graph.numpy())


# What is refused, while tracing
# -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": np.zeros((40, 8))}, "y: expected shape"),
        ({"y": np.zeros((41, 9))}, "y: expected shape"),
        ({"y": np.zeros((40, 9), np.float32)}, "y: expected float64 as x, got float32"),
        ({"x": np.zeros((9, 23), np.int32)}, "x: expected float32, float64, bfloat16 or float16, got int32"),
        ({"sender": np.zeros(40)}, "sender: expected int32 or int64, got float64"),
        ({"receiver": np.zeros(39, np.int32)}, "receiver: expected shape"),
        ({"weights": None}, "weights: expected an array, got None"),
    ],
)
def test_bad_arrays_are_named(changed: dict[str, Any], message: str) -> None:
    graph = Graph()
    arrays = {"x": graph.x, "edge_attr": graph.y, "weights": graph.weights, "sender": graph.sender, "receiver": graph.receiver}
    arrays |= {"edge_attr" if name == "y" else name: array for name, array in changed.items()}
    with pytest.raises(clebsch.ClebschError, match=message):
        jax.eval_shape(lambda: graph.convolution(**arrays))


@pytest.mark.skipif(ON_GPU, reason="a GPU's kernels do not look at the order")
def test_receivers_that_do_not_ascend() -> None:
    """What only values tell comes when the call runs, with the library's message."""
    graph = Graph()
    with pytest.raises(Exception, match="index 'receiver': declared as sorted, but entry [0-9]+ is"):
        jax.jit(graph.convolution)(*graph.floats, graph.sender, graph.receiver[::-1]).block_until_ready()


def test_other_bad_calls() -> None:
    product = cj.FullyConnectedTensorProduct("2x0e", "1x0e", "2x0e")
    with pytest.raises(clebsch.ClebschError, match="x: expected a last dimension of 2"):
        product(jnp.ones((4, 3)), jnp.ones((4, 1)), jnp.ones(4))
    with pytest.raises(clebsch.ClebschError, match="weights: expected 4 numbers"):
        product(jnp.ones((4, 2)), jnp.ones((4, 1)), jnp.ones(5))
    with pytest.raises(clebsch.ClebschError, match="broadcast"):
        product(jnp.ones((4, 2)), jnp.ones((3, 1)), jnp.ones(4))
    with pytest.raises(clebsch.ClebschError, match="space 'graph' follows from no input"):
        cj.Operation(clebsch.build("pooling", irreps="1x0e"))(x=jnp.ones((3, 1)), graph_of_node=jnp.zeros(3, jnp.int32))


# Layouts and e3nn-jax
# -----------------------------------------------------------------------------------------------------------------------------


def test_layouts() -> None:
    irreps, flipped = "4x0e+3x1o", cj.Operation(clebsch.build("layout_change", irreps="4x0e+3x1o", out_layout="ir_mul"))
    x, y, weights = normal(1, 5, 13), normal(2, 5, 4), normal(3, 14)
    ours = cj.FullyConnectedTensorProduct(irreps, "0e+1o", "2x0e", layout="ir_mul")
    theirs = cj.FullyConnectedTensorProduct(irreps, "0e+1o", "2x0e")
    near(ours(flipped(x=x), y, weights), theirs(x, y, weights))


def test_irreps_arrays() -> None:
    e3nn = pytest.importorskip("e3nn_jax")
    graph = Graph()
    x, y = e3nn.IrrepsArray("4x0e+3x1o+2x2e", jnp.asarray(graph.x)), e3nn.IrrepsArray("0e+1o+2e", jnp.asarray(graph.y))
    found = graph.convolution(x, y, graph.weights, graph.sender, graph.receiver)
    assert isinstance(found, e3nn.IrrepsArray)
    assert clebsch.Irreps(str(found.irreps)).simplify() == graph.convolution.irreps_out.simplify()
    near(found.array, graph.numpy())
    gradient = jax.jit(jax.grad(lambda x: (graph.convolution(x, y, graph.weights, graph.sender, graph.receiver).array ** 2).sum()))(
        x
    )
    assert isinstance(gradient, e3nn.IrrepsArray)
    with pytest.raises(clebsch.ClebschError, match="x: expected irreps 4x0e.*got 4x0e"):
        graph.convolution(e3nn.IrrepsArray("4x0e+3x1e+2x2e", x.array), y, graph.weights, graph.sender, graph.receiver)
    other = cj.Linear("4x0e+3x1o", "4x0e+3x1o", layout="ir_mul")
    with pytest.raises(clebsch.ClebschError, match="x: expected layout ir_mul, got an IrrepsArray, whose layout is mul_ir"):
        other(e3nn.IrrepsArray("4x0e+3x1o", jnp.ones((2, 13))), jnp.ones(other.weight_numel))


def test_beside_e3nn_jax() -> None:
    """Values and three derivatives of a layer: harmonics, gather, tensor product, scatter."""
    e3nn = pytest.importorskip("e3nn_jax")
    rng = np.random.default_rng(3)
    nodes, edges = 6, 20
    sender, receiver = rng.integers(0, nodes, edges), np.sort(rng.integers(0, nodes, edges))
    x, vectors = jnp.asarray(normal(1, nodes, 4 + 9)), jnp.asarray(normal(2, edges, 3))
    convolution = cj.Convolution("4x0e+3x1o", "0e+1o+2e", "0e+1o", weights="shared")
    weights = jnp.ones(convolution.weight_numel)

    def ours(x: Any, vectors: Any) -> Any:
        return convolution(x, cj.spherical_harmonics("0e+1o+2e", vectors, True), weights, sender, receiver)

    def theirs(x: Any, vectors: Any) -> Any:
        features, arrows = e3nn.IrrepsArray("4x0e+3x1o", x), e3nn.IrrepsArray("1o", vectors)
        harmonics = e3nn.spherical_harmonics("0e+1o+2e", arrows, True)
        messages = e3nn.tensor_product(features[sender], harmonics, filter_ir_out="0e+1o", regroup_output=False)
        return e3nn.scatter_sum(messages, dst=receiver, output_size=nodes).array

    near(ours(x, vectors), jax.jit(theirs)(x, vectors), 1e-10)
    along = [jnp.asarray(normal(seed, edges, 3)) for seed in (5, 6)]

    def derivatives(layer: Any) -> list[Any]:
        def loss(vectors: Any) -> Any:
            return (layer(x, vectors) ** 2).sum()

        def second(vectors: Any) -> Any:
            return jax.jvp(jax.grad(loss), (vectors,), (along[0],))[1]

        return jax.jit(lambda v: [jax.grad(loss)(v), second(v), jax.jvp(second, (v,), (along[1],))[1]])(vectors)

    for found, expected in zip(derivatives(ours), derivatives(theirs), strict=True):
        near(found, expected, 1e-9)


def test_tensor_products_beside_e3nn_jax() -> None:
    e3nn, legacy = pytest.importorskip("e3nn_jax"), pytest.importorskip("e3nn_jax.legacy")
    x, y = normal(1, 5, 3 + 6), normal(2, 5, 4)
    theirs = legacy.FunctionalFullyConnectedTensorProduct("3x0e+2x1o", "0e+1o", "2x0e+3x1o")
    ours = cj.FullyConnectedTensorProduct("3x0e+2x1o", "0e+1o", "2x0e+3x1o")
    shapes = [instruction.path_shape for instruction in theirs.instructions]
    weights = [normal(i, *shape) for i, shape in enumerate(shapes)]
    flat = np.concatenate([weight.reshape(-1) for weight in weights])
    assert [(ins.i_in1, ins.i_in2, ins.i_out) for ins in theirs.instructions] == [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]
    expected = jax.vmap(
        lambda x, y: theirs.left_right(weights, e3nn.IrrepsArray("3x0e+2x1o", x), e3nn.IrrepsArray("0e+1o", y)).array
    )(jnp.asarray(x), jnp.asarray(y))
    near(ours(x, y, flat), expected, 1e-10)
    from e3nn_jax._src.linear import FunctionalLinear

    linear = FunctionalLinear("3x0e+2x1o", "4x0e+1x1o", path_normalization="element", gradient_normalization="path")
    parts = [normal(i, *instruction.path_shape) for i, instruction in enumerate(linear.instructions)]
    expected = jax.vmap(lambda x: linear(parts, e3nn.IrrepsArray("3x0e+2x1o", x)).array)(jnp.asarray(x))
    near(cj.Linear("3x0e+2x1o", "4x0e+1x1o")(x, np.concatenate([part.reshape(-1) for part in parts])), expected, 1e-10)


# The interface
# -----------------------------------------------------------------------------------------------------------------------------

NAMES = {  # ours: XLA's
    "xla_ffi_version": ("XLA_FFI_Api_Version", {"major": "major_version", "minor": "minor_version"}),
    "xla_ffi_metadata": ("XLA_FFI_Metadata", {"version": "api_version", "traits": "traits"}),
    "xla_ffi_metadata_extension": ("XLA_FFI_Metadata_Extension", {"metadata": "metadata"}),
    "xla_ffi_error_create": ("XLA_FFI_Error_Create_Args", {"message": "message", "code": "errc"}),
    "xla_ffi_stream_get": ("XLA_FFI_Stream_Get_Args", {"context": "ctx", "stream": "stream"}),
    "xla_ffi_device_ordinal_get": ("XLA_FFI_DeviceOrdinal_Get_Args", {"device_ordinal": "device_ordinal"}),
    "xla_ffi_api": (
        "XLA_FFI_Api",
        {
            "error_create": "XLA_FFI_Error_Create",
            "stream_get": "XLA_FFI_Stream_Get",
            "device_ordinal_get": "XLA_FFI_DeviceOrdinal_Get",
        },
    ),
    "xla_ffi_buffer": ("XLA_FFI_Buffer", {"dtype": "dtype", "data": "data", "rank": "rank", "dims": "dims"}),
    "xla_ffi_buffers": ("XLA_FFI_Args", {"size": "size", "buffers": "args"}),
    "xla_ffi_span": ("XLA_FFI_ByteSpan", {"data": "ptr", "size": "len"}),
    "xla_ffi_scalar": ("XLA_FFI_Scalar", {"dtype": "dtype", "value": "value"}),
    "xla_ffi_array": ("XLA_FFI_Array", {"dtype": "dtype", "size": "size", "data": "data"}),
    "xla_ffi_attributes": ("XLA_FFI_Attrs", {"size": "size", "types": "types", "names": "names", "values": "attrs"}),
    "xla_ffi_call_frame": (
        "XLA_FFI_CallFrame",
        {"api": "api", "context": "ctx", "stage": "stage", "arguments": "args", "results": "rets", "attributes": "attrs"},
    ),
}


def test_our_declarations_are_xlas(tmp_path: Path) -> None:
    declarations = ROOT / "bindings/jax/xla_ffi.h"
    if not declarations.exists():
        pytest.skip("no repository around the tests")
    checks = [
        f"static_assert(offsetof({ours}, {field}) == offsetof({theirs}, {their_field}));"
        for ours, (theirs, fields) in NAMES.items()
        for field, their_field in fields.items()
    ]
    checks += [
        f"static_assert(int({ours}) == int({theirs}));"
        for ours, theirs in [
            ("xla_ffi_s64", "XLA_FFI_DataType_S64"),
            ("xla_ffi_s32", "XLA_FFI_DataType_S32"),
            ("xla_ffi_attribute_array", "XLA_FFI_AttrType_ARRAY"),
            ("xla_ffi_attribute_scalar", "XLA_FFI_AttrType_SCALAR"),
            ("xla_ffi_attribute_string", "XLA_FFI_AttrType_STRING"),
            ("xla_ffi_extension_metadata", "XLA_FFI_Extension_Metadata"),
            ("xla_ffi_command_buffer_compatible", "XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE"),
            ("xla_ffi_invalid_argument", "XLA_FFI_Error_Code_INVALID_ARGUMENT"),
            ("xla_ffi_internal", "XLA_FFI_Error_Code_INTERNAL"),
        ]
    ]
    source = tmp_path / "compare.cpp"
    includes = f'#include <cstddef>\n#include "xla/ffi/api/c_api.h"\n#include "{declarations}"\n'
    source.write_text(includes + "\n".join(checks) + "\n")
    subprocess.run(["c++", "-std=c++17", "-fsyntax-only", "-I", jax.ffi.include_dir(), str(source)], check=True)
