#include "graph/schedule/plan/value_text.h"

namespace eddy {
namespace {

std::string parameter_text(const Graph& graph, const ValueInfo& value) {
  const NodeId owner = graph.region(value.region).owner;
  if (owner.is_none()) return "input " + std::to_string(value.index);
  const std::string path = graph.path(owner);
  if (value.index == 0) return "the iteration of " + path;
  return "carried value " + std::to_string(value.index - 1) + " of " + path;
}

}  // namespace

std::string value_text(const Graph& graph, ValueId id) {
  const ValueInfo& value = graph.value(id);
  if (!value.name.empty()) return value.name;
  switch (value.origin) {
    case ValueOrigin::kNodeOutput:
      return "output " + std::to_string(value.index) + " of " + graph.path(value.producer);
    case ValueOrigin::kParameter:
      return parameter_text(graph, value);
    case ValueOrigin::kConstant:
      break;
  }
  return "constant " + std::to_string(value.constant.index());
}

std::string region_text(const Graph& graph, RegionId id) {
  const Region& region = graph.region(id);
  return region.owner.is_none() ? "root" : graph.path(region.owner) + "/" + region.name;
}

}  // namespace eddy
