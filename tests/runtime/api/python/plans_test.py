"""Claim: a plan that is saved in Python is a session's source as a model is, by path and by bytes,
also in another process; what does not fit is an eddy.Error with the reason."""

import subprocess
import sys

import eddy
import numpy as np
import pytest


@eddy.function
def steps(x, w):
    return eddy.while_loop(lambda x: x.sum() < 100, lambda x: (x @ w) * 2, x)


@eddy.operator
def doubled(x):
    return x * 2


def traced():
    types = eddy.TensorType(np.float32, ("n", 3)), eddy.TensorType(np.float32, (3, 3))
    return steps.trace(*types)


FEEDS = {"x": np.ones((2, 3), np.float32), "w": np.eye(3, dtype=np.float32)}


def test_a_plan_of_a_function_a_file_and_bytes_runs(tmp_path):
    model, path = tmp_path / "model.onnx", tmp_path / "model.plan"
    traced().save(model)
    (expected,) = eddy.InferenceSession(model).run(None, FEEDS)
    for source in (traced(), traced().graph, model, str(model), model.read_bytes()):
        assert not eddy.is_plan(path)
        eddy.save_plan(source, path)
        assert eddy.is_plan(path) and eddy.is_plan(str(path))
        for plan in (path, path.read_bytes()):
            session = eddy.InferenceSession(plan, {"threads": 1})
            assert [each.name for each in session.get_inputs()] == ["x", "w"]
            (made,) = session.run(None, FEEDS)
            np.testing.assert_array_equal(made, expected)
        path.unlink()


def test_another_process_runs_it(tmp_path):
    path = tmp_path / "model.plan"
    eddy.save_plan(traced(), path)
    program = (
        "import eddy, numpy as np, sys\n"
        "session = eddy.InferenceSession(sys.argv[1])\n"
        "x, w = np.ones((2, 3), np.float32), np.eye(3, dtype=np.float32)\n"
        "print(session.run(None, {'x': x, 'w': w})[0].sum())"
    )
    made = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert float(made.stdout) == 192


def test_options_belong_to_the_plan_or_are_refused(tmp_path):
    path = tmp_path / "model.plan"
    eddy.save_plan(traced(), path, {"dim.n": 2})
    eddy.InferenceSession(path, {"dim.n": 2})
    with pytest.raises(eddy.Error, match="another size of dimension 'n'") as caught:
        eddy.InferenceSession(path, {"dim.n": 3})
    assert caught.value.code == eddy.Code.UNSUPPORTED
    with pytest.raises(eddy.Error, match="no symbolic dimension of that name; it has n"):
        eddy.save_plan(traced(), path, {"dim.m": 2})
    with pytest.raises(eddy.Error, match="the nearest is 'simplify'"):
        eddy.save_plan(traced(), path, {"simplfy": True})


def test_a_spoilt_or_missing_file_says_so(tmp_path):
    path = tmp_path / "model.plan"
    eddy.save_plan(traced(), path)
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    with pytest.raises(eddy.Error, match="spoilt.*save it again") as caught:
        eddy.InferenceSession(path)
    assert str(path) in str(caught.value)
    with pytest.raises(eddy.Error, match="spoilt"):
        eddy.InferenceSession(bytes(content))
    path.unlink()
    assert not eddy.is_plan(path)
    with pytest.raises(eddy.Error) as caught:
        eddy.InferenceSession(path)
    assert caught.value.code == eddy.Code.NOT_FOUND


def test_operators_in_python_are_those_of_the_loading_program(tmp_path):
    path = tmp_path / "model.plan"

    @eddy.function(operators=[doubled])
    def twice(x):
        return doubled(doubled(x))

    eddy.save_plan(twice.trace(np.zeros(3)), path)
    session = eddy.InferenceSession(path, operators=[doubled])
    (made,) = session.run(None, {"x": np.arange(3.0)})
    np.testing.assert_array_equal(made, [0, 4, 8])
    with pytest.raises(eddy.Error, match="doubled"):
        eddy.InferenceSession(path)


def test_errors_of_runs_name_the_lines_of_the_traced_function(tmp_path):
    path = tmp_path / "model.plan"

    @eddy.function
    def total(x, y):
        return x + y  # here

    types = eddy.TensorType(np.float32, (None,)), eddy.TensorType(np.float32, (None,))
    eddy.save_plan(total.trace(*types), path)
    session = eddy.InferenceSession(path)
    with pytest.raises(eddy.Error, match=r"plans_test\.py:\d+") as caught:
        session.run(None, {"x": np.ones(2, np.float32), "y": np.ones(3, np.float32)})
    assert caught.value.location.file.endswith("plans_test.py")
