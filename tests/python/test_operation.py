"""Operations through the Python package: text, derivatives, plans, calls on arrays, errors."""

import copy
import html.parser
import pickle
import threading
from xml.etree import ElementTree

import clebsch
import numpy as np
import pytest
from clebsch._picture import paths_svg

NODES, EDGES = 6, 23


def convolution(**options: object) -> clebsch.Operation:
    return clebsch.build("convolution", in_="5x0e+3x1o", edge="0e+1o+2e", out="0e+1o", **options)


def inputs(operation: clebsch.Operation, dtype: str = "float64", nodes: int = NODES, edges: int = EDGES) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    rows = {"edge": edges, "node": nodes, None: 1}
    arrays = {o.name: generator.standard_normal((rows[o.space], o.row_size)).astype(dtype) for o in operation.inputs}
    if operation.indices:
        arrays["sender"] = generator.integers(0, nodes, edges)
        arrays["receiver"] = np.sort(generator.integers(0, nodes, edges))
    return arrays


def error(value: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(value - expected) / np.linalg.norm(expected))


def test_text_round_trip_hash_and_pickle() -> None:
    operation = convolution()
    again = clebsch.Operation(operation.text)
    assert again == operation
    assert again.hash == operation.hash
    assert len(operation.hash) == 32
    assert pickle.loads(pickle.dumps(operation)) == operation
    assert "cg(" in operation.text
    assert convolution(x_layout="ir_mul") != operation


def test_operands_spaces_and_indices_are_listed() -> None:
    operation = convolution()
    assert set(operation.spaces) == {"edge", "node"}
    assert [index.name for index in operation.indices] == ["sender", "receiver"]
    assert operation.indices[1].sorted
    x = operation.inputs[0]
    assert (x.name, x.segments, x.row_size, x.space) == ("x", "5x0e+3x1o", 14, "node")
    assert "x: 5x0e+3x1o @ node" in repr(operation)


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-13), ("float32", 2e-6)])
@pytest.mark.parametrize("layout", ["ir_mul", "mul_ir"])
def test_calls_give_the_reference_forward_and_backward(dtype: str, bound: float, layout: str) -> None:
    operation = convolution(x_layout=layout)
    arrays = inputs(operation, dtype)
    expected = operation.reference({"node": NODES}, **arrays)
    assert error(operation(**arrays), expected) < bound
    gradient = operation.vjp("x", "y", "weights")
    arrays["out_cotangent"] = np.random.default_rng(1).standard_normal(expected.shape).astype(dtype)
    results, references = gradient(**arrays), gradient.reference(**arrays)
    assert set(results) == {"x_gradient", "y_gradient", "weights_gradient"}
    for name, value in results.items():
        assert value.dtype == dtype
        assert error(value, references[name]) < bound


def test_jvp_is_dual_to_vjp() -> None:
    operation = convolution()
    arrays = inputs(operation)
    arrays["x_tangent"] = np.random.default_rng(2).standard_normal(arrays["x"].shape)

    def run(derivative: clebsch.Operation) -> np.ndarray:
        names = {operand.name for operand in derivative.inputs} | {index.name for index in derivative.indices}
        return derivative({"node": NODES}, **{name: arrays[name] for name in names})

    forward = run(operation.jvp("x"))
    arrays["out_cotangent"] = np.random.default_rng(3).standard_normal(forward.shape)
    backward = run(operation.vjp("x"))
    assert np.vdot(arrays["out_cotangent"], forward) == pytest.approx(np.vdot(backward, arrays["x_tangent"]), rel=1e-12)


def test_programs_run_and_differentiate() -> None:
    operation = clebsch.build("spherical_harmonics", irreps="0e+1o+2e+3o", normalize=True)
    vector = np.random.default_rng(0).standard_normal((40, 3))
    vector[7] = 0
    name = operation.inputs[0].name
    values = operation(**{name: vector})
    assert values == pytest.approx(operation.reference(**{name: vector}), abs=1e-13)
    assert values[7] == pytest.approx([1] + [0] * 15)
    cotangent = np.ones((40, 16))
    result = operation.vjp(name)(**{name: vector, f"{operation.outputs[0].name}_cotangent": cotangent})
    assert np.all(result[7] == 0)
    step = 1e-6 * np.random.default_rng(1).standard_normal(vector.shape)
    step[7] = 0
    change = operation(**{name: vector + step}) - operation(**{name: vector - step})
    assert np.sum(change) == pytest.approx(2 * np.vdot(result, step), rel=1e-6)


def test_results_are_bitwise_equal_for_any_number_of_threads() -> None:
    operation = convolution().vjp("x", "weights")
    arrays = inputs(operation, "float32", nodes=100, edges=5000)
    results = []
    try:
        for threads in (1, 2, 5):
            clebsch.set_num_threads(threads)
            results.append(operation(**arrays))
    finally:
        clebsch.set_num_threads(0)
    for other in results[1:]:
        for name, value in results[0].items():
            assert np.array_equal(value, other[name])


def test_one_plan_runs_in_several_threads() -> None:
    operation = convolution()
    plan = operation.plan("float64")
    arrays = inputs(operation)
    expected = plan({"node": NODES}, **arrays)
    failures: list[int] = []

    def work() -> None:
        failures.extend(1 for _ in range(50) if not np.array_equal(plan({"node": NODES}, **arrays), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_bound_calls_follow_their_arrays() -> None:
    operation = convolution()
    arrays = inputs(operation)
    out = np.empty((NODES, operation.outputs[0].row_size))
    call = operation.plan("float64").bind(out={"out": out}, **arrays)
    call()
    before = out.copy()
    arrays["x"] *= 2
    assert np.shares_memory(call(), out)
    assert out == pytest.approx(2 * before)


def test_strided_rows_masks_and_small_indices() -> None:
    operation = convolution()
    arrays = inputs(operation)
    wide = np.zeros((NODES, 40))
    wide[:, 3:17] = arrays["x"]
    narrow = {**arrays, "x": wide[:, 3:17], "sender": arrays["sender"].astype(np.int32)}
    assert np.array_equal(operation(**narrow), operation(**arrays))
    kept = np.arange(EDGES) % 3 != 0
    masked = {**arrays, "sender": np.where(kept, arrays["sender"], -1)}
    fewer = {k: (v[kept] if len(v) == EDGES else v) for k, v in arrays.items()}
    assert operation(**masked) == pytest.approx(operation(**fewer))


def test_arrays_at_any_multiple_of_four_bytes() -> None:
    operation = convolution()

    def four_bytes_on(array: np.ndarray) -> np.ndarray:
        memory = np.empty(array.nbytes + 12, dtype=np.uint8)
        start = (4 - memory.ctypes.data) % 8
        view = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        assert view.ctypes.data % 8 == 4
        return view

    arrays = inputs(operation)
    expected = operation(**arrays)
    out = four_bytes_on(np.zeros_like(expected))
    operation.plan("float64").bind(out={"out": out}, **{name: four_bytes_on(array) for name, array in arrays.items()})()
    assert np.array_equal(out, expected)


def test_empty_graphs() -> None:
    operation = convolution()
    arrays = {o.name: np.zeros(({"edge": 0, "node": 3}[o.space], o.row_size)) for o in operation.inputs}
    result = operation(sender=np.zeros(0, int), receiver=np.zeros(0, int), **arrays)
    assert result.shape == (3, operation.outputs[0].row_size)
    assert not result.any()


BAD_CALLS = {
    "wrong width": (lambda a: a.update(x=a["x"][:, :-1]), "x: expected shape"),
    "wrong dtype": (lambda a: a.update(x=a["x"].astype(np.int64)), "int64"),
    "missing array": (lambda a: a.pop("weights"), "weights"),
    "unknown array": (lambda a: a.update(z=a["x"]), "'z'"),
    "rows that differ": (lambda a: a.update(y=a["y"][:-1]), "expected 23 rows of space 'edge'"),
    "index out of range": (lambda a: a.update(sender=a["sender"] + NODES), "sender"),
    "unsorted receivers": (lambda a: a.update(receiver=a["receiver"][::-1].copy()), "receiver"),
    "float index": (lambda a: a.update(sender=a["sender"] * 1.0), "integer"),
    "index of two dimensions": (lambda a: a.update(sender=a["sender"][None]), "1-D"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_calls_name_the_operand(case: str) -> None:
    change, message = BAD_CALLS[case]
    operation = convolution()
    arrays = inputs(operation)
    change(arrays)
    with pytest.raises(ValueError, match=message):
        operation(**arrays)


def shifted(array: np.ndarray) -> np.ndarray:
    """The same numbers at an address that is no multiple of their size."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    result = np.frombuffer(memory.data, dtype=array.dtype, count=array.size, offset=1).reshape(array.shape)
    result[:] = array
    return result


def windows(array: np.ndarray) -> np.ndarray:
    """Rows that overlap in memory."""
    return np.lib.stride_tricks.sliding_window_view(array.ravel(), array.shape[1])[: len(array)]


VIEWS = {
    "one row for all": ("y", lambda a: np.broadcast_to(a[:1], a.shape)),
    "overlapping rows": ("y", windows),
    "reversed rows": ("y", lambda a: a[::-1]),
    "other order": ("y", np.asfortranarray),
    "misaligned": ("y", shifted),
    "integers of the other byte order": ("sender", lambda a: a.astype(a.dtype.newbyteorder())),
    "short integers of the other byte order": ("sender", lambda a: a.astype(">i4")),
    "bytes": ("sender", lambda a: a.astype(np.int8)),
    "reversed integers": ("sender", lambda a: a[::-1]),
    "misaligned integers": ("sender", shifted),
}


@pytest.mark.parametrize("case", VIEWS)
def test_any_view_of_memory_gives_what_a_copy_gives(case: str) -> None:
    name, view = VIEWS[case]
    operation = convolution()
    arrays = inputs(operation)
    seen = view(arrays[name])
    copied = operation.reference({"node": NODES}, **{**arrays, name: np.array(seen, dtype=arrays[name].dtype)})
    arrays[name] = seen
    assert error(operation(**arrays), copied) < 1e-13
    assert error(operation.reference({"node": NODES}, **arrays), copied) < 1e-15


def test_a_bound_call_sees_changes_of_arrays_it_had_to_copy() -> None:
    operation = convolution()
    arrays = inputs(operation)
    arrays["x"] = arrays["x"][::-1]
    bound = operation.plan("float64").bind(**arrays)
    first = bound().copy()
    arrays["x"] *= 2
    assert error(bound(), 2 * first) < 1e-15


def test_outputs_that_cannot_be_written_in_place_are_refused() -> None:
    plan = convolution().plan("float64")
    arrays = inputs(plan.operation)
    right = np.zeros((NODES, plan.operation.outputs[0].row_size))
    fixed = right.copy()
    fixed.flags.writeable = False
    one_row = np.lib.stride_tricks.as_strided(right, right.shape, (0, right.itemsize))
    for wrong in (right[::-1], np.asfortranarray(right), shifted(right), one_row, fixed, right.tolist(), arrays["x"], None):
        with pytest.raises(clebsch.ClebschError, match="^out: "):
            plan(out={"out": wrong}, **arrays)
    assert plan(out={"out": right}, **arrays) is right
    assert plan.operation(out={"out": right}, **arrays) is right
    with pytest.raises(clebsch.ClebschError, match="^out: expected dtype float64, got float32"):
        plan(out={"out": right.astype(np.float32)}, **arrays)
    for call in (plan, plan.operation):
        with pytest.raises(clebsch.ClebschError, match="^out: expected a mapping"):
            call(out=right, **arrays)


def test_an_output_without_components_may_be_given() -> None:
    plan = clebsch.build("full_product", in1="2x1o", in2="0x1o").plan("float64")
    assert plan(out={"out": np.zeros((8, 0))[:5]}, x=np.ones((5, 6)), y=np.ones((5, 0))).shape == (5, 0)


BAD_ROWS = {"half": 6.5, "word": "6", "nothing": None, "negative": -1, "beyond 64 bits": 2**64 + NODES}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_row_counts_are_refused(case: str) -> None:
    operation = convolution().jvp("y", "weights")
    with pytest.raises(clebsch.ClebschError, match="^rows: .*'node'"):
        operation({"node": BAD_ROWS[case]}, **inputs(convolution()))
    with pytest.raises(clebsch.ClebschError, match="^rows: .*'node'"):
        convolution().plan().workspace_bytes({"edge": 1, "node": BAD_ROWS[case]})


def test_the_workspace_of_unknown_rows_is_refused() -> None:
    with pytest.raises(clebsch.ClebschError, match="^rows: .*'node'"):
        convolution().plan().workspace_bytes({"edge": 1})


@pytest.mark.parametrize("peak", [-1.0, np.nan, np.inf])
def test_impossible_peaks_are_refused(peak: float) -> None:
    for peaks, name in (((peak, 0.0), "copy_gigabytes_per_second"), ((0.0, peak), "fma_gigaflops")):
        with pytest.raises(clebsch.ClebschError, match=f"^{name}: expected"):
            convolution().explain(*peaks)


def test_errors_of_dtypes_name_the_operand() -> None:
    operation = convolution()
    arrays = inputs(operation)
    for name, wrong, message in (
        ("x", arrays["x"].astype(np.int64), "^x: .*int64"),
        ("x", arrays["x"].astype(">f8"), "^x: .*byte order"),
        ("sender", np.full(EDGES, 2**64 - 1, np.uint64), "^sender: .*18446744073709551615"),
    ):
        with pytest.raises(clebsch.ClebschError, match=message):
            operation(**{**arrays, name: wrong})
    with pytest.raises(clebsch.ClebschError, match="^x: .*complex"):
        operation.reference({"node": NODES}, **{**arrays, "x": arrays["x"] + 1j})
    with pytest.raises(clebsch.ClebschError, match="^out: expected a mapping"):
        operation.plan("float64")(out=arrays["x"], **arrays)


def test_bad_descriptions_are_refused() -> None:
    with pytest.raises(clebsch.ClebschError, match="line"):
        clebsch.Operation("clebsch polynomial 0\nnonsense")
    with pytest.raises(clebsch.ClebschError):
        clebsch.Operation("")
    with pytest.raises(FileNotFoundError, match="convolution"):
        clebsch.build("convolutoin")
    with pytest.raises(clebsch.ClebschError, match="edge"):
        clebsch.build("convolution", in_="1x0e", out="0e")
    with pytest.raises(clebsch.ClebschError, match="colour"):
        convolution(colour="red")
    with pytest.raises(clebsch.ClebschError, match="nothing"):
        convolution().vjp("nothing")
    with pytest.raises(clebsch.ClebschError, match="float16"):
        convolution().plan("int8")
    with pytest.raises(clebsch.ClebschError, match="kernel family"):
        convolution().plan(kernel="fast")
    with pytest.raises(ValueError, match="sparc"):
        convolution().plan(instruction_set="sparc")


def test_explain_names_the_kernel_and_builders_describe_themselves() -> None:
    assert "fold" in convolution().explain()
    for name, builder in clebsch.builders().items():
        assert builder["help"], name


def test_a_bound_call_follows_the_number_of_threads() -> None:
    operation = clebsch.build("convolution", in_="4x0e+4x1o", edge="0e+1o", out="0e+1o")
    rng = np.random.default_rng(5)
    rows = {"node": 300, "edge": 20_000}
    arrays = {o.name: rng.standard_normal((rows[o.space], o.row_size)) for o in operation.inputs}
    receiver = np.sort(rng.integers(0, 300, 20_000))
    sender = rng.integers(0, 300, 20_000)
    try:
        clebsch.set_num_threads(1)
        bound = (
            operation.vjp("x")
            .plan("float64")
            .bind(
                rows,
                **{name: array for name, array in arrays.items() if name != "x"},
                out_cotangent=rng.standard_normal((300, operation.outputs[0].row_size)),
                sender=sender,
                receiver=receiver,
            )
        )
        expected = bound().copy()
        clebsch.set_num_threads(8)
        np.testing.assert_array_equal(bound(), expected)
    finally:
        clebsch.set_num_threads(0)


@pytest.mark.parametrize("threads", [2.5, "4", -1, 2000, None])
def test_set_num_threads_refuses_what_is_no_number_of_threads(threads: object) -> None:
    with pytest.raises(clebsch.ClebschError, match="threads: expected"):
        clebsch.set_num_threads(threads)


def test_masks_are_refused_instead_of_lost() -> None:
    operation = convolution()
    arrays = inputs(operation)
    out = np.zeros((NODES, operation.outputs[0].row_size))
    for name in ("x", "sender"):
        masked = {**arrays, name: np.ma.masked_array(arrays[name], mask=arrays[name] < 0)}
        for run in (operation, operation.reference, operation.plan("float64")):
            with pytest.raises(clebsch.ClebschError, match=f"^{name}: expected an array without a mask"):
                run(**masked)
    with pytest.raises(clebsch.ClebschError, match="^out: .*mask"):
        operation.plan("float64")(out={"out": np.ma.masked_array(out)}, **arrays)


@pytest.mark.parametrize(
    "dtype", ["float64", np.float64, np.dtype("float64"), {"x": np.float64, "y": "float64", "weights": "float64"}]
)
def test_dtypes_by_any_name(dtype: object) -> None:
    operation = convolution()
    plan = operation.plan(dtype)
    assert plan.dtypes[:3] == ("float64",) * 3


@pytest.mark.parametrize("dtype", [None, "zzz", 64, int, np.int64, object, np.dtype("float64").newbyteorder, ["float32"]])
def test_what_is_no_dtype_is_refused(dtype: object) -> None:
    with pytest.raises(clebsch.ClebschError, match="^dtype: expected one of float32, float64, bfloat16, float16, got"):
        convolution().plan(dtype)
    with pytest.raises(clebsch.ClebschError, match="^dtype: expected one of"):
        convolution().plan({"x": dtype})


def test_plans_are_copied_by_preparing_again() -> None:
    arrays = inputs(convolution())
    expected = convolution()(**arrays)
    for make in (copy.copy, copy.deepcopy, lambda plan: pickle.loads(pickle.dumps(plan))):
        plan = make(
            convolution().plan({"x": "float64", "y": "float64", "weights": "float64", "out": "float64"}, instruction_set="baseline")
        )
        assert error(plan(**arrays), expected) < 1e-13
        assert "baseline" in plan.explain()
    with pytest.raises(TypeError, match="bind again"):
        copy.copy(convolution().plan("float64").bind(**arrays))


class Cells(html.parser.HTMLParser):
    """The texts of a page's table cells, and whether every tag is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_notebooks_show_tables_of_arrays_and_paths() -> None:
    operation = convolution()
    texts = Cells(operation._repr_html_()).texts
    for operand in operation.operands:
        assert operand.name in texts
        assert operand.segments in texts
    assert {"sender", "receiver", "non-decreasing"} <= set(texts)
    paths = [line for line in operation.text.splitlines() if line.startswith("path")]
    assert [text for text in texts if text.count("cg(") and text not in paths] == [path.split(" += ")[1] for path in paths]
    program = clebsch.build("gate", scalars="4x0e", scalar_functions="silu", gates="2x0e", gate_functions="sigmoid", gated="2x1o")
    assert any("sigmoid" in text for text in Cells(program._repr_html_()).texts)
    blocks = "+".join(["1x0e+1x1o+1x2e"] * 6)
    large = clebsch.build("fully_connected", in1=blocks, in2="0e+1o+2e", out="0e+1o+2e")
    count = large.text.count("\npath")
    assert f"and {count - 60} more" in Cells(large._repr_html_()).texts


def test_notebooks_show_a_picture_of_the_paths() -> None:
    """Boxes of blocks that have irreps, a dot per path with its line of text, and lines to what meets there."""
    operation = convolution()
    picture = ElementTree.fromstring(paths_svg(operation))
    assert paths_svg(operation) in operation._repr_html_()
    name = "{http://www.w3.org/2000/svg}"
    paths = [line for line in operation.text.splitlines() if line.startswith("path")]
    dots = picture.findall(f"{name}circle")
    assert [dot.findtext(f"{name}title") for dot in dots] == paths
    assert all(dot.get("fill") != "none" for dot in dots)  # weights are part of every path
    assert len(picture.findall(f"{name}path")) == 3 * len(paths)  # x, y and out
    blocks = [operand.segments.count("+") + 1 for operand in operation.operands if operand.name != "weights"]
    assert len(picture.findall(f"{name}rect")) == sum(blocks)
    _, _, _, height = map(float, picture.get("viewBox", "").split())
    for part in (*dots, *picture.findall(f"{name}text")):
        assert 0 < float(part.get("cy") or part.get("y") or 0) < height
    assert paths_svg(clebsch.build("radial_network", cutoff=5.0, outputs=6, hidden="8,8")) == ""
    for derivative in (operation.vjp("y"), operation.vjp("x", "y", "weights"), operation.vjp("y").vjp("x")):
        dots = ElementTree.fromstring(paths_svg(derivative)).findall(f"{name}circle")
        assert len(dots) == sum(line.startswith("path") for line in derivative.text.splitlines())


def test_plans_and_the_package_say_what_they_are() -> None:
    operation = convolution()
    assert repr(operation.plan("float64")) == f"<Plan of {operation.hash[:12]} for float64 on cpu>"
    assert {"build", "neighbor_graph", "spherical_harmonics", "torch"} <= set(dir(clebsch))
    assert "annotations" not in dir(clebsch)


def test_spherical_harmonics_of_arrays() -> None:
    vectors = np.random.default_rng(0).normal(size=(2, 5, 3))
    found = clebsch.spherical_harmonics("0e+1o+2e", vectors, True)
    assert found.shape == (2, 5, 9)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    np.testing.assert_allclose(found[..., 1:4], np.sqrt(3) * vectors / lengths, rtol=1e-14)
    assert clebsch.spherical_harmonics([(1, (2, 1))], np.ones(3, np.float32), False, "norm").dtype == np.float32
    np.testing.assert_array_equal(clebsch.spherical_harmonics("1o", [0, 0, 2], False, "norm"), [0, 0, 2])
    with pytest.raises(ValueError, match=r"vectors: expected a last dimension of 3, got shape \(5, 2\)"):
        clebsch.spherical_harmonics("1o", np.ones((5, 2)), True)


def test_mistyped_options_are_named() -> None:
    with pytest.raises(ValueError, match="there is no option 'inn'"):
        clebsch.build("convolution", inn="1x0e", edge="0e", out="0e")


def test_an_order_found_once_serves_unsorted_receivers() -> None:
    operation = convolution(sorted="false")
    ordered = operation.in_order_of("receiver")
    arrays = inputs(operation)
    arrays["receiver"] = np.random.default_rng(3).permutation(arrays["receiver"])
    arrays["receiver"][5] = -1
    expected = operation.plan("float64")(**arrays, rows={"node": NODES})
    for dtype in ("int32", "int64"):
        order = clebsch.RowOrder(arrays["receiver"].astype(dtype), NODES)
        assert (order.sorted[:-1] >= 0).all()
        assert order.sorted[-1] == -1
        assert (np.diff(order.sorted[:-1]) >= 0).all()
        assert (arrays["receiver"][order.order] == order.sorted).all()
        others = {name: array for name, array in arrays.items() if name != "receiver"}
        result = ordered.plan("float64")(**others, receiver_order=order.order, receiver_sorted=order.sorted)
        assert error(result, expected) < 1e-12
    with pytest.raises(clebsch.ClebschError, match="expected -1 or a row"):
        clebsch.RowOrder(arrays["receiver"], 2)
    with pytest.raises(clebsch.ClebschError, match="index: expected a 1-D array of int32 or int64, got float64"):
        clebsch.RowOrder(np.zeros(3), 2)
    for device in ("gpu", "cuda:x"):
        with pytest.raises(ValueError, match=f"device: expected .*, got '{device}'"):
            clebsch.RowOrder(np.zeros(3, dtype="int32"), 2, device=device)
    with pytest.raises(ValueError, match="target_rows: expected an integer, got 3.5"):
        clebsch.RowOrder(np.zeros(3, dtype="int32"), 3.5)
    assert clebsch.RowOrder(np.zeros(0, dtype="int32"), 2).order.shape == (0,)
    with pytest.raises(clebsch.ClebschError, match="declared as sorted"):
        convolution().plan("float64")(**arrays)
