#!/usr/bin/env python3
"""rivals.py FILE: the loops and models of gpu_report by JAX and PyTorch, where installed.

Writes JSON. Of the part control: microseconds a round, the median of several runs, of a scalar
counter, a 256 x 256 matmul with tanh, and eight of these with different trip counts; of the part
models: milliseconds a run (rival_models.py). Of loops the trips are checked, of models the values,
too. Needs NumPy, and JAX or PyTorch for the GPU. Each rival has a process and a time limit of its own (JAX's WHILE flags are of its start, too), and writes
what it has as it goes.
"""
import json
import os
import statistics
import subprocess
import sys
import time

TRIPS = 1000
WIDTH = 256
RUNS = 5
SECONDS_EACH = 170  # five of them, in the 900 that the bundle's run has
WHILE_FLAGS = ("--xla_gpu_enable_command_buffer=+WHILE,+CONDITIONAL "
               "--xla_gpu_graph_min_graph_size=1 "
               "--xla_gpu_command_buffer_scheduling_mode=CONCURRENT")


def median_us(run, rounds):
    run()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append(1e6 * (time.perf_counter() - start) / rounds)
    return statistics.median(times)


def rows(name, cases):
    found = []
    for case, run in cases:
        row = {"rival": name, "case": case}
        try:
            row["us_per_round"] = median_us(run, TRIPS)
            row["status"] = "passed"
        except Exception as error:  # whatever a library throws: the other cases are still measured
            row.update(status="failed", reason=first_line(error))
        found.append(row)
    return found


def jax_rows(name):
    import jax
    import jax.numpy as jnp
    key_x, key_w = jax.random.split(jax.random.PRNGKey(20))
    x = jax.random.uniform(key_x, (WIDTH, WIDTH), minval=-0.05, maxval=0.05)
    w = jax.random.uniform(key_w, (WIDTH, WIDTH), minval=-0.05, maxval=0.05)
    scalar = jax.jit(lambda v: jax.lax.while_loop(lambda s: s < TRIPS, lambda s: s + 1.0, v))

    def matmul_loop(trips):
        return lambda x, w: jax.lax.while_loop(
            lambda s: s[1] < trips, lambda s: (jnp.tanh(s[0] @ w), s[1] + 1.0), (x, 0.0))

    one = jax.jit(matmul_loop(TRIPS))
    eight = jax.jit(lambda x, w: [matmul_loop(TRIPS - i * TRIPS // 10)(x, w) for i in range(8)])

    def run_scalar():
        if float(scalar(0.0)) != TRIPS:
            raise RuntimeError("wrong number of trips")

    def run_one():
        if float(one(x, w)[1].block_until_ready()) != TRIPS:
            raise RuntimeError("wrong number of trips")

    def run_eight():
        results = jax.block_until_ready(eight(x, w))
        if [float(r[1]) for r in results] != [TRIPS - i * TRIPS // 10 for i in range(8)]:
            raise RuntimeError("wrong number of trips")

    return rows(name, [("scalar while", run_scalar), ("matmul and tanh while", run_one),
                       ("eight such loops", run_eight)])


def torch_rows():
    import torch
    torch.manual_seed(20)
    x0 = (torch.rand(WIDTH, WIDTH, device="cuda") - 0.5) / 10
    w = (torch.rand(WIDTH, WIDTH, device="cuda") - 0.5) / 10

    def check(count, trips):
        if count.item() != trips:
            raise RuntimeError("wrong number of trips")

    def scalar():
        x = torch.zeros((), device="cuda")
        while (x < TRIPS).item():
            x = x + 1.0
        check(x, TRIPS)

    def matmul(trips=TRIPS):
        x, n = x0, torch.zeros((), device="cuda")
        while (n < trips).item():
            x, n = torch.tanh(x @ w), n + 1.0
        check(n, trips)

    def eight():
        for i in range(8):
            matmul(TRIPS - i * TRIPS // 10)

    x, n = x0.clone(), torch.zeros((), device="cuda")
    test = torch.ones((), device="cuda", dtype=torch.bool)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(torch.tanh(x @ w))
        n += 1.0
        test.copy_(n < TRIPS)

    def step_graph():
        x.copy_(x0)
        n.zero_()
        test.fill_(True)
        while test.item():
            graph.replay()
        check(n, TRIPS)

    return (rows("PyTorch eager", [("scalar while", scalar), ("matmul and tanh while", matmul),
                                   ("eight such loops", eight)]) +
            rows("PyTorch, step as CUDA graph", [("matmul and tanh while", step_graph)]))


def model_rows(name, way, file):
    """A row for each dynamic model, written as soon as it is there."""
    import rival_models
    import rival_ops
    found = []
    for make in rival_models.MODELS:
        row = {"rival": name, "case": "?"}
        try:
            model = make()
            row["case"] = model.name
            model.settle()
            row["ms"], results = way(model)
            problem = rival_ops.difference(model, results)
            row.update({"status": "failed", "reason": problem} if problem else {"status": "passed"})
        except Exception as error:  # as above
            row.update(status="failed", reason=first_line(error))
        found.append(row)
        write(file, found)
    return found


def first_line(error):
    return (f"{error}".splitlines() or [type(error).__name__])[0]


def write(file, found):
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"part": "rivals", "rows": found}, out, indent=1)


def with_tf32():
    import torch
    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch has no GPU here")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True


def has_jax():
    import jax
    if jax.default_backend() != "gpu":
        raise RuntimeError("JAX has no GPU here")


def ways():
    """By name: what is measured in a process of its own, the way of the models, what it needs."""
    import rival_ops
    return {
        "JAX": (lambda: jax_rows("JAX"), rival_ops.by_jax, has_jax),
        "JAX with WHILE flags": (lambda: jax_rows("JAX with WHILE flags"), rival_ops.by_jax, has_jax),
        "PyTorch eager": (torch_rows, rival_ops.by_torch_eager, with_tf32),
        "PyTorch, step as CUDA graph": (list, rival_ops.by_torch_graph, with_tf32),
        "torch.compile'd step": (list, rival_ops.by_torch_compiled, with_tf32),
    }


NAMES = ("JAX", "JAX with WHILE flags", "PyTorch eager", "PyTorch, step as CUDA graph",
         "torch.compile'd step")


def measure(name, file):
    """In the process of this rival: its loops, then its models. Both are tried, whatever comes."""
    loops_file, models_file = file + ".loops", file + ".models"
    try:
        loops, way, check = ways()[name]
        check()
    except Exception as error:  # not installed, or no GPU
        write(loops_file, [{"rival": name, "status": "left out", "reason": first_line(error)}])
        return
    try:
        write(loops_file, loops())
    except Exception as error:
        write(loops_file, [{"rival": name, "status": "failed", "reason": first_line(error)}])
    model_rows(name, way, models_file)


def read_and_remove(file):
    try:
        with open(file, encoding="utf-8") as found:
            rows_there = json.load(found)["rows"]
        os.remove(file)
        return rows_there
    except (OSError, ValueError):
        return []


def run_apart(name, file, seconds):
    """What this rival has written, also where its time was over or it ended otherwise."""
    environment = dict(os.environ, EDDY_RIVAL=name)
    if name == "JAX with WHILE flags":
        environment["XLA_FLAGS"] = WHILE_FLAGS
    ended = ""
    try:
        code = subprocess.run([sys.executable, __file__, file], env=environment, check=False,
                              timeout=seconds).returncode
        if code != 0:
            ended = f"its process ended with {code}"
    except subprocess.TimeoutExpired:
        ended = f"out of time after {seconds} s"
    found = read_and_remove(file + ".loops") + read_and_remove(file + ".models")
    if ended:
        found.append({"rival": name, "status": "failed", "reason": ended})
    return found


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    if "EDDY_RIVAL" in os.environ:  # a process of its own
        measure(os.environ["EDDY_RIVAL"], arguments[0])
        return 0
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("rivals.py: needs NumPy, and JAX or PyTorch for the GPU; install them with pip",
              file=sys.stderr)
    found = []
    for name in NAMES:
        found += run_apart(name, arguments[0], SECONDS_EACH)
        write(arguments[0], found)
    for row in found:
        print("  ".join(f"{key} {value}" for key, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
