"""Operators of ONNX (and of others' domains) on values of a traced function.

    y = eddy.ops.Softmax(x, axis=-1)
    values, places = eddy.ops.TopK(x, k, outputs=2)

Every name is an operator: inputs in order (None omits one), attributes by name. op() says more.
"""

from typing import Any, Callable, Mapping, Optional

import numpy as np

from ._trace import current
from ._types import element_of


def _attribute(value: Any) -> Any:
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
    *inputs: Any,
    domain: str = "",
    opset: int = 0,
    outputs: int = 1,
    node_name: str = "",
    attributes: Optional[Mapping[str, Any]] = None,
    **more: Any,
) -> Any:
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


def __getattr__(name: str) -> Callable[..., Any]:
    if not name[:1].isupper():
        raise AttributeError(f"module 'eddy.ops' has no attribute '{name}'")

    def call(*inputs: Any, **options: Any) -> Any:
        return op(name, *inputs, **options)

    call.__name__ = name
    call.__doc__ = f"ONNX's operator {name}: inputs in order, attributes by name; see op()."
    return call
