#!/bin/bash
# Claim: tools/arm64 names a source that compiles for x86 only, wherever it stands but in ops/cpu, and
# is content with a tree that has none; without the cross compiler it says so and skips.
set -u
fails=0
tool="$TEST_SRCDIR/$TEST_WORKSPACE/tools/arm64"
cd "$TEST_TMPDIR" || exit 1
mkdir -p tools graph ops/cpu runtime
cp "$tool" tools/arm64
printf 'int one() { return 1; }\n' >graph/one.cc
printf '#include <emmintrin.h>\n__m128 none() { return _mm_setzero_ps(); }\n' >ops/cpu/none.cc
cp ops/cpu/none.cc ops/cpu/none_inl.h
printf '#include "ops/cpu/none_inl.h"\n' >ops/cpu/some.cc
git init -q . && git add -A || exit 1

expect() { # expect EXIT_CODE WORDS
  found="$(tools/arm64 2>&1)"
  code=$?
  if [[ $code != "$1" || "$found" != *"$2"* ]]; then
    echo "exit code $code, not $1, or no '$2' in: $found"
    fails=$((fails + 1))
  fi
}

EDDY_ARM64_CXX=no-such-compiler expect 77 "apt-get install g++-aarch64-linux-gnu"
if ! command -v aarch64-linux-gnu-g++ >/dev/null; then
  echo "the rest is skipped: no aarch64-linux-gnu-g++"
  exit $((fails > 0))
fi
expect 0 "1 files, 0 fail; 2 of ops/cpu are x86's own"
cp ops/cpu/none.cc runtime/leak.cc && git add -A
expect 1 "runtime/leak.cc"
exit $((fails > 0))
