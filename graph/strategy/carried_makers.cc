#include "graph/strategy/carried_makers.h"

namespace eddy {

CarriedMakers::CarriedMakers(const ControlOperator& loop) {
  for (const CarriedValue& value : loop.carried) by_name_[value.name] = {&value, {}, false};
  for (const CarriedValue& value : loop.carried) settle(value.name);
}

void CarriedMakers::settle(const std::string& name) {
  std::vector<Makers*> path;
  std::string next = name;
  for (auto at = by_name_.find(next); at != by_name_.end(); at = by_name_.find(next)) {
    Makers& makers = at->second;
    next = makers.is_settled ? makers.next : makers.value->next;
    if (makers.is_settled) break;
    makers.is_settled = true;
    path.push_back(&makers);
  }
  for (Makers* const makers : path) makers->next = next;
}

}  // namespace eddy
