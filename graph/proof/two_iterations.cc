#include "graph/proof/two_iterations.h"

#include <algorithm>
#include <set>
#include <utility>

namespace eddy {
namespace {

using Kind = NestedCommand::Kind;
using Reason = RegionOrder::Reason;
constexpr uint32_t kNone = NestedViolation::kNone;
constexpr uint32_t kTurn = 2;  // iterations of turns begin here

class TwoIterations {
 public:
  TwoIterations(const OpenLoop& open, std::vector<Touched>& inside)
      : commands_(open.commands),
        contents_(open.contents),
        open_(open),
        loop_(open.loop()),
        after_(open.commands.regions[loop_.after]),
        inside_(inside),
        order_(open.commands, 2 * (after_.commands.size() + 1)) {}

  RegionOrder run() {
    for (size_t c = 0; c < after_.commands.size(); ++c) {
      add_rows(after_.commands[c], inside_[c]);
    }
    const Touched turn = touch_turn();
    for (uint32_t iteration = 0; iteration < 2; ++iteration) {
      add_iteration(iteration);
      order_.add_node(open_.command, loop_.node, turn, kTurn + iteration);
    }
    require_places();
    require_early();
    order_.require_bytes();
    order_.require_streams();
    return std::move(order_);
  }

 private:
  void add_rows(const NestedCommand& command, Touched& touched) const {
    for_each_defined(commands_, command, [&](uint32_t name) {
      for (size_t k = 0; k < loop_.rows.size(); ++k) {
        if (loop_.rows[k] == name) touched.add_memory(contents_.rows[open_.command.id][k]);
      }
    });
  }

  // Also finds `turned_`: names that have another place or content from there on.
  Touched touch_turn() {
    Touched turn = open_.before;
    std::set<uint32_t> defined;  // by commands of `after`
    for (const NestedCommand& command : after_.commands) {
      for_each_defined(commands_, command, [&](uint32_t name) { defined.insert(name); });
    }
    for (const uint32_t name : open_.own_names) {
      const bool is_parameter =
          commands_.region_of_name[name] == loop_.after && !defined.contains(name);
      if (commands_.region_of_name[name] == loop_.before || is_parameter) turned_.insert(name);
    }
    for (const NestedPass& pass : loop_.advance) {
      turn.names.push_back(pass.from);
      if (commands_.region_of_name[pass.from] == loop_.after) turned_.insert(pass.from);
    }
    for (size_t k = 0; k < loop_.rows.size(); ++k) {
      if (defined.contains(loop_.rows[k])) continue;
      turn.names.push_back(loop_.rows[k]);
      turn.add_memory(contents_.rows[open_.command.id][k]);
    }
    add_all(turn.names, loop_.tested);
    turn.add_memory(contents_.loops[open_.command.id]);
    return turn;
  }

  void add_iteration(uint32_t iteration) {
    uint32_t entry = kNone;
    std::set<uint32_t> begun;  // streams
    for (size_t c = 0; c < after_.commands.size(); ++c) {
      const NestedCommand& command = after_.commands[c];
      if (is_of_event(command)) continue;
      const uint32_t node =
          order_.add_node(command, node_of(commands_, command), inside_[c], iteration);
      if (begun.empty()) entry = node;
      if (begun.insert(command.stream).second) order_.require(entry, node, {});
    }
  }

  template <typename Visit>
  void for_each_changed(const RegionOrder::Node& node, Visit visit) const {
    if (node.iteration < kTurn) return for_each_defined(commands_, node.command, visit);
    for (const uint32_t name : turned_) visit(name);
  }

  void require_places() {
    struct Use {
      uint32_t definer = kNone;
      std::vector<uint32_t> readers;
    };
    std::unordered_map<uint32_t, Use> uses;
    const auto is_own = [&](uint32_t name) {
      const uint32_t region = commands_.region_of_name[name];
      return region == loop_.before || region == loop_.after;
    };
    for (uint32_t node = 0; node < order_.num_nodes(); ++node) {
      for (const uint32_t name : order_.nodes()[node].touched.names) {
        if (!is_own(name)) continue;
        Use& use = uses[name];
        order_.require(use.definer, node, {NestedViolation::Kind::kUnordered, name});
        use.readers.push_back(node);
      }
      for_each_changed(order_.nodes()[node], [&](uint32_t name) {
        const Reason reason{NestedViolation::Kind::kUnordered, name};
        Use& use = uses[name];
        order_.require(use.definer, node, reason);
        for (const uint32_t reader : use.readers) order_.require(reader, node, reason);
        use = {node, {}};
      });
    }
  }

  // Names of `after` that may stand at memory which other names stand at, too.
  std::set<uint32_t> find_passed() const {
    std::set<uint32_t> passed;
    for (const NestedCommand& command : after_.commands) {
      const bool is_plain =
          command.kind == Kind::kLaunch && commands_.launches[command.id].kept.empty();
      if (!is_plain) {
        for_each_defined(commands_, command, [&](uint32_t name) { passed.insert(name); });
        continue;
      }
      for (const NestedPass& pass : commands_.launches[command.id].passes) passed.insert(pass.to);
    }
    return passed;
  }
  bool is_early(const RegionOrder::Node& node) const {
    const auto is_one = [&](uint32_t stream) {
      return std::ranges::find(commands_.early_streams, stream) != commands_.early_streams.end();
    };
    return is_one(node.command.stream) || std::ranges::any_of(node.touched.streams, is_one);
  }
  void require_early() {
    if (commands_.early_streams.empty()) return;
    const std::set<uint32_t> passed = find_passed();
    uint32_t turn = kNone;  // the next
    for (uint32_t node = order_.num_nodes(); node-- > 0;) {
      if (order_.nodes()[node].iteration >= kTurn) turn = node;
      if (turn == node || !is_early(order_.nodes()[node])) continue;
      for (const uint32_t name : order_.nodes()[node].touched.names) {
        if (!passed.contains(name)) continue;
        order_.require(node, turn, {NestedViolation::Kind::kUnordered, name});
      }
    }
  }

  const NestedCommands& commands_;
  const ContentCheck& contents_;
  const OpenLoop& open_;
  const NestedLoop& loop_;
  const NestedRegion& after_;
  std::vector<Touched>& inside_;
  std::set<uint32_t> turned_;
  RegionOrder order_;
};

}  // namespace

RegionOrder two_iterations(const OpenLoop& open, std::vector<Touched>& inside) {
  return TwoIterations(open, inside).run();
}

void list_two_iterations(const NestedRegion& after, RegionOrder& order) {
  order.begin_list();
  for (uint32_t iteration = 0; iteration < 2; ++iteration) {
    for (const NestedCommand& command : after.commands) {
      const uint32_t event = command.id + iteration * after.num_events;
      switch (command.kind) {
        case Kind::kRecord:
          order.list_record(command.stream, event);
          break;
        case Kind::kWait:
          order.list_wait(command.stream, event);
          break;
        case Kind::kWaitPrevious:
          if (iteration > 0) order.list_wait(command.stream, command.id);
          break;
        default:
          order.list_node();
      }
    }
    order.list_node();  // the turn
  }
}

}  // namespace eddy
