// Which opset of each domain a model or a function imports. Internal to graph/io.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "graph/io/onnx_model.h"

namespace eddy {

// Nodes that keep a version of their own (written by the exporter when a graph mixes versions)
// stand in domain "eddy.onnx.13": ONNX's operators as of opset 13.
inline constexpr std::string_view kPinnedDomainPrefix = "eddy.onnx.";

class OpsetTable {
 public:
  OpsetTable() = default;
  explicit OpsetTable(const std::vector<OnnxOpset>& opsets) {
    for (const OnnxOpset& opset : opsets) {
      versions_.emplace_back(canonical_domain(opset.domain), opset.version);
    }
  }
  // 0 when the domain is not imported.
  int64_t version_or_zero(std::string_view domain) const {
    for (const auto& [known, version] : versions_) {
      if (known == domain) return version;
    }
    return 0;
  }

 private:
  std::vector<std::pair<std::string_view, int64_t>> versions_;
};

// The definition that a node requires.
struct OpKey {
  std::string_view domain;  // canonical
  std::string_view name;
  int version = 1;
};
OpKey key_of(const OnnxNode& node, const OpsetTable& opsets);

}  // namespace eddy
