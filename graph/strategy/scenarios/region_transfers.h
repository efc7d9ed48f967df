// RegionTransfers: what crosses the borders of regions (graph_costs.h), over links.
//
// Tiles of a result go to the parts of a reader, each part by what of it is read (overlaps.h), hop
// by hop, as entries of the region in which they are sent; what stands on the right device already
// is not sent. Where several things are a result (that of a case, of a loop with several ends),
// those of the shape that the reader expects are sent, or all of them, whole, where none has it.
//
// Errors: invalid argument: no link between two devices that must talk, naming the reader. Resource
// exhausted: more than kMaxRegionTransfers over the object's life, or as many pairs of one result
// and its reader. Threads: none.
// Cost: linear in the pairs of tiles and parts that overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/simulate/scenario.h"
#include "graph/strategy/operators/overlaps.h"
#include "graph/strategy/scenarios/graph_costs.h"

namespace eddy {

inline constexpr uint64_t kMaxRegionTransfers = uint64_t{1} << 22;  // hops

// How an operator reads a tensor that comes from another region, or from a loop or case.
struct OuterRead {
  Dims shape;   // of the tensor; rank 0: not known
  Operator op;  // with this one input
  OperatorConfig config;
  // By part: the region's entries that wait for what is sent. One: all parts are in that. Empty:
  // none waits.
  std::vector<uint32_t> targets;

  uint32_t target(uint32_t part) const { return targets.size() == 1 ? targets[0] : targets[part]; }
};

// Tiles of a result, and what must have ended before they can be sent.
struct TransferSource {
  const RegionCosts* costs = nullptr;
  uint32_t op = 0;
  std::vector<uint32_t> deps = {};  // by tile: entries of the region; empty: nothing
  ScenarioRegion* region = nullptr;
};

class RegionTransfers {
 public:
  explicit RegionTransfers(const Topology& topology) : topology_(topology) {}

  // In the sources' regions. `name` is that of what is read. The read's targets are entries of
  // `region` and wait for what is sent in it.
  Status send(const std::vector<TransferSource>& sources, const std::string& name,
              const OuterRead& read, ScenarioRegion& region);

 private:
  Status send_one(const TransferSource& source, const std::string& name, const OuterRead& read,
                  ScenarioRegion& region);
  // `name` is that of the tile. The last hop's entry goes to `last`.
  Status send_tile(const TransferSource& source, uint32_t tile, const std::string& name,
                   const OuterRead& read, uint32_t part, int64_t size_bytes, uint32_t& last);

  const Topology& topology_;
  Overlaps overlaps_;
  uint64_t num_transfers_ = 0;
};

}  // namespace eddy
