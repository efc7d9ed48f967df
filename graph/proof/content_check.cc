#include "graph/proof/content_check.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "graph/proof/nested_shape.h"

namespace eddy {
namespace {

using Kind = NestedCommand::Kind;
constexpr uint32_t kNone = NestedViolation::kNone;
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
  explicit LastReads(const NestedCommands& commands)
      : commands_(commands),
        last_read_(commands.memory.size(), 0),
        launch_number_(commands.launches.size(), 0) {
    number_region(0);
    for (const uint32_t name : commands.results) last_read_[name] = UINT32_MAX;
  }
  bool is_read_after(uint32_t name, uint32_t launch) const {
    return last_read_[name] > launch_number_[launch];
  }

 private:
  void read(std::span<const uint32_t> names, std::vector<uint32_t>& seen) {
    seen.insert(seen.end(), names.begin(), names.end());
  }
  void read(std::span<const NestedPass> passes, std::vector<uint32_t>& seen) {
    for (const NestedPass& pass : passes) seen.push_back(pass.from);
  }

  // Names read in the region that are defined outside of it.
  std::vector<uint32_t> number_region(uint32_t r) {
    std::vector<uint32_t> outside;
    for (const NestedCommand& command : commands_.regions[r].commands) {
      std::vector<uint32_t> seen;
      switch (command.kind) {
        case Kind::kLaunch: {
          const NestedLaunch& launch = commands_.launches[command.id];
          read(launch.reads, seen);
          read(launch.passes, seen);
          launch_number_[command.id] = next_ + 1;
          break;
        }
        case Kind::kLoop:
          number_loop(commands_.loops[command.id], seen);
          break;
        case Kind::kCase:
          number_case(commands_.cases[command.id], seen);
          break;
        default:
          continue;
      }
      ++next_;
      for (const uint32_t name : seen) {
        last_read_[name] = std::max(last_read_[name], next_);
        if (commands_.region_of_name[name] != r) outside.push_back(name);
      }
    }
    std::sort(outside.begin(), outside.end());
    outside.erase(std::unique(outside.begin(), outside.end()), outside.end());
    return outside;
  }
  void number_loop(const NestedLoop& loop, std::vector<uint32_t>& seen) {
    for (const uint32_t region : {loop.before, loop.after}) read(number_region(region), seen);
    for (const auto* list : {&loop.reads, &loop.tested, &loop.rows}) read(*list, seen);
    for (const auto* list : {&loop.enter, &loop.forward, &loop.advance, &loop.leave}) {
      read(*list, seen);
    }
  }
  void number_case(const NestedCase& branch, std::vector<uint32_t>& seen) {
    for (const uint32_t region : branch.regions) read(number_region(region), seen);
    read(branch.reads, seen);
    for (const auto& results : branch.results) read(results, seen);
    read(branch.pass_through, seen);
  }

  const NestedCommands& commands_;
  std::vector<uint32_t> last_read_;
  std::vector<uint32_t> launch_number_;
  uint32_t next_ = 0;
};

class Follower {
 public:
  explicit Follower(const NestedCommands& commands)
      : commands_(commands),
        last_reads_(commands),
        loop_heads_(commands.loops.size()),
        loop_ends_(commands.loops.size()),
        is_loop_known_(commands.loops.size(), false) {
    result_.launches.resize(commands.launches.size());
    result_.loops.resize(commands.loops.size());
    result_.cases.resize(commands.cases.size());
    for (const NestedLoop& loop : commands.loops) {
      result_.rows.emplace_back().resize(loop.rows.size());
    }
  }

  ContentCheck run() {
    check_blocks();
    if (!result_.violations.empty()) return std::move(result_);
    State state;
    follow(0, state);
    for (const uint32_t name : commands_.results) {
      check_intact(0, kNone, name, state);
      if (!state.of(name).empty()) add(NestedViolation::Kind::kEscapes, 0, kNone, kNone, name);
    }
    return std::move(result_);
  }

 private:
  void add(NestedViolation::Kind kind, uint32_t region, uint32_t first, uint32_t second,
           uint32_t name) {
    if (result_.violations.size() >= kMaxViolations) return;
    result_.violations.push_back({kind, region, first, second, name, {}});
  }
  const NestedMemory& memory(uint32_t name) const { return commands_.memory[name]; }
  bool has_block(uint32_t name) const { return memory(name).arena != NestedMemory::kOwn; }

  void check_blocks() {
    for (uint32_t name = 0; name < commands_.memory.size(); ++name) {
      const NestedMemory& block = memory(name);
      if (!has_block(name)) continue;
      bool is_good = block.arena < commands_.arena_sizes_bytes.size() && block.size_bytes > 0 &&
                     block.offsets_bytes.size() == block.holders.size() + 1;
      for (size_t i = 0; is_good && i < block.offsets_bytes.size(); ++i) {
        const uint64_t size = commands_.arena_sizes_bytes[block.arena];
        const uint64_t offset = block.offsets_bytes[i];
        is_good = offset % 64 == 0 && offset <= size && block.size_bytes <= size - offset;
        for (size_t j = 0; is_good && j < i; ++j) is_good = !ranges_meet(block, i, block, j);
      }
      for (const uint32_t holder : block.holders) {
        is_good &= std::count(block.holders.begin(), block.holders.end(), holder) == 1;
      }
      if (!is_good) {
        add(NestedViolation::Kind::kBadBlock, commands_.region_of_name[name], kNone, kNone, name);
      }
    }
  }
  static bool ranges_meet(const NestedMemory& a, size_t i, const NestedMemory& b, size_t j) {
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
    for (const NestedCommand& command : commands_.regions[region].commands) {
      switch (command.kind) {
        case Kind::kLaunch:
          launch(region, command.id, state);
          break;
        case Kind::kLoop:
          loop(region, command.id, state);
          break;
        case Kind::kCase:
          branch(region, command.id, state);
          break;
        default:
          break;
      }
    }
  }

  void check_intact(uint32_t region, uint32_t node, uint32_t name, const State& state) {
    const auto gone = state.overwritten.find(name);
    if (gone == state.overwritten.end()) return;
    add(NestedViolation::Kind::kOverwritten, region, node, gone->second, name);
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
    const NestedLaunch& launch = commands_.launches[id];
    TouchedMemory& touched = result_.launches[id];
    read(region, launch.node, launch.reads, state, touched);
    for (const uint32_t name : launch.kept) {
      if (state.of(name).empty()) continue;
      add(NestedViolation::Kind::kEscapes, region, launch.node, kNone, name);
    }
    check_overlap(region, launch, state);
    for (const uint32_t name : launch.writes) write(id, name, state, touched);
    assign(launch.passes, {}, state);
  }

  // What a launch writes lies apart from what it reads, but for writing in place.
  void check_overlap(uint32_t region, const NestedLaunch& launch, const State& state) {
    for (size_t w = 0; w < launch.writes.size(); ++w) {
      const uint32_t written = launch.writes[w];
      if (!has_block(written)) continue;
      for (size_t other = 0; other < w; ++other) {
        if (has_block(launch.writes[other]) && blocks_meet(written, launch.writes[other])) {
          add(NestedViolation::Kind::kOverlap, region, launch.node, kNone, written);
        }
      }
      for (size_t i = 0; i < launch.reads.size(); ++i) {
        const bool may_overwrite = w == 0 && i < 64 && (launch.overwritable >> i & 1) != 0;
        for (const Reference& reference : state.of(launch.reads[i])) {
          if (is_apart(written, reference, may_overwrite)) continue;
          add(NestedViolation::Kind::kOverlap, region, launch.node, kNone, launch.reads[i]);
        }
      }
    }
  }
  bool is_apart(uint32_t written, const Reference& read, bool may_overwrite) const {
    if (read.written == written) return contains(memory(written).holders, read.holder);
    if (!blocks_meet(written, read.written)) return true;
    const NestedMemory& to = memory(written);
    const NestedMemory& from = memory(read.written);
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
        state.overwritten.emplace(reference.name, commands_.launches[id].node);
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
  void assign(std::span<const NestedPass> passes, std::span<const uint32_t> left, State& state) {
    if (passes.empty() && left.empty()) return;
    std::vector<uint32_t> targets;
    for (const NestedPass& pass : passes) targets.push_back(pass.to);
    std::sort(targets.begin(), targets.end());
    const auto is_target = [&](uint32_t name) {
      return std::binary_search(targets.begin(), targets.end(), name);
    };
    const auto is_left = [&](uint32_t name) {
      return std::find(left.begin(), left.end(), commands_.region_of_name[name]) != left.end();
    };
    std::vector<Reference> fresh;
    std::map<uint32_t, uint32_t> gone;
    for (const NestedPass& pass : passes) {
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
    const NestedLoop& loop = commands_.loops[id];
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
  void iterate(const NestedLoop& loop, uint32_t id, TouchedMemory& touched) {
    const uint32_t left[] = {loop.before, loop.after};
    for (bool has_grown = true; has_grown && result_.violations.size() < kMaxViolations;) {
      State state = loop_heads_[id];
      follow(loop.before, state);
      read(loop.before, loop.node, loop.tested, state, touched);
      loop_ends_[id].unite(state);
      assign(loop.forward, {}, state);
      follow(loop.after, state);
      for (size_t k = 0; k < loop.rows.size(); ++k) {
        read(loop.after, loop.node, std::span(loop.rows).subspan(k, 1), state, result_.rows[id][k]);
      }
      assign(loop.advance, left, state);
      has_grown = loop_heads_[id].unite(state);
      check_size(loop, state);
    }
  }
  void check_size(const NestedLoop& loop, const State& state) {
    for (const NestedPass& pass : loop.advance) {
      if (state.of(pass.to).size() <= kMaxReferences) continue;
      add(NestedViolation::Kind::kMalformed, loop.after, loop.node, kNone, pass.to);
      result_.violations.back().text = "a name may stand for too many blocks to follow";
    }
  }

  void branch(uint32_t region, uint32_t id, State& state) {
    const NestedCase& branch = commands_.cases[id];
    read(region, branch.node, branch.reads, state, result_.cases[id]);
    State joined;
    if (branch.may_run_none) {
      joined = state;
      assign(branch.pass_through, {}, joined);
    }
    for (size_t r = 0; r < branch.regions.size(); ++r) {
      State inside = state;
      follow(branch.regions[r], inside);
      const uint32_t left[] = {branch.regions[r]};
      assign(branch.results[r], left, inside);
      joined.unite(inside);
    }
    state = std::move(joined);
  }

  const NestedCommands& commands_;
  const LastReads last_reads_;
  std::vector<State> loop_heads_;
  std::vector<State> loop_ends_;  // behind `before`
  std::vector<bool> is_loop_known_;
  ContentCheck result_;
};

}  // namespace

ContentCheck check_contents(const NestedCommands& commands) {
  if (commands.regions.empty()) return {};
  if (auto malformed = find_malformed(commands)) {
    ContentCheck result;
    result.violations.push_back(std::move(*malformed));
    return result;
  }
  return Follower(commands).run();
}

}  // namespace eddy
