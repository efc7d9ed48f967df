#include "tools/check/oracle.h"

#include <cstring>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "tools/check/oracle_values.h"

namespace eddy::check {
namespace {

class Interpreter {
 public:
  Interpreter(const Graph& graph, const Library& library, const OracleOptions& options)
      : graph_(graph),
        options_(options),
        kernels_(graph, library, options.kernels_or_null),
        values_(graph.num_values()) {}

  Result<OracleResult> run(const NamedTensors& inputs) {
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const ValueInfo& info = graph_.value(ValueId(v));
      if (info.origin != ValueOrigin::kConstant) continue;
      values_[v] = Tensor::borrow(graph_.constant(info.constant).view());
    }
    for (ValueId input : graph_.inputs()) {
      const std::string& name = graph_.value(input).name;
      const auto given = std::find_if(inputs.begin(), inputs.end(),
                                      [&](const auto& named) { return named.first == name; });
      if (given == inputs.end()) return invalid_argument("input '" + name + "' is not given");
      at(input) = given->second;
    }
    EDDY_RETURN_IF_ERROR(run_region(Graph::kRoot));
    EDDY_CHECK(iterations_.empty()) << iterations_.size() << " loops were not left";
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      result_.outputs.emplace_back(graph_.output_names()[i], at(graph_.outputs()[i]));
    }
    return std::move(result_);
  }

 private:
  Tensor& at(ValueId value) {
    EDDY_DCHECK(value.index() < values_.size()) << "value " << value.index();
    return values_[value.index()];
  }

  std::vector<Tensor> read(std::span<const ValueId> ids) {
    std::vector<Tensor> values;
    values.reserve(ids.size());
    for (ValueId id : ids) values.push_back(id.is_none() ? Tensor() : at(id));
    return values;
  }

  // Parallel assignment: all of `values` were read before the first is written.
  void assign(std::span<const ValueId> ids, std::span<Tensor> values) {
    EDDY_CHECK(values.size() >= ids.size()) << values.size() << " tensors for " << ids.size();
    for (size_t i = 0; i < ids.size(); ++i) at(ids[i]) = std::move(values[i]);
  }
  void assign(std::span<const ValueId> ids, std::vector<Tensor>&& values) {
    assign(ids, std::span(values));
  }

  Status run_region(RegionId region) {
    if (options_.on_region) options_.on_region(region);
    for (NodeId id : graph_.region(region).nodes) {
      const Node& node = graph_.node(id);
      Status status = node.kind == NodeKind::kExec    ? run_exec(id, node)
                      : node.kind == NodeKind::kWhile ? run_while(id, node)
                                                      : run_case(id, node);
      if (!status.is_ok()) {
        // The innermost node that failed has named its path.
        if (status.path().empty()) status.prepend_path(execution_path(graph_, id, iterations_));
        return status;
      }
    }
    return Status::ok();
  }

  Status run_exec(NodeId id, const Node& node) {
    if (++num_executions_ > options_.max_executions) {
      return resource_exhausted("the oracle stops after " +
                                std::to_string(options_.max_executions) + " executions");
    }
    read_.clear();
    for (ValueId input : node.inputs) read_.push_back(input.is_none() ? Tensor() : at(input));
    EDDY_ASSIGN_OR_RETURN(std::vector<Tensor> made, evaluate(kernels_, id, node, read_));
    if (options_.on_made) options_.on_made(id, made);
    if (options_.record_executions) {
      digests_.clear();
      for (const Tensor& value : made) digests_.push_back(digest(value));
      result_.executions.push_back(
          {id, Iterations(std::span<const int64_t>(iterations_)), combine_digests(digests_)});
    }
    assign(node.outputs, std::move(made));
    return Status::ok();
  }

  static Result<int64_t> one_int(const Tensor& value, const char* what) {
    if (value.is_tensor() && *value.dims().count() == 1) {
      const void* data = value.view().data;
      switch (value.element_type()) {
        case ElementType::kBool:
          return static_cast<int64_t>(*static_cast<const uint8_t*>(data) != 0);
        case ElementType::kInt32:
          return static_cast<int64_t>(*static_cast<const int32_t*>(data));
        case ElementType::kInt64:
          return *static_cast<const int64_t*>(data);
        default:
          break;
      }
    }
    return run_failed(std::string(what) + " is not one bool, int32 or int64");
  }

  // The rows that one loop has stacked so far.
  struct Loop {
    LoopView view;
    std::vector<std::vector<Tensor>> rows;
  };

  Status run_while(NodeId id, const Node& node) {
    Loop loop{{graph_, node}, {}};
    loop.rows.resize(loop.view.rows().size());
    int64_t limit = INT64_MAX;
    if (!loop.view.trip_limit().is_none()) {
      EDDY_ASSIGN_OR_RETURN(limit, one_int(at(loop.view.trip_limit()), "the trip limit"));
    }
    assign(loop.view.carried(), read(loop.view.initial()));
    iterations_.push_back(0);
    Status status = run_rounds(loop, limit);
    const int64_t trips = iterations_.back();
    if (!status.is_ok() && status.path().empty()) {
      status.prepend_path(
          execution_path(graph_, id, std::span(iterations_).first(iterations_.size() - 1)));
    }
    iterations_.pop_back();
    EDDY_RETURN_IF_ERROR(std::move(status));
    result_.trips.push_back({id, Iterations(std::span<const int64_t>(iterations_)), trips});
    return finish_while(node, loop);
  }

  Status run_rounds(Loop& loop, int64_t limit) {
    const LoopView& view = loop.view;
    for (;; ++iterations_.back()) {
      const Tensor iteration = Tensor::scalar(iterations_.back());
      at(view.iteration()) = iteration;
      EDDY_RETURN_IF_ERROR(run_region(view.before_id()));
      if (iterations_.back() >= limit) return Status::ok();
      EDDY_ASSIGN_OR_RETURN(const int64_t go, one_int(at(view.predicate()), "the predicate"));
      if (go == 0) return Status::ok();
      assign(view.received(), read(view.forwarded()));
      at(view.after_iteration()) = iteration;
      EDDY_RETURN_IF_ERROR(run_region(view.after_id()));
      std::vector<Tensor> rows = read(view.rows());
      assign(view.carried(), read(view.next()));
      EDDY_CHECK(rows.size() == loop.rows.size()) << rows.size() << " rows of a round";
      for (size_t s = 0; s < rows.size(); ++s) loop.rows[s].push_back(std::move(rows[s]));
    }
  }

  Status finish_while(const Node& node, const Loop& loop) {
    EDDY_CHECK(node.outputs.size() == loop.view.num_forwarded() + loop.rows.size())
        << node.name << " has " << node.outputs.size() << " outputs";
    std::vector<Tensor> outputs = read(loop.view.forwarded());
    for (size_t s = 0; s < loop.rows.size(); ++s) {
      const ValueId row = loop.view.rows()[s];
      EDDY_ASSIGN_OR_RETURN(Tensor stacked, stack(loop.rows[s], graph_.value(row).type.tensor));
      outputs.push_back(std::move(stacked));
    }
    assign(node.outputs, std::move(outputs));
    return Status::ok();
  }

  Status run_case(NodeId, const Node& node) {
    EDDY_ASSIGN_OR_RETURN(int64_t selected, one_int(at(node.inputs[0]), "the selector"));
    const bool is_in_range = selected >= 0 && selected < static_cast<int64_t>(node.regions.size());
    if (!is_in_range && node.default_region < 0) {
      if (node.inputs.size() == 1) {
        return run_failed("the selector " + std::to_string(selected) + " is out of range");
      }
      assign(node.outputs, read(std::span(node.inputs).subspan(1)));
      return Status::ok();
    }
    if (!is_in_range) selected = node.default_region;
    const RegionId region = node.regions[static_cast<size_t>(selected)];
    EDDY_RETURN_IF_ERROR(run_region(region));
    assign(node.outputs, read(graph_.region(region).results));
    return Status::ok();
  }

  const Graph& graph_;
  const OracleOptions options_;
  OracleKernels kernels_;
  std::vector<Tensor> values_;  // by ValueId
  std::vector<int64_t> iterations_;
  std::vector<Tensor> read_;  // of one execution; kept for their memory
  std::vector<uint64_t> digests_;
  uint64_t num_executions_ = 0;
  OracleResult result_;
};

}  // namespace

Result<OracleResult> interpret(const Graph& graph, const Library& library,
                               const NamedTensors& inputs, const OracleOptions& options) {
  return Interpreter(graph, library, options).run(inputs);
}

std::string execution_path(const Graph& graph, NodeId node, std::span<const int64_t> iterations) {
  std::string path = graph.node(node).name;
  size_t depth = iterations.size();
  for (RegionId at = graph.node(node).region; !graph.region(at).owner.is_none();) {
    const Node& owner = graph.node(graph.region(at).owner);
    const std::string inside =
        owner.kind == NodeKind::kWhile
            ? "[" + std::to_string(depth > 0 ? iterations[--depth] : 0) + "]/"
            : "/" + graph.region(at).name + "/";
    path.insert(0, owner.name + inside);
    at = owner.region;
  }
  return path;
}

namespace {

std::string type_text(const Tensor& value) {
  if (value.kind() == ValueKind::kNone) return "nothing";
  if (!value.is_tensor()) {
    return "a sequence of " + std::to_string(value.elements().size()) + " elements";
  }
  return std::string(element_type_name(value.element_type())) + to_string(value.dims());
}

std::string hex(const unsigned char* bytes, size_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = size; i > 0; --i) {  // as a number is written
    text += kDigits[bytes[i - 1] >> 4];
    text += kDigits[bytes[i - 1] & 15];
  }
  return text;
}

// By their text: a string's bytes say where it lies.
std::string difference_of_text(const TensorView& expected, const TensorView& found) {
  const auto* const a = expected.as<std::string>();
  const auto* const b = found.as<std::string>();
  for (int64_t i = 0; i < expected.count(); ++i) {
    if (a[i] == b[i]) continue;
    return "has '" + b[i] + "' at " + std::to_string(i) + " and should have '" + a[i] + "'";
  }
  return {};
}

std::string difference(const Tensor& expected, const Tensor& found) {
  const bool is_same_type =
      expected.kind() == found.kind() &&
      (expected.kind() == ValueKind::kNone || type_text(expected) == type_text(found));
  if (!is_same_type) return "is " + type_text(found) + " and should be " + type_text(expected);
  for (size_t i = 0; i < expected.elements().size(); ++i) {
    const std::string inside = difference(expected.elements()[i], found.elements()[i]);
    if (!inside.empty()) return "element " + std::to_string(i) + " " + inside;
  }
  if (!expected.is_tensor()) return {};
  if (expected.element_type() == ElementType::kString) {
    return difference_of_text(expected.view(), found.view());
  }
  const auto* a = expected.view().as<unsigned char>();
  const auto* b = found.view().as<unsigned char>();
  const size_t size = expected.view().size_bytes();
  if (size == 0 || std::memcmp(a, b, size) == 0) return {};
  const size_t step = element_size_bytes(expected.element_type());
  EDDY_CHECK(step > 0 && size % step == 0) << size << " bytes of elements of " << step;
  size_t i = 0;
  while (std::memcmp(a + i, b + i, step) == 0) i += step;
  return "(" + type_text(expected) + ") has " + hex(b + i, step) + " at " +
         std::to_string(i / step) + " and should have " + hex(a + i, step);
}

}  // namespace

std::string difference(const NamedTensors& expected, const NamedTensors& found) {
  if (expected.size() != found.size()) {
    return std::to_string(found.size()) + " outputs instead of " + std::to_string(expected.size());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string text = difference(expected[i].second, found[i].second);
    if (!text.empty()) return "output '" + expected[i].first + "' " + text;
  }
  return {};
}

}  // namespace eddy::check
