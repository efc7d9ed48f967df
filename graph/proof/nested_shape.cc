#include "graph/proof/nested_shape.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace eddy {
namespace {

using Kind = NestedCommand::Kind;
constexpr uint32_t kNone = NestedViolation::kNone;

class Shape {
 public:
  explicit Shape(const NestedCommands& commands)
      : commands_(commands),
        depth_(commands.regions.size(), 0),
        is_open_(commands.regions.size(), false),
        is_made_(commands.region_of_name.size(), false),
        is_placed_{std::vector<bool>(commands.launches.size(), false),
                   std::vector<bool>(commands.loops.size(), false),
                   std::vector<bool>(commands.cases.size(), false)} {}

  std::optional<NestedViolation> run() {
    check_names();
    for (const NestedLaunch& launch : commands_.launches) check_launch(launch);
    for (const NestedLoop& loop : commands_.loops) check_loop(loop);
    for (const NestedCase& branch : commands_.cases) check_case(branch);
    if (!found_) check_makers();
    if (!found_ && !commands_.regions.empty()) check_regions();
    if (!found_) check_placed();
    return std::move(found_);
  }

 private:
  void fail(uint32_t region, uint32_t node, std::string text) {
    if (found_) return;
    found_ = NestedViolation{
        NestedViolation::Kind::kMalformed, region, node, kNone, kNone, std::move(text)};
  }

  void check_names() {
    if (commands_.memory.size() != commands_.region_of_name.size()) {
      fail(0, kNone, "names and their memory are not equally many");
    }
    for (const uint32_t region : commands_.region_of_name) {
      if (region >= commands_.regions.size()) fail(0, kNone, "a name is of no region");
    }
    for (const NestedMemory& memory : commands_.memory) names(memory.holders, kNone);
    names(commands_.results, kNone);
  }
  void names(std::span<const uint32_t> list, uint32_t node) {
    const auto is_there = [&](uint32_t name) { return name < commands_.region_of_name.size(); };
    if (!std::ranges::all_of(list, is_there)) fail(0, node, "a name is not there");
  }
  void names(std::span<const NestedPass> list, uint32_t node) {
    for (const NestedPass& pass : list) {
      names(std::span(&pass.from, 1), node);
      names(std::span(&pass.to, 1), node);
    }
  }

  void check_launch(const NestedLaunch& launch) {
    for (const auto* list : {&launch.reads, &launch.writes, &launch.kept}) {
      names(*list, launch.node);
    }
    names(launch.passes, launch.node);
  }
  void check_loop(const NestedLoop& loop) {
    for (const auto* list : {&loop.reads, &loop.tested, &loop.rows, &loop.stacks}) {
      names(*list, loop.node);
    }
    for (const auto* list : {&loop.enter, &loop.forward, &loop.advance, &loop.leave}) {
      names(*list, loop.node);
    }
  }
  void check_case(const NestedCase& branch) {
    names(branch.reads, branch.node);
    names(branch.pass_through, branch.node);
    for (const auto& results : branch.results) names(results, branch.node);
    if (branch.results.size() != branch.regions.size()) {
      fail(0, branch.node, "a branch lacks its results, or has too many");
    }
  }

  // A name has one maker. (Parameters have none here: who enters a region passes them.)
  void check_makers() {
    const auto make = [&](uint32_t name, uint32_t node) {
      if (is_made_[name]) fail(commands_.region_of_name[name], node, "a name is made twice");
      is_made_[name] = true;
    };
    for (const NestedLaunch& launch : commands_.launches) {
      for (const uint32_t name : launch.writes) make(name, launch.node);
      for (const NestedPass& pass : launch.passes) make(pass.to, launch.node);
    }
    for (const NestedLoop& loop : commands_.loops) {
      for (const NestedPass& pass : loop.leave) make(pass.to, loop.node);
      for (const uint32_t name : loop.stacks) make(name, loop.node);
    }
    for (const NestedCase& branch : commands_.cases) {
      std::vector<uint32_t> targets;  // each branch gives the same ones
      for (const auto& results : branch.results) add_targets(results, targets);
      add_targets(branch.pass_through, targets);
      std::ranges::sort(targets);
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      for (const uint32_t name : targets) make(name, branch.node);
    }
  }
  static void add_targets(std::span<const NestedPass> passes, std::vector<uint32_t>& targets) {
    for (const NestedPass& pass : passes) targets.push_back(pass.to);
  }

  // Breadth first: an owner gives its regions their depth before they are looked at.
  void check_regions() {
    depth_[0] = 1;
    reached_ = {0};
    for (size_t i = 0; i < reached_.size() && !found_; ++i) check_region(reached_[i]);
    if (reached_.size() < depth_.size()) fail(0, kNone, "a region is nobody's");
  }
  void check_region(uint32_t r) {
    const std::vector<NestedCommand>& commands = commands_.regions[r].commands;
    const bool has_frame = commands.size() >= 2 && commands.front().kind == Kind::kEnter &&
                           commands.back().kind == Kind::kExit &&
                           commands.front().stream == commands.back().stream;
    if (!has_frame) return fail(r, kNone, "the region lacks its entry or exit");
    for (size_t c = 0; c < commands.size(); ++c) {
      const bool is_frame = commands[c].kind == Kind::kEnter || commands[c].kind == Kind::kExit;
      if (is_frame && c > 0 && c + 1 < commands.size()) {
        return fail(r, kNone, "an entry or exit stands in the middle of the region");
      }
      if (!is_frame) check_command(r, commands[c]);
    }
  }
  void check_command(uint32_t r, const NestedCommand& command) {
    switch (command.kind) {
      case Kind::kLaunch:
        place(0, r, command.id, "a launch");
        break;
      case Kind::kLoop:
        if (!place(1, r, command.id, "a loop")) return;
        own(r, commands_.loops[command.id].node, commands_.loops[command.id].before, false);
        own(r, commands_.loops[command.id].node, commands_.loops[command.id].after,
            commands_.loops[command.id].is_open);
        break;
      case Kind::kCase:
        if (!place(2, r, command.id, "a branch")) return;
        for (const uint32_t inner : commands_.cases[command.id].regions) {
          own(r, commands_.cases[command.id].node, inner, false);
        }
        break;
      case Kind::kWaitPrevious:
        if (!is_open_[r]) fail(r, kNone, "a wait for the iteration before, but no open loop");
        [[fallthrough]];
      case Kind::kRecord:
      case Kind::kWait:
        if (command.id >= commands_.regions[r].num_events) {
          fail(r, kNone, "event " + std::to_string(command.id) + " is not one of the region's");
        }
        break;
      case Kind::kEnter:
      case Kind::kExit:
        break;
    }
  }
  void check_placed() {
    for (const std::vector<bool>& list : is_placed_) {
      if (std::ranges::find(list, false) != list.end()) fail(0, kNone, "a node stands nowhere");
    }
  }
  // Each launch, loop and branch stands in one place.
  bool place(size_t list, uint32_t r, uint32_t id, const char* what) {
    if (id >= is_placed_[list].size()) {
      fail(r, kNone, std::string(what) + " is not there");
      return false;
    }
    if (is_placed_[list][id]) fail(r, kNone, std::string(what) + " stands in two places");
    is_placed_[list][id] = true;
    return !found_;
  }
  void own(uint32_t outer, uint32_t node, uint32_t inner, bool is_open) {
    if (inner >= depth_.size()) return fail(outer, node, "a region is not there");
    if (depth_[inner] > 0) return fail(inner, node, "the region is another's, too, or its own");
    depth_[inner] = depth_[outer] + 1;
    is_open_[inner] = is_open;
    if (depth_[inner] > kMaxNestedDepth) return fail(inner, node, "regions are nested too deeply");
    reached_.push_back(inner);
  }

  const NestedCommands& commands_;
  std::vector<uint32_t> depth_;     // by region; 0: not reached yet
  std::vector<bool> is_open_;       // by region
  std::vector<bool> is_made_;       // by name
  std::vector<uint32_t> reached_;   // regions, owners first
  std::vector<bool> is_placed_[3];  // launches, loops, cases
  std::optional<NestedViolation> found_;
};

}  // namespace

std::optional<NestedViolation> find_malformed(const NestedCommands& commands) {
  return Shape(commands).run();
}

}  // namespace eddy
