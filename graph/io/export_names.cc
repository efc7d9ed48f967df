// Names of values that are unique in the whole file, and one opset for each domain.
#include "graph/base/check.h"
#include "graph/io/exporter.h"
#include "graph/io/opset_table.h"
#include "graph/io/text.h"

namespace eddy {

std::string Exporter::made_up(std::string_view stem) {
  for (;;) {
    std::string name = std::string(stem) + "%" + std::to_string(num_made_up_++);
    if (used_names_.insert(name).second) return name;
  }
}

void Exporter::choose_name(ValueId value) {
  const std::string& wanted = graph_.value(value).name;
  const bool is_free = !wanted.empty() && is_clean_utf8(wanted) &&
                       wanted.find('%') == std::string::npos && used_names_.insert(wanted).second;
  names_[value.index()] = is_free ? wanted : made_up(is_clean_utf8(wanted) ? wanted : "");
}

Status Exporter::choose_names() {
  EDDY_CHECK(graph_.output_names().size() == graph_.outputs().size()) << "an output has no name";
  names_.resize(graph_.num_values());
  for (ValueId input : graph_.inputs()) {
    names_[input.index()] = graph_.value(input).name;
    used_names_.insert(graph_.value(input).name);
  }
  // An output's name belongs to its value alone, or to no value.
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId value = graph_.outputs()[i];
    const std::string& output = graph_.output_names()[i];
    if (!used_names_.insert(output).second) {
      if (name(value) == output) continue;
      return unsupported("output " + quoted(output) +
                         " has the name of another value; ONNX "
                         "can't say that, rename one");
    }
    const ValueInfo& info = graph_.value(value);
    const bool is_its_own = info.origin == ValueOrigin::kNodeOutput && info.name == output &&
                            info.region == Graph::kRoot && name(value).empty();
    if (is_its_own) names_[value.index()] = output;
  }
  for (uint32_t v = 0; v < graph_.num_values(); ++v) {
    if (names_[v].empty()) choose_name(ValueId(v));
  }
  return Status::ok();
}

std::string Exporter::name_or_empty(ValueId value) const {
  return value.is_none() ? std::string() : name(value);
}

// The version that most nodes of a domain have; in a tie the newer one.
Status Exporter::choose_opsets() {
  std::map<std::string, std::map<int, size_t>> uses;
  for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
    const Node& node = graph_.node(NodeId(n));
    if (node.kind == NodeKind::kExec) ++uses[node.op->domain][node.opset_version];
  }
  opsets_ = {{"", kDefaultOpset}, {"eddy", 1}};
  for (const auto& [domain, versions] : uses) {
    size_t most = 0;
    for (const auto& [version, count] : versions) {
      if (count < most) continue;
      most = count;
      opsets_[domain] = version;
    }
    if (versions.size() == 1) continue;
    if (!domain.empty()) {
      return unsupported("operators of domain " + quoted(domain) +
                         " are used in several versions, which ONNX can't say");
    }
    for (const auto& [version, count] : versions) {
      if (version == opsets_[""]) continue;
      opsets_[std::string(kPinnedDomainPrefix) + std::to_string(version)] = 1;
    }
  }
  return Status::ok();
}

std::string Exporter::domain_of(const Node& node) const {
  const std::string& domain = node.op->domain;
  if (opsets_.at(domain) == node.opset_version) return domain;
  EDDY_CHECK(domain.empty()) << "only ONNX's own operators keep another version, not " << domain;
  return std::string(kPinnedDomainPrefix) + std::to_string(node.opset_version);
}

}  // namespace eddy
