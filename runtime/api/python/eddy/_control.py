"""Loops and branches of a traced function."""

from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from ._tensor import Tensor
from ._trace import NONE, Again, Place, Tracer, current, flatten, here, refusal, unflatten


def _spread(function: Callable, form: Any, leaves: Sequence[Any]) -> Any:
    """Calls with a tuple's values one by one, with anything else as one value."""
    value = unflatten(form, leaves)
    return function(*value) if isinstance(value, tuple) else function(value)


def _scalar(tracer: Tracer, value: Any, what: str, at: Place) -> Tensor:
    made = tracer.lift(value)
    if made.dtype != np.bool_:
        raise refusal(f"{what} is {made.dtype}, not a bool; compare it with something", at)
    sizes = made.shape or ()
    if any(isinstance(size, int) and size != 1 for size in sizes):
        raise refusal(f"{what} has shape {sizes}; use any() or all()", at)
    return made if made.shape == () or made.shape is None else made.reshape(())


def _alike(
    tracer: Tracer, made: Any, form: Any, like: Sequence[Tensor], what: str, at: Place
) -> List[Tensor]:
    """The leaves of what a body gives, of the dtypes of what was before."""
    leaves, found = flatten(made)
    if found != form:
        raise refusal(f"{what} gives {_shape(found)}, not {_shape(form)} as it is given", at)
    values = []
    for i, (leaf, before) in enumerate(zip(leaves, like)):
        is_weak = isinstance(leaf, (bool, int, float))
        value = tracer.lift(leaf)
        if value.dtype != before.dtype:
            if not is_weak or not np.can_cast(value.dtype, before.dtype, "same_kind"):
                raise refusal(
                    f"{what} gives {value.dtype} where value {i} is {before.dtype}; "
                    f"use astype({before.dtype})",
                    at,
                )
            value = value.astype(before.dtype)
        values.append(value)
    return values


def _shape(form: Any) -> str:
    if form is None:
        return "a value"
    if form is NONE:
        return "None"
    if form[0] is dict:
        return f"a dict of {', '.join(map(repr, form[1]))}"
    return f"a {form[0].__name__} of {len(form[-1])}"


def _name_of(function: Callable, name: Optional[str], at: Place) -> Place:
    """The place of a loop or branch: errors call it by its name, or its function's, or the line."""
    given = getattr(function, "__name__", "<lambda>")
    text = name or (at[3] if given in ("<lambda>", "cond", "case") else given)
    return at[0], at[1], at[2], text


def _limit(tracer: Tracer, trips: Any) -> int:
    if trips is None:
        return 0
    value = tracer.lift(trips)
    if value.dtype != np.int64:
        value = value.astype(np.int64)
    return (value if value.shape == () else value.reshape(())).id


def while_loop(
    test: Callable,
    body: Callable,
    initial: Any,
    *,
    collect: bool = False,
    max_trips: Any = None,
    name: Optional[str] = None,
) -> Any:
    """Goes on while `test(*values)` holds, with `body(*values)` as the next values.

    initial: the first values, a tuple (which the functions get one by one) or any other structure
    of values; the body gives the same structure and dtypes, shapes may change.
    collect: the body gives (next values, row), and the loop (last values, rows), where a row is a
    value or a structure, and each is stacked over the iterations.
    max_trips: the most iterations, a number or an integer value.
    """
    tracer = current("while_loop")
    at = here()
    leaves, form = flatten(initial)
    first = [tracer.lift(leaf) for leaf in leaves]
    place = _name_of(test, name, at)
    graph = tracer.graph
    number = tracer.begin_loop()
    num_rows = tracer.num_rows.get(number, 1) if collect else 0
    ids = [value.id for value in first]
    made = graph.begin_while(ids, _limit(tracer, max_trips), num_rows, name or "", place)
    carried = [tracer.value(id) for id in made[1:]]
    goes_on = _scalar(tracer, _spread(test, form, carried), "the loop's test", at)
    made = graph.begin_after(goes_on.id, [value.id for value in carried])
    forwarded = [tracer.value(id) for id in made[1:]]
    result = _spread(body, form, forwarded)
    rows: List[Any] = []
    row_form = None
    if collect:
        if not isinstance(result, tuple) or len(result) != 2:
            raise refusal("with rows the loop's body gives (next values, row)", at)
        result, row = result
        rows, row_form = flatten(row)
        if len(rows) != num_rows:
            raise Again(number, len(rows))
    following = _alike(tracer, result, form, first, "the loop's body", at)
    following += [tracer.lift(row) for row in rows]
    outputs = graph.end_while([value.id for value in following], len(first) + num_rows)
    values = [tracer.value(id) for id in outputs]
    last = unflatten(form, values[: len(first)])
    return (last, unflatten(row_form, values[len(first) :])) if collect else last


def scan(
    function: Callable,
    initial: Any,
    values: Any = None,
    *,
    length: Any = None,
    name: Optional[str] = None,
) -> Any:
    """Calls `function(carried, row)` for each row of `values`, which gives (next carried, row), and
    gives the last carried values and the rows, stacked.

    values: an array of the graph or a structure of them, taken apart along their first axes; or
    None with `length`, how many iterations there are.
    """
    tracer = current("scan")
    leaves, form = flatten(values)
    arrays = [tracer.lift(leaf) for leaf in leaves]
    if not arrays and length is None:
        raise refusal("scan needs values, or a length")
    if length is None:
        length = arrays[0].length()

    def step(i: Tensor, *carried: Any) -> Any:
        row = unflatten(form, [array[i] for array in arrays])
        before = unflatten(initial_form, carried)
        made = function(before, row)
        if not isinstance(made, tuple) or len(made) != 2:
            raise refusal("the function of a scan gives (next carried, row)")
        following, found = flatten(made[0])
        if found != initial_form:
            raise refusal(
                f"the function of a scan carries {_shape(found)}, not {_shape(initial_form)}"
            )
        return (i + 1, *following), made[1]

    first, initial_form = flatten(initial)
    step.__name__ = name or getattr(function, "__name__", "scan")
    always = np.True_
    (_, *last), rows = while_loop(
        lambda *_: tracer.lift(always),
        step,
        (np.int64(0), *first),
        collect=True,
        max_trips=length,
        name=step.__name__ if step.__name__ != "<lambda>" else "scan",
    )
    return unflatten(initial_form, last), rows


def cond(
    selector: Any,
    if_true: Callable,
    if_false: Callable,
    *operands: Any,
    name: Optional[str] = None,
) -> Any:
    """`if_true(*operands)` or `if_false(*operands)`, of which only one runs. Both give the same
    structure and dtypes."""
    tracer = current("cond")
    at = here()
    which = _scalar(tracer, selector, "the condition", at)
    return _choose(tracer, which, [if_false, if_true], operands, -1, _name_of(cond, name, at))


def case(
    selector: Any,
    branches: Sequence[Callable],
    *operands: Any,
    default: Optional[Callable] = None,
    name: Optional[str] = None,
) -> Any:
    """`branches[selector](*operands)`, or `default(*operands)` where there is no such branch; without
    a default that is an error of the run."""
    tracer = current("case")
    at = here()
    which = tracer.lift(selector)
    if which.dtype.kind not in "iu":
        raise refusal(f"the selector of a case is {which.dtype}, not an integer", at)
    if which.dtype not in (np.int32, np.int64):
        which = which.astype(np.int64)
    all = list(branches) + ([] if default is None else [default])
    if not branches:
        raise refusal("a case needs a branch", at)
    last = -1 if default is None else len(branches)
    if default is not None:  # the number of the default itself is none of a branch
        which = which.astype(np.int64)
    return _choose(tracer, which, all, operands, last, _name_of(case, name, at))


def _choose(
    tracer: Tracer,
    selector: Tensor,
    branches: Sequence[Callable],
    operands: Sequence[Any],
    default: int,
    place: Place,
) -> Any:
    graph = tracer.graph
    graph.begin_case(selector.id, len(branches), default, "", place)
    form: Any = None
    first: List[Tensor] = []
    for i, branch in enumerate(branches):
        graph.begin_branch()
        made = branch(*operands)
        if i == 0:
            leaves, form = flatten(made)
            values = [tracer.lift(leaf) for leaf in leaves]
            first = values
        else:
            what = f"branch '{getattr(branch, '__name__', i)}'"
            values = _alike(tracer, made, form, first, what, place)
        graph.end_branch([value.id for value in values])
    return unflatten(form, [tracer.value(id) for id in graph.end_case(len(first))])
