"""Indices of values of a graph: numbers, slices, ..., None, integer values and vectors."""

from typing import Any, List

import numpy as np

from ._tensor import _INT64_MAX, Tensor, vector
from ._trace import refusal


def _expand(value: Tensor, index: Any) -> List[Any]:
    """One part for each axis, and None for each new one."""
    parts = list(index) if isinstance(index, tuple) else [index]
    count = sum(1 for part in parts if part is not None and part is not Ellipsis)
    at = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(at) > 1:
        raise refusal("an index has one ... at most")
    if value.shape is not None and count > value.ndim:
        raise refusal(f"{count} indices for {value.ndim} axes")
    if at:
        rest = [slice(None)] * (value.ndim - count)
        parts[at[0] : at[0] + 1] = rest
    return parts


def _slices(value: Tensor, parts: List[Any]) -> Tensor:
    starts, ends, axes, steps = [], [], [], []
    for axis, part in enumerate(part for part in parts if part is not None):
        if not isinstance(part, slice):
            continue
        if part.start is None and part.stop is None and part.step is None:
            continue
        step = 1 if part.step is None else int(part.step)
        if step == 0:
            raise refusal("a slice has a step of 0")
        back = step < 0
        starts.append((_INT64_MAX if back else 0) if part.start is None else part.start)
        ends.append((-_INT64_MAX if back else _INT64_MAX) if part.stop is None else part.stop)
        axes.append(axis)
        steps.append(step)
    if not axes:
        return value
    tracer = value.tracer
    inputs = [value, vector(tracer, starts), vector(tracer, ends)]
    inputs += [np.asarray(axes, np.int64), np.asarray(steps, np.int64)]
    return tracer.node("Slice", inputs)[0]


def take(value: Tensor, index: Any) -> Tensor:
    parts = _expand(value, index)
    made = _slices(value, parts)
    axis = 0
    new: List[int] = []
    num_lists = 0
    for part in parts:
        if part is None:
            new.append(axis)
            axis += 1
        elif isinstance(part, slice):
            axis += 1
        else:
            at = value.tracer.lift(part)
            if at.dtype.kind not in "iu" or at.shape is None:
                raise refusal(f"an index of {at.dtype}; give integers, slices, ... or None")
            num_lists += len(at.shape) > 0
            if num_lists > 1:
                raise refusal("an index has one list at most; eddy.ops.GatherND takes more")
            place = axis - sum(1 for each in new if each < axis)
            at = at if at.dtype in (np.int32, np.int64) else at.astype(np.int64)
            made = value.tracer.node("Gather", [made, at], {"axis": place})[0]
            axis += len(at.shape)
    if new:
        made = value.tracer.node("Unsqueeze", [made, np.asarray(new, np.int64)])[0]
    return made
