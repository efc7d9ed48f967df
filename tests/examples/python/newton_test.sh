#!/bin/bash
# Claim: the example in Python prints what it should. Skipped where the module is not built.
package="$PWD/runtime/api/python"
if [[ ! -e "$package/eddy/_core.so" ]] ||
  nm -D "$package/eddy/libeddy.so.1" | grep -q "__[atu]b\?san_"; then
  echo "skipped: there is no Python module here, or one with a sanitizer inside"
  exit 0
fi
export PYTHONPATH="$package" PYTHONDONTWRITEBYTECODE=1
expected="the root of 2 is 1.414214, after 5 steps
roots: [ 2.  3. 12.]
streamed: 14 steps from 1e+06 on
by a session: 9.000
refused at line 34: a value of the graph is not known while the function is traced; use eddy.cond, \
eddy.case or eddy.while_loop, & | ~ for and, or, not"
found="$(/usr/bin/python3 "$1" 2>&1)"
[[ "$found" == "$expected" ]] && exit 0
diff <(echo "$expected") <(echo "$found")
exit 1
