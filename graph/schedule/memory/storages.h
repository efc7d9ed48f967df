// Storages: which memory each value's names stand for, and which nodes touch it.
//
// A node that writes a tensor of known shape makes a storage. Views, loop parameters and results
// and branches' results are further names of it; they are followed until nothing changes. A
// storage knows every access to it under any name, and its home: the innermost region in whose
// single instance an instance of the storage is born and dies. What crosses iterations of a loop
// has its home outside that loop and is touched there by the loop as a whole.
//
// Holders are the parameters of loops around the writer that may stand for an older instance
// while the writer makes the next: so many more blocks the storage needs, at most (spare_blocks.h).
//
// Contract: storages that can't be planned carry the reason and no more.
// Cost: near linear; a value with more than kMaxNames possible storages gives them up.
#pragma once

#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/plan/memory_plan.h"

namespace eddy {

struct Access {
  RegionId region;
  NodeId node;  // none: the end of the region
  bool is_write = false;
};

struct Storage {
  ValueId value;
  NoBlock reason = NoBlock::kHasBlock;
  uint64_t size_bytes = 0;
  RegionId home;
  std::vector<Access> accesses;
  bool is_carried = false;  // an older instance may be there when its writer starts
  std::vector<ValueId> holders;
};

struct Storages {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::vector<Storage> all;
  // By ValueId: the storages a value may stand for, ascending. Its own, for one that is written.
  std::vector<std::vector<uint32_t>> of_value;
  std::vector<ValueMemory> values;             // by ValueId: place and reason, blocks still to come
  std::vector<std::vector<ValueId>> names_of;  // by ValueId: what its memory is handed to

  // The only storage that the value can stand for, or kNone.
  uint32_t only(ValueId value) const {
    const auto& storages = of_value[value.index()];
    return storages.size() == 1 ? storages[0] : kNone;
  }
};

Storages find_storages(const Graph& graph);

}  // namespace eddy
