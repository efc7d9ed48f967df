// Groups: how a reduction walks its input. Axes of size 1 are dropped and neighbours of one kind
// merged, which leaves alternating groups of kept and reduced axes, outermost first; the innermost
// is a contiguous row.
//
// Cost: O(rank) to make; visit_rows O(rank) a row beside its visitor.
#pragma once

#include <cstdint>
#include <span>

#include "graph/base/check.h"
#include "graph/ir/tensor_view.h"

namespace eddy::cpu {

struct Groups {
  int rank = 0;
  int64_t reduced_count = 1;
  struct Group {
    int64_t count;
    int64_t out_stride;  // elements of the output per step; 0 where reduced
    bool is_reduced;
  } groups[kMaxRank + 1];

  Groups(std::span<const int64_t> dims, uint32_t mask) {
    EDDY_DCHECK(dims.size() <= kMaxRank + 1 && mask >> dims.size() == 0)
        << "axes " << mask << " of rank " << dims.size();
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const bool is_reduced = (mask >> axis) & 1;
      if (is_reduced) reduced_count *= dims[axis];
      if (dims[axis] == 1) continue;
      if (rank > 0 && groups[rank - 1].is_reduced == is_reduced) {
        groups[rank - 1].count *= dims[axis];
      } else {
        groups[rank++] = {dims[axis], 0, is_reduced};
      }
    }
    if (rank == 0) groups[rank++] = {1, 0, false};
    int64_t stride = 1;
    for (int g = rank - 1; g >= 0; --g) {
      if (groups[g].is_reduced) continue;
      groups[g].out_stride = stride;
      stride *= groups[g].count;
    }
  }

  const Group& row() const { return groups[rank - 1]; }

  // visit(first element of the input's row, of the output's row, is_first: nothing has been folded
  // into that place yet). Nothing is empty.
  template <typename Visit>
  void visit_rows(const Visit& visit) const {
    int64_t index[kMaxRank + 1] = {};
    int64_t num_rows = 1;
    for (int i = 0; i < rank - 1; ++i) num_rows *= groups[i].count;
    for (int64_t r = 0; r < num_rows; ++r) {
      int64_t place = 0;
      bool is_first = true;
      for (int i = 0; i < rank - 1; ++i) {
        place += index[i] * groups[i].out_stride;
        is_first = is_first && (!groups[i].is_reduced || index[i] == 0);
      }
      visit(r * row().count, place, is_first);
      for (int i = rank - 2; i >= 0 && ++index[i] == groups[i].count; --i) index[i] = 0;
    }
  }
};

}  // namespace eddy::cpu
