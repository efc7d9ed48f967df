#include "graph/proof/back_edge_order.h"

#include <algorithm>
#include <set>
#include <utility>

#include "graph/base/check.h"

namespace eddy {
namespace {

using Op = Program::Op;
using Reason = RegionOrder::Reason;
constexpr uint32_t kNone = ProgramViolation::kNone;

class BackEdgeOrder {
 public:
  BackEdgeOrder(const PipelinedLoop& pipelined, const std::vector<Touched>& inside)
      : program_(pipelined.program),
        contents_(pipelined.contents),
        pipelined_(pipelined),
        loop_(pipelined.loop()),
        after_(pipelined.program.blocks[loop_.after]),
        inside_(inside),
        order_(pipelined.program, 2 * (after_.steps.size() + 1)) {}

  RegionOrder run() {
    EDDY_CHECK(loop_.is_pipelined) << "iterations of node " << loop_.node << " follow each other";
    EDDY_CHECK(inside_.size() == after_.steps.size()) << "one set of what is touched for each step";
    const Touched turn = touch_turn();
    for (uint32_t iteration = 0; iteration < 2; ++iteration) {
      add_iteration(iteration);
      // It copies what the iteration made, and all of `before` is of the next.
      turns_.push_back(order_.add_node(
          {pipelined_.step, loop_.node, turn, RegionOrder::kAnyIteration, iteration + 1}));
    }
    require_places();
    require_early();
    order_.require_bytes(pipelined_.step.operand);
    order_.require_streams();
    return std::move(order_);
  }

 private:
  // Also finds `turned_`: names that have another place or content from there on.
  Touched touch_turn() {
    Touched turn = pipelined_.before;
    std::set<uint32_t> defined;  // by steps of `after`
    for (const Program::Step& step : after_.steps) {
      for_each_defined(program_, step, [&](uint32_t name) { defined.insert(name); });
    }
    for (const uint32_t name : pipelined_.own_names) {
      const bool is_parameter =
          program_.block_of_name[name] == loop_.after && !defined.contains(name);
      if (program_.block_of_name[name] == loop_.before || is_parameter) turned_.insert(name);
    }
    for (const Program::Alias& pass : loop_.advance) {
      turn.names.push_back(pass.from);
      if (program_.block_of_name[pass.from] == loop_.after) turned_.insert(pass.from);
    }
    add_all(turn.names, loop_.tested);
    turn.add_memory(contents_.turns[pipelined_.step.operand]);
    return turn;
  }

  void add_iteration(uint32_t iteration) {
    uint32_t entry = kNone;
    std::set<uint32_t> begun;  // streams
    for (size_t c = 0; c < after_.steps.size(); ++c) {
      const Program::Step& step = after_.steps[c];
      if (is_sync(step.op)) continue;
      const uint32_t node =
          order_.add_node({step, node_of(program_, step), inside_[c], iteration, iteration});
      if (begun.empty()) entry = node;
      if (begun.insert(step.stream).second) order_.require(entry, node, {});
    }
  }

  bool is_turn(uint32_t node) const { return std::ranges::find(turns_, node) != turns_.end(); }

  template <typename Visit>
  void for_each_changed(uint32_t node, Visit visit) const {
    if (!is_turn(node)) return for_each_defined(program_, order_.nodes()[node].step, visit);
    for (const uint32_t name : turned_) visit(name);
  }

  void require_places() {
    struct Use {
      uint32_t definer = kNone;
      std::vector<uint32_t> readers;
    };
    std::unordered_map<uint32_t, Use> uses;
    const auto is_own = [&](uint32_t name) {
      const uint32_t region = program_.block_of_name[name];
      return region == loop_.before || region == loop_.after;
    };
    for (uint32_t node = 0; node < order_.num_nodes(); ++node) {
      for (const uint32_t name : order_.nodes()[node].touched.names) {
        if (!is_own(name)) continue;
        Use& use = uses[name];
        order_.require(use.definer, node, {ProgramViolation::Kind::kUnordered, name});
        use.readers.push_back(node);
      }
      for_each_changed(node, [&](uint32_t name) {
        const Reason reason{ProgramViolation::Kind::kUnordered, name};
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
    for (const Program::Step& step : after_.steps) {
      const bool is_plain =
          step.op == Op::kLaunch && program_.launches[step.operand].escapes.empty();
      if (!is_plain) {
        for_each_defined(program_, step, [&](uint32_t name) { passed.insert(name); });
        continue;
      }
      for (const Program::Alias& pass : program_.launches[step.operand].aliases)
        passed.insert(pass.to);
    }
    return passed;
  }
  bool is_early(const RegionOrder::Node& node) const {
    const auto is_one = [&](uint32_t stream) {
      return std::ranges::find(program_.asynchronous_streams, stream) !=
             program_.asynchronous_streams.end();
    };
    return is_one(node.step.stream) || std::ranges::any_of(node.touched.streams, is_one);
  }
  void require_early() {
    if (program_.asynchronous_streams.empty()) return;
    const std::set<uint32_t> passed = find_passed();
    uint32_t turn = kNone;  // the next
    for (uint32_t node = order_.num_nodes(); node-- > 0;) {
      if (is_turn(node)) turn = node;
      if (turn == node || !is_early(order_.nodes()[node])) continue;
      for (const uint32_t name : order_.nodes()[node].touched.names) {
        if (!passed.contains(name)) continue;
        order_.require(node, turn, {ProgramViolation::Kind::kUnordered, name});
      }
    }
  }

  const Program& program_;
  const ReachingWrites& contents_;
  const PipelinedLoop& pipelined_;
  const Program::Loop& loop_;
  const Program::Block& after_;
  const std::vector<Touched>& inside_;
  std::set<uint32_t> turned_;
  std::vector<uint32_t> turns_;  // nodes
  RegionOrder order_;
};

}  // namespace

RegionOrder back_edge_order(const PipelinedLoop& pipelined, const std::vector<Touched>& inside) {
  return BackEdgeOrder(pipelined, inside).run();
}

void list_back_edge(const Program::Block& after, RegionOrder& order) {
  order.begin_list();
  for (uint32_t iteration = 0; iteration < 2; ++iteration) {
    for (const Program::Step& step : after.steps) {
      const uint32_t event = step.operand + iteration * after.num_events;
      switch (step.op) {
        case Op::kRecord:
          order.list_record(step.stream, event);
          break;
        case Op::kWait:
          order.list_wait(step.stream, event);
          break;
        case Op::kWaitPrevious:
          if (iteration > 0) order.list_wait(step.stream, step.operand);
          break;
        default:
          order.list_node();
      }
    }
    order.list_node();  // the turn
  }
}

}  // namespace eddy
