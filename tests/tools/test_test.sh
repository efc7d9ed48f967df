#!/bin/bash
# Claim: tools/test without targets runs all tests, then the part that AddressSanitizer watches and
# the fuzz targets, and adds them up; with targets or a config, only those. Bazel is a fake here.
set -u
fails=0
root="$TEST_TMPDIR/checkout"
mkdir -p "$root/tools" "$TEST_TMPDIR/bin"
cp -L tools/test tools/lib.sh tools/count_tests.py "$root/tools/"
cat >"$root/tools/setup" <<'FAKE'
#!/bin/bash
[[ "$*" == *--fuzzer* && -n "${NO_CLANG:-}" ]] && exit 70
exit 0
FAKE
cat >"$TEST_TMPDIR/bin/bazel" <<'FAKE'
#!/bin/bash
[[ "$1" == info ]] && echo "$TEST_TMPDIR/testlogs" && exit
echo "$*" >>"$TEST_TMPDIR/calls"
for argument in "$@"; do
  [[ "$argument" == --build_event_json_file=* ]] && events="${argument#*=}"
done
echo '{"id":{"targetConfigured":{"label":"//a"}},"configured":{"testSize":"SMALL"}}' >"$events"
echo '{"id":{"testResult":{"label":"//a"}},"testResult":{"status":"'"${STATUS:-PASSED}"'"}}' >>"$events"
FAKE
chmod +x "$root/tools/setup" "$TEST_TMPDIR/bin/bazel"
mkdir -p "$TEST_TMPDIR/testlogs/tests/fuzz/a_fuzz_test"
echo "fuzz: a_fuzz (replay): 12 executions" >"$TEST_TMPDIR/testlogs/tests/fuzz/a_fuzz_test/test.log"

# expect WHAT CODE LINE CALLS ARGUMENTS...
expect() {
  local what="$1" code="$2" line="$3" calls="$4" said got
  shift 4
  : >"$TEST_TMPDIR/calls"
  said="$(PATH="$TEST_TMPDIR/bin:$PATH" "$root/tools/test" "$@" 2>/dev/null)"
  got=$?
  [[ $got == "$code" && "$(tail -1 <<<"$said")" == "$line" &&
    $(wc -l <"$TEST_TMPDIR/calls") == "$calls" ]] && return
  printf 'FAILED: %s: exit code %s, said:\n%s\nran:\n' "$what" "$got" "$said"
  cat "$TEST_TMPDIR/calls"
  fails=1
}
ran() { # ran WHAT LINE PATTERN
  sed -n "$2p" "$TEST_TMPDIR/calls" | grep -q -- "$3" && return
  printf 'FAILED: %s is not in line %s of:\n' "$1" "$2"
  cat "$TEST_TMPDIR/calls"
  fails=1
}

expect "everything" 0 "3 passed, 0 failed, 0 skipped" 3 --jobs=1
ran "all tests" 1 "--jobs=1 //\.\.\.$"
ran "what AddressSanitizer watches" 2 "--config=asan .*//tests/runtime/coroutine/"
ran "the fuzz targets" 3 "--config=fuzz .*--test_env=EDDY_FUZZ_SECONDS=30 //tests/fuzz/\.\.\.$"
NO_CLANG=1 expect "everything without clang" 0 "3 passed, 0 failed, 0 skipped" 3 --jobs=1
ran "the fuzz targets" 3 "--jobs=1 --local_test_jobs=2 .*//tests/fuzz/\.\.\.$"
PATH="$TEST_TMPDIR/bin:$PATH" "$root/tools/test" 2>/dev/null | grep -q "^fuzz: a_fuzz .*12 exec" ||
  { echo "FAILED: how often they ran"; fails=1; }
expect "one target" 0 "1 passed, 0 failed, 0 skipped" 1 //tests/graph/...
STATUS=FAILED expect "failures add up" 1 "0 passed, 3 failed, 0 skipped" 3
EDDY_TESTS_ONLY=1 expect "the tests only" 0 "1 passed, 0 failed, 0 skipped" 1
EDDY_CONFIG=ubsan expect "a config" 0 "1 passed, 0 failed, 0 skipped" 1
ran "the config" 1 "--config=ubsan"
exit $fails
