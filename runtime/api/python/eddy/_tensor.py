"""Values of a graph that is traced, with the operators and functions of numpy's arrays."""

from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._trace import Tracer, refusal
from ._types import element_of

_INT64_MAX = np.iinfo(np.int64).max

Axes = Union[None, int, Sequence[int]]


class Tensor:
    """A value of a graph: has a dtype and a shape, but no numbers before the graph runs.

    Operators, indices and many functions of numpy work on it and add nodes; dtypes mix as numpy's,
    where Python's numbers take the other's dtype.
    """

    __slots__ = ("tracer", "id")
    __array_priority__ = 1000

    def __init__(self, tracer: Tracer, id: int) -> None:
        self.tracer = tracer
        self.id = id

    # -- what is known of it --

    @property
    def dtype(self) -> np.dtype:
        return _core.dtype_of(self.tracer.graph.type(self.id)[0])

    @property
    def shape(self) -> Optional[Tuple[Any, ...]]:
        """Sizes, names of sizes that are given later, None where one is not known; None instead of
        all where not even the number of axes is."""
        dims = self.tracer.graph.type(self.id)[1]
        if dims is None:
            return None
        return tuple(d if d >= 0 else self.tracer.dims.get(d) for d in dims)

    @property
    def ndim(self) -> int:
        shape = self.shape
        if shape is None:
            raise refusal("the number of axes is not known here")
        return len(shape)

    def length(self) -> "Tensor":
        """The size of the first axis, also where it is known at run time only."""
        return self._node("Gather", [self._node("Shape", [self]), np.int64(0)])

    def __repr__(self) -> str:
        shape = self.shape
        text = "?" if shape is None else ", ".join("?" if d is None else str(d) for d in shape)
        return f"<eddy.Tensor {self.dtype} ({text})>"

    # -- what Python would decide --

    def __bool__(self) -> bool:
        raise refusal(
            "a value of the graph is not known while the function is traced; "
            "use eddy.cond, eddy.case or eddy.while_loop, & | ~ for and, or, not"
        )

    def __int__(self) -> int:
        raise refusal("a value of the graph is not known while the function is traced")

    __index__ = __int__

    def __float__(self) -> float:
        raise refusal("a value of the graph is not known while the function is traced")

    def __array__(self, dtype: Any = None) -> np.ndarray:
        raise refusal("a value of the graph has no numbers while the function is traced")

    def __len__(self) -> int:
        shape = self.shape
        if shape and isinstance(shape[0], int):
            return shape[0]
        raise refusal("the size is not known while the function is traced; use length()")

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise refusal("values of a graph do not change; use np.where or eddy.ops.ScatterND")

    __hash__ = None  # type: ignore[assignment]

    # -- nodes --

    def _node(self, op: str, inputs: Sequence[Any], **attributes: Any) -> "Tensor":
        return self.tracer.node(op, inputs, attributes)[0]

    def astype(self, dtype: Any) -> "Tensor":
        """The value with other elements."""
        if self.dtype == np.dtype(dtype):
            return self
        return self._node("Cast", [self], to=element_of(dtype))

    def __add__(self, other: Any) -> "Tensor":
        return binary("Add", self, other)

    def __radd__(self, other: Any) -> "Tensor":
        return binary("Add", other, self)

    def __sub__(self, other: Any) -> "Tensor":
        return binary("Sub", self, other)

    def __rsub__(self, other: Any) -> "Tensor":
        return binary("Sub", other, self)

    def __mul__(self, other: Any) -> "Tensor":
        return binary("Mul", self, other)

    def __rmul__(self, other: Any) -> "Tensor":
        return binary("Mul", other, self)

    def __truediv__(self, other: Any) -> "Tensor":
        return binary("Div", self, other, to_float=True)

    def __rtruediv__(self, other: Any) -> "Tensor":
        return binary("Div", other, self, to_float=True)

    def __floordiv__(self, other: Any) -> "Tensor":
        return floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> "Tensor":
        return floor_divide(other, self)

    def __mod__(self, other: Any) -> "Tensor":
        return remainder(self, other)

    def __rmod__(self, other: Any) -> "Tensor":
        return remainder(other, self)

    def __pow__(self, other: Any) -> "Tensor":
        return binary("Pow", self, other)

    def __rpow__(self, other: Any) -> "Tensor":
        return binary("Pow", other, self)

    def __matmul__(self, other: Any) -> "Tensor":
        return binary("MatMul", self, other)

    def __rmatmul__(self, other: Any) -> "Tensor":
        return binary("MatMul", other, self)

    def __lt__(self, other: Any) -> "Tensor":
        return binary("Less", self, other)

    def __le__(self, other: Any) -> "Tensor":
        return binary("LessOrEqual", self, other)

    def __gt__(self, other: Any) -> "Tensor":
        return binary("Greater", self, other)

    def __ge__(self, other: Any) -> "Tensor":
        return binary("GreaterOrEqual", self, other)

    def __eq__(self, other: Any) -> "Tensor":  # type: ignore[override]
        return binary("Equal", self, other)

    def __ne__(self, other: Any) -> "Tensor":  # type: ignore[override]
        return ~binary("Equal", self, other)

    def __and__(self, other: Any) -> "Tensor":
        return logical("And", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> "Tensor":
        return logical("Or", self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> "Tensor":
        return logical("Xor", self, other)

    __rxor__ = __xor__

    def __invert__(self) -> "Tensor":
        return self._node("Not" if self.dtype == np.bool_ else "BitwiseNot", [self])

    def __neg__(self) -> "Tensor":
        return self._node("Neg", [self])

    def __pos__(self) -> "Tensor":
        return self

    def __abs__(self) -> "Tensor":
        return self._node("Abs", [self])

    # -- shapes --

    def reshape(self, *shape: Any) -> "Tensor":
        """Sizes, of which one may be -1; or an integer vector of the graph."""
        if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)):
            shape = shape[0] if isinstance(shape[0], (tuple, list)) else (shape[0],)
        if len(shape) == 1 and isinstance(shape[0], Tensor) and shape[0].shape != ():
            return self._node("Reshape", [self, shape[0]])
        return self._node("Reshape", [self, vector(self.tracer, shape)], allowzero=1)

    def transpose(self, *axes: Any) -> "Tensor":
        if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
            axes = tuple(axes[0])
        if not axes or axes == (None,):
            return self._node("Transpose", [self])
        return self._node("Transpose", [self], perm=[a % self.ndim for a in axes])

    @property
    def T(self) -> "Tensor":
        return self.transpose()

    def squeeze(self, axis: Axes = None) -> "Tensor":
        return self._node("Squeeze", [self] + _axes(axis))

    def __getitem__(self, index: Any) -> "Tensor":
        from ._index import take

        return take(self, index)

    # -- reductions --

    def sum(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        return reduce("ReduceSum", as_sum(self), axis, keepdims)

    def mean(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        return reduce("ReduceMean", as_float(self), axis, keepdims)

    def prod(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        return reduce("ReduceProd", as_sum(self), axis, keepdims)

    def max(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        return reduce("ReduceMax", self, axis, keepdims)

    def min(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        return reduce("ReduceMin", self, axis, keepdims)

    def any(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        return reduce("ReduceMax", self.astype(np.bool_).astype(np.int32), axis, keepdims) > 0

    def all(self, axis: Axes = None, keepdims: bool = False) -> "Tensor":
        return reduce("ReduceMin", self.astype(np.bool_).astype(np.int32), axis, keepdims) > 0

    def argmax(self, axis: Optional[int] = None) -> "Tensor":
        of = self.reshape(-1) if axis is None else self
        return of._node("ArgMax", [of], axis=axis or 0, keepdims=0)

    def argmin(self, axis: Optional[int] = None) -> "Tensor":
        of = self.reshape(-1) if axis is None else self
        return of._node("ArgMin", [of], axis=axis or 0, keepdims=0)

    # -- functions of numpy --

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from ._functions import MORE_UFUNCS, REDUCE, outer_with, reduce_with
        from ._numpy import UFUNCS

        made = UFUNCS.get(ufunc) or MORE_UFUNCS.get(ufunc)
        if method == "outer" and made is not None and not options:
            return outer_with(ufunc, *inputs)
        if method == "reduce" and ufunc in REDUCE and not set(options) - {"axis", "keepdims"}:
            return reduce_with(ufunc, *inputs, **options)
        if method != "__call__" or made is None or options:
            what = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
            what += f" with {', '.join(options)}" if options else ""
            raise refusal(f"{what} does not work on values of a graph; eddy.ops has ONNX's own")
        return made(*inputs)

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        from ._functions import MORE_FUNCTIONS
        from ._numpy import FUNCTIONS

        made = FUNCTIONS.get(function) or MORE_FUNCTIONS.get(function)
        if made is None:
            raise refusal(
                f"np.{function.__name__} does not work on values of a graph; eddy.ops has ONNX's own"
            )
        try:
            return made(*given, **options)
        except TypeError as error:
            # An option that numpy has, and this has not.
            if "unexpected keyword argument" not in str(error):
                raise
            raise refusal(f"np.{function.__name__} on values of a graph: {error}") from None


# -- dtypes --


def is_weak(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def mixed(values: Sequence[Any]) -> np.dtype:
    """The dtype that values have together: Python's numbers have their kind only."""
    known = [v.dtype if isinstance(v, Tensor) else np.asarray(v).dtype
             for v in values if not is_weak(v)]  # fmt: skip
    made = np.result_type(*known) if known else np.dtype(np.bool_)
    for value in values:
        if not is_weak(value) or isinstance(value, bool):
            continue
        if isinstance(value, float) and made.kind not in "fc":
            made = np.dtype(np.float64)
        elif made.kind == "b":
            made = np.dtype(np.int64)
    return made


def tracer_of(values: Sequence[Any]) -> Tracer:
    return next(v.tracer for v in values if isinstance(v, Tensor))


def alike(values: Sequence[Any], to_float: bool = False) -> List[Tensor]:
    """The values with the dtype that they have together."""
    tracer = tracer_of(values)
    dtype = mixed(values)
    if to_float and dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    made = []
    for value in values:
        made.append(tracer.lift(value, dtype if is_weak(value) else None).astype(dtype))
    return made


def as_float(value: Tensor) -> Tensor:
    return value.astype(np.float64) if value.dtype.kind in "biu" else value


def as_sum(value: Tensor) -> Tensor:
    """With elements of at least 64 bits, where they are integers, as numpy adds them up."""
    return value.astype({"b": np.int64, "i": np.int64, "u": np.uint64}.get(
        value.dtype.kind, value.dtype))  # fmt: skip


# -- operators --


def binary(op: str, a: Any, b: Any, to_float: bool = False) -> Tensor:
    values = alike([a, b], to_float)
    return values[0].tracer.node(op, values)[0]


def logical(op: str, a: Any, b: Any) -> Tensor:
    values = alike([a, b])
    name = op if values[0].dtype == np.bool_ else "Bitwise" + op
    return values[0].tracer.node(name, values)[0]


def remainder(a: Any, b: Any) -> Tensor:
    x, y = alike([a, b])
    if x.dtype.kind != "f":
        return x.tracer.node("Mod", [x, y])[0]
    return _divmod(x, y)[1]


def floor_divide(a: Any, b: Any) -> Tensor:
    x, y = alike([a, b])
    if x.dtype.kind == "f":
        return _divmod(x, y)[0]
    return x.tracer.node("Div", [x - remainder(x, y), y])[0]


def _divmod(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
    """Of floats, step by step as numpy: the rest is exact, and the quotient follows from it."""
    rest = x.tracer.node("Mod", [x, y], {"fmod": 1})[0]
    is_other_side = (rest != 0) & ((y < 0) != (rest < 0))
    quotient = (x - rest) / y - is_other_side.astype(x.dtype)
    floor = x.tracer.node("Floor", [quotient])[0]
    floor = floor + (quotient - floor > 0.5).astype(x.dtype)
    where = x.tracer.node("Where", [y == 0, x / y, floor])[0]
    return where, x.tracer.node("Where", [is_other_side, rest + y, rest])[0]


def _axes(axis: Axes) -> List[np.ndarray]:
    if axis is None:
        return []
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    return [np.asarray(axes, np.int64)]


def reduce(op: str, value: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    none = {"noop_with_empty_axes": 1} if _axes(axis) and not np.size(axis) else {}
    return value._node(op, [value] + _axes(axis), keepdims=int(keepdims), **none)


def vector(tracer: Tracer, parts: Sequence[Any]) -> Any:
    """An int64 vector of numbers and scalars of the graph."""
    if not any(isinstance(each, Tensor) for each in parts):
        return np.asarray([int(each) for each in parts], np.int64)
    made = []
    for each in parts:
        value = tracer.lift(each if isinstance(each, Tensor) else np.int64(each))
        made.append(value.astype(np.int64).reshape(1))
    return tracer.node("Concat", made, {"axis": 0})[0]
