"""A message-passing layer in JAX that learns another one: harmonics, a convolution and a linear map, one compiled training step.

What is differentiated has derivatives in it: the loss is on forces, minus the gradient of an energy by the positions. The graph is
padded, as graphs of changing size are in JAX so that the step is compiled once.

    pip install . jax && python examples/jax_convolution.py
"""

import clebsch.jax as cj
import jax
import jax.numpy as jnp
import numpy as np

NODES, EDGES, CUTOFF, CHANNELS = 24, 400, 2.0, 8

convolution = cj.Convolution(f"{CHANNELS}x0e", "0e+1o+2e", "0e+1o+2e")  # keeps all: a block per path
again = cj.Convolution(convolution.irreps_out, "0e+1o+2e", "0e")
readout = cj.Linear(again.irreps_out, "1x0e")


def edges_of(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs nearer than the cutoff by ascending receiver, padded by -1 to EDGES."""
    distances = np.linalg.norm(positions[:, None] - positions[None, :], axis=-1)
    receiver, sender = np.nonzero((distances < CUTOFF) & (distances > 0))
    missing = EDGES - len(sender)
    assert missing >= 0, f"{len(sender)} edges, expected at most {EDGES}"
    return np.pad(sender, (0, missing), constant_values=-1), np.pad(receiver, (0, missing), constant_values=-1)


def radial_weights(network: list[jax.Array], lengths: jax.Array) -> jax.Array:
    """Gaussians of the length through one hidden layer, zero at the cutoff."""
    basis = jnp.exp(-8 * (lengths[:, None] - jnp.linspace(0, CUTOFF, 8)) ** 2)
    envelope = jnp.where(lengths < CUTOFF, (1 - (lengths / CUTOFF) ** 2) ** 2, 0.0)
    return jax.nn.silu(basis @ network[0]) @ network[1] * envelope[:, None]


def energy(parameters: dict, positions: jax.Array, sender: jax.Array, receiver: jax.Array) -> jax.Array:
    """A sum over the nodes."""
    vectors = jnp.where((sender >= 0)[:, None], positions[sender] - positions[receiver], 1.0)
    lengths = jnp.linalg.norm(vectors, axis=1)
    harmonics = cj.spherical_harmonics("0e+1o+2e", vectors, normalize=True)
    features = jnp.ones((NODES, CHANNELS))
    features = convolution(features, harmonics, radial_weights(parameters["first"], lengths), sender, receiver)
    features = again(features, harmonics, radial_weights(parameters["second"], lengths), sender, receiver)
    return readout(features, parameters["readout"]).sum()


def forces(parameters: dict, positions: jax.Array, sender: jax.Array, receiver: jax.Array) -> jax.Array:
    return -jax.grad(energy, argnums=1)(parameters, positions, sender, receiver)


def initial(seed: int) -> dict:
    keys = iter(jax.random.split(jax.random.PRNGKey(seed), 5))

    def network(outputs: int) -> list[jax.Array]:
        return [jax.random.normal(next(keys), (8, 16)) / 2, jax.random.normal(next(keys), (16, outputs)) / 4]

    return {
        "first": network(convolution.weight_numel),
        "second": network(again.weight_numel),
        "readout": jax.random.normal(next(keys), (readout.weight_numel,)) / 8,
    }


def main(steps: int = 150) -> list[float]:
    """Losses of the training; prints some of them."""
    positions = np.random.default_rng(0).uniform(0, 4, (NODES, 3))
    sender, receiver = edges_of(positions)
    target = forces(initial(1), positions, sender, receiver)

    @jax.jit
    def step(parameters: dict, momentum: dict, size: dict) -> tuple[dict, dict, dict, jax.Array]:
        """Adam."""
        loss, gradient = jax.value_and_grad(lambda p: jnp.mean((forces(p, positions, sender, receiver) - target) ** 2))(parameters)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, momentum, gradient)
        size = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, size, gradient)
        parameters = jax.tree.map(lambda p, m, s: p - 0.01 * m / (jnp.sqrt(s) + 1e-8), parameters, momentum, size)
        return parameters, momentum, size, loss

    parameters = initial(2)
    momentum, size = jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters)
    losses = []
    for i in range(steps):
        parameters, momentum, size, loss = step(parameters, momentum, size)
        losses.append(float(loss))
        if i % 30 == 0 or i == steps - 1:
            print(f"step {i:3d}: mean square of the force errors {losses[-1]:.5f}")
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turned = forces(parameters, positions @ turn.T, sender, receiver)
    error = jnp.abs(turned - forces(parameters, positions, sender, receiver) @ turn.T).max() / jnp.abs(turned).max()
    print(f"forces of the turned positions are the turned forces, to {error:.0e} of the largest")
    assert error < 1e-3
    return losses


if __name__ == "__main__":
    main()
