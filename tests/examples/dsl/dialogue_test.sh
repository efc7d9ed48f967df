#!/bin/bash
# Claim: a dialogue with eddy_dsl says what the file says that it does, values and errors, line by
# line; an error ends neither the dialogue nor what it keeps.
#
# dialogue_test.sh PROGRAM FILE: lines of FILE that begin with "> " are typed, the others are what
# comes back, each as it is; empty lines and lines that begin with "#" are left out.
set -u
typed="$(sed -n 's/^> //p' "$2")"
wanted="$(grep -v -e '^> ' -e '^#' -e '^$' "$2")"
found="$("$1" 2>&1 <<<"$typed")"
code=$?
if ((code != 0)) || [[ -z "$wanted" ]]; then
  echo "it ended with $code: $found"
  exit 1
fi
diff <(echo "$wanted") <(echo "$found") && exit 0
echo "< the lines of $2 that were not said, > those that were said instead"
exit 1
