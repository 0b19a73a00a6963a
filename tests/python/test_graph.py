"""Neighbour lists through the Python package."""

import itertools

import clebsch
import numpy as np
import pytest

pytest.importorskip("vesin")


def brute_force(positions: np.ndarray, cutoff: float, cell: np.ndarray | None) -> set[tuple[int, ...]]:
    images = range(-3, 4) if cell is not None else (0,)
    found = set()
    for i, j in itertools.product(range(len(positions)), repeat=2):
        for image in itertools.product(images, repeat=3):
            shift = np.array(image) @ cell if cell is not None else np.zeros(3)
            if (i != j or any(image)) and np.linalg.norm(positions[j] - positions[i] + shift) < cutoff:
                found.add((i, j, *image))
    return found


@pytest.mark.parametrize("periodic", [False, True])
def test_graph_is_the_brute_force_one(periodic: bool) -> None:
    cell = np.array([[4.0, 0, 0], [1, 4.2, 0], [0.3, -0.7, 3.9]]) if periodic else None
    positions = np.random.default_rng(0).uniform(0, 4, (9, 3))
    graph = clebsch.neighbor_graph(positions, 3.0, cell)
    edges = set(zip(graph.receiver.tolist(), graph.sender.tolist(), *graph.shifts.T.tolist(), strict=True))
    assert edges == brute_force(positions, 3.0, cell)
    assert len(edges) == graph.edges
    assert np.all(np.diff(graph.receiver) >= 0)
    vectors = positions[graph.sender] - positions[graph.receiver] + (graph.shifts @ cell if periodic else 0)
    assert graph.vectors == pytest.approx(vectors)
    assert np.all(np.diff(graph.sender[graph.transposed]) >= 0)
    assert graph.offsets[-1] == graph.edges


def test_batches_share_no_edges() -> None:
    positions = np.random.default_rng(1).uniform(0, 2, (10, 3))
    structure = np.repeat([0, 1], 5)
    graph = clebsch.neighbor_graph(positions, 5.0, structure=structure)
    assert graph.edges == 2 * 5 * 4
    assert np.array_equal(structure[graph.sender], structure[graph.receiver])


def test_one_atom_and_no_atoms() -> None:
    assert clebsch.neighbor_graph(np.zeros((1, 3)), 1.0).edges == 0
    assert clebsch.neighbor_graph(np.zeros((0, 3)), 1.0).nodes == 0
    assert clebsch.neighbor_graph(np.zeros((1, 3)), 1.1, np.eye(3)).edges == 6


@pytest.mark.parametrize(
    "arguments",
    [
        {"positions": np.zeros((2, 2)), "cutoff": 1.0},
        {"positions": np.zeros((2, 3)), "cutoff": -1.0},
        {"positions": np.zeros((2, 3)), "cutoff": "3"},
        {"positions": np.zeros((2, 3)), "cutoff": None},
        {"positions": np.zeros((2, 3)), "cutoff": np.ones(2)},
        {"positions": np.zeros((2, 3)), "cutoff": np.complex128(1)},
        {"positions": np.array([[np.nan, 0, 0]]), "cutoff": 1.0},
        {"positions": np.zeros((1, 3)), "cutoff": 1.0, "cell": np.zeros((3, 3))},
        {"positions": np.zeros((1, 3)), "cutoff": 1.0, "cell": np.eye(2)},
        {"positions": np.zeros((2, 3)), "cutoff": 1.0, "structure": np.array([1, 0])},
        {"positions": np.zeros((2, 3)), "cutoff": 1.0, "structure": np.array([0.0, 0.5])},
        {"positions": np.zeros((2, 3)), "cutoff": 1.0, "structure": np.array([0, 10**9])},
        {"positions": np.zeros((2, 3)), "cutoff": 1.0, "cell": np.eye(3), "periodic": [True, False]},
        {"positions": np.zeros((2, 3)), "cutoff": 1.0, "cell": np.eye(3), "periodic": "False"},
        {"positions": np.zeros((2, 3)), "cutoff": 1.0, "cell": np.eye(3), "periodic": [2, 0, 1]},
        {"positions": np.zeros((2, 3), dtype=complex), "cutoff": 1.0},
        {"positions": np.zeros((2, 3)).astype(str), "cutoff": 1.0},
        {"positions": np.zeros((2, 3)), "cutoff": 1.0, "cell": np.eye(3) * 1j},
    ],
)
def test_bad_structures_are_refused(arguments: dict) -> None:
    with pytest.raises(ValueError, match="^(positions|cutoff|cell|neighbour list|structure|periodic)"):
        clebsch.neighbor_graph(**arguments)


@pytest.mark.parametrize("cutoff", [1e-300, 1e300, np.nan, -2.5])
def test_a_bad_cutoff_is_named_as_it_was_given(cutoff: float) -> None:
    with pytest.raises(clebsch.ClebschError, match=f"cutoff.* got {cutoff:g}$".replace("+", r"\+")):
        clebsch.neighbor_graph(np.zeros((1, 3)), cutoff)
