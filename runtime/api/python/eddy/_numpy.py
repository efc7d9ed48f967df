"""Functions of numpy on values of a graph, by way of numpy's own protocols."""

from typing import Any, Callable, Dict

import numpy as np

from ._tensor import Tensor, alike, as_float, as_sum, binary, floor_divide, is_weak, logical
from ._tensor import mixed, reduce, remainder, tracer_of, vector
from ._trace import refusal


def _float(op: str) -> Callable:
    def call(x: Tensor) -> Tensor:
        return x.tracer.node(op, [as_float(x)])[0]

    return call


def _plain(op: str) -> Callable:
    def call(x: Tensor) -> Tensor:
        return x.tracer.node(op, [x])[0]

    return call


def _two(op: str, to_float: bool = False) -> Callable:
    return lambda a, b: binary(op, a, b, to_float)


def _bools(op: str) -> Callable:
    def call(*values: Any) -> Tensor:
        tracer = tracer_of(values)
        return tracer.node(op, [tracer.lift(each).astype(np.bool_) for each in values])[0]

    return call


# Kahan's: the error of exp and log's argument is divided out again.
def _expm1(x: Tensor) -> Tensor:
    x = as_float(x)
    y = np.exp(x)
    small = (y - 1) * x / np.log(y)
    return np.where(y == 1, x, np.where(abs(x) < 1, small, y - 1))


def _log1p(x: Tensor) -> Tensor:
    x = as_float(x)
    y = x + 1
    return np.where(y == 1, x, np.where(abs(x) < 1, np.log(y) * x / (y - 1), np.log(y)))


UFUNCS: Dict[Any, Callable] = {
    np.add: _two("Add"),
    np.subtract: _two("Sub"),
    np.multiply: _two("Mul"),
    np.true_divide: _two("Div", True),
    np.floor_divide: floor_divide,
    np.remainder: remainder,
    np.power: _two("Pow"),
    np.float_power: _two("Pow", True),
    np.matmul: _two("MatMul"),
    np.maximum: _two("Max"),
    np.minimum: _two("Min"),
    np.less: _two("Less"),
    np.less_equal: _two("LessOrEqual"),
    np.greater: _two("Greater"),
    np.greater_equal: _two("GreaterOrEqual"),
    np.equal: _two("Equal"),
    np.not_equal: lambda a, b: ~binary("Equal", a, b),
    np.logical_and: _bools("And"),
    np.logical_or: _bools("Or"),
    np.logical_xor: _bools("Xor"),
    np.logical_not: _bools("Not"),
    np.bitwise_and: lambda a, b: logical("And", a, b),
    np.bitwise_or: lambda a, b: logical("Or", a, b),
    np.bitwise_xor: lambda a, b: logical("Xor", a, b),
    np.invert: lambda x: ~x,
    np.negative: _plain("Neg"),
    np.positive: lambda x: x,
    np.absolute: _plain("Abs"),
    np.sign: _plain("Sign"),
    np.square: lambda x: x * x,
    np.reciprocal: _float("Reciprocal"),
    np.sqrt: _float("Sqrt"),
    np.exp: _float("Exp"),
    np.log: _float("Log"),
    np.expm1: _expm1,
    np.log1p: _log1p,
    np.sin: _float("Sin"),
    np.cos: _float("Cos"),
    np.tan: _float("Tan"),
    np.arcsin: _float("Asin"),
    np.arccos: _float("Acos"),
    np.arctan: _float("Atan"),
    np.sinh: _float("Sinh"),
    np.cosh: _float("Cosh"),
    np.tanh: _float("Tanh"),
    np.arcsinh: _float("Asinh"),
    np.arccosh: _float("Acosh"),
    np.arctanh: _float("Atanh"),
    np.floor: _float("Floor"),
    np.ceil: _float("Ceil"),
    np.rint: _float("Round"),
    np.isnan: _float("IsNaN"),
    np.isinf: _float("IsInf"),
}


def _where(condition: Any, x: Any, y: Any) -> Tensor:
    tracer = tracer_of([condition, x, y])
    dtype = mixed([x, y])
    a, b = (tracer.lift(each, dtype if is_weak(each) else None).astype(dtype) for each in (x, y))
    return tracer.node("Where", [tracer.lift(condition).astype(np.bool_), a, b])[0]


def _concatenate(arrays: Any, axis: int = 0) -> Tensor:
    values = alike(list(arrays))
    return values[0].tracer.node("Concat", values, {"axis": axis})[0]


def _stack(arrays: Any, axis: int = 0) -> Tensor:
    return _concatenate([np.expand_dims(each, axis) for each in alike(list(arrays))], axis)


def _expand_dims(x: Tensor, axis: Any) -> Tensor:
    axes = [axis] if isinstance(axis, int) else list(axis)
    return x.tracer.node("Unsqueeze", [x, np.asarray(axes, np.int64)])[0]


def _clip(x: Any, low: Any = None, high: Any = None) -> Tensor:
    made = x if low is None else binary("Max", x, low)
    return made if high is None else binary("Min", made, high)


def _dot(a: Any, b: Any) -> Tensor:
    return a * b if np.ndim(a) == 0 or np.ndim(b) == 0 else a @ b


def _cumsum(x: Tensor, axis: Any = None) -> Tensor:
    of = as_sum(x.reshape(-1) if axis is None else x)
    return of.tracer.node("CumSum", [of, np.int64(axis or 0)])[0]


def _broadcast_to(x: Tensor, shape: Any) -> Tensor:
    parts = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    return x.tracer.node("Expand", [x, vector(x.tracer, parts)])[0]


def _full_like(x: Tensor, value: Any) -> Tensor:
    filled = x.tracer.lift(value, x.dtype)
    return x.tracer.node("Expand", [filled, x.tracer.node("Shape", [x])[0]])[0]


def _norm(x: Tensor, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    if ord not in (None, 2) or (ord == 2 and axis is None and x.ndim != 1):
        raise refusal(f"np.linalg.norm with ord {ord} does not work on values of a graph")
    return reduce("ReduceL2", as_float(x), axis, keepdims)


def _einsum(equation: str, *operands: Any) -> Tensor:
    values = alike(list(operands))
    return values[0].tracer.node("Einsum", values, {"equation": equation})[0]


FUNCTIONS: Dict[Any, Callable] = {
    np.where: _where,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.expand_dims: _expand_dims,
    np.squeeze: lambda x, axis=None: x.squeeze(axis),
    np.reshape: lambda x, shape: x.reshape(shape),
    np.ravel: lambda x: x.reshape(-1),
    np.transpose: lambda x, axes=None: x.transpose() if axes is None else x.transpose(axes),
    np.clip: _clip,
    np.dot: _dot,
    np.cumsum: _cumsum,
    np.broadcast_to: _broadcast_to,
    np.full_like: _full_like,
    np.zeros_like: lambda x: _full_like(x, 0),
    np.ones_like: lambda x: _full_like(x, 1),
    np.einsum: _einsum,
    np.linalg.norm: _norm,
    np.take: lambda x, at, axis=None: (x.reshape(-1) if axis is None else x)[
        (slice(None),) * (axis or 0) + (at,)
    ],
    np.ndim: lambda x: x.ndim,
    np.shape: lambda x: x.shape,
    np.sum: lambda x, axis=None, keepdims=False: x.sum(axis, keepdims),
    np.mean: lambda x, axis=None, keepdims=False: x.mean(axis, keepdims),
    np.prod: lambda x, axis=None, keepdims=False: x.prod(axis, keepdims),
    np.max: lambda x, axis=None, keepdims=False: x.max(axis, keepdims),
    np.min: lambda x, axis=None, keepdims=False: x.min(axis, keepdims),
    np.amax: lambda x, axis=None, keepdims=False: x.max(axis, keepdims),
    np.amin: lambda x, axis=None, keepdims=False: x.min(axis, keepdims),
    np.any: lambda x, axis=None, keepdims=False: x.any(axis, keepdims),
    np.all: lambda x, axis=None, keepdims=False: x.all(axis, keepdims),
    np.argmax: lambda x, axis=None: x.argmax(axis),
    np.argmin: lambda x, axis=None: x.argmin(axis),
}
