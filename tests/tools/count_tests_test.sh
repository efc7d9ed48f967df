#!/bin/bash
# Claim: the closing line of tools/test loses no test: cases are counted from test.xml, and what
# has none (crashed, not built, not loaded) counts as failed.
set -u
fails=0
cd "$TEST_TMPDIR" || exit 1
count="$TEST_SRCDIR/$TEST_WORKSPACE/tools/count_tests.py"

# expect WHAT BAZEL_EXIT_CODE EXIT_CODE LINE, for ./events
expect() {
  local said code
  said="$(python3 "$count" events "$2")"
  code=$?
  [[ "$(tail -1 <<<"$said")" == "$4" && $code == "$3" ]] && return
  printf 'FAILED: %s: exit code %s, said:\n%s\n' "$1" "$code" "$said"
  fails=1
}
target() { # target LABEL
  echo '{"id":{"targetConfigured":{"label":"'"$1"'"}},"configured":{"targetKind":"cc_test rule","testSize":"SMALL"}}'
}
result() { # result LABEL STATUS XML [ATTEMPT]
  echo '{"id":{"testResult":{"label":"'"$1"'","run":1,"shard":1,"attempt":'"${4:-1}"'}},"testResult":{"status":"'"$2"'","testActionOutput":[{"name":"test.xml","uri":"file://'"$PWD/$3"'"}]}}'
}

cat >good.xml <<'XML'
<testsuites><testsuite><testcase name="A" classname="S" status="run" result="completed"/>
<testcase name="B" classname="S" status="run" result="skipped"><skipped message="x.cc:3&#x0A;no GPU"/></testcase>
<testcase name="C" classname="S" status="notrun" result="suppressed"/></testsuite></testsuites>
XML
cat >bad.xml <<'XML'
<testsuites><testsuite><testcase name="A" classname="S" status="run"/>
<testcase name="B" classname="S" status="run"><failure message="1 is not 2"/></testcase></testsuite></testsuites>
XML
echo '<not closed' >broken.xml

{ target //a; result //a PASSED good.xml; } >events
expect "cases are counted" 0 0 "1 passed, 0 failed, 2 skipped"
[[ "$(python3 "$count" events 0)" == *"//a S.B: no GPU"* ]] || { echo "FAILED: the reason"; fails=1; }

{ target //a; result //a PASSED good.xml; target //b; result //b FAILED bad.xml; } >events
expect "a failed case" 3 1 "2 passed, 1 failed, 2 skipped"

{ target //a; result //a FAILED good.xml; } >events
expect "failed after its last case" 3 1 "1 passed, 1 failed, 2 skipped"

{ target //a; result //a TIMEOUT broken.xml; } >events
expect "no readable test.xml" 3 1 "0 passed, 1 failed, 0 skipped"

{ target //a; result //a FAILED bad.xml 1; result //a FLAKY good.xml 2; } >events
expect "the last attempt counts" 0 0 "1 passed, 0 failed, 2 skipped"

{ target //a; result //a PASSED good.xml; target //b; } >events
expect "a target without result" 1 1 "1 passed, 1 failed, 2 skipped"

{ target //a; result //a PASSED good.xml; } >events
expect "something did not load" 1 1 "1 passed, 1 failed, 2 skipped"

{ target //a; result //a PASSED good.xml; } >events
cp events again
[[ "$(python3 "$count" events 0 again 0 | tail -1)" == "2 passed, 0 failed, 4 skipped" ]] ||
  { echo "FAILED: two runs are added up"; fails=1; }
python3 "$count" events 0 again 1 >/dev/null && { echo "FAILED: the second did not load"; fails=1; }

: >events
expect "nothing at all" 1 1 "0 passed, 1 failed, 0 skipped"
exit $fails
