"""Claim: a plan is a picture, and so is what ran when; a trace has the spans of its run, nested and in
order, and running goes on without one."""

import json
import xml.etree.ElementTree as xml

import eddy
import numpy as np
import pytest


@eddy.function(options={"loops": "host"})
def climb(x, table):
    return eddy.while_loop(
        lambda x, i: x < 10, lambda x, i: ((x + table[i], i + 1), x), (x, 0), collect=True, name="up"
    )


TABLE = np.arange(8.0)


def session():
    return climb.trace(1.0, TABLE).session


def feeds(x=1.0):
    return {"x": x, "table": TABLE}


def test_a_plan_is_text_and_a_picture():
    plan = session().plan()
    assert "while" in plan and repr(plan) == str(plan)
    assert plan._repr_svg_() == plan.svg
    root = xml.fromstring(plan.svg)
    assert root.tag.endswith("svg") and "up" in plan.svg
    with pytest.raises(eddy.Error, match="of no session"):
        eddy.PlanText("text").svg
    closing = eddy.InferenceSession(climb.trace(1.0, TABLE).graph)
    plan = closing.plan()
    closing.close()
    assert plan._repr_svg_() is None and "while" in plan


def test_a_trace_has_the_outputs_and_spans_of_its_run():
    of = session()
    for x, trips in ((1.0, 5), (9.0, 2), (1.0, 5)):
        trace = of.trace(None, feeds(x))
        wanted = of.run(None, feeds(x))
        for got, want in zip(trace.outputs, wanted):
            np.testing.assert_array_equal(got, want)
        assert len(wanted[2]) == trips
        iterations = {span.name for span in trace.spans if span.name.startswith("up[")}
        assert {f"up[{i}]" for i in range(trips)} <= iterations
        assert trace.num_dropped == 0 and "spans on" in repr(trace)
    (y,) = of.trace(["output0"], feeds()).outputs
    assert y == of.run(["output0"], feeds())[0]


def test_spans_nest_and_begin_at_0():
    spans = session().trace(None, feeds()).spans
    assert min(span.start for span in spans) == 0
    for lane in {span.lane for span in spans}:
        around = []
        for span in [each for each in spans if each.lane == lane]:
            del around[span.depth :]
            for outer in around:
                assert outer.start <= span.start + 1e-3
                assert span.start + span.duration <= outer.start + outer.duration + 1e-3
            assert len(around) == span.depth
            around.append(span)


def test_a_trace_is_drawn_and_saved(tmp_path):
    trace = session().trace(None, feeds())
    root = xml.fromstring(trace._repr_svg_())
    titles = [each.text for each in root.iter() if each.tag.endswith("title")]
    assert len(titles) == len(trace.spans) and any("up[4]" in each for each in titles)
    trace.save(tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    empty = eddy.Trace('{"otherData": {"dropped_events": 0}, "traceEvents": []}', [])
    assert empty.spans == [] and xml.fromstring(empty.svg) is not None


def test_many_spans_are_drawn_by_the_longest():
    lines = [{"name": "thread_name", "ph": "M", "tid": 0, "args": {"name": "<lane>"}}]
    for i in range(9000):
        lines.append({"name": f"n[{i}]", "ph": "X", "tid": 0, "ts": float(i), "dur": 1.0})
    trace = eddy.Trace(json.dumps({"otherData": {"dropped_events": 3}, "traceEvents": lines}), [])
    assert trace.num_dropped == 3 and len(trace.spans) == 9000
    assert "3 older events dropped" in trace.svg and "3 older events dropped" in repr(trace)
    assert "the longest 4000 of 9000" in trace.svg and "&lt;lane&gt;" in trace.svg


def test_what_a_traced_run_raises_is_raised_and_the_next_is_right():
    of = session()
    with pytest.raises(eddy.Error, match="input 'table' is not given"):
        of.trace(None, {"x": 1.0})
    with pytest.raises(eddy.Error, match="in iteration 8"):
        of.trace(None, {"x": -100.0, "table": TABLE})
    assert of.trace(None, feeds()).outputs[0] == of.run(None, feeds())[0]


def test_what_can_be_streamed_is_said():
    of = session()
    assert [of.can_stream(each.name) for each in of.get_outputs()] == [False, False, True]
    with pytest.raises(eddy.Error, match="'output0' cannot be streamed.*'output2'"):
        list(of.stream("output0", feeds()))
