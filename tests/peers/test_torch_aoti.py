"""An exported model as a package of AOTInductor: in Python, and in a C++ program that has none (run_package.cpp)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import clebsch
import clebsch.torch as ct
import pytest
import torch
from clebsch.torch import _operator

pytestmark = pytest.mark.skipif(not _operator.NATIVE, reason="needs libclebsch_torch.so and PyTorch 2.10")

LIBRARY = Path(clebsch._library.library._name).resolve().parent / "libclebsch_torch.so"
TORCH = Path(torch.__file__).parent


class Layer(torch.nn.Module):
    """With a polynomial and programs, with indices and without."""

    def __init__(self) -> None:
        super().__init__()
        self.harmonics = ct.SphericalHarmonics("0e+1o+2e", True, "component")
        self.convolution = ct.Convolution("4x0e+2x1o", "0e+1o+2e", "0e+1o")
        self.radial = torch.nn.Linear(3, self.convolution.weight_numel)
        self.down = ct.Linear(self.convolution.irreps_out, "4x0e")

    def forward(self, x: torch.Tensor, vectors: torch.Tensor, sender: torch.Tensor, receiver: torch.Tensor) -> torch.Tensor:
        return self.down(self.convolution(x, self.harmonics(vectors), self.radial(vectors**2), sender, receiver)).sum(1)


def graph(nodes: int, edges: int) -> tuple[torch.Tensor, ...]:
    sender, receiver = torch.randint(0, nodes, (edges,)), torch.randint(0, nodes, (edges,)).sort()[0]
    return torch.randn(nodes, 10), torch.randn(edges, 3), sender, receiver


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Layer]:
    torch.manual_seed(0)
    layer, edges, nodes = Layer(), torch.export.Dim("edges", min=2), torch.export.Dim("nodes", min=2)
    shapes = ({0: nodes}, {0: edges}, {0: edges}, {0: edges})
    path = tmp_path_factory.mktemp("package") / "layer.pt2"
    with torch.no_grad():
        exported = torch.export.export(layer, graph(5, 12), dynamic_shapes=shapes)
        torch._inductor.aoti_compile_and_package(exported, package_path=str(path))
    return path, layer


def test_a_package_runs_for_other_sizes(packaged: tuple[Path, Layer]) -> None:
    path, layer = packaged
    package = torch._inductor.aoti_load_package(str(path))
    for nodes, edges in ((7, 30), (20, 2)):
        inputs = graph(nodes, edges)
        torch.testing.assert_close(package(*inputs), layer(*inputs))


def test_a_package_runs_without_python(packaged: tuple[Path, Layer], tmp_path: Path) -> None:
    path, layer = packaged
    program, inputs = tmp_path / "run_package", graph(9, 40)
    include = [f"-I{TORCH / 'include'}", f"-I{TORCH / 'include/torch/csrc/api/include'}"]
    link = [f"-L{TORCH / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{TORCH / 'lib'}"]
    source = str(Path(__file__).with_name("run_package.cpp"))
    subprocess.run(["g++", "-std=c++20", "-O0", source, "-o", str(program), *include, *link], check=True)
    assert "python" not in subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout.replace(
        str(TORCH), ""
    )
    torch.save(list(inputs), tmp_path / "inputs.pt")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CLEBSCH_LIBRARY"))}
    files = [str(tmp_path / "inputs.pt"), str(tmp_path / "outputs.pt")]
    subprocess.run([str(program), str(path), str(LIBRARY), *files], check=True, env=environment)
    (found,) = torch.load(tmp_path / "outputs.pt", weights_only=False)
    torch.testing.assert_close(found, layer(*inputs).detach())
    # Mistakes come through: an index beyond the nodes.
    torch.save([*inputs[:2], inputs[2] + 9, inputs[3]], tmp_path / "inputs.pt")
    done = subprocess.run([str(program), str(path), str(LIBRARY), *files], capture_output=True, text=True, env=environment)
    assert done.returncode != 0
    assert "index 'sender'" in done.stderr


def test_the_operator_without_the_library_is_pythons() -> None:
    """As with PyTorch before 2.10."""
    code = (
        "import clebsch.torch as ct, torch\n"
        "assert not ct._operator.NATIVE\n"
        "linear = ct.Linear('2x0e+1x1o', '3x0e+2x1o')\n"
        "x = torch.randn(4, 5, requires_grad=True)\n"
        "compiled = torch.compile(linear, fullgraph=True, backend='aot_eager')\n"
        "torch.testing.assert_close(compiled(x), linear(x))\n"
        "torch.autograd.grad(compiled(x).sum(), x)\n"
    )
    environment = {**os.environ, "CLEBSCH_TORCH_LIBRARY": ""}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_mistakes_name_the_operand() -> None:
    linear = clebsch.build("linear", in_="2x0e+1x1o", out="3x0e")
    run, x, weights = torch.ops.clebsch.run.default, torch.randn(4, 5), torch.randn(1, 6)
    for arguments, message in (
        (([x[:, 1:], weights], [4]), r"^x: expected shape \(4, 5\) for 2x0e\+1x1o, got \(4, 4\)"),
        (([x, weights.double()], [4]), "^weights: expected the dtype of x"),
        (([x.long(), weights], [4]), "^x: expected float32"),
        (([x], [4]), "^tensors: expected 2, got 1"),
        (([x, weights], []), "^rows: expected 1, got 0"),
    ):
        with pytest.raises(RuntimeError, match=message):
            run(linear.text, *arguments)
    apart = x.t().contiguous().t()
    assert torch.equal(run(linear.text, [apart, weights], [4])[0], run(linear.text, [x, weights], [4])[0])
