#include "graph/io/model_summary.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_set>

#include "graph/base/check.h"
#include "graph/base/shortened.h"
#include "graph/io/check_operators.h"
#include "graph/io/decode_tensor.h"
#include "graph/io/file_bytes.h"
#include "graph/io/onnx_types.h"
#include "graph/io/parse_model.h"
#include "graph/io/sparse_tensor.h"
#include "graph/io/text.h"

namespace eddy {
namespace {

int64_t saturated_sum(int64_t a, int64_t b) {
  EDDY_DCHECK(a >= 0 && b >= 0) << a << " + " << b;
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

std::string type_name(const OnnxValueInfo& info) {
  if (!info.has_type) return "undeclared";
  const OnnxType& type = info.type;
  std::string text = "undeclared";
  if (type.other != nullptr) {
    text = type.other;
  } else if (type.is_tensor) {
    const Result<ElementType> element = to_element_type(type.element);
    text = element.is_ok() ? std::string(element_type_name(*element))
                           : "element type " + std::to_string(type.element);
  }
  for (auto layer = type.layers.rbegin(); layer != type.layers.rend(); ++layer) {
    text = (*layer == OnnxType::Layer::kSequence ? "sequence(" : "optional(") + text + ")";
  }
  return text;
}

ValueSummary summarize_value(const OnnxValueInfo& info) {
  ValueSummary value{std::string(info.name), type_name(info)};
  value.has_shape = info.has_type && info.type.has_shape;
  for (const OnnxDim& dim : info.type.dims) {
    DimSummary& summary = value.dims.emplace_back();
    if (value.dims.size() > kMaxDimsListed) {
      summary.name = "...";
      break;
    }
    if (dim.kind == OnnxDim::Kind::kValue) summary.size = std::max<int64_t>(dim.value, -1);
    if (dim.kind == OnnxDim::Kind::kParam) summary.name = dim.param;
  }
  return value;
}

class Summarizer {
 public:
  Summarizer(const OnnxModel& model, const FunctionTable& functions, const OpTable& ops,
             const ImportLimits& limits)
      : model_(model), functions_(functions), ops_(ops), limits_(limits) {}

  ModelSummary run() {
    summary_.ir_version = model_.ir_version;
    for (const OnnxOpset& opset : model_.opsets) {
      summary_.opsets.emplace_back(canonical_domain(opset.domain), opset.version);
    }
    summary_.num_functions = std::ssize(model_.functions);
    add_ports();
    const OpsetTable of_model(model_.opsets);
    summary_.num_nodes = add_graph(model_.graph, of_model, 0);
    for (size_t i = 0; i < called_.size(); ++i) {  // grows while it is walked
      const OnnxFunction& function = *called_[i];
      const OpsetTable own(function.opsets);
      function_name_ = shortened(function.name);
      summary_.num_nodes += add_nodes(function.nodes, function.opsets.empty() ? of_model : own, 0);
    }
    for (const OnnxTraining& training : model_.training) {
      TrainingSummary& summary = summary_.training.emplace_back();
      summary.num_nodes = std::ssize(training.algorithm.nodes);
      summary.num_initialization_nodes = std::ssize(training.initialization.nodes);
      for (const OnnxEntry& binding : training.update_binding) {
        summary.updates.emplace_back(binding.key, binding.value);
      }
    }
    for (auto& [key, operator_summary] : operators_) {
      summary_.operators.push_back(std::move(operator_summary));
    }
    return std::move(summary_);
  }

 private:
  void add_ports() {
    std::unordered_set<std::string_view> defaults;
    for (const OnnxTensor& tensor : model_.graph.initializers) defaults.insert(tensor.name);
    for (const OnnxSparseTensor& sparse : model_.graph.sparse_initializers) {
      defaults.insert(sparse.values.name);
    }
    for (const OnnxValueInfo& input : model_.graph.inputs) {
      if (defaults.contains(input.name)) {
        ++summary_.num_default_inputs;
      } else {
        summary_.inputs.push_back(summarize_value(input));
      }
    }
    for (const OnnxValueInfo& output : model_.graph.outputs) {
      summary_.outputs.push_back(summarize_value(output));
    }
  }

  // `depth`: the loops and branches around it. Returns the number of nodes, nested ones included.
  int64_t add_graph(const OnnxGraph& graph, const OpsetTable& opsets, int depth) {
    for (const OnnxTensor& tensor : graph.initializers) add_tensor(tensor, summary_.initializers);
    for (const OnnxSparseTensor& sparse : graph.sparse_initializers) {
      add_sparse(sparse, summary_.initializers);
    }
    return add_nodes(graph.nodes, opsets, depth);
  }

  int64_t add_nodes(const std::vector<OnnxNode>& nodes, const OpsetTable& opsets, int depth) {
    int64_t num_nodes = 0;
    for (const OnnxNode& node : nodes) num_nodes += add_node(node, opsets, depth);
    return num_nodes;
  }

  int64_t add_node(const OnnxNode& node, const OpsetTable& opsets, int depth) {
    const OpKey key = key_of(node, opsets);
    const OperatorSummary::Meaning meaning = add_operator(node, key);
    const bool is_constant = key.domain.empty() && key.name == "Constant";
    const bool is_control = meaning == OperatorSummary::Meaning::kImporter && !is_constant;
    const size_t at = summary_.control.size();
    if (is_control) {
      const bool is_loop = key.name != "If" && key.name != "CaseOf";
      summary_.control.push_back(
          {node_label(node), std::string(key.name), function_name_, is_loop, depth + 1});
    }
    int64_t num_nodes = 0;
    for (const OnnxAttribute& attribute : node.attributes) {
      for (const OnnxTensor& tensor : attribute.tensors) {
        if (is_constant) add_tensor(tensor, summary_.constants);
      }
      for (const OnnxSparseTensor& sparse : attribute.sparse_tensors) {
        if (is_constant) add_sparse(sparse, summary_.constants);
      }
      for (const OnnxGraph& graph : attribute.graphs) {
        num_nodes += add_graph(graph, opsets, depth + (is_control ? 1 : 0));
      }
    }
    if (is_control) summary_.control[at].num_nodes = num_nodes;
    return num_nodes + 1;
  }

  OperatorSummary::Meaning add_operator(const OnnxNode& node, const OpKey& key) {
    using Meaning = OperatorSummary::Meaning;
    const OnnxFunction* const function = functions_.find_or_null(node);
    if (function != nullptr && seen_.insert(function).second) called_.push_back(function);
    OperatorSummary& summary = operators_[{key.domain, key.name, key.version, function != nullptr}];
    if (summary.num_nodes++ > 0) return summary.meaning;
    summary.domain = key.domain;
    summary.name = key.name;
    summary.version = key.version;
    summary.meaning = function != nullptr                  ? Meaning::kFunction
                      : is_import_operator(key)            ? Meaning::kImporter
                      : is_known_operator(node, key, ops_) ? Meaning::kOperator
                      : ops_.knows(key.domain, key.name)   ? Meaning::kKnownLater
                                                           : Meaning::kUnknown;
    return summary.meaning;
  }

  void add_tensor(const OnnxTensor& tensor, TensorsSummary& to) const {
    add_layout(layout_of(tensor, limits_), tensor.is_external, tensor.string_data, to);
  }

  // As the dense tensor that it becomes.
  void add_sparse(const OnnxSparseTensor& sparse, TensorsSummary& to) const {
    const bool is_external = sparse.values.is_external || sparse.indices.is_external;
    add_layout(layout_of(sparse, limits_), is_external, sparse.values.string_data, to);
  }

  static void add_layout(const Result<TensorLayout>& layout, bool is_external,
                         std::span<const std::string_view> strings, TensorsSummary& to) {
    ++to.num_tensors;
    if (is_external) ++to.num_external;
    if (!layout.is_ok()) {
      ++to.num_refused;
      return;
    }
    to.num_elements = saturated_sum(to.num_elements, layout->count);
    to.num_bytes = saturated_sum(to.num_bytes, static_cast<int64_t>(layout->file_bytes));
    for (const std::string_view text : strings) {
      to.num_bytes = saturated_sum(to.num_bytes, std::ssize(text));
    }
  }

  const OnnxModel& model_;
  const FunctionTable& functions_;
  const OpTable& ops_;
  const ImportLimits& limits_;
  ModelSummary summary_;
  std::string function_name_;  // whose nodes are walked
  // By domain, name and version; whether it is a function.
  std::map<std::tuple<std::string_view, std::string_view, int, bool>, OperatorSummary> operators_;
  std::set<const OnnxFunction*> seen_;
  std::vector<const OnnxFunction*> called_;
};

Result<ModelSummary> summarize(std::span<const std::byte> bytes, const OpTable& ops,
                               const ImportLimits& limits) {
  EDDY_ASSIGN_OR_RETURN(const OnnxModel model, parse_model(bytes, limits));
  FunctionTable functions;
  EDDY_RETURN_IF_ERROR(functions.add_all(model.functions));
  ModelSummary summary = Summarizer(model, functions, ops, limits).run();
  summary.file_bytes = std::ssize(bytes);
  return summary;
}

}  // namespace

Result<ModelSummary> summarize_model(const std::string& path, const OpTable& ops,
                                     const ImportLimits& limits) {
  // Errors of opening name the file themselves.
  EDDY_ASSIGN_OR_RETURN(const auto bytes, read_file(path, limits.max_file_bytes));
  Result<ModelSummary> summary = summarize(bytes->bytes(), ops, limits);
  if (!summary.is_ok()) return std::move(summary.take_status().prepend_message(quoted_path(path)));
  return summary;
}

}  // namespace eddy
