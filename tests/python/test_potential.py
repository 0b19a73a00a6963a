"""Pretrained potentials on NumPy arrays and as an ASE calculator."""

import copy
import json
import pickle
from importlib.util import find_spec
from pathlib import Path

import clebsch
import numpy as np
import pytest

pytest.importorskip("vesin")

ROOT = Path(__file__).resolve().parents[2]
CHECKPOINT = ROOT / "examples" / "data" / "nequix-mp-1.nqx"
GOLDEN = json.loads((ROOT / "tests" / "data" / "nequix.json").read_text())["aspirin.xyz"]["float64"]


@pytest.fixture(scope="module")
def potential() -> clebsch.Potential:
    return clebsch.Potential(CHECKPOINT, dtype="float64")


def aspirin() -> tuple[np.ndarray, np.ndarray]:
    """The last frame, as ase reads files."""
    lines = (ROOT / "examples" / "data" / "aspirin.xyz").read_text().splitlines()[-21:]
    numbers = [{"H": 1, "C": 6, "O": 8}[line.split()[0]] for line in lines]
    return np.array(numbers), np.array([[float(x) for x in line.split()[1:4]] for line in lines])


def silicon() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cell = 5.43 * np.eye(3) + 0.1 * np.random.default_rng(3).normal(size=(3, 3))
    face = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    fractions = np.concatenate([face, face + 0.25]) + 0.01 * np.random.default_rng(4).normal(size=(8, 3))
    return np.full(8, 14), fractions @ cell, cell


def test_golden_values_of_aspirin(potential: clebsch.Potential) -> None:
    found = potential(*aspirin())
    assert found.energy == pytest.approx(GOLDEN["energy"], abs=1e-9)
    assert found.forces == pytest.approx(np.array(GOLDEN["forces"]), abs=1e-9)
    assert found.energy == pytest.approx(found.atom_energy.sum(), abs=1e-9)
    assert np.isnan(found.stress).all()
    single = clebsch.Potential(CHECKPOINT)(*aspirin())
    assert single.energy == pytest.approx(found.energy, abs=2e-6 * 21)
    assert single.forces == pytest.approx(found.forces, abs=1e-4)


def test_stress_is_the_slope_of_the_energy(potential: clebsch.Potential) -> None:
    numbers, positions, cell = silicon()
    found = potential(numbers, positions, cell)
    step, strain = 1e-4, np.array([[0.3, 0.2, 0], [0.2, -0.5, 0.1], [0, 0.1, 0.7]])

    def energy(by: float) -> float:
        m = np.eye(3) + by * strain
        return potential(numbers, positions @ m, cell @ m).energy

    slope = (8 * (energy(step) - energy(-step)) - energy(2 * step) + energy(-2 * step)) / (12 * step)
    assert np.sum(found.virial * strain) == pytest.approx(slope, abs=1e-7)
    assert found.stress == pytest.approx(found.virial / np.linalg.det(cell))


def test_a_batch_is_its_structures(potential: clebsch.Potential) -> None:
    numbers, positions, cell = silicon()
    one = potential(numbers, positions, cell)
    two = potential(
        np.concatenate([numbers, [8]]),
        np.concatenate([positions, [[0, 0, 0]]]),
        cell=np.stack([cell, 10 * np.eye(3)]),
        structure=np.repeat([0, 1], [8, 1]),
    )
    assert two.energy.shape == (2,)
    assert two.energy[0] == pytest.approx(one.energy, abs=1e-10)
    assert two.forces[:8] == pytest.approx(one.forces, abs=1e-10)
    assert two.stress[0] == pytest.approx(one.stress, abs=1e-12)


def test_a_remembered_neighbour_list_changes_no_bit(potential: clebsch.Potential) -> None:
    remembering = clebsch.Potential(CHECKPOINT, dtype="float64", skin=0.6)
    noise = np.random.default_rng(6)
    numbers, positions, cell = silicon()
    for step in [0.02, 0.05, 0.1, 0.02, 1.5, 0.05]:  # also further than the skin allows
        positions = positions + step * noise.normal(size=positions.shape) / 3
        cell = cell * (1 + 0.02 * step)
        fresh, kept = potential(numbers, positions, cell), remembering(numbers, positions, cell)
        assert kept.energy == fresh.energy
        assert np.array_equal(kept.forces, fresh.forces)
        assert np.array_equal(kept.virial, fresh.virial)
    assert remembering(*aspirin()).energy == potential(*aspirin()).energy  # another structure
    for skin in (-1.0, 1e300, np.inf, np.nan):
        with pytest.raises(clebsch.ClebschError, match="skin: expected 0 to 20 Angstrom, got"):
            clebsch.Potential(CHECKPOINT, skin=skin)


def test_errors_name_what_is_wrong(potential: clebsch.Potential) -> None:
    numbers, positions = aspirin()
    with pytest.raises(clebsch.ClebschError, match="numbers: expected 21 integers"):
        potential(numbers[:-1], positions)
    with pytest.raises(clebsch.ClebschError, match="numbers"):
        potential(numbers.astype(float), positions)
    with pytest.raises(clebsch.ClebschError, match=r"atom 0 \(At\)"):
        potential(np.where(np.arange(21) == 0, 85, numbers), positions)
    for wrong in (-1, 2**40, 2**32 + 8):
        with pytest.raises(clebsch.ClebschError, match=f"numbers: expected an atomic number of atom 3, got {wrong}"):
            potential(np.where(np.arange(21) == 3, wrong, numbers), positions)
    with pytest.raises(clebsch.ClebschError, match=f"structure: expected numbers below .*, got {2**63}"):
        potential(numbers, positions, structure=np.array([0] * 20 + [2**63], np.uint64))
    with pytest.raises(clebsch.ClebschError, match="not finite"):
        potential(numbers, np.where(np.arange(63).reshape(21, 3) == 7, np.nan, positions))
    with pytest.raises(FileNotFoundError):
        clebsch.Potential("missing.nqx")
    with pytest.raises(clebsch.ClebschError, match="^positions: expected an array, got a list: "):
        potential(numbers, [[0.0, 0.0], [1.0, 2.0, 3.0]])
    with pytest.raises(clebsch.ClebschError, match="^path: expected a path, got 3"):
        clebsch.Potential(3)
    with pytest.raises(clebsch.ClebschError, match="^skin: expected a number, got None"):
        clebsch.Potential(CHECKPOINT, skin=None)
    with pytest.raises(clebsch.ClebschError, match="zero character"):
        clebsch.Potential(f"{CHECKPOINT}\0")
    with pytest.raises(clebsch.ClebschError, match="dtype"):
        clebsch.Potential(CHECKPOINT, dtype="float16")
    assert potential.cutoff == 6
    assert 14 in potential.elements
    assert 85 not in potential.elements
    assert "steps" in potential.explain()


def test_ase_relaxes_and_conserves_energy(potential: clebsch.Potential) -> None:
    ase = pytest.importorskip("ase")
    from ase import units
    from ase.calculators.calculator import PropertyNotImplementedError
    from ase.filters import FrechetCellFilter
    from ase.md.verlet import VelocityVerlet
    from ase.optimize import BFGS
    from clebsch.ase import Calculator

    numbers = [14, 14]
    cell = 5.3 / 2 * np.array([[0, 1.05, 1], [1, 0, 1], [1, 1, 0]])
    positions = np.array([[0.1, 0, 0], [1.3, 1.4, 1.35]])
    atoms = ase.Atoms(numbers, positions, cell=cell, pbc=True, calculator=Calculator(potential))
    assert atoms.get_stress(voigt=False) == pytest.approx(potential(numbers, positions, cell).stress)
    BFGS(FrechetCellFilter(atoms), logfile=None).run(fmax=0.02, steps=100)
    assert np.abs(atoms.get_forces()).max() < 0.02
    assert (4 * atoms.get_volume()) ** (1 / 3) == pytest.approx(5.46, abs=0.06)

    atoms.set_momenta(3 * np.random.default_rng(5).normal(size=(2, 3)))
    before = atoms.get_total_energy()
    VelocityVerlet(atoms, timestep=0.5 * units.fs).run(20)
    assert atoms.get_total_energy() == pytest.approx(before, abs=2e-3)

    molecule = ase.Atoms("OH2", [[0, 0, 0], [0.96, 0, 0], [0, 0.96, 0]], calculator=Calculator(CHECKPOINT))
    assert molecule.get_forces() == pytest.approx(potential([8, 1, 1], molecule.positions).forces, abs=1e-4)
    with pytest.raises(PropertyNotImplementedError):
        molecule.get_stress()


def test_ase_phonons_by_finite_differences(potential: clebsch.Potential, tmp_path: Path) -> None:
    pytest.importorskip("ase")
    from ase.build import bulk
    from ase.phonons import Phonons
    from clebsch.ase import Calculator

    phonons = Phonons(
        bulk("Si", "diamond", 5.46), Calculator(potential), supercell=(2, 2, 2), delta=0.01, name=str(tmp_path / "phonon")
    )
    phonons.run()
    phonons.read(acoustic=True)
    frequencies = phonons.get_band_structure(phonons.atoms.cell.bandpath("G", npoints=1)).energies.ravel()
    assert frequencies[:3] == pytest.approx(0, abs=1e-3)
    assert 0.04 < frequencies[-1] < 0.08  # 64 meV measured


@pytest.mark.parametrize("dtype", [None, "zzz", "float16", int, 8])
def test_only_the_two_dtypes(dtype: object) -> None:
    with pytest.raises(clebsch.ClebschError, match="^dtype: expected float32 or float64, got"):
        clebsch.Potential(CHECKPOINT, dtype=dtype)


def test_a_copy_is_a_potential_of_its_own() -> None:
    for make in (copy.copy, lambda potential: pickle.loads(pickle.dumps(potential))):
        made = make(clebsch.Potential(CHECKPOINT, dtype=np.float64))  # the original is gone before the copy is used
        assert made.dtype == "float64"
        assert made(*aspirin()).energy == pytest.approx(GOLDEN["energy"], abs=1e-9)


def test_tables_keep_what_the_tolerance_says() -> None:
    made = copy.copy(clebsch.Potential(CHECKPOINT, dtype="float64", table_tolerance=1e-12))
    assert made.table_tolerance == 1e-12
    assert "grouped by the weights they gather" in made.explain()
    found = made(*aspirin())
    assert found.energy == pytest.approx(GOLDEN["energy"], abs=1e-9)
    assert found.forces == pytest.approx(np.array(GOLDEN["forces"]), abs=1e-9)
    if find_spec("ase"):
        assert clebsch.ase.Calculator(CHECKPOINT, table_tolerance=1e-6).potential.table_tolerance == 1e-6
    for tolerance in (0, -1, 1, float("nan")):
        with pytest.raises(clebsch.ClebschError, match="table_tolerance: expected a number between 0 and 1"):
            clebsch.Potential(CHECKPOINT, table_tolerance=tolerance)


def test_devices_that_are_not_there_are_refused() -> None:
    assert clebsch.Potential(CHECKPOINT, device="cpu").device == "cpu"
    for device in ("gpu", "cuda:", "cuda:-1", "cuda:x"):
        with pytest.raises(clebsch.ClebschError, match="device: expected cpu, cuda or cuda:NUMBER"):
            clebsch.Potential(CHECKPOINT, device=device)
    with pytest.raises(clebsch.ClebschError, match="CUDA driver|GPU number 1000"):
        clebsch.Potential(CHECKPOINT, device="cuda:1000")


def test_masks_are_refused(potential: clebsch.Potential) -> None:
    numbers, positions = aspirin()
    with pytest.raises(clebsch.ClebschError, match="^numbers: .*mask"):
        potential(np.ma.masked_equal(numbers, 1), positions)
    with pytest.raises(clebsch.ClebschError, match="^positions: .*mask"):
        potential(numbers, np.ma.masked_less(positions, 0))
