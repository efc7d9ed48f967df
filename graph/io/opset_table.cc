#include "graph/io/opset_table.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace eddy {

OpKey key_of(const OnnxNode& node, const OpsetTable& opsets) {
  OpKey key{canonical_domain(node.domain), node.op_type, 1};
  if (key.domain.starts_with(kPinnedDomainPrefix)) {
    const std::string_view digits = key.domain.substr(kPinnedDomainPrefix.size());
    const char* end = digits.data() + digits.size();
    int pinned = 0;
    const auto [at, error] = std::from_chars(digits.data(), end, pinned);
    if (error == std::errc() && at == end && pinned > 0) return {"", key.name, pinned};
  }
  // A domain that is used but not imported counts as its first version.
  const int64_t version = opsets.version_or_zero(key.domain);
  key.version = static_cast<int>(std::clamp<int64_t>(version, 1, INT32_MAX));
  return key;
}

}  // namespace eddy
