// A naive reference for operator files with loops and branches: one scenario written out as the
// words of the format say (graph/strategy/README.md, expand_graph.h), turn by
// turn, as a flat list of tasks with what each waits for. It shares no code with expand_graph or
// ScenarioProgram; parts overlap where they have an element in common, looked at one by one.
//
// Operators are elementwise on kElements numbers of four bytes, in equal parts, on the devices a,
// b, c and d of loop_files::kRing, with links from each to the next one.
//
// Errors: none, files are right. Cost: quadratic in tasks, and more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/random.h"

namespace eddy::scenario_reference {

inline constexpr int kElements = 8;
inline constexpr int kNumDevices = 4;

struct Entry;
using List = std::vector<Entry>;  // each reads only those before it

struct Carried {
  std::string name;
  std::string next;
  std::string initial;  // empty: none
};

struct Entry {
  enum class Kind { kOperator, kLoop, kCase };
  Kind kind = Kind::kOperator;
  std::string name;
  std::vector<std::string> inputs;
  int time = 0;              // of an operator's whole, or of a decision
  std::vector<int> devices;  // by part; where a decision is: one, or none that is given
  std::vector<Carried> carried;
  std::vector<List> lists;            // a loop's before and body, a case's branches
  std::vector<int64_t> values = {1};  // trips or branches, each as likely as the others
};

// `max_controls`: of loops and branches.
List random_file(Random& random, int max_controls);

// The values of each loop's and case's executions.
using Record = std::map<std::string, std::vector<int64_t>>;

// JSON. With the record as traces, or with distributions. The order of entries is the random one.
std::string file_text(const List& root, const Record* record_or_null, uint64_t seed);

struct Task {
  std::string name;  // as that of expand_scenario()
  int64_t time = 0;
  int device = 0;  // links behind the devices, that from d to a last
  std::set<uint32_t> deps;
};

// Called once for each execution of a loop or case.
using Choose = std::function<int64_t(const Entry& control)>;
std::vector<Task> write_out(const List& root, const Choose& choose);

}  // namespace eddy::scenario_reference
