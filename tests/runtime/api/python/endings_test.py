"""Claim: a program may end, fork, or let go of anything at any time: nothing crashes or hangs."""

import subprocess
import sys

import pytest

BEGIN = """
import asyncio, os, signal, sys, threading, time
import eddy
import numpy as np

@eddy.operator
def same(x):
    return x

def loop(step):
    return lambda x: eddy.while_loop(lambda x: x > 0, lambda x: (step(x), x), x, collect=True)

calls = eddy.function(loop(same), operators=[same])
plain = eddy.function(loop(lambda x: x + 1 - 1))

def interrupt():
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
"""


def run(code):
    made = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", BEGIN + code],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert made.returncode == 0, made.stderr
    assert made.stderr == ""
    return made.stdout.strip()


@pytest.mark.parametrize("function", ["calls", "plain"])
def test_a_program_ends_while_a_daemon_runs(function):
    for delay in (0.0, 0.01, 0.05, 0.1, 0.1, 0.2):
        assert run(f"""
threading.Thread(target=lambda: {function}(1.0), daemon=True).start()
time.sleep({delay})
print("end")
""") == "end"


# The operator's own thread waits for a run, which is cancelled: it must go on, or nobody ends.
def test_a_program_ends_while_an_operator_runs_a_session():
    assert run("""
@eddy.operator
def nested(x):
    plain(1.0)
    return x
outer = eddy.function(lambda x: nested(x), operators=[nested])
threading.Thread(target=lambda: outer(1.0), daemon=True).start()
time.sleep(0.2)
print("end")
""") == "end"


def test_a_program_ends_while_streams_are_open():
    assert run("""
streams = [each.stream(1.0, output=1) for each in (calls, plain)]
print([next(stream).item() for stream in streams])
""") == "[1.0, 1.0]"


def test_an_operator_that_exits_fails_its_node():
    assert "SystemExit: 3" in run("""
@eddy.operator
def leave(x):
    sys.exit(3)
try:
    eddy.function(lambda x: leave(x), operators=[leave])(1.0)
except eddy.Error as error:
    print(error)
""")


def test_after_a_fork_the_child_is_told_and_the_parent_goes_on():
    said = run("""
plain(-1.0)
child = os.fork()
if child == 0:
    try:
        plain(-1.0)
    except eddy.Error as error:
        print(error, flush=True)
    sys.exit(0)
print(os.waitpid(child, 0)[1], plain(-1.0)[0])
""")
    assert "before fork()" in said and said.endswith("0 -1.0")


def test_handlers_of_the_users_own_are_called():
    assert run("""
signal.signal(signal.SIGINT, lambda *_: print("mine"))
interrupt()
try:
    plain(1.0)
except eddy.Error as error:
    print(error.code.name)
signal.signal(signal.SIGINT, signal.default_int_handler)
interrupt()
try:
    plain(1.0)
except KeyboardInterrupt:
    print("interrupted")
interrupt()
try:
    time.sleep(10)
except KeyboardInterrupt:
    print("idle")
print(plain(-1.0)[0])
""").split() == ["mine", "CANCELLED", "interrupted", "idle", "-1.0"]


def test_an_operator_may_let_go_of_runs_and_sessions():
    assert run("""
@eddy.operator
def drop(x):
    held.clear()
    return x
f = eddy.function(lambda x: drop(x), operators=[drop])
held = [plain.trace(1.0).session.bind({"x": np.float64(1)})]
print(f(1.0))
held = [f.trace(1.0).session]
f._traced.clear()
print(held[0].run(None, {"x": 2.0})[0])
session = f.trace(1.0).session
print(asyncio.run(session.run_async(None, {"x": 3.0}))[0])
""").split() == ["1.0", "2.0", "3.0"]


def test_an_operator_may_not_close_its_own_session():
    assert "waits for a run that needs operators in Python" in run("""
@eddy.operator
def shut(x):
    session.close()
    return x
session = eddy.function(lambda x: shut(x), operators=[shut]).trace(1.0).session
try:
    session.run(None, {"x": 1.0})
except eddy.Error as error:
    print(error)
""")
