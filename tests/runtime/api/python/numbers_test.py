"""Claim: at the edges of dtypes a traced function gives numpy's numbers, or refuses with the
user's line; never other numbers silently."""

import random
import warnings

import eddy
import numpy as np
import pytest


def agrees(function, *arguments, **how):
    """A traced function gives numpy's values, shapes and dtypes."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = function(*arguments)
    made = eddy.function(function)(*arguments)
    if not isinstance(wanted, tuple):
        wanted, made = (wanted,), (made,)
    assert len(made) == len(wanted)
    for want, got in zip(wanted, made):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, equal_nan=True, **({"rtol": 0, "atol": 0} | how))


EDGES = [0.0, -0.0, 1.0, -1.0, 0.1, -0.1, 2.0, 5.0, -7.0, 1e-300, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_division_with_a_rest_is_numpys(dtype, seed):
    chance = random.Random(seed)
    pairs = [(a, b) for a in EDGES for b in EDGES]
    pairs += [(chance.uniform(-50, 50), chance.choice([0.1, -0.3, 7, 1e-3])) for _ in range(1000)]
    x, y = (np.array(each, dtype) for each in zip(*pairs))
    agrees(lambda x, y: (x % y, x // y), x, y)


@pytest.mark.parametrize("function", [np.log1p, np.expm1])
def test_small_numbers_keep_their_digits(function):
    x = np.array([0, 1e-20, -1e-20, 1e-9, -1e-9, 1e-3, 0.5, -0.5, 3, 80, np.inf, np.nan])
    agrees(lambda x: function(x), x, rtol=1e-14)
    agrees(lambda x: function(x), -x[x < 1], rtol=1e-14)


@pytest.mark.parametrize("dtype", "? i1 u1 i2 i4 u4 i8 f4".split())
def test_sums_have_numpys_dtypes(dtype):
    x = np.array([[100, 100, 3], [1, 0, 100]]).astype(dtype)
    agrees(lambda x: (x.sum(), x.sum(0), x.prod(1), np.cumsum(x, 1)), x)


def test_no_axes_are_no_reduction():
    x = np.array([[1.0, -2.0], [3.0, 4.0]])
    agrees(lambda x: (x.sum(axis=()), x.max(axis=()), x.mean(axis=())), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 300,
        lambda x: x < 300,
        lambda x: -1 + x,
        lambda x: np.full_like(x, 256),
        lambda x: np.where(x > 0, x, -1),
        lambda x: x + 2**70,
    ],
)
def test_a_number_that_does_not_fit_is_refused(function):
    with pytest.raises(eddy.Error, match="numbers_test.py:.*uint8.* 0 to 255") as caught:
        eddy.function(function)(np.ones(2, np.uint8))
    assert caught.value.location.file.endswith("numbers_test.py")


def test_numbers_of_keyword_arguments_are_told_apart():
    @eddy.function
    def times(x, k):
        return -x if k is True else x * k

    x = np.ones(2, np.int64)
    assert times(x, k=1).tolist() == [1, 1]
    assert times(x, k=True).tolist() == [-1, -1]
    assert times(x, k=1.0).dtype == np.float64
    assert times(x, k=1).dtype == np.int64
    with pytest.raises(TypeError, match="keyword argument 'k' of 'times'.*hash"):
        times(x, k=np.ones(2))


def test_a_condition_has_one_element():
    with pytest.raises(eddy.Error, match=r"numbers_test.py:.*shape \(2,\).*any\(\) or all\(\)"):
        eddy.function(lambda x: eddy.cond(x > 0, lambda: x, lambda: -x))(np.ones(2))


def test_a_value_is_refused_behind_its_trace():
    kept = []
    eddy.function(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(eddy.Error, match="numbers_test.py:.*trace"):
        kept[0] + 1


def test_half_a_character_is_refused():
    with pytest.raises(UnicodeEncodeError):
        eddy.value(np.array(["\ud800"], object))
