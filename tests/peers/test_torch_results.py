"""Memory of large results on the CPU: that of results which are gone is used again, within bounds, and nobody else's."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator

import clebsch.torch as ct
import pytest
import torch
from clebsch.torch._native import native

pytestmark = pytest.mark.skipif(native is None, reason="libclebsch_torch.so needs PyTorch 2.10 or newer")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    ct.empty_cache()
    yield
    ct.empty_cache()


def kept() -> int:
    assert native is not None
    return int(native.clebsch_torch_kept_bytes())


LAYER = ct.Linear("64x0e", "64x0e").requires_grad_(False)


def features(rows: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(rows, 64, dtype=dtype)


ROWS = 8192  #: 2 MiB of float32


def test_memory_of_a_result_is_used_again() -> None:
    x = features(ROWS)
    first = LAYER(x)
    address, value = first.data_ptr(), first[0].clone()
    assert address % 64 == 0
    view = first[100:]
    del first
    second = LAYER(2 * x)  # the view has the first one's memory still
    assert second.data_ptr() != address
    assert torch.equal(view, value.expand(ROWS - 100, 64))
    del view
    assert kept() >= 2 * MIB
    third = LAYER(3 * x[: ROWS - 300])  # a few rows less
    assert third.data_ptr() == address
    assert kept() == 0
    torch.testing.assert_close(third, (3 * value).expand(ROWS - 300, 64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_dtypes(dtype: torch.dtype) -> None:
    layer = copy.deepcopy(LAYER).to(dtype)
    large = layer(features(4 * ROWS, dtype))
    assert large.dtype == dtype
    torch.testing.assert_close(large, layer(features(1, dtype)).expand(4 * ROWS, 64))
    del large
    assert kept() >= 4 * MIB


def test_small_results_are_the_allocators() -> None:
    result = LAYER(features(1000))
    del result
    assert kept() == 0


def test_kept_memory_is_bounded() -> None:
    results = [LAYER(features(ROWS)) for _ in range(3)]
    del results
    assert 6 * MIB <= kept() < 7 * MIB
    larger = LAYER(features(3 * ROWS))  # fits in none of them: they make room
    assert kept() == 0
    del larger
    assert 6 * MIB <= kept() < 7 * MIB  # never more than was in use at once
    ct.empty_cache()
    assert kept() == 0
    for rows in range(ROWS, 6 * ROWS, ROWS):  # each of its own size
        LAYER(features(rows))
        assert kept() < 2 * rows / ROWS * MIB + MIB


LIMIT = """
import os, pytest, torch
import clebsch.torch as ct
from clebsch.torch._native import native

layer = ct.Linear("64x0e", "64x0e").requires_grad_(False)
os.environ["CLEBSCH_TORCH_KEPT_MEMORY"] = "a lot"
with pytest.raises(ValueError, match="CLEBSCH_TORCH_KEPT_MEMORY: expected a number of MiB, 0 to 1073741824, got 'a lot'"):
    layer(torch.ones(8192, 64))
os.environ["CLEBSCH_TORCH_KEPT_MEMORY"] = "3"
for rows, expected in ((8192, 2 << 20), (4 * 8192, 0)):
    layer(torch.ones(rows, 64))
    assert native.clebsch_torch_kept_bytes() == expected
"""


def test_limit() -> None:
    subprocess.run([sys.executable, "-c", LIMIT], check=True)


def test_a_result_is_its_owners() -> None:
    """Whatever the owner does with it, results to come are right, and what the owner has stays."""
    x = features(ROWS)
    expected = LAYER(x).clone()
    changed = LAYER(x)
    changed.zero_()
    assert torch.equal(LAYER(x), expected)
    assert not changed.any()
    same, copied = LAYER(x), copy.deepcopy(LAYER(x))
    loaded = pickle.loads(pickle.dumps(same))
    file = io.BytesIO()
    torch.save(same, file)
    file.seek(0)
    shared = LAYER(x).share_memory_()
    array = LAYER(x).numpy()
    taken = torch.empty(0).set_(LAYER(x).untyped_storage(), 0, (ROWS, 64))
    cut = LAYER(x).resize_(5, 64)
    assert all(bool((LAYER(0 * x) == 0).all()) for _ in range(8))
    for each in (same, copied, loaded, torch.load(file), shared, torch.from_numpy(array), taken):
        assert torch.equal(each, expected)
    assert torch.equal(cut, expected[:5])
    assert same.untyped_storage().nbytes() == same.nbytes


def test_gradients() -> None:
    """The array of weights' gradients is the largest of a convolution; an optimiser's step may change it in place."""
    torch.manual_seed(0)
    layer = ct.Convolution("32x0e+32x1o", "0e+1o", "0e+1o")
    receiver = torch.arange(100).repeat_interleave(45)
    arguments = [torch.randn(100, 128), torch.randn(4500, 4), torch.randn(4500, layer.weight_numel)]
    leaves = [each.requires_grad_() for each in arguments]
    addresses, found = [], []
    for _ in range(3):
        layer(*leaves, receiver.flip(0), receiver).square().sum().backward()
        assert leaves[2].grad is not None
        addresses.append(leaves[2].grad.data_ptr())
        found.append(leaves[2].grad.clone())
        leaves[2].grad.mul_(2)
        leaves[2].grad = None
    assert len(set(addresses)) == 1
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_through_the_dispatcher() -> None:
    """As compiled graphs and packages without Python call it; from PyTorch 2.11 on."""
    with torch.profiler.profile():
        address = LAYER(features(ROWS)).data_ptr()
        again = LAYER(features(ROWS))
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < (2, 11):
        pytest.skip("the stable ABI has no tensors of memory that is there")
    assert again.data_ptr() == address
    torch.testing.assert_close(again, LAYER(features(1)).expand(ROWS, 64))
    del again
    assert kept() >= 2 * MIB


def test_threads() -> None:
    wrong = []

    def work(seed: int) -> None:
        for i in range(20):
            x = features(ROWS) * (1 + seed + i)
            results = [LAYER(x), LAYER(-x)]
            if not bool((results[0] == -results[1]).all()) or not torch.equal(results[0][0], results[0][-1]):
                wrong.append((seed, i))
            if i == 5 * seed:
                ct.empty_cache()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert kept() <= 3 * 8 * MIB + MIB  # the last turn's results go when the next one's are there


FORKED = """
import os, threading, clebsch.torch as ct, torch
from clebsch.torch._results import large_result

torch.set_num_threads(1)  # OpenMP's threads are not in a child
layer, x, ended = ct.Linear("64x0e", "64x0e").requires_grad_(False), torch.ones(8192, 64), threading.Event()
result = layer(x)
expected = result[0].clone()

def work():
    while not ended.is_set():
        large_result(torch.float32, 8192, 64)

thread = threading.Thread(target=work)
thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        mine = [layer(2 * x), layer(3 * x)]
        ct.empty_cache()
        right = all(torch.equal(a, b.expand(8192, 64)) for a, b in zip((result, *mine), (expected, mine[0][0], mine[1][0])))
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
ended.set()
thread.join()
"""


def test_forked_processes() -> None:
    """Children have the results that there were, and make and drop their own, while other threads of the parent take and
    give memory."""
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120)
