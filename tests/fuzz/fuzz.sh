#!/bin/bash
# fuzz.sh KIND BINARY CORPUS EXECUTIONS: runs a fuzz target over its corpus.
# KIND replay: the corpus and EXECUTIONS changes of it. KIND libfuzzer (bazel --config=fuzz): libFuzzer
# for EDDY_FUZZ_SECONDS (60), starting from the corpus; what it finds stays in the test's outputs.
set -eu
kind="$1" binary="$2" corpus="$3" executions="$4"
if [[ "$kind" == replay ]]; then
  exec "$binary" "$corpus" "$executions"
fi
found="${TEST_UNDECLARED_OUTPUTS_DIR:-$TEST_TMPDIR}/"
mkdir -p "$TEST_TMPDIR/new"
exec "$binary" -max_total_time="${EDDY_FUZZ_SECONDS:-60}" -seed=1 -timeout=10 -rss_limit_mb=2048 \
  -artifact_prefix="$found" -print_final_stats=1 "$TEST_TMPDIR/new" "$corpus"
