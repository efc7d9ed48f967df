// ScenarioProgram: a checked ScenarioRegion, and its walks. Internal to scenario.
//
// walk() follows one scenario and tells a sink what happens, in a fixed order: every choice, and,
// unless only choices are asked for, every task with what it waits for. Recursion is as deep as
// regions are nested, 100 at most. Borrows the region it was made from.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/simulate/scenario.h"

namespace eddy {

class ScenarioProgram {
 public:
  // A loop or case, by the dense number that choices use.
  struct Control {
    const ScenarioEntry* entry = nullptr;
    std::vector<Decision::Likely> likely;  // those above probability 0, cumulative in `probability`
    std::vector<double> probabilities;     // of each
    uint64_t name_hash = 0;
    std::vector<double> region_work;  // of each region, inner loops at their most trips
    int64_t extreme = 0;              // the most trips, or the branch with the most work
    uint32_t loop = UINT32_MAX;       // the innermost one around it
  };

  // What the value of a control's next execution is. False: there is none, and the walk ends.
  using Choose = std::function<bool(uint32_t control, int64_t& value)>;

  // The tasks of a walk; a decision has `entry` of a loop or case.
  struct Expansion {
    std::vector<TaskSpec<double>> specs;
    std::vector<Edge> edges;
    bool wants_names = false;
    std::vector<std::string> names;
    std::vector<bool> is_decision;
  };

  static Result<ScenarioProgram> create(const ScenarioRegion& root);

  const std::vector<Control>& controls() const { return controls_; }

  // The choices of one scenario only. `limit` bounds their number and that of the tasks.
  Status walk(const Choose& choose, uint64_t limit) const;
  Status expand(const Choose& choose, uint64_t limit, Expansion& expansion) const;

 private:
  struct Region;
  struct Entry {
    const ScenarioEntry* entry = nullptr;
    uint32_t control = UINT32_MAX;  // its own; of a follow that of its case
    std::vector<Region> regions;
  };
  struct Region {
    std::vector<Entry> entries;
    std::vector<uint32_t> order;  // topological
    std::vector<bool> is_sink;    // no node of the region depends on it
    double work = 0;              // with every inner control at its extreme
  };
  struct Walk;

  Status prepare(const ScenarioRegion& from, const std::string& where, int depth, bool is_traced,
                 Region& region);
  Status prepare_entry(const ScenarioEntry& from, const std::string& where, int depth,
                       bool is_traced, Entry& entry);
  Status prepare_follow(const ScenarioEntry& from, const std::string& where, int depth,
                        Entry& entry);
  void prepare_control(Entry& entry);
  double work_of(const Entry& entry) const;
  Status check_decision(const ScenarioEntry& entry, const std::string& where) const;

  std::vector<Control> controls_;
  // While they are prepared: cases by name, and the innermost loop.
  std::unordered_map<std::string, uint32_t> cases_;
  uint32_t loop_ = UINT32_MAX;
  Region root_;
};

}  // namespace eddy
