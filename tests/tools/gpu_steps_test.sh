#!/bin/bash
# Claim: each step of half an hour is over in nine minutes whatever its parts do, packs what there is
# behind each part, says how each ended, and stops where no GPU runs the kernels; ingest.py makes a
# result file of what came back, be it cut, broken or hostile, or says in a line why it cannot.
set -u
failures=0
fail() {
  echo "$*"
  failures=$((failures + 1))
}
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bundle"
cp -L tools/gpu/step tools/gpu/ingest.py "$folder/bundle/"
step="$folder/bundle/step"
ingest="$folder/bundle/ingest.py"

# Every part is one of the report's, and a killed part needs five seconds more.
for n in 1 2 3 4; do
  seconds=0
  while read -r number _ limit _; do
    [[ "$number" != "$n" ]] || seconds=$((seconds + limit + 5))
  done < <("$step" --list)
  ((seconds > 60 && seconds <= 560)) || fail "step $n may take $seconds seconds"
done
known="$(tools/gpu/gpu_report --help)"
while read -r _ _ _ program option part _; do
  [[ "$program" != gpu_report || "$option" != --part || "$known" == *"  $part "* ]] ||
    fail "there is no part $part"
done < <("$step" --list)

for arguments in "" 0 5 --help "1 -x" "1 a b"; do
  # shellcheck disable=SC2086
  (cd "$folder" && "$step" $arguments >/dev/null 2>&1)
  [[ $? == 2 ]] || fail "step $arguments is not refused"
done

# A report whose parts pass, fail, hang or die.
cat >"$folder/bundle/gpu_report" <<'REPORT'
#!/bin/bash
[[ "$1" == --json && "$3" == --part ]] || exit 2
rows='{"name": "gpu", "what": "Fake | GPU", "status": "passed"}'
case "$4" in
  facts) [[ "${GPU:-yes}" == yes ]] || exit 4 ;;
  conformance) rows='{"op": "Add", "way": "own", "us": 1.25, "status": "failed", "reason": "off\nby one"}' ;;
  hand) kill -9 $$ ;;
esac
failed="$(grep -c '"failed"' <<<"$rows")"
echo "{\"part\": \"$4\", \"rows\": [$rows], \"failed\": $failed, \"complete\": true}" >"$2"
exit "$failed"
REPORT
printf '#!/bin/bash\nexit 0\n' >"$folder/bundle/gpu_device_test"
chmod +x "$folder/bundle/"{gpu_report,gpu_device_test}

(cd / && GPU=no "$step" 1 "$folder/none" >/dev/null)
[[ $? == 4 && "$(cat "$folder/none/codes")" == "facts: 4" ]] || fail "no GPU: $(cat "$folder/none/codes")"
[[ -s "$folder/none.tgz" ]] || fail "nothing is packed"

(cd / && "$step" 1 "$folder/out/" >/dev/null 2>&1)
[[ $? == 1 ]] || fail "a failed part is forgotten"
expected="facts: 0 gpu_device_test: 0 driver: 0 conformance: 1 hand: 137 bits: 0"
[[ "$(echo $(cat "$folder/out/codes"))" == "$expected" ]] || fail "codes: $(cat "$folder/out/codes")"
mkdir -p "$folder/out/networks/resnet50" && truncate -s 1M "$folder/out/networks/resnet50/model.onnx"
echo '{"cuda_graph_ms": 0.9}' >"$folder/out/networks/resnet50/rivals.json"
(cd / && "$step" 2 "$folder/out" >/dev/null)
[[ $? == 0 ]] || fail "step 2 ends with $?"
packed="$(tar -tzf "$folder/out.tgz")"
for file in facts.json conformance.txt codes control.json lost_host.json; do
  [[ "$packed" == *"out/$file"* ]] || fail "$file is not packed"
done
[[ "$packed" != *.onnx* ]] || fail "networks are packed"
[[ "$packed" == *out/networks/resnet50/rivals.json* ]] || fail "what PyTorch took is not packed"
[[ ! -e "$folder/out.tgz.part" ]] || fail "half an archive is left"

# What comes back, cut and broken in places.
echo '{"part": "loops", "rows": [' >"$folder/out/loops.json"
echo '[1]' >"$folder/out/waiting.json"
echo '{"part": "control", "rows": [{"case": "a", "us_per_round": 4.25}, 7], "failed": 0, "complete": false}' \
  >"$folder/out/control.json"
"$ingest" "$folder/out" "$folder/result.md" || fail "ingest ends with $?"
for words in "- gpu Fake / GPU" "| conformance | 1 rows, 1 failed; exit code 1 |" "| hand | no JSON; exit code 137 |" \
  "| control | 2 rows, 0 failed; cut short |" "| loops.json | not readable |" "| waiting.json | not readable |" \
  "answers: facts, gpu_device_test, driver, bits, lost_device, lost_host." "Did not come back: networks, libraries, models" \
  "| Add | own | 1.25 | failed | off by one |" "| a | 4.25 |"; do
  grep -qF -- "$words" "$folder/result.md" || fail "the result lacks: $words"
done
(($(wc -l <"$folder/result.md") < 100)) || fail "the result is long"
"$ingest" "$folder/out.tgz" "$folder/of_archive.md" || fail "of an archive: $?"
grep -qF -- "- gpu Fake / GPU" "$folder/of_archive.md" || fail "an archive lacks facts"

# A checkout: rows that are answered go, and figures of this run stand in place of earlier ones.
mkdir -p "$folder/tree/tools/gpu"
cp -L tools/gpu/peer_figures.h "$folder/tree/tools/gpu/"
cat >"$folder/tree/tools/gpu/HARDWARE.md" <<'ROWS'
| part, minutes | what it proves | expected; if not |
|---|---|---|
| `gpu_device_test`, 1 | kernels | passes |
| `driver`, 1 | rules | 0 failed |
| `bits`, 2 | loops | 0 failed |
| `control`, way `recording` | rounds | 2 µs |
| `lost --kind` device, host; 1 each | losses | exit 0 |
| `conformance`, 1 | each kernel | 0 failed |
| `hand` | loops by hand | beside ours |
| `drift --kind` persistent; 1 to 3 each | memory | no growth |
| `networks`, `rivals.py`, 45 | whole networks | 0.9 × |
ROWS
rm "$folder/out/control.json" "$folder/out/loops.json" "$folder/out/waiting.json"
cat >"$folder/out/table.json" <<'TABLE'
{"rows": [{"row": "scalar while", "rivals": [
  {"name": "by hand", "figure": 4.125, "measured": "in this run"},
  {"name": "JAX", "figure": 15, "most": 22, "measured": "earlier, not in this run"},
  {"name": "a new \" rival", "figure": 1, "measured": "in this run"},
  {"name": "a new rival", "figure": 5.5, "measured": "in this run"}]},
  {"row": "bert_base", "rivals": [{"name": "torch.compile", "figure": 1, "measured": "in this run"}]},
  {"row": "no such line", "rivals": [{"name": "JAX", "figure": 1, "measured": "in this run"}]}],
 "failed": 0, "complete": true, "gpu": {"model": "NVIDIA \"H100\" 80GB"}}
TABLE
said="$("$ingest" "$folder/out" "$folder/with_tree.md" "$folder/tree")" || fail "with a tree: $said"
[[ "$said" == *"4 rows deleted: gpu_device_test, 1; driver, 1; bits, 2; lost --kind device, host; 1 each"* ]] || fail "rows deleted: $said"
hardware="$folder/tree/tools/gpu/HARDWARE.md"
for row in '`gpu_device_test`' '`driver`' '`bits`' '`lost --kind`'; do
  grep -q "^| $row" "$hardware" && fail "the row $row is left"
done
for row in '`conformance`' '`hand`' '`control`, way `recording`' '`drift --kind`' '`networks`'; do
  grep -q "^| $row" "$hardware" || fail "the row $row is gone"
done
# Each row of today's table is one that a run can answer.
PYTHONPATH="$folder/bundle" python3 - tools/gpu/HARDWARE.md <<'KNOWN' || fail "rows of HARDWARE.md that no part answers"
import pathlib, sys
sys.dont_write_bytecode = True
import ingest
parts = set(ingest.PARTS) | {part for needed in ingest.NEEDED.values() for part in needed}
left, gone = ingest.without_answered(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), parts)
rows = [line for line in left.splitlines() if line.startswith("| `")]
print("".join(f"no part: {row}\n" for row in rows), end="")
sys.exit(bool(rows) or not gone)
KNOWN
expected="$(grep -c '  X(' tools/gpu/peer_figures.h)"
figures="$folder/tree/tools/gpu/peer_figures.h"
(($(grep -c '  X(' "$figures") == expected + 2)) || fail "other figures than two more: $(cat "$figures")"
grep -q '  X("scalar while", "by hand", 4.125, 4.125, "NVIDIA  H100  80GB 20[0-9-]*") \\$' "$figures" ||
  fail "the figure of this run is not there"
grep -q '  X("scalar while", "JAX", 14, 22, "H200 2026-11") \\$' "$figures" || fail "an earlier figure is changed"
printf '#include "%s"\n#define X(l, r, a, b, w) l r w, a + b,\nstruct F { const char* t; double n; };\n%s\n' "$figures" \
  'F all[] = {EDDY_PEER_FIGURES(X)}; int main() {}' >"$folder/figures.cc"
if command -v g++ >/dev/null; then
  g++ -fsyntax-only "$folder/figures.cc" || fail "the figures do not compile"
fi

refused() {  # CODE ARGUMENTS…
  local code="$1" said
  shift
  said="$("$ingest" "$@" 2>&1)"
  [[ $? == "$code" && "$(wc -l <<<"$said")" == 1 && "$said" == ingest.py:* ]] || fail "ingest $*: $said"
}
echo old >"$folder/old.md"
refused 2
refused 2 "$folder/out"
refused 2 "$folder/out" "$folder/old.md"
[[ "$(cat "$folder/old.md")" == old ]] || fail "a result is overwritten"
refused 70 "$folder/nowhere" "$folder/new.md"
refused 70 "$folder/out" "$folder/no_tree.md" "$folder/empty_tree"
refused 70 "$folder/old.md" "$folder/new.md"
head -c 200 "$folder/out.tgz" >"$folder/cut.tgz"
refused 70 "$folder/cut.tgz" "$folder/new.md"
mkdir "$folder/empty"
refused 1 "$folder/empty" "$folder/new.md"
[[ ! -e "$folder/new.md" ]] || fail "half a result is written"

# Names that lead out of the archive, links, and a table's own characters.
python3 - "$folder/hostile.tgz" <<'HOSTILE'
import io, json, sys, tarfile
with tarfile.open(sys.argv[1], "w:gz") as archive:
    def add(name, text, kind=tarfile.REGTYPE):
        member = tarfile.TarInfo(name)
        member.type, member.size, member.linkname = kind, len(text), "/etc/passwd"
        archive.addfile(member, io.BytesIO(text))
    add("../facts.json", b'{"rows": [{"name": "outside"}]}')
    add("/hand.json", b'{"rows": [{"name": "outside"}]}')
    add("bits.json", b"", tarfile.SYMTYPE)
    row = {"case": "a|b\n\x1b[31m" + "x" * 1000, "status": "passed"}
    add("models.json", json.dumps({"rows": [row], "failed": 0, "complete": True}).encode())
HOSTILE
"$ingest" "$folder/hostile.tgz" "$folder/hostile.md" || fail "a hostile archive: $?"
grep -q "outside\|root:\|$(printf '\033')" "$folder/hostile.md" && fail "what is hostile comes through"
grep -qF "| a/b" "$folder/hostile.md" || fail "its one sound part is lost"
exit "$((failures > 0))"
