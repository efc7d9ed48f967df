// BorderTransfers: what crosses the border of a list of operators (operator_list.h), over links.
//
// Tiles of a result go to the parts of a reader, each part by what of it is read (overlaps.h), hop
// by hop, as entries of the region in which they are sent; what stands on the right device already
// is not sent. Where several things are a result (that of a branch, of a loop with several ends),
// those of the shape that the reader expects are sent, or all of them, whole, where none has it.
//
// Errors: invalid argument: no link between two devices that must talk, naming the reader. Resource
// exhausted: more than kMaxBorderTransfers over the object's life, or as many pairs of one result
// and its reader. Threads: none.
// Cost: linear in the pairs of tiles and parts that overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/simulate/scenario.h"
#include "graph/strategy/border_readers.h"
#include "graph/strategy/overlaps.h"

namespace eddy {

inline constexpr uint64_t kMaxBorderTransfers = uint64_t{1} << 22;  // hops

// Tiles of a result, and what must have ended before they can be sent.
struct BorderSource {
  const OperatorList* list = nullptr;
  uint32_t op = 0;
  std::vector<uint32_t> deps = {};  // by tile: entries of the region; empty: nothing
  ScenarioRegion* region = nullptr;
};

class BorderTransfers {
 public:
  explicit BorderTransfers(const Topology& topology) : topology_(topology) {}

  // In the sources' regions. The reader's targets are entries of `region` and wait for what is sent
  // in it.
  Status send(const std::vector<BorderSource>& sources, const BorderReader& reader,
              ScenarioRegion& region);

 private:
  Status send_one(const BorderSource& source, const BorderReader& reader, ScenarioRegion& region);
  Status send_tile(const BorderSource& source, uint32_t tile, const BorderReader& reader,
                   uint32_t part, int64_t size_bytes, ScenarioRegion& region);

  const Topology& topology_;
  Overlaps overlaps_;
  uint64_t num_transfers_ = 0;
};

}  // namespace eddy
