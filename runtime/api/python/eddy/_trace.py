"""Tracing: a Python function, called once with values of a graph, becomes that graph."""

import contextlib
import contextvars
import inspect
import itertools
import linecache
import os
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence
from typing import Tuple

import numpy as np

from . import _core
from ._errors import Code, Error
from ._operators import make_library
from ._session import InferenceSession, PlanText, Stream, _texts
from ._types import TensorType, element_of

Place = Tuple[str, int, int, str]

# Frames that are not the user's: ours, numpy's, and those that numpy makes up.
_OURS = (os.path.dirname(os.path.abspath(__file__)), os.path.dirname(np.__file__), "<__array")
_current: "contextvars.ContextVar[Optional[Tracer]]" = contextvars.ContextVar(
    "eddy_tracer", default=None
)

_location: "contextvars.ContextVar[Optional[Place]]" = contextvars.ContextVar(
    "eddy_location", default=None
)


def current_or_none() -> "Optional[Tracer]":
    return _current.get()


def current(what: str) -> "Tracer":
    tracer = _current.get()
    if tracer is None:
        raise refusal(f"{what} stands inside of a function with @eddy.function")
    return tracer


@contextlib.contextmanager
def location(file: str, line: int, column: int = 0, text: str = "") -> Iterator[None]:
    """Where a program that is compiled by a Python program stands: what is traced inside has this
    place, in errors of tracing, of planning and of runs.

        with eddy.location("prog.calc", 12, 5, "while err > tol"):
            x = eddy.while_loop(test, body, x)
    """
    token = _location.set((os.fspath(file), line, column, text))
    try:
        yield
    finally:
        _location.reset(token)


def here() -> Place:
    """The place in the user's program that is being executed, or what location() says it is."""
    given = _location.get()
    if given is not None:
        return given
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    code = frame.f_code
    column = 0
    if hasattr(code, "co_positions") and frame.f_lasti >= 0:
        position = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), None)
        if position is not None and position[0] == frame.f_lineno and position[2] is not None:
            column = position[2] + 1
    text = linecache.getline(code.co_filename, frame.f_lineno).strip()
    return code.co_filename, frame.f_lineno, column, text


def refusal(reason: str, at: Optional[Place] = None) -> Error:
    """An error that names the user's line."""
    at = at or here()
    column = f":{at[2]}" if at[2] else ""
    message = f"{at[0]}:{at[1]}{column}: {reason}"
    return Error(Code.INVALID_ARGUMENT, message, reason, (), at)


# -- structures of values: tuples, lists and dicts, nested --

NONE = object()


def flatten(tree: Any) -> Tuple[List[Any], Any]:
    """The leaves, and what they hung on."""
    if isinstance(tree, (tuple, list)):
        parts = [flatten(each) for each in tree]
        leaves = [leaf for part, _ in parts for leaf in part]
        return leaves, (type(tree), [form for _, form in parts])
    if isinstance(tree, dict):
        parts = [flatten(tree[key]) for key in tree]
        leaves = [leaf for part, _ in parts for leaf in part]
        return leaves, (dict, list(tree), [form for _, form in parts])
    if tree is None:
        return [], NONE
    return [tree], None


def unflatten(form: Any, leaves: Iterable[Any]) -> Any:
    leaves = iter(leaves)

    def build(part: Any) -> Any:
        if part is None:
            return next(leaves)
        if part is NONE:
            return None
        if part[0] is dict:
            return {key: build(each) for key, each in zip(part[1], part[2])}
        made = [build(each) for each in part[1]]
        if hasattr(part[0], "_fields"):
            return part[0](*made)
        return part[0](made)

    return build(form)


class Again(Exception):
    """Loop `number` has so many rows: it has to be said when the loop begins, so the function is
    traced again."""

    def __init__(self, number: int, count: int) -> None:
        super().__init__(number, count)
        self.number = number
        self.count = count


class Tracer:
    """A graph under construction, and the names of its dimensions."""

    def __init__(
        self,
        name: str,
        operators: Iterable,
        threads: Optional[str],
        num_rows: Optional[Dict[int, int]] = None,
    ) -> None:
        self.name = name
        self.operators = tuple(operators)
        self.graph = _core.Graph(make_library(self.operators, threads), name)
        self.dims: Dict[int, str] = {}
        self.num_rows = num_rows or {}  # of loops, by their order
        self._num_loops = 0
        self._numbers: Dict[str, int] = {}

    def input(self, name: str, type: TensorType) -> "Tensor":
        dims = None
        if type.shape is not None:
            dims = [-1 if d is None else self._number(d) if isinstance(d, str) else int(d)
                    for d in type.shape]  # fmt: skip
        return self.value(self.graph.input(name, element_of(type.dtype), dims))

    def begin_loop(self) -> int:
        self._num_loops += 1
        return self._num_loops - 1

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = self.graph.symbol(name)
            self.dims[self._numbers[name]] = name
        return self._numbers[name]

    def value(self, id: int) -> "Tensor":
        from ._tensor import Tensor

        return Tensor(self, id)

    def _check_is_current(self) -> None:
        if current_or_none() is not self:
            raise refusal("this value belongs to a trace that is not the one being made")

    def constant(self, array: Any) -> "Tensor":
        self._check_is_current()
        array = np.asarray(array)
        if array.dtype == object or array.dtype.kind in "US":
            raise refusal(f"a constant of dtype {array.dtype}: graphs hold numbers and bools")
        return self.value(self.graph.constant(array))

    def node(
        self,
        op: str,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any] = {},
        *,
        domain: str = "",
        opset: int = 0,
        outputs: int = 1,
        name: str = "",
    ) -> "List[Tensor]":
        self._check_is_current()
        ids = [0 if each is None else self.lift(each).id for each in inputs]
        made = self.graph.node(
            op, domain, opset, ids, outputs, dict(attributes), name, here()
        )
        return [self.value(each) for each in made]

    def lift(self, value: Any, dtype: Any = None) -> "Tensor":
        """A value of this graph: the same, or a constant."""
        from ._tensor import Tensor

        if isinstance(value, Tensor):
            if value.tracer is not self:
                raise refusal("this value belongs to the trace of another function")
            return value
        if isinstance(value, _core.Value):
            value = value.numpy()
        if type(value) is int and dtype is not None and np.dtype(dtype).kind in "iu":
            limits = np.iinfo(dtype)
            if not limits.min <= value <= limits.max:
                raise refusal(
                    f"{value} does not fit {np.dtype(dtype)}, which holds {limits.min} to "
                    f"{limits.max}; use astype() on what it meets"
                )
        try:
            return self.constant(np.asarray(value, dtype))
        except (TypeError, ValueError) as error:
            raise refusal(f"{type(value).__name__} is no value of a graph: {error}") from None


class Traced:
    """A function for arguments of certain types: a graph and, once it is run, a session."""

    def __init__(
        self, tracer: Tracer, names: List[str], form: Any, options: Mapping[str, Any]
    ) -> None:
        self.graph = tracer.graph
        self.input_names = names
        self._form = form
        self._options = options
        self._session: Optional[InferenceSession] = None

    @property
    def session(self) -> InferenceSession:
        """Made when it is first asked for, and anew where it has been closed."""
        if self._session is None or self._session.is_closed:
            self._session = InferenceSession(self.graph, self._options)
        return self._session

    def run(self, leaves: Sequence[Any]) -> Any:
        made = self.session.run(None, dict(zip(self.input_names, leaves)))
        return unflatten(self._form, made)

    async def run_async(self, leaves: Sequence[Any]) -> Any:
        made = await self.session.run_async(None, dict(zip(self.input_names, leaves)))
        return unflatten(self._form, made)

    def plan(self) -> PlanText:
        """The plan as text."""
        return self.session.plan()

    def save(self, path: Any) -> None:
        """Writes the graph as ONNX."""
        self.graph.save(os.fspath(path))

    def __str__(self) -> str:
        return self.graph.print()


class Function:
    """A Python function that is traced once for each combination of dtypes and shapes."""

    def __init__(
        self,
        function: Callable,
        options: Optional[Mapping[str, Any]],
        operators: Iterable,
        name: Optional[str],
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        self.__name__ = self.name
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._options = _texts(options)
        self._threads = self._options.pop("threads", None)
        self._operators = list(operators)
        self._traced: Dict[Any, Traced] = {}

    def __call__(self, *arguments: Any, **static: Any) -> Any:
        """Runs with arrays. Inside of another trace the function becomes part of that.

        Keyword arguments are Python's own: the trace is made for their values.
        """
        if current_or_none() is not None:
            return self.function(*arguments, **static)
        leaves, traced = self._find(arguments, static)
        return traced.run(leaves)

    async def run_async(self, *arguments: Any, **static: Any) -> Any:
        """As a call, awaited."""
        leaves, traced = self._find(arguments, static)
        return await traced.run_async(leaves)

    def stream(self, *arguments: Any, output: int = 0, max_waiting: int = 16) -> Stream:
        """Runs, and gives the rows of an output (its number, in order) while its loop runs."""
        leaves, traced = self._find(arguments, {})
        session = traced.session
        name = session.get_outputs()[output].name
        feeds = dict(zip(traced.input_names, leaves))
        return session.stream(name, feeds, max_waiting=max_waiting)

    def trace(self, *types: Any, **static: Any) -> Traced:
        """The graph for arguments of these types: TensorTypes, or arrays that have them."""
        leaves, form = flatten_types(types)
        key = (repr(form), tuple(leaves), self._key(static))
        if key not in self._traced:
            self._traced[key] = self._trace_until_known(form, leaves, static)
        return self._traced[key]

    def _key(self, static: Mapping[str, Any]) -> Any:
        """1, 1.0 and True are equal, but not the same; nor are they in tuples."""

        def typed(value: Any) -> Any:
            parts = tuple(typed(each) for each in value) if isinstance(value, tuple) else None
            return type(value), value, parts

        for name, value in static.items():
            try:
                hash(value)
            except TypeError:
                raise TypeError(
                    f"keyword argument '{name}' of '{self.name}' is Python's own, so it must have "
                    f"a hash, which a {type(value).__name__} has not; values of the graph are "
                    "positional arguments"
                ) from None
        return tuple((name, typed(static[name])) for name in sorted(static))

    def _find(self, arguments: Tuple, static: Mapping[str, Any]) -> Tuple[List[Any], Traced]:
        leaves, _ = flatten(arguments)
        arrays = [each if hasattr(each, "dtype") else np.asarray(each) for each in leaves]
        types = [TensorType(np.dtype(each.dtype), tuple(each.shape)) for each in arrays]
        _, form = flatten(arguments)
        return arrays, self.trace(*unflatten(form, types), **static)

    def _names(self, form: Any, count: int) -> List[str]:
        """Of the inputs: those of the parameters, with numbers behind those that hold several."""
        parameters = [
            each.name
            for each in inspect.signature(self.function).parameters.values()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        names: List[str] = []
        for i, part in enumerate(form[1]):
            name = parameters[i] if i < len(parameters) else f"argument{i}"
            size = _count(part)
            names += [name] if part is None else [f"{name}.{k}" for k in range(size)]
        assert len(names) == count
        return names

    def _trace_until_known(
        self, form: Any, types: List[TensorType], static: Mapping[str, Any]
    ) -> Traced:
        num_rows: Dict[int, int] = {}
        while True:
            try:
                return self._trace(form, types, static, num_rows)
            except Again as again:
                num_rows[again.number] = again.count

    def _trace(
        self,
        form: Any,
        types: List[TensorType],
        static: Mapping[str, Any],
        num_rows: Dict[int, int],
    ) -> Traced:
        tracer = Tracer(self.name, self._operators, self._threads, num_rows)
        names = self._names(form, len(types))
        inputs = [tracer.input(name, type) for name, type in zip(names, types)]
        token = _current.set(tracer)
        try:
            made = self.function(*unflatten(form, inputs), **static)
            leaves, out_form = flatten(made)
            outputs = [tracer.lift(leaf) for leaf in leaves]
            if not outputs:
                code = self.function.__code__
                at = (code.co_filename, code.co_firstlineno, 0, "")
                raise refusal(f"function '{self.name}' returns no value of the graph", at)
            seen = {each.id for each in inputs}
            for i, value in enumerate(outputs):
                if value.id in seen:  # an output is a value of its own
                    value = tracer.node("Identity", [value])[0]
                seen.add(value.id)
                tracer.graph.output(f"output{i}", value.id)
        finally:
            _current.reset(token)
        tracer.graph.finish()
        return Traced(tracer, names, out_form, self._options)


def _count(form: Any) -> int:
    if form is None:
        return 1
    if form is NONE:
        return 0
    return sum(_count(each) for each in form[-1])


def flatten_types(types: Tuple) -> Tuple[List[TensorType], Any]:
    """As flatten(), with TensorTypes as leaves; arrays stand for their types."""

    def convert(tree: Any) -> Any:
        if isinstance(tree, TensorType):
            return _Leaf(TensorType(np.dtype(tree.dtype), tree.shape))
        if isinstance(tree, (tuple, list)):
            made = [convert(each) for each in tree]
            return tree.__class__(*made) if hasattr(tree, "_fields") else tree.__class__(made)
        if isinstance(tree, dict):
            return {key: convert(each) for key, each in tree.items()}
        if tree is None:
            return None
        array = tree if hasattr(tree, "dtype") else np.asarray(tree)
        return _Leaf(TensorType(np.dtype(array.dtype), tuple(array.shape)))

    leaves, form = flatten(convert(types))
    return [leaf.type for leaf in leaves], form


class _Leaf:
    """A TensorType, which is a tuple, where tuples are taken apart."""

    def __init__(self, type: TensorType) -> None:
        self.type = type


def function(
    function: Optional[Callable] = None,
    *,
    options: Optional[Mapping[str, Any]] = None,
    operators: Iterable = (),
    name: Optional[str] = None,
) -> Any:
    """Makes a graph of a Python function: it is called once with values of the graph, for each
    combination of dtypes and shapes, and then runs without Python.

        @eddy.function
        def root(a, tolerance):
            return eddy.while_loop(lambda x: abs(x * x - a) > tolerance,
                                   lambda x: (x + a / x) / 2, a)

    Numbers decide in the graph by while_loop, cond, case and scan; `if` and `while` of Python
    decide while it is traced. Errors name the line of the function, also those of runs.
    options: as those of InferenceSession; operators: Operators and HostFunctions that it uses.
    """

    def make(of: Callable) -> Function:
        return Function(of, options, operators, name)

    return make if function is None else make(function)
