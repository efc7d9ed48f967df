#!/bin/bash
# Claim: the event loop of examples/embedding/epoll.c gets every root once, and Collatz' numbers in
# their order, whatever ends first.
set -u
output="$("$1" 2>&1)" || { echo "it ended with $?: $output" && exit 1; }
roots="$(grep '^root' <<<"$output" | sort)"
wanted="root of 1000 is 31.6227766
root of 1e+09 is 31622.7766
root of 1e+300 is 1e+150
root of 2 is 1.41421356"
numbers="$(sed -n 's/^collatz //p' <<<"$output" | tr '\n' ' ')"
[[ "$roots" == "$(sort <<<"$wanted")" && "$numbers" == "6 3 10 5 16 8 4 2 " ]] && exit 0
echo "it printed:" && echo "$output"
exit 1
