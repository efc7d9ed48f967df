"""Claim: a function of numpy gives on values of a graph what it gives on arrays, or is refused at
the user's line; nothing is left out quietly."""

import eddy
import numpy as np
import pytest

ROWS = np.array([[0.5, -1.5, 2.0], [3.25, 0.0, -0.75]])
SQUARE = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0], [1.5, 0.25, -2.0]])
WHOLE = np.array([[7, -3, 2], [0, 5, -8]])
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -2.5, 3.0])

# What is called, and with which arrays.
CASES = [
    (lambda x: np.exp2(x), [ROWS]),
    (lambda x: np.log2(abs(x) + 1), [ROWS]),
    (lambda x: np.log10(abs(x) + 1), [ROWS]),
    (lambda x: np.logaddexp(x, 0.5), [ROWS]),
    (lambda x: np.cbrt(x), [ROWS]),
    (lambda x: np.hypot(x, 2.0), [ROWS]),
    (lambda x, y: np.arctan2(x, y), [ROWS, ROWS[::-1]]),
    (lambda x: np.trunc(x), [ROWS]),
    (lambda x: np.fix(x), [ROWS]),
    (lambda x: np.fmod(x, 1.25), [ROWS]),
    (lambda x: np.divmod(x, 3), [WHOLE]),
    (lambda x: np.fmax(x, 0.5), [ODD]),
    (lambda x: np.fmin(x, 0.5), [ODD]),
    (lambda x: np.fabs(x), [ROWS]),
    (lambda x: np.isfinite(x), [ODD]),
    (lambda x: np.isfinite(x), [WHOLE]),
    (lambda x: np.degrees(np.radians(x)), [ROWS]),
    (lambda x: np.heaviside(x, 0.5), [ROWS]),
    (lambda x: np.left_shift(x, 2), [WHOLE]),
    (lambda x: np.right_shift(x, 1), [WHOLE]),
    (lambda x: np.left_shift(x, np.uint32(2)), [WHOLE.astype(np.uint32) & 255]),
    (lambda x: np.add.reduce(x), [ROWS]),
    (lambda x: np.maximum.reduce(x, axis=1), [ROWS]),
    (lambda x, y: np.subtract.outer(x, y), [ROWS, ODD[3:]]),
    (lambda x: np.swapaxes(x, 0, 1), [ROWS]),
    (lambda x: np.moveaxis(x, 0, -1), [ROWS[None]]),
    (lambda x: np.moveaxis(x, (0, 2), (2, 1)), [ROWS[None]]),
    (lambda x: np.flip(x), [ROWS]),
    (lambda x: np.flip(x, 1), [ROWS]),
    (lambda x: np.flipud(x), [ROWS]),
    (lambda x: np.fliplr(x), [ROWS]),
    (lambda x: np.roll(x, 1), [ROWS]),
    (lambda x: np.roll(x, -2, axis=1), [ROWS]),
    (lambda x: np.roll(x, (1, 2), axis=(0, 1)), [ROWS]),
    (lambda x: np.tile(x, 2), [ROWS]),
    (lambda x: np.tile(x, (2, 1, 3)), [ROWS]),
    (lambda x: np.repeat(x, 3), [ROWS]),
    (lambda x: np.repeat(x, 2, axis=1), [ROWS]),
    (lambda x: np.split(x, 3, axis=1), [ROWS]),
    (lambda x: np.split(x, [1], axis=1), [ROWS]),
    (lambda x: np.array_split(x, 4), [ODD]),
    (lambda x: np.hsplit(x, [2]), [ROWS]),
    (lambda x: np.vsplit(x, 2), [ROWS]),
    (lambda x: np.vstack([x, x * 2]), [ODD[3:]]),
    (lambda x: np.hstack([x, x * 2]), [ROWS]),
    (lambda x: np.hstack([x, x * 2]), [ODD[3:]]),
    (lambda x: np.dstack([x, x * 2]), [ROWS]),
    (lambda x: np.column_stack([x, x * 2]), [ODD[3:]]),
    (lambda x: np.atleast_3d(x), [ROWS]),
    (lambda x: np.atleast_2d(x), [ODD[3:]]),
    (lambda x: np.tril(x), [SQUARE]),
    (lambda x: np.triu(x, 1), [SQUARE]),
    (lambda x: np.diagonal(x, 1), [ROWS]),
    (lambda x: np.diagonal(x, -1), [SQUARE]),
    (lambda x: np.diag(x), [SQUARE]),
    (lambda x: np.diag(x, 1), [ODD[3:]]),
    (lambda x: np.diag(x, -2), [ODD[3:]]),
    (lambda x: np.trace(x), [SQUARE]),
    (lambda x: np.pad(x, 1), [ROWS]),
    (lambda x: np.pad(x, ((0, 1), (2, 0)), constant_values=5), [ROWS]),
    (lambda x: np.pad(x, 1, mode="edge"), [ROWS]),
    (lambda x: np.pad(x, 1, mode="reflect"), [ROWS]),
    (lambda x: np.outer(x, x), [ODD[3:]]),
    (lambda x: np.inner(x, x), [ROWS]),
    (lambda x: np.vdot(x, x * 2), [ROWS]),
    (lambda x, y: np.tensordot(x, y, 1), [ROWS, SQUARE]),
    (lambda x, y: np.tensordot(x, y, ([1], [0])), [ROWS, SQUARE]),
    (lambda x: np.tensordot(x, x), [SQUARE]),
    (lambda x: np.var(x), [ROWS]),
    (lambda x: np.var(x, axis=1, ddof=1), [ROWS]),
    (lambda x: np.std(x, axis=0, keepdims=True), [ROWS]),
    (lambda x: np.ptp(x, axis=1), [ROWS]),
    (lambda x: np.median(x), [ROWS]),
    (lambda x: np.median(x, axis=1), [ROWS]),
    (lambda x: np.median(x, axis=0, keepdims=True), [WHOLE]),
    (lambda x: np.average(x), [ROWS]),
    (lambda x: np.average(x, axis=1, weights=np.array([1.0, 2.0, 4.0])), [ROWS]),
    (lambda x: np.sort(x), [ROWS]),
    (lambda x: np.sort(x, axis=0), [WHOLE]),
    (lambda x: np.sort(x, axis=None), [WHOLE]),
    (lambda x: np.argsort(x), [ROWS]),
    (lambda x: np.diff(x), [ROWS]),
    (lambda x: np.diff(x, 2), [ROWS]),
    (lambda x: np.diff(x, axis=0), [ROWS]),
    (lambda x: np.count_nonzero(x), [ROWS]),
    (lambda x: np.count_nonzero(x, axis=1), [WHOLE]),
    (lambda x: np.nan_to_num(x), [ODD]),
    (lambda x: np.nan_to_num(x, nan=7.0, posinf=1.0), [ODD]),
    (lambda x: np.nansum(x), [ODD[[0, 3, 4, 5]]]),
    (lambda x: np.nanmax(x), [ODD]),
    (lambda x: np.nanmin(x), [ODD]),
    (lambda x: np.nanmean(x), [ODD[[0, 3, 4, 5]]]),
    (lambda x: np.isclose(x, x + 1e-9), [ODD]),
    (lambda x: np.allclose(x, x), [ROWS]),
    (lambda x: np.array_equal(x, x), [ROWS]),
    (lambda x: np.select([x < 0, x > 1], [x * 2, x + 10], 0.5), [ROWS]),
    (lambda x: np.polyval(np.array([1.0, -2.0, 0.5]), x), [ROWS]),
    (lambda x: np.round(x), [ROWS]),
    (lambda x: np.around(x * 1.23456, 2), [ROWS]),
    (lambda x: np.size(x), [ROWS]),
    (lambda x: np.copy(x), [ROWS]),
    (lambda x, at: np.take_along_axis(x, at, 1), [ROWS, np.array([[0, 2], [1, 1]])]),
    (lambda x: np.linalg.det(x), [SQUARE]),
    (lambda x: np.isneginf(x), [ODD]),
    (lambda x: np.isposinf(x), [ODD]),
    (lambda x: np.sinc(x), [ROWS]),
]


def text_of(case):
    import inspect

    return inspect.getsource(case[0]).strip()[1:].split(", [")[0]


@pytest.mark.parametrize("case", CASES, ids=text_of)
@pytest.mark.filterwarnings("ignore")
def test_a_function_gives_what_it_gives_on_arrays(case):
    function, arrays = case
    wanted = function(*arrays)
    got = eddy.function(lambda *xs: function(*xs), name="f")(*arrays)
    several = isinstance(wanted, (tuple, list))
    pairs = list(zip(wanted, got)) if several else [(wanted, got)]
    assert not several or len(wanted) == len(got)
    for want, have in pairs:
        assert np.shape(have) == np.shape(want)
        assert np.asarray(have).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "function, said",
    [
        (lambda x: np.add.reduce(x, dtype=np.float32), "np.add.reduce with dtype"),
        (lambda x: np.add.accumulate(x), "np.add.accumulate"),
        (lambda x: np.exp(x, where=x > 0), "np.exp with where"),
        (lambda x: np.sum(x, dtype=np.float32), "np.sum on values of a graph.*dtype"),
        (lambda x: np.repeat(x, [1, 2], axis=0), "np.repeat with a number for each element"),
        (lambda x: np.split(x, 2, axis=1), "np.split into 2 parts of an axis of 3"),
        (lambda x: np.swapaxes(x, 0, 2), "axis 2 of a value of 2 axes"),
        (lambda x: np.pad(x, 1, mode="mean"), "np.pad with mode 'mean'"),
        (lambda x: np.fft.fft(x), "np.fft does not work"),
        (lambda x: np.linalg.svd(x), "np.svd does not work"),
    ],
)
def test_what_does_not_work_is_refused_at_its_line(function, said):
    with pytest.raises(eddy.Error, match=said) as caught:
        eddy.function(function)(ROWS)
    assert "numpy_test.py" in caught.value.location.file
    assert caught.value.location.line == function.__code__.co_firstlineno
