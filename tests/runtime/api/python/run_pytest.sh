#!/bin/bash
# run_pytest.sh FILE: runs a file of tests by Debian's pytest on the package eddy that stands in
# runtime/api/python. Skipped, with the reason in the test's XML, where something is missing.
set -u
python=/usr/bin/python3
package="$PWD/runtime/api/python"
skip() {
  echo "skipped: $*"
  [[ -z "${XML_OUTPUT_FILE:-}" ]] || cat >"$XML_OUTPUT_FILE" <<XML
<testsuites><testsuite name="python"><testcase name="module" classname="python">
<skipped message="$*"/></testcase></testsuite></testsuites>
XML
  exit 0
}
test -e "$package/eddy/_core.so" || skip "the Python module is not built (python3-dev, pybind11-dev, python3-numpy)"
"$python" -c "import pytest" 2>/dev/null || skip "there is no pytest for $python (python3-pytest)"
nm -D "$package/eddy/libeddy.so.1" | grep -q "__[atu]b\?san_" &&
  skip "a library with a sanitizer inside wants an interpreter of that sanitizer"
export PYTHONPATH="$package" PYTHONDONTWRITEBYTECODE=1
exec "$python" -X faulthandler -m pytest -q --tb=short -p no:cacheprovider \
  ${XML_OUTPUT_FILE:+"--junitxml=$XML_OUTPUT_FILE"} "$1"
