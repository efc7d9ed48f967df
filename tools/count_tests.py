"""Sums up a `bazel test` run: what was skipped and why, then one line of counts.

Usage: count_tests.py EVENTS BAZEL_EXIT_CODE [EVENTS BAZEL_EXIT_CODE ...]

EVENTS is the file of --build_event_json_file; several runs are added up. Counted are test cases, as the test.xml of
each target lists them, and not targets: a GoogleTest target may skip one case of many, and
the reason is in the case. A target without test.xml cases (it did not compile, crashed or
ran out of time) counts as one failed test, so that nothing vanishes from the sum.
Exits with 0 only when nothing failed.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

BAZEL_OK = 0
BAZEL_TESTS_FAILED = 3
BAZEL_NO_TESTS = 4

NOT_BUILT = " (not built, or not run)"


class Counts:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []  # (name, reason)


def read_events(path):
    """Returns {label of a test target: {(shard, run): (status, test.xml or None)}}.

    A target that was asked for but has no result keeps an empty dictionary.
    """
    results = {}
    attempts = {}
    try:
        lines = open(path, encoding="utf-8").read().splitlines()
    except OSError:
        return results
    for line in lines:
        event = json.loads(line)
        name = event.get("id", {})
        if "targetConfigured" in name and "configured" in event:
            if "test rule" in event["configured"].get("targetKind", "") or event[
                "configured"
            ].get("testSize"):
                results.setdefault(name["targetConfigured"]["label"], {})
        elif "testResult" in name and "testResult" in event:
            key = name["testResult"]
            part = (key["label"], key.get("shard", 0), key.get("run", 0))
            if attempts.get(part, 0) > key.get("attempt", 0):
                continue
            attempts[part] = key.get("attempt", 0)
            result = event["testResult"]
            xml = None
            for output in result.get("testActionOutput", []):
                if output["name"] == "test.xml" and output["uri"].startswith("file://"):
                    xml = urllib.parse.unquote(output["uri"][len("file://") :])
            results.setdefault(key["label"], {})[part[1:]] = (result["status"], xml)
    return results


def count_part(label, status, xml, counts):
    """Adds the cases of one shard of one target."""
    failed_before = len(counts.failed)
    cases = []
    if xml:
        try:
            cases = list(ElementTree.parse(xml).getroot().iter("testcase"))
        except (ElementTree.ParseError, OSError):
            pass
    for case in cases:
        name = "%s %s.%s" % (label, case.get("classname", ""), case.get("name", ""))
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed.append(name)
        elif skipped is not None:
            text = skipped.get("message") or skipped.text or "no reason given"
            lines = [part.strip() for part in text.strip().splitlines() if part.strip()]
            # GoogleTest puts file:line before the reason.
            counts.skipped.append((name, lines[-1] if lines else "no reason given"))
        elif case.get("result") == "suppressed" or case.get("status") == "notrun":
            counts.skipped.append((name, "disabled in the source"))
        else:
            counts.passed += 1
    if status not in ("PASSED", "FLAKY") and len(counts.failed) == failed_before:
        counts.failed.append("%s (%s)" % (label, status.lower()))
    elif status in ("PASSED", "FLAKY") and not cases:
        counts.passed += 1


def count_run(events, exit_code, counts):
    for label, parts in sorted(read_events(events).items()):
        for _, (status, xml) in sorted(parts.items()):
            count_part(label, status, xml, counts)
        if not parts:
            counts.failed.append(label + NOT_BUILT)
    # What Bazel could not even load (a BUILD file with an error) left no event of its own.
    unexplained = not any(name.endswith(NOT_BUILT) for name in counts.failed)
    if exit_code not in (BAZEL_OK, BAZEL_TESTS_FAILED, BAZEL_NO_TESTS) and unexplained:
        counts.failed.append("the build (Bazel's exit code %d, see its errors)" % exit_code)


def main():
    counts = Counts()
    for events, exit_code in zip(sys.argv[1::2], sys.argv[2::2]):
        count_run(events, int(exit_code), counts)
    for name, reason in counts.skipped:
        print("skipped: %s: %s" % (name, reason))
    for name in counts.failed:
        print("failed: %s" % name)
    print(
        "%d passed, %d failed, %d skipped"
        % (counts.passed, len(counts.failed), len(counts.skipped))
    )
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
