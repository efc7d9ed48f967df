#include "graph/strategy/control_order.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace eddy {
namespace {

using Edges = std::vector<std::pair<uint32_t, uint32_t>>;  // who is read, who reads

class Reading {
 public:
  explicit Reading(const OperatorList& list) {
    for (const ControlOperator& control : list.controls)
      numbers_.try_emplace(control.name, count_++);
  }

  // What `control` and all in it read.
  void add(const ControlOperator& control, uint32_t reader) {
    for (const std::string& name : control.inputs) add(name, reader);
    for (const CarriedValue& value : control.carried) {
      add(value.initial, reader);
      add(value.next, reader);
    }
    for (const OperatorList& list : control.lists) {
      for (const OuterInput& input : list.outer_inputs) add(input.from, reader);
      for (const ControlOperator& inner : list.controls) add(inner, reader);
    }
  }
  // By who is read.
  const Edges& sorted() {
    std::ranges::sort(edges_);
    return edges_;
  }

 private:
  void add(const std::string& name, uint32_t reader) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) edges_.emplace_back(found->second, reader);
  }

  std::unordered_map<std::string_view, uint32_t> numbers_;
  uint32_t count_ = 0;
  Edges edges_;
};

}  // namespace

std::vector<uint32_t> control_order(const OperatorList& list) {
  const auto count = static_cast<uint32_t>(list.controls.size());
  std::vector<uint32_t> order;
  if (count < 2) return std::vector<uint32_t>(count, 0);
  Reading reading(list);
  for (uint32_t c = 0; c < count; ++c) reading.add(list.controls[c], c);
  const Edges& edges = reading.sorted();
  std::vector<size_t> waits(count);
  for (const auto& [from, reader] : edges) ++waits[reader];
  for (uint32_t c = 0; c < count; ++c) {
    if (waits[c] == 0) order.push_back(c);
  }
  for (size_t k = 0; k < order.size(); ++k) {
    auto edge = std::ranges::lower_bound(edges, order[k], {}, &Edges::value_type::first);
    for (; edge != edges.end() && edge->first == order[k]; ++edge) {
      if (--waits[edge->second] == 0) order.push_back(edge->second);
    }
  }
  for (uint32_t c = 0; c < count; ++c) {
    if (waits[c] > 0) order.push_back(c);
  }
  return order;
}

}  // namespace eddy
