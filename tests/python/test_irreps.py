"""Irreps, couplings and rotations through the Python package."""

import clebsch
import numpy as np
import pytest


def test_irreps_print_what_they_read() -> None:
    irreps = clebsch.Irreps("128x0e + 64x1o+1e")
    assert str(irreps) == "128x0e+64x1o+1x1e"
    assert irreps.dim == 128 + 64 * 3 + 3
    assert [where.start for where in irreps.slices()] == [0, 128, 320]
    assert irreps == "128x0e+64x1o+1e"
    assert irreps != "nonsense"
    assert len({irreps, clebsch.Irreps("128x0e+64x1o+1e")}) == 1
    assert irreps[1].ir == clebsch.Irrep(1, -1)
    assert clebsch.Irreps("1")[0].ir.p == 0  # SO(3)


def test_sort_and_regroup_follow_e3nn() -> None:
    irreps, p, inverse = clebsch.Irreps("2x2o+3x1e+0x0e+1x1e+4x0o+1x1o+5x0e+2x1e").sort()
    assert str(irreps) == "4x0o+0x0e+5x0e+1x1o+3x1e+1x1e+2x1e+2x2o"
    assert p == (7, 4, 1, 5, 0, 3, 2, 6)
    assert inverse == (4, 2, 6, 5, 1, 3, 7, 0)
    assert irreps.simplify() == "4x0o+5x0e+1x1o+6x1e+2x2o"


@pytest.mark.parametrize("text", ["-1x0e", "0e+", "2x3x0e", "1p", "13e", "99999999999999999999x0e", "0e\0", "1o+1"])
def test_bad_irreps_are_refused(text: str) -> None:
    with pytest.raises(clebsch.ClebschError):
        clebsch.Irreps(text)


def test_wigner_3j_is_normalised_and_knows_both_sign_tables() -> None:
    coupling = clebsch.wigner_3j(1, 2, 2)
    assert np.sum(coupling**2) == pytest.approx(1, abs=1e-15)
    assert np.array_equal(clebsch.wigner_3j(1, 2, 2, sign_table=4), -coupling)
    assert np.array_equal(clebsch.wigner_3j(1, 1, 2, sign_table=4), clebsch.wigner_3j(1, 1, 2))
    assert not clebsch.wigner_3j(1, 1, 3).any()
    for bad in ((13, 1, 1), (-1, 0, 0)):
        with pytest.raises(clebsch.ClebschError):
            clebsch.wigner_3j(*bad)
    for table in (6, 2**40 + 5):
        with pytest.raises(clebsch.ClebschError, match="sign_table"):
            clebsch.wigner_3j(1, 1, 1, sign_table=table)


def test_degrees_and_parities_are_not_cut_to_what_fits() -> None:
    assert clebsch.Irreps.spherical_harmonics(2) == "0e+1o+2e"
    assert clebsch.Irreps.spherical_harmonics(2, p=1) == "0e+1e+2e"
    for lmax, p in ((-1, -1), (13, -1), (2, 0), (2, 7)):
        with pytest.raises(clebsch.ClebschError, match="spherical_harmonics: expected"):
            clebsch.Irreps.spherical_harmonics(lmax, p)
    for bad in (clebsch.Irrep(-1, 1), clebsch.Irrep(13, 1), clebsch.Irrep(1, 2), clebsch.Irrep(1, 2**32 + 1)):
        with pytest.raises(clebsch.ClebschError, match="wigner_d: expected a degree"):
            clebsch.wigner_d(bad, np.eye(3))


def test_rotations_act_on_irreps() -> None:
    rotation = clebsch.rotation_from_angles(0.1, 0.2, 0.3)
    assert rotation[0] == pytest.approx([0.921649085609, 0.019833838076, 0.387517202022], abs=1e-11)
    assert clebsch.wigner_d("1o", rotation) == pytest.approx(rotation, abs=1e-14)
    assert clebsch.wigner_d("1e", -rotation) == pytest.approx(rotation, abs=1e-14)
    half = [np.cos(0.3), *(np.sin(0.3) * np.array([1, 2, 2]) / 3)]
    assert clebsch.rotation_from_quaternion(half)[0] == pytest.approx([0.844742769, -0.337614008, 0.415242623], abs=1e-8)
    with pytest.raises(clebsch.ClebschError):
        clebsch.wigner_d("1o", np.ones((3, 3)))
    with pytest.raises(clebsch.ClebschError, match=r"\(2, 3\)"):
        clebsch.wigner_d("1o", np.ones((2, 3)))
