"""Claim: a traced function gives what the same function gives with numpy, loops and branches
included, and what cannot be traced is refused with the user's line."""

import sys

import eddy
import numpy as np
import pytest


def line():
    return sys._getframe(1).f_lineno


def refused(function, *arguments, match):
    """Calls, and gives the line that the error names in this file."""
    with pytest.raises(eddy.Error, match=match) as caught:
        function(*arguments)
    location = caught.value.location
    assert location is not None and location.file.endswith("tracing_test.py")
    assert f"tracing_test.py:{location.line}" in str(caught.value)
    return location.line


X = np.arange(1.0, 7.0).reshape(2, 3)
SAME = {
    "arithmetic": lambda x: (x + 1) * 2 - x / 3 + 2**x + (-x) ** 2,
    "division": lambda x: (x // 2, x % 2, (-x) // 2, (-x) % 2, 7 % x),
    "comparisons": lambda x: (x > 2, x >= 2, 2 < x, x == 3, x != 3, (x > 1) & ~(x > 4)),
    "unary": lambda x: (np.sqrt(x), np.exp(-x), np.log1p(x), abs(-x), np.sign(-x), np.square(x)),
    "where": lambda x: np.where(x > 2, x, 0),
    "matmul": lambda x: x @ x.T,
    "constants": lambda x: np.ones(3) + x - np.arange(3),
    "reductions": lambda x: (x.sum(), x.mean(0), x.max(axis=1), x.min(axis=(0, 1)), np.sum(x, -1)),
    "kept": lambda x: x / x.sum(axis=1, keepdims=True),
    "booleans": lambda x: ((x > 2).any(), (x > 0).all(axis=0)),
    "argmax": lambda x: (x.argmax(), x.argmin(axis=1), np.argmax(x, axis=0)),
    "shapes": lambda x: (x.reshape(3, 2), x.reshape(-1), x.T, np.expand_dims(x, 1), x[None]),
    "joins": lambda x: (np.concatenate([x, x + 1]), np.stack([x, x], axis=1)),
    "slices": lambda x: (x[1], x[:, 1:], x[..., -1], x[::-1], x[0, ::2], x[:1, None, 1:]),
    "lists": lambda x: (x[:, [2, 0]], x[[1, 1]], np.take(x, [0, 2], axis=1)),
    "clip": lambda x: (np.clip(x, 2, 4), np.maximum(x, 3), np.minimum(2, x)),
    "integers": lambda x: x.astype(np.int64) // 2 + x.astype(np.int32) % 3,
    "casts": lambda x: (x.astype(np.float32) * 2, x.astype(np.int64) / 2, x.astype(int) + 0.5),
    "filled": lambda x: (np.zeros_like(x), np.full_like(x, 3), np.broadcast_to(x, (2, 2, 3))),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "norm": lambda x: (np.linalg.norm(x), np.linalg.norm(x, axis=1)),
    "cumsum": lambda x: (np.cumsum(x, axis=1), np.cumsum(x)),
    "unpacked": lambda x: [row * i for i, row in enumerate(x)],
}


@pytest.mark.parametrize("name", SAME)
def test_a_trace_gives_what_numpy_gives(name):
    function = SAME[name]
    made, wanted = eddy.function(function, name="f")(X), function(X)
    if not isinstance(wanted, (tuple, list)):
        made, wanted = [made], [wanted]
    assert len(made) == len(wanted)
    for a, b in zip(made, wanted):
        assert a.dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_structures_go_in_and_come_out():
    @eddy.function
    def f(pair, named, nothing, sign=1):
        a, b = pair
        return {"sum": a + b + named["c"], "rest": (sign * a, [b], nothing)}

    made = f((1.0, 2.0), {"c": 3.0}, None, sign=-1)
    assert made["sum"] == 6 and made["rest"] == (-1, [2], None)
    assert f((1.0, 2.0), {"c": 3.0}, None)["rest"][0] == 1
    types = [each.name for each in f.trace((1.0, 2.0), {"c": 3.0}, None).session.get_inputs()]
    assert types == ["pair.0", "pair.1", "named.0"]


def test_names_stand_for_sizes_that_come_later():
    @eddy.function
    def f(x):
        assert x.shape == ("n", 3) and x.dtype == np.float32 and x.ndim == 2
        return x[1:].sum(axis=0) / x.length().astype(np.float32)

    traced = f.trace(eddy.TensorType(np.float32, ("n", 3)))
    for n in (1, 4):
        x = np.ones((n, 3), np.float32)
        (y,) = traced.session.run(None, {"x": x})
        np.testing.assert_allclose(y, [(n - 1) / n] * 3, rtol=1e-6)
    assert "ReduceSum" in str(traced)


def test_a_function_is_traced_once_for_its_types():
    calls = []

    @eddy.function
    def f(x):
        calls.append(x.shape)
        return x + 1

    for size in (2, 3, 2, 3):
        f(np.ones(size))
    assert calls == [(2,), (3,)]


def test_loops_iterate_as_the_numbers_say():
    @eddy.function
    def gcd(a, b):
        return eddy.while_loop(lambda a, b: b != 0, lambda a, b: (b, a % b), (a, b))[0]

    for a, b in [(12, 18), (17, 5), (0, 3), (7, 0)]:
        assert gcd(a, b) == np.gcd(a, b)


def test_loops_have_limits_and_change_shapes():
    @eddy.function
    def grow(x, most):
        return eddy.while_loop(
            lambda x: x.sum() < 100, lambda x: np.concatenate([x, x]), x, max_trips=most
        )

    assert grow(np.ones(3), 2).shape == (12,)
    assert grow(np.ones(3), 99).shape == (192,)


def test_loops_nest_and_stack_structures_of_rows():
    @eddy.function
    def table(n):
        def row(i):
            _, products = eddy.scan(lambda j, _: (j + 1, i * j), 0, length=3)
            return i + 1, {"products": products, "i": i}

        return eddy.while_loop(lambda i: i < n, row, 0, collect=True)

    last, rows = table(4)
    assert last == 4 and rows["i"].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(rows["products"], np.outer(range(4), range(3)))


def test_a_scan_gives_carried_values_and_rows():
    @eddy.function
    def sums(x):
        return eddy.scan(lambda c, row: (c + row, (c, row * 2)), np.zeros(3), x)

    last, (before, twice) = sums(X)
    np.testing.assert_array_equal(last, X.sum(axis=0))
    np.testing.assert_array_equal(before, [np.zeros(3), X[0]])
    np.testing.assert_array_equal(twice, X * 2)


def test_only_the_branch_that_is_chosen_runs():
    calls = []

    @eddy.operator
    def note(x, *, which: int):
        calls.append(which)
        return x + which

    @eddy.function(operators=[note])
    def f(flag, i, x):
        return (
            eddy.cond(flag, lambda x: note(x, which=1), lambda x: note(x, which=2), x),
            eddy.case(
                i,
                [lambda: note(x, which=10), lambda: note(x, which=20)],
                default=lambda: note(x, which=30),
            ),
        )

    assert f(True, 0, 0.0) == (1, 10) and sorted(calls) == [1, 10]
    assert f(False, 1, 0.0) == (2, 20)
    assert f(False, 2, 0.0)[1] == 30 and f(False, -1, 0.0)[1] == 30


def test_a_case_without_such_a_branch_is_an_error_of_the_run():
    @eddy.function
    def f(i):
        return eddy.case(i, [lambda: 1, lambda: 2])

    assert f(1) == 2
    with pytest.raises(eddy.Error):
        f(5)


def test_bounds_of_slices_may_be_values():
    @eddy.function
    def f(x, i):
        return x[i:, : i + 1], x[i], x[:, i]

    corner, row, column = f(X, 1)
    np.testing.assert_array_equal(corner, X[1:, :2])
    np.testing.assert_array_equal(row, X[1])
    np.testing.assert_array_equal(column, X[:, 1])


def test_functions_call_functions_in_a_trace():
    @eddy.function
    def inner(x):
        return x * 2

    @eddy.function
    def outer(x):
        return inner(x) + 1

    assert outer(3.0) == 7


def test_operators_of_onnx_are_there_by_name():
    @eddy.function
    def f(x):
        values, places = eddy.ops.TopK(x, np.array([2]), axis=-1, outputs=2)
        return eddy.ops.Softmax(x, axis=1), values, places, eddy.ops.Cast(x, to=np.float32)

    soft, values, places, cast = f(X)
    np.testing.assert_allclose(soft, np.exp(X) / np.exp(X).sum(1, keepdims=True), rtol=1e-6)
    assert values[0].tolist() == [3, 2] and places[0].tolist() == [2, 1]
    assert cast.dtype == np.float32
    with pytest.raises(AttributeError):
        eddy.ops.softmax


def test_errors_name_the_line_of_what_cannot_be_traced():
    def branch(x):
        return 1 if x > 0 else 2  # a decision of Python's

    first = branch.__code__.co_firstlineno
    assert refused(eddy.function(branch), 1.0, match="use eddy.cond") == first + 1
    for bad, said in [
        (lambda x: float(x), "not known"),
        (lambda x: [0, 1][x.astype(int)], "not known"),
        (lambda x: np.array(x), "no numbers"),
        (lambda x: x.__setitem__(0, 1), "do not change"),
        (lambda x: np.fft.fft(x), "np.fft does not work"),
        (lambda x: np.add.accumulate(x), "np.add.accumulate"),
        (lambda x: x @ np.ones((5, 5)), "MatMul"),
        (lambda x: x + np.ones(7), "Add"),
        (lambda x: x[0, 0, 0], "3 indices for 2 axes"),
        (lambda x: x[x > 1], "an index of bool"),
        (lambda x: x[..., ...], "one ..."),
        (lambda x: x + "a", "dtype"),
        (lambda x: eddy.op("NoSuchOperator", x), "NoSuchOperator"),
        (lambda x: eddy.ops.Softmax(x, axes=1), "axes"),
        (lambda x: eddy.while_loop(lambda x: x, lambda x: x, x), "not a bool"),
        (lambda x: eddy.while_loop(lambda x: x.sum() > 0, lambda x: (x, x), x), "tuple of 2"),
        (lambda x: eddy.while_loop(lambda x: x.sum() > 0, lambda x: x > 1, x), "astype"),
        (lambda x: eddy.cond(x.sum() > 0, lambda: x, lambda: x > 0), "astype"),
        (lambda x: eddy.cond(x.sum(), lambda: x, lambda: x), "not a bool"),
        (lambda x: eddy.case(x.sum(), [lambda: x]), "not an integer"),
        (lambda x: eddy.scan(lambda c, x: c, 0.0, x), r"\(next carried, row\)"),
        (lambda x: None, "returns no value"),
    ]:
        assert refused(eddy.function(bad), X, match=said) == bad.__code__.co_firstlineno


def test_errors_of_runs_name_line_loop_and_iteration():
    @eddy.function
    def f(x, table):
        def step(i, total):
            return i + 1, total + table[i]  # fails behind the table's end

        return eddy.while_loop(lambda i, total: i < 10, step, (0, x), name="sum up")

    with pytest.raises(eddy.Error) as caught:
        f(0.0, np.ones(4))
    error = caught.value
    assert error.location.line == f.function.__code__.co_firstlineno + 3
    assert "in iteration 4 of 'sum up'" in str(error)
    assert [part.kind for part in error.path] == ["loop", "node"]
    assert error.path[0].iteration == 4


def test_values_stay_in_their_own_trace():
    kept = []

    @eddy.function
    def first(x):
        kept.append(x)
        return x + 1

    first(1.0)
    refused(eddy.function(lambda x: x + kept[0]), 1.0, match="another function")
    with pytest.raises(eddy.Error, match="stands inside of a function with @eddy.function"):
        eddy.while_loop(lambda x: x, lambda x: x, 1)
    with pytest.raises(eddy.Error, match="eddy.function"):
        eddy.ops.Relu(X)

    @eddy.function
    def leaks(x):
        inside = []
        eddy.while_loop(lambda x: x > 0, lambda x: inside.append(x * 2) or x - 1, x)
        return inside[0]

    with pytest.raises(eddy.Error):
        leaks(1.0)


def test_what_a_function_raises_while_it_is_traced_comes_out():
    @eddy.function
    def f(x):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        f(1.0)
    assert eddy.function(lambda x: x + 1)(1.0) == 2  # no trace is left open


def test_a_saved_graph_is_a_model(tmp_path):
    @eddy.function
    def f(x):
        return eddy.while_loop(lambda x: x < 100, lambda x: x * 2, x)

    traced = f.trace(3.0)
    traced.save(tmp_path / "f.onnx")
    (y,) = eddy.InferenceSession(tmp_path / "f.onnx").run(None, {"x": 3.0})
    assert y == 192 and "while" in traced.plan()


def test_a_compiler_in_python_names_the_places_of_its_own_program():
    @eddy.function
    def total(x, y):
        with eddy.location("prog.calc", 12, 5, "while x < 9"):
            def body(x):
                with eddy.location("prog.calc", 13):
                    return x + y

            x = eddy.while_loop(lambda x: x.sum() < 9, body, x)
        return x

    types = eddy.TensorType(np.float64, (None,)), eddy.TensorType(np.float64, (None,))
    traced = total.trace(*types)
    said = "^prog.calc:13: in iteration 0 of 'while x < 9'"
    with pytest.raises(eddy.Error, match=said) as caught:
        traced.run([np.ones(2), np.ones(3)])
    assert caught.value.location == ("prog.calc", 13, 0, "")

    @eddy.function
    def wrong(x):
        with eddy.location("prog.calc", 7, 3):
            return x @ x

    with pytest.raises(eddy.Error, match="^prog.calc:7:3: "):
        wrong(np.ones((2, 3)))
