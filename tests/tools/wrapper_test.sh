#!/bin/bash
# shellcheck disable=SC2016
# Claim: tools/eddy starts Bazel exactly when something changed that decides the program, never
# runs a stale one, and passes arguments and exit code through. Bazel is a fake here, whose
# "compiler" copies one source file.
set -u
fails=0
check() { # check WHAT EXPECTED GOT
  [[ "$2" == "$3" ]] && return
  echo "FAILED: $1: expected '$2', got '$3'"
  fails=1
}

root="$TEST_TMPDIR/checkout"
mkdir -p "$root/tools/command" "$root/graph" "$root/out/tools/command" "$TEST_TMPDIR/bin"
cp -L tools/eddy tools/lib.sh "$root/tools/"
printf '#!/bin/bash\nexit ${SETUP_RESULT:-0}\n' >"$root/tools/setup"
cat >"$TEST_TMPDIR/bin/bazel" <<'BAZEL'
#!/bin/bash
if [[ "$1" == info ]]; then echo "$PWD/out" && exit; fi
echo "$*" >>"$TEST_TMPDIR/builds"
bash -n tools/command/source || exit 1
rm -f out/tools/command/eddy && cp tools/command/source out/tools/command/eddy
BAZEL
printf '#!/bin/bash\necho "one: $*"\nexit 5\n' >"$root/tools/command/source"
chmod +x "$root/tools/setup" "$root/tools/command/source" "$TEST_TMPDIR/bin/bazel"
export PATH="$TEST_TMPDIR/bin:$PATH"
unset EDDY_CONFIG EDDY_BAZEL
ln -s "$root/tools/eddy" "$TEST_TMPDIR/link"

builds() { if [[ -e "$TEST_TMPDIR/builds" ]]; then wc -l <"$TEST_TMPDIR/builds"; else echo 0; fi; }
# Change times tick at the kernel's pace.
tick() { sleep 0.02; }

cd "$TEST_TMPDIR" || exit 1
check "output, from elsewhere through a link" "one: a b c" "$(./link a "b c" 2>errors)"
check "exit code" 5 "$(./link >/dev/null 2>&1; echo $?)"
check "first build" 1 "$(builds)"
check "own words go to standard error" "eddy: building //tools/command:eddy" "$(head -1 errors)"
check "nothing to say when fresh" "" "$(./link 2>&1 >/dev/null)"

tick
touch "$root/graph/new.h"
./link >/dev/null 2>&1
check "a new file" 2 "$(builds)"
tick
rm "$root/graph/new.h"
./link >/dev/null 2>&1
check "a deleted file" 3 "$(builds)"
tick
touch -d 2001-01-01 "$root/old" && mv "$root/old" "$root/graph/old.h"
./link >/dev/null 2>&1
check "an old file moved in" 4 "$(builds)"
./link >/dev/null 2>&1
check "fresh again" 4 "$(builds)"

tick
sed -i 's/one/two/' "$root/tools/command/source"
check "changed source, changed program" "two: x" "$(./link x 2>/dev/null)"
tick
echo 'if' >>"$root/tools/command/source"
check "a broken build" "70" "$(./link x >out 2>/dev/null; echo "$?$(cat out)")"
check "is not hidden by the old program" "70" "$(./link x >out 2>/dev/null; echo "$?$(cat out)")"
sed -i '$d' "$root/tools/command/source"
check "and can be repaired" "two: x" "$(./link x 2>/dev/null)"

rm -r "$root/.build"
check "a lost program is built again" "two: x" "$(./link x 2>/dev/null)"
rm -r "$root/.build"
check "no setup" "70" "$(SETUP_RESULT=1 ./link x >out 2>/dev/null; echo "$?$(cat out)")"
before="$(builds)"
EDDY_CONFIG=asan ./link >/dev/null 2>&1
./link >/dev/null 2>&1
check "each config has a program of its own" "build --config=asan" \
  "$(tail -2 "$TEST_TMPDIR/builds" | head -1 | cut -d' ' -f1,2)"
check "and a build of its own" $((before + 2)) "$(builds)"
exit $fails
