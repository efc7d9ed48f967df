// Storages: the memory of names of fixed shape: one address each, or two that alternate.
//
// A node that writes a tensor of known shape makes a name; loops and cases hand names on to others.
// A name is planned when its shape is known and nothing needs a reference to its memory: it does
// not leave the graph, no reader keeps it, and what it is handed on to is planned, too. Planned
// names form classes with one address (coalesce.h); a storage is such a class, with every access
// to it under any name, and its home: the innermost region in whose single instance an instance of
// the storage is born and dies. What crosses iterations of a loop has its home outside that loop
// and is touched there by the loop as a whole.
//
// What is handed on between two storages, or comes from outside (the caller's inputs, constants,
// counters), is copied. That pays for small values on the host only: where a value of more than
// kMaxCopiedBytes would be copied, the name that it is handed on to is not planned, and references
// move it; but what a loop begins with is copied where each iteration writes little of it anew.
// Beside accelerators nothing is handed on in planned memory.
//
// Contract: names that can't be planned carry the reason and no more. `order` is of the plan.
// Cost: near linear, and coalesce's; all again when names are dropped for what would be copied.
#pragma once

#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/memory/coalesce.h"
#include "graph/schedule/memory/node_order.h"
#include "graph/schedule/plan/memory_plan.h"

namespace eddy {

inline constexpr uint64_t kMaxCopiedBytes = 4096;

struct Access {
  RegionId region;
  NodeId node;  // none: the end of the region
  bool is_write = false;
};

struct Storage {
  uint64_t size_bytes = 0;
  NodeId loop;  // none: one address
  RegionId home;
  std::vector<ValueId> names;  // roots
  std::vector<Access> accesses;
  bool is_carried = false;              // an older instance may be there when a writer starts
  bool begins_with_its_writer = false;  // one node writes it, and nothing stands there before
};

struct Storages {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::vector<Storage> all;
  std::vector<uint32_t> of_value;   // by ValueId; of further names, too; kNone: not planned
  std::vector<Turn> turns;          // by ValueId
  std::vector<ValueMemory> values;  // by ValueId: place and reason, blocks still to come
};

// `hands_on`: loops and cases may hand on planned names.
Storages find_storages(const Graph& graph, const NodeOrder& order, bool hands_on);

}  // namespace eddy
