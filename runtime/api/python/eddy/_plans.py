"""Saved plans: what making a session decides and packs, in a file."""

import os
from typing import Any, Iterable, Mapping, Union

from . import _core
from ._models import graph_of, read
from ._session import SessionOptions, _library_of, _texts


def save_plan(
    model: Any,
    path: Any,
    options: Union[None, Mapping[str, Any], SessionOptions] = None,
    *,
    operators: Iterable = (),
) -> None:
    """Writes what making a session of a model decides and packs, so that InferenceSession(path)
    is made in a fraction of the time, also in other processes.

    model: an ONNX file, its bytes, or what eddy.function().trace() gives. options, operators: as
      of an InferenceSession; those that make another graph ("dim.NAME", exact …) are the plan's.
    The plan is refused, with the reason, by another version of Eddy and on another processor.
    """
    texts = _texts(options)
    graph, _ = graph_of(model, texts)
    if graph is None:
        operators = tuple(operators)
        library = _library_of(operators, texts.pop("threads", None))
        graph = read(_core.Graph, library, model, operators)
    graph.save_plan(os.fspath(path), texts)


def is_plan(path: Any) -> bool:
    """Whether save_plan() has written the file; False also where there is none."""
    return _core.is_plan(os.fspath(path))
