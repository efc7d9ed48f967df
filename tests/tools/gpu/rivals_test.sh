#!/bin/bash
# Claim: rivals.py compiles, refuses what it does not know, and where no rival is installed says of
# each that it is left out, and why; a rival that ends otherwise hides no other. Its models are right
# (rival_models_test.py).
set -u
if ! command -v python3 >/dev/null; then
  echo "skipped: no python3 here"
  exit 0
fi
export PYTHONDONTWRITEBYTECODE=1
failures=0
fail() {
  echo "$*"
  failures=$((failures + 1))
}
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cp -L tools/gpu/*.py "$folder/"
for file in "$folder"/*.py; do
  python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$file" ||
    fail "$file does not compile"
done
for arguments in "" "--help" "a b"; do
  # shellcheck disable=SC2086
  python3 "$folder/rivals.py" $arguments 2>/dev/null
  [[ $? == 2 ]] || fail "rivals.py $arguments is not refused"
done

# Libraries that are there, but no good: one raises, one ends the process.
mkdir "$folder/broken"
echo 'raise ImportError("jax is broken\nhere")' >"$folder/broken/jax.py"
echo 'import os; os._exit(9)' >"$folder/broken/torch.py"
touch "$folder/broken/numpy.py"
PYTHONPATH="$folder/broken" python3 "$folder/rivals.py" "$folder/rivals.json" >"$folder/said" ||
  fail "rivals.py ends with $?"
python3 - "$folder/rivals.json" <<'CHECK' || fail "rivals.py writes $(cat "$folder/rivals.json")"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert [row["rival"] for row in rows] == [
    "JAX", "JAX with WHILE flags", "PyTorch eager", "PyTorch, step as CUDA graph",
    "torch.compile'd step"]
assert all(row["status"] == "left out" and row["reason"] == "jax is broken" for row in rows[:2])
assert all("ended with 9" in row["reason"] for row in rows[2:])
CHECK
[[ "$(cd "$folder" && echo rivals.json*)" == rivals.json ]] || fail "files are left behind"
python3 tests/tools/gpu/rival_models_test.py || fail "the models are not right"
exit "$((failures > 0))"
