#include <algorithm>
#include <chrono>

#include "ops/schema/standard.h"
#include "tools/gpu/hand_graphs.h"
#include "tools/gpu/report_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// What is measured: a graph that is made, and what it must have counted to after each run.
struct HandCase {
  std::string name;
  int64_t num_rounds = 1;    // of a launch
  int64_t num_launches = 1;  // of a measured run
  // Puts the graph together; what it counts in.
  std::function<TensorView(HandGraph&)> make;
  float expected = 0;
};

// counter = 0; while (counter < limit) { body; counter += 1 }
void count(HandGraph& g, int64_t limit, const std::function<void()>& body) {
  const TensorView counter = g.number(0.0f);
  const TensorView zero = g.number(0.0f);
  const TensorView one = g.number(1.0f);
  const TensorView end = g.number(static_cast<float>(limit));
  const TensorView test = g.truth();
  g.copy(counter, zero);
  g.repeat(
      g.loop_words(), test,
      [&] {
        g.play("Less", {counter, end}, test);
      },
      [&] {
        body();
        g.play("Add", {counter, one}, counter);
      });
}

TensorView make_scalar(HandGraph& g, int64_t n) {
  const TensorView x = g.number(0.0f);
  const TensorView zero = g.number(0.0f);
  const TensorView one = g.number(1.0f);
  const TensorView end = g.number(static_cast<float>(n));
  const TensorView test = g.truth();
  g.begin();
  g.copy(x, zero);
  g.repeat(
      g.loop_words(), test,
      [&] {
        g.play("Less", {x, end}, test);
      },
      [&] {
        g.play("Add", {x, one}, x);
      });
  return x;
}

TensorView make_nested(HandGraph& g, int64_t side) {
  const TensorView x = g.number(0.0f);
  const TensorView zero = g.number(0.0f);
  const TensorView one = g.number(1.0f);
  g.begin();
  g.copy(x, zero);
  count(g, side, [&] { count(g, side, [&] { g.play("Add", {x, one}, x); }); });
  return x;
}

// Four branches by turns, each of one kernel.
TensorView make_case(HandGraph& g, int64_t n) {
  const TensorView x = g.number(0.0f);
  const TensorView zero = g.number(0.0f);
  const TensorView one = g.number(1.0f);
  const TensorView pick = g.number(int64_t{0});
  std::vector<TensorView> next;
  for (int64_t branch = 0; branch < 4; ++branch) next.push_back(g.number((branch + 1) % 4));
  g.begin();
  g.copy(x, zero);
  count(g, n, [&] {
    std::vector<std::function<void()>> branches;
    for (int64_t branch = 0; branch < 4; ++branch) {
      branches.push_back([&, branch] {
        g.play("Add", {x, one}, x);
        g.copy(pick, next[static_cast<size_t>(branch)]);
      });
    }
    g.choose(pick, std::move(branches));
  });
  return x;
}

// A chain without a loop: launched and heard of, as often as a host that decides would.
TensorView make_chain(HandGraph& g, int num_kernels) {
  const TensorView x = g.number(0.0f);
  const TensorView zero = g.number(0.0f);
  const TensorView one = g.number(1.0f);
  g.begin();
  g.copy(x, zero);
  for (int i = 0; i < num_kernels; ++i) g.play("Add", {x, one}, x);
  return x;
}

Status measure(const HandCase& one, const Accelerator& accelerator, const OpTable& ops,
               const SessionsUnderReport& what, Json& row) {
  HandGraph graph(accelerator, ops, what.progress);
  const TensorView counted = one.make(graph);
  EDDY_RETURN_IF_ERROR(graph.finish());
  std::vector<double> times_us;
  for (int i = -2; i < what.num_runs; ++i) {
    const Clock::time_point start = Clock::now();
    for (int64_t launch = 0; launch < one.num_launches; ++launch) {
      EDDY_RETURN_IF_ERROR(graph.run());
    }
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (i >= 0) times_us.push_back(took.count());
    EDDY_ASSIGN_OR_RETURN(const float found, graph.read(counted));
    if (found == one.expected) continue;
    return run_failed("it counted to " + std::to_string(found) + ", expected " +
                      std::to_string(one.expected));
  }
  std::sort(times_us.begin(), times_us.end());
  const auto num_rounds = static_cast<double>(one.num_rounds * one.num_launches);
  row["us_per_round"] = times_us[times_us.size() / 2] / num_rounds;
  row["us_fastest"] = times_us.front() / num_rounds;
  row["us_slowest"] = times_us.back() / num_rounds;
  return Status::ok();
}

Json report_rows(const std::string& part, const std::vector<HandCase>& cases,
                 const SessionsUnderReport& what) {
  Json report = {{"part", part}, {"rows", Json::array()}, {"failed", 0}};
  OpTable ops;
  Status status = add_standard_schemas(ops);
  Result<std::shared_ptr<const Accelerator>> made = what.make_accelerator();
  if (status.is_ok() && !made.is_ok()) status = made.take_status();
  int num_failed = 0;
  for (size_t i = 0; i < cases.size() && status.is_ok(); ++i) {
    Json row = {{"case", cases[i].name}};
    const Status measured = measure(cases[i], **made, ops, what, row);
    row["status"] = measured.is_ok() ? "passed" : "failed";
    if (!measured.is_ok()) row["reason"] = measured.to_string();
    num_failed += measured.is_ok() ? 0 : 1;
    report["rows"].push_back(std::move(row));
    status = (*made)->device->health();
  }
  report["failed"] = num_failed;
  if (!status.is_ok()) report["error"] = status.to_string();
  return report;
}

}  // namespace

Json report_hand_written(const SessionsUnderReport& what) {
  const int64_t n = what.is_small ? 10 : 1000;
  const int64_t side = what.is_small ? 4 : 100;
  const auto f = [](int64_t number) { return static_cast<float>(number); };
  const std::vector<HandCase> cases = {
      {"scalar while", n, 1, [=](HandGraph& g) { return make_scalar(g, n); }, f(n)},
      {"nested " + std::to_string(side) + " x " + std::to_string(side), side * side, 1,
       [=](HandGraph& g) { return make_nested(g, side); }, f(side * side)},
      {"while with a 4-way case", n, 1, [=](HandGraph& g) { return make_case(g, n); }, f(n)},
      {"floor of a host predicate, 1-kernel body", 1, n,
       [](HandGraph& g) { return make_chain(g, 1); }, 1},
      {"floor of a host predicate, 10-kernel body", 1, n,
       [](HandGraph& g) { return make_chain(g, 10); }, 10}};
  return report_rows("hand", cases, what);
}

Json report_probe(const SessionsUnderReport& what, int num_loops, int num_kernels) {
  const int64_t n = what.is_small ? 5 : 2000;
  Json report = {{"part", "probe"}, {"rows", Json::array()}, {"failed", 0}};
  OpTable ops;
  Status status = add_standard_schemas(ops);
  Result<std::shared_ptr<const Accelerator>> made = what.make_accelerator();
  if (status.is_ok() && !made.is_ok()) status = made.take_status();
  std::vector<std::unique_ptr<HandGraph>> graphs;
  std::vector<TensorView> counted;
  for (int i = 0; i < num_loops && status.is_ok(); ++i) {
    HandGraph& g = *graphs.emplace_back(std::make_unique<HandGraph>(**made, ops, what.progress));
    const TensorView x = g.number(0.0f);
    const TensorView zero = g.number(0.0f);
    const TensorView one = g.number(1.0f);
    g.begin();
    g.copy(x, zero);
    count(g, n, [&] {
      for (int k = 1; k < num_kernels; ++k) g.play("Add", {x, one}, x);
    });
    counted.push_back(x);
    status = g.finish();
  }
  for (auto& graph : graphs) {
    if (status.is_ok()) status = graph->start();
  }
  for (auto& graph : graphs) {
    if (status.is_ok()) status = graph->wait();
  }
  for (size_t i = 0; i < graphs.size() && status.is_ok(); ++i) {
    Result<float> found = graphs[i]->read(counted[i]);
    if (!found.is_ok()) {
      status = found.take_status();
    } else if (*found != static_cast<float>(n * (num_kernels - 1))) {
      status = run_failed("a loop counted to " + std::to_string(*found));
    }
  }
  report["rows"].push_back({{"loops", num_loops},
                            {"kernels", num_kernels},
                            {"status", status.is_ok() ? "passed" : "failed"},
                            {"reason", status.is_ok() ? "" : status.to_string()}});
  report["failed"] = status.is_ok() ? 0 : 1;
  return report;
}

}  // namespace eddy
