"""Arrays in a GPU's memory: DLPack and the CUDA array interface say where they are; with a GPU and CuPy or PyTorch, plans run."""

from __future__ import annotations

import threading
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


class Exchanged:
    """What knows DLPack alone."""

    def __init__(self, array: np.ndarray, kind: int = 1) -> None:
        self.array, self.kind = array, kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **options: Any) -> Any:
        if self.kind != 1:
            raise BufferError("not on the host")
        return self.array.__dlpack__()


def test_arrays_of_the_host_by_dlpack() -> None:
    plan = clebsch.build("convolution", **OPTIONS).plan("float32")
    rng = np.random.default_rng(0)
    sizes = {"x": (NODES, 32), "y": (EDGES, 4), "weights": (EDGES, 32)}
    given = {name: rng.normal(size=size).astype("float32") for name, size in sizes.items()}
    given |= {"sender": rng.integers(0, NODES, EDGES), "receiver": np.sort(rng.integers(0, NODES, EDGES))}
    expected = plan(**given, rows={"node": NODES})
    assert np.array_equal(plan(**{name: Exchanged(array) for name, array in given.items()}, rows={"node": NODES}), expected)
    wide = np.tile(given["x"], 2)[:, :32]
    assert np.array_equal(plan(**{**given, "x": Exchanged(wide)}, rows={"node": NODES}), expected)
    with pytest.raises(clebsch.ClebschError, match="x: expected dtype float32, got float64"):
        plan(**{**given, "x": Exchanged(given["x"].astype("float64"))}, rows={"node": NODES})
    with pytest.raises(clebsch.ClebschError, match="x: expected an array in the host's memory that NumPy reads, got a Exchanged: "):
        plan(**{**given, "x": Exchanged(given["x"], 2)}, rows={"node": NODES})


def test_what_is_elsewhere_is_refused() -> None:
    array = np.zeros((3, 4), dtype="float32")
    for value, where in ((array, "ndarray on the host"), (OnDevice(array, 1), "on the host"), (OnDevice(array, 2, 3), "on cuda:3")):
        with pytest.raises(clebsch.ClebschError, match=f"weights: expected an array on cuda:0, got .*{where}"):
            _device.device_array("weights", value, 0, 0)
    with pytest.raises(clebsch.ClebschError, match=r"x: expected an array on cuda:0, got list"):
        _device.device_array("x", [1.0, 2.0], 0, 0)
    assert not _device.device_array("x", WithInterface(array, data=(array.ctypes.data, True)), 0, 0).writeable


def test_streams_of_the_cuda_array_interface_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    array, waited = np.zeros((3, 4), dtype="float32"), []
    monkeypatch.setattr(_device, "call", lambda *arguments: waited.append(arguments))
    for stream in (None, 1, 2, 0xABCDE):
        _device.device_array("x", WithInterface(array, stream=stream), 3, 0)
    assert waited == [("clebsch_stream_synchronize", b"cuda:3", stream) for stream in (1, 2, 0xABCDE)]
    with pytest.raises(clebsch.ClebschError, match="x: expected a stream that the CUDA array interface allows, got 0"):
        _device.device_array("x", WithInterface(array, stream=0), 3, 0)


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


def gpus() -> int:
    cupy = pytest.importorskip("cupy")
    return int(cupy.cuda.runtime.getDeviceCount()) if has_gpu() else 0


def test_an_order_found_on_a_gpu_serves_unsorted_receivers() -> None:
    if gpus() == 0:
        pytest.skip("there is no GPU, or no run-time compiler")
    import cupy

    operation = clebsch.build("convolution", **OPTIONS, sorted="false")
    given = arrays()
    given["receiver"] = np.random.default_rng(2).permutation(given["receiver"])
    given["receiver"][7] = -1
    wanted = operation(**given)
    on_gpu = {key: cupy.asarray(array) for key, array in given.items()}
    np.testing.assert_allclose(operation.plan(device="cuda")(**on_gpu).get(), wanted, rtol=2e-5, atol=2e-5)
    order = clebsch.RowOrder(on_gpu.pop("receiver"), NODES, device="cuda")
    plan = operation.in_order_of("receiver").plan(device="cuda")
    for _ in range(3):
        found = plan(**on_gpu, receiver_order=order.order, receiver_sorted=order.sorted)
        np.testing.assert_allclose(found.get(), wanted, rtol=2e-5, atol=2e-5)
    assert not plan.index_error()
    # Receivers that are promised sorted and are not are told, not passed over.
    promised = clebsch.build("convolution", **OPTIONS).plan(device="cuda")
    promised(**on_gpu, receiver=cupy.asarray(given["receiver"]))
    assert promised.index_error()


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_plans_run_on_two_gpus_at_once(name: str) -> None:
    """From a thread each, and on the second one while the first is the current one."""
    module = pytest.importorskip(name)
    if gpus() < 2:
        pytest.skip("needs two GPUs")
    operation = clebsch.build("convolution", **OPTIONS)
    plans = [operation.plan(device=f"cuda:{number}") for number in range(2)]
    wrong: list[str] = []

    def run(number: int) -> None:
        for seed in range(20):
            given = arrays(seed)
            if name == "cupy":
                with module.cuda.Device(number):
                    on_gpu = {key: module.asarray(array) for key, array in given.items()}
            else:
                on_gpu = {key: module.from_numpy(array).to(f"cuda:{number}") for key, array in given.items()}
            found = plans[number](**on_gpu)  # the current device is 0
            host = found.get() if name == "cupy" else found.cpu().numpy()
            place = found.device.id if name == "cupy" else found.device.index
            if place != number or not np.allclose(host, operation(**given), rtol=2e-5, atol=2e-5):
                wrong.append(f"GPU {number}, seed {seed}")
        if plans[number].index_error():
            wrong.append(f"GPU {number}: an index")

    def run_or_say(number: int) -> None:
        try:
            run(number)
        except Exception as error:
            wrong.append(f"GPU {number}: {error}")

    threads = [threading.Thread(target=run_or_say, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    elsewhere = {key: module.asarray(array) for key, array in arrays().items()} if name == "cupy" else None
    if elsewhere is not None:
        with pytest.raises(clebsch.ClebschError, match="expected an array on cuda:1"):
            plans[1](**elsewhere)
