"""What rival_models.py asks of a library, by NumPy, JAX and PyTorch, and their ways to run a model.

The ways give milliseconds a run and results; only NumPy is imported here for good, the others where
they are asked for.
"""
import statistics
import time

import numpy as np

RUNS = 9
WARM_RUNS = 3


class NumpyOps:
    """Plain; the reference. The others override what they do otherwise."""
    xp = np

    def sigmoid(self, x):
        return 0.5 * (self.xp.tanh(0.5 * x) + 1)

    def tanh(self, x):
        return self.xp.tanh(x)

    def relu(self, x):
        return self.xp.maximum(x, 0)

    def where(self, test, yes, no):
        return self.xp.where(test, yes, no)

    def cat(self, parts, axis):
        return self.xp.concatenate(parts, axis)

    def stack(self, parts):
        return self.xp.stack(parts)

    def softmax(self, x, axis):
        e = self.xp.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    def argmax(self, scores, like):
        return scores.argmax(1).astype(like.dtype)

    def floats(self, x):
        return x.astype(self.xp.float32)

    def zeros(self, shape):
        return self.xp.zeros(shape, self.xp.float32)

    def integer(self, value):
        return self.xp.asarray(value, self.xp.int32)

    def true(self):
        return self.xp.asarray(True)

    def ones_like_integers(self, x):
        return self.xp.ones_like(x)

    def row(self, x, i):
        return x[i]

    def set_row(self, x, i, value):
        x = x.copy()
        x[i] = value
        return x

    def conv(self, x, weights, stride):
        k = weights.shape[2]
        padded = np.pad(x, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), axis=(2, 3))
        return np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], weights,
                         optimize=True)

    def max_pool(self, x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        return windows[:, :, ::2, ::2].max((4, 5))

    def decisions(self, gates):  # for branch(): known to the host where the host decides
        return gates.tolist()

    def branch(self, test, yes, no, *operands):
        return yes(*operands) if test else no(*operands)


def jax_ops():
    import jax
    import jax.numpy as jnp

    class JaxOps(NumpyOps):
        xp = jnp

        def row(self, x, i):
            return jax.lax.dynamic_index_in_dim(x, i, 0, keepdims=False)

        def set_row(self, x, i, value):
            return jax.lax.dynamic_update_index_in_dim(x, value, i, 0)

        def conv(self, x, weights, stride):
            pad = weights.shape[2] // 2
            return jax.lax.conv_general_dilated(x, weights, (stride, stride),
                                                ((pad, pad), (pad, pad)))

        def max_pool(self, x):
            return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2),
                                         ((0, 0), (0, 0), (1, 1), (1, 1)))

        def decisions(self, gates):
            return gates

        def branch(self, test, yes, no, *operands):
            return jax.lax.cond(test, yes, no, *operands)

    return JaxOps()


def torch_ops():
    import torch

    class TorchOps(NumpyOps):
        device = "cuda"

        def __init__(self):  # as functions, not methods
            for name in ("sigmoid", "tanh", "relu", "where", "cat", "stack"):
                setattr(self, name, getattr(torch, name))

        def softmax(self, x, axis):
            return torch.softmax(x, axis)

        def argmax(self, scores, like):
            return scores.argmax(1).to(like.dtype)

        def floats(self, x):
            return x.to(torch.float32)

        def zeros(self, shape):
            return torch.zeros(shape, device=self.device)

        def integer(self, value):
            return torch.full((), value, dtype=torch.int64, device=self.device)

        def true(self):
            return torch.ones((), dtype=torch.bool, device=self.device)

        def ones_like_integers(self, x):
            return torch.ones_like(x)

        def row(self, x, i):
            return x.index_select(0, i.reshape(1))[0]

        def set_row(self, x, i, value):
            return x.index_copy(0, i.reshape(1), value[None])

        def conv(self, x, weights, stride):
            return torch.nn.functional.conv2d(x, weights, stride=stride,
                                              padding=weights.shape[2] // 2)

        def max_pool(self, x):
            return torch.nn.functional.max_pool2d(x, 3, 2, 1)

    return TorchOps()


def timed(run, fetch):
    """Median milliseconds of a run, results fetched to the host, and the last results."""
    for _ in range(WARM_RUNS):
        found = fetch(run())
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        found = fetch(run())
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times), found


def by_jax(model):
    import jax
    import jax.numpy as jnp
    ops, no_piece = jax_ops(), lambda key, function: function
    w = {name: jnp.asarray(value) for name, value in model.w.items()}

    def whole(w):
        if not model.has_loop:
            return ops.integer(model_trips(model)), model.forward(ops, w, no_piece)
        branches = [lambda state, b=b: b(ops, w, state) for b in model.branches]

        def body(state):
            if len(branches) == 1:
                return branches[0](state)
            return jax.lax.switch(model.decide(ops, w, state), branches, state)

        state = jax.lax.while_loop(lambda state: model.decide(ops, w, state) >= 0, body,
                                   model.start(ops, w))
        return state[0], model.results(state)

    compiled = jax.jit(whole)
    return timed(lambda: compiled(w), lambda found: (int(found[0]), [np.asarray(r) for r in found[1]]))


def model_trips(model):
    return model.trips if model.has_loop else 0


def torch_weights(model, device):
    import torch
    found = {name: torch.from_numpy(value).to(device) for name, value in model.w.items()}
    # Indices as PyTorch has them.
    return {name: v.long() if v.dtype == torch.int32 else v for name, v in found.items()}


def torch_fetch(found):
    return int(found[0]), [r.cpu().numpy() for r in found[1]]


def torch_loop(model, decide, start, branches):
    """Python decides, by a value of the device each round."""

    def run():
        state = start()
        while (branch := int(decide(state).item())) >= 0:
            state = branches[branch](state)
        return state[0], model.results(state)

    return run


def by_torch_eager(model):
    ops = torch_ops()
    w = torch_weights(model, ops.device)
    if not model.has_loop:
        run = lambda: (0, model.forward(ops, w, lambda key, function: function))
    else:
        run = torch_loop(model, lambda state: model.decide(ops, w, state),
                         lambda: model.start(ops, w),
                         [lambda state, b=b: b(ops, w, state) for b in model.branches])
    return timed(run, torch_fetch)


def by_torch_graph(model):
    """Start and every branch as a CUDA graph on one state; the branch to come is in it, too."""
    import torch
    if not model.has_loop:
        raise RuntimeError("has no step to be recorded")
    ops = torch_ops()
    w = torch_weights(model, ops.device)
    state = [torch.clone(each) for each in model.start(ops, w)]
    branch = model.decide(ops, w, state).clone()

    def recorded(make):
        def step():
            made = make()
            for to, each in zip(state, made):
                to.copy_(each)
            branch.copy_(model.decide(ops, w, state))

        side = torch.cuda.Stream()  # libraries make what they need before the recording
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model.start(ops, w)
            make()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph

    start = recorded(lambda: model.start(ops, w))
    # Made at a state where each may be.
    start.replay()
    branches = [recorded(lambda b=b: b(ops, w, state)) for b in model.branches]

    def run():
        start.replay()
        while (chosen := int(branch.item())) >= 0:
            branches[chosen].replay()
        return state[0], model.results(state)

    return timed(run, torch_fetch)


def by_torch_compiled(model):
    import torch
    torch._dynamo.config.cache_size_limit = 64
    ops = torch_ops()
    w = torch_weights(model, ops.device)
    compiled = lambda function: torch.compile(function, mode="reduce-overhead", dynamic=False)
    # What a replay returns lies where the next one writes.
    def kept(values):
        if isinstance(values, torch.Tensor):
            return torch.clone(values)
        return tuple(torch.clone(each) for each in values)

    if not model.has_loop:
        pieces = {}

        def piece(key, function):
            if key not in pieces:
                pieces[key] = compiled(function)
            return lambda *operands: kept(pieces[key](*operands))

        run = lambda: (0, model.forward(ops, w, piece))
    else:
        with_decision = lambda function: compiled(
            lambda *state: (lambda made: (*made, model.decide(ops, w, made)))(function(state)))
        start = with_decision(lambda _: model.start(ops, w))
        branches = [with_decision(lambda s, b=b: b(ops, w, s)) for b in model.branches]

        def run():
            *state, branch = kept(start())
            while (chosen := int(branch.item())) >= 0:
                torch.compiler.cudagraph_mark_step_begin()
                *state, branch = kept(branches[chosen](*state))
            return state[0], model.results(state)

    return timed(run, torch_fetch)


def difference(model, found):
    """What is wrong with (trips, results); empty: nothing beyond what TF32 may round."""
    trips, results = found
    if trips != model_trips(model):
        return f"{trips} trips, expected {model_trips(model)}"
    expected = model.reference()
    for k, (want, got) in enumerate(zip(expected, results, strict=True)):
        got = got.take(range(want.shape[model.per_row]), model.per_row)
        if want.shape != got.shape:
            return f"result {k} has shape {got.shape}, expected {want.shape}"
        off = float(np.abs(want - got).max())
        if not off <= 2e-2 * float(np.abs(want).max()):
            return f"result {k} is off by {off:.3g}"
    return ""
