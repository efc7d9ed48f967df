#include <algorithm>
#include <chrono>
#include <memory>

#include "graph/base/check.h"
#include "tools/gpu/raw_graphs.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using cuda::RivalParams;

// What is measured: a graph that is made, and how much a launch adds to its total.
struct HandCase {
  std::string name;
  int64_t num_rounds = 1;    // of a launch
  int64_t num_launches = 1;  // of a measured run
  std::function<void(RawGraph&)> make;
  int64_t added = 0;
  size_t num_beside = 1;  // graphs that one thread launches by turns, each on its stream
};

// A chain of kernels, the last of which counts, tests and decides.
void make_while(RawGraph& g, int64_t limit, int num_kernels) {
  const auto loop = g.add_while(RawGraph::root());
  RivalParams work;
  work.total = g.total();
  for (int i = 1; i < num_kernels; ++i) g.add_kernel(loop.bodies[0], work);
  work.counter = g.word();
  work.limit = limit;
  work.loop = loop.handle;
  g.add_kernel(loop.bodies[0], work);
  g.add_last_kernel({});
}

// A round of the outer loop is the inner one and a kernel that re-arms it.
void make_nested(RawGraph& g, int64_t side) {
  const auto outer = g.add_while(RawGraph::root());
  const auto inner = g.add_while(outer.bodies[0]);
  RivalParams work;
  work.total = g.total();
  work.counter = g.word();
  work.limit = side;
  work.loop = inner.handle;
  g.add_kernel(inner.bodies[0], work);
  RivalParams next;
  next.counter = g.word();
  next.limit = side;
  next.loop = outer.handle;
  next.inner_loop = inner.handle;
  g.add_kernel(outer.bodies[0], next);
  g.add_last_kernel({});
}

// Four branches by turns, each of one kernel; behind them one that decides and picks.
void make_case(RawGraph& g, int64_t limit) {
  constexpr unsigned kBranches = 4;
  const auto loop = g.add_while(RawGraph::root());
  const auto choice = g.add_switch(loop.bodies[0], kBranches);
  RivalParams work;
  work.total = g.total();
  for (const RawGraph::Level branch : choice.bodies) g.add_kernel(branch, work);
  RivalParams next;
  next.counter = g.word();
  next.limit = limit;
  next.loop = loop.handle;
  next.branch = choice.handle;
  next.num_branches = kBranches;
  g.add_kernel(loop.bodies[0], next);
  g.add_last_kernel({});
}

// A chain with a last kernel that notifies the host, which launches the chain again: the minimum
// wait of every host that decides.
void make_chain(RawGraph& g, int num_kernels) {
  RivalParams work;
  work.total = g.total();
  for (int i = 1; i < num_kernels; ++i) g.add_kernel(RawGraph::root(), work);
  g.add_last_kernel(work);
}

using Graphs = std::vector<std::unique_ptr<RawGraph>>;

// Launches each graph equally often, again as soon as its end is observed.
Status run(Graphs& graphs, int64_t num_launches) {
  EDDY_CHECK(num_launches > 0 && !graphs.empty()) << "nothing to launch";
  std::vector<int64_t> left(graphs.size(), num_launches);
  for (bool is_running = true; is_running;) {
    is_running = false;
    for (size_t i = 0; i < graphs.size(); ++i) {
      const bool is_ended = graphs[i]->is_ended();
      EDDY_RETURN_IF_ERROR(graphs[i]->error());
      is_running |= !is_ended || left[i] > 0;
      if (!is_ended || left[i] == 0) continue;
      --left[i];
      EDDY_RETURN_IF_ERROR(graphs[i]->start());
    }
  }
  return Status::ok();
}

Status check_totals(Graphs& graphs, int64_t expected) {
  for (const auto& graph : graphs) {
    EDDY_ASSIGN_OR_RETURN(const int64_t found, graph->read_total());
    if (found == expected) continue;
    return run_failed("it counted to " + std::to_string(found) + ", expected " +
                      std::to_string(expected));
  }
  return Status::ok();
}

Status measure(const HandCase& one, RawGraphs& raw, int num_runs, Json& row) {
  Graphs graphs;
  for (size_t i = 0; i < one.num_beside; ++i) {
    one.make(*graphs.emplace_back(std::make_unique<RawGraph>(raw)));
    EDDY_RETURN_IF_ERROR(graphs.back()->finish());
  }
  std::vector<double> times_us;
  int64_t expected = 0;
  for (int i = -2; i < num_runs; ++i) {
    const Clock::time_point start = Clock::now();
    EDDY_RETURN_IF_ERROR(run(graphs, one.num_launches));
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (i >= 0) times_us.push_back(took.count());
    expected += one.added * one.num_launches;
    EDDY_RETURN_IF_ERROR(check_totals(graphs, expected));
  }
  std::sort(times_us.begin(), times_us.end());
  const auto num_rounds =
      static_cast<double>(one.num_rounds * one.num_launches) * static_cast<double>(one.num_beside);
  row["us_per_round"] = times_us[times_us.size() / 2] / num_rounds;
  row["us_fastest"] = times_us.front() / num_rounds;
  row["us_slowest"] = times_us.back() / num_rounds;
  return Status::ok();
}

std::vector<HandCase> hand_cases(bool is_small) {
  const int64_t n = is_small ? 10 : 1000;
  const int64_t side = is_small ? 4 : 100;
  std::vector<HandCase> cases;
  for (const int kernels : {1, 10}) {
    const std::string of = ", " + std::to_string(kernels) + "-kernel body";
    cases.push_back({kernels == 1 ? "scalar while" : "while" + of, n, 1,
                     [=](RawGraph& g) { make_while(g, n, kernels); }, n * kernels});
    cases.push_back({"floor of host predicate" + of, 1, n,
                     [=](RawGraph& g) { make_chain(g, kernels); }, kernels});
  }
  cases.push_back({"nested " + std::to_string(side) + " x " + std::to_string(side), side * side, 1,
                   [=](RawGraph& g) { make_nested(g, side); }, side * side});
  cases.push_back({"while with a 4-way case", n, 1, [=](RawGraph& g) { make_case(g, n); }, n});
  cases.push_back(
      {"floor of 32 loops side by side", 1, n, [=](RawGraph& g) { make_chain(g, 1); }, 1, 32});
  return cases;
}

}  // namespace

Json report_hand_written(const GpuUnderReport& gpu, const void* rival_image_or_null, bool is_small,
                         int num_runs) {
  PartReport report("hand", gpu.pace);
  RawGraphs raw(gpu);
  report.end_with(raw.open(rival_image_or_null));
  for (const HandCase& one : hand_cases(is_small)) {
    if (!report.may_begin(one.name)) break;
    Json row = {{"case", one.name}};
    set_status(measure(one, raw, num_runs, row), row);
    report.add(std::move(row));
    report.end_with(gpu.device.health());
  }
  return report.take();
}

}  // namespace eddy
