#include "graph/compile/placed_copier.h"

#include <utility>

#include "graph/base/check.h"

namespace eddy {

PlacedCopier::PlacedCopier(const Graph& source, GraphBuilder& builder,
                           const std::vector<uint32_t>& value_devices)
    : GraphCopier(source, builder), given_(value_devices) {
  EDDY_CHECK(value_devices.size() == source.num_values())
      << value_devices.size() << " devices for " << source.num_values() << " values";
}

Result<PlacedCopy> PlacedCopier::finish(Graph&& source) {
  EDDY_CHECK(&source == &source_) << "another graph is taken over";
  run();
  builder_.adopt_blobs_of(std::move(source));
  EDDY_ASSIGN_OR_RETURN(Graph made, builder_.finish());
  made_.resize(made.num_values(), 0);
  return PlacedCopy{std::move(made), std::move(made_)};
}

void PlacedCopier::set_as(ValueId id, Value value) {
  if (value.is_none()) return;
  const uint32_t index = value.id.index();
  if (made_.size() <= index) made_.resize(index + 1, 0);
  made_[index] = given_[id.index()];
}

}  // namespace eddy
