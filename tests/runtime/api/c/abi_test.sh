#!/bin/bash
# Claim: libeddy.so exports one symbol, and no member of eddy.h's structs has moved: what is committed
# in abi.txt still stands, line by line; new lines may follow.
set -u
library="$1" expected="$2" print="$3"
found="$(mktemp)"
trap 'rm -f "$found"' EXIT
nm -D --defined-only "$library" | awk '$2 ~ /[TDBRVWi]/ {sub(/@.*/, "", $3); print "symbol " $3}' |
  sort -u >"$found"
"$print" >>"$found"
status=0
# Structs may grow at their end, so a size may be larger than it was.
while read -r name value; do
  [[ "$name" == "#"* ]] && continue
  now="$(awk -v name="$name" '$1 == name {print $2; exit}' "$found")"
  if [[ "$name" != symbol && "$name" != *.* ]]; then
    ((now >= value)) && continue
  elif [[ "$now" == "$value" ]]; then
    continue
  fi
  echo "abi.txt has '$name $value', but it is now '${now:-nothing}': programs that exist would break"
  status=1
done <"$expected"
exported="$(grep -c '^symbol ' "$found")"
if [[ "$exported" != 1 ]]; then
  echo "the library exports $exported symbols:" && grep '^symbol ' "$found"
  status=1
fi
while read -r name _; do
  grep -q "^$name " "$expected" && continue
  echo "'$name' is new: add it to abi.txt, behind what was there"
  status=1
done <"$found"
soname="$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')"
[[ "$soname" == libeddy.so.1 ]] || { echo "SONAME is '$soname', not libeddy.so.1" && status=1; }
((status == 0)) && echo "1 passed, 0 failed"
exit $status
