"""Claim: memory goes between numpy, DLPack and Eddy without copies, lives as long as it is used, and
what is immutable cannot be written."""

import asyncio
import gc
import weakref

import eddy
import numpy as np
import pytest


@eddy.function
def double(x):
    return x + x


def address(array):
    return array.__array_interface__["data"][0]


ALL_DTYPES = "f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8 ?".split()


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_values_show_the_memory_of_arrays(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    value = eddy.value(array)
    assert value.shape == (2, 3) and value.dtype == array.dtype
    for shown in (value.numpy(), np.asarray(value), np.asarray(memoryview(value))):
        assert address(shown) == address(array) and not shown.flags.writeable
        np.testing.assert_array_equal(shown, array)
    mine = value.copy()
    assert mine.flags.writeable and address(mine) != address(array)


@pytest.mark.parametrize("dtype", [each for each in ALL_DTYPES if each != "?"])
def test_dlpack_goes_both_ways_without_copies(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    value = eddy.from_dlpack(array)
    assert value.__dlpack_device__() == (1, 0)
    back = np.from_dlpack(value)
    assert address(back) == address(array)
    np.testing.assert_array_equal(back, array)
    assert address(eddy.from_dlpack(value).numpy()) == address(array)


def test_versioned_capsules_are_given_when_they_are_asked_for():
    value = eddy.value(np.arange(3))
    assert '"dltensor_versioned"' in repr(value.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(value.__dlpack__(max_version=(0, 8)))

    class Versioned:
        def __dlpack__(self):
            return value.__dlpack__(max_version=(1, 1))

    assert address(eddy.from_dlpack(Versioned()).numpy()) == address(value.numpy())


def test_wrong_dlpack_is_refused():
    value = eddy.value(np.arange(3))
    used = value.__dlpack__()

    class Capsule:
        device = 1

        def __dlpack__(self):
            return used

        def __dlpack_device__(self):
            return self.device, 0

    assert eddy.from_dlpack(Capsule()).numpy().tolist() == [0, 1, 2]
    with pytest.raises(eddy.Error, match="no capsule"):
        eddy.from_dlpack(Capsule())
    Capsule.device = 2
    with pytest.raises(eddy.Error, match="device") as caught:
        eddy.from_dlpack(Capsule())
    assert caught.value.code == eddy.Code.UNSUPPORTED
    with pytest.raises(AttributeError):
        eddy.from_dlpack(3)
    with pytest.raises(eddy.Error):
        eddy.value(np.array(["a"])).__dlpack__()
    with pytest.raises((eddy.Error, BufferError)):
        memoryview(eddy.value(np.array(["a"])))


def test_memory_lives_as_long_as_something_shows_it():
    array = np.arange(1000.0)
    gone = weakref.ref(array)
    shown = np.from_dlpack(eddy.from_dlpack(eddy.value(array)))
    del array
    gc.collect()
    assert gone() is not None and shown[999] == 999
    del shown
    gc.collect()
    assert gone() is None


def test_values_outlive_their_session():
    session = double.trace(np.ones(1000)).session
    (value,) = session.run_values(None, {"x": np.ones(1000)})
    session.close()
    del session
    gc.collect()
    assert value.numpy().sum() == 2000


def test_runs_keep_nothing_of_their_inputs():
    session = double.trace(np.ones(3)).session
    array = np.ones(3)
    gone = weakref.ref(array)
    session.run(None, {"x": array})
    with pytest.raises(eddy.Error):
        session.run(["nothing"], {"x": array})
    with pytest.raises(eddy.Error):
        session.run(None, {"x": array, "y": array})
    asyncio.run(session.run_async(None, {"x": array}))
    del array
    gc.collect()
    assert gone() is None


def test_outputs_do_not_share_memory_with_inputs():
    @eddy.function
    def same(x):
        return x

    x = np.arange(3.0)
    session = same.trace(x).session
    (value,) = session.run_values(None, {"x": x})
    x[:] = 9
    assert value.numpy().tolist() == [0, 1, 2]


def test_a_bound_run_reads_and_writes_the_same_arrays():
    x, y = np.ones((2, 2)), np.zeros((2, 2))
    bound = double.trace(x).session.bind({"x": x}, {"output0": y})
    for k in range(5):
        x[:] = k
        bound.run()
        assert (y == 2 * k).all()
    assert bound.output("output0") is y
    other = np.zeros((2, 2))
    bound.bind_output("output0", other)
    bound.bind_input("x", np.full((2, 2), 8.0))
    bound.run()
    assert (other == 16).all() and (y == 8).all()


def test_arrays_that_cannot_be_bound_are_refused():
    session = double.trace(np.ones((2, 2))).session
    frozen = np.zeros((2, 2))
    frozen.flags.writeable = False
    for array, said in [
        (frozen, "read-only"),
        (np.zeros((2, 4))[:, ::2], "not dense"),
        (np.zeros((2, 2), ">f8"), "not dense"),
        (np.zeros((2, 2), np.float32), "float"),
        (np.zeros((2, 3)), "output0"),
        (np.zeros((2, 2), object), "strings"),
    ]:
        with pytest.raises(eddy.Error, match=said):
            session.bind({"x": np.ones((2, 2))}, {"output0": array}).run()
    with pytest.raises(TypeError, match="not an array"):
        session.bind({}, {"output0": [1]})
    with pytest.raises(eddy.Error, match="input 'x' is not given"):
        session.bind().run()


def test_two_outputs_in_the_same_memory_are_refused():
    traced = eddy.function(lambda x: (x + 1, x * 2)).trace(np.zeros(4))
    both, x = np.zeros(6), np.arange(4.0)
    bound = traced.session.bind({"x": x}, {"output0": both[:4], "output1": both[2:]})
    for _ in range(2):
        with pytest.raises(eddy.Error, match="'output0' and 'output1' are bound to the same") as caught:
            bound.run()
        assert caught.value.code == eddy.Code.INVALID_ARGUMENT
    other = np.zeros(4)
    bound.bind_output("output1", other)
    bound.run()
    assert both[:4].tolist() == [1, 2, 3, 4] and other.tolist() == [0, 2, 4, 6]
    # Two that change places are the same for a moment.
    bound.bind_output("output0", other)
    bound.bind_output("output1", both[:4])
    bound.run()
    assert other.tolist() == [1, 2, 3, 4] and both[:4].tolist() == [0, 2, 4, 6]


def test_an_output_may_be_made_in_an_input():
    traced = eddy.function(lambda x: (x[::-1] + 1, x * 2)).trace(np.zeros(4))
    x, y = np.arange(4.0), np.zeros(4)
    traced.session.bind({"x": x}, {"output0": x, "output1": y}).run()
    assert x.tolist() == [4, 3, 2, 1] and y.tolist() == [0, 2, 4, 6]
