"""More of numpy on values of a graph: what is made of the functions of _numpy.py."""

from typing import Any, Callable, Dict, List, Sequence

import numpy as np

from ._tensor import Tensor, alike, as_float, binary, floor_divide, is_weak, mixed, reduce
from ._tensor import remainder, tracer_of
from ._trace import refusal

# -- elementwise --


def _truncated(x: Tensor) -> Tensor:
    if x.dtype.kind != "f":
        return x
    return np.where(x < 0, np.ceil(x), np.floor(x))


def _logaddexp(a: Any, b: Any) -> Tensor:
    x, y = alike([a, b], True)
    larger = np.maximum(x, y)
    return np.where(x == y, x + float(np.log(2)), larger + np.log1p(np.exp(-abs(x - y))))


def _arctan2(a: Any, b: Any) -> Tensor:
    y, x = alike([a, b], True)
    angle = np.arctan(y / np.where(x == 0, 1.0, x))
    flat = np.where(y < 0, -np.pi / 2, np.where(y > 0, np.pi / 2, 0.0)).astype(x.dtype)
    behind = np.where(y < 0, angle - np.pi, angle + np.pi)
    return np.where(x == 0, flat, np.where(x < 0, behind, angle))


def _fmod(a: Any, b: Any) -> Tensor:
    x, y = alike([a, b])
    return x.tracer.node("Mod", [x, y], {"fmod": 1})[0]


def _shift(direction: str) -> Callable:
    def call(a: Any, b: Any) -> Tensor:
        x, y = alike([a, b])
        if x.dtype.kind == "u":
            return x.tracer.node("BitShift", [x, y], {"direction": direction})[0]
        two = x.tracer.lift(2, x.dtype)
        factor = x.tracer.node("Pow", [two, y])[0]
        return x * factor if direction == "LEFT" else floor_divide(x, factor)

    return call


def _log(base: float) -> Callable:
    return lambda x: np.log(as_float(x)) * (1 / float(np.log(base)))


def _is_finite(x: Tensor) -> Tensor:
    return x - x == 0 if x.dtype.kind == "f" else _full(x, True, np.bool_)


def _full(x: Tensor, value: Any, dtype: Any) -> Tensor:
    shape = x.tracer.node("Shape", [x])[0]
    return x.tracer.node("Expand", [x.tracer.lift(value, dtype), shape])[0]


def _ignoring_nan(op: str) -> Callable:
    def call(a: Any, b: Any) -> Tensor:
        x, y = alike([a, b])
        if x.dtype.kind != "f":
            return binary(op, x, y)
        return np.where(np.isnan(x), y, np.where(np.isnan(y), x, binary(op, x, y)))

    return call


MORE_UFUNCS: Dict[Any, Callable] = {
    np.exp2: lambda x: np.exp(as_float(x) * float(np.log(2))),
    np.log2: _log(2),
    np.log10: _log(10),
    np.logaddexp: _logaddexp,
    np.cbrt: lambda x: np.sign(x) * abs(as_float(x)) ** (1 / 3),
    np.hypot: lambda a, b: np.sqrt(np.square(alike([a, b], True)[0]) + np.square(b)),
    np.arctan2: _arctan2,
    np.trunc: _truncated,
    np.fmod: _fmod,
    np.divmod: lambda a, b: (floor_divide(a, b), remainder(a, b)),
    np.fmax: _ignoring_nan("Max"),
    np.fmin: _ignoring_nan("Min"),
    np.fabs: lambda x: abs(as_float(x)),
    np.conjugate: lambda x: x,
    np.isfinite: _is_finite,
    np.signbit: lambda x: x < 0,
    np.degrees: lambda x: as_float(x) * (180 / np.pi),
    np.rad2deg: lambda x: as_float(x) * (180 / np.pi),
    np.radians: lambda x: as_float(x) * (np.pi / 180),
    np.deg2rad: lambda x: as_float(x) * (np.pi / 180),
    np.heaviside: lambda x, h: np.where(x < 0, 0.0, np.where(x > 0, 1.0, h)),
    np.left_shift: _shift("LEFT"),
    np.right_shift: _shift("RIGHT"),
}

# ufunc.reduce and .accumulate; .outer is any ufunc of two.
REDUCE: Dict[Any, Callable] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}


def reduce_with(ufunc: Any, x: Tensor, axis: Any = 0, keepdims: bool = False) -> Tensor:
    return REDUCE[ufunc](x, axis=axis, keepdims=keepdims)


def outer_with(ufunc: Any, a: Any, b: Any) -> Tensor:
    tracer = tracer_of([a, b])
    x = a if is_weak(a) else tracer.lift(a)
    for _ in range(np.ndim(b)):
        x = np.expand_dims(x, -1)
    return ufunc(x, b)


# -- shapes --


def _axis(x: Tensor, axis: int) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise refusal(f"axis {axis} of a value of {x.ndim} axes")
    return axis % x.ndim


def _swapaxes(x: Tensor, a: int, b: int) -> Tensor:
    order = list(range(x.ndim))
    i, j = _axis(x, a), _axis(x, b)
    order[i], order[j] = order[j], order[i]
    return x.transpose(order)


def _moveaxis(x: Tensor, source: Any, destination: Any) -> Tensor:
    froms = [_axis(x, each) for each in np.atleast_1d(source).tolist()]
    tos = [_axis(x, each) for each in np.atleast_1d(destination).tolist()]
    order = [each for each in range(x.ndim) if each not in froms]
    for to, source_axis in sorted(zip(tos, froms)):
        order.insert(to, source_axis)
    return x.transpose(order)


def _flip(x: Tensor, axis: Any = None) -> Tensor:
    axes = range(x.ndim) if axis is None else [_axis(x, a) for a in np.atleast_1d(axis).tolist()]
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


def _roll(x: Tensor, shift: Any, axis: Any = None) -> Tensor:
    if axis is None:
        return _roll(x.reshape(-1), shift, 0).reshape(x.tracer.node("Shape", [x])[0])
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    for by, at in zip(shifts.tolist(), axes.tolist()):
        at = _axis(x, at)
        size = _known(x, at, "np.roll")
        if size == 0 or by % size == 0:
            continue
        head = (slice(None),) * at
        x = np.concatenate([x[head + (slice(-(by % size), None),)],
                            x[head + (slice(None, -(by % size)),)]], at)  # fmt: skip
    return x


def _known(x: Tensor, axis: int, what: str) -> int:
    size = x.shape[axis] if x.shape is not None else None
    if not isinstance(size, int):
        raise refusal(f"{what} needs the size of axis {axis}, which is not known here")
    return size


def _tile(x: Tensor, reps: Any) -> Tensor:
    counts = list(np.atleast_1d(reps).tolist())
    while x.ndim < len(counts):
        x = np.expand_dims(x, 0)
    counts = [1] * (x.ndim - len(counts)) + counts
    return x.tracer.node("Tile", [x, np.asarray(counts, np.int64)])[0]


def _repeat(x: Tensor, repeats: int, axis: Any = None) -> Tensor:
    if np.ndim(repeats) != 0:
        raise refusal("np.repeat with a number for each element does not work on values of a graph")
    x = x.reshape(-1) if axis is None else x
    at = _axis(x, axis or 0)
    counts = np.ones(x.ndim + 1, np.int64)
    counts[at + 1] = repeats
    tiled = x.tracer.node("Tile", [np.expand_dims(x, at + 1), counts])[0]
    size = x.tracer.node("Shape", [x])[0]
    return tiled.reshape(size * np.asarray([repeats if i == at else 1 for i in range(x.ndim)]))


def _split(x: Tensor, sections: Any, axis: int = 0, *, is_even: bool = True) -> List[Tensor]:
    size = _known(x, _axis(x, axis), "np.split")
    if isinstance(sections, (int, np.integer)):
        each, rest = divmod(size, int(sections))
        if rest and is_even:
            raise refusal(f"np.split into {sections} parts of an axis of {size}")
        ends = np.cumsum([each + 1] * rest + [each] * (int(sections) - rest))[:-1].tolist()
    else:
        ends = list(sections)
    head = (slice(None),) * _axis(x, axis)
    return [x[head + (slice(a, b),)] for a, b in zip([0] + ends, ends + [size])]


def _at_least(count: int, x: Any) -> Any:
    while np.ndim(x) < count:
        # As numpy: of 2 axes one in front, then one behind.
        x = np.expand_dims(x, -1 if np.ndim(x) == 2 else 0)
    return x


def _stacked(axis: int, least: int) -> Callable:
    def call(arrays: Any) -> Tensor:
        parts = [_at_least(least, each) for each in alike(list(arrays))]
        return np.concatenate(parts, 0 if axis == 1 and parts[0].ndim == 1 else axis)

    return call


def _columns(arrays: Any) -> Tensor:
    parts = alike(list(arrays))
    return np.concatenate([np.expand_dims(x, 1) if x.ndim == 1 else x for x in parts], 1)


def _triangle(upper: int) -> Callable:
    def call(x: Tensor, k: int = 0) -> Tensor:
        return x.tracer.node("Trilu", [x, np.int64(k)], {"upper": upper})[0]

    return call


def _diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    x = _moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = _known(x, x.ndim - 2, "np.diagonal"), _known(x, x.ndim - 1, "np.diagonal")
    first = max(-offset, 0)
    count = max(min(rows - first, columns - max(offset, 0)), 0)
    places = (np.arange(count) + first) * columns + np.arange(count) + max(offset, 0)
    flat = x.reshape(list(x.shape[:-2]) + [rows * columns])
    return flat[(slice(None),) * (x.ndim - 2) + (places,)]


def _placed(x: Tensor, size: int, k: int) -> Tensor:
    side = size + abs(k)
    places = np.full((side, side), size, np.int64)
    places[np.arange(size) + max(-k, 0), np.arange(size) + max(k, 0)] = np.arange(size)
    return np.concatenate([x, np.zeros(1, x.dtype)])[places]


def _pad(x: Tensor, width: Any, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    modes = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}
    if mode not in modes or np.ndim(constant_values) != 0:
        raise refusal(f"np.pad with mode '{mode}' does not work on values of a graph")
    widths = np.broadcast_to(width, (x.ndim, 2)).astype(np.int64)
    inputs = [x, widths.T.ravel()]
    if mode == "constant":
        inputs.append(x.tracer.lift(constant_values, x.dtype))
    return x.tracer.node("Pad", inputs, {"mode": modes[mode]})[0]


# -- products --


def _outer(a: Any, b: Any) -> Tensor:
    return np.expand_dims(np.ravel(a), 1) * np.expand_dims(np.ravel(b), 0)


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    x, y = alike([a, b])
    if isinstance(axes, int):
        axes = (list(range(x.ndim - axes, x.ndim)), list(range(axes)))
    froms, tos = ([_axis(of, each) for each in np.atleast_1d(part).tolist()]
                  for of, part in zip((x, y), axes))  # fmt: skip
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left = [next(letters) for _ in range(x.ndim)]
    right = [next(letters) for _ in range(y.ndim)]
    for i, j in zip(froms, tos):
        right[j] = left[i]
    kept = [each for i, each in enumerate(left) if i not in froms]
    kept += [each for j, each in enumerate(right) if j not in tos]
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", x, y)


# -- statistics, order --


def _var(x: Tensor, axis: Any = None, ddof: Any = 0, keepdims: bool = False) -> Tensor:
    x = as_float(x)
    squares = np.square(x - x.mean(axis, True))
    if ddof == 0:
        return squares.mean(axis, keepdims)
    ones = _full(x, 1, x.dtype)
    return squares.sum(axis, keepdims) / (reduce("ReduceSum", ones, axis, keepdims) - ddof)


def _sorted(x: Tensor, axis: Any) -> Any:
    x = x.reshape(-1) if axis is None else x
    at = _axis(x, -1 if axis is None else axis)
    shape = x.tracer.node("Shape", [x])[0]
    size = shape[at : at + 1]
    return x.tracer.node("TopK", [x, size], {"axis": at, "largest": 0}, outputs=2)


def _median(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    flat = as_float(x.reshape(-1) if axis is None else x)
    at = 0 if axis is None else _axis(x, axis)
    size = _known(flat, at, "np.median")
    ordered = _sorted(flat, at)[0]
    head = (slice(None),) * at
    made = (ordered[head + ((size - 1) // 2,)] + ordered[head + (size // 2,)]) / 2
    if not keepdims:
        return made
    return made.reshape([1] * x.ndim) if axis is None else np.expand_dims(made, at)


def _average(x: Tensor, axis: Any = None, weights: Any = None) -> Tensor:
    if weights is None:
        return x.mean(axis)
    if axis is not None and np.ndim(weights) == 1 and x.ndim > 1:
        at = _axis(x, axis)
        weights = np.reshape(weights, [-1 if i == at else 1 for i in range(x.ndim)])
    w = as_float(x * 0) + weights
    return (x * weights).sum(axis) / w.sum(axis)


def _diff(x: Tensor, n: int = 1, axis: int = -1) -> Tensor:
    head = (slice(None),) * _axis(x, axis)
    for _ in range(n):
        x = x[head + (slice(1, None),)] - x[head + (slice(None, -1),)]
    return x


def _nan_to_num(x: Tensor, copy: bool = True, nan: float = 0.0, posinf: Any = None,
                neginf: Any = None) -> Tensor:  # fmt: skip
    if x.dtype.kind != "f":
        return x
    limits = np.finfo(x.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    finite = np.where(np.isinf(x), np.where(x > 0, high, low), x)
    return np.where(np.isnan(x), nan, finite)


def _isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8) -> Tensor:
    x, y = alike([a, b], True)
    near = abs(x - y) <= atol + rtol * abs(y)
    return np.where(_is_finite(x) & _is_finite(y), near, x == y)


def _count(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    return x.astype(np.bool_).astype(np.int64).sum(axis, keepdims)


def _without_nan(name: str, instead: float) -> Callable:
    function = getattr(np, name)

    def call(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        if x.dtype.kind == "f":
            x = np.where(np.isnan(x), instead, x)
        return function(x, axis=axis, keepdims=keepdims)

    return call


def _nanmean(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    x = as_float(x)
    seen = (~np.isnan(x)).astype(x.dtype).sum(axis, keepdims)
    return np.where(np.isnan(x), 0.0, x).sum(axis, keepdims) / seen


def _select(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0) -> Tensor:
    made = default
    for condition, choice in zip(reversed(list(conditions)), reversed(list(choices))):
        made = np.where(condition, choice, made)
    return made


def _polyval(p: Any, x: Any) -> Tensor:
    terms = [p[i] for i in range(len(p))]
    made = terms[0] + x * 0
    for each in terms[1:]:
        made = made * x + each
    return made


def _round(x: Tensor, decimals: int = 0) -> Tensor:
    if x.dtype.kind != "f":
        return x
    return np.rint(x) if decimals == 0 else np.rint(x * 10.0**decimals) / 10.0**decimals


def _size(x: Tensor, axis: Any = None) -> Any:
    axes = range(x.ndim) if axis is None else [_axis(x, axis)]
    return int(np.prod([_known(x, each, "np.size") for each in axes], dtype=np.int64))


def _indices_along(x: Tensor, at: Any, axis: Any) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    return x.tracer.node("GatherElements", [x, at], {"axis": _axis(x, axis)})[0]


MORE_FUNCTIONS: Dict[Any, Callable] = {
    np.swapaxes: _swapaxes,
    np.moveaxis: _moveaxis,
    np.flip: _flip,
    np.flipud: lambda x: _flip(x, 0),
    np.fliplr: lambda x: _flip(x, 1),
    np.roll: _roll,
    np.tile: _tile,
    np.repeat: _repeat,
    np.split: _split,
    np.array_split: lambda x, n, axis=0: _split(x, n, axis, is_even=False),
    np.hsplit: lambda x, n: _split(x, n, 0 if x.ndim == 1 else 1),
    np.vsplit: lambda x, n: _split(x, n, 0),
    np.vstack: _stacked(0, 2),
    np.hstack: _stacked(1, 1),
    np.dstack: _stacked(2, 3),
    np.column_stack: _columns,
    np.atleast_1d: lambda *xs: _one([_at_least(1, x) for x in xs]),
    np.atleast_2d: lambda *xs: _one([_at_least(2, x) for x in xs]),
    np.atleast_3d: lambda *xs: _one([_at_least(3, x) for x in xs]),
    np.tril: _triangle(0),
    np.triu: _triangle(1),
    np.diagonal: _diagonal,
    np.diag: lambda x, k=0: _diagonal(x, k) if x.ndim == 2 else _placed(x, _size(x), k),
    np.trace: lambda x, offset=0: _diagonal(x, offset).sum(-1),
    np.pad: _pad,
    np.outer: _outer,
    np.inner: lambda a, b: a * b if np.ndim(a) == 0 or np.ndim(b) == 0
    else _tensordot(a, b, (-1, -1)),
    np.vdot: lambda a, b: (np.ravel(a) * np.ravel(b)).sum(),
    np.tensordot: _tensordot,
    np.var: _var,
    np.std: lambda x, axis=None, ddof=0, keepdims=False: np.sqrt(_var(x, axis, ddof, keepdims)),
    np.ptp: lambda x, axis=None, keepdims=False: x.max(axis, keepdims) - x.min(axis, keepdims),
    np.median: _median,
    np.average: _average,
    np.sort: lambda x, axis=-1: _sorted(x, axis)[0],
    np.argsort: lambda x, axis=-1: _sorted(x, axis)[1],
    np.diff: _diff,
    np.count_nonzero: _count,
    np.nan_to_num: _nan_to_num,
    np.nansum: _without_nan("sum", 0.0),
    np.nanprod: _without_nan("prod", 1.0),
    np.nanmax: _without_nan("max", -np.inf),
    np.nanmin: _without_nan("min", np.inf),
    np.nanmean: _nanmean,
    np.isclose: _isclose,
    np.allclose: lambda a, b, rtol=1e-5, atol=1e-8: _isclose(a, b, rtol, atol).all(),
    np.array_equal: lambda a, b: np.equal(a, b).all(),
    np.select: _select,
    np.polyval: _polyval,
    np.round: _round,
    np.around: _round,
    np.round_: _round,
    np.fix: _truncated,
    np.size: _size,
    np.copy: lambda x: x,
    np.real: lambda x: x,
    np.empty_like: lambda x: _full(x, 0, x.dtype),
    np.take_along_axis: _indices_along,
    np.linalg.det: lambda x: x.tracer.node("Det", [as_float(x)])[0],
    np.isneginf: lambda x: np.isinf(x) & (x < 0),
    np.isposinf: lambda x: np.isinf(x) & (x > 0),
    np.sinc: lambda x: np.where(x == 0, 1.0, np.sin(np.pi * x) / np.where(x == 0, 1.0, np.pi * x)),
    np.result_type: lambda *xs: mixed(xs),
}


def _one(values: List[Any]) -> Any:
    return values[0] if len(values) == 1 else values
