# Shared by the wrappers tools/setup, tools/eddy, tools/test and tools/demo.
#
# Own words go to standard error, so that a program's output stays clean. Settings from
# the environment:
#   EDDY_CONFIG   Bazel configs of .bazelrc, separated by spaces (cuda, asan, ubsan, tsan)
#   EDDY_BAZEL    startup options for Bazel, separated by spaces
# Built programs are copied to .build/ in the checkout, one folder for each EDDY_CONFIG:
# they survive a later Bazel build with other flags, and need no Bazel to start.

eddy_root="$(readlink -f "${BASH_SOURCE[0]%/*}/..")"
eddy_cache="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/eddy"
eddy_exit_no_build=70

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

# Whether something that decides a program changed after FILE was made. Change times and
# folders count too, so a file that was deleted, moved in or copied with an old date does.
eddy_changed_since() {
  local stamp="$1" path paths=()
  for path in BUILD WORKSPACE .bazelrc graph ops runtime tools examples; do
    [[ -e "$eddy_root/$path" ]] && paths+=("$eddy_root/$path")
  done
  [[ -n "$(find "${paths[@]}" -cnewer "$stamp" -print -quit 2>&1)" ]]
}

# eddy_program LABEL: leaves in $eddy_built the path of an up-to-date program, after
# setting up and building it if needed. Exits with 70 when that is impossible.
eddy_program() {
  local label="$1" name="${1##*:}" folder="$eddy_root/.build/${EDDY_CONFIG:-default}" config
  folder="${folder// /+}"
  eddy_built="$folder/$name"
  [[ -x "$eddy_built" && -e "$eddy_built.stamp" ]] && ! eddy_changed_since "$eddy_built.stamp" &&
    return

  "$eddy_root/tools/setup" --quiet || exit "$eddy_exit_no_build"
  mkdir -p "$folder" || die "$eddy_exit_no_build" "cannot write $folder"
  # Two wrappers may build at once. What changes during the build counts as newer.
  local new="$eddy_built.$$"
  touch "$new.stamp"
  say "building $label"
  eddy_bazel build --noshow_progress --ui_event_filters=-info,-debug --show_result=0 "$label" >&2 ||
    die "$eddy_exit_no_build" "could not build $label"
  local bin
  bin="$(eddy_bazel info --ui_event_filters=-info bazel-bin 2>/dev/null)" ||
    die "$eddy_exit_no_build" "could not ask Bazel for its output folder"
  local path="${label#//}"
  cp -f "$bin/${path/://}" "$new" && mv -f "$new.stamp" "$eddy_built.stamp" &&
    mv -f "$new" "$eddy_built" || die "$eddy_exit_no_build" "could not copy $bin/${path/://}"
}
