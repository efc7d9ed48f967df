#!/usr/bin/env python3
"""ingest.py RETURNED FILE [TREE]: what came back from a GPU (the folder or the .tgz of `step` or `run`)
as one result file for tests/bench/results: the machine, each part with its rows, what failed and why,
what did not come back, and which rows of HARDWARE.md are answered.

With TREE, a checkout: these rows are deleted from its tools/gpu/HARDWARE.md, and the rivals that the
table says were measured in this run replace their figures in its tools/gpu/peer_figures.h. A row goes
when all parts that it names came back whole and nothing in them has failed.

RETURNED is not changed, and nothing in it is run or trusted: members of an archive that would be
written elsewhere are refused, text is cut and cleaned of what a table cannot hold. FILE must not
exist; it is written at the end, or not at all. Exit codes: 0; 1 there is no part's JSON in it; 2 wrong
arguments; 70 a file cannot be read or written.
"""
import datetime
import json
import math
import pathlib
import re
import sys
import tarfile

# Parts in HARDWARE.md's order, with the columns that their rows are compared by.
PARTS = ["facts", "gpu_device_test", "driver", "conformance", "hand", "bits", "control", "loops", "waiting",
         "lost_device", "lost_host", "networks", "libraries", "models", "probe", "drift", "speech",
         "sanitize", "rivals", "table"]
MOST_BYTES = 32 << 20  # of a file that is read
MOST_TEXT = 160  # of a cell
MOST_COLUMNS = 16  # of a table whose rows have them in common
FIRST = ["question", "case", "name", "op", "type", "size", "loops", "kernels", "way"]
LAST = ["status", "reason"]
LEFT_OUT = {"placement", "asks"}
DRIFTS = ["persistent", "unrolled", "recording", "nested", "merged", "host-driven"]
# What a row of HARDWARE.md needs, where it is not the part of its name.
NEEDED = {"lost --kind": ["lost_device", "lost_host"],
          "drift --kind": ["drift_" + kind for kind in DRIFTS],
          "probe": ["probe_4_loops_of_3", "probe_8_loops_of_3"],
          "rivals.py": ["rivals"]}
NO_JSON = {"gpu_device_test"}  # a test: its exit code is its answer


class Returned:
    """Files by name, of a folder or an archive."""

    def __init__(self, path):
        self.files = {}
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.is_file() and not file.is_symlink():
                    self.take(file.relative_to(path).as_posix(), file.stat().st_size, file.read_bytes)
            return
        with tarfile.open(path) as archive:
            for member in archive:
                name = pathlib.PurePosixPath(member.name)
                if not member.isfile() or name.is_absolute() or ".." in name.parts:
                    continue
                self.take(name.as_posix(), member.size,
                          lambda member=member: archive.extractfile(member).read())

    def take(self, name, size, read):
        if "networks" in name.split("/")[:-1]:  # rivals.json of each: the table has read them
            return
        if name.endswith((".json", ".txt")) or name.split("/")[-1] == "codes":
            if size <= MOST_BYTES:
                self.files[name.split("/")[-1]] = read().decode("utf-8", "replace")


def cell(value):
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = "".join(c if c.isprintable() else " " for c in text).replace("|", "/").strip()
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT - 1] + "…"


def columns_of(rows):
    seen = []
    for row in rows:
        seen += [key for key in row if key not in seen and key not in LEFT_OUT]
    middle = [key for key in seen if key not in FIRST and key not in LAST]
    return ([key for key in FIRST if key in seen] + middle + [key for key in LAST if key in seen])


def with_answers(rows, columns):
    """Rows that have little in common, as questions have: what is one's own is in one column."""
    common = [key for key in columns if key in FIRST or key in LAST]
    own = [key for key in columns if key not in common]
    merged = []
    for row in rows:
        answer = "; ".join(f"{key} {cell(row[key])}" for key in own if key in row)
        merged.append({**{key: row[key] for key in common if key in row}, "answer": answer})
    return merged, [*(key for key in common if key in FIRST), "answer",
                    *(key for key in common if key in LAST)]


def table_of(rows):
    rows = [row for row in rows if isinstance(row, dict)]
    columns = columns_of(rows)
    if len(columns) > MOST_COLUMNS:
        rows, columns = with_answers(rows, columns)
    if not columns:
        return []
    lines = ["| " + " | ".join(cell(column) for column in columns) + " |",
             "|" + "---|" * len(columns)]
    for row in rows:
        lines.append("| " + " | ".join(cell(row.get(column, "")) for column in columns) + " |")
    return lines


def read_reports(files):
    """{part: report}, and the names of files that are no part's JSON."""
    reports, unreadable = {}, []
    for name, text in sorted(files.items()):
        if not name.endswith(".json"):
            continue
        try:
            report = json.loads(text)
            if not isinstance(report, dict) or not isinstance(report.get("rows"), list):
                raise ValueError("no rows")
        except ValueError:
            unreadable.append(name)
            continue
        reports[name[:-len(".json")]] = report
    return reports, unreadable


def read_codes(text):
    """{part: exit code}; the last of each counts."""
    codes = {}
    for line in text.splitlines():
        name, _, code = line.partition(":")
        if code.strip().lstrip("-").isdigit():
            codes[name.strip()] = int(code)
    return codes


def is_answered(report, code):
    """All of it ran, and nothing failed."""
    is_whole = report.get("complete") is True and "out_of_time" not in report
    return is_whole and report.get("failed") == 0 and "error" not in report and code in (0, None)


def place(part):
    """Sorts by the order of PARTS, kinds and probes beside each other."""
    for index, known in enumerate(PARTS):
        if part == known or part.startswith(known + "_"):
            return index, part
    return len(PARTS), part


def verdict(report, code):
    words = [f"{len(report['rows'])} rows, {report.get('failed', 0)} failed"]
    words += [f"{report[key]} {key}" for key in ("skipped", "short") if report.get(key)]
    if report.get("complete") is not True:
        words.append("cut short")
    if "out_of_time" in report:
        words.append("out of time " + cell(report["out_of_time"]))
    if "error" in report:
        words.append("ended by: " + cell(report["error"]))
    if code not in (0, None):
        words.append(f"exit code {code}")
    return "; ".join(words)


def text_of(files, today):
    reports, unreadable = read_reports(files)
    if not reports:
        return None
    codes = read_codes(files.get("codes", ""))
    parts = sorted(reports, key=place)
    lines = [f"# A GPU's report, {today}", ""]
    facts = reports.get("facts", {}).get("rows", [])
    lines += [f"- {cell(' '.join(str(v) for k, v in row.items() if k != 'status'))}"
              for row in facts if isinstance(row, dict)] or ["The machine is not told: no facts came back."]
    lines += ["", "| part | what came |", "|---|---|"]
    lines += [f"| {cell(part)} | {verdict(reports[part], codes.get(part))} |" for part in parts]
    lines += [f"| {cell(name)} | no JSON; exit code {code} |"
              for name, code in codes.items() if name not in reports]
    lines += [f"| {cell(name)} | not readable |" for name in unreadable]
    came = {place(part)[0] for part in [*reports, *codes]}
    missing = [part for index, part in enumerate(PARTS) if index not in came]
    answered = sorted(answered_parts(files), key=place)
    lines += ["", "Rows of `tools/gpu/HARDWARE.md` that this answers: " + (", ".join(answered) or "none") + ".",
              "Did not come back: " + (", ".join(missing) or "nothing") + ".", ""]
    for part in parts:
        if part != "facts" and reports[part]["rows"]:
            lines += [f"## {cell(part)}", "", *table_of(reports[part]["rows"]), ""]
    return "\n".join(lines).rstrip() + "\n"


def answered_parts(files):
    reports, _ = read_reports(files)
    codes = read_codes(files.get("codes", ""))
    return ({part for part in reports if is_answered(reports[part], codes.get(part))} |
            {part for part in NO_JSON if codes.get(part) == 0})


def without_answered(hardware, answered):
    """The text without the rows of its table that are answered, and their names."""
    kept, gone = [], []
    for line in hardware.splitlines(keepends=True):
        # "| `control`, way `recording` | ..." needs control, "| `networks`, `rivals.py`, 45 | ..." both.
        first = line.split("|")[1].strip() if line.startswith("| `") else ""
        names = re.findall(r"`([^`]+)`", first.split(", way ")[0])
        needed = [part for name in names for part in NEEDED.get(name, [name])]
        if needed and all(part in answered for part in needed):
            gone.append(first.replace("`", ""))
        else:
            kept.append(line)
    return "".join(kept), gone


def measured_now(files):
    """{(line, rival): figure} of the table's rivals that this run has measured."""
    reports, _ = read_reports(files)
    found = {}
    for row in reports.get("table", {}).get("rows", []):
        rivals = row.get("rivals") if isinstance(row, dict) else None
        for rival in rivals if isinstance(rivals, list) else []:
            if not isinstance(rival, dict) or rival.get("measured") != "in this run":
                continue
            names, figure = (row.get("row"), rival.get("name")), rival.get("figure")
            is_number = isinstance(figure, (int, float)) and math.isfinite(figure) and figure > 0
            if is_number and all(isinstance(n, str) and re.fullmatch(r"[\w ,.'/-]+", n) for n in names):
                found[names] = figure
    return found


def place_of(files, today):
    """"H200 2026-11": the GPU's name as the parts have it, and the day."""
    reports, _ = read_reports(files)
    for report in reports.values():
        model = report["gpu"].get("model") if isinstance(report.get("gpu"), dict) else None
        if isinstance(model, str):
            return re.sub(r"[^\w .-]", " ", model)[:40].strip() + " " + today
    return "a GPU " + today


def with_figures(header, measured, place):
    """The text of peer_figures.h with these figures; of lines that it has, also new rivals."""
    lines, left = [], dict(measured)
    at_end = {}  # of each line of the table: the index behind its last rival
    for text in header.splitlines():
        match = re.match(r'  X\("([^"]*)", "([^"]*)", ', text)
        names = match.groups() if match else None
        if names in left:
            text = figure_line(names, left.pop(names), place) + (" \\" if text.endswith("\\") else "")
        lines.append(text)
        if names:
            at_end[names[0]] = len(lines)
    added = [(at_end[names[0]], names) for names in left if names[0] in at_end]
    for index, names in sorted(added, reverse=True):
        is_last = not lines[index - 1].endswith("\\")
        lines[index - 1] = lines[index - 1].removesuffix(" \\") + " \\"
        lines.insert(index, figure_line(names, left[names], place) + ("" if is_last else " \\"))
    return "\n".join(lines) + "\n"


def figure_line(names, figure, place):
    return f'  X("{names[0]}", "{names[1]}", {figure:.4g}, {figure:.4g}, "{place}")'


def change_tree(tree, files, today):
    """Both files are written when both are made; what has been done, in lines."""
    hardware, figures = tree / "tools/gpu/HARDWARE.md", tree / "tools/gpu/peer_figures.h"
    text, gone = without_answered(hardware.read_text(encoding="utf-8"), answered_parts(files))
    measured = measured_now(files)
    header = with_figures(figures.read_text(encoding="utf-8"), measured, place_of(files, today))
    for file, new in ((hardware, text), (figures, header)):
        part = file.with_name(file.name + ".part")
        part.write_text(new, encoding="utf-8")
        part.rename(file)
    return [f"{hardware}: {len(gone)} rows deleted" + (": " + "; ".join(gone) if gone else ""),
            f"{figures}: {len(measured)} figures of this run"]


def main(arguments):
    if len(arguments) not in (2, 3) or any(argument.startswith("-") for argument in arguments):
        print("ingest.py: use ingest.py RETURNED FILE [TREE], a folder or .tgz, a file to write, and a "
              "checkout to change", file=sys.stderr)
        return 2
    source, target = map(pathlib.Path, arguments[:2])
    tree = pathlib.Path(arguments[2]) if len(arguments) == 3 else None
    if target.exists():
        print(f"ingest.py: {target} exists; name another file", file=sys.stderr)
        return 2
    today = datetime.date.today().isoformat()
    try:
        files = Returned(source).files
        text = text_of(files, today)
        if text is None:
            print(f"ingest.py: {source} holds no part's JSON", file=sys.stderr)
            return 1
        part = target.with_name(target.name + ".part")
        part.write_text(text, encoding="utf-8")
        part.rename(target)
        for line in change_tree(tree, files, today) if tree is not None else []:
            print(line)
    except (OSError, EOFError, tarfile.TarError) as error:
        print(f"ingest.py: {source} or {target}: {cell(error)}", file=sys.stderr)
        return 70
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
