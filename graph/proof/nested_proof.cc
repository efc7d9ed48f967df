// long: one proof; all of its parts need what each command touches.
#include "graph/proof/nested_proof.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "graph/proof/byte_history.h"
#include "graph/proof/content_check.h"
#include "graph/proof/happens_before.h"

namespace eddy {
namespace {

using Kind = NestedCommand::Kind;
constexpr uint32_t kNone = NestedViolation::kNone;

// Everything that a command touches, in its regions too.
struct Touched {
  std::vector<uint32_t> names;  // read, defined outside of the command
  std::vector<uint32_t> reads;  // written names whose blocks are read
  std::vector<uint32_t> held;   // as in TouchedMemory
  std::vector<uint32_t> writes;
  std::vector<uint32_t> streams;  // of its regions, other than its own
  // The machine's events that its regions use lie in here.
  uint32_t first_event = UINT32_MAX;
  uint32_t end_event = 0;

  void use_events(uint32_t first, uint32_t end) {
    if (first == end) return;
    first_event = std::min(first_event, first);
    end_event = std::max(end_event, end);
  }
  bool may_use_event_of(const Touched& other) const {
    return first_event < other.end_event && other.first_event < end_event;
  }
};

void add_all(std::vector<uint32_t>& to, std::span<const uint32_t> from) {
  to.insert(to.end(), from.begin(), from.end());
}
void make_set(std::vector<uint32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

class NestedProver::Prover {
 public:
  Prover(const NestedCommands& commands, const ContentCheck& contents, size_t max_violations)
      : commands_(commands), contents_(contents), max_violations_(max_violations) {}

  NestedProof run() {
    if (commands_.regions.empty()) return {};
    prove_region(0);
    for (const NestedViolation& violation : contents_.violations) add(violation);
    return std::exchange(proof_, {});
  }

  // Loops and branches are proved once more only where asked; what they touch is known.
  void remember() {
    known_loops_.resize(commands_.loops.size());
    known_cases_.resize(commands_.cases.size());
  }
  NestedProof run_again(uint32_t r) {
    const NestedCommand* const owner = owner_or_null(r);
    if (owner == nullptr) {
      prove_region(0);
    } else {
      (void)(owner->kind == Kind::kLoop ? touch_loop(*owner) : touch_case(*owner));
    }
    return std::exchange(proof_, {});
  }

 private:
  // What a required pair is about.
  struct Reason {
    NestedViolation::Kind kind;
    uint32_t name;
  };
  // One region's commands as prove_order takes them.
  struct RegionOrder {
    std::vector<Command> commands;
    std::vector<RequiredOrder> required;
    std::vector<Reason> reasons;     // of required
    std::vector<uint32_t> node_ids;  // what each of prove_order's nodes is
    std::vector<uint32_t> first_on;  // by dense stream: the first and last of its nodes
    std::vector<uint32_t> last_on;
    std::unordered_map<uint32_t, uint32_t> dense_stream;
  };

  bool is_full() const { return proof_.violations.size() >= max_violations_; }
  void add(NestedViolation violation) {
    if (!is_full()) {
      proof_.violations.push_back(std::move(violation));
    }
  }
  void malformed(uint32_t region, uint32_t node, std::string text) {
    add({NestedViolation::Kind::kMalformed, region, node, kNone, kNone, std::move(text)});
  }

  // Proves the region and those in it; returns what they touch.
  Touched prove_region(uint32_t r) {
    const NestedRegion& region = commands_.regions[r];
    RegionOrder order;
    Touched all;
    std::vector<Touched> touched;  // by node of the order
    std::vector<NestedCommand> nodes;
    for (const NestedCommand& command : region.commands) {
      if (is_full()) return {};
      const uint32_t stream = dense(order, command.stream);
      if (command.kind == Kind::kRecord || command.kind == Kind::kWait) {
        const bool is_record = command.kind == Kind::kRecord;
        order.commands.push_back(
            {is_record ? Command::Kind::kRecord : Command::Kind::kWait, stream, command.id});
        continue;
      }
      const auto node = static_cast<uint32_t>(nodes.size());
      order.commands.push_back({Command::Kind::kLaunch, stream, node});
      if (order.first_on[stream] == kNone) order.first_on[stream] = node;
      order.last_on[stream] = node;
      order.node_ids.push_back(node_id(command));
      nodes.push_back(command);
      touched.push_back(touch(command));
      add_all(all.streams, std::span(&command.stream, 1));
      add_all(all.streams, touched.back().streams);
    }
    require_frame(r, nodes, order);
    require_names(r, nodes, touched, order);
    require_bytes(touched, {}, order);
    require_streams(nodes, touched, order);
    check(r, order);
    check_events(r, touched, order, all);
    add_outside(r, touched, all);
    return all;
  }

  // What a region's commands touch, seen from around it.
  void add_outside(uint32_t r, const std::vector<Touched>& touched, Touched& all) const {
    for (const Touched& one : touched) {
      for (const uint32_t name : one.names) {
        if (commands_.region_of_name[name] != r) all.names.push_back(name);
      }
      add_all(all.reads, one.reads);
      add_all(all.held, one.held);
      add_all(all.writes, one.writes);
    }
    for (auto* list : {&all.names, &all.reads, &all.held, &all.writes, &all.streams})
      make_set(*list);
  }

  // The region's own events and those of each loop and branch in it are apart.
  void check_events(uint32_t r, const std::vector<Touched>& touched, const RegionOrder& order,
                    Touched& all) {
    const NestedRegion& region = commands_.regions[r];
    all.use_events(region.first_machine_event,
                   region.first_machine_event + region.num_machine_events);
    std::vector<std::pair<const Touched*, uint32_t>> users = {{&all, kNone}};
    for (uint32_t node = 0; node < touched.size(); ++node) {
      if (touched[node].end_event > 0) users.emplace_back(&touched[node], order.node_ids[node]);
    }
    std::ranges::sort(users, {}, [](const auto& user) { return user.first->first_event; });
    for (size_t i = 1; i < users.size(); ++i) {
      if (!users[i - 1].first->may_use_event_of(*users[i].first)) continue;
      add({NestedViolation::Kind::kSharedEvent,
           r,
           users[i - 1].second,
           users[i].second,
           kNone,
           {}});
    }
    for (const Touched& one : touched) {
      if (one.end_event > 0) all.use_events(one.first_event, one.end_event);
    }
  }

  static uint32_t dense(RegionOrder& order, uint32_t stream) {
    const auto [it, is_new] =
        order.dense_stream.emplace(stream, static_cast<uint32_t>(order.first_on.size()));
    if (is_new) {
      order.first_on.push_back(kNone);
      order.last_on.push_back(kNone);
    }
    return it->second;
  }

  uint32_t node_id(const NestedCommand& command) const {
    switch (command.kind) {
      case Kind::kLaunch:
        return commands_.launches[command.id].node;
      case Kind::kLoop:
        return commands_.loops[command.id].node;
      case Kind::kCase:
        return commands_.cases[command.id].node;
      default:
        return kNone;
    }
  }

  Touched touch(const NestedCommand& command) {
    switch (command.kind) {
      case Kind::kLaunch:
        return touch_launch(command);
      case Kind::kLoop:
        return known(known_loops_, command.id, [&] { return touch_loop(command); });
      case Kind::kCase:
        return known(known_cases_, command.id, [&] { return touch_case(command); });
      default:
        return {};
    }
  }
  // What a control node touches depends on no record or wait.
  template <typename Touch>
  static Touched known(std::vector<std::optional<Touched>>& all, uint32_t id, Touch touch) {
    if (all.empty()) return touch();
    if (!all[id]) all[id] = touch();
    return *all[id];
  }
  // The loop or branch that the region belongs to; null for the root.
  const NestedCommand* owner_or_null(uint32_t r) const {
    for (const NestedRegion& region : commands_.regions) {
      for (const NestedCommand& command : region.commands) {
        if (command.kind == Kind::kLoop) {
          const NestedLoop& loop = commands_.loops[command.id];
          if (loop.before == r || loop.after == r) return &command;
        } else if (command.kind == Kind::kCase) {
          const std::vector<uint32_t>& regions = commands_.cases[command.id].regions;
          if (std::find(regions.begin(), regions.end(), r) != regions.end()) return &command;
        }
      }
    }
    return nullptr;
  }
  Touched touch_launch(const NestedCommand& command) const {
    const NestedLaunch& launch = commands_.launches[command.id];
    Touched touched;
    touched.names = launch.reads;
    for (const NestedPass& pass : launch.passes) touched.names.push_back(pass.from);
    touched.reads = contents_.launches[command.id].reads;
    touched.held = contents_.launches[command.id].held;
    touched.writes = contents_.launches[command.id].writes;
    return touched;
  }
  Touched touch_loop(const NestedCommand& command) {
    const NestedLoop& loop = commands_.loops[command.id];
    Touched touched;
    if (loop.is_open) {
      enter_open(command, touched);
    } else {
      for (const uint32_t inner : {loop.before, loop.after}) {
        enter(command, loop.node, inner, touched);
      }
    }
    add_all(touched.names, loop.reads);
    for (const NestedPass& pass : loop.enter) touched.names.push_back(pass.from);
    // What is passed on may be a value from outside.
    for (const auto* list : {&loop.forward, &loop.advance, &loop.leave}) {
      for (const NestedPass& pass : *list) touched.names.push_back(pass.from);
    }
    add_all(touched.names, loop.tested);
    add_all(touched.names, loop.rows);
    add_all(touched.reads, contents_.loops[command.id].reads);
    add_all(touched.held, contents_.loops[command.id].held);
    for (const TouchedMemory& row : contents_.rows[command.id]) {
      add_all(touched.reads, row.reads);
      add_all(touched.held, row.held);
    }
    drop_inner_names(touched, {loop.before, loop.after});
    return touched;
  }
  Touched touch_case(const NestedCommand& command) {
    const NestedCase& branch = commands_.cases[command.id];
    Touched touched;
    for (const uint32_t inner : branch.regions) enter(command, branch.node, inner, touched);
    add_all(touched.names, branch.reads);
    for (const auto& results : branch.results) {
      for (const NestedPass& pass : results) touched.names.push_back(pass.from);
    }
    for (const NestedPass& pass : branch.pass_through) touched.names.push_back(pass.from);
    add_all(touched.reads, contents_.cases[command.id].reads);
    add_all(touched.held, contents_.cases[command.id].held);
    drop_inner_names(touched, branch.regions);
    return touched;
  }
  void enter(const NestedCommand& command, uint32_t node, uint32_t inner, Touched& touched) {
    check_start(command, node, inner);
    add_inside(command, prove_region(inner), touched);
  }
  void check_start(const NestedCommand& command, uint32_t node, uint32_t inner) {
    const auto& body = commands_.regions[inner].commands;
    if (body.empty() || body[0].stream == command.stream) return;
    malformed(inner, node,
              "the region starts on stream " + std::to_string(body[0].stream) +
                  ", its control node stands on " + std::to_string(command.stream));
  }
  static void add_inside(const NestedCommand& command, const Touched& inside, Touched& touched) {
    add_all(touched.names, inside.names);
    add_all(touched.reads, inside.reads);
    add_all(touched.held, inside.held);
    add_all(touched.writes, inside.writes);
    for (const uint32_t stream : inside.streams) {
      if (stream != command.stream) touched.streams.push_back(stream);
    }
    if (inside.end_event > 0) touched.use_events(inside.first_event, inside.end_event);
  }
  void drop_inner_names(Touched& touched, const std::vector<uint32_t>& regions) const {
    std::erase_if(touched.names, [&](uint32_t name) {
      return std::find(regions.begin(), regions.end(), commands_.region_of_name[name]) !=
             regions.end();
    });
    for (auto* list :
         {&touched.names, &touched.reads, &touched.held, &touched.writes, &touched.streams}) {
      make_set(*list);
    }
  }

  static void require(RegionOrder& order, uint32_t before, uint32_t after, Reason reason) {
    if (before == after || before == kNone) return;
    order.required.push_back({before, after});
    order.reasons.push_back(reason);
  }

  // Everything between the region's entry and its exit.
  void require_frame(uint32_t r, const std::vector<NestedCommand>& nodes, RegionOrder& order) {
    const bool has_frame = nodes.size() >= 2 && nodes.front().kind == Kind::kEnter &&
                           nodes.back().kind == Kind::kExit &&
                           nodes.front().stream == nodes.back().stream;
    if (!has_frame) return malformed(r, kNone, "the region lacks its entry or exit");
    const auto exit = static_cast<uint32_t>(nodes.size() - 1);
    for (uint32_t s = 0; s < order.first_on.size(); ++s) {
      require(order, 0, order.first_on[s], {NestedViolation::Kind::kUnordered, kNone});
      if (order.last_on[s] == kNone) continue;
      require(order, order.last_on[s], exit, {NestedViolation::Kind::kUnordered, kNone});
    }
  }

  // Who reads a name comes after the command that defines it.
  void require_names(uint32_t r, const std::vector<NestedCommand>& nodes,
                     const std::vector<Touched>& touched, RegionOrder& order) {
    std::unordered_map<uint32_t, uint32_t> definer;
    for (uint32_t node = 0; node < nodes.size(); ++node) {
      for_each_defined(nodes[node], [&](uint32_t name) { definer[name] = node; });
    }
    for (uint32_t node = 0; node < nodes.size(); ++node) {
      for (const uint32_t name : touched[node].names) {
        if (commands_.region_of_name[name] != r) continue;
        const auto found = definer.find(name);
        if (found == definer.end()) continue;  // a parameter, an input or a constant
        if (found->second == node) {
          malformed(r, order.node_ids[node], "a node reads its own output");
        }
        require(order, found->second, node, {NestedViolation::Kind::kUnordered, name});
      }
    }
    for (const uint32_t name : r == 0 ? commands_.results : std::vector<uint32_t>()) {
      const auto found = definer.find(name);
      if (found == definer.end()) continue;
      require(order, found->second, static_cast<uint32_t>(nodes.size()) - 1,
              {NestedViolation::Kind::kUnordered, name});
    }
  }
  template <typename Visit>
  void for_each_defined(const NestedCommand& command, Visit visit) const {
    if (command.kind == Kind::kLaunch) {
      for (const uint32_t name : commands_.launches[command.id].writes) visit(name);
      for (const NestedPass& pass : commands_.launches[command.id].passes) visit(pass.to);
    } else if (command.kind == Kind::kLoop) {
      for (const NestedPass& pass : commands_.loops[command.id].leave) visit(pass.to);
      for (const uint32_t name : commands_.loops[command.id].stacks) visit(name);
    } else if (command.kind == Kind::kCase) {
      for (const auto& results : commands_.cases[command.id].results) {
        for (const NestedPass& pass : results) visit(pass.to);
      }
    }
  }

  // --- open loops ---

  // Two iterations of `after`, each behind one command for all that happens between them.
  struct TwoIterations {
    RegionOrder order;
    std::vector<NestedCommand> nodes;
    std::vector<Touched> touched;                // by node
    std::vector<std::vector<uint32_t>> defines;  // by node: names
    std::vector<uint32_t> iterations;            // by node; a turn has one of its own

    void add(const NestedCommand& command, uint32_t stream, uint32_t id, Touched touches,
             std::vector<uint32_t> names, uint32_t iteration) {
      const auto node = static_cast<uint32_t>(nodes.size());
      order.commands.push_back({Command::Kind::kLaunch, stream, node});
      if (order.first_on[stream] == kNone) order.first_on[stream] = node;
      order.last_on[stream] = node;
      order.node_ids.push_back(id);
      nodes.push_back(command);
      touched.push_back(std::move(touches));
      defines.push_back(std::move(names));
      iterations.push_back(iteration);
    }
  };

  void enter_open(const NestedCommand& command, Touched& touched) {
    const NestedLoop& loop = commands_.loops[command.id];
    check_start(command, loop.node, loop.before);
    check_start(command, loop.node, loop.after);
    const Touched before = prove_region(loop.before);
    add_inside(command, before, touched);
    const NestedRegion& region = commands_.regions[loop.after];
    if (region.commands.empty()) return malformed(loop.after, loop.node, "the region is empty");
    TwoIterations two;
    const uint32_t main = dense(two.order, command.stream);
    std::vector<Touched> inside;  // by command
    for (const NestedCommand& each : region.commands) {
      inside.push_back(touch(each));
      if (is_work(each)) touch_row(loop, command.id, each, inside.back());
    }
    Touched turn = before;
    std::vector<uint32_t> turned;
    touch_turn(command.id, turn, turned);
    for (uint32_t iteration = 0; iteration < 2; ++iteration) {
      add_iteration(region, inside, iteration, two);
      two.add(command, main, loop.node, turn, turned, 2 + iteration);
    }
    join_streams(2 * region.num_events, main, two.order);
    require_places(loop, two);
    require_early(region, two);
    require_bytes(two.touched, two.iterations, two.order);
    require_streams(two.nodes, two.touched, two.order);
    check(loop.after, two.order);
    Touched all;
    for (size_t c = 0; c < region.commands.size(); ++c) {
      add_all(all.streams, std::span(&region.commands[c].stream, 1));
      add_all(all.streams, inside[c].streams);
    }
    RegionOrder ids;  // of the commands
    for (const NestedCommand& each : region.commands) ids.node_ids.push_back(node_id(each));
    check_events(loop.after, inside, ids, all);
    add_outside(loop.after, inside, all);
    if (before.end_event > 0 && before.may_use_event_of(all)) {
      add({NestedViolation::Kind::kSharedEvent, loop.after, kNone, loop.node, kNone, {}});
    }
    add_inside(command, all, touched);
  }

  static bool is_work(const NestedCommand& command) {
    return command.kind == Kind::kLaunch || command.kind == Kind::kLoop ||
           command.kind == Kind::kCase;
  }

  // A row that a command defines is stacked by that command.
  void touch_row(const NestedLoop& loop, uint32_t id, const NestedCommand& command,
                 Touched& touched) const {
    for_each_defined(command, [&](uint32_t name) {
      for (size_t k = 0; k < loop.rows.size(); ++k) {
        if (loop.rows[k] != name) continue;
        add_all(touched.reads, contents_.rows[id][k].reads);
        add_all(touched.held, contents_.rows[id][k].held);
      }
    });
  }

  // Values move on, `before` runs, and its results are tested and forwarded. `turned`: names that
  // have another place or content from there on.
  void touch_turn(uint32_t id, Touched& turn, std::vector<uint32_t>& turned) const {
    const NestedLoop& loop = commands_.loops[id];
    std::vector<bool> is_defined(commands_.region_of_name.size(), false);
    for (const NestedCommand& command : commands_.regions[loop.after].commands) {
      for_each_defined(command, [&](uint32_t name) { is_defined[name] = true; });
    }
    for (uint32_t name = 0; name < is_defined.size(); ++name) {
      const uint32_t region = commands_.region_of_name[name];
      const bool is_parameter = region == loop.after && !is_defined[name];
      if (region == loop.before || is_parameter) turned.push_back(name);
    }
    for (const NestedPass& pass : loop.advance) {
      turn.names.push_back(pass.from);
      if (commands_.region_of_name[pass.from] == loop.after) turned.push_back(pass.from);
    }
    for (size_t k = 0; k < loop.rows.size(); ++k) {
      if (is_defined[loop.rows[k]]) continue;
      turn.names.push_back(loop.rows[k]);
      add_all(turn.reads, contents_.rows[id][k].reads);
      add_all(turn.held, contents_.rows[id][k].held);
    }
    add_all(turn.names, loop.tested);
    add_all(turn.reads, contents_.loops[id].reads);
    add_all(turn.held, contents_.loops[id].held);
    make_set(turned);
  }

  void add_iteration(const NestedRegion& region, const std::vector<Touched>& inside,
                     uint32_t iteration, TwoIterations& two) {
    uint32_t entry = kNone;
    std::set<uint32_t> begun;  // streams
    for (size_t c = 0; c < region.commands.size(); ++c) {
      const NestedCommand& command = region.commands[c];
      const uint32_t stream = dense(two.order, command.stream);
      const uint32_t event = command.id + iteration * region.num_events;
      switch (command.kind) {
        case Kind::kRecord:
          two.order.commands.push_back({Command::Kind::kRecord, stream, event});
          break;
        case Kind::kWait:
          two.order.commands.push_back({Command::Kind::kWait, stream, event});
          break;
        case Kind::kWaitPrevious:
          if (iteration > 0) {
            two.order.commands.push_back({Command::Kind::kWait, stream, command.id});
          }
          break;
        default: {
          std::vector<uint32_t> names;
          for_each_defined(command, [&](uint32_t name) { names.push_back(name); });
          const auto node = static_cast<uint32_t>(two.nodes.size());
          two.add(command, stream, node_id(command), inside[c], std::move(names), iteration);
          if (begun.empty()) entry = node;
          if (!begun.insert(stream).second) break;
          require(two.order, entry, node, {NestedViolation::Kind::kUnordered, kNone});
        }
      }
    }
  }

  // The loop's end waits for all streams.
  void join_streams(uint32_t first_event, uint32_t main, RegionOrder& order) const {
    for (uint32_t s = 0; s < order.first_on.size(); ++s) {
      if (s == main) continue;
      order.commands.push_back({Command::Kind::kRecord, s, first_event + s});
      order.commands.push_back({Command::Kind::kWait, main, first_event + s});
    }
  }

  // Every name of the loop has one place: what changes it comes after all that used it before.
  void require_places(const NestedLoop& loop, TwoIterations& two) {
    struct Use {
      uint32_t definer = kNone;
      std::vector<uint32_t> readers;
    };
    std::unordered_map<uint32_t, Use> uses;
    const auto is_ours = [&](uint32_t name) {
      const uint32_t region = commands_.region_of_name[name];
      return region == loop.before || region == loop.after;
    };
    for (uint32_t node = 0; node < two.nodes.size(); ++node) {
      for (const uint32_t name : two.touched[node].names) {
        if (!is_ours(name)) continue;
        Use& use = uses[name];
        require(two.order, use.definer, node, {NestedViolation::Kind::kUnordered, name});
        use.readers.push_back(node);
      }
      for (const uint32_t name : two.defines[node]) {
        Use& use = uses[name];
        require(two.order, use.definer, node, {NestedViolation::Kind::kUnordered, name});
        for (const uint32_t reader : use.readers) {
          require(two.order, reader, node, {NestedViolation::Kind::kUnordered, name});
        }
        use = {node, {}};
      }
    }
  }

  // Who reads a passed-on name where references are let go of early has ended before the turn: the
  // memory may be another's to write from there on.
  void require_early(const NestedRegion& region, TwoIterations& two) {
    if (commands_.early_streams.empty()) return;
    std::set<uint32_t> passed;
    for (const NestedCommand& command : region.commands) {
      const bool is_launch = command.kind == Kind::kLaunch;
      if (is_launch && commands_.launches[command.id].kept.empty()) {
        for (const NestedPass& pass : commands_.launches[command.id].passes) passed.insert(pass.to);
      } else {
        for_each_defined(command, [&](uint32_t name) { passed.insert(name); });
      }
    }
    uint32_t turn = kNone;  // the next
    for (auto node = static_cast<uint32_t>(two.nodes.size()); node-- > 0;) {
      if (two.iterations[node] >= 2) turn = node;
      if (turn == node || !is_early(two.nodes[node], two.touched[node])) continue;
      for (const uint32_t name : two.touched[node].names) {
        if (!passed.contains(name)) continue;
        require(two.order, node, turn, {NestedViolation::Kind::kUnordered, name});
      }
    }
  }
  bool is_early(const NestedCommand& command, const Touched& touched) const {
    const auto is_one = [&](uint32_t stream) {
      return std::ranges::find(commands_.early_streams, stream) != commands_.early_streams.end();
    };
    return is_one(command.stream) || std::ranges::any_of(touched.streams, is_one);
  }

  // In the order of issue, each byte's accesses follow each other. No `iterations`: all are of one.
  void require_bytes(const std::vector<Touched>& touched, const std::vector<uint32_t>& iterations,
                     RegionOrder& order) {
    std::map<uint32_t, ByteHistory> arenas;
    const auto for_each_block = [&](uint32_t name, auto visit) {
      const NestedMemory& memory = commands_.memory[name];
      for (const uint64_t offset : memory.offsets_bytes) {
        visit(arenas[memory.arena], offset, offset + memory.size_bytes);
      }
    };
    for (uint32_t node = 0; node < touched.size(); ++node) {
      const auto require_after = [&](uint32_t name) {
        return [&, name](uint32_t earlier) {
          require(order, earlier, node, {NestedViolation::Kind::kUnorderedBytes, name});
        };
      };
      const uint32_t iteration = iterations.empty() ? 0 : iterations[node];
      for (const bool is_held : {false, true}) {
        for (const uint32_t name : is_held ? touched[node].held : touched[node].reads) {
          for_each_block(name, [&](ByteHistory& bytes, uint64_t begin, uint64_t end) {
            bytes.read(begin, end, {node, name, is_held, iteration}, require_after(name));
          });
        }
      }
      for (const uint32_t name : touched[node].writes) {
        for_each_block(name, [&](ByteHistory& bytes, uint64_t begin, uint64_t end) {
          bytes.write(begin, end, {node, name, false, iteration}, require_after(name));
        });
      }
    }
  }

  // A stream that a loop or branch uses inside is its own while it runs.
  void require_streams(const std::vector<NestedCommand>& nodes, const std::vector<Touched>& touched,
                       RegionOrder& order) {
    struct Use {
      uint32_t owner = kNone;  // the last that had it for itself
      uint32_t user = kNone;   // the last that stood on it since
    };
    std::unordered_map<uint32_t, Use> uses;
    const Reason reason{NestedViolation::Kind::kSharedStream, kNone};
    for (uint32_t node = 0; node < nodes.size(); ++node) {
      // The entry and the exit of a region are no work.
      const bool is_work = nodes[node].kind != Kind::kEnter && nodes[node].kind != Kind::kExit;
      if (is_work) {
        Use& own = uses[nodes[node].stream];
        require(order, own.owner, node, reason);
        own.user = node;
      }
      for (const uint32_t stream : touched[node].streams) {
        Use& use = uses[stream];
        require(order, use.owner, node, reason);
        require(order, use.user, node, reason);
        use = {node, kNone};
      }
    }
  }

  void check(uint32_t r, const RegionOrder& order) {
    const auto count = static_cast<uint32_t>(order.node_ids.size());
    const Proof proof = prove_order(count, order.commands, order.required);
    if (proof.is_safe()) return;
    for (const Violation& violation : proof.violations) {
      if (violation.kind != Violation::Kind::kUnordered) {
        malformed(r, kNone, violation.to_string());
        continue;
      }
      Reason reason{NestedViolation::Kind::kUnordered, kNone};
      for (size_t i = 0; i < order.required.size(); ++i) {
        const RequiredOrder& pair = order.required[i];
        if (pair.before == violation.first && pair.after == violation.second) {
          reason = order.reasons[i];
          break;
        }
      }
      add({reason.kind,
           r,
           order.node_ids[violation.first],
           order.node_ids[violation.second],
           reason.name,
           {}});
    }
  }

  const NestedCommands& commands_;
  const ContentCheck& contents_;
  const size_t max_violations_;
  NestedProof proof_;
  // By id; empty: nothing is remembered.
  std::vector<std::optional<Touched>> known_loops_;
  std::vector<std::optional<Touched>> known_cases_;
};

std::string NestedViolation::to_string(
    const std::function<std::string(uint32_t)>& node_name,
    const std::function<std::string(uint32_t)>& value_name) const {
  const auto node = [&](uint32_t id, const char* otherwise) {
    return id == kNone ? std::string(otherwise) : node_name(id);
  };
  const std::string a = node(first, "the region's entry");
  const std::string b = node(second, "the region's exit");
  const std::string of = name == kNone ? "" : value_name(name);
  switch (kind) {
    case Kind::kUnordered:
      return a + " is not ordered before " + b + (of.empty() ? "" : "; both touch " + of);
    case Kind::kUnorderedBytes:
      return a + " is not ordered before " + b + "; both touch the bytes of " + of;
    case Kind::kSharedStream:
      return a + " is not ordered before " + b + "; both need one stream";
    case Kind::kSharedEvent:
      return node(first, "the region") + " and " + node(second, "the region") +
             " use one event at once";
    case Kind::kOverwritten:
      return node(first, "the graph's end") + " reads " + of + ", whose bytes " +
             node(second, "a node") + " may have written since";
    case Kind::kOverlap:
      return a + " writes bytes that it also reads or writes as " + of;
    case Kind::kBadBlock:
      return "the block of " + of + " lies outside its arena, off alignment or in its own way";
    case Kind::kEscapes:
      return node(first, "the caller") + " may keep " + of + ", which is in an arena";
    case Kind::kMalformed:
      return node(first, "a region") + ": " + text + (of.empty() ? "" : " (" + of + ")");
  }
  return "unknown violation";
}

NestedProver::NestedProver(const NestedCommands& commands, const ContentCheck& contents,
                           size_t max_violations)
    : prover_(std::make_unique<Prover>(commands, contents, max_violations)) {}
NestedProver::~NestedProver() = default;

NestedProof NestedProver::prove() {
  prover_->remember();
  return prover_->run();
}
NestedProof NestedProver::prove_again(uint32_t region) { return prover_->run_again(region); }

NestedProof prove_nested(const NestedCommands& commands, const ContentCheck& contents,
                         size_t max_violations) {
  return NestedProver::Prover(commands, contents, max_violations).run();
}

NestedProof prove_nested(const NestedCommands& commands) {
  return prove_nested(commands, check_contents(commands));
}

}  // namespace eddy
