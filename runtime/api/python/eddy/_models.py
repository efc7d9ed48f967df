"""Models and plans from files and bytes, and what is said where their operators lack."""

import difflib
import os
import re
from typing import Any, Sequence

from . import _core
from ._errors import Error


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
        return "; if it is written in Python, give it: operators=[...]"
    nearest = difflib.get_close_matches(lacking[1] or lacking[2], given, 1, 0)[0]
    return f"; operators=[...] has '{nearest}' nearest to it"
