#include "graph/io/import_operators.h"

namespace eddy {

std::span<const std::string_view> import_operators(std::string_view domain) {
  static constexpr std::string_view kOnnx[] = {"If", "Loop", "Scan", "SequenceMap"};
  static constexpr std::string_view kEddy[] = {"CaseOf", "While"};
  if (domain.empty()) return kOnnx;
  return domain == "eddy" ? std::span<const std::string_view>(kEddy)
                          : std::span<const std::string_view>();
}

}  // namespace eddy
