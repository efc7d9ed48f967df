"""Models and plans from files, bytes and traced functions, and what is said where their operators
lack."""

import difflib
import os
import re
from typing import Any, Dict, Sequence, Tuple

from . import _core
from ._errors import Error


def graph_of(model: Any, options: Dict[str, str]) -> Tuple[Any, Dict[str, str]]:
    """The graph, or None where there is a file to be read, and the options with its function's."""
    from ._trace import Function, Traced

    if isinstance(model, Function):
        raise TypeError(
            f"function '{model.name}' has a graph for each combination of types; give one of "
            "them: that of .trace(x), where x is an array or a TensorType"
        )
    if isinstance(model, Traced):
        return model.graph, {**model._options, **options}
    return (model if isinstance(model, _core.Graph) else None), options


def read(
    kind: Any, library: "_core.Library", path_or_bytes: Any, operators: Sequence, *more: Any
) -> Any:
    try:
        if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            return kind.parse(library, bytes(path_or_bytes), *more)
        return kind.load(library, os.fspath(path_or_bytes), *more)
    except Error as error:
        hint = _operators_hint(error.reason, operators)
        if not hint:
            raise
        parts = error.__reduce__()[1]
        raise Error(parts[0], parts[1] + hint, parts[2] + hint, *parts[3:]) from None


def _operators_hint(reason: str, operators: Sequence) -> str:
    """Where a model's operator or host function is not known: what `operators` has of that name."""
    lacking = re.search(r"operator '([^']+)' \(domain|no host function '([^']+)'", reason)
    if lacking is None:
        return ""
    given = [each.name for each in operators]
    if not given:
        name = lacking[1] or lacking[2]
        shown = name if name.isidentifier() else "..."
        return f"; if it is written in Python, give it to the session: operators=[{shown}]"
    nearest = difflib.get_close_matches(lacking[1] or lacking[2], given, 1, 0)[0]
    return f"; operators=[...] has '{nearest}' nearest to it"
