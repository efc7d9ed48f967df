#include "tests/ops/gradient/graph_runner.h"

#include <cstring>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

TestTensor copy_of(const Constant& constant) {
  TestTensor tensor(constant.element, constant.dims);
  const TensorView to = tensor.view();
  if (to.size_bytes() > 0) std::memcpy(to.data, constant.data, to.size_bytes());
  return tensor;
}

int64_t one_int(const TestValue& value) {
  return static_cast<int64_t>(number_at(value.tensor().view(), 0));
}

// Rows on top of each other.
TestTensor stack(const std::vector<TestTensor>& rows, const TensorType& type) {
  Dims dims{static_cast<int64_t>(rows.size())};
  const Dims& row = rows.empty() ? type.dims : rows[0].dims();
  for (const int64_t dim : row) dims.push_back(std::max<int64_t>(dim, 0));
  TestTensor stacked(type.element, dims);
  auto* to = static_cast<std::byte*>(stacked.view().data);
  for (const TestTensor& tensor : rows) {
    EDDY_CHECK(tensor.dims() == row) << "rows differ in shape";
    const TensorView from = tensor.view();
    if (from.size_bytes() > 0) std::memcpy(to, from.data, from.size_bytes());
    to += from.size_bytes();
  }
  return stacked;
}

class Runner {
 public:
  Runner(const Graph& graph, int64_t max_trips)
      : graph_(graph), max_trips_(max_trips), values_(graph.num_values()) {}

  Result<GraphRun> run(const NamedValues& inputs) {
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const ValueInfo& info = graph_.value(ValueId(v));
      if (info.origin == ValueOrigin::kConstant) {
        values_[v] = copy_of(graph_.constant(info.constant));
      }
    }
    for (const ValueId input : graph_.inputs()) {
      const auto given = inputs.find(graph_.value(input).name);
      if (given == inputs.end()) return not_found("no input " + graph_.value(input).name);
      values_[input.index()] = given->second;
    }
    EDDY_RETURN_IF_ERROR(region(Graph::kRoot));
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      made_.outputs[graph_.output_names()[i]] = values_[graph_.outputs()[i].index()];
    }
    return std::move(made_);
  }

 private:
  std::vector<TestValue> read(std::span<const ValueId> ids) const {
    std::vector<TestValue> found;
    for (const ValueId id : ids) {
      found.push_back(id.is_none() ? TestValue::omitted() : values_[id.index()]);
    }
    return found;
  }
  void assign(std::span<const ValueId> ids, const std::vector<TestValue>& found) {
    for (size_t i = 0; i < ids.size(); ++i) values_[ids[i].index()] = found[i];
  }

  Status region(RegionId id) {
    for (const NodeId node : graph_.region(id).nodes) {
      const NodeKind kind = graph_.node(node).kind;
      Status status = kind == NodeKind::kExec    ? exec(graph_.node(node))
                      : kind == NodeKind::kWhile ? loop(LoopView(graph_, node))
                                                 : branch(CaseView(graph_, node));
      if (!status.is_ok()) {
        return status.path().empty() ? status.prepend_path(graph_.path(node)) : status;
      }
    }
    return Status::ok();
  }

  Status exec(const Node& node) {
    OpCall call;
    call.op = node.op->name;
    call.domain = node.op->domain;
    call.opset = node.opset_version;
    call.attributes = node.attributes;
    call.num_outputs = node.outputs.size();
    call.inputs = read(node.inputs);
    EDDY_ASSIGN_OR_RETURN(auto outputs, run_op(call, KernelSet::kReference));
    for (size_t o = 0; o < outputs.size(); ++o) {
      const ValueType& said = graph_.value(node.outputs[o]).type;
      outputs[o].is_optional = said.is_optional();  // a full one is its value
      if (outputs[o].kind != TestValue::Kind::kNone && !is_compatible(outputs[o].type(), said)) {
        return internal_error("output " + std::to_string(o) + " is " +
                              to_string(outputs[o].type()) + ", the graph says " + to_string(said));
      }
    }
    assign(node.outputs, outputs);
    return Status::ok();
  }

  Status loop(const LoopView& loop) {
    const int64_t limit =
        loop.trip_limit().is_none() ? INT64_MAX : one_int(values_[loop.trip_limit().index()]);
    std::vector<std::vector<TestTensor>> rows(loop.rows().size());
    assign(loop.carried(), read(loop.initial()));
    int64_t trip = 0;
    for (;; ++trip) {
      if (trip > max_trips_) return resource_exhausted("a loop runs on");
      const TestTensor iteration = TestTensor::scalar(trip);
      values_[loop.iteration().index()] = iteration;
      EDDY_RETURN_IF_ERROR(region(loop.before_id()));
      if (trip >= limit || one_int(values_[loop.predicate().index()]) == 0) break;
      assign(loop.received(), read(loop.forwarded()));
      values_[loop.after_iteration().index()] = iteration;
      EDDY_RETURN_IF_ERROR(region(loop.after_id()));
      for (size_t s = 0; s < rows.size(); ++s) {
        rows[s].push_back(values_[loop.rows()[s].index()].tensor());
      }
      assign(loop.carried(), read(loop.next()));
    }
    made_.decisions.push_back(trip);
    assign(loop.outputs(), read(loop.forwarded()));
    for (size_t s = 0; s < rows.size(); ++s) {
      const TensorType& type = graph_.value(loop.rows()[s]).type.tensor;
      values_[loop.stacked()[s].index()] = stack(rows[s], type);
    }
    return Status::ok();
  }

  Status branch(const CaseView& choice) {
    int64_t chosen = one_int(values_[choice.selector().index()]);
    made_.decisions.push_back(chosen);
    if (chosen < 0 || chosen >= static_cast<int64_t>(choice.num_branches())) {
      chosen = choice.node().default_region;
      if (chosen < 0 && !choice.has_pass_through()) return run_failed("no such branch");
    }
    if (chosen < 0) {
      assign(choice.outputs(), read(choice.pass_through()));
      return Status::ok();
    }
    EDDY_RETURN_IF_ERROR(region(choice.node().regions[static_cast<size_t>(chosen)]));
    assign(choice.outputs(), read(choice.results(static_cast<size_t>(chosen))));
    return Status::ok();
  }

  const Graph& graph_;
  const int64_t max_trips_;
  std::vector<TestValue> values_;
  GraphRun made_;
};

}  // namespace

Result<GraphRun> run_graph(const Graph& graph, const NamedValues& inputs, int64_t max_trips) {
  return Runner(graph, max_trips).run(inputs);
}

}  // namespace eddy::testing
