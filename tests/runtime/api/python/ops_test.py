"""Claim: eddy.ops has every operator that sessions run, with its inputs and attributes as help and
types say them; what is given wrongly is refused at the user's line, and nothing needs a guess."""

import ast
import inspect
import keyword
import os

import eddy
import numpy as np
import pytest
from eddy._schemas import OPERATORS

X = np.arange(6.0).reshape(2, 3)


def run(body, *arrays):
    return eddy.function(body, name="f")(*arrays)


def test_every_operator_has_a_name_help_and_a_signature():
    assert len(OPERATORS[""]) > 150
    for domain, names in OPERATORS.items():
        place = eddy.ops if domain == "" else getattr(eddy.ops, domain.rsplit(".", 1)[-1])
        assert set(names) <= set(dir(place))
        for name in names:
            operator = getattr(place, name)
            assert operator.__name__ == name and operator.domain == domain
            assert name in operator.__doc__ and name in repr(operator)
            parameters = inspect.signature(operator).parameters
            named = {each for each in operator.attributes if not keyword.iskeyword(each)}
            assert named <= set(parameters)
            assert not set(operator.attributes) & {"outputs", "opset", "node_name"}


def test_the_types_say_the_same():
    with open(os.path.join(os.path.dirname(eddy.__file__), "ops.pyi"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    assert set(OPERATORS[""]) <= set(found)
    classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    for domain, names in OPERATORS.items():
        if domain:
            own = {each.name: each for each in classes[domain.rsplit(".", 1)[-1]].body}
            assert set(names) == set(own)
    softmax = found["Softmax"].args
    assert [each.arg for each in softmax.posonlyargs] == ["input"]
    assert "axis" in [each.arg for each in softmax.kwonlyargs]


def test_attributes_become_what_their_kind_is():
    assert run(lambda x: eddy.ops.LeakyRelu(x, alpha=2), -X).tolist() == (-2 * X).tolist()
    assert run(lambda x: eddy.ops.Transpose(x, perm=np.array([1, 0])), X).shape == (3, 2)
    assert run(lambda x: eddy.ops.Cast(x, to=np.float32), X).dtype == np.float32
    filled = run(lambda x: eddy.ops.ConstantOfShape(eddy.ops.Shape(x), value=[7]), X)
    assert filled.tolist() == [[7] * 3] * 2
    assert run(lambda x: eddy.ops.Concat(x, x, axis=np.int64(1)), X).shape == (2, 6)
    parts = run(lambda x: eddy.ops.Split(x, axis=1, num_outputs=3, outputs=3), X)
    assert [each.shape for each in parts] == [(2, 1)] * 3
    values, places = run(lambda x: eddy.ops.TopK(x, np.array([1]), outputs=2), X)
    assert values.tolist() == [[2], [5]] and places.tolist() == [[2], [2]]
    assert run(lambda x: eddy.ops.Clip(x, None, np.float64(3)), X).max() == 3


def test_operators_of_other_domains_are_names_too():
    got = run(lambda x: eddy.ops.microsoft.QuickGelu(x, alpha=1), X)
    np.testing.assert_allclose(got, X / (1 + np.exp(-X)), rtol=1e-6)
    assert run(lambda x: eddy.ops.ml.Binarizer(x, threshold=2), X).tolist() == (X > 2).tolist()


@pytest.mark.parametrize(
    "body, said",
    [
        (lambda x: eddy.ops.Softmax(x, axes=1), "Softmax has no attribute 'axes'; the nearest is 'axis'"),
        (lambda x: eddy.ops.Softmax(x, axis="last"), "'axis' of Softmax is a whole number or a dtype"),
        (lambda x: eddy.ops.Softmax(x, axis=1.5), "'axis' of Softmax is a whole number"),
        (lambda x: eddy.ops.LeakyRelu(x, alpha="a"), "'alpha' of LeakyRelu is a number, not 'a'"),
        (lambda x: eddy.ops.Transpose(x, perm=1), "'perm' of Transpose is a list of whole numbers"),
        (lambda x: eddy.ops.Einsum(x, equation=3), "'equation' of Einsum is a text"),
        (lambda x: eddy.ops.ConstantOfShape(x, value="a"), "'value' of ConstantOfShape is an array"),
        (lambda x: eddy.ops.Concat(x, x), "Concat needs attribute 'axis'"),
        (lambda x: eddy.ops.Softmax(), r"Softmax has inputs \(input\), but 0 were given"),
        (lambda x: eddy.ops.Softmax(x, x), r"Softmax has inputs \(input\), but 2 were given"),
        (lambda x: eddy.ops.Softmax(x, outputs=2), "Softmax has 1 to 1 outputs, not 2"),
    ],
)
def test_what_is_wrong_is_refused_at_its_line(body, said):
    with pytest.raises(eddy.Error, match=said) as caught:
        run(body, X)
    assert caught.value.location.line == body.__code__.co_firstlineno


def test_an_operator_that_is_not_there_is_named_with_the_nearest():
    with pytest.raises(AttributeError, match="no operator 'Sofmax'; the nearest is 'Softmax'"):
        eddy.ops.Sofmax
    with pytest.raises(AttributeError, match="no operator 'Gelo'"):
        eddy.ops.microsoft.Gelo
    assert not hasattr(eddy.ops, "__wrapped__")


def test_an_older_definition_may_be_asked_for():
    assert run(lambda x: eddy.ops.Clip(x, min=1.0, max=3.0, opset=6), X).max() == 3
    with pytest.raises(eddy.Error, match="Clip has no attribute 'min'"):
        run(lambda x: eddy.ops.Clip(x, min=1.0), X)
