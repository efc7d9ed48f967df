// What a session of a large graph costs: the time in which it is made, and the memory of many runs.
//
//   bazel run //tests/bench:states_bench -- [NODES [RUNS]]
//
// The graph is eight chains of cheap operators that meet now and then. One line of JSON: the best
// and the median of seven sessions, and what RUNS runs, each with a state of its own, keep.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

constexpr int kWidth = 8;
constexpr int64_t kElements = 64;

Graph make_graph(const Library& library, int num_nodes) {
  GraphBuilder b(library.ops());
  const ValueType type = tensor_type(ElementType::kFloat, {kElements});
  std::vector<Value> chains;
  for (int w = 0; w < kWidth; ++w) chains.push_back(b.input("x" + std::to_string(w), type));
  const char* const ops[] = {"Neg", "Tanh", "Abs", "Sigmoid", "Relu"};
  for (int n = 0; n < num_nodes - kWidth; ++n) {
    Value& at = chains[static_cast<size_t>(n % kWidth)];
    const Value beside = chains[static_cast<size_t>((n + 1) % kWidth)];
    at = n % 97 == 0 ? b.op("Add", {at, beside}) : b.op(ops[n % 5], {at});
  }
  Value sum = chains[0];
  for (int w = 1; w < kWidth; ++w) sum = b.op("Add", {sum, chains[static_cast<size_t>(w)]});
  b.output("y", sum);
  return std::move(*b.finish());
}

size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

int run(int num_nodes, int num_runs) {
  Library library;
  std::unique_ptr<Session> session;
  std::vector<double> times_ms;
  for (int i = 0; i < 7; ++i) {
    Graph graph = make_graph(library, num_nodes);
    SessionOptions options;
    options.num_threads = 2;
    options.assignment = Assignment::kRank;
    session.reset();
    const auto start = std::chrono::steady_clock::now();
    auto made = Session::create(library, std::move(graph), options);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    EDDY_CHECK(made.is_ok()) << made.status().to_string();
    session = std::move(*made);
    times_ms.push_back(took.count());
  }
  std::sort(times_ms.begin(), times_ms.end());
  const size_t before = heap_bytes();
  std::vector<float> data(kElements, 0.5f);
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < num_runs; ++i) {
    calls.push_back(std::move(*session->prepare()));
    for (size_t k = 0; k < kWidth; ++k) {
      const TensorView view{data.data(), &kElements, 1, ElementType::kFloat};
      EDDY_CHECK(calls.back()->bind_input(k, view).is_ok());
    }
    EDDY_CHECK(calls.back()->run().is_ok());
  }
  std::printf(
      "{\"nodes\":%d,\"session_best_ms\":%.2f,\"session_median_ms\":%.2f,\"runs\":%d,"
      "\"runs_MiB\":%.2f}\n",
      num_nodes, times_ms.front(), times_ms[times_ms.size() / 2], num_runs,
      static_cast<double>(heap_bytes() - before) / (1 << 20));
  return 0;
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  const int num_nodes = argc > 1 ? std::atoi(argv[1]) : 10'000;
  const int num_runs = argc > 2 ? std::atoi(argv[2]) : 64;
  return eddy::run(num_nodes, num_runs);
}
