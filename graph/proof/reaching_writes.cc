#include "graph/proof/reaching_writes.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "graph/base/check.h"
#include "graph/program/validate.h"

namespace eddy {
namespace {

using Op = Program::Op;
constexpr uint32_t kNone = ProgramViolation::kNone;
constexpr size_t kMaxViolations = 100;

using Placed = std::pair<uint32_t, uint32_t>;  // a place and a name that stands there

struct State {
  std::set<Placed> live;                     // names that are intact in some order
  std::map<uint32_t, uint32_t> overwritten;  // names that may be gone, and by which node

  // True when this has grown.
  bool unite(const State& other) {
    const size_t before = live.size() + overwritten.size();
    live.insert(other.live.begin(), other.live.end());
    overwritten.insert(other.overwritten.begin(), other.overwritten.end());
    return live.size() + overwritten.size() != before;
  }
};

void insert(std::vector<uint32_t>& sorted, uint32_t value) {
  const auto place = std::lower_bound(sorted.begin(), sorted.end(), value);
  if (place == sorted.end() || *place != value) sorted.insert(place, value);
}

// When each name is read for the last time, as the number of the command of its own region in
// which that happens; commands are numbered behind what they hold.
class LastReads {
 public:
  explicit LastReads(const Program& program)
      : program_(program),
        last_read_(program.memory.size(), 0),
        launch_number_(program.launches.size(), 0) {
    number_region(0);
    for (const uint32_t name : program.results) last_read_[name] = UINT32_MAX;
  }
  bool is_read_after(uint32_t name, uint32_t launch) const {
    return last_read_[name] > launch_number_[launch];
  }

 private:
  void read(std::span<const uint32_t> names, std::vector<uint32_t>& seen) {
    seen.insert(seen.end(), names.begin(), names.end());
  }
  void read(std::span<const Program::Alias> passes, std::vector<uint32_t>& seen) {
    for (const Program::Alias& pass : passes) seen.push_back(pass.from);
  }

  // Names read in the region that are defined outside of it.
  std::vector<uint32_t> number_region(uint32_t r) {
    std::vector<uint32_t> outside;
    for (const Program::Step& step : program_.blocks[r].steps) {
      std::vector<uint32_t> seen;
      switch (step.op) {
        case Op::kLaunch:
        case Op::kRetain: {
          const Program::Launch& launch = program_.launches[step.operand];
          read(launch.reads, seen);
          read(launch.aliases, seen);
          launch_number_[step.operand] = next_ + 1;
          break;
        }
        case Op::kPushRow:
          seen.push_back(row_name(program_, program_.rows[step.operand]));
          break;
        case Op::kLoop:
          number_loop(program_.loops[step.operand], seen);
          break;
        case Op::kCase:
          number_case(program_.cases[step.operand], seen);
          break;
        default:
          continue;
      }
      ++next_;
      for (const uint32_t name : seen) {
        last_read_[name] = std::max(last_read_[name], next_);
        if (program_.block_of_name[name] != r) outside.push_back(name);
      }
    }
    std::sort(outside.begin(), outside.end());
    outside.erase(std::unique(outside.begin(), outside.end()), outside.end());
    return outside;
  }
  void number_loop(const Program::Loop& loop, std::vector<uint32_t>& seen) {
    for (const uint32_t region : {loop.before, loop.after}) read(number_region(region), seen);
    for (const auto* list : {&loop.reads, &loop.tested}) read(*list, seen);
    for (const auto* list : {&loop.enter, &loop.forward, &loop.advance, &loop.leave}) {
      read(*list, seen);
    }
  }
  void number_case(const Program::Case& branch, std::vector<uint32_t>& seen) {
    for (const uint32_t region : branch.blocks) read(number_region(region), seen);
    read(branch.reads, seen);
    for (const auto& results : branch.results) read(results, seen);
    read(branch.pass_through, seen);
  }

  const Program& program_;
  std::vector<uint32_t> last_read_;
  std::vector<uint32_t> launch_number_;
  uint32_t next_ = 0;
};

class Follower {
 public:
  explicit Follower(const Program& program)
      : program_(program),
        last_reads_(program),
        place_of_(program.memory.size(), kNone),
        loop_heads_(program.loops.size()),
        loop_ends_(program.loops.size()),
        is_loop_known_(program.loops.size(), false) {
    result_.launches.resize(program.launches.size());
    result_.loops.resize(program.loops.size());
    result_.turns.resize(program.loops.size());
    result_.cases.resize(program.cases.size());
    result_.rows.resize(program.rows.size());
  }

  ReachingWrites run() {
    check_blocks();
    if (!result_.violations.empty()) return std::move(result_);
    find_places();
    State state;
    follow(0, state);
    for (const uint32_t name : program_.results) {
      if (has_place(name)) add(ProgramViolation::Kind::kEscapes, 0, kNone, kNone, name);
    }
    return std::move(result_);
  }

 private:
  void add(ProgramViolation::Kind kind, uint32_t region, uint32_t first, uint32_t second,
           uint32_t name) {
    if (result_.violations.size() >= kMaxViolations) return;
    result_.violations.push_back({kind, region, first, second, name, {}});
  }
  const Program::Memory& memory(uint32_t name) const { return program_.memory[name]; }
  bool has_place(uint32_t name) const { return eddy::has_place(program_, name); }

  void check_blocks() {
    for (uint32_t name = 0; name < program_.memory.size(); ++name) {
      const Program::Memory& block = memory(name);
      if (!has_place(name)) continue;
      bool is_good = block.arena < program_.arena_sizes_bytes.size() && block.size_bytes > 0;
      for (size_t i = 0; is_good && i < block.offsets_bytes.size(); ++i) {
        const uint64_t size = program_.arena_sizes_bytes[block.arena];
        const uint64_t offset = block.offsets_bytes[i];
        is_good = offset % 64 == 0 && offset <= size && block.size_bytes <= size - offset;
        for (size_t j = 0; is_good && j < i; ++j) is_good = !ranges_meet(block, i, block, j);
      }
      if (!is_good) {
        add(ProgramViolation::Kind::kBadBlock, program_.block_of_name[name], kNone, kNone, name);
      }
    }
  }
  static bool ranges_meet(const Program::Memory& a, size_t i, const Program::Memory& b, size_t j) {
    return a.arena == b.arena && a.offsets_bytes[i] < b.offsets_bytes[j] + b.size_bytes &&
           b.offsets_bytes[j] < a.offsets_bytes[i] + a.size_bytes;
  }
  // In one iteration of whatever loop they alternate with.
  bool meet(uint32_t a, uint32_t b) const {
    const bool are_in_step = memory(a).offsets_bytes.size() == 2 &&
                             memory(b).offsets_bytes.size() == 2 &&
                             memory(a).loop == memory(b).loop;
    for (size_t i = 0; i < memory(a).offsets_bytes.size(); ++i) {
      for (size_t j = 0; j < memory(b).offsets_bytes.size(); ++j) {
        if (are_in_step && i != j) continue;
        if (ranges_meet(memory(a), i, memory(b), j)) return true;
      }
    }
    return false;
  }

  // Numbers the places that names stand at, and finds which of them meet.
  void find_places() {
    using Key = std::tuple<uint32_t, uint64_t, std::vector<uint64_t>, uint32_t>;
    std::map<Key, uint32_t> places;
    std::vector<uint32_t> names;  // one of each place
    for (uint32_t name = 0; name < program_.memory.size(); ++name) {
      if (!has_place(name)) continue;
      const Program::Memory& block = memory(name);
      const Key key = {block.arena, block.size_bytes, block.offsets_bytes, block.loop};
      const auto next = static_cast<uint32_t>(places.size());
      const auto [place, is_new] = places.emplace(key, next);
      place_of_[name] = place->second;
      if (is_new) names.push_back(name);
    }
    struct Range {
      uint32_t arena;
      uint64_t begin, end;
      uint32_t place;
    };
    std::vector<Range> ranges;
    for (uint32_t place = 0; place < names.size(); ++place) {
      const Program::Memory& block = memory(names[place]);
      for (const uint64_t offset : block.offsets_bytes) {
        ranges.push_back({block.arena, offset, offset + block.size_bytes, place});
      }
    }
    std::ranges::sort(ranges, {}, [](const Range& range) {
      return std::tuple(range.arena, range.begin, range.place);
    });
    met_.resize(names.size());
    std::vector<Range> open;
    for (const Range& range : ranges) {
      std::erase_if(open, [&](const Range& other) {
        return other.arena != range.arena || other.end <= range.begin;
      });
      open.push_back(range);
      for (const Range& other : open) {
        if (!meet(names[range.place], names[other.place])) continue;
        met_[range.place].push_back(other.place);
        met_[other.place].push_back(range.place);
      }
    }
    for (std::vector<uint32_t>& met : met_) {
      std::ranges::sort(met);
      met.erase(std::unique(met.begin(), met.end()), met.end());
    }
  }
  Placed placed(uint32_t name) const { return {place_of_[name], name}; }

  void follow(uint32_t region, State& state) {
    for (const Program::Step& step : program_.blocks[region].steps) {
      switch (step.op) {
        case Op::kLaunch:
        case Op::kRetain:
          launch(region, step.operand, state);
          break;
        case Op::kPushRow:
          push_row(region, step.operand, state);
          break;
        case Op::kLoop:
          loop(region, step.operand, state);
          break;
        case Op::kCase:
          branch(region, step.operand, state);
          break;
        default:
          break;
      }
    }
  }

  void check_intact(uint32_t region, uint32_t node, uint32_t name, const State& state) {
    const auto gone = state.overwritten.find(name);
    if (gone == state.overwritten.end()) return;
    add(ProgramViolation::Kind::kOverwritten, region, node, gone->second, name);
  }
  void read(uint32_t region, uint32_t node, std::span<const uint32_t> names, const State& state,
            TouchedMemory& touched) {
    for (const uint32_t name : names) {
      check_intact(region, node, name, state);
      if (has_place(name)) insert(touched.reads, name);
    }
  }

  void launch(uint32_t region, uint32_t id, State& state) {
    const Program::Launch& launch = program_.launches[id];
    TouchedMemory& touched = result_.launches[id];
    read(region, launch.node, launch.reads, state, touched);
    for (const uint32_t name : launch.escapes) {
      if (has_place(name)) {
        add(ProgramViolation::Kind::kEscapes, region, launch.node, kNone, name);
      }
    }
    check_overlap(region, launch);
    for (const uint32_t name : launch.writes) {
      end_met(name, launch.node, id, state);
      state.overwritten.erase(name);
      if (!has_place(name)) continue;
      insert(touched.writes, name);
      state.live.insert(placed(name));
    }
    hand_on({region, launch.node, id}, launch.aliases, {}, state, touched);
  }

  void push_row(uint32_t region, uint32_t id, const State& state) {
    const uint32_t name = row_name(program_, program_.rows[id]);
    const uint32_t node = program_.loops[program_.rows[id].loop].node;
    read(region, node, std::span(&name, 1), state, result_.rows[id]);
  }

  // What a launch writes lies apart from what it reads, but for writing in place.
  void check_overlap(uint32_t region, const Program::Launch& launch) {
    for (size_t w = 0; w < launch.writes.size(); ++w) {
      const uint32_t written = launch.writes[w];
      if (!has_place(written)) continue;
      for (size_t other = 0; other < w; ++other) {
        if (has_place(launch.writes[other]) && meet(written, launch.writes[other])) {
          add(ProgramViolation::Kind::kOverlap, region, launch.node, kNone, written);
        }
      }
      for (size_t i = 0; i < launch.reads.size(); ++i) {
        const uint32_t name = launch.reads[i];
        if (!has_place(name) || !meet(written, name)) continue;
        const bool may_overwrite = w == 0 && i < 64 && (launch.overwritable >> i & 1) != 0;
        if (may_overwrite && memory(written) == memory(name)) continue;
        add(ProgramViolation::Kind::kOverlap, region, launch.node, kNone, name);
      }
    }
  }

  // Of a launch or a hand-over of the node.
  struct Where {
    uint32_t region;
    uint32_t node;
    uint32_t launch = kNone;  // none: whatever is read later counts
  };

  bool is_read_after(uint32_t name, uint32_t launch) const {
    return launch == kNone || last_reads_.is_read_after(name, launch);
  }
  // Names whose bytes `name` is written over are gone.
  void end_met(uint32_t name, uint32_t node, uint32_t launch, State& state) const {
    if (!has_place(name)) return;
    for (const uint32_t place : met_[place_of_[name]]) {
      auto at = state.live.lower_bound({place, 0});
      while (at != state.live.end() && at->first == place) {
        const uint32_t other = at->second;
        if (other != name && is_read_after(other, launch)) state.overwritten.emplace(other, node);
        at = state.live.erase(at);
      }
    }
  }
  // Their places are another iteration's from here on.
  void end_turning(uint32_t loop, State& state) const {
    std::erase_if(state.live, [&](const Placed& live) {
      const uint32_t name = live.second;
      const bool turns = memory(name).offsets_bytes.size() == 2 && memory(name).loop == loop;
      if (turns) state.overwritten.emplace(name, program_.loops[loop].node);
      return turns;
    });
  }

  struct HandOver {
    Program::Moment moment = Program::Moment::kWithin;
    uint32_t loop = kNone;
    std::span<const uint32_t> left = {};  // blocks whose names are forgotten first
  };

  // All aliases at once.
  void hand_on(Where where, std::span<const Program::Alias> aliases, const HandOver& how,
               State& state, TouchedMemory& touched) {
    std::vector<uint32_t> intact;
    std::vector<uint32_t> copied;
    std::map<uint32_t, uint32_t> gone;
    for (const Program::Alias& alias : aliases) {
      const auto overwritten = state.overwritten.find(alias.from);
      if (overwritten != state.overwritten.end()) gone.emplace(alias.to, overwritten->second);
      if (!has_place(alias.to)) {
        if (!has_place(alias.from)) continue;
        add(ProgramViolation::Kind::kEscapes, where.region, where.node, kNone, alias.from);
        continue;
      }
      const bool is_live = !has_place(alias.from) || state.live.contains(placed(alias.from));
      if (is_live) insert(intact, alias.to);
      if (!is_copy(program_, alias, how.moment, how.loop)) continue;
      if (has_place(alias.from)) insert(touched.reads, alias.from);
      insert(touched.writes, alias.to);
      copied.push_back(alias.to);
    }
    forget(aliases, how.left, state);
    if (how.moment != Program::Moment::kWithin) end_turning(how.loop, state);
    for (const uint32_t name : copied) {
      end_met(name, where.node, where.launch, state);
      for (const Program::Alias& other : aliases) {
        if (other.to == name || !has_place(other.to) || !meet(other.to, name)) continue;
        add(ProgramViolation::Kind::kOverlap, where.region, where.node, kNone, name);
      }
    }
    for (const uint32_t name : intact) state.live.insert(placed(name));
    state.overwritten.insert(gone.begin(), gone.end());
  }
  void forget(std::span<const Program::Alias> targets, std::span<const uint32_t> left,
              State& state) const {
    for (const Program::Alias& alias : targets) {
      state.live.erase(placed(alias.to));
      state.overwritten.erase(alias.to);
    }
    if (left.empty()) return;
    const auto is_over = [&](uint32_t name) {
      return std::ranges::find(left, program_.block_of_name[name]) != left.end();
    };
    std::erase_if(state.live, [&](const Placed& live) { return is_over(live.second); });
    std::erase_if(state.overwritten, [&](const auto& old) { return is_over(old.first); });
  }

  void loop(uint32_t region, uint32_t id, State& state) {
    const Program::Loop& loop = program_.loops[id];
    TouchedMemory& touched = result_.loops[id];
    read(region, loop.node, loop.reads, state, touched);
    hand_on({region, loop.node}, loop.enter, {Program::Moment::kEnter, id}, state, touched);
    if (!is_loop_known_[id] || loop_heads_[id].unite(state)) {
      if (!is_loop_known_[id]) loop_heads_[id] = state;
      is_loop_known_[id] = true;
      iterate(loop, id);
    }
    state = loop_ends_[id];
    const uint32_t left[] = {loop.before, loop.after};
    hand_on({region, loop.node}, loop.leave, {.left = left}, state, touched);
    for (const uint32_t name : result_.turns[id].reads) insert(touched.reads, name);
    for (const uint32_t name : result_.turns[id].writes) insert(touched.writes, name);
  }

  // Until the state at the head grows no more.
  void iterate(const Program::Loop& loop, uint32_t id) {
    const uint32_t left[] = {loop.before, loop.after};
    TouchedMemory& turn = result_.turns[id];
    for (bool has_grown = true; has_grown && result_.violations.size() < kMaxViolations;) {
      State state = loop_heads_[id];
      follow(loop.before, state);
      read(loop.before, loop.node, loop.tested, state, turn);
      loop_ends_[id].unite(state);
      hand_on({loop.before, loop.node}, loop.forward, {}, state, turn);
      follow(loop.after, state);
      hand_on({loop.after, loop.node}, loop.advance, {Program::Moment::kAdvance, id, left}, state,
              turn);
      has_grown = loop_heads_[id].unite(state);
    }
  }

  void branch(uint32_t region, uint32_t id, State& state) {
    const Program::Case& branch = program_.cases[id];
    TouchedMemory& touched = result_.cases[id];
    read(region, branch.node, branch.reads, state, touched);
    State joined;
    if (branch.may_run_none) {
      joined = state;
      hand_on({region, branch.node}, branch.pass_through, {}, joined, touched);
    }
    for (size_t r = 0; r < branch.blocks.size(); ++r) {
      State inside = state;
      follow(branch.blocks[r], inside);
      const uint32_t left[] = {branch.blocks[r]};
      hand_on({branch.blocks[r], branch.node}, branch.results[r], {.left = left}, inside, touched);
      joined.unite(inside);
    }
    state = std::move(joined);
  }

  const Program& program_;
  const LastReads last_reads_;
  std::vector<uint32_t> place_of_;          // by name; none: it has no place
  std::vector<std::vector<uint32_t>> met_;  // by place: those it meets, itself too
  std::vector<State> loop_heads_;
  std::vector<State> loop_ends_;  // behind `before`
  std::vector<bool> is_loop_known_;
  ReachingWrites result_;
};

}  // namespace

ReachingWrites find_reaching_writes(const Program& program) {
  if (program.blocks.empty()) return {};
  if (auto malformed = find_malformed(program)) {
    ReachingWrites result;
    result.violations.push_back(as_violation(std::move(*malformed)));
    return result;
  }
  return Follower(program).run();
}

}  // namespace eddy
