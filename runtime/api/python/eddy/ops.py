"""Operators on values of a traced function, made of the definitions that sessions run.

    y = eddy.ops.Softmax(x, axis=-1)
    values, places = eddy.ops.TopK(x, k, outputs=2)
    z = eddy.ops.microsoft.Gelu(x)

Every operator of ONNX is a name here, those of other domains in eddy.ops.ml, .microsoft,
.training and .eddy: inputs in order (None omits one), attributes by name, as their kinds want them.
op() is any operator.
"""

import difflib
import inspect
import keyword
import typing  # as a module: Optional is an operator

import numpy as np

from ._schemas import OPERATORS
from ._trace import current, refusal
from ._types import element_of

_OWN = ("outputs", "opset", "node_name")  # of every operator here, beside its attributes


def _attribute(value: typing.Any) -> typing.Any:
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, type) or isinstance(value, np.dtype):
        return element_of(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)):
        return [_attribute(each) for each in value]
    return value


def op(
    name: str,
    *inputs: typing.Any,
    domain: str = "",
    opset: int = 0,
    outputs: int = 1,
    node_name: str = "",
    attributes: typing.Optional[typing.Mapping[str, typing.Any]] = None,
    **more: typing.Any,
) -> typing.Any:
    """A node of operator `name`: its output, or a tuple of `outputs`.

    domain "": ONNX's own; opset 0: the newest. Attributes: numbers, texts, dtypes, arrays, lists;
    those whose names are parameters here are given in `attributes`.
    """
    tracer = current(f"operator {name}")
    given = {key: _attribute(value) for key, value in {**(attributes or {}), **more}.items()}
    made = tracer.node(
        name, inputs, given, domain=domain, opset=opset, outputs=outputs, name=node_name
    )
    return made[0] if outputs == 1 else tuple(made)


def _nearest(name: str, among: typing.Sequence[str]) -> str:
    found = difflib.get_close_matches(name, among, 1)
    return f"; the nearest is '{found[0]}'" if found else ""


def _list(value: typing.Any, kind: type) -> typing.Any:
    return [kind(each) for each in np.asarray(value).ravel().tolist()]


_KINDS = {
    "int": ("a whole number or a dtype", lambda value: _whole(value)),
    "float": ("a number", lambda value: float(value)),
    "str": ("a text", lambda value: _text(value)),
    "ints": ("a list of whole numbers", lambda value: [_whole(each) for each in value]),
    "floats": ("a list of numbers", lambda value: _list(value, float)),
    "strings": ("a list of texts", lambda value: [_text(each) for each in value]),
    "tensor": ("an array", lambda value: _array(value)),
}


def _whole(value: typing.Any) -> int:
    value = _attribute(value)
    if isinstance(value, float) or isinstance(value, (str, list)):
        raise TypeError
    return int(value.__index__())


def _text(value: typing.Any) -> typing.Any:
    if not isinstance(value, (str, bytes)):
        raise TypeError
    return value


def _array(value: typing.Any) -> np.ndarray:
    made = np.asarray(value)
    if made.dtype.kind not in "biufc":
        raise TypeError
    return made


class Op:
    """An operator as a function: its help says which inputs and attributes it has."""

    def __init__(self, domain: str, name: str, schema: typing.Tuple) -> None:
        self.domain = domain
        self.__name__ = self.__qualname__ = name
        self.since_version, self.inputs, (self._least, self._most), self.attributes = schema
        self.__doc__ = self._describe()
        self.__signature__ = self._signature()

    def __repr__(self) -> str:
        return f"<operator {self.domain or 'onnx'}.{self.__name__}{self.__signature__}>"

    def __call__(self, *inputs: typing.Any, **given: typing.Any) -> typing.Any:
        options = {key: given.pop(key) for key in _OWN if key in given}
        current(f"operator {self.__name__}")
        if not options.get("opset"):  # older ones may have others, which the graph knows
            self._check_count(len(inputs))
            given = {key: self._checked(key, value) for key, value in given.items()}
            for key, (_, is_required) in self.attributes.items():
                if is_required and key not in given:
                    raise refusal(f"{self.__name__} needs attribute '{key}'")
        outputs = options.pop("outputs", max(1, self._least))
        if outputs < 1 or (self._most >= 0 and outputs > self._most):
            raise refusal(f"{self.__name__} has 1 to {self._most} outputs, not {outputs}")
        made = op(
            self.__name__, *inputs, domain=self.domain, outputs=outputs, attributes=given, **options
        )
        return made

    def _check_count(self, count: int) -> None:
        is_open = bool(self.inputs) and self.inputs[-1][1] == "variadic"
        least = sum(1 for _, flag in self.inputs if flag == "")
        if count < least or (count > len(self.inputs) and not is_open):
            names = ", ".join(name for name, _ in self.inputs)
            raise refusal(f"{self.__name__} has inputs ({names}), but {count} were given")

    def _checked(self, key: str, value: typing.Any) -> typing.Any:
        if key not in self.attributes:
            near = _nearest(key, list(self.attributes))
            raise refusal(f"{self.__name__} has no attribute '{key}'{near}")
        kind = self.attributes[key][0]
        if kind not in _KINDS:
            raise refusal(f"attribute '{key}' of {self.__name__} is a type; make that in a file")
        wanted, convert = _KINDS[kind]
        try:
            return convert(value)
        except (TypeError, ValueError, AttributeError):
            raise refusal(
                f"attribute '{key}' of {self.__name__} is {wanted}, not {value!r}"
            ) from None

    def _describe(self) -> str:
        what = {"": "ONNX's operator", "eddy": "Eddy's operator"}
        head = what.get(self.domain, f"operator of domain {self.domain}:")
        lines = [f"{head} {self.__name__}, as of opset {self.since_version}.", ""]
        for name, flag in self.inputs:
            more = {"optional": " (may be None)", "variadic": " (any number)"}.get(flag, "")
            lines.append(f"    {name}: input{more}")
        for key, (kind, is_required) in self.attributes.items():
            wanted = _KINDS[kind][0] if kind in _KINDS else "a type"
            lines.append(f"    {key}: attribute, {wanted}{'; needed' if is_required else ''}")
        counts = f"{self._least} or more" if self._most < 0 else f"{self._least} to {self._most}"
        if self._most != 1:
            lines.append(f"    outputs: how many, {counts}; given as a tuple")
        return "\n".join(lines)

    def _signature(self) -> inspect.Signature:
        kinds = inspect.Parameter
        made: typing.List[inspect.Parameter] = []
        for name, flag in self.inputs:
            kind = kinds.VAR_POSITIONAL if flag == "variadic" else kinds.POSITIONAL_ONLY
            default = None if flag == "optional" else kinds.empty
            if default is kinds.empty and made and made[-1].default is None:
                default = None if kind == kinds.POSITIONAL_ONLY else kinds.empty
            made.append(inspect.Parameter(name, kind, default=default))
        for key, (_, is_required) in self.attributes.items():
            if not key.isidentifier() or keyword.iskeyword(key):
                continue
            default = kinds.empty if is_required else ...
            made.append(inspect.Parameter(key, kinds.KEYWORD_ONLY, default=default))
        for key in _OWN:
            made.append(inspect.Parameter(key, kinds.KEYWORD_ONLY, default=...))
        return inspect.Signature(made)


class _Domain:
    """The operators of one domain as names."""

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._made: typing.Dict[str, Op] = {}

    def __getattr__(self, name: str) -> Op:
        schemas = OPERATORS[self._domain]
        if name not in schemas:
            near = "" if name.startswith("_") else _nearest(name, list(schemas))
            raise AttributeError(f"there is no operator '{name}'{near}")
        if name not in self._made:
            self._made[name] = Op(self._domain, name, schemas[name])
        return self._made[name]

    def __dir__(self) -> typing.List[str]:
        return sorted(OPERATORS[self._domain])


_onnx = _Domain("")
for _each in OPERATORS:
    if _each:
        globals()[_each.rsplit(".", 1)[-1]] = _Domain(_each)


def __getattr__(name: str) -> Op:
    return getattr(_onnx, name)


def __dir__() -> typing.List[str]:
    return sorted([*globals(), *dir(_onnx)])
