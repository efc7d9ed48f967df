#include "graph/proof/nested_proof.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "graph/proof/content_check.h"
#include "graph/proof/nested_shape.h"
#include "graph/proof/region_order.h"
#include "graph/proof/touched.h"
#include "graph/proof/two_iterations.h"

namespace eddy {
namespace {

using Kind = NestedCommand::Kind;
constexpr uint32_t kNone = NestedViolation::kNone;

}  // namespace

class NestedProver::Prover {
 public:
  Prover(const NestedCommands& commands, const ContentCheck& contents, size_t max_violations)
      : commands_(commands),
        contents_(contents),
        max_violations_(max_violations),
        malformed_(find_malformed(commands)) {
    if (malformed_) return;
    names_of_region_.resize(commands.regions.size());
    for (uint32_t name = 0; name < commands.region_of_name.size(); ++name) {
      names_of_region_[commands.region_of_name[name]].push_back(name);
    }
    is_open_.resize(commands.regions.size());
    for (const NestedLoop& loop : commands.loops) is_open_[loop.after] = loop.is_open;
    orders_.resize(commands.regions.size());
    definer_.resize(commands.region_of_name.size());
  }

  NestedProof run() {
    if (commands_.regions.empty()) return {};
    if (malformed_) return {{*malformed_}};
    prove_region(0);
    for (const NestedViolation& violation : contents_.violations) add(violation);
    return std::exchange(proof_, {});
  }

  NestedProof run_again(uint32_t r) {
    if (malformed_ || !orders_[r]) return run();
    prove_list(r);
    return std::exchange(proof_, {});
  }

 private:
  bool is_full() const { return proof_.violations.size() >= max_violations_; }
  void add(NestedViolation violation) {
    if (!is_full()) proof_.violations.push_back(std::move(violation));
  }
  void malformed(uint32_t region, uint32_t node, std::string text) {
    add({NestedViolation::Kind::kMalformed, region, node, kNone, kNone, std::move(text)});
  }
  // The list as it is, against what the region's nodes require.
  void prove_list(uint32_t r) {
    RegionOrder& order = *orders_[r];
    if (is_open_[r]) {
      list_two_iterations(commands_.regions[r], order);
    } else {
      list_once(commands_.regions[r], order);
    }
    order.prove(r, [this](NestedViolation violation) {
      add(std::move(violation));
      return !is_full();
    });
  }
  static void list_once(const NestedRegion& region, RegionOrder& order) {
    order.begin_list();
    for (const NestedCommand& command : region.commands) {
      if (command.kind == Kind::kRecord) {
        order.list_record(command.stream, command.id);
      } else if (command.kind == Kind::kWait) {
        order.list_wait(command.stream, command.id);
      } else {
        order.list_node();
      }
    }
  }

  // Proves the region and those in it; returns what they touch.
  Touched prove_region(uint32_t r) {
    RegionOrder order(commands_, commands_.regions[r].commands.size());
    for (const NestedCommand& command : commands_.regions[r].commands) {
      if (is_full()) return {};
      if (is_of_event(command)) continue;
      order.add_node(command, node_of(commands_, command), touch(command));
    }
    require_frame(order);
    require_names(r, order);
    order.require_bytes();
    order.require_streams();
    orders_[r].emplace(std::move(order));
    prove_list(r);
    return touch_region(r, orders_[r]->nodes());
  }

  // What the region touches, seen from around it. Its own events and those of each loop and branch
  // in it must be apart.
  Touched touch_region(uint32_t r, const std::vector<RegionOrder::Node>& nodes) {
    const NestedRegion& region = commands_.regions[r];
    Touched all;
    all.use_events(region.first_machine_event,
                   region.first_machine_event + region.num_machine_events);
    std::vector<std::pair<const Touched*, uint32_t>> users = {{&all, kNone}};
    for (const RegionOrder::Node& node : nodes) {
      if (node.touched.end_event > 0) users.emplace_back(&node.touched, node.id);
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
    for (const RegionOrder::Node& node : nodes) {
      all.add_inside(node.touched);
      all.streams.push_back(node.command.stream);
      add_all(all.streams, node.touched.streams);
      if (node.touched.end_event > 0) {
        all.use_events(node.touched.first_event, node.touched.end_event);
      }
    }
    std::erase_if(all.names, [&](uint32_t name) { return commands_.region_of_name[name] == r; });
    all.make_sets();
    return all;
  }

  // --- what commands touch; their regions are proved on the way ---

  Touched touch(const NestedCommand& command) {
    switch (command.kind) {
      case Kind::kLaunch:
        return touch_launch(command);
      case Kind::kLoop:
        return touch_loop(command);
      case Kind::kCase:
        return touch_case(command);
      default:
        return {};
    }
  }

  Touched touch_launch(const NestedCommand& command) const {
    const NestedLaunch& launch = commands_.launches[command.id];
    Touched touched;
    touched.names = launch.reads;
    for (const NestedPass& pass : launch.passes) touched.names.push_back(pass.from);
    touched.add_memory(contents_.launches[command.id]);
    return touched;
  }
  Touched touch_loop(const NestedCommand& command) {
    const NestedLoop& loop = commands_.loops[command.id];
    Touched touched;
    const Touched before = enter(command, loop.node, loop.before, touched);
    if (loop.is_open) {
      enter_open(command, before, touched);
    } else {
      enter(command, loop.node, loop.after, touched);
    }
    add_all(touched.names, loop.reads);
    for (const NestedPass& pass : loop.enter) touched.names.push_back(pass.from);
    // What is passed on may be a value from outside.
    for (const auto* list : {&loop.forward, &loop.advance, &loop.leave}) {
      for (const NestedPass& pass : *list) touched.names.push_back(pass.from);
    }
    add_all(touched.names, loop.tested);
    add_all(touched.names, loop.rows);
    touched.add_memory(contents_.loops[command.id]);
    for (const TouchedMemory& row : contents_.rows[command.id]) touched.add_memory(row);
    drop_inner_names(touched, std::array{loop.before, loop.after});
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
    touched.add_memory(contents_.cases[command.id]);
    drop_inner_names(touched, branch.regions);
    return touched;
  }
  void drop_inner_names(Touched& touched, std::span<const uint32_t> regions) const {
    std::erase_if(touched.names, [&](uint32_t name) {
      return std::ranges::find(regions, commands_.region_of_name[name]) != regions.end();
    });
    touched.make_sets();
  }

  // Returns what the region touches, and adds it to what its control node does.
  Touched enter(const NestedCommand& command, uint32_t node, uint32_t inner, Touched& touched) {
    check_start(command, node, inner);
    Touched inside = prove_region(inner);
    add_inside(command, inside, touched);
    return inside;
  }
  void enter_open(const NestedCommand& command, const Touched& before, Touched& touched) {
    const NestedLoop& loop = commands_.loops[command.id];
    check_start(command, loop.node, loop.after);
    std::vector<Touched> inside;  // by command of `after`
    for (const NestedCommand& each : commands_.regions[loop.after].commands) {
      inside.push_back(touch(each));
    }
    if (is_full()) return;
    OpenLoop open{commands_, contents_, command, before, names_of_region_[loop.before]};
    add_all(open.own_names, names_of_region_[loop.after]);
    orders_[loop.after].emplace(two_iterations(open, inside));
    prove_list(loop.after);
    std::vector<RegionOrder::Node> nodes;
    for (size_t c = 0; c < inside.size(); ++c) {
      const NestedCommand& each = commands_.regions[loop.after].commands[c];
      nodes.push_back({each, node_of(commands_, each), std::move(inside[c])});
    }
    const Touched all = touch_region(loop.after, nodes);
    if (before.end_event > 0 && before.may_use_event_of(all)) {
      add({NestedViolation::Kind::kSharedEvent, loop.after, kNone, loop.node, kNone, {}});
    }
    add_inside(command, all, touched);
  }
  void check_start(const NestedCommand& command, uint32_t node, uint32_t inner) {
    const uint32_t start = commands_.regions[inner].commands[0].stream;
    if (start == command.stream) return;
    malformed(inner, node,
              "the region starts on stream " + std::to_string(start) +
                  ", its control node stands on " + std::to_string(command.stream));
  }
  static void add_inside(const NestedCommand& command, const Touched& inside, Touched& touched) {
    touched.add_inside(inside);
    for (const uint32_t stream : inside.streams) {
      if (stream != command.stream) touched.streams.push_back(stream);
    }
    if (inside.end_event > 0) touched.use_events(inside.first_event, inside.end_event);
  }

  // --- what a closed region requires ---

  // Everything stands between the region's entry and its exit.
  static void require_frame(RegionOrder& order) {
    const uint32_t exit = order.num_nodes() - 1;
    order.for_each_stream([&](uint32_t first, uint32_t last) {
      order.require(0, first, {});
      order.require(last, exit, {});
    });
  }

  // Who reads a name comes after the command that defines it.
  void require_names(uint32_t r, RegionOrder& order) {
    const auto is_own = [&](uint32_t name) { return commands_.region_of_name[name] == r; };
    for (const uint32_t name : names_of_region_[r]) definer_[name] = kNone;
    for (uint32_t node = 0; node < order.num_nodes(); ++node) {
      for_each_defined(commands_, order.nodes()[node].command, [&](uint32_t name) {
        if (is_own(name)) definer_[name] = node;
      });
    }
    const auto require_definer = [&](uint32_t name, uint32_t node) {
      const uint32_t definer = is_own(name) ? definer_[name] : kNone;
      if (definer == kNone) return;  // another region's, a parameter, an input or a constant
      if (definer == node) malformed(r, order.nodes()[node].id, "a node reads its own output");
      order.require(definer, node, {NestedViolation::Kind::kUnordered, name});
    };
    for (uint32_t node = 0; node < order.num_nodes(); ++node) {
      for (const uint32_t name : order.nodes()[node].touched.names) {
        require_definer(name, node);
      }
    }
    for (const uint32_t name : r == 0 ? commands_.results : std::vector<uint32_t>()) {
      require_definer(name, order.num_nodes() - 1);
    }
  }

  const NestedCommands& commands_;
  const ContentCheck& contents_;
  const size_t max_violations_;
  const std::optional<NestedViolation> malformed_;
  std::vector<std::vector<uint32_t>> names_of_region_;
  std::vector<bool> is_open_;  // by region: it is the `after` of an open loop
  // By region: its nodes and what they require, which no record or wait changes.
  std::vector<std::optional<RegionOrder>> orders_;
  std::vector<uint32_t> definer_;  // by name: the node of its region that defines it
  NestedProof proof_;
};

NestedProver::NestedProver(const NestedCommands& commands, const ContentCheck& contents,
                           size_t max_violations)
    : prover_(std::make_unique<Prover>(commands, contents, max_violations)) {}
NestedProver::~NestedProver() = default;

NestedProof NestedProver::prove() { return prover_->run(); }
NestedProof NestedProver::prove_again(uint32_t region) { return prover_->run_again(region); }

NestedProof prove_nested(const NestedCommands& commands, const ContentCheck& contents,
                         size_t max_violations) {
  return NestedProver(commands, contents, max_violations).prove();
}

NestedProof prove_nested(const NestedCommands& commands) {
  return prove_nested(commands, check_contents(commands));
}

}  // namespace eddy
