// Claim: what operator files with loops and branches become is what the naive reference writes out:
// the same tasks, each with the same ones before it, and the same makespan in every scenario; where
// scenarios are few, the same expectation, quantiles, best and worst.
//
// Times are whole numbers and probabilities powers of a half, so nothing is rounded. Equal ready
// times are settled by the ids of the expansion, which scenario.h leaves open; the test identifies
// tasks by name, device, time and all that must end before them. EDDY_SCENARIO_FILES sets the
// number of files.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <tuple>

#include <gtest/gtest.h>

#include "graph/simulate/scenario.h"
#include "tests/graph/simulate/reference_simulator.h"
#include "tests/graph/strategy/loop_files.h"
#include "tests/graph/strategy/scenario_reference.h"

namespace eddy::scenario_reference {
namespace {

constexpr size_t kMaxTasks = 250;
constexpr size_t kMaxScenarios = 12;

uint64_t num_files() {
  const char* const text = std::getenv("EDDY_SCENARIO_FILES");
  return text == nullptr ? 400 : std::strtoull(text, nullptr, 10);
}

// A task, identified by what does not depend on ids.
struct Key {
  std::string name;
  double time = 0;
  std::string device;
  size_t num_before = 0;
  uint64_t names_before = 0;  // their hashes, added up

  auto operator<=>(const Key&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Key& key) {
    return out << key.name << " on " << key.device << " for " << key.time << " after "
               << key.num_before;
  }
};

// Sets `names_before` and `num_before` of tasks in an order in which each follows its deps.
void add_ancestors(const std::vector<std::set<uint32_t>>& deps, std::vector<Key>& keys) {
  std::vector<std::vector<bool>> before(keys.size());
  std::vector<std::string> own;
  for (const Key& key : keys) own.push_back(key.name + "@" + key.device);
  for (size_t i = 0; i < keys.size(); ++i) {
    before[i].resize(keys.size());
    for (const uint32_t dep : deps[i]) {
      before[i][dep] = true;
      for (size_t k = 0; k < keys.size(); ++k) {
        if (before[dep][k]) before[i][k] = true;
      }
    }
    for (size_t k = 0; k < keys.size(); ++k) {
      if (!before[i][k]) continue;
      ++keys[i].num_before;
      keys[i].names_before += std::hash<std::string>()(own[k]);
    }
  }
}

using Numbered = std::vector<std::pair<Key, uint32_t>>;  // sorted

Numbered numbered(const std::vector<std::set<uint32_t>>& deps, std::vector<Key> keys) {
  add_ancestors(deps, keys);
  Numbered all;
  for (uint32_t i = 0; i < keys.size(); ++i) all.emplace_back(keys[i], i);
  std::ranges::sort(all);
  return all;
}

Numbered of_expansion(const ExpandedScenario& scenario, const Topology& topology) {
  std::vector<Key> keys;
  std::vector<std::set<uint32_t>> deps(scenario.graph.num_slots());
  for (uint32_t slot = 0; slot < scenario.graph.num_slots(); ++slot) {
    const auto& task = scenario.graph.task(slot);
    keys.push_back({scenario.names[slot], task.exe_time, topology.simulated_name(task.device)});
    for (const uint32_t next : scenario.graph.successors(slot)) deps[next].insert(slot);
  }
  return numbered(deps, std::move(keys));
}

Numbered of_reference(const std::vector<Task>& tasks) {
  std::vector<Key> keys;
  std::vector<std::set<uint32_t>> deps;
  for (const Task& task : tasks) {
    const auto device_name = [](int device) { return std::string(1, char('a' + device)); };
    const int from = task.device - kNumDevices;
    keys.push_back(
        {task.name, static_cast<double>(task.time),
         from < 0 ? device_name(task.device)
                  : "link:" + device_name(from) + ">" + device_name((from + 1) % kNumDevices)});
    deps.push_back(task.deps);
  }
  return numbered(deps, std::move(keys));
}

// By the reference simulator, with the ids of the expansion.
int64_t makespan_of(const std::vector<Task>& tasks, const Numbered& own, const Numbered& expanded) {
  std::vector<uint32_t> id(tasks.size());
  for (size_t i = 0; i < own.size(); ++i) id[own[i].second] = expanded[i].second;
  ReferenceGraph<int64_t> graph;
  for (size_t i = 0; i < tasks.size(); ++i) {
    auto& task = graph[id[i]];
    task.exe_time = tasks[i].time;
    task.device = static_cast<uint32_t>(tasks[i].device);
    for (const uint32_t dep : tasks[i].deps) task.deps.insert(id[dep]);
  }
  const auto timeline = simulate_reference(graph);
  EXPECT_TRUE(timeline.has_value());
  return timeline ? timeline->makespan : -1;
}

std::string first_difference(const Numbered& reference, const Numbered& made) {
  std::ostringstream text;
  std::vector<Key> one;
  std::vector<Key> other;
  for (const auto& [key, number] : reference) one.push_back(key);
  for (const auto& [key, number] : made) other.push_back(key);
  std::vector<Key> lacks;
  std::vector<Key> extra;
  std::ranges::set_difference(one, other, std::back_inserter(lacks));
  std::ranges::set_difference(other, one, std::back_inserter(extra));
  constexpr size_t kMostShown = 6;
  for (size_t i = 0; i < std::min(lacks.size(), kMostShown); ++i)
    text << "lacks " << lacks[i] << "\n";
  for (size_t i = 0; i < std::min(extra.size(), kMostShown); ++i)
    text << "extra " << extra[i] << "\n";
  return text.str();
}

// One scenario of a file. Nothing where it differs.
std::optional<int64_t> compare_scenario(const List& root, const std::vector<Task>& tasks,
                                        const Record& record, uint64_t seed) {
  const std::string document = file_text(root, &record, seed);
  const auto made = loop_files::read(document);
  EXPECT_TRUE(made.is_ok()) << made.status().to_string() << "\n" << document;
  if (!made.is_ok()) return std::nullopt;
  const auto scenario = expand_scenario(made->root);
  EXPECT_TRUE(scenario.is_ok()) << scenario.status().to_string() << "\n" << document;
  if (!scenario.is_ok()) return std::nullopt;
  const Numbered expanded = of_expansion(*scenario, made->topology);
  const Numbered own = of_reference(tasks);
  const std::string difference = first_difference(own, expanded);
  EXPECT_EQ(difference, "") << document;
  EXPECT_EQ(own.size(), expanded.size()) << document;
  if (!difference.empty() || own.size() != expanded.size()) return std::nullopt;
  const auto report = evaluate_scenarios(made->root);
  EXPECT_TRUE(report.is_ok());
  const int64_t makespan = makespan_of(tasks, own, expanded);
  EXPECT_EQ(report->worst, static_cast<double>(makespan)) << document;
  return makespan;
}

struct Sums {
  std::vector<std::pair<int64_t, double>> makespans;  // with probabilities
  bool is_whole = true;                               // all scenarios are there
};

// All scenarios one after the other, as long as they are few and short.
Sums compare_all(const List& root, uint64_t seed) {
  Sums sums;
  std::vector<size_t> picks;
  for (size_t count = 0; !testing::Test::HasFailure(); ++count) {
    std::vector<size_t> sizes;
    Record record;
    double probability = 1;
    const auto tasks = write_out(root, [&](const Entry& control) {
      if (sizes.size() == picks.size()) picks.push_back(0);
      const int64_t value = control.values[picks[sizes.size()]];
      sizes.push_back(control.values.size());
      probability /= static_cast<double>(control.values.size());
      record[control.name].push_back(value);
      return value;
    });
    if (tasks.size() > kMaxTasks || count == kMaxScenarios) {
      sums.is_whole = false;
      break;
    }
    const auto makespan = compare_scenario(root, tasks, record, seed);
    if (!makespan) break;
    sums.makespans.emplace_back(*makespan, probability);
    picks.resize(sizes.size());
    while (!picks.empty() && ++picks.back() == sizes[picks.size() - 1]) picks.pop_back();
    if (picks.empty()) break;
  }
  return sums;
}

void compare_sums(const List& root, Sums sums, uint64_t seed) {
  const std::string document = file_text(root, nullptr, seed);
  const auto made = loop_files::read(document);
  ASSERT_TRUE(made.is_ok()) << made.status().to_string() << "\n" << document;
  const auto report = evaluate_scenarios(made->root);
  ASSERT_TRUE(report.is_ok()) << report.status().to_string();
  EXPECT_TRUE(report->is_exact);
  EXPECT_EQ(report->num_scenarios, sums.makespans.size()) << document;
  std::ranges::sort(sums.makespans);
  double expectation = 0;
  for (const auto& [makespan, probability] : sums.makespans) {
    expectation += static_cast<double>(makespan) * probability;
  }
  EXPECT_EQ(report->expectation, expectation) << document;
  EXPECT_EQ(report->best, sums.makespans.front().first) << document;
  EXPECT_EQ(report->worst, sums.makespans.back().first) << document;
  const ScenarioOptions options;
  for (size_t q = 0; q < options.quantiles.size(); ++q) {
    double sum = 0;
    size_t at = 0;
    while ((sum += sums.makespans[at].second) < options.quantiles[q]) ++at;
    EXPECT_EQ(report->quantiles[q], sums.makespans[at].first) << document;
  }
}

TEST(ScenarioReference, FilesWithLoopsAndBranchesBecomeWhatTheReferenceWritesOut) {
  const uint64_t count = num_files();
  uint64_t num_scenarios = 0;
  uint64_t num_whole = 0;
  for (uint64_t seed = 1; seed <= count && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const List root = random_file(random, 1 + static_cast<int>(seed % 5));
    Sums sums = compare_all(root, seed);
    num_scenarios += sums.makespans.size();
    if (HasFailure() || !sums.is_whole) continue;
    ++num_whole;
    compare_sums(root, std::move(sums), seed);
  }
  std::cout << "seeds 1 to " << count << ": " << num_scenarios << " scenarios, all of " << num_whole
            << " files\n";
  EXPECT_GT(num_whole, count / 4);
}

}  // namespace
}  // namespace eddy::scenario_reference
