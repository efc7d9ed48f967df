#!/bin/bash
# Claim: tools/matrix passes only if each kind's canaries ran and were heard and no test failed; it
# says what failed and what took long. tools/test is a fake here.
set -u
fails=0
root="$TEST_TMPDIR/checkout"
mkdir -p "$root/tools"
cp -L tools/matrix tools/lib.sh "$root/tools/"
cat >"$root/tools/test" <<'FAKE'
#!/bin/bash
echo "$EDDY_CONFIG $*" >>"$TEST_TMPDIR/calls"
if [[ "$*" == *canary* ]]; then
  [[ "$EDDY_CONFIG" == "${DEAF:-}" ]] && echo "skipped: //c Canary.A: needs the $EDDY_CONFIG config"
  echo "skipped: //c Canary.B: needs the other config"
  echo "4 passed, 0 failed, 2 skipped"
  exit 0
fi
echo "//tests/quick:a_test      PASSED in 0.1s" >&2
echo "//tests/slow:b_test       (cached) PASSED in 31.5s" >&2
if [[ "$EDDY_CONFIG" == "${BROKEN:-}" ]]; then
  echo "failed: //tests/slow:b_test S.A"
  echo "6 passed, 1 failed, 0 skipped"
  exit 1
fi
echo "7 passed, 0 failed, 0 skipped"
FAKE
chmod +x "$root/tools/test"

# expect WHAT CODE WORDS ARGUMENTS...
expect() {
  local what="$1" code="$2" words="$3" got
  shift 3
  rm -f "$TEST_TMPDIR/calls"
  said="$("$root/tools/matrix" "$@" 2>&1)"
  got=$?
  [[ $got == "$code" && "$said" == *"$words"* ]] && return
  printf 'FAILED: %s: exit code %s, said:\n%s\n' "$what" "$got" "$said"
  fails=1
}
calls() { # calls WHAT EXPECTED
  local got
  got="$(cut -d' ' -f1 "$TEST_TMPDIR/calls" | tr '\n' ' ')"
  [[ "$got" == "$2" ]] && return
  echo "FAILED: $1: ran '$got', expected '$2'"
  fails=1
}

expect "all is well" 0 "ok: 7 passed, 0 failed, 0 skipped"
calls "every kind, its canaries and its tests" "asan_ubsan asan_ubsan tsan tsan fuzz "
expect "slow tests are named" 0 "31.5 s  //tests/slow:b_test" asan
export BROKEN=asan_ubsan
expect "a failed test" 1 "failed: //tests/slow:b_test S.A"
expect "the others count too" 0 "ok: 7 passed" tsan
unset BROKEN
export DEAF=tsan
expect "canaries that were skipped" 1 "its canaries are silent"
calls "nothing is run behind them" "asan_ubsan asan_ubsan tsan fuzz "
unset DEAF
expect "the fuzz targets" 0 "fuzz" fuzz -- --jobs=1 //tests/graph/...
grep -q "^fuzz .*--jobs=1 //tests/fuzz/...$" "$TEST_TMPDIR/calls" ||
  { echo "FAILED: fuzz takes options, not targets"; fails=1; }
expect "an unknown kind" 2 "usage: tools/matrix" msan
expect "the part that CI runs" 0 "ok: 7 passed" --part
grep -q "^asan .*//tests/runtime/coroutine/" "$TEST_TMPDIR/calls" ||
  { echo "FAILED: the part's rooms"; fails=1; }
expect "arguments are passed on" 0 "ok" ubsan -- --jobs=1 //tests/graph/...
grep -q "^ubsan .*--jobs=1 //tests/graph/...$" "$TEST_TMPDIR/calls" ||
  { echo "FAILED: arguments"; fails=1; }
exit $fails
