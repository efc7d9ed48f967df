#!/usr/bin/env python3
"""rivals.py FILE: the loops of gpu_report --part control by JAX and PyTorch, where installed.

Writes JSON: microseconds a round, the median of several runs, of a scalar counter, a 256 x 256 matmul
with tanh, and eight of these with different trip counts; trips and values are checked. JAX runs as it
is started: with XLA_FLAGS for conditional nodes in a second process of its own.
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
            row.update(status="failed", reason=f"{error}".splitlines()[0])
        found.append(row)
    return found


def jax_rows(name):
    import jax
    import jax.numpy as jnp
    if jax.default_backend() != "gpu":
        raise RuntimeError("JAX has no GPU here")
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
    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch has no GPU here")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(20)
    x0 = (torch.rand(WIDTH, WIDTH, device="cuda") - 0.5) / 10
    w = (torch.rand(WIDTH, WIDTH, device="cuda") - 0.5) / 10

    def scalar():
        x = torch.zeros((), device="cuda")
        while (x < TRIPS).item():
            x = x + 1.0

    def matmul():
        x, n = x0, torch.zeros((), device="cuda")
        while (n < TRIPS).item():
            x, n = torch.tanh(x @ w), n + 1.0

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
        if n.item() != TRIPS:
            raise RuntimeError("wrong number of trips")

    return (rows("PyTorch eager", [("scalar while", scalar), ("matmul and tanh while", matmul)]) +
            rows("PyTorch, step as CUDA graph", [("matmul and tanh while", step_graph)]))


def measured(name, make):
    try:
        return make()
    except Exception as error:  # not installed, or no GPU
        return [{"rival": name, "status": "left out", "reason": f"{error}".splitlines()[0]}]


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    if "EDDY_RIVAL" in os.environ:  # the second process
        name = os.environ["EDDY_RIVAL"]
        found = measured(name, lambda: jax_rows(name))
    else:
        found = measured("JAX", lambda: jax_rows("JAX")) + measured("PyTorch", torch_rows)
        environment = dict(os.environ, XLA_FLAGS=WHILE_FLAGS, EDDY_RIVAL="JAX with WHILE flags")
        subprocess.run([sys.executable, __file__, arguments[0]], env=environment, check=False)
        try:
            with open(arguments[0], encoding="utf-8") as file:
                found += json.load(file)["rows"]
        except (OSError, ValueError):
            pass
    with open(arguments[0], "w", encoding="utf-8") as file:
        json.dump({"part": "rivals", "rows": found}, file, indent=1)
    for row in found:
        print("  ".join(f"{key} {value}" for key, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
