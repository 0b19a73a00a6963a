"""Irreps, couplings and rotations through the Python package."""

import copy
import pickle

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


BLOCK_LISTS = {
    "pairs": [(8, "0e"), (4, clebsch.Irrep(1, -1))],
    "numbers": [(8, (0, 1)), (4, (1, -1))],
    "blocks": [clebsch.Block(8, clebsch.Irrep(0, 1)), (np.int64(4), "1o")],
    "other irreps": clebsch.Irreps("8x0e+4x1o"),
}


@pytest.mark.parametrize("case", BLOCK_LISTS)
def test_irreps_from_blocks(case: str) -> None:
    assert clebsch.Irreps(BLOCK_LISTS[case]) == "8x0e+4x1o"


def test_irreps_from_single_irreps() -> None:
    assert clebsch.Irreps(["0e", clebsch.Irrep(1, -1)]) == "1x0e+1x1o"
    assert clebsch.Irreps(clebsch.Irrep(2, 1)) == "1x2e"
    assert clebsch.Irreps(clebsch.Block(3, clebsch.Irrep(2, 1))) == "3x2e"
    assert len(clebsch.Irreps()) == 0


@pytest.mark.parametrize(
    "wrong", [b"1o", bytearray(b"1o"), 5, None, [5], [(1, 2, 3)], [(1.5, "0e")], [("2", "0e")], [b"1o"], np.eye(2)]
)
def test_what_is_no_list_of_irreps_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="^irreps: expected"):
        clebsch.Irreps(wrong)
    with pytest.raises(clebsch.ClebschError, match="parity"):
        clebsch.Irreps([(1, (1, 2))])


def test_lists_are_added_and_repeated() -> None:
    irreps = clebsch.Irreps("2x0e+1o")
    assert irreps + "1x2e" == "2x0e+1x1o+1x2e"
    assert "1x2e" + irreps == "1x2e+2x0e+1x1o"
    assert irreps * 2 == 2 * irreps == "2x0e+1x1o+2x0e+1x1o"
    assert len(irreps * 0) == 0
    assert irreps.dims == (2, 3)
    assert (irreps * 2).regroup() == "4x0e+2x1o"
    assert irreps[1:] == "1x1o"
    for bad in (-1, 2**63, 2**40):
        with pytest.raises(clebsch.ClebschError, match="irreps: .*(repeat|copies|more than)"):
            irreps * bad
    with pytest.raises(TypeError, match="product"):
        irreps * irreps
    with pytest.raises(clebsch.ClebschError, match=r"SO\(3\)"):
        irreps + "1"


def test_filters_counts_and_membership() -> None:
    irreps = clebsch.Irreps("3x0e+2x1o+0x1e+4x0e+2e")
    assert irreps.filter("0e+2e") == "3x0e+4x0e+1x2e"
    assert irreps.filter(["0e", clebsch.Irrep(2, 1)]) == "3x0e+4x0e+1x2e"
    assert irreps.filter(drop="0e") == "2x1o+0x1e+1x2e"
    assert irreps.filter(lmax=1) == "3x0e+2x1o+0x1e+4x0e"
    assert irreps.filter("0e+1o", drop="0e", lmax=10**6) == "2x1o"
    assert irreps.filter(keep="") == ""
    with pytest.raises(clebsch.ClebschError, match="^filter: expected lmax"):
        irreps.filter(lmax=-1)
    assert irreps.count("0e") == 7
    assert irreps.count(clebsch.Irrep(1, -1)) == 2
    assert "2e" in irreps
    assert clebsch.Block(2, clebsch.Irrep(1, -1)) in irreps
    assert "1e" not in irreps  # multiplicity 0
    assert irreps.lmax == 2
    with pytest.raises(clebsch.ClebschError, match="no largest degree"):
        _ = clebsch.Irreps("0x3e").lmax
    with pytest.raises(clebsch.ClebschError, match="one irrep"):
        irreps.count("0e+1o")


def test_products_list_what_couples() -> None:
    product = clebsch.Irreps("2x0e+1x1o").product("1x1o+3x2e")
    assert product == "2x1o+6x2e+1x0e+1x1e+1x2e+3x1o+3x2o+3x3o"
    assert product.dim == clebsch.Irreps("2x0e+1x1o").dim * clebsch.Irreps("1x1o+3x2e").dim
    full = clebsch.build("full_product", in1="2x0e+1x1o", in2="1x1o+3x2e")
    assert str(product.sort().irreps) == full.outputs[0].segments
    assert clebsch.Irreps("1x1o").product("1x1o", keep="0e+2e") == "1x0e+1x2e"
    assert clebsch.Irreps("1").product("1") == "1x0+1x1+1x2"
    with pytest.raises(clebsch.ClebschError, match="degree 13"):
        clebsch.Irreps("12e").product("12e")
    assert clebsch.Irreps("12e").product("12e", keep="12e") == "1x12e"
    with pytest.raises(clebsch.ClebschError, match="mixes"):
        clebsch.Irreps("1o").product("1")
    with pytest.raises(clebsch.ClebschError, match="64 bits"):
        clebsch.Irreps("9223372036854775807x0e").product("2x0e")


def test_copies_are_independent() -> None:
    for make in (copy.copy, copy.deepcopy, lambda irreps: pickle.loads(pickle.dumps(irreps))):
        made = make(clebsch.Irreps("2x0e+1x1o"))  # the original is gone before the copy is used
        assert made == "2x0e+1x1o"
        assert made.simplify().dim == 5


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
    with pytest.raises(clebsch.ClebschError, match="^rotation: .*mask"):
        clebsch.wigner_d("1o", np.ma.masked_array(np.eye(3), mask=np.eye(3) == 0))
