#!/bin/bash
# Claim: each model holds in every interleaving, and each of its broken variants is found.
# Needs Debian's package spin, which tools/setup installs, and a C compiler.
set -u
models="${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}/tests/runtime/models"
command -v spin >/dev/null || {
  echo "FAILED: spin is not installed; tools/setup installs it"
  exit 1
}
work="$(mktemp -d)" && trap 'rm -rf "$work"' EXIT
failures=0

# check MODEL VARIANT EXPECTED: EXPECTED is holds or found.
check() {
  local model="$1" variant="$2" expected="$3" folder="$work/$1-$2" verdict states
  mkdir -p "$folder" && cp "$models/$model.pml" "$folder" || exit 1
  (
    cd "$folder" || exit 1
    spin "-D$variant" -a "$model.pml" >spin.log 2>&1 &&
      cc -O1 -DSAFETY -o pan pan.c >cc.log 2>&1 &&
      ./pan -m100000 >pan.log 2>&1
  ) || {
    cat "$folder"/*.log
    echo "FAILED to check $model with $variant"
    ((++failures))
    return
  }
  verdict=found
  grep -q 'errors: 0' "$folder/pan.log" && verdict=holds
  grep -q 'max search depth too small' "$folder/pan.log" && verdict="not searched to the end"
  states="$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' "$folder/pan.log")"
  echo "$model $variant: $verdict, $states states"
  [[ "$verdict" == "$expected" ]] && return
  echo "FAILED: expected that it $expected"
  ((++failures))
}

for model in inbox stream strands work_watch run_end; do
  check "$model" AS_IT_IS holds
  for variant in $(sed -n 's/^#ifn\?def \([A-Z_]*\)$/\1/p' "$models/$model.pml" | sort -u); do
    check "$model" "$variant" found
  done
done
((failures == 0)) || exit 1
