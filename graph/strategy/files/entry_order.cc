#include "graph/strategy/files/entry_order.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "graph/base/check.h"

namespace eddy {
namespace {

// The path leads from the entry back to it.
Status cycle_error(const std::vector<std::pair<uint32_t, size_t>>& path, uint32_t entry,
                   const EntryName& name) {
  constexpr std::ptrdiff_t kMostNamed = 4;
  std::string text = fmt::format("'{}' depends on itself", name(entry));
  const auto begin = std::ranges::find(path, entry, &std::pair<uint32_t, size_t>::first);
  EDDY_CHECK(begin != path.end()) << "entry " << entry << " is on no path";
  if (path.end() - begin == 1) return invalid_argument(text);
  const char* link = ": it waits for ";
  for (auto at = begin + 1; at != path.end(); ++at) {
    if (at - begin == kMostNamed) {
      text += ", which waits for others";
      link = ", which wait for ";
      break;
    }
    text += fmt::format("{}'{}'", link, name(at->first));
    link = ", which waits for ";
  }
  return invalid_argument(fmt::format("{}{}'{}'", text, link, name(entry)));
}

}  // namespace

Result<std::vector<uint32_t>> entry_order(const EntryEdges& edges, const EntryName& name) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(edges.size(), kNew);
  std::vector<uint32_t> order;
  std::vector<std::pair<uint32_t, size_t>> stack;
  for (uint32_t root = 0; root < edges.size(); ++root) {
    if (state[root] != kNew) continue;
    stack.assign(1, {root, 0});
    state[root] = kOpen;
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next == edges[at].size()) {
        state[at] = kDone;
        order.push_back(at);
        stack.pop_back();
        continue;
      }
      const uint32_t input = edges[at][next++];
      EDDY_CHECK(input < edges.size()) << "entry " << at << " waits for entry " << input;
      if (state[input] == kNew) {
        state[input] = kOpen;
        stack.emplace_back(input, 0);
      } else if (state[input] == kOpen) {
        return cycle_error(stack, input, name);
      }
    }
  }
  EDDY_CHECK(order.size() == edges.size()) << order.size() << " entries have a place";
  return order;
}

}  // namespace eddy
