#!/bin/bash
# run_example.sh EXPECTED PROGRAM [ARGUMENT ...]: runs a program and compares what it prints, on
# both outputs, and how it ends.
#
# EXPECTED: a line "exit CODE", then for each line of output an extended regular expression that
# must match all of it.
set -u

expected="$1"
shift
actual="$("$@" 2>&1 </dev/null)"
code=$?

mapfile -t wanted <"$expected"
mapfile -t found <<<"exit $code"$'\n'"$actual"
failed=0
for ((i = 0; i < ${#wanted[@]} || i < ${#found[@]}; ++i)); do
  if ((i >= ${#wanted[@]})); then
    echo "line $i: unexpected: ${found[i]}"
  elif ((i >= ${#found[@]})); then
    echo "line $i: missing: ${wanted[i]}"
  elif [[ ! "${found[i]}" =~ ^(${wanted[i]})$ ]]; then
    printf 'line %d: expected: %s\n         but got: %s\n' "$i" "${wanted[i]}" "${found[i]}"
  else
    continue
  fi
  failed=1
done
exit $failed
