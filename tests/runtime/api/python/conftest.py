"""What the tests of the Python module share: the seed of what is random, and a thread's signal."""

import os
import random
import signal
import threading

import pytest


@pytest.fixture
def seed():
    """A new one each time, printed where a test fails; EDDY_SEED repeats it."""
    made = int(os.environ.get("EDDY_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"EDDY_SEED={made}")
    return made


@pytest.fixture
def interrupt():
    """interrupt(seconds) sends what Ctrl-C does, later."""
    timers = []

    def begin(seconds):
        timers.append(threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield begin
    for timer in timers:
        timer.cancel()
        timer.join()
