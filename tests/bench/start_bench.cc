// What the first session of a model costs and what the second, which shares its program
// (runtime/api/shared_programs.h): milliseconds and bytes of memory in use, and the steps of the
// first.
//
//   bazel run //tests/bench:start_bench -- MODEL.onnx [ROUNDS]
//
// Each round has a library of its own. `first` and `second` are made from one imported graph,
// `second, from the file` imports it again.
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "graph/io/import.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

double used_kib() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / 1024;
}

struct Row {
  const char* name;
  std::vector<double> values = {};

  void print(const char* unit) {
    std::ranges::sort(values);
    std::printf("%-28s %9.2f %s  (%.2f to %.2f)\n", name, values[values.size() / 2], unit,
                values.front(), values.back());
  }
};

struct Rows {
  Row import{"import"};
  Row first{"first session"};
  Row second{"second session"};
  Row loaded{"second, from the file"};
  Row first_kib{"memory of the first"};
  Row second_kib{"memory of the second"};
};

Status measure(const std::string& path, bool is_told, Rows& rows) {
  const Library library;
  SessionOptions options;
  options.threads = std::make_shared<SharedThreads>();
  if (is_told) {
    options.log = [](std::string_view line) {
      std::printf("  %.*s\n", static_cast<int>(line.size()), line.data());
    };
  }
  const double begin = now_ms();
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_onnx(path, library.ops()));
  Graph copy = graph.copy();
  const double imported = now_ms(), before_kib = used_kib();
  EDDY_ASSIGN_OR_RETURN(const auto first, Session::create(library, std::move(graph), options));
  const double made = now_ms(), first_kib = used_kib();
  EDDY_ASSIGN_OR_RETURN(const auto second, Session::create(library, std::move(copy), options));
  const double again = now_ms(), second_kib = used_kib();
  EDDY_ASSIGN_OR_RETURN(const auto loaded, Session::load(library, path, options));
  rows.import.values.push_back(imported - begin);
  rows.first.values.push_back(made - imported);
  rows.second.values.push_back(again - made);
  rows.loaded.values.push_back(now_ms() - again);
  rows.first_kib.values.push_back(first_kib - before_kib);
  rows.second_kib.values.push_back(second_kib - first_kib);
  return Status::ok();
}

int run(int argc, char** argv) {
  int num_rounds = 9;
  if (argc > 2) std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), num_rounds);
  if (argc < 2 || num_rounds < 1) {
    std::fprintf(stderr, "start_bench MODEL.onnx [ROUNDS]\n");
    return 2;
  }
  Rows rows;
  for (int round = 0; round < num_rounds; ++round) {
    const Status status = measure(argv[1], round == 0, rows);
    if (status.is_ok()) continue;
    std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return 1;
  }
  for (Row* row : {&rows.import, &rows.first, &rows.second, &rows.loaded}) row->print("ms");
  for (Row* row : {&rows.first_kib, &rows.second_kib}) row->print("KiB");
  return 0;
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) { return eddy::run(argc, argv); }
