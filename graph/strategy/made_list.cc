#include "graph/strategy/made_list.h"

#include <algorithm>

namespace eddy {

const MadeList* Around::find_or_null(const Around* around, const std::string& name) {
  while (around != nullptr && !around->made->numbers.contains(name)) {
    around = around->outer_or_null;
  }
  return around == nullptr ? nullptr : around->made;
}

const MadeList* list_inside(const std::vector<MadeList>& lists, const std::string& maker,
                            const std::string& name) {
  const bool is_carried = maker != name;
  if (is_carried && lists[1].numbers.contains(maker)) return &lists[1];
  return lists[0].numbers.contains(maker) ? &lists[0] : nullptr;
}

bool reads_within(const std::vector<MadeList>& lists, const BorderReader& reader) {
  const BorderReading& reading = *reader.reading;
  return std::ranges::any_of(lists, [&](const MadeList& made) {
    const auto found = made.numbers.find(reading.op.name);
    if (found == made.numbers.end() || found->second >= made.num_ops()) return false;
    const std::vector<Operator>& operators = made.list->graph.operators;
    return std::ranges::any_of(operators[found->second].inputs, [&](const OperatorInput& input) {
      const Operator& producer = operators[input.producer];
      return producer.name == reader.from && producer.shape == reading.shape &&
             input.dims == reading.op.inputs[0].dims;
    });
  });
}

}  // namespace eddy
