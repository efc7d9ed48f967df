#!/bin/bash
# fuzz.sh KIND BINARY CORPUS EXECUTIONS: runs a fuzz target over its corpus, and says how often.
# KIND replay: the corpus and EXECUTIONS changes of it, or with EDDY_FUZZ_SECONDS as many as fit.
# KIND libfuzzer (bazel --config=fuzz): libFuzzer for EDDY_FUZZ_SECONDS (60), starting from the
# corpus; what it finds stays in the test's outputs.
set -u
kind="$1" binary="$2" corpus="$3" executions="$4" log="$TEST_TMPDIR/log"
if [[ "$kind" == replay ]]; then
  "$binary" "$corpus" "$executions" 1 "${EDDY_FUZZ_SECONDS:-0}" 2>&1 | tee "$log"
else
  mkdir -p "$TEST_TMPDIR/new"
  # Leaks are looked for at the end: after each input, a thread that is inside malloc or free then
  # has the only pointer to what it is about to use or has just used, and would be said to leak it.
  "$binary" -max_total_time="${EDDY_FUZZ_SECONDS:-60}" -seed=1 -entropic=0 -detect_leaks=0 \
    -timeout=10 -rss_limit_mb=2048 -artifact_prefix="${TEST_UNDECLARED_OUTPUTS_DIR:-$TEST_TMPDIR}/" \
    -print_final_stats=1 "$TEST_TMPDIR/new" "$corpus" 2>&1 | tee "$log"
fi
result=${PIPESTATUS[0]}
count="$(sed -nE 's/^(stat::number_of_executed_units: +|[0-9]+ files and )([0-9]+).*/\2/p' "$log")"
echo "fuzz: ${binary##*/} ($kind): ${count:-unknown} executions, exit code $result"
exit "$result"
