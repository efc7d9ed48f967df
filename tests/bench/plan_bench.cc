// What planning costs on one thread, from an edge list to a proved plan: rank, matching, growth
// with the number of nodes, and a real network.
//
// Random graphs have four edges a node, either within a window of 64 ids or from anywhere to
// anywhere later; seeds are fixed. Counters hold the results. Results: results/plan_*.md.
//
// --table prints the required figures beside their limits, and the growth with the number of nodes:
// the median processor time of a few runs in a process of its own, and that process's peak memory.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "graph/analysis/rank.h"
#include "graph/analysis/topological_order.h"
#include "graph/analysis/transitive_reduction.h"
#include "graph/base/random.h"
#include "graph/proof/happens_before.h"
#include "graph/schedule/streams/command_list.h"
#include "graph/schedule/streams/issue_order.h"
#include "graph/schedule/streams/matching_assignment.h"
#include "graph/schedule/streams/sync_plan.h"
#include "tests/graph/schedule/streams/nasnet.h"
#include "tools/command/dag/dag_plan.h"

namespace eddy {
namespace {

// A window of 0: from anywhere.
std::vector<Edge> random_edges(uint32_t num_nodes, uint32_t num_edges, uint32_t window) {
  Random random(7);
  std::vector<Edge> edges;
  while (edges.size() < num_edges) {
    uint32_t from = static_cast<uint32_t>(random.below(num_nodes));
    uint64_t to = window == 0 ? random.below(num_nodes) : from + 1 + random.below(window);
    if (to == from || to >= num_nodes) continue;
    if (to < from) {
      const uint32_t later = from;
      from = static_cast<uint32_t>(to);
      to = later;
    }
    edges.push_back({from, static_cast<uint32_t>(to)});
  }
  return edges;
}

std::vector<Edge> chain_edges(uint32_t num_nodes) {
  std::vector<Edge> edges;
  for (uint32_t node = 0; node + 1 < num_nodes; ++node) edges.push_back({node, node + 1});
  return edges;
}

struct Outcome {
  uint32_t num_streams = 0;
  size_t num_waits = 0;
  size_t num_records = 0;
  bool is_safe = false;
};

Outcome finish(const Dag& dag, const StreamAssignment& streams, const std::vector<uint32_t>& order,
               const std::vector<Edge>& edges) {
  const SyncPlan syncs = plan_syncs(dag, streams, order);
  const std::vector<Program::Step> steps = command_list(order, streams, syncs);
  std::vector<RequiredOrder> required;
  required.reserve(edges.size());
  for (const Edge& edge : edges) required.push_back({edge.from, edge.to});
  const Proof proof = prove_order(dag.num_nodes(), steps, required);
  return {streams.num_streams, syncs.waits.size(), syncs.records.size(), proof.is_safe()};
}

// Build, rank, order, assign, synchronise, prove.
Outcome plan_by_rank(uint32_t num_nodes, const std::vector<Edge>& edges, uint32_t max_streams) {
  const Dag dag = build_dag(num_nodes, edges).value();
  const std::vector<uint32_t> order = issue_order(unit_ranks(dag, topological_order(dag)));
  const StreamAssignment streams = assign_streams(dag, order, {.max_streams = max_streams});
  return finish(dag, streams, order, edges);
}

Outcome plan_by_matching(uint32_t num_nodes, const std::vector<Edge>& edges, FewestStreams& how) {
  const Dag dag = build_dag(num_nodes, edges).value();
  const Dag reduced = transitive_reduction(dag);
  const std::vector<uint32_t> order = issue_order(unit_ranks(dag, topological_order(dag)));
  const MatchingAssignment matched = assign_by_matching(reduced, order, {});
  how = matched.streams.fewest;
  return finish(reduced, matched.streams, order, edges);
}

void report(benchmark::State& state, const Outcome& outcome) {
  state.counters["streams"] = outcome.num_streams;
  state.counters["waits"] = static_cast<double>(outcome.num_waits);
  state.counters["records"] = static_cast<double>(outcome.num_records);
  if (!outcome.is_safe) state.SkipWithError("the plan is not proved");
}

void rank(benchmark::State& state, uint32_t num_nodes, uint32_t window, uint32_t max_streams) {
  const std::vector<Edge> edges = random_edges(num_nodes, 4 * num_nodes, window);
  Outcome outcome;
  for (auto _ : state) outcome = plan_by_rank(num_nodes, edges, max_streams);
  report(state, outcome);
}

void matching(benchmark::State& state, uint32_t num_nodes, const std::vector<Edge>& edges) {
  Outcome outcome;
  FewestStreams how = FewestStreams::kExact;
  for (auto _ : state) outcome = plan_by_matching(num_nodes, edges, how);
  report(state, outcome);
  state.SetLabel(how == FewestStreams::kExact
                     ? "exact"
                     : (how == FewestStreams::kJoined ? "joined" : "greedily"));
}

// The file, the plan and its JSON, as `eddy plan --dag --json` does it.
void file(benchmark::State& state, uint32_t num_nodes) {
  std::string json = "{\"nodes\":" + std::to_string(num_nodes) + ",\"edges\":[";
  for (const Edge& edge : random_edges(num_nodes, 4 * num_nodes, 64)) {
    if (json.back() != '[') json += ",";
    json += "[" + std::to_string(edge.from) + "," + std::to_string(edge.to) + "]";
  }
  json += "]}";
  size_t size_bytes = 0;
  for (auto _ : state) {
    const DagFile parsed = parse_dag_file(json).value();
    const DagPlan plan = plan_dag(parsed, {}).value();
    size_bytes = to_json(plan).size();
  }
  state.counters["bytes_in"] = static_cast<double>(json.size());
  state.counters["bytes_out"] = static_cast<double>(size_bytes);
}

std::string size_name(uint32_t num_nodes) { return std::to_string(num_nodes); }

template <typename Run>
void add(const std::string& name, Run run) {
  benchmark::RegisterBenchmark(name.c_str(), [run](benchmark::State& state) {
    run(state);
  })->Unit(benchmark::kMillisecond);
}

void register_all() {
  for (uint32_t num_nodes : {10'000u, 100'000u, 1'000'000u}) {
    const std::string size = size_name(num_nodes);
    add("rank/window/" + size, [=](auto& state) { rank(state, num_nodes, 64, 0); });
    add("rank/anywhere/" + size, [=](auto& state) { rank(state, num_nodes, 0, 0); });
    add("rank/window/8_streams/" + size, [=](auto& state) { rank(state, num_nodes, 64, 8); });
    add("rank/anywhere/8_streams/" + size, [=](auto& state) { rank(state, num_nodes, 0, 8); });
    add("file/window/" + size, [=](auto& state) { file(state, num_nodes); });
  }
  for (uint32_t num_nodes : {1'000u, 2'000u, 10'000u, 100'000u, 1'000'000u}) {
    const std::string size = size_name(num_nodes);
    const uint32_t num_edges = num_nodes / 10 * 14;
    add("matching/chain/" + size,
        [=](auto& state) { matching(state, num_nodes, chain_edges(num_nodes)); });
    add("matching/window/" + size,
        [=](auto& state) { matching(state, num_nodes, random_edges(num_nodes, num_edges, 64)); });
    add("matching/anywhere/" + size,
        [=](auto& state) { matching(state, num_nodes, random_edges(num_nodes, num_edges, 0)); });
  }
  add("rank/nasnet_a_large", [](benchmark::State& state) {
    const std::vector<Edge> edges = testing::nasnet_a_large().edges();
    Outcome outcome;
    for (auto _ : state) outcome = plan_by_rank(1007, edges, 0);
    report(state, outcome);
  });
  add("matching/nasnet_a_large",
      [](auto& state) { matching(state, 1007, testing::nasnet_a_large().edges()); });
}

// --- the table ---

struct Measured {
  Outcome outcome;
  FewestStreams how = FewestStreams::kExact;
  double median_ms = 0;
  double spread_ms = 0;  // slowest less fastest
  double peak_mb = 0;
};
using Planning = std::function<Outcome(FewestStreams& how)>;

double processor_ms() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// Runs that take more than a second: twice.
Measured time_planning(const Planning& plan) {
  Measured measured;
  std::vector<double> times_ms;
  for (size_t run = 0; run < 7; ++run) {
    const double start_ms = processor_ms();
    measured.outcome = plan(measured.how);
    times_ms.push_back(processor_ms() - start_ms);
    if (run > 0 && times_ms.back() > 1000) break;
  }
  std::sort(times_ms.begin(), times_ms.end());
  const size_t count = times_ms.size();
  measured.median_ms = (times_ms[(count - 1) / 2] + times_ms[count / 2]) / 2;
  measured.spread_ms = times_ms.back() - times_ms.front();
  return measured;
}

// In a process of its own; zeros where that failed.
Measured measure(const std::function<Planning()>& prepare) {
  Measured measured;
  int ends[2];
  if (pipe(ends) != 0) return measured;
  const pid_t child = fork();
  if (child == 0) {
    const Measured mine = time_planning(prepare());
    const bool is_written = write(ends[1], &mine, sizeof mine) == sizeof mine;
    _exit(is_written ? 0 : 1);
  }
  close(ends[1]);
  if (child > 0 && read(ends[0], &measured, sizeof measured) != sizeof measured) measured = {};
  close(ends[0]);
  rusage usage = {};
  int status = 0;
  if (child > 0 && wait4(child, &status, 0, &usage) == child) {
    measured.peak_mb = static_cast<double>(usage.ru_maxrss) / 1024;
  }
  return measured;
}

std::function<Planning()> by_rank(uint32_t num_nodes, uint32_t window, uint32_t max_streams = 0) {
  return [=]() -> Planning {
    return [=, edges = random_edges(num_nodes, 4 * num_nodes, window)](FewestStreams&) {
      return plan_by_rank(num_nodes, edges, max_streams);
    };
  };
}
// Each node on one device of so many.
std::function<Planning()> on_devices(uint32_t num_nodes, uint32_t num_devices) {
  return [=]() -> Planning {
    Random random(7);
    std::vector<uint32_t> devices;
    for (uint32_t i = 0; i < num_nodes; ++i) {
      devices.push_back(static_cast<uint32_t>(random.below(num_devices)));
    }
    return [=, edges = random_edges(num_nodes, 4 * num_nodes, 64)](FewestStreams&) {
      const Dag dag = build_dag(num_nodes, edges).value();
      const std::vector<uint32_t> order = issue_order(unit_ranks(dag, topological_order(dag)));
      return finish(dag, assign_streams(dag, order, {.devices = devices}), order, edges);
    };
  };
}
std::function<Planning()> by_matching(uint32_t num_nodes, std::vector<Edge> edges) {
  return [=]() -> Planning {
    return [=](FewestStreams& how) { return plan_by_matching(num_nodes, edges, how); };
  };
}

void print_row(const char* name, const char* limit, const std::function<Planning()>& prepare,
               bool matches = false) {
  const Measured measured = measure(prepare);
  const char* how = measured.how == FewestStreams::kExact    ? ", exact"
                    : measured.how == FewestStreams::kJoined ? ", joined"
                                                             : ", greedily";
  const int decimals = measured.median_ms < 1 ? 3 : measured.median_ms < 100 ? 1 : 0;
  std::printf("| %s | %s | %.*f ± %.*f ms | %.0f MB | %u streams, %zu waits, %zu records%s, %s |\n",
              name, limit, decimals, measured.median_ms, decimals, measured.spread_ms / 2,
              measured.peak_mb, measured.outcome.num_streams, measured.outcome.num_waits,
              measured.outcome.num_records, matches ? how : "",
              measured.outcome.is_safe ? "proved" : "NOT PROVED");
  std::fflush(stdout);
}

void print_table() {
  std::puts("| case | at most | time | peak memory | plan |\n|---|---|---|---|---|");
  print_row("rank + waits + proof, 10⁴ nodes, window 64", "40 ms", by_rank(10'000, 64));
  print_row("10⁴, from anywhere", "40 ms", by_rank(10'000, 0));
  print_row("10⁵, window 64", "0.6 s, 0.5 GB", by_rank(100'000, 64));
  print_row("10⁵, from anywhere", "0.6 s, 0.5 GB", by_rank(100'000, 0));
  print_row("10⁶, window 64", "8 s, 6 GB", by_rank(1'000'000, 64));
  print_row("10⁶, from anywhere", "60 s, 8 GB", by_rank(1'000'000, 0));
  constexpr uint32_t kMany = 100'000;
  print_row("matching, 10⁵ nodes, 1.4·10⁵ edges, window 64", "0.3 s",
            by_matching(kMany, random_edges(kMany, 140'000, 64)), true);
  print_row("the same, from anywhere", "0.3 s", by_matching(kMany, random_edges(kMany, 140'000, 0)),
            true);
  print_row("the same, a chain", "0.3 s", by_matching(kMany, chain_edges(kMany)), true);
  const std::vector<Edge> nasnet = testing::nasnet_a_large().edges();
  print_row("NASNet-A large, rank", "5 ms", []() -> Planning {
    const std::vector<Edge> edges = testing::nasnet_a_large().edges();
    return [=](FewestStreams&) { return plan_by_rank(1007, edges, 0); };
  });
  print_row("NASNet-A large, matching", "150 ms", by_matching(1007, nasnet), true);
  std::puts("\n| growth | | time | peak memory | plan |\n|---|---|---|---|---|");
  for (uint32_t num_nodes : {10'000u, 100'000u, 1'000'000u}) {
    const std::string size = size_name(num_nodes);
    for (const uint32_t window : {64u, 0u}) {
      const std::string name = "rank, 8 streams, " + size + (window == 0 ? ", anywhere" : "");
      print_row(name.c_str(), "", by_rank(num_nodes, window, 8));
    }
    if (num_nodes == kMany) {
      for (const uint32_t num_devices : {10u, 1'000u, 10'000u, 100'000u}) {
        const std::string name = "rank, " + size + " on " + size_name(num_devices) + " devices";
        print_row(name.c_str(), "", on_devices(num_nodes, num_devices));
      }
    }
    const uint32_t num_edges = num_nodes / 10 * 14;
    for (const uint32_t window : {64u, 0u}) {
      const std::string name = "matching, " + size + (window == 0 ? ", anywhere" : "");
      print_row(name.c_str(), "",
                by_matching(num_nodes, random_edges(num_nodes, num_edges, window)), true);
    }
  }
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--table") == 0) {
    eddy::print_table();
    return 0;
  }
  eddy::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
