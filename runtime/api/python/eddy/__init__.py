"""Eddy: dataflow graphs with control flow, planned once and run many times.

    session = eddy.InferenceSession("model.onnx")       # as users of ONNX Runtime write it
    y, = session.run(["y"], {"x": x})

    @eddy.function                                       # a graph of a Python function
    def root(a, tolerance):
        return eddy.while_loop(lambda x: abs(x * x - a) > tolerance,
                               lambda x: (x + a / x) / 2, a)
    root(2.0, 1e-9)
"""

from . import _core, ops
from ._control import case, cond, scan, while_loop
from ._core import Value, from_dlpack, sequence, value
from ._errors import Code, Error, Location, Part
from ._operators import HostFunction, Operator, host_function, operator
from ._plans import is_plan, save_plan
from ._session import BoundRun, InferenceSession, NodeArg, PlanText, SessionOptions, Stream
from ._statistics import OperatorTime, Statistics
from ._tensor import Tensor
from ._timeline import Span, Trace
from ._trace import Function, Traced, function, location
from ._types import TensorType
from .ops import op

__version__: str = _core.__version__

__all__ = [
    "BoundRun",
    "Code",
    "Error",
    "Function",
    "HostFunction",
    "InferenceSession",
    "Location",
    "NodeArg",
    "Operator",
    "OperatorTime",
    "Part",
    "PlanText",
    "SessionOptions",
    "Span",
    "Statistics",
    "Stream",
    "Tensor",
    "TensorType",
    "Trace",
    "Traced",
    "Value",
    "case",
    "cond",
    "from_dlpack",
    "function",
    "host_function",
    "is_plan",
    "location",
    "op",
    "operator",
    "ops",
    "save_plan",
    "scan",
    "sequence",
    "value",
    "while_loop",
]

# Ctrl-C is handled in the main thread, which Python's is when it imports this there.
import threading as _threading

if _threading.current_thread() is _threading.main_thread():
    _core.set_main_thread()
