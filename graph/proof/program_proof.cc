#include "graph/proof/program_proof.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "graph/base/check.h"
#include "graph/program/validate.h"
#include "graph/proof/back_edge_order.h"
#include "graph/proof/reaching_writes.h"
#include "graph/proof/region_order.h"
#include "graph/proof/touched.h"

namespace eddy {
namespace {

using Op = Program::Op;
constexpr uint32_t kNone = ProgramViolation::kNone;

}  // namespace

class ProgramProver::Prover {
 public:
  Prover(const Program& program, const ReachingWrites& contents, size_t max_violations)
      : program_(program),
        contents_(contents),
        max_violations_(max_violations),
        malformed_(find_malformed(program)) {
    if (malformed_) return;
    EDDY_CHECK(contents.launches.size() == program.launches.size() &&
               contents.rows.size() == program.rows.size() &&
               contents.loops.size() == program.loops.size() &&
               contents.cases.size() == program.cases.size())
        << "the contents are another program's";
    names_of_region_.resize(program.blocks.size());
    for (uint32_t name = 0; name < program.block_of_name.size(); ++name) {
      names_of_region_[program.block_of_name[name]].push_back(name);
    }
    is_pipelined_.resize(program.blocks.size());
    for (const Program::Loop& loop : program.loops) is_pipelined_[loop.after] = loop.is_pipelined;
    orders_.resize(program.blocks.size());
    definer_.resize(program.block_of_name.size());
  }

  ProgramProof run() {
    if (program_.blocks.empty()) return {};
    if (malformed_) return {{as_violation(*malformed_)}};
    prove_region(0);
    for (const ProgramViolation& violation : contents_.violations) add(violation);
    return std::exchange(proof_, {});
  }

  ProgramProof run_again(uint32_t r) {
    EDDY_CHECK(malformed_ || r < orders_.size()) << "there is no block " << r;
    if (malformed_ || !orders_[r]) return run();
    prove_list(r);
    return std::exchange(proof_, {});
  }

 private:
  bool is_full() const { return proof_.violations.size() >= max_violations_; }
  void add(ProgramViolation violation) {
    if (!is_full()) proof_.violations.push_back(std::move(violation));
  }
  void malformed(uint32_t region, uint32_t node, std::string text) {
    add({ProgramViolation::Kind::kMalformed, region, node, kNone, kNone, std::move(text)});
  }
  // Whose block it is; none: no loop's.
  uint32_t loop_of(uint32_t r) const {
    const Program::Step& end = program_.blocks[r].steps.back();
    return end.op == Op::kTest || end.op == Op::kAdvance ? end.operand : kNone;
  }
  // The list as it is, against what the region's nodes require.
  void prove_list(uint32_t r) {
    RegionOrder& order = *orders_[r];
    if (is_pipelined_[r]) {
      list_back_edge(program_.blocks[r], order);
    } else {
      list_once(program_.blocks[r], order);
    }
    order.prove(r, [this](ProgramViolation violation) {
      add(std::move(violation));
      return !is_full();
    });
  }
  static void list_once(const Program::Block& region, RegionOrder& order) {
    order.begin_list();
    for (const Program::Step& step : region.steps) {
      if (step.op == Op::kRecord) {
        order.list_record(step.stream, step.operand);
      } else if (step.op == Op::kWait) {
        order.list_wait(step.stream, step.operand);
      } else {
        order.list_node();
      }
    }
  }

  // Proves the region and those in it; returns what they touch.
  Touched prove_region(uint32_t r) {
    RegionOrder order(program_, program_.blocks[r].steps.size());
    for (const Program::Step& step : program_.blocks[r].steps) {
      if (is_full()) return {};
      if (is_sync(step.op)) continue;
      order.add_node(step, node_of(program_, step), touch(step));
    }
    require_frame(order);
    require_names(r, order);
    order.require_bytes(loop_of(r));
    order.require_streams();
    orders_[r].emplace(std::move(order));
    prove_list(r);
    return touch_region(r, orders_[r]->nodes());
  }

  // What the region touches, seen from around it. Its own events and those of each loop and branch
  // in it must be apart.
  Touched touch_region(uint32_t r, const std::vector<RegionOrder::Node>& nodes) {
    const Program::Block& region = program_.blocks[r];
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
      add({ProgramViolation::Kind::kSharedEvent,
           r,
           users[i - 1].second,
           users[i].second,
           kNone,
           {}});
    }
    for (const RegionOrder::Node& node : nodes) {
      all.add_inside(node.touched);
      all.streams.push_back(node.step.stream);
      add_all(all.streams, node.touched.streams);
      if (node.touched.end_event > 0) {
        all.use_events(node.touched.first_event, node.touched.end_event);
      }
    }
    std::erase_if(all.names, [&](uint32_t name) { return program_.block_of_name[name] == r; });
    all.make_sets();
    return all;
  }

  // --- what commands touch; their regions are proved on the way ---

  Touched touch(const Program::Step& step) {
    switch (step.op) {
      case Op::kLaunch:
      case Op::kRetain:
        return touch_launch(step);
      case Op::kPushRow:
        return touch_row(step);
      case Op::kLoop:
        return touch_loop(step);
      case Op::kCase:
        return touch_case(step);
      default:
        return {};
    }
  }

  Touched touch_launch(const Program::Step& step) const {
    const Program::Launch& launch = program_.launches[step.operand];
    Touched touched;
    touched.names = launch.reads;
    for (const Program::Alias& pass : launch.aliases) touched.names.push_back(pass.from);
    touched.add_memory(contents_.launches[step.operand]);
    return touched;
  }
  Touched touch_row(const Program::Step& step) const {
    Touched touched;
    touched.names.push_back(row_name(program_, program_.rows[step.operand]));
    touched.add_memory(contents_.rows[step.operand]);
    return touched;
  }
  Touched touch_loop(const Program::Step& step) {
    const Program::Loop& loop = program_.loops[step.operand];
    Touched touched;
    const Touched before = enter(step, loop.node, loop.before, touched);
    if (loop.is_pipelined) {
      enter_open(step, before, touched);
    } else {
      enter(step, loop.node, loop.after, touched);
    }
    add_all(touched.names, loop.reads);
    for (const Program::Alias& pass : loop.enter) touched.names.push_back(pass.from);
    // What is passed on may be a value from outside.
    for (const auto* list : {&loop.forward, &loop.advance, &loop.leave}) {
      for (const Program::Alias& pass : *list) touched.names.push_back(pass.from);
    }
    add_all(touched.names, loop.tested);
    touched.add_memory(contents_.loops[step.operand]);
    drop_inner_names(touched, std::array{loop.before, loop.after});
    return touched;
  }
  Touched touch_case(const Program::Step& step) {
    const Program::Case& branch = program_.cases[step.operand];
    Touched touched;
    for (const uint32_t inner : branch.blocks) enter(step, branch.node, inner, touched);
    add_all(touched.names, branch.reads);
    for (const auto& results : branch.results) {
      for (const Program::Alias& pass : results) touched.names.push_back(pass.from);
    }
    for (const Program::Alias& pass : branch.pass_through) touched.names.push_back(pass.from);
    touched.add_memory(contents_.cases[step.operand]);
    drop_inner_names(touched, branch.blocks);
    return touched;
  }
  void drop_inner_names(Touched& touched, std::span<const uint32_t> regions) const {
    std::erase_if(touched.names, [&](uint32_t name) {
      return std::ranges::find(regions, program_.block_of_name[name]) != regions.end();
    });
    touched.make_sets();
  }

  // Returns what the region touches, and adds it to what its control node does.
  Touched enter(const Program::Step& step, uint32_t node, uint32_t inner, Touched& touched) {
    check_start(step, node, inner);
    Touched inside = prove_region(inner);
    add_inside(step, inside, touched);
    return inside;
  }
  void enter_open(const Program::Step& step, const Touched& before, Touched& touched) {
    const Program::Loop& loop = program_.loops[step.operand];
    check_start(step, loop.node, loop.after);
    std::vector<Touched> inside;  // by step of `after`
    for (const Program::Step& each : program_.blocks[loop.after].steps) {
      inside.push_back(touch(each));
    }
    if (is_full()) return;
    PipelinedLoop pipelined{program_, contents_, step, before, names_of_region_[loop.before]};
    add_all(pipelined.own_names, names_of_region_[loop.after]);
    orders_[loop.after].emplace(back_edge_order(pipelined, inside));
    prove_list(loop.after);
    std::vector<RegionOrder::Node> nodes;
    for (size_t c = 0; c < inside.size(); ++c) {
      const Program::Step& each = program_.blocks[loop.after].steps[c];
      nodes.push_back({each, node_of(program_, each), std::move(inside[c])});
    }
    const Touched all = touch_region(loop.after, nodes);
    if (before.end_event > 0 && before.may_use_event_of(all)) {
      add({ProgramViolation::Kind::kSharedEvent, loop.after, kNone, loop.node, kNone, {}});
    }
    add_inside(step, all, touched);
  }
  void check_start(const Program::Step& step, uint32_t node, uint32_t inner) {
    const uint32_t start = program_.blocks[inner].steps[0].stream;
    if (start == step.stream) return;
    malformed(inner, node,
              "the region starts on stream " + std::to_string(start) +
                  ", its control node stands on " + std::to_string(step.stream));
  }
  static void add_inside(const Program::Step& step, const Touched& inside, Touched& touched) {
    touched.add_inside(inside);
    for (const uint32_t stream : inside.streams) {
      if (stream != step.stream) touched.streams.push_back(stream);
    }
    if (inside.end_event > 0) touched.use_events(inside.first_event, inside.end_event);
  }

  // --- what a region that is not pipelined requires ---

  // Everything stands between the region's entry and its exit.
  static void require_frame(RegionOrder& order) {
    EDDY_DCHECK(order.num_nodes() >= 2) << "a block has a begin and an end";
    const uint32_t exit = order.num_nodes() - 1;
    order.for_each_stream([&](uint32_t first, uint32_t last) {
      order.require(0, first, {});
      order.require(last, exit, {});
    });
  }

  // A reader of a name comes after the command that defines it.
  void require_names(uint32_t r, RegionOrder& order) {
    const auto is_own = [&](uint32_t name) { return program_.block_of_name[name] == r; };
    for (const uint32_t name : names_of_region_[r]) definer_[name] = kNone;
    for (uint32_t node = 0; node < order.num_nodes(); ++node) {
      for_each_defined(program_, order.nodes()[node].step, [&](uint32_t name) {
        if (is_own(name)) definer_[name] = node;
      });
    }
    const auto require_definer = [&](uint32_t name, uint32_t node) {
      const uint32_t definer = is_own(name) ? definer_[name] : kNone;
      if (definer == kNone) return;  // another region's, a parameter, an input or a constant
      if (definer == node) malformed(r, order.nodes()[node].id, "a node reads its own output");
      order.require(definer, node, {ProgramViolation::Kind::kUnordered, name});
    };
    for (uint32_t node = 0; node < order.num_nodes(); ++node) {
      for (const uint32_t name : order.nodes()[node].touched.names) {
        require_definer(name, node);
      }
    }
    for (const uint32_t name : r == 0 ? program_.results : std::vector<uint32_t>()) {
      require_definer(name, order.num_nodes() - 1);
    }
  }

  const Program& program_;
  const ReachingWrites& contents_;
  const size_t max_violations_;
  const std::optional<ProgramDefect> malformed_;
  std::vector<std::vector<uint32_t>> names_of_region_;
  std::vector<bool> is_pipelined_;  // by region: it is the `after` of a pipelined loop
  // By region: its nodes and what they require, which no record or wait changes.
  std::vector<std::optional<RegionOrder>> orders_;
  std::vector<uint32_t> definer_;  // by name: the node of its region that defines it
  ProgramProof proof_;
};

ProgramProver::ProgramProver(const Program& program, const ReachingWrites& contents,
                             size_t max_violations)
    : prover_(std::make_unique<Prover>(program, contents, max_violations)) {}
ProgramProver::~ProgramProver() = default;

ProgramProof ProgramProver::prove() { return prover_->run(); }
ProgramProof ProgramProver::prove_again(uint32_t region) { return prover_->run_again(region); }

ProgramProof prove_program(const Program& program, const ReachingWrites& contents,
                           size_t max_violations) {
  return ProgramProver(program, contents, max_violations).prove();
}

ProgramProof prove_program(const Program& program) {
  return prove_program(program, find_reaching_writes(program));
}

}  // namespace eddy
