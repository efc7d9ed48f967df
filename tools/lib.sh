# shellcheck shell=bash disable=SC2034,SC2015,SC2054
# Shared by the wrappers tools/setup, tools/eddy, tools/test and tools/demo.
#
# Own words go to standard error, so that a program's output stays clean. Settings from
# the environment:
#   EDDY_CONFIG   Bazel configs of .bazelrc, separated by spaces (asan, ubsan,
#                 asan_ubsan, tsan, fuzz)
#   EDDY_BAZEL    startup options for Bazel, separated by spaces
# Built programs are copied to .build/ in the checkout, one folder for each EDDY_CONFIG:
# they survive a later Bazel build with other flags, and need no Bazel to start.

eddy_root="$(readlink -f "${BASH_SOURCE[0]%/*}/..")"
eddy_cache="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/eddy"
eddy_exit_no_build=70

# What AddressSanitizer watches in every run of tools/test: where memory is handled by hand (stacks,
# bytes of files) and little must be compiled for it. Canaries show that sanitizers see at all.
eddy_sanitized_part=(//tests/runtime/coroutine/... //tests/graph/base/... //tests/graph/ir/...)
eddy_canaries=(//tests/canary/... //tests/tools/bazel:canary_test)

say() { printf 'eddy: %s\n' "$*" >&2; }

# die CODE WORDS...
die() {
  local code="$1"
  shift
  say "$@"
  exit "$code"
}

# Bazel in the checkout, from any folder. Arguments: COMMAND ARGUMENTS...
eddy_bazel() {
  local command="$1" config options=()
  shift
  for config in ${EDDY_CONFIG:-}; do options+=("--config=$config"); done
  # shellcheck disable=SC2086
  (cd "$eddy_root" && exec bazel ${EDDY_BAZEL:-} "$command" "${options[@]}" "$@")
}

# Installs what is missing for the configs of EDDY_CONFIG and those named in the arguments.
eddy_setup() {
  local options=(--quiet)
  local configs=" ${EDDY_CONFIG:-} $* "
  [[ "$configs" =~ tsan|asan_ubsan ]] && options+=(--sanitizers)
  [[ "$configs" =~ " fuzz "|=fuzz ]] && options+=(--fuzzer)
  "$eddy_root/tools/setup" "${options[@]}"
}

# Folders that decide a program besides those of all programs.
eddy_also=()

# Whether something that decides a program changed after FILE was made. Change times and
# folders count too, so a file that was deleted, moved in or copied with an old date does.
eddy_changed_since() {
  local stamp="$1" path paths=()
  for path in BUILD WORKSPACE .bazelrc graph ops runtime tools examples "${eddy_also[@]}"; do
    [[ -e "$eddy_root/$path" ]] && paths+=("$eddy_root/$path")
  done
  [[ -n "$(find "${paths[@]}" -cnewer "$stamp" -print -quit 2>&1)" ]]
}

# Whether the program at PATH stands for the sources as they are.
eddy_is_fresh() { [[ -x "$1" && -e "$1.stamp" ]] && ! eddy_changed_since "$1.stamp"; }

# eddy_program LABEL: leaves in $eddy_built the path of an up-to-date program, after
# setting up and building it if needed. Exits with 70 when that is impossible.
eddy_program() {
  local label="$1" folder="$eddy_root/.build/${EDDY_CONFIG:-default}"
  folder="${folder// /+}"
  eddy_built="$folder/${label##*:}"
  eddy_is_fresh "$eddy_built" && return

  eddy_setup || exit "$eddy_exit_no_build"
  mkdir -p "$folder" && exec 9>"$eddy_built.lock" ||
    die "$eddy_exit_no_build" "cannot write to $folder"
  # One build at a time; another wrapper may have done it meanwhile. Neither Bazel's server nor
  # the program may inherit the lock.
  flock 9
  eddy_is_fresh "$eddy_built" || eddy_build_program "$label" 9>&-
  exec 9>&-
}

# Builds LABEL into $eddy_built. The stamp is older than the build, so that what changes
# meanwhile counts as newer.
eddy_build_program() {
  local label="$1" new="$eddy_built.new" options=(--ui_event_filters=-info,-debug --show_result=0)
  [[ -t 2 ]] || options+=(--noshow_progress)
  touch "$new.stamp"
  say "building $label"
  eddy_bazel build "${options[@]}" "$label" >&2 ||
    die "$eddy_exit_no_build" "could not build $label"
  local folder
  folder="$(eddy_bazel info bazel-bin 2>/dev/null)" ||
    die "$eddy_exit_no_build" "could not ask Bazel for its output folder"
  local path="${label#//}"
  path="$folder/${path/://}"
  cp -f "$path" "$new" && mv -f "$new" "$eddy_built" && mv -f "$new.stamp" "$eddy_built.stamp" ||
    die "$eddy_exit_no_build" "could not copy $path"
}
