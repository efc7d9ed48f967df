"""Operators and host functions written in Python."""

import inspect
from typing import Any, Callable, Dict, Iterable, List, Optional, Union

from . import _core
from ._errors import Code, Error
from ._types import TensorType, from_core, to_core

_KINDS = {int: 0, float: 1, str: 2}


def _places(function: Callable, what: str) -> List[inspect.Parameter]:
    """The parameters of a function, which must be known one by one."""
    parameters = list(inspect.signature(function).parameters.values())
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise TypeError(f"{what} '{function.__name__}' takes *{each.name}; name each input")
    return parameters


class Operator:
    """An operator whose kernel is a Python function; see operator()."""

    def __init__(
        self,
        function: Callable,
        domain: str,
        name: Optional[str],
        outputs: int,
        shapes: Optional[Callable],
    ) -> None:
        if not domain or domain == "ai.onnx":
            raise ValueError("an operator needs a domain of your own, not ONNX's")
        self.function = function
        self.domain = domain
        self.name = name or function.__name__
        self.num_outputs = outputs
        self.shapes = shapes
        self.__name__ = self.name
        self.__doc__ = function.__doc__
        parameters = _places(function, "operator")
        self.num_inputs = sum(1 for each in parameters if each.kind != each.KEYWORD_ONLY)
        self.attributes: Dict[str, type] = {}
        for each in parameters:
            if each.kind != each.KEYWORD_ONLY:
                continue
            if each.annotation not in _KINDS:
                raise TypeError(
                    f"attribute '{each.name}' of operator '{self.name}' must be annotated as "
                    "int, float or str"
                )
            self.attributes[each.name] = each.annotation

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        """Inside of a trace: adds a node. Outside: calls the function."""
        from ._trace import current_or_none

        if current_or_none() is None:
            return self.function(*inputs, **attributes)
        from .ops import op

        return op(self.name, *inputs, domain=self.domain, outputs=self.num_outputs, **attributes)

    def _infer(self, inputs: List, **attributes: Any) -> List:
        if self.shapes is None:
            return [inputs[0]] * self.num_outputs
        types = [None if each is None else from_core(*each) for each in inputs]
        made = self.shapes(*types, **attributes)
        if isinstance(made, TensorType):
            made = [made]
        return [to_core(each) for each in made]

    def add_to(self, library: "_core.Library") -> None:
        if self.num_inputs == 0:
            raise ValueError(f"operator '{self.name}' has no inputs")
        library.add_operator(
            self.domain,
            self.name,
            self.num_inputs,
            self.num_outputs,
            {name: _KINDS[kind] for name, kind in self.attributes.items()},
            self.function,
            self._infer,
        )


class HostFunction:
    """A predicate that is a Python function; see host_function()."""

    def __init__(self, function: Callable, name: Optional[str]) -> None:
        self.function = function
        self.name = name or function.__name__
        self.__name__ = self.name
        self.__doc__ = function.__doc__
        _places(function, "host function")

    def __call__(self, *inputs: Any) -> Any:
        """Inside of a trace: adds a node. Outside: calls the function."""
        from ._trace import current_or_none

        if current_or_none() is None:
            return self.function(*inputs)
        from .ops import op

        return op("HostPredicate", *inputs, domain="eddy", attributes={"name": self.name})

    def add_to(self, library: "_core.Library") -> None:
        library.add_host_function(self.name, self.function)


def operator(
    function: Optional[Callable] = None,
    *,
    domain: str = "python",
    name: Optional[str] = None,
    outputs: int = 1,
    shapes: Optional[Callable] = None,
) -> Any:
    """Makes an operator of a function of arrays.

        @eddy.operator(shapes=lambda x: x)
        def clip(x, *, limit: float):
            return np.minimum(x, limit)

    Positional parameters are inputs (copies, which the function may keep), keyword-only ones
    attributes, annotated int, float or str. The function gives an array, or a tuple of `outputs`.
    `shapes(*types, **attributes)` gives the TensorTypes of the outputs; without, each is that of
    the first input. Give it to a session or function that uses it: `operators=[clip]`.
    What the function raises is the error of its node.
    """

    def make(of: Callable) -> Operator:
        return Operator(of, domain, name, outputs, shapes)

    return make if function is None else make(function)


def host_function(function: Optional[Callable] = None, *, name: Optional[str] = None) -> Any:
    """Makes a host function (operator HostPredicate of domain eddy) of a function of arrays.

    It gives a bool: a loop's test, or cond's. (The number of a case's branch: an operator() whose
    shapes give TensorType(np.int64, ()).) As operator() otherwise.
    """

    def make(of: Callable) -> HostFunction:
        return HostFunction(of, name)

    return make if function is None else make(function)


def make_library(
    operators: Iterable[Union[Operator, HostFunction]], threads: Optional[int] = None
) -> "_core.Library":
    library = _core.Library({} if threads is None else {"threads": threads})
    for each in operators:
        if not isinstance(each, (Operator, HostFunction)):
            raise Error(
                Code.INVALID_ARGUMENT,
                f"operators holds {each!r}; decorate it with eddy.operator or eddy.host_function",
            )
        each.add_to(library)
    return library
