"""clebsch.jax over several devices, simulated ones: edges divided, nodes divided, arrays divided by their type."""

from __future__ import annotations

import functools
from typing import Any

import clebsch.jax as cj
import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jax_graph import Graph, _double, near  # noqa: F401 - a fixture


def host_mesh() -> Mesh:
    return Mesh(np.array(jax.devices("cpu")), ("devices",))


@pytest.mark.parametrize("check", [True, False])
def test_edges_divided_over_devices(check: bool) -> None:
    graph, mesh = Graph(9, 80), host_mesh()
    divided = P("devices")
    specs = (P(), divided, divided, divided, divided)

    @jax.jit
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=check)
    def convolution(x: Any, y: Any, weights: Any, sender: Any, receiver: Any) -> Any:
        return jax.lax.psum(graph.convolution(x, y, weights, sender, receiver), "devices")

    indices = graph.sender, graph.receiver
    near(convolution(*graph.floats, *indices), graph.numpy())
    if check:
        found = jax.grad(lambda *arrays: (convolution(*arrays, *indices) ** 2).sum(), argnums=(0, 1, 2))(*graph.floats)
        with jax.default_device(jax.devices("cpu")[0]):
            expected = jax.grad(lambda *arrays: (graph(*arrays) ** 2).sum(), argnums=(0, 1, 2))(*graph.floats)
        for ours, theirs in zip(found, expected, strict=True):
            near(ours, theirs)


def test_nodes_divided_over_devices() -> None:
    """Every device has 2 nodes and the edges that end there, padded to the longest list; features come from all devices."""
    graph, mesh, nodes = Graph(16, 90), host_mesh(), 2
    owner = graph.receiver // nodes
    longest = np.bincount(owner, minlength=8).max()
    place = np.full((8, longest), -1)
    for device in range(8):
        mine = np.flatnonzero(owner == device)
        place[device, : len(mine)] = mine
    inside = place >= 0
    y, weights = graph.y[place].reshape(-1, 9), graph.weights[place].reshape(8 * longest, -1)
    sender = np.where(inside, graph.sender[place], -1).reshape(-1)
    receiver = np.where(inside, graph.receiver[place] % nodes, nodes).reshape(-1)  # in the device's own count; padding is no node
    operation = cj.Operation(
        graph.convolution.description.text.replace("index receiver: edge -> node sorted", "index receiver: edge -> own sorted")
    )
    divided = P("devices")

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(divided,) * 5, out_specs=divided)
    def convolution(x: Any, y: Any, weights: Any, sender: Any, receiver: Any) -> Any:
        everywhere = jax.lax.all_gather(x, "devices", tiled=True)
        return operation(rows={"own": nodes}, x=everywhere, y=y, weights=weights, sender=sender, receiver=receiver)

    near(jax.jit(convolution)(graph.x, y, weights, sender, receiver), graph.numpy())
    found = jax.jit(jax.grad(lambda x: (convolution(x, y, weights, sender, receiver) ** 2).sum()))(graph.x)
    with jax.default_device(jax.devices("cpu")[0]):
        near(found, jax.grad(lambda x: (graph(x, graph.y, graph.weights) ** 2).sum())(graph.x))


@pytest.mark.skipif(not hasattr(jax, "set_mesh"), reason="meshes with explicit axes are newer")
def test_arrays_divided_by_type() -> None:
    graph = Graph(16, 80)
    mesh = jax.make_mesh((8,), ("devices",), axis_types=(jax.sharding.AxisType.Explicit,), devices=jax.devices("cpu"))
    with jax.set_mesh(mesh):
        arrays = [
            jax.device_put(array, NamedSharding(mesh, P("devices"))) for array in (*graph.floats, graph.sender, graph.receiver)
        ]
        near(jax.jit(graph.convolution)(*arrays), graph.numpy())
        gradient = jax.jit(jax.grad(lambda *all_arrays: (graph.convolution(*all_arrays) ** 2).sum(), argnums=1))(*arrays)
    with jax.default_device(jax.devices("cpu")[0]):
        near(gradient, jax.grad(lambda y: (graph(graph.x, y, graph.weights) ** 2).sum())(graph.y))
