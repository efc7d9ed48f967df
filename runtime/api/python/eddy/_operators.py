"""Operators and host functions written in Python."""

import difflib
import inspect
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np

from . import _core
from ._errors import Code, Error
from ._types import TensorType, from_core, to_core

_KINDS = {int: 0, float: 1, str: 2}
_STRING = 8  # ONNX's number of their type


def _places(function: Callable, what: str) -> List[inspect.Parameter]:
    """The parameters of a function, which must be known one by one."""
    parameters = list(inspect.signature(function).parameters.values())
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise TypeError(f"{what} '{function.__name__}' takes *{each.name}; name each input")
    return parameters


class _Misuse(TypeError):
    """Wrong use of an operator: it becomes the error of its node as it is."""


def _is_known(type: Tuple[int, Optional[List[int]]]) -> bool:
    return type[1] is not None and all(size >= 0 for size in type[1])


def _check_given(uses: "Union[Operator, HostFunction]", tracer: Any) -> None:
    """Whether the function that is traced was given what it calls."""
    from ._trace import refusal

    if any(type(each) is type(uses) and each._key == uses._key for each in tracer.operators):
        return
    what = "operator" if isinstance(uses, Operator) else "host function"
    raise refusal(
        f"{what} '{uses.name}' is not given to the function '{tracer.name}' that is traced; write "
        f"@eddy.function(operators=[{uses.__name__}]) there"
    )


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
        self._key = domain, self.name
        self.num_outputs = outputs
        self.shapes = shapes
        self.__name__ = self.name
        self.__doc__ = function.__doc__
        parameters = _places(function, "operator")
        self._inputs = [each for each in parameters if each.kind != each.KEYWORD_ONLY]
        self.num_inputs = len(self._inputs)
        self.attributes: Dict[str, type] = {}
        self.defaults: Dict[str, Any] = {}
        for each in parameters:
            if each.kind == each.KEYWORD_ONLY:
                self._add_attribute(each)

    def _add_attribute(self, of: inspect.Parameter) -> None:
        if of.annotation not in _KINDS:
            raise TypeError(
                f"attribute '{of.name}' of operator '{self.name}' must be annotated as "
                "int, float or str"
            )
        self.attributes[of.name] = of.annotation
        if of.default is not of.empty:
            try:
                self.defaults[of.name] = self._checked(of.name, of.default)
            except _Misuse as error:
                raise TypeError(f"the default of {error}") from None

    def __call__(self, /, *inputs: Any, **attributes: Any) -> Any:
        """Inside of a trace: adds a node. Outside: calls the function."""
        from ._trace import current_or_none, refusal

        tracer = current_or_none()
        if tracer is None:
            return self.function(*inputs, **attributes)
        _check_given(self, tracer)
        try:
            inputs = self._node_inputs(inputs)
            attributes = self._node_attributes(attributes)
        except _Misuse as error:
            raise refusal(str(error)) from None
        count = self.num_outputs
        made = tracer.node(self.name, inputs, attributes, domain=self.domain, outputs=count)
        return made[0] if count == 1 else tuple(made)

    def _node_inputs(self, given: Tuple) -> Tuple:
        made = given + tuple(each.default for each in self._inputs[len(given) :])
        if len(made) > self.num_inputs or any(each is inspect.Parameter.empty for each in made):
            count = f"{self.num_inputs} input{'' if self.num_inputs == 1 else 's'}"
            raise _Misuse(f"operator '{self.name}' has {count}, but {len(given)} were given")
        return made

    def _node_attributes(self, given: Dict[str, Any]) -> Dict[str, Any]:
        """All of them, so that a file has what this signature says today."""
        for key in given:
            if key in self.attributes:
                continue
            near = difflib.get_close_matches(key, self.attributes, 1)
            more = f"; the nearest is '{near[0]}'" if near else ""
            if any(each.name == key for each in self._inputs):
                more = "; it is an input, given by its place"
            raise _Misuse(f"operator '{self.name}' has no attribute '{key}'{more}")
        made = {key: self._checked(key, value) for key, value in given.items()}
        return self._with_defaults(made)

    def _with_defaults(self, given: Dict[str, Any]) -> Dict[str, Any]:
        for key in self.attributes:
            if key not in given and key not in self.defaults:
                raise _Misuse(f"operator '{self.name}' needs attribute '{key}'")
        return {**self.defaults, **given}

    def _checked(self, key: str, value: Any) -> Any:
        from .ops import _KINDS as kinds

        kind = self.attributes[key]
        wanted, convert = kinds[kind.__name__]
        try:
            if kind is float and isinstance(value, (str, bytes)):
                raise TypeError
            return convert(value)
        except (TypeError, ValueError, AttributeError, Error):
            raise _Misuse(
                f"attribute '{key}' of operator '{self.name}' is {wanted}, not {value!r}"
            ) from None

    def _infer(self, inputs: List, /, **attributes: Any) -> Union[List, str]:
        """The types of the outputs, or what is wrong."""
        try:
            return self._types(inputs, attributes)
        except _Misuse as error:
            return str(error)

    def _types(self, inputs: List, attributes: Dict[str, Any]) -> List:
        attributes = self._with_defaults(attributes)
        self._refuse_strings("takes", "input", inputs)
        if self.shapes is None:
            return [inputs[0]] * self.num_outputs
        types = [None if each is None else from_core(*each) for each in inputs]
        made = self.shapes(*types, **attributes)
        if isinstance(made, TensorType):
            made = [made]
        outputs = [to_core(each) for each in made]
        self._refuse_strings("gives", "output", outputs)
        if all(each is None or _is_known(each) for each in inputs):
            self._refuse_open(outputs)
        return outputs

    def _refuse_strings(self, verb: str, what: str, types: List) -> None:
        for i, each in enumerate(types):
            if each is not None and each[0] == _STRING:
                raise _Misuse(
                    f"operator '{self.name}' {verb} strings as {what} {i}, which operators in "
                    "Python cannot do; those of C and C++ can, with run_values"
                )

    def _refuse_open(self, outputs: List) -> None:
        """The inputs' sizes are known, so a size that is not is one that only the call finds."""
        for i, each in enumerate(outputs):
            if not _is_known(each):
                raise _Misuse(
                    f"output {i} of operator '{self.name}' has a size that does not follow from "
                    "its inputs' shapes, which operators in Python cannot do; give one padded to "
                    "the most, and its count; those of C and C++ can, with run_values"
                )

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
    """A predicate or selector that is a Python function; see host_function()."""

    def __init__(self, function: Callable, name: Optional[str]) -> None:
        self.function = function
        self.name = self._key = name or function.__name__
        self.__name__ = self.name
        self.__doc__ = function.__doc__
        _places(function, "host function")
        gives = inspect.signature(function).return_annotation
        self.is_selector = gives in (int, "int")

    def __call__(self, *inputs: Any) -> Any:
        """Inside of a trace: adds a node. Outside: calls the function."""
        from ._trace import current_or_none

        tracer = current_or_none()
        if tracer is None:
            return self.function(*inputs)
        _check_given(self, tracer)
        attributes: Dict[str, Any] = {"name": self.name}
        if self.is_selector:
            attributes["type"] = TensorType(np.int64, ())
        return tracer.node("HostPredicate", inputs, attributes, domain="eddy")[0]

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
        def clip(x, *, limit: float = 1.0):
            return np.minimum(x, limit)

    Positional parameters are inputs (copies, which the function may keep), keyword-only ones
    attributes, annotated int, float or str; their defaults are what a call or a file leaves out.
    The function gives an array, or a tuple of `outputs`.
    `shapes(*types, **attributes)` gives the TensorTypes of the outputs; without, each is that of
    the first input. The sizes must follow from the inputs' shapes and the attributes, and neither
    inputs nor outputs may be strings: operators of C and C++ can do both, with run_values.
    Give it to a session or function that uses it: `operators=[clip]`.
    What the function raises is the error of its node.
    """

    def make(of: Callable) -> Operator:
        return Operator(of, domain, name, outputs, shapes)

    return make if function is None else make(function)


def host_function(function: Optional[Callable] = None, *, name: Optional[str] = None) -> Any:
    """Makes a host function (operator HostPredicate of domain eddy) of a function of arrays.

    It gives a bool: a loop's test, or cond's. Annotated `-> int`, it gives the number of a case's
    branch. As operator() otherwise.
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
