"""What README, docs and examples show runs and prints what they say."""

import contextlib
import io
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import clebsch
import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)


def words(text: str) -> list[object]:
    """Numbers may differ in the last digits from machine to machine; everything else may not."""
    pieces = re.split(r"(-?\d+\.\d+(?:e-?\d+)?)|\s+", text)
    return [pytest.approx(float(piece), rel=1e-7) if re.match(r"-?\d+\.", piece) else piece for piece in pieces if piece]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/run-a-model.md"])
def test_pages_print_what_they_show(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not find_spec("vesin"):
        pytest.skip("graphs need vesin")
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}  # later blocks of a page use what earlier ones made
    compared = 0
    for block in blocks(page):
        if "clebsch.ase" in block:
            continue  # needs ase and a caller's atoms
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), names)  # noqa: S102
        shown = "".join(line[2:] + "\n" for line in block.splitlines() if line.startswith("# "))
        assert words(printed.getvalue()) == words(shown)
        compared += bool(shown)
    assert compared


def test_the_page_of_the_text_shows_descriptions() -> None:
    page = (ROOT / "docs" / "text.md").read_text()
    texts = [text for text in re.findall(r"(?:^    .*\n)+", page, flags=re.MULTILINE) if text.startswith("    clebsch ")]
    assert len(texts) >= 2
    for text in texts:
        operation = clebsch.Operation(text)
        assert clebsch.Operation(operation.text) == operation


def test_an_operation_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "own_operation.py"))
    assert "gradient to a dipole is minus the field" in capsys.readouterr().out


def test_a_picture_of_losses() -> None:
    draw = runpy.run_path(str(ROOT / "examples" / "loss_picture.py"))["loss_picture"]
    picture = ElementTree.fromstring(draw([100.0, 1.0, 0.01, 10.0], "What & how"))  # noqa: S314 - of our own making
    line = picture.find("{*}polyline")
    assert line is not None
    heights = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
    assert heights == pytest.approx([40, 175, 310, 107.5])
    labels = [text.text for text in picture.iterfind("{*}text")]
    assert labels[0] == "What & how"
    assert {"100", "0.01", "step", "loss"} <= set(labels)


def test_a_convolution_in_jax(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax")
    example = runpy.run_path(str(ROOT / "examples" / "jax_convolution.py"))
    losses = example["main"](steps=40)
    assert losses[-1] < 0.05 * losses[0]
    assert "forces of the turned positions are the turned forces" in capsys.readouterr().out


def test_the_page_about_jax() -> None:
    pytest.importorskip("jax")
    names: dict[str, object] = {}
    for block in blocks("docs/jax.md"):
        exec(compile(block, "docs/jax.md", "exec"), names)  # noqa: S102


def test_jax_is_loaded_when_asked_for() -> None:
    """And if it is missing, the error says how to get it."""
    code = "import clebsch, sys; assert 'jax' not in sys.modules; import clebsch.jax"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if find_spec("jax"):
        assert done.returncode == 0, done.stderr
    else:
        assert "ImportError: clebsch.jax needs JAX 0.7 or newer: pip install jax" in done.stderr


def test_torch_is_loaded_when_asked_for() -> None:
    """And if it is missing, the error says how to get it."""
    code = "import clebsch, sys; assert 'torch' not in sys.modules; import clebsch.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if find_spec("torch"):
        assert done.returncode == 0, done.stderr
    else:
        assert "ImportError: clebsch.torch needs PyTorch 2.4 or newer: pip install torch" in done.stderr
