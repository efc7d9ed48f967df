#!/bin/bash
# Claim: gpu_bundle refuses what it cannot make before it builds anything; a bundle holds the program
# with the libraries that it needs but for the C library's, the scripts, the speech models that there
# is room for, and `run`; `run` needs nothing else, does every part, writes where it is told and says
# the worst that came.
set -u
tool="$(readlink -f tools/gpu_bundle)"
failures=0
fail() {
  echo "$*"
  failures=$((failures + 1))
}
expect() {  # CODE WORDS ARGUMENTS...
  local code="$1" words="$2"
  shift 2
  local said
  said="$("$tool" "$@" 2>&1)"
  local got=$?
  [[ $got == "$code" && "$said" == *"$words"* ]] ||
    fail "gpu_bundle $*: exit $got, expected $code; said: $said"
}
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/full" && touch "$folder/full/something"
expect 2 "a folder to make"
expect 2 "a folder to make" --help
expect 2 "a folder to make" a b
expect 2 "not an empty folder" "$folder/full"
expect 2 "not an empty folder" "$folder/full/something"
EDDY_CUDA=off expect 70 "builds no kernels" "$folder/none"
[[ ! -e "$folder/none" ]] || fail "a bundle without kernels is begun"

# A checkout whose report is built: a program that is linked with more than the C library.
checkout="$folder/checkout"
mkdir -p "$checkout/tools/gpu" "$checkout/.build/default"
cp "$tool" "$(readlink -f tools/lib.sh)" "$checkout/tools/"
cp -L tools/gpu/{*.py,*.md,sanitize,run,start,step,unpack} "$checkout/tools/gpu/"
touch "$checkout/WORKSPACE"
for program in gpu_report gpu_device_test; do
  cp -L tests/tools/fake_gpu_report "$checkout/.build/default/$program"
done
fresh() {
  sleep 0.1
  touch "$checkout/.build/default/"{gpu_report,gpu_device_test}.stamp
}
fresh
unset EDDY_CONFIG
export XDG_CACHE_HOME="$folder/cache"
mkdir -p "$folder/cache/eddy/models"
echo model >"$folder/cache/eddy/models/silero_vad-1.onnx"
truncate -s 61M "$folder/cache/eddy/models/moonshine_tiny_decoder-1.onnx"
tool="$checkout/tools/gpu_bundle"
KERNELS=no expect 70 "has no CUDA kernels" "$folder/bundle"
expect 0 "left out: Moonshine tiny, whose files are not in" "$folder/bundle"
rm -r "$folder/bundle"
echo model >"$folder/cache/eddy/models/moonshine_tiny_encoder-1.onnx"
expect 0 "no room" "$folder/bundle"
[[ ! -e "$folder/bundle/speech/moonshine_tiny_encoder-1.onnx" ]] || fail "half a model is in it"
rm -r "$folder/bundle"
truncate -s 61M "$checkout/tools/gpu/large.py"
fresh
expect 70 "would hold" "$folder/bundle"
rm "$checkout/tools/gpu/large.py"
fresh
[[ "$(echo "$folder"/bundle*)" == "$folder/bundle*" ]] || fail "what failed is left: $(echo "$folder"/bundle*)"
expect 0 "in it: Silero" "$folder/bundle"
moved="$folder/moved"
mv "$folder/bundle" "$moved"
[[ "$("$moved/gpu_report")" == "kernels yes"* ]] || fail "the program does not start"
for file in gpu_report gpu_device_test programs/gpu_report programs/gpu_device_test unpack step run sanitize rivals.py export_networks.py README.md HARDWARE.md; do
  [[ -s "$moved/$file" ]] || fail "the bundle lacks $file"
done
[[ -x "$moved/run" ]] || fail "run cannot be run"
[[ -s "$moved/speech/silero_vad-1.onnx" ]] || fail "the bundle lacks a speech model"
[[ ! -e "$moved/speech/moonshine_tiny_decoder-1.onnx" ]] || fail "a model that is too large is in it"
needed="$(ldd "$checkout/.build/default/gpu_report" | awk '$3 ~ /^\// { print $1 }')"
for library in $needed; do
  case "$library" in
    libc.so* | libm.so* | libdl.so*) [[ ! -e "$moved/programs/$library" ]] || fail "$library is not ours" ;;
    *) [[ -s "$moved/programs/$library" ]] || fail "the bundle lacks $library" ;;
  esac
done

# A program that was cut short while it was unpacked is unpacked anew; where that fails it says so.
rm "$moved/programs/gpu_report" && echo half >"$moved/programs/gpu_report.gz.1"
[[ "$("$moved/gpu_report")" == "kernels yes"* ]] || fail "what was cut short stays so"
rm "$moved/programs/gpu_report" && cp "$moved/programs/gpu_report.gz" "$folder/whole.gz"
head -c 1000 "$folder/whole.gz" >"$moved/programs/gpu_report.gz"
said="$("$moved/gpu_report" 2>&1)"
[[ $? == 70 && "$said" == *"cannot unpack"* && ! -e "$moved/programs/gpu_report" ]] ||
  fail "half a program is taken for one: $said"
cp "$folder/whole.gz" "$moved/programs/gpu_report.gz" && "$moved/gpu_report" >/dev/null

# The line for libraries of pip keeps what was found before.
line="$(sed -n 's/^    \(export LD_LIBRARY_PATH=.*\)/\1/p' "$moved/README.md")"
mkdir "$folder/fake" && printf '#!/bin/sh\necho /of/pip\n' >"$folder/fake/python3"
chmod +x "$folder/fake/python3"
for before in "" /of/driver; do
  after="$(PATH="$folder/fake:$PATH" LD_LIBRARY_PATH="$before" bash -c "$line; echo \"\$LD_LIBRARY_PATH\"")"
  [[ "$after" == "/of/pip${before:+:$before}" ]] || fail "README.md's line gives '$after'"
done
# Where libraries are looked for must hold for those that libraries need, too: RPATH, not RUNPATH.
for program in tools/gpu/gpu_report tests/runtime/cuda/gpu_device_test; do
  tags="$(readelf -d "$program")"
  [[ "$tags" == *"(RPATH)"*'$ORIGIN'* && "$tags" != *RUNPATH* ]] || fail "$program has no RPATH"
done

for program in run sanitize; do
  "$moved/$program" --help >/dev/null || fail "$program --help ends with $?"
  for arguments in "--halp" "a b"; do
    # shellcheck disable=SC2086
    (cd "$folder" && "$moved/$program" $arguments >/dev/null 2>&1)
    [[ $? == 2 ]] || fail "$program $arguments is not refused"
  done
done
[[ ! -e "$folder/--halp" && ! -e "$folder/a" ]] || fail "a folder is made of an option"

# As where there is no GPU: each part once, no probes, and nothing of Python's.
cat >"$moved/gpu_report" <<'REPORT'
#!/bin/bash
[[ "$1" == --part && "$2" == facts ]] && exit 4
[[ "$1" == --json && "$3" == --part ]] || exit 2
echo "$4" >"$2"
[[ "$4" != loops ]] || exit 1
exit 4
REPORT
mkdir "$folder/bin"
for program in bash dirname readlink mkdir timeout sed grep; do
  ln -s "$(command -v "$program")" "$folder/bin/$program"
done
(cd / && PATH="$folder/bin" "$moved/run" "$folder/results" >/dev/null)
got=$?
[[ $got == 4 ]] || fail "run ends with $got where every part but one ends with 4"
written="$(cd "$folder/results" && echo *)"
[[ "$written" == "bits.json conformance.json control.json driver.json facts.json hand.json libraries.json loops.json models.json speech.json table.json waiting.json" ]] ||
  fail "run writes $written"

# As where there is one: a part that has no time or no device left costs no probe its turn.
cat >"$moved/gpu_report" <<'REPORT'
#!/bin/bash
[[ "$LD_LIBRARY_PATH" == /where/cuda/is ]] || exit 2
[[ "$1" == --part && "$2" == facts ]] && exit 0
echo "$4" >"$2"
case "$4" in
  loops | conformance) exit 4 ;;
  control) exit 5 ;;
esac
REPORT
printf '#!/bin/bash\nexit 0\n' >"$moved/gpu_device_test"
(cd / && LD_LIBRARY_PATH=/where/cuda/is PATH="$folder/bin" "$moved/run" "$folder/with_gpu" >/dev/null)
got=$?
[[ $got == 4 ]] || fail "run ends with $got where one part has lost the device"
probes="$(cd "$folder/with_gpu" && echo probe_*.json | wc -w)"
[[ $probes == 16 ]] || fail "run makes $probes probes of 16"
drifts="$(cd "$folder/with_gpu" && echo drift_*.json | wc -w)"
[[ $drifts == 6 ]] || fail "run makes $drifts drifts of 6"
grep -q '"skipped": 1' "$folder/with_gpu/sanitize.json" || fail "no word of the sanitizer that is not there"
(PATH="$folder/bin" "$moved/sanitize" "$folder/unchecked" >/dev/null)
[[ $? == 6 ]] || fail "nothing was looked at, and sanitize is content"

# Where compute-sanitizer is: each tool on each program, what it finds is printed and fails the run.
cat >"$folder/bin/compute-sanitizer" <<'SANITIZER'
#!/bin/bash
echo "$*" >>"$SAID"
for ((i = 1; i <= $#; ++i)); do [[ "${!i}" != --log-file ]] || { ((++i)) && log="${!i}"; }; done
if [[ "$*" == *"--tool $FINDS "* ]]; then
  echo "========= Invalid __global__ read" >"$log"
  echo "========= ERROR SUMMARY: 3 errors" >>"$log"
  exit 86
fi
echo "========= ERROR SUMMARY: 0 errors" >"$log"
SANITIZER
chmod +x "$folder/bin/compute-sanitizer"
for finds in initcheck nothing; do
  said="$(SAID="$folder/said" FINDS="$finds" PATH="$folder/bin" "$moved/sanitize" "$folder/checked")"
  got=$?
  [[ $got == "$([[ $finds == nothing ]] && echo 0 || echo 1)" ]] || fail "sanitize ends with $got"
  [[ $finds == nothing || "$said" == *"initcheck"*"failed"*"Invalid __global__ read"* ]] ||
    fail "sanitize does not say what it found: $said"
done
[[ "$(grep -c -e "--part conformance" "$folder/said")" == 6 ]] || fail "not every tool ran: $(cat "$folder/said")"
grep -q -e "--tool memcheck.*--track-stream-ordered-races all" "$folder/said" || fail "no races of streams"
if command -v python3 >/dev/null; then
  python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["failed"] == 0' \
    "$folder/checked/sanitize.json" || fail "sanitize writes no JSON"
fi
exit "$((failures > 0))"
