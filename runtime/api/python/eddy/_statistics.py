"""What a session counts."""

from typing import Dict, NamedTuple


class OperatorTime(NamedTuple):
    """Of all nodes of one operator, in all runs of a session."""

    calls: int
    seconds: float


class Statistics(NamedTuple):
    """What a session counts. Runs in flight and waiting, and memory_bytes, are now's; iterations
    are those of all loops in runs that have ended; operators are timed with option
    time_operators."""

    runs_succeeded: int
    runs_failed: int
    runs_cancelled: int
    runs_late: int
    runs_in_flight: int
    runs_waiting: int
    iterations: int
    memory_bytes: int
    memory_peak_bytes: int
    plan_seconds: float
    operators: Dict[str, OperatorTime]
