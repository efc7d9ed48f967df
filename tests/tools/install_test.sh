#!/bin/bash
# Claim: what tools/install lays out is enough for programs outside of this tree: one in C11 built by
# hand through pkg-config, one of C++ in a CMake project, the same in a Meson project, one by make; each
# runs a loop. Wrong use is refused.
set -u
tool="$(readlink -f tools/install)"
library="$(readlink -f runtime/api/c/libeddy.so)"
source="$(readlink -f tests/runtime/api/c/newton_in_c.c)"
if nm -D "$library" | grep -q "__[atu]b\?san_"; then
  echo "skipped: a library with a sanitizer inside wants programs of that sanitizer"
  exit 0
fi
failures=0
fail() {
  echo "$*"
  failures=$((failures + 1))
}
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

"$tool" >out 2>&1 && fail "no prefix is no use"
grep -q "usage: tools/install --prefix DIR" out || fail "it said: $(<out)"
"$tool" --prefix p --library nothing >out 2>&1 && fail "a library that is not there"
grep -q "there is no library 'nothing'" out || fail "it said: $(<out)"

"$tool" --prefix first --library "$library" >out 2>&1 || fail "it said: $(<out)"
mv first moved  # what is installed finds itself
prefix="$folder/moved"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib"

# As users include it.
sed 's|"runtime/api/c/eddy.h"|<eddy/eddy.h>|' "$source" >newton.c
flags="-I$prefix/include -L$prefix/lib -leddy"
if command -v pkg-config >/dev/null; then
  flags="$(pkg-config --cflags --libs eddy)" || fail "pkg-config finds no eddy"
fi
# shellcheck disable=SC2086
gcc -std=c11 -Wall -Wextra -Werror newton.c $flags -lm -o newton || fail "C11 does not build"
[[ "$(./newton)" == ok ]] || fail "the program in C fails"

printf 'newton: newton.c\n\tgcc -std=c11 $< %s -lm -o $@\n' "$flags" >Makefile
if command -v make >/dev/null; then
  rm newton && make -s newton && [[ "$(./newton)" == ok ]] || fail "by make it fails"
fi

mkdir project && cat >project/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.10)
project(doubling CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(Eddy 0.1 REQUIRED)
add_executable(doubling doubling.cpp)
target_link_libraries(doubling Eddy::eddy)
EOF
cat >project/doubling.cpp <<'EOF'
#include <eddy/eddy.hpp>
#include <cstdio>

int main() {
  eddy::Context context(eddy::Options{{"threads", "1"}});
  eddy::Library library(context);
  eddy::Graph graph(library);
  const auto x = graph.input("x", eddy::type(EDDY_FLOAT, {}));
  eddy_while loop = {};
  loop.num_rows = 1;
  const auto made = graph.while_loop(
      {x},
      [&](eddy::ValueId, const std::vector<eddy::ValueId>& c) {
        return eddy::Graph::Test{graph.op("Less", {c[0], graph.constant(100.0f)}), {c[0]}};
      },
      [&](eddy::ValueId, const std::vector<eddy::ValueId>& f) {
        return std::vector<eddy::ValueId>{graph.op("Add", {f[0], f[0]}), f[0]};
      },
      loop);
  graph.output("y", made[0]);
  graph.output("rows", made[1]);
  eddy::Session session(graph);
  eddy::Run run(session);
  const std::vector<int64_t> scalar;
  const float one = 1;
  run.bind_input(session.find_input("x"), eddy::tensor(&one, scalar));
  run.execute();
  eddy::Rows rows(1);
  run.stream_output(1, rows);
  run.submit();
  size_t count = 0;
  while (rows.next()) ++count;
  run.wait();
  const float y = run.output(0).values<float>()[0];
  try {
    session.find_input("z");
    return 1;
  } catch (const eddy::Error& error) {
    if (error.code() != EDDY_NOT_FOUND) return 1;
  }
  std::printf("%g %zu %zu\n", y, count, run.output(1).values<float>().size());
}
EOF
expected="128 7 7"
g++ -std=c++17 -Wall -Wextra -Werror project/doubling.cpp -I"$prefix/include" -L"$prefix/lib" \
  -leddy -o doubling || fail "C++17 does not build"
[[ "$(./doubling)" == "$expected" ]] || fail "the program in C++ fails: $(./doubling)"
if command -v cmake >/dev/null; then
  cmake -S project -B build -DCMAKE_PREFIX_PATH="$prefix" >out 2>&1 &&
    cmake --build build >>out 2>&1 || fail "CMake: $(<out)"
  [[ "$(build/doubling)" == "$expected" ]] || fail "the program by CMake fails"
else
  echo "skipped: there is no cmake here"
fi

if command -v meson >/dev/null && command -v pkg-config >/dev/null; then
  cat >project/meson.build <<'EOF'
project('doubling', 'cpp', default_options: ['cpp_std=c++17', 'warning_level=2', 'werror=true'])
eddy = dependency('eddy', version: '>=0.1')
executable('doubling', 'doubling.cpp', dependencies: eddy, install: true,
           install_rpath: eddy.get_variable('libdir'))
EOF
  meson setup by_meson project --prefix="$PWD/by_meson_installed" >out 2>&1 &&
    meson install -C by_meson >>out 2>&1 || fail "Meson: $(<out)"
  [[ "$(by_meson/doubling)" == "$expected" ]] || fail "the program by Meson fails"
  [[ "$(by_meson_installed/bin/doubling)" == "$expected" ]] ||
    fail "the program that Meson has installed fails"
else
  echo "skipped: there is no meson or pkg-config here"
fi
((failures == 0)) || exit 1
