"""Arrays in a GPU's memory: DLPack and the CUDA array interface say where they are; with a GPU and CuPy or PyTorch, plans run."""

from __future__ import annotations

from typing import Any

import clebsch
import numpy as np
import pytest
from clebsch import _device

OPTIONS = {"in_": "8x0e+8x1o", "edge": "0e+1o", "out": "0e+1o"}
NODES, EDGES = 20, 300


class OnDevice:
    """A NumPy array that says it is a GPU's."""

    def __init__(self, array: np.ndarray, kind: int = 2, number: int = 0) -> None:
        self.array, self.kind, self.number = array, kind, number

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, self.number

    def __dlpack__(self, stream: int | None = None) -> Any:
        assert stream == 1
        return self.array.__dlpack__()


class WithInterface:
    def __init__(self, array: np.ndarray, **more: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3, **more}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("wrap", [OnDevice, WithInterface])
def test_places_are_read(dtype: str, wrap: type) -> None:
    whole = np.arange(60).reshape(6, 10).astype(dtype)
    for array in (whole, whole[::2], whole[:, 3:7], whole[0], whole[:0], whole.T):
        found = _device.device_array("x", wrap(array), 0, 0)
        assert found.dtype == dtype
        assert found.shape == array.shape
        assert found.size == array.size
        if array.size:
            assert found.strides == tuple(step // array.itemsize for step in array.strides)
            assert found.address == array.ctypes.data


def test_what_is_elsewhere_is_refused() -> None:
    array = np.zeros((3, 4), dtype="float32")
    for value, where in ((array, "ndarray on the host"), (OnDevice(array, 1), "on the host"), (OnDevice(array, 2, 3), "on cuda:3")):
        with pytest.raises(clebsch.ClebschError, match=f"weights: expected an array on cuda:0, got .*{where}"):
            _device.device_array("weights", value, 0, 0)
    with pytest.raises(clebsch.ClebschError, match=r"x: expected an array on cuda:0, got list"):
        _device.device_array("x", [1.0, 2.0], 0, 0)
    assert not _device.device_array("x", WithInterface(array, data=(array.ctypes.data, True)), 0, 0).writeable


def test_a_plan_for_no_device_is_refused() -> None:
    operation = clebsch.build("convolution", **OPTIONS)
    with pytest.raises(clebsch.ClebschError, match="device: expected cpu, cuda or cuda:NUMBER, got 'gpu'"):
        operation.plan(device="gpu")
    with pytest.raises(clebsch.ClebschError):
        operation.plan(device="cuda:1000")
    assert operation.plan(deterministic=True).explain() == operation.plan().explain()


def has_gpu() -> bool:
    try:
        clebsch.build("convolution", **OPTIONS).plan(device="cuda")
    except clebsch.MissingError:  # no driver, compiler or GPU; anything else is a failure
        return False
    return True


def arrays(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    operation = clebsch.build("convolution", **OPTIONS)
    rows = {"node": NODES, "edge": EDGES}
    made: dict[str, Any] = {
        operand.name: random.standard_normal((rows[str(operand.space)], operand.row_size)).astype("float32")
        for operand in operation.inputs
    }
    made["sender"] = random.integers(0, NODES, EDGES)
    made["receiver"] = np.sort(random.integers(0, NODES, EDGES)).astype("int32")
    return made


@pytest.mark.parametrize("name", ["cupy", "torch"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_plans_run_on_a_gpus_arrays(name: str, deterministic: bool) -> None:
    module = pytest.importorskip(name)
    if not has_gpu():
        pytest.skip("there is no GPU, or no run-time compiler")

    def moved(array: np.ndarray) -> Any:
        return module.asarray(array) if name == "cupy" else module.from_numpy(array).cuda()

    def back(array: Any) -> np.ndarray:
        return array.get() if name == "cupy" else array.cpu().numpy()

    operation = clebsch.build("convolution", **OPTIONS)
    for one in (operation, operation.vjp("x", "weights")):
        given = arrays()
        for operand in one.inputs:
            if operand.name not in given:
                given[operand.name] = np.random.default_rng(1).standard_normal((NODES, operand.row_size)).astype("float32")
        wanted = one(**given)
        wanted = wanted if isinstance(wanted, dict) else {one.outputs[0].name: wanted}
        plan = one.plan(device="cuda", deterministic=deterministic)
        on_gpu = {key: moved(array) for key, array in given.items()}
        found = plan(**on_gpu)
        found = found if isinstance(found, dict) else {one.outputs[0].name: found}
        for key, array in wanted.items():
            assert type(found[key]).__module__.partition(".")[0] == name
            np.testing.assert_allclose(back(found[key]), array, rtol=2e-5, atol=2e-5)
        bound = plan.bind(out=found, **on_gpu)
        first = {key: back(array) for key, array in found.items()}
        for _ in range(3):
            bound()
            if deterministic:
                assert all(np.array_equal(back(found[key]), first[key]) for key in found)
        assert not plan.index_error()
        on_gpu["sender"][5] = NODES + 7
        plan(**on_gpu)
        assert plan.index_error()
        with pytest.raises(clebsch.ClebschError, match="expected an array on cuda:0"):
            plan(**given)
        with pytest.raises(clebsch.ClebschError, match="expected dtype float32"):
            plan(**{**on_gpu, "weights": moved(given["weights"].astype("float64"))})
        narrow = {**on_gpu, "weights": moved(np.asfortranarray(given["weights"]))}
        if name == "cupy":
            with pytest.raises(clebsch.ClebschError, match="contiguous rows"):
                plan(**narrow)
