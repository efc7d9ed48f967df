#include "tests/graph/schedule/nested_simulation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "graph/base/random.h"

namespace eddy {
namespace {

using Op = Program::Op;
constexpr uint64_t kGrain = 64;
constexpr uint64_t kMaxTrips = 4;
constexpr int kMaxSteps = 200'000;

// Where a name was made, and what stands there since; token 0: in memory of its own.
struct Pointer {
  uint64_t token = 0;
  uint32_t arena = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct Frame;

// A lane's current work.
struct Work {
  const Program::Launch* launch = nullptr;
  std::vector<std::pair<uint32_t, Pointer>> reads;
  std::vector<std::pair<uint32_t, Pointer>> writes;
  const Program::Loop* loop = nullptr;
  const Program::Case* branch = nullptr;
  uint64_t trips_left = 0;
  bool is_in_after = false;
  size_t choice = 0;
  std::unique_ptr<Frame> child;  // of a loop or branch
  // For a pipelined loop: iterations with tails that may still run, the last one last.
  std::vector<std::unique_ptr<Frame>> tails;
};

struct Lane {
  std::vector<Program::Step> commands;
  size_t at = 0;
  std::unique_ptr<Work> work;
  bool is_done() const { return !work && at == commands.size(); }
};

// One region at work. Both regions of one iteration have one number.
struct Frame {
  const Frame* parent_or_null = nullptr;
  uint32_t region = 0;
  const Program::Loop* loop_or_null = nullptr;  // the loop of the iteration
  uint64_t number = 0;
  uint64_t index = 0;                   // of a loop's iterations, from 0
  const Frame* last_or_null = nullptr;  // the iteration before, of a pipelined loop's `after`
  uint32_t main = 0;                    // stream
  std::map<uint32_t, Lane> lanes;       // by stream
  std::vector<bool> recorded;

  bool is_done() const {
    return std::all_of(lanes.begin(), lanes.end(),
                       [](const auto& lane) { return lane.second.is_done(); });
  }
  bool is_pipelined() const {
    return loop_or_null != nullptr && loop_or_null->is_pipelined && region == loop_or_null->after;
  }
  // The next iteration may begin.
  bool has_ended() const { return is_pipelined() ? lanes.at(main).is_done() : is_done(); }
  // A stream goes on behind what it did in the iteration before.
  bool may_begin(uint32_t stream) const {
    return last_or_null == nullptr || stream == main || !last_or_null->lanes.contains(stream) ||
           last_or_null->lanes.at(stream).is_done();
  }
  bool owns(uint32_t its_region) const {
    return its_region == region || (loop_or_null != nullptr && its_region == loop_or_null->before);
  }
};

class Machine {
 public:
  Machine(const Program& program, uint64_t seed)
      : program_(program),
        random_(seed),
        pointers_(program.memory.size()),
        is_defined_(program.memory.size(), false),
        made_in_(program.memory.size(), 0),
        last_index_(program.loops.size(), 0) {
    for (const Program::Launch& launch : program.launches) {
      for (const uint32_t name : launch.writes) is_defined_[name] = true;
      note_defined(launch.aliases);
    }
    for (const Program::Loop& loop : program.loops) {
      for (const auto* list : {&loop.enter, &loop.forward, &loop.leave}) note_defined(*list);
      for (const uint32_t name : loop.stacks) is_defined_[name] = true;
    }
    for (const Program::Case& branch : program.cases) {
      for (const auto& results : branch.results) note_defined(results);
    }
    for (const uint64_t size : program.arena_sizes_bytes) {
      bytes_.emplace_back(size / kGrain + 1, 0);
    }
    hurry_ = 1 + random_.below(4);
  }

  std::string run() {
    const std::unique_ptr<Frame> root = frame(0, nullptr, nullptr, ++last_number_);
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
    for (const uint32_t name : program_.results) {
      if (pointers_[name].token != 0) fail(name, "leaves the graph within an arena");
    }
    return error_;
  }
  // Commands that began while the tail of an iteration before was at work.
  uint64_t num_early() const { return num_early_; }

 private:
  void note_defined(const std::vector<Program::Alias>& passes) {
    for (const Program::Alias& pass : passes) is_defined_[pass.to] = true;
  }
  void fail(uint32_t name, const std::string& what) {
    if (error_.empty()) error_ = "value " + std::to_string(name) + " " + what;
  }

  std::unique_ptr<Frame> frame(uint32_t region, const Frame* parent_or_null,
                               const Program::Loop* loop_or_null, uint64_t number) const {
    auto frame = std::make_unique<Frame>();
    frame->parent_or_null = parent_or_null;
    frame->region = region;
    frame->loop_or_null = loop_or_null;
    frame->number = number;
    frame->recorded.resize(program_.blocks[region].num_events, false);
    frame->main = program_.blocks[region].steps[0].stream;
    for (const Program::Step& step : program_.blocks[region].steps) {
      frame->lanes[step.stream].commands.push_back(step);
    }
    return frame;
  }

  using Actions = std::vector<std::function<void()>>;

  void collect(Frame& frame, Actions& actions) {
    for (auto& [stream, of_stream] : frame.lanes) {
      Lane& lane = of_stream;  // clang 14 captures no structured bindings
      if (lane.work && lane.work->launch != nullptr) {
        actions.push_back([this, &frame, &lane] { end_launch(frame, lane); });
      } else if (lane.work) {
        collect_inside(frame, lane, actions);
      } else if (lane.at < lane.commands.size() && frame.may_begin(stream)) {
        const Program::Step& next = lane.commands[lane.at];
        if (next.op == Op::kWait && !frame.recorded[next.operand]) continue;
        if (next.op == Op::kWaitPrevious && frame.last_or_null != nullptr &&
            !frame.last_or_null->recorded[next.operand]) {
          continue;
        }
        actions.push_back([this, &frame, &lane] { begin(frame, lane); });
      }
    }
  }
  // Collects the actions inside the lane's loop or branch.
  void collect_inside(Frame& frame, Lane& lane, Actions& actions) {
    Work& work = *lane.work;
    for (const std::unique_ptr<Frame>& tail : work.tails) collect(*tail, actions);
    const bool is_at_test = work.loop != nullptr && !work.is_in_after;
    if (!work.child->has_ended()) {
      collect(*work.child, actions);
    } else if (!is_at_test || may_enter_after(work)) {
      actions.push_back([this, &frame, &lane] { go_on(frame, lane); });
    }
  }
  // Tails of the last but one have ended; where the loop ends, all of them have.
  static bool may_enter_after(const Work& work) {
    const size_t num_waited =
        work.trips_left == 0 ? work.tails.size() : std::max<size_t>(work.tails.size(), 1) - 1;
    return std::all_of(work.tails.begin(),
                       work.tails.begin() + static_cast<std::ptrdiff_t>(num_waited),
                       [](const auto& tail) { return tail->is_done(); });
  }

  void begin(Frame& frame, Lane& lane) {
    const Program::Step& step = lane.commands[lane.at++];
    const bool is_early = frame.last_or_null != nullptr && !frame.last_or_null->is_done();
    num_early_ += is_early ? 1 : 0;
    switch (step.op) {
      case Op::kRecord:
        frame.recorded[step.operand] = true;
        break;
      case Op::kLaunch:
      case Op::kRetain:
        begin_launch(frame, lane, program_.launches[step.operand]);
        break;
      case Op::kPushRow:
        check(frame, row_name(program_, program_.rows[step.operand]));
        break;
      case Op::kLoop:
        begin_loop(frame, lane, program_.loops[step.operand]);
        break;
      case Op::kCase:
        begin_case(frame, lane, program_.cases[step.operand]);
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
  // Read by the frame: intact, where the frame looks for it, and of the iteration that it is.
  void check(const Frame& frame, uint32_t name) {
    check(name, pointers_[name]);
    if (pointers_[name].token != 0 && pointers_[name].offset != place(frame, name).offset) {
      fail(name, "is read elsewhere than it was made");
    }
    if (!is_defined_[name]) return;
    const uint32_t region = program_.block_of_name[name];
    for (const Frame* at = &frame; at != nullptr; at = at->parent_or_null) {
      if (!at->owns(region)) continue;
      if (made_in_[name] != at->number) fail(name, "is read in another iteration than it was made");
      return;
    }
  }
  void check(const Frame& frame, const std::vector<uint32_t>& names) {
    for (const uint32_t name : names) check(frame, name);
  }
  void make(uint32_t name, const Pointer& pointer, uint64_t number) {
    pointers_[name] = pointer;
    made_in_[name] = number;
  }

  // Where it stands, seen from the frame.
  Pointer place(const Frame& frame, uint32_t name) {
    const Program::Memory& memory = program_.memory[name];
    if (memory.arena == Program::Memory::kOwn) return {};
    uint64_t index = 0;
    if (memory.offsets_bytes.size() == 2) {
      const Program::Loop* const loop = &program_.loops[memory.loop];
      const Frame* at = &frame;
      while (at != nullptr && at->loop_or_null != loop) at = at->parent_or_null;
      index = at == nullptr ? last_index_[memory.loop] : at->index;
    }
    const uint64_t offset = memory.offsets_bytes[index % memory.offsets_bytes.size()];
    if (offset + memory.size_bytes > program_.arena_sizes_bytes[memory.arena]) {
      fail(name, "stands outside its arena");
      return {};
    }
    return {++last_token_, memory.arena, offset, memory.size_bytes};
  }
  void write(const Pointer& to) {
    if (to.token != 0) for_each_grain(to, [&](uint64_t& token) { token = to.token; });
  }
  bool is_intact(const Pointer& pointer) {
    bool is_all = true;
    if (pointer.token != 0) {
      for_each_grain(pointer, [&](uint64_t& token) { is_all &= token == pointer.token; });
    }
    return is_all;
  }

  void begin_launch(Frame& frame, Lane& lane, const Program::Launch& launch) {
    lane.work = std::make_unique<Work>();
    lane.work->launch = &launch;
    check(frame, launch.reads);
    for (const uint32_t name : launch.reads) lane.work->reads.emplace_back(name, pointers_[name]);
    for (const uint32_t name : launch.writes) {
      const Pointer to = place(frame, name);
      lane.work->writes.emplace_back(name, to);
      write(to);
    }
  }
  void end_launch(Frame& frame, Lane& lane) {
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
      make(name, to, frame.number);
    }
    pass(frame, work.launch->aliases, frame);
    lane.work.reset();
  }

  // All at once; read by `from`, made in the iteration that `to` is. What is copied is written for
  // the new name, as gone where it was gone.
  void pass(const Frame& from, const std::vector<Program::Alias>& passes, const Frame& to) {
    std::vector<Pointer> made;
    for (const Program::Alias& pass : passes) {
      check_made(from, pass.from);
      const Pointer source = pointers_[pass.from];
      const Pointer place = this->place(to, pass.to);
      if (source.token != 0 && place.token == 0) fail(pass.from, "is handed on by reference");
      const bool stays = source.token != 0 && source.arena == place.arena &&
                         source.offset == place.offset && source.size == place.size;
      made.push_back(stays ? source : place);
      if (!stays && !is_intact(source)) made.back().size |= kGone;
    }
    for (size_t i = 0; i < passes.size(); ++i) {
      const bool is_gone = (made[i].size & kGone) != 0;
      made[i].size &= ~kGone;
      const Pointer source = pointers_[passes[i].from];
      if (made[i].token != source.token) write(made[i]);
      if (is_gone) made[i].token = ++last_token_;
    }
    for (size_t i = 0; i < passes.size(); ++i) make(passes[i].to, made[i], to.number);
  }
  static constexpr uint64_t kGone = uint64_t{1} << 63;
  // What is passed on need not be intact: its reader checks it.
  void check_made(const Frame& frame, uint32_t name) {
    const Pointer pointer = std::exchange(pointers_[name], {});
    check(frame, name);
    pointers_[name] = pointer;
  }

  void begin_loop(Frame& frame, Lane& lane, const Program::Loop& loop) {
    lane.work = std::make_unique<Work>();
    lane.work->loop = &loop;
    lane.work->trips_left = random_.below(kMaxTrips);
    check(frame, loop.reads);
    begin_iteration(frame, *lane.work, loop.enter, frame, 0);
  }
  void begin_iteration(const Frame& frame, Work& work, const std::vector<Program::Alias>& passes,
                       const Frame& from, uint64_t index) {
    auto before = this->frame(work.loop->before, &frame, work.loop, ++last_number_);
    before->index = last_index_[static_cast<size_t>(work.loop - program_.loops.data())] = index;
    pass(from, passes, *before);
    work.is_in_after = false;
    work.child = std::move(before);
  }
  void begin_case(Frame& frame, Lane& lane, const Program::Case& branch) {
    check(frame, branch.reads);
    const size_t num_ways = branch.blocks.size() + (branch.may_run_none ? 1 : 0);
    const size_t choice = random_.below(num_ways);
    if (choice == branch.blocks.size()) return end_case(frame, frame, branch.pass_through);
    lane.work = std::make_unique<Work>();
    lane.work->branch = &branch;
    lane.work->choice = choice;
    lane.work->child = this->frame(branch.blocks[choice], &frame, nullptr, ++last_number_);
  }
  void end_case(const Frame& frame, const Frame& from, const std::vector<Program::Alias>& passes) {
    pass(from, passes, frame);
  }

  // A region of the loop or branch has ended.
  void go_on(Frame& frame, Lane& lane) {
    Work& work = *lane.work;
    if (work.branch != nullptr) {
      end_case(frame, *work.child, work.branch->results[work.choice]);
      lane.work.reset();
    } else if (work.is_in_after) {
      turn(frame, work);
    } else {
      test(frame, lane);
    }
  }
  void turn(const Frame& frame, Work& work) {
    std::unique_ptr<Frame> after = std::move(work.child);
    begin_iteration(frame, work, work.loop->advance, *after, after->index + 1);
    if (after->is_pipelined()) work.tails.push_back(std::move(after));
  }
  void test(Frame& frame, Lane& lane) {
    Work& work = *lane.work;
    const Program::Loop& loop = *work.loop;
    check(*work.child, loop.tested);
    if (work.trips_left == 0) {
      pass(*work.child, loop.leave, frame);
      for (const uint32_t name : loop.stacks) make(name, pointers_[name], frame.number);
      lane.work.reset();
      return;
    }
    --work.trips_left;
    auto after = this->frame(loop.after, &frame, &loop, work.child->number);
    after->index = work.child->index;
    pass(*work.child, loop.forward, *after);
    work.is_in_after = true;
    work.child = std::move(after);
    if (work.tails.empty()) return;
    work.tails.erase(work.tails.begin(), work.tails.end() - 1);
    work.tails.back()->last_or_null = nullptr;
    work.child->last_or_null = work.tails.back().get();
  }

  const Program& program_;
  Random random_;
  uint64_t hurry_ = 1;
  std::vector<Pointer> pointers_;             // by name
  std::vector<bool> is_defined_;              // by name: by a step or a pass
  std::vector<uint64_t> made_in_;             // by name: the iteration's number
  std::vector<std::vector<uint64_t>> bytes_;  // by arena: tokens
  std::vector<uint64_t> last_index_;          // by loop: of the iteration that began last
  uint64_t last_token_ = 0;
  uint64_t last_number_ = 0;
  uint64_t num_early_ = 0;
  std::string error_;
};

}  // namespace

std::string simulate_nested(const Program& program, uint64_t seed, uint64_t* num_early_or_null) {
  Machine machine(program, seed);
  std::string error = machine.run();
  if (num_early_or_null != nullptr) *num_early_or_null += machine.num_early();
  return error;
}

std::string simulate_often(const Program& program, uint64_t times, uint64_t* num_early_or_null) {
  for (uint64_t seed = 0; seed < times; ++seed) {
    std::string error = simulate_nested(program, seed, num_early_or_null);
    if (!error.empty()) return error + " (order " + std::to_string(seed) + ")";
  }
  return "";
}

}  // namespace eddy
