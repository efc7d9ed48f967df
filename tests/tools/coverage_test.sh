#!/bin/bash
# Claim: coverage.py counts the lines and branches that a run has reached, those of a header once,
# and only in the rooms asked for.
set -u
unset GCOV_PREFIX GCOV_PREFIX_STRIP  # of tools/coverage, where that runs this test
fails=0
coverage="$TEST_SRCDIR/$TEST_WORKSPACE/tools/coverage.py"
cd "$TEST_TMPDIR" || exit 1
mkdir -p graph/ir other objects
printf 'inline int twice(int x) {\n  return 2 * x;\n}\n' >graph/ir/twice.h
cat >graph/ir/a.cc <<'SOURCE'
#include "graph/ir/twice.h"
int size(int x) {
  if (x > 3) {
    return twice(x);
  }
  return x;
}
int never() {
  return 1;
}
SOURCE
printf '#include "graph/ir/twice.h"\nint size(int x);\nint main() {\n  return size(1) + twice(0) - 1;\n}\n' \
  >other/main.cc
for name in graph/ir/a other/main; do
  g++ -O0 --coverage -I. -c "$name.cc" -o "objects/${name##*/}.o" || exit 1
done
g++ --coverage objects/*.o -o program || exit 1

expect() { # expect WHAT WORDS
  [[ "$(tr -s ' ' <<<"$said")" == *"$2"* ]] && return
  printf 'FAILED: %s: expected "%s", said:\n%s\n' "$1" "$2" "$said"
  fails=1
}
said="$(python3 "$coverage" objects)"
expect "nothing has run" "graph/ir 0 of 8 0.0 % 0 of 2 0.0 %"
./program || exit 1
said="$(python3 "$coverage" objects)"
expect "lines, one of the header's from another file" "graph/ir 5 of 8 62.5 % 1 of 2 50.0 %"
expect "the worst file" "3 of 6 graph/ir/a.cc"
[[ "$said" != *other/main.cc* ]] || { echo "FAILED: another room was counted"; fails=1; }
said="$(python3 "$coverage" objects other/)"
expect "a room asked for" "other 2 of 2 100.0 %"
mkdir empty
said="$(python3 "$coverage" empty 2>&1)" && { echo "FAILED: nothing to count is an error"; fails=1; }
expect "nothing to count" "no notes"
exit $fails
