#include "graph/strategy/border_readers.h"

#include <algorithm>

namespace eddy {

bool BorderReaders::add(BorderReader reader) {
  const BorderReading& reading = *reader.reading;
  std::vector<size_t>& alike = by_ends_[{reader.from, reading.op.name}];
  const auto is_equal = [&](size_t other) {
    const BorderReading& its = *all_[other].reading;
    return its.shape == reading.shape && its.op.inputs[0].dims == reading.op.inputs[0].dims;
  };
  if (std::ranges::any_of(alike, is_equal)) return false;
  alike.push_back(all_.size());
  all_.push_back(std::move(reader));
  return true;
}

void BorderReaders::set_target(uint32_t entry) {
  for (BorderReader& reader : all_) reader.targets.assign(1, entry);
}

}  // namespace eddy
