"""Claim: a Python operator has the attributes that its signature says: a default where a call or a
file leaves one out, and an error with the user's line where one is missing, unknown or of another
kind."""

import inspect

import eddy
import numpy as np
import pytest

seen = []


@eddy.operator
def kd(x, *, k: int = 3, s: str = "a", f: float = 0.5):
    seen.append((k, s, f))
    return x * k


@eddy.operator
def need(x, *, factor: int, label: str = "", share: float = 1):
    return x * factor


def run_with(operator, body, *arguments):
    return eddy.function(body, operators=[operator], name="f")(*arguments)


def test_a_default_is_what_a_call_leaves_out():
    seen.clear()
    assert run_with(kd, lambda x: kd(x), 2.0) == 6
    assert run_with(kd, lambda x: kd(x, k=0, s="", f=0.0), 2.0) == 0
    assert run_with(kd, lambda x: kd(x, f=2, k=np.int32(4)), 2.0) == 8
    assert seen == [(3, "a", 0.5), (0, "", 0.0), (4, "a", 2.0)]
    assert kd(2.0) == 6  # outside of a trace


def test_a_default_stands_in_the_graph_and_in_its_file():
    traced = eddy.function(lambda x: kd(x, s="b"), operators=[kd]).trace(1.0)
    assert 'k=3 s="b" f=0.5' in str(traced)

    @eddy.operator(name="kd")
    def other(x, *, k: int = 100, s: str = "no", f: float = 9.0):
        seen.append((k, s, f))
        return x

    seen.clear()
    session = eddy.InferenceSession(traced.graph.to_bytes(), operators=[other])
    session.run(None, {"x": 1.0})
    assert seen == [(3, "b", 0.5)]


def without_attributes(name):
    @eddy.operator(name=name)
    def bare(x):
        return x

    return eddy.function(lambda x: bare(x), operators=[bare]).trace(2.0).graph.to_bytes()


def test_a_file_without_the_attributes_gets_the_defaults():
    seen.clear()
    session = eddy.InferenceSession(without_attributes("kd"), operators=[kd])
    assert session.run(None, {"x": 2.0}) == [6]
    assert seen == [(3, "a", 0.5)]
    told = []

    @eddy.operator(shapes=lambda x, k: told.append(k) or eddy.TensorType(x.dtype, (k,)))
    def ones(x, *, k: int = 3):
        return np.ones(k)

    session = eddy.InferenceSession(without_attributes("ones"), operators=[ones])
    assert session.run(None, {"x": 2.0})[0].tolist() == [1, 1, 1] and set(told) == {3}


def test_a_file_without_a_required_attribute_is_refused():
    with pytest.raises(eddy.Error, match="operator 'need' needs attribute 'factor'"):
        eddy.InferenceSession(without_attributes("need"), operators=[need])


@pytest.mark.parametrize(
    "body, said",
    [
        (lambda x: need(x), "operator 'need' needs attribute 'factor'"),
        (lambda x: need(x, factr=3), "'need' has no attribute 'factr'; the nearest is 'factor'"),
        (lambda x: need(x, factor=3, zz=1), "operator 'need' has no attribute 'zz'"),
        (lambda x: need(x, factor=2.5), "'factor' of operator 'need' is a whole number.*not 2.5"),
        (lambda x: need(x, factor=x), "'factor' of operator 'need' is a whole number"),
        (lambda x: need(x, factor=1, label=3), "'label' of operator 'need' is a text, not 3"),
        (lambda x: need(x, factor=1, share="a"), "'share' of operator 'need' is a number"),
        (lambda x: need(factor=1), "operator 'need' has 1 input, but 0 were given"),
        (lambda x: need(x, x, factor=1), "operator 'need' has 1 input, but 2 were given"),
        (lambda x: need(x, factor=1, name="n"), "operator 'need' has no attribute 'name'"),
    ],
)
def test_a_wrong_call_is_refused_with_its_line(body, said):
    with pytest.raises(eddy.Error, match=said) as caught:
        run_with(need, body, 2.0)
    assert caught.value.code == eddy.Code.INVALID_ARGUMENT
    assert caught.value.location.file.endswith("attributes_test.py")
    assert caught.value.location.line == inspect.getsourcelines(body)[1]


def test_an_attribute_may_have_the_name_of_what_a_node_has():
    @eddy.operator
    def named(x, *, name: str, outputs: int, domain: str = "d", opset: int = 7):
        return x + (outputs if (name, domain, opset) == ("n", "d", 7) else 0)

    assert run_with(named, lambda x: named(x, name="n", outputs=5), 1.0) == 6

    @eddy.operator
    def owned(x, *, self: int, inputs: int):
        return x + self + inputs

    assert run_with(owned, lambda x: owned(x, self=1, inputs=2), 1.0) == 4


def test_a_default_of_another_kind_is_refused_where_it_is_declared():
    with pytest.raises(TypeError, match="default of attribute 'k' of operator 'f' is a whole"):

        @eddy.operator
        def f(x, *, k: int = 1.5):
            return x

    with pytest.raises(TypeError, match="default of attribute 's' of operator 'g' is a text"):

        @eddy.operator
        def g(x, *, s: str = None):
            return x


def test_an_input_with_a_default_may_be_left_out():
    @eddy.operator
    def more(x, y=2.0, z=np.zeros(2)):
        return x + y + z.sum()

    assert run_with(more, lambda x: more(x), 1.0) == 3
    assert run_with(more, lambda x: more(x, x), 1.0) == 2
    with pytest.raises(eddy.Error, match="no attribute 'y'; it is an input, given by its place"):
        run_with(more, lambda x: more(x, y=x), 1.0)
