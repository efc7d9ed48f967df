"""Newton's method for square roots: the numbers decide how often the loop runs.

    PYTHONPATH=... python3 newton.py
"""

import asyncio

import eddy
import numpy as np


@eddy.function
def root(a, tolerance):
    """The root of a, and each step on the way there."""

    def goes_on(x):
        return abs(x * x - a) > tolerance * a

    def step(x):
        return (x + a / x) / 2, x

    return eddy.while_loop(goes_on, step, a, collect=True)


@eddy.function
def roots(values):
    """The roots of several numbers, one after the other."""
    _, made = eddy.scan(lambda count, a: (count + 1, root(a, 1e-12)[0]), 0, values)
    return made


@eddy.function
def decides_in_python(x):
    if x > 1:  # the trace has no number here
        return x
    return -x


async def steps_of(number):
    return [row.item() async for row in root.stream(number, 1e-12, output=1)]


def main():
    x, steps = root(2.0, 1e-12)
    print(f"the root of 2 is {x:.6f}, after {len(steps)} steps")

    print("roots:", np.round(roots(np.array([4.0, 9.0, 144.0])), 6))

    streamed = asyncio.run(steps_of(1e6))
    print(f"streamed: {len(streamed)} steps from {streamed[0]:g} on")

    session = root.trace(2.0, 1e-12).session  # as one of ONNX Runtime
    (only,) = session.run(["output0"], {"a": 81.0, "tolerance": 1e-9})
    print(f"by a session: {only:.3f}")

    try:
        decides_in_python(2.0)
    except eddy.Error as error:
        print(f"refused at line {error.location.line}: {error.reason}")


if __name__ == "__main__":
    main()
