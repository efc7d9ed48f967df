"""Claim: operators and host functions in Python work in loops and branches; what they raise or give
wrongly is the error of their node; they cannot deadlock, and nothing of them is left over."""

import asyncio
import gc
import threading
import weakref

import eddy
import numpy as np
import pytest


@eddy.operator(shapes=lambda x, factor, label: eddy.TensorType(x.dtype, x.shape))
def scale(x, *, factor: float, label: str):
    if label == "raise":
        raise ValueError("too large")
    return x * np.float32(factor)


def run_with(operator, body, *arguments):
    return eddy.function(body, operators=[operator], name="f")(*arguments)


def test_an_operator_has_inputs_attributes_and_shapes():
    y = run_with(scale, lambda x: scale(x, factor=2.5, label="a") + 1, np.float32([1, 2]))
    assert y.dtype == np.float32 and y.tolist() == [3.5, 6]
    assert scale(np.float32([2]), factor=2.0, label="").tolist() == [4]  # outside: the function


def test_an_operator_gives_several_outputs_of_other_shapes():
    def shapes(x):
        return [eddy.TensorType(x.dtype, x.shape[:1]), eddy.TensorType(np.int64, ())]

    @eddy.operator(outputs=2, shapes=shapes)
    def stats(x):
        return x.sum(axis=1), np.int64(x.size)

    sums, size = run_with(stats, lambda x: stats(x), np.ones((4, 3)))
    assert sums.tolist() == [3] * 4 and size == 12


def test_an_operator_runs_in_a_loop_and_may_keep_its_inputs():
    kept = []

    @eddy.operator
    def note(x):
        kept.append(x)
        return x + 1

    loop = lambda x: eddy.while_loop(lambda x: x < 100, note, x)
    assert run_with(note, loop, 0.0) == 100
    assert [each.item() for each in kept] == list(range(100))


def test_a_host_function_decides():
    @eddy.host_function
    def more(x):
        return x.sum() < 50

    @eddy.operator(shapes=lambda x: eddy.TensorType(np.int64, ()))
    def which(x):
        return np.int64(x) % 3

    assert run_with(more, lambda x: eddy.while_loop(more, lambda x: x * 2, x), 1.0) == 64
    choose = lambda x: eddy.case(which(x), [lambda: x, lambda: -x, lambda: x * 10])
    assert [run_with(which, choose, each).item() for each in (3.0, 4.0, 5.0)] == [3, -4, 50]


def test_a_host_function_that_gives_an_int_selects():
    @eddy.host_function
    def which(x) -> int:
        return np.int64(x) % 3

    choose = lambda x: eddy.case(which(x), [lambda: x, lambda: -x, lambda: x * 10])
    assert [run_with(which, choose, each).item() for each in (3.0, 4.0, 5.0)] == [3, -4, 50]
    traced = eddy.function(choose, operators=[which]).trace(1.0)
    again = eddy.InferenceSession(traced.graph.to_bytes(), operators=[which])
    assert again.run(None, {"x": 5.0}) == [50]
    with pytest.raises(eddy.Error, match="is int64, not a bool"):
        run_with(which, lambda x: eddy.while_loop(which, lambda x: x, x), 1.0)


def test_what_an_operator_raises_is_the_error_of_its_node():
    body = lambda x: eddy.while_loop(
        lambda x, i: i < 9,
        lambda x, i: (eddy.cond(i < 5, lambda: x, lambda: scale(x, factor=1.0, label="raise")), i + 1),
        (x, 0),
        name="nine",
    )
    with pytest.raises(eddy.Error, match="ValueError: too large") as caught:
        run_with(scale, body, np.float32([1]))
    assert caught.value.code == eddy.Code.RUN_FAILED
    assert "in iteration 5 of 'nine'" in str(caught.value) and "operators_test.py" in str(caught.value)
    assert caught.value.location.file.endswith("operators_test.py")


def test_what_a_host_function_raises_is_the_error_of_its_node():
    @eddy.host_function
    def fails(x):
        raise KeyError("gone")

    @eddy.host_function
    def text(x):
        return "no number"

    for each, said in ((fails, "KeyError: 'gone'"), (text, "ValueError")):
        with pytest.raises(eddy.Error, match=said):
            run_with(each, lambda x: eddy.while_loop(each, lambda x: x, x), 1.0)


@pytest.mark.parametrize(
    "result, said",
    [
        (lambda x: x[:1], r"output 0 has shape \(1\), not \(2\)"),
        (lambda x: x[None], r"shape \(1, 2\)"),
        (lambda x: x + 1j, "complex"),
        (lambda x: None, "the function returned None"),
        (lambda x: (None,), "output 0 is None"),
        (lambda x: "text", "dtype"),
        (lambda x: (x, x), "gives 2 outputs, not 1"),
        (lambda x: (), "gives 0 outputs"),
    ],
)
def test_wrong_results_are_refused(result, said):
    @eddy.operator
    def wrong(x):
        return result(x)

    with pytest.raises(eddy.Error, match=said):
        run_with(wrong, lambda x: wrong(x), np.ones(2))


@pytest.mark.parametrize(
    "shapes, said",
    [
        (lambda x: 1 / 0, "ZeroDivisionError"),
        (lambda x: [], "gives 0 types, not 1"),
        (lambda x: [x, x], "gives 2 types"),
        (lambda x: eddy.TensorType(np.float64, (1,) * 9), "8 axes"),
        (lambda x: eddy.TensorType("M8", ()), "no elements"),
        (lambda x: 3, "TypeError"),
    ],
)
def test_wrong_shape_functions_are_refused(shapes, said):
    @eddy.operator(shapes=shapes)
    def wrong(x):
        return x

    with pytest.raises(eddy.Error, match=said) as caught:
        run_with(wrong, lambda x: wrong(x), np.ones(2))
    assert caught.value.location.file.endswith("operators_test.py")


def test_what_only_operators_of_c_can_do_is_refused():
    @eddy.operator(shapes=lambda x: eddy.TensorType(x.dtype, (None,)))
    def uniq(x):
        return np.unique(x)

    @eddy.operator(shapes=lambda x: eddy.TensorType(str, x.shape))
    def words(x):
        return x.astype(str)

    @eddy.operator(shapes=lambda x: eddy.TensorType(np.int64, x.shape))
    def length(x):
        return np.char.str_len(x)

    for each, given, said in (
        (uniq, np.ones(3), "output 0 of operator 'uniq' has a size that does not follow"),
        (words, np.ones(3), "operator 'words' gives strings as output 0"),
        (length, np.array(["a"]), "operator 'length' takes strings as input 0"),
    ):
        with pytest.raises(eddy.Error, match=said + ".*operators in Python cannot do") as caught:
            eddy.function(lambda x: each(x), operators=[each]).trace(given)  # not only a run
        assert caught.value.location.file.endswith("operators_test.py")
        assert "_operators.py" not in str(caught.value)
    open_size = eddy.function(lambda x: uniq(x), operators=[uniq])
    session = open_size.trace(eddy.TensorType(np.float64, ("n",))).session
    with pytest.raises(eddy.Error, match="'uniq' has a size that does not follow"):
        session.run(None, {"x": np.ones(3)})


def test_a_size_may_be_open_until_the_inputs_have_theirs():
    def shapes(x):
        return eddy.TensorType(x.dtype, (None if x.shape[0] < 0 else x.shape[0] // 2,))

    @eddy.operator(shapes=shapes)
    def half(x):
        return x[: len(x) // 2]

    f = eddy.function(lambda x: half(x), operators=[half])
    session = f.trace(eddy.TensorType(np.float64, (None,))).session
    assert session.run(None, {"x": np.ones(5)})[0].tolist() == [1, 1]


def test_an_operator_that_the_function_was_not_given_is_named():
    @eddy.operator
    def uniq(x):
        return x

    @eddy.host_function
    def more(x):
        return False

    @eddy.function(operators=[uniq])
    def inner(x):
        return uniq(x)

    @eddy.function
    def outer(x):
        return eddy.while_loop(lambda x: x > 0, inner, x)

    said = "operator 'uniq' is not given to the function 'outer'.*@eddy.function.operators=.uniq"
    with pytest.raises(eddy.Error, match=said) as caught:
        outer(1.0)
    assert caught.value.location.text == "return uniq(x)"
    with pytest.raises(eddy.Error, match="host function 'more' is not given"):
        eddy.function(lambda x: more(x), operators=[uniq])(1.0)


def test_wrong_definitions_are_refused():
    with pytest.raises(TypeError, match="annotated as int, float or str"):
        eddy.operator(lambda x, *, factor: x)
    with pytest.raises(TypeError, match="name each input"):
        eddy.operator(lambda *x: x)
    with pytest.raises(ValueError, match="domain of your own"):
        eddy.operator(lambda x: x, domain="")
    with pytest.raises(eddy.Error, match="eddy.operator"):
        eddy.function(lambda x: x, operators=[abs])(1.0)
    with pytest.raises(eddy.Error):
        eddy.function(lambda x: x, operators=[scale, scale])(1.0)
    with pytest.raises(eddy.Error, match="scale"):  # not given to the function
        eddy.function(lambda x: scale(x, factor=1.0, label=""))(1.0)


def test_an_operator_may_run_another_session_but_not_wait_for_its_own_kind():
    plain = eddy.function(lambda x: x * 3).trace(1.0).session

    @eddy.operator
    def outside(x):
        return plain.run(None, {"x": x})[0]

    assert run_with(outside, lambda x: outside(x) + 1, 2.0) == 7

    @eddy.operator
    def inside(x):
        return waits(x)

    waits = eddy.function(lambda x: outside(x), operators=[outside])
    with pytest.raises(eddy.Error, match="waits for a run that needs operators in Python"):
        run_with(inside, lambda x: inside(x), 2.0)


def test_operators_work_while_the_interpreter_is_busy_and_in_asyncio():
    @eddy.operator
    def add(x):
        return x + 1

    f = eddy.function(lambda x: eddy.while_loop(lambda x: x < 50, add, x), operators=[add])
    stop = threading.Event()
    busy = threading.Thread(target=lambda: [None for _ in iter(stop.is_set, True)])
    busy.start()

    async def main():
        return await asyncio.gather(*[f.run_async(float(k)) for k in range(8)])

    assert [each.item() for each in asyncio.run(main())] == [50] * 8
    stop.set()
    busy.join()


def test_ctrl_c_comes_through_an_operator(interrupt):
    @eddy.operator
    def same(x):
        return x

    f = eddy.function(lambda x: eddy.while_loop(lambda x: x > 0, same, x), operators=[same])
    interrupt(0.1)
    with pytest.raises(KeyboardInterrupt):
        f(1.0)
    assert f(-1.0) == -1


def test_nothing_of_an_operator_is_left_over():
    class Big:
        pass

    big = Big()
    gone = weakref.ref(big)

    def make(held):
        @eddy.operator
        def uses(x):
            assert held is not None
            return x

        return eddy.function(lambda x: uses(x), operators=[uses])

    f = make(big)
    f(1.0)
    del f, big
    for _ in range(100):
        gc.collect()
        if gone() is None:
            break
        threading.Event().wait(0.01)
    assert gone() is None


def make_cycle(kind):
    """A function whose operator holds it, and weak references to both."""

    def body(x):
        assert made is not None
        return x + 1

    def test(x):
        assert made is not None
        return x.sum() < 50

    if kind == "operator":
        decide, step = (lambda x: x < 5), eddy.operator(body)
        uses = [step]
    else:
        decide, step = eddy.host_function(test), lambda x: x + 1
        uses = [decide]
    made = eddy.function(lambda x: eddy.while_loop(decide, step, x), operators=uses, name="made")
    return made, [weakref.ref(made), weakref.ref(body), weakref.ref(test)]


@pytest.mark.parametrize("kind", ["operator", "host function"])
@pytest.mark.parametrize("uses", ["graph", "session", "awaited", "stream"])
def test_an_operator_that_holds_its_own_function_is_collected(kind, uses):
    made, gone = make_cycle(kind)
    if uses == "graph":
        made.trace(eddy.TensorType(np.float64))
    elif uses == "session":
        assert made(1.0) >= 5
        assert made(1.0) >= 5
    elif uses == "awaited":
        assert asyncio.run(made.run_async(1.0)) >= 5
    else:
        traced = made.trace(1.0)
        kept = traced.session.bind({"x": np.float64(1)})
        kept.run()
        gc.collect()
        kept.run()  # what is in use stays
        del traced, kept
    gc.collect()
    assert gone[0]() is made
    del made
    gc.collect()
    assert [each() for each in gone] == [None] * 3


def test_a_session_keeps_its_operators_where_nothing_else_does():
    made, gone = make_cycle("operator")
    session = made.trace(1.0).session
    graph = made.trace(1.0).graph
    del made
    gc.collect()
    assert session.run(None, {"x": 1.0})[0] == 5
    del session
    gc.collect()
    assert eddy.InferenceSession(graph).run(None, {"x": 2.0})[0] == 5
    del graph
    gc.collect()
    assert [each() for each in gone] == [None] * 3


def test_a_model_whose_operator_is_not_given_says_what_is():
    @eddy.operator
    def doubled(x):
        return x * 2

    @eddy.operator
    def halved(x):
        return x / 2

    @eddy.host_function
    def more(x):
        return bool(x.sum() < 9)

    @eddy.function(operators=[doubled, more])
    def walk(x):
        return eddy.while_loop(more, doubled, x)

    model = walk.trace(np.ones(2)).graph.to_bytes()
    said = "doubled.*in Python, give it to the session: operators=.doubled."
    with pytest.raises(eddy.Error, match=said):
        eddy.InferenceSession(model)
    with pytest.raises(eddy.Error, match="'doubled'.*has 'halved' nearest to it$") as caught:
        eddy.InferenceSession(model, operators=[more, halved])
    assert caught.value.code == eddy.Code.UNSUPPORTED and "halved" in caught.value.reason
    with pytest.raises(eddy.Error, match="no host function 'more'.*has 'doubled' nearest to it$"):
        eddy.InferenceSession(model, operators=[doubled])
    (made,) = eddy.InferenceSession(model, operators=[doubled, more]).run(None, {"x": np.ones(2)})
    np.testing.assert_array_equal(made, [8, 8])
