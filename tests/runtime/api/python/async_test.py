"""Claim: runs are awaited in asyncio's own loop, rows come while their loop runs, and what is
cancelled, left or failed ends."""

import asyncio

import eddy
import numpy as np
import pytest


@eddy.function
def count_down(x):
    return eddy.while_loop(lambda x: x > 0, lambda x: (x - 1, x), x, collect=True)


@eddy.function
def forever(x):
    return eddy.while_loop(lambda x: x > 0, lambda x: (x + 1 - 1, x), x, collect=True)


def session_of(function):
    return function.trace(1.0).session


def test_runs_are_awaited_together():
    async def main():
        session = session_of(count_down)
        made = await asyncio.gather(
            *[session.run_async(None, {"x": float(k)}) for k in range(20)]
        )
        for k, (last, rows) in enumerate(made):
            assert last == 0 and rows.tolist() == list(range(k, 0, -1))
            assert rows.flags.writeable
        return await count_down.run_async(3.0)

    last, rows = asyncio.run(main())
    assert last == 0 and rows.tolist() == [3, 2, 1]


def test_the_loop_goes_on_while_a_run_does():
    async def main():
        session = session_of(forever)
        task = asyncio.create_task(session.run_async(None, {"x": 1.0}))
        ticks = 0
        for _ in range(10):
            await asyncio.sleep(0.002)
            ticks += 1
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        last, _ = await session.run_async(None, {"x": -1.0})
        assert last == -1
        return ticks

    assert asyncio.run(main()) == 10


def test_failures_are_raised_where_they_are_awaited():
    async def main():
        session = session_of(forever)
        with pytest.raises(eddy.Error) as caught:
            await session.run_async(None, {"x": 1.0}, timeout=0.02)
        assert caught.value.code == eddy.Code.DEADLINE_EXCEEDED
        assert "deadline" in str(caught.value) and "the run" in str(caught.value), "its whole line"
        with pytest.raises(eddy.Error, match="input 'x' is not given"):
            await session.run_async(None, {})
        with pytest.raises(eddy.Error, match="no output 'y'"):
            await session.run_async(["y"], {"x": 1.0})
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(session.run_async(None, {"x": 1.0}), 0.02)

    asyncio.run(main())


def test_a_loop_that_closes_leaves_nothing_running():
    session = session_of(forever)

    async def main():
        asyncio.create_task(session.run_async(None, {"x": 1.0}))
        await asyncio.sleep(0.01)

    asyncio.run(main())  # cancels what is left
    session.close()


def test_rows_come_in_order_while_the_loop_runs():
    stream = count_down.stream(1000.0, output=1, max_waiting=2)
    assert [row.item() for row in stream] == list(range(1000, 0, -1))
    last, rows = stream.result()
    assert last == 0 and len(rows) == 1000
    endless = forever.stream(1.0, output=1, max_waiting=2)
    assert [next(endless).item() for _ in range(5)] == [1] * 5  # before the loop has ended
    endless.close()
    with pytest.raises(eddy.Error) as caught:
        for _ in endless:
            pass
    assert caught.value.code == eddy.Code.CANCELLED


def test_rows_are_iterated_asynchronously():
    async def main():
        rows = []
        async for row in count_down.stream(50.0, output=1, max_waiting=1):
            rows.append(row.item())
        assert rows == list(range(50, 0, -1))

        async def take(number):
            return [row.item() async for row in count_down.stream(float(number), output=1)]

        made = await asyncio.gather(*[take(number) for number in range(8)])
        assert made == [list(range(number, 0, -1)) for number in range(8)]

    asyncio.run(main())


def test_a_stream_that_fails_raises_at_its_end():
    stream = session_of(forever).stream("output1", {"x": 1.0}, timeout=0.05)
    with pytest.raises(eddy.Error) as caught:
        for _ in stream:
            pass
    assert caught.value.code == eddy.Code.DEADLINE_EXCEEDED


def test_a_stream_that_is_left_ends():
    for _ in range(10):
        next(forever.stream(1.0, output=1))
    stream = count_down.stream(100.0, output=1)
    next(stream)
    last, rows = stream.result()
    assert last == 0 and len(rows) == 100


def test_what_makes_no_rows_is_not_streamed():
    with pytest.raises(eddy.Error):
        list(session_of(count_down).stream("output0", {"x": 2.0}))
    with pytest.raises(eddy.Error, match="no output"):
        session_of(count_down).stream("nothing", {"x": 2.0})


def test_bound_runs_are_awaited():
    x, last = np.float64(3).reshape(()), np.zeros(())

    async def main():
        bound = session_of(count_down).bind({"x": x}, {"output0": last})
        for _ in range(3):
            last[...] = 5
            await bound.run_async()
            assert last == 0 and bound.output("output1").numpy().tolist() == [3, 2, 1]

    asyncio.run(main())
