"""Claim: no sequence of calls, right or wrong, in any order, crashes, hangs, or gives another result
than numpy: each call gives a value, an eddy.Error, or Python's own TypeError, ValueError or
IndexError."""

import os
import random

import eddy
import numpy as np

NUM_CALLS = int(os.environ.get("EDDY_CALLS", 2000))
EXPECTED = (eddy.Error, RuntimeError, TypeError, ValueError, IndexError, AttributeError, BufferError)


@eddy.operator
def plus_one(x):
    return x + 1


def affine(x):
    return x * 2 + 1


def collatz(n):
    step = lambda n: (eddy.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), n)
    return eddy.while_loop(lambda n: n > 1, step, n, collect=True)


def climb(x):
    return eddy.while_loop(lambda x: x.max() < 20, plus_one, x)


class Player:
    """Holds what calls have made, and makes more of it by chance."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.sessions, self.values, self.bound, self.streams = [], [], [], []
        self.models = [
            eddy.function(affine).trace(eddy.TensorType(np.float64, ("n",))),
            eddy.function(collatz).trace(27),
            eddy.function(climb, operators=[plus_one]).trace(eddy.TensorType(np.float64, ("n",))),
        ]

    def thing(self):
        """Anything at all."""
        pick = self.random.randrange(9)
        if pick == 0:
            return self.random.choice([None, 3, -1.5, "x", b"bytes", object(), [], {}, True])
        if pick == 1:
            return self.random.choice(self.values or [0])
        shape = [self.random.randrange(4) for _ in range(self.random.randrange(3))]
        dtype = self.random.choice("f4 f8 i4 i8 u1 ? f2 O U3 >f8".split())
        return np.ones(shape).astype(dtype)

    def pick(self, things):
        return self.random.choice(things) if things else None

    def make(self):
        if len(self.sessions) > 8:
            self.sessions.pop(self.random.randrange(len(self.sessions)))
        options = self.random.choice([{}, {"threads": 1}, {"exact": True}, {"nothing": 1}])
        self.sessions.append(eddy.InferenceSession(self.pick(self.models).graph, options))

    def run(self):
        session = self.pick(self.sessions)
        if session is None:
            return
        n = self.random.randrange(4)
        x = np.array([self.random.random() for _ in range(n)])
        name = session.get_inputs()[0].name
        if name == "n":
            start = self.random.randrange(1, 30)
            last, rows = session.run(None, {"n": start})
            assert last == 1 and (len(rows) == 0 or rows[0] == start)
        elif len(session.get_outputs()) == 1 and "while" not in session.plan():
            (y,) = session.run(None, {name: x})
            np.testing.assert_array_equal(y, x * 2 + 1)
        elif n > 0:
            (y,) = session.run(None, {name: x})
            assert y.shape == (n,) and 20 <= y.max() < 21

    def run_wrongly(self):
        session = self.pick(self.sessions)
        if session is None:
            return
        names = self.random.choice([None, [], ["output0"], ["output0"] * 3, ["no"], "output0", 3])
        feeds = {self.random.choice(["x", "n", "y", ""]): self.thing() for _ in range(2)}
        call = self.random.choice([session.run, session.run_values])
        self.values.extend(call(names, feeds, timeout=0.05))

    def make_value(self):
        self.values.append(self.random.choice([eddy.value, eddy.from_dlpack])(self.thing()))

    def use_value(self):
        value = self.pick(self.values)
        action = self.random.randrange(7)
        if action == 0:
            np.from_dlpack(value)
        elif action == 1:
            memoryview(value).tobytes()
        elif action == 2:
            value.numpy()
        elif action == 3:
            self.values.append(eddy.sequence([value, self.pick(self.values)]))
        elif action == 4:
            value[self.random.randrange(-2, 3)]
        elif action == 5:
            value.__dlpack__(max_version=(self.random.randrange(3), 0))
        elif self.values:
            self.values.pop(self.random.randrange(len(self.values)))
            del self.values[32:]

    def bind(self):
        session = self.pick(self.sessions)
        if session is None:
            return
        del self.bound[4:]
        inputs = {"x": self.thing()} if self.random.random() < 0.7 else {}
        outputs = {"output0": self.thing()} if self.random.random() < 0.5 else {}
        self.bound.insert(0, session.bind(inputs, outputs))

    def use_bound(self):
        bound = self.pick(self.bound)
        if bound is None:
            return
        action = self.random.randrange(4)
        if action == 0:
            bound.bind_input(self.random.choice("xnz"), self.thing())
        elif action == 1:
            bound.run(timeout=0.05)
        elif action == 2:
            bound.output("output0")
        else:
            bound.bind_output("output0", self.thing())

    def stream(self):
        session = self.pick(self.sessions)
        if session is None:
            return
        del self.streams[3:]
        name = self.random.choice(["output1", "output0", "no"])
        feeds = {"n": self.random.randrange(1, 30)}
        self.streams.insert(0, session.stream(name, feeds, max_waiting=self.random.randrange(3)))

    def use_stream(self):
        stream = self.pick(self.streams)
        if stream is None:
            return
        action = self.random.randrange(4)
        if action < 2:
            next(stream, None)
        elif action == 2:
            stream.result()
        else:
            stream.close()

    def close(self):
        session = self.pick(self.sessions)
        if session is not None and self.random.random() < 0.3:
            self.random.choice([session.close, session.trim, session.cancel_all])()


def test_no_sequence_of_calls_does_harm(seed):
    player = Player(seed)
    actions = [
        player.make, player.run, player.run, player.run_wrongly, player.run_wrongly,
        player.make_value, player.use_value, player.use_value, player.bind, player.use_bound,
        player.use_bound, player.stream, player.use_stream, player.use_stream, player.close,
    ]  # fmt: skip
    refused = 0
    for _ in range(NUM_CALLS):
        action = player.random.choice(actions)
        try:
            action()
        except EXPECTED:
            refused += 1
    assert 0 < refused < NUM_CALLS
