"""Errors: what failed, where in the graph, and where in the program that built it."""

import enum
from typing import List, NamedTuple, Optional, Tuple


class Code(enum.IntEnum):
    """Why a call failed. The numbers are those of eddy.h and never change."""

    INVALID_ARGUMENT = 1
    NOT_FOUND = 2
    UNSUPPORTED = 3
    RESOURCE_EXHAUSTED = 4
    RUN_FAILED = 5
    CANCELLED = 6
    DEADLINE_EXCEEDED = 7
    DEVICE_LOST = 8
    WOULD_DEADLOCK = 9
    INTERNAL = 10
    INVALID_HANDLE = 11
    INVALID_STATE = 12


class Location(NamedTuple):
    """A place in the program that built the graph."""

    file: str
    line: int
    column: int
    text: str


class Part(NamedTuple):
    """One step of the way to a node: a loop, a branch, the node itself."""

    kind: str  # "node", "loop" or "region"
    name: str
    iteration: Optional[int]


class Error(RuntimeError):
    """A failure of Eddy's. str() is one line with the place and the path.

    code: why, a Code; reason: the line without place and path; path: Parts, outermost first;
    location: the place in the program that built the graph, or None.
    """

    code: Code
    reason: str
    path: List[Part]
    location: Optional[Location]

    def __init__(
        self,
        code: int,
        message: str,
        reason: Optional[str] = None,
        path: Tuple = (),
        location: Optional[Tuple] = None,
    ) -> None:
        super().__init__(message)
        self.code = Code(code)
        self.reason = message if reason is None else reason
        kinds = ("node", "loop", "region")
        self.path = [
            Part(kinds[kind], name, iteration if iteration >= 0 else None)
            for kind, name, iteration in path
        ]
        self.location = None if location is None else Location(*location)

    def __reduce__(self):
        path = [
            (
                ("node", "loop", "region").index(part.kind),
                part.name,
                -1 if part.iteration is None else part.iteration,
            )
            for part in self.path
        ]
        location = None if self.location is None else tuple(self.location)
        return Error, (int(self.code), str(self), self.reason, path, location)
