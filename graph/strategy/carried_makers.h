// CarriedMakers: who makes the values that a loop carries (operator_list.h): the first ones, and
// those of later turns.
//
// A carried value whose next one is another carried value is a turn behind it: whoever ends such a
// chain makes the values of all of them. Values that only follow one another have no maker.
//
// Errors: those of the visitor. Threads: none. Cost: linear in the values, then a look-up each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/strategy/operator_list.h"

namespace eddy {

class CarriedMakers {
 public:
  // Borrows the loop.
  explicit CarriedMakers(const ControlOperator& loop);

  // visit(maker) for whom the name stands for; the name itself where it is none of a carried value.
  template <typename Visit>
  Status for_each(const std::string& name, const Visit& visit) const;

 private:
  struct Makers {
    const CarriedValue* value = nullptr;
    std::string next = {};  // at the end of a chain of carried values; empty: none
    bool is_settled = false;
  };

  void settle(const std::string& name);

  std::map<std::string, Makers> by_name_;
};

template <typename Visit>
Status CarriedMakers::for_each(const std::string& name, const Visit& visit) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return visit(name);
  const Makers& makers = found->second;
  if (!makers.value->initial.empty()) EDDY_RETURN_IF_ERROR(visit(makers.value->initial));
  const bool has_next = !makers.next.empty() && makers.next != makers.value->initial;
  return has_next ? visit(makers.next) : Status::ok();
}

}  // namespace eddy
