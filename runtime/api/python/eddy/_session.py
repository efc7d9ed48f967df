"""Sessions: models and traced functions made ready to run."""

import asyncio
import atexit
import os
import weakref
from typing import Any, AsyncIterator, Dict, Iterable, Iterator, List, Mapping, NamedTuple
from typing import Optional, Sequence, Union

import numpy as np

from . import _core
from ._errors import Code, Error
from ._models import graph_of, read
from ._operators import make_library
from ._statistics import OperatorTime, Statistics
from ._timeline import Trace

# How long a wait in the main thread takes before it looks for signals, in seconds.
_PATIENCE = 0.05

_TYPE_NAMES = (
    "undefined float uint8 int8 uint16 int16 int32 int64 string bool float16 double uint32 uint64 "
    "complex64 complex128 bfloat16 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz uint4 "
    "int4 float4e2m1 float8e8m0 uint2 int2"
).split()


class NodeArg(NamedTuple):
    """An input or output of a session: its name, its type as ONNX Runtime writes it
    ("tensor(float)"), its shape with None where a size is not known."""

    name: str
    type: str
    shape: Optional[List[Optional[int]]]


class PlanText(str):
    """A plan as text, which a notebook shows as a picture."""

    _core: Optional["_core.Session"] = None

    @property
    def svg(self) -> str:
        """The plan as a picture, while its session is open."""
        if self._core is None:
            raise Error(Code.INVALID_STATE, "this text is of no session; ask one for its plan()")
        return self._core.plan_svg()

    def _repr_svg_(self) -> Optional[str]:
        return None if self._core is None or self._core.is_closed else self.svg

    def __repr__(self) -> str:
        return str(self)


class SessionOptions:
    """What users of ONNX Runtime write, as options of a session."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.options: Dict[str, Any] = {}

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self.options["dim." + name] = size

    def add_session_config_entry(self, key: str, value: str) -> None:
        self.options[key] = value


def _texts(options: Union[None, Mapping[str, Any], SessionOptions]) -> Dict[str, str]:
    if isinstance(options, SessionOptions):
        made = dict(options.options)
        if options.intra_op_num_threads:
            made["threads"] = options.intra_op_num_threads
        return _texts(made)
    if options is not None and not isinstance(options, Mapping):
        raise TypeError("options are a dict of option names and values, or SessionOptions")
    texts = {}
    for key, value in (options or {}).items():
        texts[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def _check_providers(providers: Optional[Sequence]) -> None:
    names = [each if isinstance(each, str) else each[0] for each in providers or ()]
    if names and "CPUExecutionProvider" not in names:
        raise Error(
            Code.UNSUPPORTED,
            f"providers {names}: this module runs on the CPU; add 'CPUExecutionProvider'",
        )


_sessions: "weakref.WeakSet[InferenceSession]" = weakref.WeakSet()


# A run that calls Python must not outlive the interpreter.
@atexit.register
def _close_all() -> None:
    sessions = list(_sessions)
    for session in sessions:
        session._idle.clear()
    _core.close_all([session._core for session in sessions])


_shared: "Dict[int, weakref.ref]" = {}  # by process: the library of sessions without their own


def _library_of(operators: tuple, threads: Optional[int]) -> "_core.Library":
    if operators or threads is not None:
        return make_library(operators, threads)
    found = _shared.get(os.getpid())
    library = None if found is None else found()
    if library is None:
        library = make_library(())
        _shared[os.getpid()] = weakref.ref(library)
    return library


class InferenceSession:
    """A model made ready to run, by any thread, as often as one likes.

    path_or_bytes: an ONNX file or a plan that save_plan() has written, the bytes of either, or what
      eddy.function().trace() gives, with the options of its function, or its graph.
    options: a dict or SessionOptions: threads, memory_limit ("300mb"), max_runs_in_flight,
      max_runs_waiting, max_streams, loops, assignment, share_program, simplify, fold_norms, exact,
      check_memory, time_operators, "dim.NAME", "shape.NAME" ("1x3x224x224"). An unknown one is
      refused with the nearest name. Sessions without `threads` and `operators` share their
      threads, and sessions of one model and equal options their weights.
    providers: for programs written for ONNX Runtime; must hold "CPUExecutionProvider", if any.
    operators: what eddy.operator and eddy.host_function have made, where the model uses it.
    """

    def __init__(
        self,
        path_or_bytes: Any,
        options: Union[None, Mapping[str, Any], SessionOptions] = None,
        providers: Optional[Sequence] = None,
        provider_options: Optional[Sequence] = None,
        *,
        sess_options: Optional[SessionOptions] = None,
        operators: Iterable = (),
    ) -> None:
        _check_providers(providers)
        texts = _texts(sess_options if options is None else options)
        graph, texts = graph_of(path_or_bytes, texts)
        if graph is not None:
            self._core = graph.session(texts)
        else:
            operators = tuple(operators)
            library = self._library = _library_of(operators, texts.pop("threads", None))
            self._core = read(_core.Session, library, path_or_bytes, operators, texts)
        self._idle: List[_core.Run] = []
        _sessions.add(self)

    # -- what it is --

    def get_inputs(self) -> List[NodeArg]:
        """The inputs, in order."""
        return [_describe(*each) for each in self._core.inputs]

    def get_outputs(self) -> List[NodeArg]:
        """The outputs, in order."""
        return [_describe(*each) for each in self._core.outputs]

    def get_providers(self) -> List[str]:
        return ["CPUExecutionProvider"]

    def plan(self) -> PlanText:
        """The plan as text: streams, ranks, events, loops; a notebook draws it."""
        made = PlanText(self._core.plan_text())
        made._core = self._core
        return made

    def trace(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Mapping[str, Any],
        *,
        timeout: float = 0.0,
        priority: int = 0,
    ) -> Trace:
        """As run(), but gives what ran when, which a notebook draws; .outputs has the outputs."""
        places = self._places(output_names)
        run = _core.Run(self._core)
        self._feed(run, input_feed)
        run.start_trace()
        run.execute(timeout, priority)
        outputs = [run.output(place).copy() for place in places]
        return Trace(run.stop_trace(), outputs)

    def can_stream(self, output_name: str) -> bool:
        """Whether stream() takes the output: a loop of the model stacks its rows."""
        return self._core.can_stream(self._core.find_output(output_name))

    def metrics(self, name: str = "session") -> str:
        """What statistics() has, as Prometheus reads it, with label session="NAME"."""
        return self._core.metrics_text(name)

    def statistics(self) -> Statistics:
        """Runs, iterations, memory, and with option time_operators each operator's time."""
        operators = self._core.operator_metrics()
        times = {name: OperatorTime(*each) for name, each in operators.items()}
        return Statistics(**self._core.metrics(), operators=times)

    # -- runs --

    def run(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Mapping[str, Any],
        run_options: Any = None,
        *,
        timeout: float = 0.0,
        priority: int = 0,
    ) -> List[Any]:
        """Runs, and gives the named outputs (None: all) as arrays of the caller's own.

        Inputs: arrays (read where they are), numbers and lists (as the input's dtype), Values,
        whatever has __dlpack__, lists of arrays for sequences, None for what is optional.
        timeout: seconds, 0 without; priority: -1, 0, 1. Ctrl-C cancels the run.
        """
        return self._core.run(output_names, _dict(input_feed), timeout, priority)

    def run_values(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Mapping[str, Any],
        *,
        timeout: float = 0.0,
        priority: int = 0,
    ) -> List["_core.Value"]:
        """As run(), but gives Values, which show Eddy's memory without a copy."""
        return self._core.run(output_names, _dict(input_feed), timeout, priority, True)

    async def run_async(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Mapping[str, Any],
        *,
        timeout: float = 0.0,
        priority: int = 0,
    ) -> List[Any]:
        """As run(), awaited: asyncio's loop goes on meanwhile. Cancelling the task cancels the run.

        The arrays of the inputs must not be written until the run has ended.
        """
        places = self._places(output_names)
        run = self._idle.pop() if self._idle else _core.Run(self._core)
        self._feed(run, input_feed)
        await _submit(run, timeout, priority, self._give_back)
        made = [run.output(place).copy() for place in places]
        self._give_back(run)
        return made

    def stream(
        self,
        output_name: str,
        input_feed: Mapping[str, Any],
        *,
        max_waiting: int = 16,
        timeout: float = 0.0,
        priority: int = 0,
    ) -> "Stream":
        """Starts a run whose output `output_name` stacks rows of a loop, and gives those while the
        loop runs: `for row in …` or `async for row in …`. The loop waits while `max_waiting` rows
        wait."""
        place = self._core.find_output(output_name)
        run = _core.Run(self._core)
        self._feed(run, input_feed)
        rows = _core.Rows(max_waiting)
        run.stream(place, rows)
        run.submit(timeout, priority)
        return Stream(self, run, rows)

    def bind(
        self, inputs: Mapping[str, Any] = {}, outputs: Mapping[str, np.ndarray] = {}
    ) -> "BoundRun":
        """A run that reads and writes the same memory again and again.

        An output may be an input's array, which then has the output when the run has ended. Two
        outputs in the same memory are refused when it runs.
        """
        run = _core.Run(self._core)
        for name, given in inputs.items():
            _check_bound(name, given)
            run.bind_input(self._core.find_input(name), given)
        for name, array in outputs.items():
            if not isinstance(array, np.ndarray):
                raise TypeError(f"output '{name}' is bound to {type(array).__name__}, not an array")
            run.bind_output(self._core.find_output(name), array)
        return BoundRun(self, run)

    def cancel_all(self) -> None:
        """Cancels the runs that are under way."""
        self._core.cancel_all()

    def trim(self) -> None:
        """Gives back memory that is kept for later runs."""
        self._core.trim()

    @property
    def is_closed(self) -> bool:
        return self._core.is_closed

    def close(self) -> None:
        """Cancels what runs, waits for it, and refuses new runs."""
        self._idle.clear()
        self._core.close()

    def __enter__(self) -> "InferenceSession":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _give_back(self, run: "_core.Run") -> None:
        run.forget_inputs()
        self._idle.append(run)

    def _places(self, names: Optional[Sequence[str]]) -> List[int]:
        if names is None:
            return list(range(len(self._core.outputs)))
        if isinstance(names, str):
            raise TypeError("output_names is a list of names, or None for all")
        return [self._core.find_output(name) for name in names]

    def _feed(self, run: "_core.Run", feeds: Mapping[str, Any]) -> None:
        for name, given in feeds.items():
            run.bind_input(self._core.find_input(name), given)
        for name, *_ in self._core.inputs:
            if name not in feeds:
                raise Error(Code.INVALID_ARGUMENT, f"input '{name}' is not given")


def _check_bound(name: str, given: Any) -> None:
    """An array that would have to be copied would show nothing of what is written to it later."""
    if not isinstance(given, np.ndarray):
        return
    flags = given.flags
    if not (flags.c_contiguous and flags.aligned and given.dtype.isnative):
        raise Error(
            Code.INVALID_ARGUMENT,
            f"input '{name}' is bound to an array that could only be copied (strided, unaligned or"
            " of foreign bytes); bind numpy.ascontiguousarray() of it",
        )


def _dict(feeds: Mapping[str, Any]) -> Dict[str, Any]:
    return feeds if isinstance(feeds, dict) else dict(feeds)


def _describe(name: str, element: int, wrappers: Sequence[int], dims: Any) -> NodeArg:
    text = f"tensor({_TYPE_NAMES[element]})"
    for wrapper in reversed(wrappers):
        text = {0: "{}", 1: "seq({})", 2: "optional({})"}[wrapper].format(text)
    return NodeArg(name, text, None if dims is None else [d if d >= 0 else None for d in dims])


async def _submit(run: "_core.Run", timeout: float, priority: int, give_back: Any) -> None:
    """Submits, and awaits the end. Where the task is cancelled, the run is, and is given back when
    it has ended."""
    loop = asyncio.get_running_loop()
    ended: "asyncio.Future[None]" = loop.create_future()
    file = run.fd()

    def on_end() -> None:
        loop.remove_reader(file)
        try:
            run.poll()
        except Error as error:
            if not ended.done():
                ended.set_exception(error)
        if not ended.done():
            ended.set_result(None)
        elif ended.cancelled():
            give_back(run)

    run.submit(timeout, priority)
    loop.add_reader(file, on_end)
    try:
        await ended
    except asyncio.CancelledError:
        run.cancel()
        raise
    except Error:
        give_back(run)
        raise


class BoundRun:
    """A run with inputs and outputs that stay bound; of one thread at a time."""

    def __init__(self, session: InferenceSession, run: "_core.Run") -> None:
        self._session = session
        self._run = run

    def bind_input(self, name: str, given: Any) -> None:
        """Binds anew. An array is read where it is, by every run."""
        _check_bound(name, given)
        self._run.bind_input(self._session._core.find_input(name), given)

    def bind_output(self, name: str, array: np.ndarray) -> None:
        """The output is made in the array; exactly its shape."""
        self._run.bind_output(self._session._core.find_output(name), array)

    def run(self, *, timeout: float = 0.0, priority: int = 0) -> None:
        """Runs; what is bound has the outputs then. Ctrl-C cancels."""
        self._run.execute(timeout, priority)

    async def run_async(self, *, timeout: float = 0.0, priority: int = 0) -> None:
        """As run(), awaited."""
        await _submit(self._run, timeout, priority, lambda run: None)

    def output(self, name: str) -> Any:
        """The bound array, or the last run's Value."""
        return self._run.output(self._session._core.find_output(name))


class Stream:
    """Rows of a loop while it runs: an iterator, also for asyncio.

    When the last row is taken, the run has ended; if it has failed, that is raised then.
    """

    def __init__(
        self, session: InferenceSession, run: "_core.Run", rows: "_core.Rows"
    ) -> None:
        self._session = session
        self._run = run
        self._rows = rows

    def __iter__(self) -> Iterator[np.ndarray]:
        return self

    def __next__(self) -> np.ndarray:
        while True:
            state, row = self._rows.next(_PATIENCE)
            if state == 0:
                return row.copy()
            if state == 2:
                self._wait()
                raise StopIteration

    def __aiter__(self) -> AsyncIterator[np.ndarray]:
        return self

    async def __anext__(self) -> np.ndarray:
        while True:
            state, row = self._rows.next(0.0)
            if state == 0:
                return row.copy()
            if state == 2:
                self._wait()
                raise StopAsyncIteration
            await _readable(self._rows.fd())

    def result(self, output_names: Optional[Sequence[str]] = None) -> List[Any]:
        """Waits for the end, without the rows that are not taken yet, and gives the outputs."""
        self._rows.close()
        self._wait()
        return [self._run.output(place).copy() for place in self._session._places(output_names)]

    def close(self) -> None:
        """Cancels the run."""
        self._run.cancel()
        self._rows.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _wait(self) -> None:
        while not self._run.wait(_PATIENCE):
            pass


async def _readable(file: int) -> None:
    loop = asyncio.get_running_loop()
    ready: "asyncio.Future[None]" = loop.create_future()
    loop.add_reader(file, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(file)
