"""The C interface called with what a C program may pass: wrong sizes, null pointers, bytes that are no text."""

import os
import re
import shutil
import subprocess
import sys
from ctypes import CFUNCTYPE, Structure, addressof, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p, pointer, sizeof
from pathlib import Path

import clebsch
import numpy as np
import pytest
from clebsch import _library as lib

INVALID, MEMORY = 1, 6
SQUARE = """clebsch polynomial 0
basis e3nn-0.5
rows row
input x: 2x(1) mul_ir @ each
output z: 2x(1) mul_ir @ each
path u=2: z.0[u] += x.0[u] * x.0[u]
"""


def message() -> str:
    return lib.library.clebsch_last_error().decode("utf-8")


def square_call(x: np.ndarray, z: np.ndarray, rows: int, stride: int = 0) -> lib.Call:
    buffers = (lib.Buffer * 2)(*[lib.Buffer(array.ctypes.data, 1, rows, stride) for array in (x, z)])
    workspace = np.empty(1 << 16, np.uint8)
    call = lib.Call(
        size=sizeof(lib.Call),
        buffers=buffers,
        buffer_count=2,
        rows=(c_int64 * 1)(rows),
        space_count=1,
        workspace=workspace.ctypes.data,
        workspace_bytes=workspace.size,
    )
    call.arrays = workspace, x, z
    return call


@pytest.mark.parametrize("entry", ["launch", "reference"])
@pytest.mark.parametrize(
    ("rows", "stride", "expected"), [(-1, 0, "at least 0"), (2**62, 0, "2\\^63"), (3, 2**62, "2\\^63"), (3, -2, "stride")]
)
def test_rows_that_no_memory_holds_are_refused(entry: str, rows: int, stride: int, expected: str) -> None:
    operation = clebsch.Operation(SQUARE)
    call = square_call(np.ones((3, 2)), np.ones((3, 2)), rows, stride)
    if entry == "launch":
        plan = operation.plan("float64")
        assert lib.library.clebsch_launch(plan._handle, byref(call)) == INVALID
    else:
        assert lib.library.clebsch_evaluate_reference(operation._handle, byref(call)) == INVALID
    with pytest.raises(AssertionError, match=expected):
        raise AssertionError(message())


def test_what_no_memory_holds_is_named_with_its_size() -> None:
    operation, rows = clebsch.Operation(SQUARE), 2**45
    call = square_call(np.ones((3, 2)), np.ones((3, 2)), rows)
    assert lib.library.clebsch_evaluate_reference(operation._handle, byref(call)) == MEMORY
    assert message() == f"out of memory: the reference keeps every number in 16 bytes, x has {rows} x 2, z has {rows} x 2"


def test_outputs_and_workspace_have_memory_of_their_own() -> None:
    text = SQUARE.replace("rows row\n", "rows row\nindex to: row -> place\n")
    text = text.replace("z: 2x(1) mul_ir @ each", "z: 2x(1) mul_ir @ to")
    plan = clebsch.Operation(text).plan("float64")
    memory = np.zeros(1 << 13)
    x, z, index, workspace = memory[:6], memory[6:12], memory[12:15].view(np.int64), memory[16:]
    call = square_call(x, z, 3)
    call.indices, call.index_count = pointer(lib.IndexBuffer(index.ctypes.data, 1, 3)), 1
    call.rows, call.space_count = (c_int64 * 2)(3, 3), 2
    call.workspace, call.workspace_bytes = workspace.ctypes.data, workspace.nbytes
    assert lib.library.clebsch_launch(plan._handle, byref(call)) == 0
    call.workspace, call.workspace_bytes = memory[5:].ctypes.data, memory[5:].nbytes
    assert lib.library.clebsch_launch(plan._handle, byref(call)) == INVALID
    assert "workspace: expected memory of its own, it overlaps operand 'x'" in message()
    call.workspace, call.workspace_bytes = workspace.ctypes.data, workspace.nbytes
    call.indices = pointer(lib.IndexBuffer(memory[11:14].ctypes.data, 1, 3))
    assert lib.library.clebsch_launch(plan._handle, byref(call)) == INVALID
    assert "operand 'z'" in message()
    assert "it overlaps index 'to'" in message()


@pytest.mark.parametrize("atoms", [-1, 2**59, 2**62, 2**63 - 1])
def test_numbers_of_atoms_that_no_memory_holds_are_refused(atoms: int) -> None:
    positions = np.zeros((1, 3))
    options = lib.GraphOptions(
        size=sizeof(lib.GraphOptions), positions=positions.ctypes.data, atoms=atoms, structures=1, cutoff=1.0
    )
    graph = c_void_p()
    assert lib.library.clebsch_graph_build(pointer(options), byref(graph)) == INVALID
    assert message().startswith("atoms: ")


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xc3", b"\xe2\x82", b"\x80x", "\u00e9\u20ac\U0001f600".encode()])
def test_messages_are_utf8_whatever_they_quote(text: bytes) -> None:
    operation = clebsch.Operation(SQUARE)
    result = c_void_p()
    assert lib.library.clebsch_operation_vjp(operation._handle, (c_char_p * 1)(text), 1, byref(result)) == INVALID
    try:
        quoted = text.decode()
    except UnicodeDecodeError:
        quoted = text.decode("utf-8", "backslashreplace")
    assert f"'{quoted}'" in message()


def test_a_missing_name_is_refused_by_its_number() -> None:
    operation = clebsch.Operation(SQUARE)
    assert lib.library.clebsch_operation_vjp(operation._handle, (c_char_p * 2)(b"x", None), 2, byref(c_void_p())) == INVALID
    assert message() == "inputs[1]: expected a name, got NULL"


@pytest.mark.parametrize("name", sorted(set(lib._STATUS_FUNCTIONS) - {"clebsch_set_num_threads"}))
def test_null_pointers_are_refused_by_name(name: str) -> None:
    numbers = (c_int, c_int64, c_size_t, c_double)
    nothing = [0 if kind in numbers else None for kind in lib._STATUS_FUNCTIONS[name]]
    assert getattr(lib.library, name)(*nothing) == INVALID
    assert message().endswith(": expected a pointer, got NULL")


def test_a_null_handle_has_nothing_and_may_be_destroyed() -> None:
    for name, (result, arguments) in lib._OTHER_FUNCTIONS.items():
        if name in ("clebsch_last_error", "clebsch_version"):
            continue
        value = getattr(lib.library, name)(*[0 if kind is c_size_t else None for kind in arguments])
        assert not value or (result in (c_int64, c_double) and value == -1), name


@pytest.mark.parametrize("size", [0, 8])
def test_structs_that_do_not_say_their_size_are_refused(size: int) -> None:
    operation, result = clebsch.Operation(SQUARE), c_void_p()
    plan = operation.plan("float64")
    call = square_call(np.ones((3, 2)), np.ones((3, 2)), 3)
    call.size = size
    statuses = {
        "clebsch_call": lambda: lib.library.clebsch_launch(plan._handle, byref(call)),
        "clebsch_plan_options": lambda: lib.library.clebsch_plan_prepare(
            operation._handle, byref(lib.PlanOptions(size=size)), byref(result)
        ),
        "clebsch_graph_options": lambda: lib.library.clebsch_graph_build(byref(lib.GraphOptions(size=size)), byref(result)),
        "clebsch_operand_info": lambda: lib.library.clebsch_operation_operand(
            operation._handle, 0, byref(lib.OperandInfo(size=size))
        ),
    }
    for struct, status in statuses.items():
        assert status() == INVALID
        assert struct in message()


def test_a_caller_may_bring_its_own_threads() -> None:
    task_type = CFUNCTYPE(None, c_void_p, c_int64)
    run_type = CFUNCTYPE(None, c_void_p, c_int64, task_type, c_void_p)

    class Parallel(Structure):
        _fields_ = [("context", c_void_p), ("threads", c_int), ("run", run_type)]

    counts = []

    @run_type
    def backwards(context: int, count: int, task: object, argument: int) -> None:
        counts.append(count)
        for i in reversed(range(count)):
            task(argument, i)

    rows = 200_000
    x = np.random.default_rng(0).standard_normal((rows, 2))
    z = np.zeros_like(x)
    plan = clebsch.Operation(SQUARE).plan("float64")
    call = square_call(x, z, rows)
    workspace = np.empty(plan.workspace_bytes({"row": rows}) + (1 << 20), np.uint8)
    call.workspace, call.workspace_bytes = workspace.ctypes.data, workspace.size
    parallel = Parallel(None, 4, backwards)
    call.parallel = addressof(parallel)
    assert lib.library.clebsch_launch(plan._handle, byref(call)) == 0, message()
    assert max(counts) > 1
    assert np.array_equal(z, x * x)
    parallel.threads = 0
    assert lib.library.clebsch_launch(plan._handle, byref(call)) == INVALID
    assert message() == "parallel.threads: expected at least 1, got 0"


def test_the_package_and_the_library_say_the_same_version() -> None:
    root = Path(__file__).resolve().parents[2]
    cmake = re.search(r"project\(clebsch VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text())
    wheel = re.search(r'^version = "([0-9.]+)"', (root / "pyproject.toml").read_text(), re.MULTILINE)
    assert cmake is not None
    assert wheel is not None
    assert clebsch.__version__ == lib.PACKAGE_VERSION == cmake[1] == wheel[1]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('const char* clebsch_version(void) { return "0.0.7"; }', "is version 0.0.7, this Python package {}"),
        ('const char* clebsch_version(void) { return "{}"; }', "(version {}) lacks a function of this Python package (version {})"),
        ("int something_else(void) { return 0; }", "(version unknown) lacks a function of this Python package (version {})"),
    ],
)
def test_another_library_is_refused_with_both_versions(tmp_path: Path, source: str, words: str) -> None:
    library = tmp_path / "libclebsch.so"
    (tmp_path / "other.c").write_text(source.replace("{}", lib.PACKAGE_VERSION))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "other.c"], check=True)
    package = str(Path(clebsch.__file__).resolve().parents[1])
    environment = os.environ | {"CLEBSCH_LIBRARY": str(library), "PYTHONPATH": package}
    run = subprocess.run([sys.executable, "-c", "import clebsch"], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: clebsch: {library}")
    assert words.replace("{}", lib.PACKAGE_VERSION) in last
