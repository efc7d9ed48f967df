"""Claim: a session in Python is used as one of ONNX Runtime, and wrong use is an eddy.Error or a
TypeError that says what was wrong; Ctrl-C cancels."""

import ctypes
import gc
import itertools
import os
import pickle
import random
import signal
import threading
import time
import weakref

import eddy
import numpy as np
import pytest


@eddy.function
def affine(x, w):
    return x @ w, (x * 2).sum()


def model():
    types = eddy.TensorType(np.float32, ("n", 3)), eddy.TensorType(np.float32, (3, 2))
    return affine.trace(*types).graph.to_bytes()


@eddy.function
def forever(x):
    return eddy.while_loop(lambda x: x > 0, lambda x: x + 1 - 1, x)


def test_a_model_runs_from_bytes_and_from_a_file(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(model())
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    for source in (model(), path, str(path)):
        session = eddy.InferenceSession(source, providers=["CPUExecutionProvider"])
        product, total = session.run(None, {"x": x, "w": w})
        np.testing.assert_array_equal(product, x @ w)
        assert total == 30
        (only,) = session.run(["output1"], {"w": w, "x": x})
        assert only == 30


def test_inputs_and_outputs_are_described():
    session = eddy.InferenceSession(model())
    assert [tuple(each) for each in session.get_inputs()] == [
        ("x", "tensor(float)", [None, 3]),
        ("w", "tensor(float)", [3, 2]),
    ]
    assert [each.name for each in session.get_outputs()] == ["output0", "output1"]
    assert session.get_outputs()[1].shape == []


def test_inputs_may_be_views_lists_numbers_and_values():
    session = affine.trace(np.ones((2, 3)), np.ones((3, 2))).session
    x = np.arange(12.0).reshape(4, 3)[::2]
    w = np.arange(6.0).reshape(2, 3).T
    assert not w.flags.c_contiguous
    for each in (w, w.tolist(), eddy.value(w), w.astype(">f8"), w.astype(int).tolist()):
        (product,) = session.run(["output0"], {"x": x, "w": each})
        np.testing.assert_array_equal(product, x @ w)


def test_an_input_that_could_only_be_copied_is_not_bound():
    session = affine.trace(np.ones((2, 3)), np.ones((3, 2))).session
    w = np.ones((2, 3))
    memory = np.zeros(49, np.uint8)
    unaligned = memory[1:].view(np.float64).reshape(3, 2)
    for each in (w.T, w.T.astype(">f8").copy(), unaligned):
        with pytest.raises(eddy.Error, match="input 'w' is bound to an array that could only be"):
            session.bind({"w": each})
    bound = session.bind({"x": np.ones((2, 3)), "w": np.ascontiguousarray(w.T)})
    with pytest.raises(eddy.Error, match=r"numpy.ascontiguousarray\(\) of it"):
        bound.bind_input("w", w.T)


def test_sessions_without_their_own_share_a_library_while_one_of_them_lives():
    first, second = eddy.InferenceSession(model()), eddy.InferenceSession(model())
    assert first._library is second._library
    assert eddy.InferenceSession(model(), {"threads": 1})._library is not first._library
    library = weakref.ref(first._library)
    del first, second
    gc.collect()
    assert library() is None
    assert eddy.InferenceSession(model()).run(
        ["output1"], {"x": np.ones((2, 3), np.float32), "w": np.ones((3, 2), np.float32)}
    ) == [12]


def test_outputs_of_run_are_the_callers_own():
    session = affine.trace(np.ones((2, 3)), np.ones((3, 2))).session
    feeds = {"x": np.ones((2, 3)), "w": np.ones((3, 2))}
    (first,) = session.run(["output0"], feeds)
    first[:] = 7
    (second,) = session.run(["output0"], feeds)
    assert second[0, 0] == 3 and first[0, 0] == 7


@pytest.mark.parametrize(
    "feeds, said",
    [
        ({}, "input 'x' is not given"),
        ({"x": np.ones((2, 3), np.float32)}, "input 'w' is not given"),
        ({"z": 1}, "there is no input 'z'"),
        ({"x": np.ones((2, 3), np.float64), "w": np.ones((3, 2), np.float32)}, "double"),
        ({"x": np.ones((2, 4), np.float32), "w": np.ones((3, 2), np.float32)}, r"\[2,4\]"),
        ({"x": np.ones(3, np.float32), "w": np.ones((3, 2), np.float32)}, r"float\[3\]"),
        ({"x": np.array(["a"]), "w": np.ones((3, 2), np.float32)}, "string"),
        ({"x": object(), "w": np.ones((3, 2), np.float32)}, "strings"),
        ({"x": None, "w": np.ones((3, 2), np.float32)}, "x"),
        ({"x": np.zeros((2, 3), "M8[s]"), "w": np.ones((3, 2), np.float32)}, "datetime64"),
    ],
)
def test_wrong_inputs_are_named(feeds, said):
    session = eddy.InferenceSession(model())
    for call in (session.run, session.run_values):
        with pytest.raises(eddy.Error, match=said) as caught:
            call(None, feeds)
        assert caught.value.code in (eddy.Code.INVALID_ARGUMENT, eddy.Code.NOT_FOUND)


def test_wrong_calls_are_refused():
    session = eddy.InferenceSession(model())
    feeds = {"x": np.ones((2, 3), np.float32), "w": np.ones((3, 2), np.float32)}
    with pytest.raises(eddy.Error, match="there is no output 'y'; there are 2: output0"):
        session.run(["y"], feeds)
    with pytest.raises(TypeError, match="list of names"):
        session.run("output0", feeds)
    with pytest.raises(eddy.Error, match="priority is 3"):
        session.run(None, feeds, priority=3)
    with pytest.raises(eddy.Error, match="timeout"):
        session.run(None, feeds, timeout=-1)
    with pytest.raises(eddy.Error, match="the nearest is 'threads'"):
        eddy.InferenceSession(model(), {"thread": 1})
    with pytest.raises(TypeError, match="options are a dict"):
        eddy.InferenceSession(model(), 3)
    with pytest.raises(eddy.Error, match="CPUExecutionProvider") as caught:
        eddy.InferenceSession(model(), providers=["CUDAExecutionProvider"])
    assert caught.value.code == eddy.Code.UNSUPPORTED
    with pytest.raises(eddy.Error, match="cannot open"):
        eddy.InferenceSession("/there/is/no.onnx")
    with pytest.raises(eddy.Error, match="no ONNX file"):
        eddy.InferenceSession(b"\xff\xff")
    with pytest.raises(TypeError):
        eddy.InferenceSession(3)


def test_options_are_read():
    options = eddy.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_free_dimension_override_by_name("n", 2)
    session = eddy.InferenceSession(model(), options)
    assert session.get_inputs()[0].shape == [2, 3]
    with pytest.raises(eddy.Error, match="no symbolic dimension"):
        eddy.InferenceSession(model(), {"dim.m": 2})


def test_a_closed_session_says_so():
    with eddy.InferenceSession(model()) as session:
        bound = session.bind()
    session.close()  # again: nothing
    with pytest.raises(eddy.Error, match="closed") as caught:
        session.run(None, {})
    assert caught.value.code == eddy.Code.INVALID_STATE
    for call in (session.plan, session.trim, session.cancel_all, session.bind, session.metrics,
                 session.statistics):
        with pytest.raises(eddy.Error):
            call()
    with pytest.raises(eddy.Error):
        bound.run()


def test_a_run_of_a_released_session_goes_on():
    session = affine.trace(np.ones((1, 3)), np.ones((3, 2))).session
    bound = session.bind({"x": np.ones((1, 3)), "w": np.ones((3, 2))})
    del session
    gc.collect()
    bound.run()
    np.testing.assert_array_equal(bound.output("output0").numpy(), [[3, 3]])


def test_ctrl_c_cancels_a_run(interrupt):
    session = forever.trace(1.0).session
    for _ in range(3):
        interrupt(0.05)
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            session.run(None, {"x": 1.0})
        assert time.monotonic() - begin < 30
    (y,) = session.run(None, {"x": -1.0})
    assert y == -1


def test_ctrl_c_cancels_a_bound_run_and_a_stream(interrupt):
    @eddy.function
    def rows(x):
        return eddy.while_loop(lambda x: x > 0, lambda x: (x + 1 - 1, x), x, collect=True)

    bound = forever.trace(1.0).session.bind({"x": np.float64(1)})
    interrupt(0.05)
    with pytest.raises(KeyboardInterrupt):
        bound.run()
    interrupt(0.05)
    with pytest.raises(KeyboardInterrupt), rows.stream(1.0, output=1) as stream:
        for _ in stream:
            pass


def test_a_deadline_ends_a_run():
    session = forever.trace(1.0).session
    with pytest.raises(eddy.Error) as caught:
        session.run(None, {"x": 1.0}, timeout=0.05)
    assert caught.value.code == eddy.Code.DEADLINE_EXCEEDED


def test_other_threads_go_on_while_a_run_is_under_way():
    session = forever.trace(1.0).session
    codes = []

    def run():
        with pytest.raises(eddy.Error) as caught:
            session.run(None, {"x": 1.0})
        codes.append(caught.value.code)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        session.cancel_all()
        time.sleep(0.01)
    assert codes == [eddy.Code.CANCELLED] * 3


def test_close_in_one_thread_ends_the_runs_of_others():
    session = forever.trace(1.0).session
    caught = []

    def run():
        try:
            session.run(None, {"x": 1.0})
        except eddy.Error as error:
            caught.append(error.code)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    session.close()
    for thread in threads:
        thread.join()
    assert set(caught) <= {eddy.Code.CANCELLED, eddy.Code.INVALID_STATE} and len(caught) == 3


def test_threads_may_close_a_session_that_others_run(seed):
    chance = random.Random(seed)
    traced = eddy.function(lambda x: x * 2 + 1).trace(np.ones(3))
    for _ in range(100):
        session = eddy.InferenceSession(traced.graph)
        ways = [session.close, session.close, session.cancel_all, session.trim]
        codes = set()

        def use(way):
            try:
                for _ in range(20):
                    assert session.run(None, {"x": np.ones(3)})[0].tolist() == [3, 3, 3]
                way()
                session.run(None, {"x": np.ones(3)})
            except eddy.Error as error:
                codes.add(error.code)

        threads = [threading.Thread(target=use, args=(chance.choice(ways),)) for _ in range(6)]
        for each in threads:
            each.start()
        session.close()
        for each in threads:
            each.join()
        assert session.is_closed and len(session._core.inputs) == 1
        assert codes <= {eddy.Code.INVALID_STATE, eddy.Code.CANCELLED}, codes
        with pytest.raises(eddy.Error, match="closed"):
            session.run(None, {"x": np.ones(3)})


def test_ctrl_c_just_before_a_run_ends_it():
    class Interrupt:
        @classmethod
        def from_param(cls, name):
            return ctypes.c_int(signal.SIGINT)

    # Functions in C only: between the signal and the run, Python looks at no signal.
    strike = ctypes.CDLL(None)["raise"]
    strike.argtypes = [Interrupt]
    session = forever.trace(1.0).session
    for _ in range(10):
        names = itertools.filterfalse(strike, ["output0"])
        with pytest.raises(KeyboardInterrupt):
            session.run(names, {"x": np.array(1.0)}, timeout=10)


def test_ctrl_c_at_any_moment_ends_a_run(seed):
    chance = random.Random(seed)
    session = forever.trace(1.0).session
    for _ in range(100):
        pid, wait = os.getpid(), chance.choice([0, chance.random() * 2e-3])

        def send():
            begin.wait()
            time.sleep(wait)
            os.kill(pid, signal.SIGINT)

        begin = threading.Event()
        thread = threading.Thread(target=send)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            begin.set()
            session.run(None, {session.get_inputs()[0].name: 1.0}, timeout=20)
        thread.join()
    assert session.metrics()  # it goes on


def test_many_threads_run_one_session():
    session = affine.trace(np.ones((2, 3)), np.ones((3, 2))).session
    failures = []

    def run(number):
        x = np.full((2, 3), float(number))
        for _ in range(200):
            product, total = session.run(None, {"x": x, "w": np.ones((3, 2))})
            if total != 12 * number or product[0, 0] != 3 * number:
                failures.append((number, total))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_plan_and_metrics_are_texts():
    session = forever.trace(1.0).session
    session.run(None, {"x": -1.0})
    assert "while" in session.plan()
    assert 'eddy_runs_total{session="s",end="ok"} 1' in session.metrics("s")


@eddy.function
def count_down(x):
    return eddy.while_loop(lambda x: x > 0, lambda x: x - 1, x)


def test_statistics_count_iterations_and_time_operators_where_asked():
    data = count_down.trace(1.0).graph.to_bytes()
    session = eddy.InferenceSession(data, {"time_operators": True})
    for _ in range(2):
        session.run(None, {"x": 5.0})
    statistics = session.statistics()
    assert (statistics.runs_succeeded, statistics.runs_failed) == (2, 0)
    assert statistics.iterations == 10 and statistics.plan_seconds > 0
    assert set(statistics.operators) == {"Greater", "Sub"}
    assert statistics.operators["Sub"].calls == 10
    assert statistics.operators["Greater"].calls == 12
    assert all(each.seconds > 0 for each in statistics.operators.values())
    assert 'eddy_operator_calls_total{session="s",operator="Sub"} 10\n' in session.metrics("s")
    plain = eddy.InferenceSession(data)
    plain.run(None, {"x": 3.0})
    assert plain.statistics().operators == {} and plain.statistics().iterations == 3
    with pytest.raises(eddy.Error, match="the nearest is 'time_operators'"):
        eddy.InferenceSession(data, {"times_operators": True})


def test_errors_can_be_pickled():
    error = eddy.Error(5, "line", "reason", [(1, "loop", 3), (0, "node", -1)], ("f", 1, 2, "t"))
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, str(again), again.path) == (error.code, "line", error.path)
    assert again.location == error.location and again.path[0].iteration == 3


def test_strings_sequences_and_nothing_go_both_ways():
    texts = np.array([["a", "zwölf"], ["", "x" * 100]], dtype=object)
    assert (eddy.value(texts).numpy() == texts).all()
    both = eddy.sequence([np.arange(3), np.arange(2)])
    assert both.kind == 2 and len(both) == 2
    assert [each.tolist() for each in both.numpy()] == [[0, 1, 2], [0, 1]]
    assert both[-1].numpy().tolist() == [0, 1]
    with pytest.raises(IndexError):
        both[2]
    assert eddy.value(None).numpy() is None
    with pytest.raises(eddy.Error, match="another type"):
        eddy.sequence([np.arange(3), np.arange(2.0)])
    with pytest.raises(eddy.Error, match="strings"):
        eddy.value(np.array([1, "a"], dtype=object))


def test_a_traced_function_is_a_model():
    f = eddy.function(lambda x: x + 1, options={"max_runs_in_flight": 3}, name="plus")
    session = eddy.InferenceSession(f.trace(1.0), {"time_operators": True})
    assert session.run(None, {"x": 2.0}) == [3]
    assert sum(each.calls for each in session.statistics().operators.values()) == 1
    with pytest.raises(eddy.Error, match="'max_run'"):
        eddy.InferenceSession(f.trace(1.0), {"max_run": 1})
    with pytest.raises(TypeError, match="function 'plus' has a graph for each.*trace"):
        eddy.InferenceSession(f)
    with pytest.raises(TypeError, match="function 'plus' has a graph for each"):
        eddy.save_plan(f, "none.plan")


def test_functions_that_make_values_have_help():
    for each in (eddy.sequence, eddy.value, eddy.from_dlpack):
        assert "Value" in each.__doc__.split("\n", 1)[1]
