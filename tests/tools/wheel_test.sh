#!/bin/bash
# Claim: the wheel of tools/wheel can be installed by pip, anywhere, and brings along what it loads;
# numpy is all that it depends on, the same files give the same bytes, wrong use is refused.
set -u
tool="$(readlink -f tools/wheel)"
package="$PWD/runtime/api/python"
python=/usr/bin/python3
failures=0
fail() {
  echo "$*"
  failures=$((failures + 1))
}
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$tool" >"$folder/out" 2>&1 && fail "no folder is no use"
grep -q "usage: tools/wheel DIR" "$folder/out" || fail "it said: $(<"$folder/out")"
"$tool" "$folder/w" --package "$folder/nothing" >"$folder/out" 2>&1 && fail "no package is no use"
grep -q "there is no package" "$folder/out" || fail "it said: $(<"$folder/out")"
if [[ ! -e "$package/eddy/_core.so" ]] ||
  nm -D "$package/eddy/libeddy.so.1" | grep -q "__[atu]b\?san_"; then
  echo "skipped: there is no Python module here, or one with a sanitizer inside"
  exit "$failures"
fi

for each in first second; do
  "$tool" "$folder/$each" --package "$package" >"$folder/out" 2>&1 || fail "it said: $(<"$folder/out")"
done
cmp "$folder"/first/*.whl "$folder"/second/*.whl || fail "two wheels of the same files differ"

cd "$folder" || exit 1
if "$python" -m pip --version >/dev/null 2>&1; then
  "$python" -m pip install --quiet --no-index --no-deps --target site first/*.whl >out 2>&1 ||
    fail "pip: $(<out)"
else
  echo "skipped: there is no pip here; the wheel is unpacked instead"
  "$python" -m zipfile -e first/*.whl site
fi
[[ "$(grep -h ^Requires-Dist site/*.dist-info/METADATA)" == "Requires-Dist: numpy>=1.24" ]] ||
  fail "it depends on more than numpy"
mv site moved  # it finds itself
cat >program.py <<'END'
import eddy

root = eddy.function(lambda a: eddy.while_loop(lambda x: abs(x * x - a) > 1e-9,
                                               lambda x: (x + a / x) / 2, a))
assert abs(root(2.0) - 2 ** 0.5) < 1e-9
loaded = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
for name in ("_core", "libeddy.so.1", "libdnnl.so"):
    paths = [path for path in loaded if name in path.rsplit("/", 1)[-1]]
    assert paths and all("/moved/eddy/" in path for path in paths), (name, paths)
print("ok")
END
[[ "$(PYTHONPATH=moved "$python" program.py 2>&1 | tee out)" == ok ]] || fail "it fails: $(<out)"
((failures == 0)) || exit 1
