#!/bin/bash
# program_test.sh SERVER WRITE_MODEL CLIENT: the program serves a model on a port of its choice,
# ends with 0 after SIGTERM and after SIGINT, and says in one line why it cannot serve.
set -u

server="$1" write_model="$2" client="$3"
work="$(mktemp -d)"
pid=""
trap '[[ -n "$pid" ]] && kill -KILL "$pid" 2>/dev/null; rm -rf "$work"' EXIT

fail() {
  echo "$*" >&2
  cat "$work/err" >&2
  exit 1
}

# start MODEL ARGUMENT...: until it listens; its address is in $url.
start() {
  local model="$1"
  shift
  rm -f "$work/out"
  mkfifo "$work/out"
  "$server" "$work/$model.onnx" --port 0 --threads 2 "$@" >"$work/out" 2>"$work/err" &
  pid=$!
  read -r line <"$work/out"
  [[ "$line" =~ ^listening\ on\ (http://127\.0\.0\.1:[0-9]+)$ ]] || fail "it printed: $line"
  url="${BASH_REMATCH[1]}"
}

ask() { python3 "$client" "$url" "$1" || fail "the client failed"; }

# stop SIGNAL CODE: and expects the exit code.
stop() {
  kill "-$1" "$pid"
  wait "$pid"
  local code=$?
  pid=""
  ((code == $2)) || fail "exit code $code, not $2, after SIG$1"
}

# refused CODE WORDS ARGUMENT...: what ends at once.
refused() {
  local wanted="$1" words="$2"
  shift 2
  "$server" "$@" >"$work/printed" 2>"$work/err" </dev/null
  local code=$?
  ((code == wanted)) || fail "server $*: exit code $code, not $wanted"
  grep -q -e "$words" "$work/err" || fail "server $*: no '$words'"
  [[ ! -s "$work/printed" ]] || fail "server $*: it printed to standard output"
}

"$write_model" "$work/model.onnx" || fail "no model"
"$write_model" "$work/endless.onnx" endless || fail "no model"

start model
ask pages
stop TERM 0
grep -q "^server: serving .*model.onnx on $url$" "$work/err" || fail "no line of the start"
grep -q '^server: POST /v1/run: 400 ' "$work/err" || fail "no line of the failed request"
grep -q '^server: stopped after 5 requests$' "$work/err" || fail "no line of the end"
[[ "$(wc -l <"$work/err")" == 3 ]] || fail "other lines, too"

start model --max-in-flight 1 --timeout-ms 60000
ask pages
refused 3 'Address already in use' "$work/model.onnx" --port "${url##*:}"
stop INT 0

# A run that never ends is cancelled when its time is over.
start endless --drain-ms 10
ask run &
run=$!
ask running
stop TERM 0
wait "$run" || fail "no answer for a cancelled run"

# A second signal does not wait for it.
start endless --drain-ms 100000000
ask run &
run=$!
ask running
kill -TERM "$pid"
ask closed
stop TERM 143
wait "$run" || fail "another answer than the connection's end"

start model --batch batch --max-batch 8 --batch-wait-us 100
ask pages
stop TERM 0
refused 3 "no input has a dimension 'rows' to batch along; there are: 'batch'" \
  "$work/model.onnx" --batch rows

refused 3 'no_such.onnx' "$work/no_such.onnx"
refused 3 'cannot listen on 192.0.2.1' "$work/model.onnx" --host 192.0.2.1
refused 2 'MODEL'
refused 2 'port' "$work/model.onnx" --port 65536
refused 2 'max-waiting' "$work/model.onnx" --max-waiting 0
echo "served, stopped, refused"
