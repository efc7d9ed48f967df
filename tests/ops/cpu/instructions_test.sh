#!/bin/bash
# Claim: operators are right where the processor has no AVX-512, and where it has no AVX2 either.
# Runs the tests of its arguments with those instructions left out (ops/cpu/isa, and oneDNN's own).
set -u
failures=0
# run LIMIT ONEDNN'S TEST...
run() {
  local limit="$1" library="$2" program
  shift 2
  for program in "$@"; do
    if EDDY_INSTRUCTIONS="$limit" ONEDNN_MAX_CPU_ISA="$library" "$program" >"$TEST_TMPDIR/log" 2>&1
    then
      echo "ok: $program with $limit"
    else
      echo "FAILED: $program with $limit"
      tail -n 40 "$TEST_TMPDIR/log"
      failures=$((failures + 1))
    fi
  done
}
[ $# -gt 0 ] || { echo "FAILED: no tests given" && exit 1; }
run baseline SSE41 "$@"
run avx2 AVX2 "$@"
exit $((failures > 0))
