#include "graph/proof/reaching_writes.h"

#include <algorithm>
#include <map>
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
constexpr size_t kMaxReferences = 256;  // of one name

struct Reference {
  uint32_t name;
  uint32_t written;  // the name whose memory it is
  uint32_t holder;   // stands where this one stands; kNone: only until the next write
  auto operator<=>(const Reference&) const = default;
};

struct State {
  std::vector<Reference> live;               // ascending
  std::map<uint32_t, uint32_t> overwritten;  // names that may be gone, and by which node

  // True when this has grown.
  bool unite(const State& other) {
    EDDY_DCHECK(std::ranges::is_sorted(live) && std::ranges::is_sorted(other.live));
    std::vector<Reference> all;
    std::set_union(live.begin(), live.end(), other.live.begin(), other.live.end(),
                   std::back_inserter(all));
    const size_t before = live.size() + overwritten.size();
    live = std::move(all);
    overwritten.insert(other.overwritten.begin(), other.overwritten.end());
    return live.size() + overwritten.size() != before;
  }
  std::span<const Reference> of(uint32_t name) const {
    const auto first = std::lower_bound(live.begin(), live.end(), Reference{name, 0, 0});
    auto last = first;
    while (last != live.end() && last->name == name) ++last;
    return {first, last};
  }
};

bool contains(const std::vector<uint32_t>& list, uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

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
        loop_heads_(program.loops.size()),
        loop_ends_(program.loops.size()),
        is_loop_known_(program.loops.size(), false) {
    result_.launches.resize(program.launches.size());
    result_.loops.resize(program.loops.size());
    result_.cases.resize(program.cases.size());
    result_.rows.resize(program.rows.size());
  }

  ReachingWrites run() {
    check_blocks();
    if (!result_.violations.empty()) return std::move(result_);
    State state;
    follow(0, state);
    for (const uint32_t name : program_.results) {
      check_intact(0, kNone, name, state);
      if (!state.of(name).empty()) add(ProgramViolation::Kind::kEscapes, 0, kNone, kNone, name);
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
  bool has_block(uint32_t name) const { return memory(name).arena != Program::Memory::kOwn; }

  void check_blocks() {
    for (uint32_t name = 0; name < program_.memory.size(); ++name) {
      const Program::Memory& block = memory(name);
      if (!has_block(name)) continue;
      bool is_good = block.arena < program_.arena_sizes_bytes.size() && block.size_bytes > 0 &&
                     block.offsets_bytes.size() == block.holders.size() + 1;
      for (size_t i = 0; is_good && i < block.offsets_bytes.size(); ++i) {
        const uint64_t size = program_.arena_sizes_bytes[block.arena];
        const uint64_t offset = block.offsets_bytes[i];
        is_good = offset % 64 == 0 && offset <= size && block.size_bytes <= size - offset;
        for (size_t j = 0; is_good && j < i; ++j) is_good = !ranges_meet(block, i, block, j);
      }
      for (const uint32_t holder : block.holders) {
        is_good &= std::count(block.holders.begin(), block.holders.end(), holder) == 1;
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
  bool blocks_meet(uint32_t a, uint32_t b) const {
    for (size_t i = 0; i < memory(a).offsets_bytes.size(); ++i) {
      for (size_t j = 0; j < memory(b).offsets_bytes.size(); ++j) {
        if (ranges_meet(memory(a), i, memory(b), j)) return true;
      }
    }
    return false;
  }

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
      for (const Reference& reference : state.of(name)) {
        const bool is_held = contains(memory(reference.written).holders, reference.holder);
        insert(is_held ? touched.held : touched.reads, reference.written);
      }
    }
  }

  void launch(uint32_t region, uint32_t id, State& state) {
    const Program::Launch& launch = program_.launches[id];
    TouchedMemory& touched = result_.launches[id];
    read(region, launch.node, launch.reads, state, touched);
    for (const uint32_t name : launch.escapes) {
      if (state.of(name).empty()) continue;
      add(ProgramViolation::Kind::kEscapes, region, launch.node, kNone, name);
    }
    check_overlap(region, launch, state);
    for (const uint32_t name : launch.writes) write(id, name, state, touched);
    assign(launch.aliases, {}, state);
  }

  void push_row(uint32_t region, uint32_t id, const State& state) {
    const uint32_t name = row_name(program_, program_.rows[id]);
    const uint32_t node = program_.loops[program_.rows[id].loop].node;
    read(region, node, std::span(&name, 1), state, result_.rows[id]);
  }

  // What a launch writes lies apart from what it reads, but for writing in place.
  void check_overlap(uint32_t region, const Program::Launch& launch, const State& state) {
    for (size_t w = 0; w < launch.writes.size(); ++w) {
      const uint32_t written = launch.writes[w];
      if (!has_block(written)) continue;
      for (size_t other = 0; other < w; ++other) {
        if (has_block(launch.writes[other]) && blocks_meet(written, launch.writes[other])) {
          add(ProgramViolation::Kind::kOverlap, region, launch.node, kNone, written);
        }
      }
      for (size_t i = 0; i < launch.reads.size(); ++i) {
        const bool may_overwrite = w == 0 && i < 64 && (launch.overwritable >> i & 1) != 0;
        for (const Reference& reference : state.of(launch.reads[i])) {
          if (is_apart(written, reference, may_overwrite)) continue;
          add(ProgramViolation::Kind::kOverlap, region, launch.node, kNone, launch.reads[i]);
        }
      }
    }
  }
  bool is_apart(uint32_t written, const Reference& read, bool may_overwrite) const {
    if (read.written == written) return contains(memory(written).holders, read.holder);
    if (!blocks_meet(written, read.written)) return true;
    const Program::Memory& to = memory(written);
    const Program::Memory& from = memory(read.written);
    return may_overwrite && to.offsets_bytes.size() == 1 && from.offsets_bytes.size() == 1 &&
           to.offsets_bytes == from.offsets_bytes && to.size_bytes == from.size_bytes;
  }

  void write(uint32_t id, uint32_t name, State& state, TouchedMemory& touched) {
    const bool is_block = has_block(name);
    const auto ends = [&](const Reference& reference) {
      if (reference.name == name) return true;
      if (!is_block) return false;
      if (reference.written == name) {
        if (contains(memory(name).holders, reference.holder)) return false;
      } else if (!blocks_meet(reference.written, name)) {
        return false;
      }
      if (last_reads_.is_read_after(reference.name, id)) {
        state.overwritten.emplace(reference.name, program_.launches[id].node);
      }
      return true;
    };
    std::erase_if(state.live, ends);
    state.overwritten.erase(name);
    if (!is_block) return;
    insert(touched.writes, name);
    insert_sorted(state.live, {name, name, kNone});
  }

  // All passes at once; names of the regions in `left` are forgotten first.
  void assign(std::span<const Program::Alias> passes, std::span<const uint32_t> left,
              State& state) {
    if (passes.empty() && left.empty()) return;
    std::vector<uint32_t> targets;
    for (const Program::Alias& pass : passes) targets.push_back(pass.to);
    std::sort(targets.begin(), targets.end());
    const auto is_target = [&](uint32_t name) {
      return std::binary_search(targets.begin(), targets.end(), name);
    };
    const auto is_left = [&](uint32_t name) {
      return std::find(left.begin(), left.end(), program_.block_of_name[name]) != left.end();
    };
    std::vector<Reference> fresh;
    std::map<uint32_t, uint32_t> gone;
    for (const Program::Alias& pass : passes) {
      for (const Reference& from : state.of(pass.from)) {
        uint32_t holder = from.holder != kNone && !is_target(from.holder) ? from.holder : kNone;
        if (contains(memory(from.written).holders, pass.to)) holder = pass.to;
        fresh.push_back({pass.to, from.written, holder});
      }
      const auto overwritten = state.overwritten.find(pass.from);
      if (overwritten != state.overwritten.end()) gone.emplace(pass.to, overwritten->second);
    }
    const auto is_over = [&](uint32_t name) { return is_target(name) || is_left(name); };
    std::erase_if(state.live, [&](const Reference& old) { return is_over(old.name); });
    std::erase_if(state.overwritten, [&](const auto& old) { return is_over(old.first); });
    bool is_sorted = fresh.size() <= kFewReferences;
    for (Reference& old : state.live) {
      if (old.holder == kNone || !is_target(old.holder)) continue;
      old.holder = kNone;
      is_sorted = false;
    }
    state.overwritten.insert(gone.begin(), gone.end());
    if (!is_sorted) {
      state.live.insert(state.live.end(), fresh.begin(), fresh.end());
      return tidy(state);
    }
    for (const Reference& reference : fresh) insert_sorted(state.live, reference);
  }
  // So many are put where they belong one by one.
  static constexpr size_t kFewReferences = 4;
  static void insert_sorted(std::vector<Reference>& list, const Reference& reference) {
    const auto place = std::lower_bound(list.begin(), list.end(), reference);
    if (place == list.end() || *place != reference) list.insert(place, reference);
  }
  void tidy(State& state) {
    std::sort(state.live.begin(), state.live.end());
    state.live.erase(std::unique(state.live.begin(), state.live.end()), state.live.end());
  }

  void loop(uint32_t region, uint32_t id, State& state) {
    const Program::Loop& loop = program_.loops[id];
    TouchedMemory& touched = result_.loops[id];
    read(region, loop.node, loop.reads, state, touched);
    assign(loop.enter, {}, state);
    if (!is_loop_known_[id] || loop_heads_[id].unite(state)) {
      if (!is_loop_known_[id]) loop_heads_[id] = state;
      is_loop_known_[id] = true;
      iterate(loop, id, touched);
    }
    state = loop_ends_[id];
    const uint32_t left[] = {loop.before, loop.after};
    assign(loop.leave, left, state);
    for (Reference& reference : state.live) {
      const bool is_own = std::any_of(loop.enter.begin(), loop.enter.end(), [&](const auto& pass) {
        return pass.to == reference.holder;
      });
      if (is_own) reference.holder = kNone;
    }
    tidy(state);
  }

  // Until the state at the head grows no more.
  void iterate(const Program::Loop& loop, uint32_t id, TouchedMemory& touched) {
    const uint32_t left[] = {loop.before, loop.after};
    for (bool has_grown = true; has_grown && result_.violations.size() < kMaxViolations;) {
      State state = loop_heads_[id];
      follow(loop.before, state);
      read(loop.before, loop.node, loop.tested, state, touched);
      loop_ends_[id].unite(state);
      assign(loop.forward, {}, state);
      follow(loop.after, state);
      assign(loop.advance, left, state);
      has_grown = loop_heads_[id].unite(state);
      check_size(loop, state);
    }
  }
  void check_size(const Program::Loop& loop, const State& state) {
    for (const Program::Alias& pass : loop.advance) {
      if (state.of(pass.to).size() <= kMaxReferences) continue;
      add(ProgramViolation::Kind::kMalformed, loop.after, loop.node, kNone, pass.to);
      result_.violations.back().text = "a name may stand for too many blocks to follow";
    }
  }

  void branch(uint32_t region, uint32_t id, State& state) {
    const Program::Case& branch = program_.cases[id];
    read(region, branch.node, branch.reads, state, result_.cases[id]);
    State joined;
    if (branch.may_run_none) {
      joined = state;
      assign(branch.pass_through, {}, joined);
    }
    for (size_t r = 0; r < branch.blocks.size(); ++r) {
      State inside = state;
      follow(branch.blocks[r], inside);
      const uint32_t left[] = {branch.blocks[r]};
      assign(branch.results[r], left, inside);
      joined.unite(inside);
    }
    state = std::move(joined);
  }

  const Program& program_;
  const LastReads last_reads_;
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
