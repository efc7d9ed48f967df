"""What ran when: the trace of a run, as data and as a picture."""

import json
from html import escape
from typing import Any, Dict, List, NamedTuple, Tuple

_WIDTH, _LEFT, _ROW = 960, 160, 18  # of a picture, in pixels
_MOST_DRAWN = 4000
_COLORS = ("#7fb3d5", "#a9d18e", "#f4b183", "#c9b2e0", "#f1d36b", "#9fd5d1")


class Span(NamedTuple):
    """One execution: where ("cpu stream 0"), of what ("decode[17]"), when and how long, in
    microseconds, and how many spans of its lane it lies in."""

    lane: str
    name: str
    start: float
    duration: float
    depth: int


class Trace:
    """What ran when in a run, lane by lane; a notebook draws it.

    outputs: those of the run. json: the whole, for Chrome's and Perfetto's viewers.
    """

    def __init__(self, text: str, outputs: List[Any]) -> None:
        self.json = text
        self.outputs = outputs
        self.spans, self.num_dropped = _read(json.loads(text))

    def save(self, path: Any) -> None:
        """Writes the JSON to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.json)

    def __repr__(self) -> str:
        lanes = len({span.lane for span in self.spans})
        lacks = f", {_dropped(self.num_dropped)}" if self.num_dropped else ""
        return f"<eddy.Trace of {len(self.spans)} spans on {lanes} lanes{lacks}>"

    @property
    def svg(self) -> str:
        """A lane below the other, time from left to right; names and times are in tooltips."""
        return _draw(self.spans, self.num_dropped)

    _repr_svg_ = svg.fget


def _read(trace: Dict[str, Any]) -> Tuple[List[Span], int]:
    lanes: Dict[int, str] = {}
    order: Dict[int, int] = {}
    for event in trace["traceEvents"]:
        if event["name"] == "thread_name":
            lanes[event["tid"]] = event["args"]["name"]
        elif event["name"] == "thread_sort_index":
            order[event["tid"]] = event["args"]["sort_index"]
    found = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    found.sort(key=lambda each: (order.get(each["tid"], 0), each["tid"], each["ts"], -each["dur"]))
    spans: List[Span] = []
    first = min((event["ts"] for event in found), default=0.0)
    lane, open_until = None, []  # type: Any, List[float]
    for event in found:
        if event["tid"] != lane:
            lane, open_until = event["tid"], []
        end = event["ts"] + event["dur"]
        while open_until and open_until[-1] < end - 1e-9:
            open_until.pop()
        start = event["ts"] - first
        spans.append(Span(lanes[lane], event["name"], start, event["dur"], len(open_until)))
        open_until.append(end)
    return spans, trace["otherData"]["dropped_events"]


def _dropped(count: int) -> str:
    return f"{count} older events dropped"


def _draw(spans: List[Span], num_dropped: int) -> str:
    end = max((span.start + span.duration for span in spans), default=0.0) or 1.0
    scale = (_WIDTH - _LEFT - 10) / end
    depths: Dict[str, int] = {}
    for span in spans:
        depths[span.lane] = max(depths.get(span.lane, 0), span.depth + 1)
    tops, height = {}, 24
    for lane, depth in depths.items():
        tops[lane] = height
        height += depth * _ROW + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="11">',
        f'<text x="{_LEFT}" y="14">0</text>',
        f'<text x="4" y="14">{_dropped(num_dropped)}</text>' if num_dropped else "",
        f'<text x="{_WIDTH - 10}" y="14" text-anchor="end">{end:.1f} µs</text>',
    ]
    for lane, top in tops.items():
        parts.append(f'<text x="4" y="{top + 12}">{escape(lane)}</text>')
    # The longest, where there are too many.
    drawn = sorted(spans, key=lambda span: -span.duration)[:_MOST_DRAWN]
    colors: Dict[str, str] = {}
    for span in sorted(drawn, key=lambda span: span.depth):
        color = colors.setdefault(span.name.split("[")[0], _COLORS[len(colors) % len(_COLORS)])
        x, width = _LEFT + span.start * scale, max(span.duration * scale, 0.5)
        y = tops[span.lane] + span.depth * _ROW
        title = f"{escape(span.name)}: {span.start:.2f} + {span.duration:.2f} µs"
        parts.append(
            f'<g><title>{title}</title><rect x="{x:.2f}" y="{y}" width="{width:.2f}" '
            f'height="{_ROW - 3}" fill="{color}" stroke="#555" stroke-width="0.3"/>'
        )
        if width > 7 * len(span.name):
            parts.append(f'<text x="{x + 3:.2f}" y="{y + 11}">{escape(span.name)}</text>')
        parts.append("</g>")
    if len(drawn) < len(spans):
        parts.append(f'<text x="4" y="14">the longest {len(drawn)} of {len(spans)}</text>')
    return "\n".join(parts) + "\n</svg>\n"
