#include "graph/io/import_operators.h"

namespace eddy {

std::span<const std::string_view> import_operators(std::string_view domain) {
  static constexpr std::string_view kOnnx[] = {"If", "Loop", "Scan", "SequenceMap"};
  static constexpr std::string_view kEddy[] = {"CaseOf", "While"};
  static constexpr std::string_view kPreview[] = {"FlexAttention"};
  if (domain.empty()) return kOnnx;
  if (domain == "eddy") return kEddy;
  if (domain == "ai.onnx.preview") return kPreview;
  return {};
}

std::span<const std::string_view> import_domains() {
  static constexpr std::string_view kDomains[] = {"", "ai.onnx.preview", "eddy"};
  return kDomains;
}

}  // namespace eddy
