"""Prints how many lines and branches of our rooms a test run has reached.

Usage: coverage.py OBJECTS [PREFIX...]

OBJECTS is a folder with what gcc's --coverage leaves (.gcno from compiling, .gcda from running),
PREFIX names sources to count (default: graph/ runtime/). A line of a header counts as reached if
it was in any file that includes it. Branches that only an exception takes are not counted.
Exits with 1 when there is nothing to count.
"""

import collections
import json
import os
import subprocess
import sys

NUM_WORST = 15
BATCH = 50


def find_notes(folder):
    for path, _, names in os.walk(os.path.realpath(folder)):
        for name in sorted(names):
            if name.endswith(".gcno"):
                yield os.path.join(path, name)


def read_reports(notes):
    """Yields gcov's JSON document of each .gcno file."""
    for first in range(0, len(notes), BATCH):
        said = subprocess.run(
            ["gcov", "--json-format", "--stdout", "--branch-probabilities"]
            + notes[first : first + BATCH],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        ).stdout
        for line in said.decode("utf-8").splitlines():
            if line.startswith("{"):
                yield json.loads(line)


def merge(reports, prefixes):
    """Returns {source: ({line: count}, {(line, branch): count})}."""
    sources = collections.defaultdict(
        lambda: (collections.Counter(), collections.Counter())
    )
    for report in reports:
        for entry in report["files"]:
            if not entry["file"].startswith(prefixes):
                continue
            lines, branches = sources[entry["file"]]
            for line in entry["lines"]:
                number = line["line_number"]
                lines[number] += line["count"]
                for at, branch in enumerate(line["branches"]):
                    if not branch["throw"]:
                        branches[number, at] += branch["count"]
    return sources


def reached(counts):
    return sum(count > 0 for count in counts.values())


def share(part, whole):
    return "%5.1f %%" % (100.0 * part / whole) if whole else "      -"


def print_table(sources):
    rooms = collections.defaultdict(lambda: [0, 0, 0, 0])
    for source, (lines, branches) in sources.items():
        room = os.path.dirname(source)
        for name in {room, room.split("/")[0] + " (all)", "(all)"}:
            numbers = (reached(lines), len(lines), reached(branches), len(branches))
            rooms[name] = [a + b for a, b in zip(rooms[name], numbers)]
    print("%-28s %17s %8s %17s" % ("room", "lines", "", "branches"))
    for name, (lines, all_lines, branches, all_branches) in sorted(rooms.items()):
        print(
            "%-28s %7d of %6d %s %7d of %6d %s"
            % (name, lines, all_lines, share(lines, all_lines), branches, all_branches,
               share(branches, all_branches))
        )  # fmt: skip
    print("\nmost lines not reached:")
    missed = sorted(
        ((len(lines) - reached(lines), source) for source, (lines, _) in sources.items()),
        reverse=True,
    )
    for count, source in missed[:NUM_WORST]:
        lines = sources[source][0]
        print("%6d of %5d  %s" % (count, len(lines), source))


def main():
    prefixes = tuple(sys.argv[2:]) or ("graph/", "runtime/")
    sources = merge(read_reports(list(find_notes(sys.argv[1]))), prefixes)
    if not sources:
        print("no notes of gcc's --coverage below %s" % sys.argv[1], file=sys.stderr)
        return 1
    print_table(sources)
    return 0


if __name__ == "__main__":
    sys.exit(main())
