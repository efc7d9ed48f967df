#include "graph/base/shortened.h"

#include <cstdint>

namespace eddy {

std::string shortened(std::string_view name, size_t most_bytes) {
  constexpr std::string_view kBetween = "...";
  if (name.size() <= most_bytes || most_bytes <= kBetween.size()) return std::string(name);
  const auto is_inside = [&](size_t i) { return (static_cast<uint8_t>(name[i]) & 0xc0) == 0x80; };
  const size_t kept = most_bytes - kBetween.size();
  size_t end = kept - kept / 2, again = name.size() - kept / 2;
  while (end > 0 && is_inside(end)) --end;
  while (again < name.size() && is_inside(again)) ++again;
  return std::string(name.substr(0, end)).append(kBetween).append(name.substr(again));
}

std::string shown_path(const Status& status) {
  constexpr size_t kMostBytes = 400;
  return shortened(status.path(), kMostBytes);
}

}  // namespace eddy
