#include "graph/io/check_operators.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/io/import_operators.h"

namespace eddy {
namespace {

constexpr size_t kMaxShown = 5;

// ONNX's own domain of classical models: a version after the newest may mean something else by the
// name of an operator. Models import it without using it, so it is looked at where a node does.
constexpr std::string_view kMlDomain = "ai.onnx.ml";
constexpr int kNewestMlVersion = 5;

bool is_too_new(const OpKey& key, const OpDef* def) {
  return key.domain == kMlDomain && key.version > kNewestMlVersion && def != nullptr &&
         def->since_version <= kNewestMlVersion;
}

// Operators that run a decoder, given as an attribute, until a text is complete.
bool holds_decoding_loop(const OpKey& key) {
  static constexpr std::string_view kNames[] = {"BeamSearch", "GreedySearch", "Sampling",
                                                "WhisperBeamSearch"};
  return key.domain == "com.microsoft" && std::ranges::find(kNames, key.name) != std::end(kNames);
}

class OperatorCheck {
 public:
  OperatorCheck(const FunctionTable& functions, const OpTable& ops)
      : functions_(functions), ops_(ops) {}

  Status run(const OnnxModel& model) {
    const OpsetTable of_model(model.opsets);
    check_nodes(model.graph.nodes, of_model, "");
    for (size_t i = 0; i < called_.size(); ++i) {  // grows while it is walked
      const OnnxFunction& function = *called_[i];
      const OpsetTable own(function.opsets);
      check_nodes(function.nodes, function.opsets.empty() ? of_model : own,
                  "function " + std::string(function.name));
    }
    return verdict();
  }

 private:
  void check_nodes(const std::vector<OnnxNode>& nodes, const OpsetTable& opsets,
                   const std::string& path) {
    for (const OnnxNode& node : nodes) check_node(node, opsets, path);
  }

  void check_node(const OnnxNode& node, const OpsetTable& opsets, const std::string& path) {
    const OnnxFunction* function = functions_.find_or_null(node);
    if (function != nullptr) {
      if (seen_.insert(function).second) called_.push_back(function);
    } else {
      const OpKey key = key_of(node, opsets);
      if (!is_known_operator(node, key, ops_)) {
        report(node, key, !key.domain.empty() || opsets.version_or_zero("") != 0, path);
      }
    }
    for (const OnnxAttribute& attribute : node.attributes) {
      for (const OnnxGraph& graph : attribute.graphs) {
        const std::string inner =
            (path.empty() ? "" : path + "/") + node_label(node) + "/" + std::string(attribute.name);
        check_nodes(graph.nodes, opsets, inner);
      }
    }
  }

  void report(const OnnxNode& node, const OpKey& key, bool is_declared, const std::string& path) {
    const std::string id = std::string(key.domain) + ":" + std::string(key.name);
    if (!missing_.insert(id).second) return;
    if (shown_.size() == kMaxShown) return;
    std::string text = "operator " + quoted(key.name) + " (domain '" +
                       std::string(key.domain.empty() ? "ai.onnx" : key.domain) + "', " +
                       (is_declared ? "" : "of which the file declares no opset, so ") + "opset " +
                       std::to_string(key.version) + ") at node " + quoted(node_label(node));
    if (!path.empty()) text += " in " + quoted(path);
    if (is_too_new(key, ops_.find_or_null(key.domain, key.name, key.version))) {
      text += ", known up to opset " + std::to_string(kNewestMlVersion);
    } else {
      text += ops_.advice(key.domain, key.name);
    }
    if (holds_decoding_loop(key)) {
      text +=
          ", which hides a loop: export the decoder by itself, and around it a Loop whose body "
          "runs it on the last tokens, chooses the next ones by ArgMax or TopK and carries them "
          "with the caches (examples/dynamic_models/language_model builds one)";
    }
    shown_.push_back(std::move(text));
  }

  Status verdict() const {
    if (missing_.empty()) return Status::ok();
    std::string text = "not supported: ";
    for (size_t i = 0; i < shown_.size(); ++i) text += (i == 0 ? "" : "; ") + shown_[i];
    EDDY_CHECK(shown_.size() <= missing_.size()) << "more operators are shown than missing";
    const size_t rest = missing_.size() - shown_.size();
    if (rest > 0) text += "; and " + std::to_string(rest) + " more";
    return unsupported(text +
                       "; eddy info --json lists what is known, a custom operator can be added");
  }

  const FunctionTable& functions_;
  const OpTable& ops_;
  std::set<const OnnxFunction*> seen_;
  std::vector<const OnnxFunction*> called_;
  std::set<std::string> missing_;
  std::vector<std::string> shown_;
};

}  // namespace

bool is_import_operator(const OpKey& key) {
  if (key.domain.empty() && key.name == "Constant") return true;
  const auto names = import_operators(key.domain);
  return std::find(names.begin(), names.end(), key.name) != names.end();
}

bool is_forward(const OnnxNode& node) {
  return node.op_type == "Identity" && node.metadata_or_empty("eddy.forward") == "1";
}

bool is_known_operator(const OnnxNode& node, const OpKey& key, const OpTable& ops) {
  if (is_import_operator(key) || is_forward(node)) return true;
  const OpDef* def = ops.find_or_null(key.domain, key.name, key.version);
  return def != nullptr && !is_too_new(key, def);
}

std::string node_label(const OnnxNode& node) {
  if (!node.name.empty()) return std::string(node.name);
  return std::string(node.outputs.empty() ? node.op_type : node.outputs[0]);
}

Status check_operators(const OnnxModel& model, const FunctionTable& functions, const OpTable& ops) {
  return OperatorCheck(functions, ops).run(model);
}

}  // namespace eddy
