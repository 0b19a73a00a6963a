"""Nequix's own JAX model with its gather, tensor product and scatter as one call of clebsch.jax, and a structure as it takes it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import clebsch
import clebsch.jax as cj
import equinox as eqx
import jax
import jax.numpy as jnp
import jraph
from nequix.model import Nequix
from silicon import edges, silicon

CHECKPOINT = Path(__file__).resolve().parents[1] / "examples/data/nequix-mp-1.nqx"


@dataclasses.dataclass(frozen=True)
class OneCall:
    """What the layer's `tp_conv` is to be; outputs and weights come in the layer's sorted order."""

    convolution: cj.Convolution

    def forward(self, x: Any, harmonics: Any, weights: Any, receivers: Any, senders: Any) -> Any:
        return self.convolution(x, harmonics, weights, senders, receivers)


@dataclasses.dataclass(frozen=True)
class Sorted:
    """In place of the sorting of the outputs, which has happened."""

    irreps_sorted: Any

    def __call__(self, x: Any) -> Any:
        return x


def swapped(model: Nequix) -> Nequix:
    """The same model; its layers call the convolution here."""
    layers, harmonics = [], "+".join(f"1x{degree}{'eo'[degree % 2]}" for degree in range(model.lmax + 1))
    for layer in model.layers:
        convolution = cj.Convolution(layer.linear_1.irreps_in, harmonics, layer.output_irreps)
        assert clebsch.Irreps(str(layer.sort.irreps_sorted)).simplify() == convolution.irreps_out.simplify()
        new = object.__new__(type(layer))
        for field in dataclasses.fields(layer):
            object.__setattr__(new, field.name, getattr(layer, field.name))
        object.__setattr__(new, "kernel", True)
        object.__setattr__(new, "tp_conv", OneCall(convolution))
        object.__setattr__(new, "sort", Sorted(layer.sort.irreps_sorted))
        layers.append(new)
    return eqx.tree_at(lambda whole: whole.layers, model, layers, is_leaf=lambda part: isinstance(part, list))


def batch(cells: int, species: int) -> jraph.GraphsTuple:
    """Silicon as `species` (its place in the model's list) with the checkpoint's cutoff; padded by the one graph jraph asks for."""
    positions, cell = silicon(cells)
    sender, receiver, shift = edges(positions, cell)
    graph = jraph.GraphsTuple(
        n_node=jnp.array([len(positions)], jnp.int32),
        n_edge=jnp.array([len(sender)], jnp.int32),
        senders=jnp.asarray(sender, jnp.int32),
        receivers=jnp.asarray(receiver, jnp.int32),
        nodes={
            "positions": jnp.asarray(positions, jnp.float32),
            "species": jnp.full(len(positions), species, jnp.int32),
        },
        edges={"shifts": jnp.asarray(shift, jnp.float32)},
        globals={"cell": jnp.asarray(cell[None], jnp.float32)},
    )
    padded = jraph.pad_with_graphs(graph, len(positions) + 1, len(sender) + 1, 2)
    return jax.tree.map(jnp.asarray, padded)
