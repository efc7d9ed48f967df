#!/bin/bash
# Claim: eddy_dsl whose output is lost ends at once with exit code 4 and says so: a program, its
# plan, rows of a loop that would go on, a dialogue; and a dialogue reads a long piece in linear
# time.
#
# lost_output_test.sh PROGRAM
set -u
text="$(mktemp)"
trap 'rm -f "$text"' EXIT
failed=0

# lost INPUT [ARGUMENT ...]
lost() {
  local input="$1"
  shift
  said="$(timeout 60 "$program" "$@" <"$input" 2>&1 >/dev/full)"
  code=$?
  if ((code != 4)) || [[ "$said" != "eddy_dsl: the output is lost: No space left on device" ]]; then
    echo "eddy_dsl $* <$input: it ended with $code: $said"
    failed=1
  fi
}

program="$1"
echo "print 1" >"$text"
lost /dev/null "$text"
lost /dev/null --plan "$text"
lost "$text"
echo "let i = 0 let r = while i < 10000000000 { i = i + 1 yield i } stream r" >"$text"
lost /dev/null "$text"

{
  echo "let a = ["
  yes "1," | head -n 100000
  echo "] rows(a)"
} >"$text"
said="$(timeout 60 "$program" <"$text" 2>&1)"
if [[ "$said" != "rows(a) = 100000" ]]; then
  echo "100,000 lines: $said"
  failed=1
fi
exit $failed
