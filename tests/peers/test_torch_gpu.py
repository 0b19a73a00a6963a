"""What clebsch.torch promises of CUDA tensors alone: streams, graphs, no waiting, several GPUs, determinism, wrong indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clebsch
import clebsch.torch as ct
import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

NODES, EDGES = 500, 6000


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def layer_and_inputs(device: str = "cuda") -> tuple[ct.Convolution, tuple[torch.Tensor, ...]]:
    layer = ct.Convolution("32x0e+32x1o", "0e+1o+2e", "0e+1o")
    tensors = (
        torch.randn(NODES, 128),
        torch.randn(EDGES, 9),
        torch.randn(EDGES, layer.weight_numel),
        torch.randint(0, NODES, (EDGES,)),
        torch.randint(0, NODES, (EDGES,)).sort()[0],
    )
    tensors = tuple(tensor.to(device) for tensor in tensors)
    return layer, (*(tensor.requires_grad_() for tensor in tensors[:3]), *tensors[3:])


def step(layer: ct.Convolution, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    out = layer(*inputs)
    return [out, *torch.autograd.grad((out**2).sum(), inputs[:3])]


def assert_close(found: list[torch.Tensor], expected: list[torch.Tensor], bound: float = 2e-6) -> None:
    for value, wanted in zip(found, expected, strict=True):
        value, wanted = value.detach().cpu().double(), wanted.detach().cpu().double()
        assert torch.linalg.norm(value - wanted) <= bound * torch.linalg.norm(wanted)


def on_cpu(inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(tensor.detach().cpu().requires_grad_(tensor.requires_grad) for tensor in inputs)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 3e-6), (torch.float64, 1e-13), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize(
    "made",
    [
        lambda: (ct.Linear("32x0e+16x1o", "16x0e+32x1o", biases=True), 80),
        lambda: (ct.FullyConnectedTensorProduct("32x0e+16x1o", "0e+1o", "16x0e+32x1o"), 80, 4),
        lambda: (ct.FullyConnectedTensorProduct("16x0e+8x1o", "8x0e+8x1o", "16x0e+16x1o"), 40, 32),
    ],
    ids=["linear map", "with one edge channel", "channels of both"],
)
def test_what_mixes_channels(made: Callable[[], tuple[Any, ...]], dtype: torch.dtype, bound: float) -> None:
    """These are matrix products there (docs/gpu.md): values, gradients, and gradients of those, in many rows and in few."""
    module, *sizes = made()
    for rows in (3, 700):
        found = []
        arrays = [torch.randn(rows, size) for size in sizes]
        weights = [parameter.detach() for parameter in module.parameters()]
        for device, number in (("cuda", dtype), ("cpu", torch.float64)):
            inputs = [array.to(dtype).to(device, number).requires_grad_() for array in (*arrays, *weights)]
            out = module(*inputs)
            gradients = torch.autograd.grad((out.square()).sum(), inputs[: len(arrays)], create_graph=True)
            again = torch.autograd.grad(
                sum(part.square().sum() for part in gradients), inputs, materialize_grads=True, allow_unused=True
            )
            found.append([out, *gradients, *again])
        assert_close(*found, bound=bound)


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 2e-6), (torch.float64, 1e-14), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)]
)
def test_a_gpu_computes_what_the_cpu_does(dtype: torch.dtype, bound: float) -> None:
    layer, inputs = layer_and_inputs()
    inputs = tuple(tensor.detach().to(dtype).requires_grad_() if tensor.is_floating_point() else tensor for tensor in inputs)
    found = layer(*inputs)
    assert found.dtype == dtype
    gradients = torch.autograd.grad(found, inputs[:3], found.detach())
    exact = tuple(t.detach().cpu().double().requires_grad_() if t.is_floating_point() else t.cpu() for t in inputs)
    expected = layer(*exact)
    wanted = torch.autograd.grad(expected, exact[:3], found.detach().cpu().double())
    assert_close([found, *gradients], [expected, *wanted], bound)


def test_work_is_put_on_the_current_stream() -> None:
    layer, inputs = layer_and_inputs()
    expected = step(layer, on_cpu(inputs))
    step(layer, inputs)
    stream, busy = torch.cuda.Stream(), torch.randn(4096, 4096, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        late = [torch.zeros_like(tensor) if i < 3 else tensor for i, tensor in enumerate(inputs)]
        for _ in range(20):
            busy = busy @ busy * 1e-4  # what follows must wait for it
        for i in range(3):
            late[i].copy_(inputs[i].detach() + 0 * busy[0, 0].nan_to_num(0, 0, 0))
        found = step(layer, (*(tensor.requires_grad_() for tensor in late[:3]), *late[3:]))
    torch.cuda.current_stream().wait_stream(stream)
    assert_close(found, expected)


def test_a_call_does_not_wait_for_the_gpu() -> None:
    layer, inputs = layer_and_inputs()
    step(layer, inputs)
    torch.cuda.synchronize()
    busy = torch.randn(8192, 8192, device="cuda")
    done = torch.cuda.Event()
    for _ in range(40):
        busy = busy @ busy * 1e-4
    results = step(layer, inputs)
    done.record()
    assert not done.query()  # everything was put there before the products ended
    torch.cuda.synchronize()
    assert results[0].isfinite().all()


def test_forward_and_backward_are_captured_into_a_graph() -> None:
    layer, inputs = layer_and_inputs()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            step(layer, inputs)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step(layer, inputs)
    for _ in range(3):
        with torch.no_grad():
            for tensor in inputs[:3]:
                tensor.copy_(torch.randn_like(tensor))
        graph.replay()
        assert_close(results, step(layer, on_cpu(inputs)))


def test_an_operation_that_is_not_ready_is_not_captured() -> None:
    layer = ct.Linear("7x0e+3x1o", "5x0e+3x1o").cuda()
    x = torch.randn(10, 16, device="cuda")
    with pytest.raises(clebsch.UnsupportedError, match="no kernels .* CUDA graph"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        layer(x)
    torch.cuda.synchronize()
    assert layer(x).shape == (10, 14)


def test_tensors_of_other_devices_are_refused() -> None:
    layer, inputs = layer_and_inputs()
    mixed = on_cpu(inputs)
    for i, name in enumerate(("x", "y", "weights", "sender", "receiver")):
        if i > 0:
            with pytest.raises(clebsch.ClebschError, match=f"^{name}: expected a tensor on cuda:0 .*got one on cpu"):
                layer(*inputs[:i], mixed[i], *inputs[i + 1 :])
            with pytest.raises(clebsch.ClebschError, match=f"^{name}: expected a tensor on cpu .*got one on cuda:0"):
                layer(*mixed[:i], inputs[i], *mixed[i + 1 :])


def test_wrong_indices_count_as_masked_until_asked() -> None:
    layer, inputs = layer_and_inputs()
    ct.check_indices()
    masked, wrong = inputs[3].clone(), inputs[3].clone()
    masked[7], wrong[7] = -1, NODES + 3
    expected = layer(*inputs[:3], masked, inputs[4])
    ct.check_indices()
    assert_close([layer(*inputs[:3], wrong, inputs[4])], [expected])
    with pytest.raises(clebsch.ClebschError, match="sender"):
        ct.check_indices()
    ct.check_indices()


def test_sums_have_one_order_where_determinism_is_asked_for() -> None:
    layer, inputs = layer_and_inputs()
    usual = step(layer, inputs)
    torch.use_deterministic_algorithms(True)
    try:
        first = step(layer, inputs)
        for _ in range(5):
            for found, before in zip(step(layer, inputs), first, strict=True):
                assert torch.equal(found, before)
    finally:
        torch.use_deterministic_algorithms(False)
    assert_close(first, usual)


def test_memory_is_inputs_and_results() -> None:
    """Messages would be EDGES x 288 numbers, and again for the gradients."""
    layer, inputs = layer_and_inputs()
    step(layer, inputs)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out = layer(*inputs)
    gradients = torch.autograd.grad(out, inputs[:3], torch.ones_like(out))
    results = 2 * out.nbytes + sum(gradient.nbytes for gradient in gradients)
    assert torch.cuda.max_memory_allocated() - before < 1.1 * results + (1 << 20)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_each_gpu_has_its_own_plan() -> None:
    for device in ("cuda:1", "cuda:0"):
        layer, inputs = layer_and_inputs(device)
        found = step(layer, inputs)
        assert found[0].device == torch.device(device)
        assert_close(found, step(layer, on_cpu(inputs)))
