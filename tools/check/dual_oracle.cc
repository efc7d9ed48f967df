#include "tools/check/dual_oracle.h"

#include <cmath>
#include <functional>
#include <string_view>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"

namespace eddy::check {
namespace {

// A scalar, a row of scalars or a sequence of them; integers and truths are numbers without slope.
using DualValue = std::vector<Dual>;

Dual add(Dual p, Dual q) { return {p.x + q.x, p.a + q.a, p.b + q.b, p.ab + q.ab}; }
Dual scale(Dual p, double by) { return {p.x * by, p.a * by, p.b * by, p.ab * by}; }
Dual multiply(Dual p, Dual q) {
  return {p.x * q.x, p.x * q.a + p.a * q.x, p.x * q.b + p.b * q.x,
          p.x * q.ab + p.a * q.b + p.b * q.a + p.ab * q.x};
}
// f, f' and f'' at p.x.
Dual chain(Dual p, double f, double slope, double bend) {
  return {f, slope * p.a, slope * p.b, slope * p.ab + bend * p.a * p.b};
}
Dual tangent(Dual p) {
  const double t = std::tanh(p.x), slope = 1 - t * t;
  return chain(p, t, slope, -2 * t * slope);
}

class Interpreter {
 public:
  Interpreter(const Graph& graph, uint64_t max_iterations)
      : graph_(graph), max_iterations_(max_iterations), values_(graph.num_values()) {
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      if (graph.node(NodeId(n)).kind == NodeKind::kWhile) ++num_with_path_[graph.path(NodeId(n))];
    }
  }

  Result<DualRun> run(const DualInputs& inputs) {
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const ValueInfo& info = graph_.value(ValueId(v));
      if (info.origin == ValueOrigin::kConstant) {
        values_[v] = read(graph_.constant(info.constant).view());
      }
    }
    for (const ValueId input : graph_.inputs()) {
      const auto given = inputs.find(graph_.value(input).name);
      if (given == inputs.end()) return not_found("no input " + graph_.value(input).name);
      values_[input.index()] = given->second;
    }
    EDDY_RETURN_IF_ERROR(region(Graph::kRoot));
    made_.loss = one(graph_.outputs()[0]);
    return std::move(made_);
  }

 private:
  static DualValue read(const TensorView& view) {
    DualValue numbers(static_cast<size_t>(view.count()));
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i].x = view.element == ElementType::kDouble ? view.as<double>()[i]
                     : view.element == ElementType::kBool
                         ? view.as<bool>()[i]
                         : static_cast<double>(view.as<int64_t>()[i]);
    }
    return numbers;
  }
  DualValue& at(ValueId id) { return values_[id.index()]; }
  Dual one(ValueId id) {
    EDDY_CHECK(at(id).size() == 1) << "'" << graph_.value(id).name << "' is no scalar";
    return at(id)[0];
  }
  int64_t whole(ValueId id) { return static_cast<int64_t>(one(id).x); }
  std::vector<DualValue> copies(std::span<const ValueId> ids) {
    std::vector<DualValue> found;
    for (const ValueId id : ids) found.push_back(at(id));
    return found;
  }
  void assign(std::span<const ValueId> to, const std::vector<DualValue>& from) {
    for (size_t i = 0; i < to.size(); ++i) at(to[i]) = from[i];
  }

  Status region(RegionId id) {
    for (const NodeId n : graph_.region(id).nodes) {
      const Node& node = graph_.node(n);
      Status status = node.kind == NodeKind::kExec    ? exec(node)
                      : node.kind == NodeKind::kWhile ? loop(n)
                                                      : branch(CaseView(graph_, node));
      if (!status.is_ok()) return status;
    }
    return Status::ok();
  }

  // Of two scalars, or of one.
  bool arithmetic(const Node& node) {
    const std::string_view op = node.op->name;
    const Dual p = one(node.inputs[0]);
    const Dual q = node.inputs.size() > 1 ? one(node.inputs[1]) : Dual{};
    Dual y;
    if (op == "Add") {
      y = add(p, q);
    } else if (op == "Sub") {
      y = add(p, scale(q, -1));
    } else if (op == "Mul") {
      y = multiply(p, q);
    } else if (op == "Sin") {
      y = chain(p, std::sin(p.x), std::cos(p.x), -std::sin(p.x));
    } else if (op == "Cos") {
      y = chain(p, std::cos(p.x), -std::sin(p.x), -std::cos(p.x));
    } else if (op == "Tanh") {
      y = tangent(p);
    } else if (op == "Abs") {
      y = scale(p, p.x < 0 ? -1 : 1);
    } else if (op == "Floor" || op == "Cast") {  // to int64
      y.x = std::floor(p.x);
    } else if (op == "Mod") {
      y.x = std::fmod(p.x, q.x);
    } else if (op == "Less") {
      y.x = p.x < q.x;
    } else {
      return false;
    }
    at(node.outputs[0]) = {y};
    return true;
  }

  // Place `input` of the node, from the front; `count` places there are. Omitted: the last one.
  std::ptrdiff_t place(const Node& node, size_t input, size_t length, size_t count) {
    if (input >= node.inputs.size() || node.inputs[input].is_none()) {
      return static_cast<std::ptrdiff_t>(count) - 1;
    }
    const int64_t given = whole(node.inputs[input]);
    return given < 0 ? given + static_cast<int64_t>(length) : given;
  }

  Status exec(const Node& node) {
    const std::string_view op = node.op->name;
    const auto first = [&]() -> const DualValue& { return at(node.inputs[0]); };
    DualValue made;
    if (op == "SequenceConstruct") {
      for (const ValueId input : node.inputs) made.push_back(one(input));
    } else if (op == "ConcatFromSequence") {
      made = first();
    } else if (op == "ReduceSum") {
      made.resize(1);
      for (const Dual& x : first()) made[0] = add(made[0], x);
    } else if (op == "SequenceInsert") {
      made = first();
      const Dual element = one(node.inputs[1]);
      made.insert(made.begin() + place(node, 2, made.size(), made.size() + 1), element);
    } else if (op == "SequenceErase") {
      made = first();
      made.erase(made.begin() + place(node, 1, made.size(), made.size()));
    } else if (op == "SequenceAt" || op == "Gather") {
      const size_t length = first().size();
      made = {first()[static_cast<size_t>(place(node, 1, length, length))]};
    } else if (arithmetic(node)) {
      return Status::ok();
    } else {
      return unsupported("dual numbers don't know operator " + std::string(op));
    }
    at(node.outputs[0]) = std::move(made);
    return Status::ok();
  }

  Status loop(NodeId id) {
    const LoopView loop(graph_, id);
    const int64_t limit = loop.trip_limit().is_none() ? INT64_MAX : whole(loop.trip_limit());
    std::vector<DualValue> rows(loop.rows().size());
    assign(loop.carried(), copies(loop.initial()));
    int64_t trip = 0;
    for (;; ++trip) {
      at(loop.iteration()) = {{static_cast<double>(trip)}};
      EDDY_RETURN_IF_ERROR(region(loop.before_id()));
      if (trip >= limit || one(loop.predicate()).x == 0) break;
      if (++made_.num_iterations > max_iterations_) return resource_exhausted("loops run on");
      assign(loop.received(), copies(loop.forwarded()));
      at(loop.after_iteration()) = {{static_cast<double>(trip)}};
      EDDY_RETURN_IF_ERROR(region(loop.after_id()));
      for (size_t s = 0; s < rows.size(); ++s) rows[s].push_back(one(loop.rows()[s]));
      assign(loop.carried(), copies(loop.next()));
    }
    made_.num_loops_without_trip += trip == 0;
    const std::string path = graph_.path(id);
    made_.trips[path] = num_with_path_.at(path) == 1 ? trip : -1;
    assign(loop.outputs(), copies(loop.forwarded()));
    assign(loop.stacked(), rows);
    return Status::ok();
  }

  Status branch(const CaseView& choice) {
    int64_t chosen = whole(choice.selector());
    const bool is_inside = chosen >= 0 && chosen < static_cast<int64_t>(choice.num_branches());
    if (!is_inside) chosen = choice.node().default_region;
    if (chosen < 0) {
      if (!choice.has_pass_through()) return run_failed("no such branch");
      assign(choice.outputs(), copies(choice.pass_through()));
      return Status::ok();
    }
    EDDY_RETURN_IF_ERROR(region(choice.node().regions[static_cast<size_t>(chosen)]));
    assign(choice.outputs(), copies(choice.results(static_cast<size_t>(chosen))));
    return Status::ok();
  }

  const Graph& graph_;
  const uint64_t max_iterations_;
  std::vector<DualValue> values_;
  std::map<std::string, int> num_with_path_;  // of loops: one in `before`, one in `after`
  DualRun made_;
};

}  // namespace

Result<DualRun> interpret_dual(const Graph& graph, const DualInputs& inputs,
                               uint64_t max_iterations) {
  return Interpreter(graph, max_iterations).run(inputs);
}

}  // namespace eddy::check
