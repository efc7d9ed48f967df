#include "tests/graph/schedule/nested_simulation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "graph/base/random.h"

namespace eddy {
namespace {

using Kind = NestedCommand::Kind;
constexpr uint64_t kGrain = 64;
constexpr uint64_t kMaxTrips = 4;
constexpr int kMaxSteps = 200'000;

// Where a name stands now; token 0: in memory of its own.
struct Pointer {
  uint64_t token = 0;
  uint32_t arena = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct Frame;

// What a lane is busy with.
struct Work {
  const NestedLaunch* launch = nullptr;
  std::vector<std::pair<uint32_t, Pointer>> reads;
  std::vector<std::pair<uint32_t, Pointer>> writes;
  const NestedLoop* loop = nullptr;
  const NestedCase* branch = nullptr;
  uint64_t trips_left = 0;
  bool is_in_after = false;
  size_t choice = 0;
  std::unique_ptr<Frame> child;  // of a loop or branch
};

struct Lane {
  std::vector<NestedCommand> commands;
  size_t at = 0;
  std::unique_ptr<Work> work;
};

struct Frame {
  std::map<uint32_t, Lane> lanes;  // by stream
  std::vector<bool> recorded;
  bool is_done() const {
    return std::all_of(lanes.begin(), lanes.end(), [](const auto& lane) {
      return !lane.second.work && lane.second.at == lane.second.commands.size();
    });
  }
};

class Machine {
 public:
  Machine(const NestedCommands& commands, uint64_t seed)
      : commands_(commands), random_(seed), pointers_(commands.memory.size()) {
    for (const uint64_t size : commands.arena_sizes_bytes) {
      bytes_.emplace_back(size / kGrain + 1, 0);
    }
    hurry_ = 1 + random_.below(4);
  }

  std::string run() {
    const std::unique_ptr<Frame> root = frame(0);
    for (int steps = 0; !root->is_done() && error_.empty(); ++steps) {
      if (steps == kMaxSteps) return "";  // long enough
      std::vector<std::function<void()>> actions;
      collect(*root, actions);
      if (actions.empty()) return "nothing can go on";
      // Often the latest found goes first, so that some lanes run far ahead.
      const size_t choice =
          random_.below(hurry_) != 0 ? actions.size() - 1 : random_.below(actions.size());
      actions[choice]();
    }
    for (const uint32_t name : commands_.results) {
      if (pointers_[name].token != 0) fail(name, "leaves the graph within an arena");
    }
    return error_;
  }

 private:
  void fail(uint32_t name, const std::string& what) {
    if (error_.empty()) error_ = "value " + std::to_string(name) + " " + what;
  }

  std::unique_ptr<Frame> frame(uint32_t region) const {
    auto frame = std::make_unique<Frame>();
    frame->recorded.resize(commands_.regions[region].num_events, false);
    for (const NestedCommand& command : commands_.regions[region].commands) {
      frame->lanes[command.stream].commands.push_back(command);
    }
    return frame;
  }

  void collect(Frame& frame, std::vector<std::function<void()>>& actions) {
    for (auto& [stream, lane] : frame.lanes) {
      if (lane.work && lane.work->launch != nullptr) {
        actions.push_back([this, &lane] { end_launch(lane); });
      } else if (lane.work && !lane.work->child->is_done()) {
        collect(*lane.work->child, actions);
      } else if (lane.work) {
        actions.push_back([this, &lane] { go_on(lane); });
      } else if (lane.at < lane.commands.size()) {
        const NestedCommand& next = lane.commands[lane.at];
        if (next.kind == Kind::kWait && !frame.recorded[next.id]) continue;
        actions.push_back([this, &frame, &lane] { begin(frame, lane); });
      }
    }
  }

  void begin(Frame& frame, Lane& lane) {
    const NestedCommand& command = lane.commands[lane.at++];
    switch (command.kind) {
      case Kind::kRecord:
        frame.recorded[command.id] = true;
        break;
      case Kind::kLaunch:
        begin_launch(lane, commands_.launches[command.id]);
        break;
      case Kind::kLoop:
        begin_loop(lane, commands_.loops[command.id]);
        break;
      case Kind::kCase:
        begin_case(lane, commands_.cases[command.id]);
        break;
      default:
        break;
    }
  }

  template <typename Visit>
  void for_each_grain(const Pointer& pointer, Visit visit) {
    for (uint64_t b = pointer.offset; b < pointer.offset + pointer.size; b += kGrain) {
      visit(bytes_[pointer.arena][b / kGrain]);
    }
  }
  void check(uint32_t name, const Pointer& pointer) {
    if (pointer.token == 0) return;
    for_each_grain(pointer, [&](uint64_t& token) {
      if (token != pointer.token) fail(name, "is read after its bytes were written for another");
    });
  }
  void check(const std::vector<uint32_t>& names) {
    for (const uint32_t name : names) check(name, pointers_[name]);
  }

  // The first block at which no holder stands.
  Pointer place(uint32_t name) {
    const NestedMemory& memory = commands_.memory[name];
    if (memory.arena == NestedMemory::kOwn) return {};
    for (const uint64_t offset : memory.offsets_bytes) {
      const bool is_held =
          std::any_of(memory.holders.begin(), memory.holders.end(), [&](uint32_t holder) {
            const Pointer& held = pointers_[holder];
            return held.token != 0 && held.arena == memory.arena && held.offset == offset;
          });
      if (!is_held) return {++last_token_, memory.arena, offset, memory.size_bytes};
    }
    fail(name, "finds no free block");
    return {};
  }

  void begin_launch(Lane& lane, const NestedLaunch& launch) {
    lane.work = std::make_unique<Work>();
    lane.work->launch = &launch;
    check(launch.reads);
    for (const uint32_t name : launch.reads) lane.work->reads.emplace_back(name, pointers_[name]);
    for (const uint32_t name : launch.writes) {
      const Pointer to = place(name);
      lane.work->writes.emplace_back(name, to);
      if (to.token != 0) for_each_grain(to, [&](uint64_t& token) { token = to.token; });
    }
  }
  void end_launch(Lane& lane) {
    const Work& work = *lane.work;
    for (size_t i = 0; i < work.reads.size(); ++i) {
      const auto& [name, from] = work.reads[i];
      const bool may_overwrite = i < 64 && (work.launch->overwritable >> i & 1) != 0;
      const bool is_in_place =
          may_overwrite && !work.writes.empty() && work.writes[0].second.token != 0 &&
          work.writes[0].second.arena == from.arena && work.writes[0].second.offset == from.offset;
      if (!is_in_place) check(name, from);
    }
    for (const auto& [name, to] : work.writes) {
      check(name, to);
      pointers_[name] = to;
    }
    pass(work.launch->passes);
    lane.work.reset();
  }

  void pass(const std::vector<NestedPass>& passes) {
    std::vector<Pointer> from;
    for (const NestedPass& pass : passes) from.push_back(pointers_[pass.from]);
    for (size_t i = 0; i < passes.size(); ++i) pointers_[passes[i].to] = from[i];
  }

  void begin_loop(Lane& lane, const NestedLoop& loop) {
    lane.work = std::make_unique<Work>();
    lane.work->loop = &loop;
    lane.work->trips_left = random_.below(kMaxTrips);
    check(loop.reads);
    pass(loop.enter);
    lane.work->child = frame(loop.before);
  }
  void begin_case(Lane& lane, const NestedCase& branch) {
    check(branch.reads);
    const size_t num_ways = branch.regions.size() + (branch.may_run_none ? 1 : 0);
    const size_t choice = random_.below(num_ways);
    if (choice == branch.regions.size()) return pass(branch.pass_through);
    lane.work = std::make_unique<Work>();
    lane.work->branch = &branch;
    lane.work->choice = choice;
    lane.work->child = frame(branch.regions[choice]);
  }

  // A region of the loop or branch has ended.
  void go_on(Lane& lane) {
    Work& work = *lane.work;
    if (work.branch != nullptr) {
      pass(work.branch->results[work.choice]);
      lane.work.reset();
    } else if (work.is_in_after) {
      check(work.loop->rows);
      pass(work.loop->advance);
      work.is_in_after = false;
      work.child = frame(work.loop->before);
    } else {
      check(work.loop->tested);
      if (work.trips_left == 0) {
        pass(work.loop->leave);
        lane.work.reset();
        return;
      }
      --work.trips_left;
      pass(work.loop->forward);
      work.is_in_after = true;
      work.child = frame(work.loop->after);
    }
  }

  const NestedCommands& commands_;
  Random random_;
  uint64_t hurry_ = 1;
  std::vector<Pointer> pointers_;             // by name
  std::vector<std::vector<uint64_t>> bytes_;  // by arena: tokens
  uint64_t last_token_ = 0;
  std::string error_;
};

}  // namespace

std::string simulate_nested(const NestedCommands& commands, uint64_t seed) {
  return Machine(commands, seed).run();
}

}  // namespace eddy
