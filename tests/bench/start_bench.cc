// What the first session of a model costs and what the second, which shares its program
// (runtime/api/shared_programs.h): milliseconds of time and of the processor, bytes of memory in
// use, and the steps of the first round.
//
//   bazel run //tests/bench:start_bench -- MODEL.onnx [ROUNDS]
//
// Each round has a library of its own. `first`, with the fingerprint, and `second` are made from
// one imported graph, `another, from the file` imports it again.
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "graph/io/import.h"
#include "runtime/api/program_fingerprint.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

struct Moment {
  double ms, processor_ms, used_kib;
};

double read_ms(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

Moment now() {
  const struct mallinfo2 info = mallinfo2();
  return {read_ms(CLOCK_MONOTONIC), read_ms(CLOCK_PROCESS_CPUTIME_ID),
          static_cast<double>(info.uordblks + info.hblkhd) / 1024};
}

// Median, least and most.
void print(std::vector<double> values, const char* unit) {
  std::ranges::sort(values);
  std::printf("  %9.2f %s (%.2f to %.2f)", values[values.size() / 2], unit, values.front(),
              values.back());
}

struct Row {
  const char* name;
  std::vector<double> ms = {}, processor_ms = {}, used_kib = {};

  void add(const Moment& begin, const Moment& end) {
    ms.push_back(end.ms - begin.ms);
    processor_ms.push_back(end.processor_ms - begin.processor_ms);
    used_kib.push_back(end.used_kib - begin.used_kib);
  }
  void print() const {
    std::printf("%-22s", name);
    eddy::print(ms, "ms");
    eddy::print(processor_ms, "ms of the processor");
    eddy::print(used_kib, "KiB");
    std::printf("\n");
  }
};

struct Rows {
  Row import{"import"};
  Row first{"first session"};
  Row second{"second session"};
  Row loaded{"another, from the file"};
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
  const Moment begin = now();
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_onnx(path, library.ops()));
  const Moment imported = now();
  const Fingerprint given = graph_fingerprint(graph, [&graph] { graph.release_constants({}); });
  EDDY_ASSIGN_OR_RETURN(const auto first, Session::create(library, graph.copy(), given, options));
  const Moment made = now();
  EDDY_ASSIGN_OR_RETURN(const auto second, Session::create(library, graph.copy(), given, options));
  const Moment again = now();
  EDDY_ASSIGN_OR_RETURN(const auto loaded, Session::load(library, path, options));
  rows.import.add(begin, imported);
  rows.first.add(imported, made);
  rows.second.add(made, again);
  rows.loaded.add(again, now());
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
  for (const Row* row : {&rows.import, &rows.first, &rows.second, &rows.loaded}) row->print();
  return 0;
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) { return eddy::run(argc, argv); }
