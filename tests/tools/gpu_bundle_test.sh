#!/bin/bash
# Claim: gpu_bundle refuses what it cannot make before it builds anything.
set -u
tool="$(readlink -f tools/gpu_bundle)"
failures=0
expect() {  # CODE WORDS ARGUMENTS...
  local code="$1" words="$2"
  shift 2
  local said
  said="$("$tool" "$@" 2>&1)"
  local got=$?
  if [[ $got != "$code" || "$said" != *"$words"* ]]; then
    echo "gpu_bundle $*: exit $got, expected $code; said: $said"
    failures=$((failures + 1))
  fi
}
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
touch "$folder/something"
expect 2 "a folder to make"
expect 2 "a folder to make" --help
expect 2 "a folder to make" a b
expect 2 "not an empty folder" "$folder"
expect 2 "not an empty folder" "$folder/something"
exit "$((failures > 0))"
