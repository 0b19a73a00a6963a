"""The C interface called with what a C program may pass: wrong sizes, null pointers, bytes that are no text."""

from ctypes import byref, c_char_p, c_int64, c_void_p, pointer, sizeof

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
