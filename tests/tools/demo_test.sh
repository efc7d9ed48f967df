#!/bin/bash
# shellcheck disable=SC2016
# Claim: tools/demo runs on a machine that has nothing yet: the recordings come with the packages
# that it installs, and it looks for them again after that. It says what is missing otherwise.
# Setup, Bazel and hashes are fakes here; the programs print their arguments.
set -u
fails=0
check() { # check WHAT EXPECTED GOT
  [[ "$2" == "$3" ]] && return
  echo "FAILED: $1: expected '$2', got '$3'"
  fails=1
}

root="$TEST_TMPDIR/checkout"
mkdir -p "$root/tools" "$TEST_TMPDIR/bin" "$TEST_TMPDIR/cache/eddy/models"
cp -L tools/demo tools/lib.sh "$root/tools/"
cat >"$root/tools/setup" <<'SETUP'
#!/bin/bash
echo "$*" >>"$TEST_TMPDIR/setups"
((${SETUP_RESULT:-0})) && exit "$SETUP_RESULT"
[[ -n "${SETUP_BRINGS_NOTHING:-}" ]] && exit
mkdir -p "$EDDY_RECORDINGS" && touch "$EDDY_RECORDINGS/"{Noise,Side_Left}.wav
SETUP
cat >"$TEST_TMPDIR/bin/bazel" <<'BAZEL'
#!/bin/bash
if [[ "$1" == info ]]; then echo "$PWD/out" && exit; fi
program="${!#}"
program="out/${program#//}"
mkdir -p "${program%:*}"
printf '#!/bin/bash\necho "${0##*/} $*"\n' >"${program/://}"
chmod +x "${program/://}"
BAZEL
printf '#!/bin/bash\nexit 0\n' >"$TEST_TMPDIR/bin/sha256sum"
printf '#!/bin/bash\necho "npm was called" >&2; exit 1\n' >"$TEST_TMPDIR/bin/npm"
chmod +x "$root/tools/setup" "$TEST_TMPDIR"/bin/*
export PATH="$TEST_TMPDIR/bin:$PATH" XDG_CACHE_HOME="$TEST_TMPDIR/cache"
export EDDY_RECORDINGS="$TEST_TMPDIR/recordings"
unset EDDY_CONFIG EDDY_BAZEL
models="$TEST_TMPDIR/cache/eddy/models"
touch "$models"/{silero_vad-1.9.0.onnx,moonshine_tiny_encoder-0.1.29.onnx} \
  "$models"/{moonshine_tiny_decoder-0.1.29.onnx,llama_tokenizer-1.2.2.js}

side="--wav $EDDY_RECORDINGS/Side_Left.wav"
demo() { "$root/tools/demo" "$@" 2>"$TEST_TMPDIR/errors"; }

check "a setup that fails" 70 "$(SETUP_RESULT=1 demo >/dev/null; echo $?)"
check "nothing to listen to" 3 "$(SETUP_BRINGS_NOTHING=1 demo >/dev/null; echo $?)"
check "which it says" \
  "eddy: no recordings in $EDDY_RECORDINGS: reinstall alsa-utils, or name one" \
  "$(tail -1 "$TEST_TMPDIR/errors")"

check "a fresh machine finds speech" \
  "voice_activity --model $models/silero_vad-1.9.0.onnx $side" "$(demo | head -1)"
check "and words" "speech_to_text" "$(demo | sed -n 2p | cut -d' ' -f1)"
check "hears each recording but the noise" "2" "$(demo | grep -c -- "$side\$")"

setups="$(wc -l <"$TEST_TMPDIR/setups")"
demo >/dev/null
check "with all in place nothing is set up" "$setups" "$(wc -l <"$TEST_TMPDIR/setups")"
touch "$TEST_TMPDIR/mine.wav"
check "a recording of one's own" \
  "voice_activity --model $models/silero_vad-1.9.0.onnx --wav $TEST_TMPDIR/mine.wav" \
  "$(demo "$TEST_TMPDIR/mine.wav" | head -1)"
check "that is not there" 3 "$(demo "$TEST_TMPDIR/none.wav" >/dev/null; echo $?)"
check "two of them" 2 "$(demo a b >/dev/null; echo $?)"
exit $fails
