// ByteHistory: which commands must come after which, by the bytes of an arena that they touch.
//
// Part of the nested proof. Accesses are added in the order of issue; each calls back for every
// earlier one that it must come after. Cost: O(log spans) and the spans touched.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

// An access to bytes: by which node, on which stream.
struct ByteAccess {
  uint32_t node = UINT32_MAX;
  uint32_t stream = UINT32_MAX;
};

// Accesses to the bytes of one arena, in the order of issue: the last write, and the reads since
// (the last of each stream).
class ByteHistory {
 public:
  // Calls visit(earlier node) for what the access must come after.
  template <typename Visit>
  void read(uint64_t begin, uint64_t end, const ByteAccess& access, Visit visit) {
    EDDY_DCHECK(begin < end) << "node " << access.node << " reads no bytes";
    for (auto it = cut(begin, end); it != spans_.end() && it->first < end; ++it) {
      Span& span = it->second;
      visit(span.writer.node);
      add_reader(span.readers, access);
    }
  }
  template <typename Visit>
  void write(uint64_t begin, uint64_t end, const ByteAccess& access, Visit visit) {
    EDDY_DCHECK(begin < end) << "node " << access.node << " writes no bytes";
    auto it = cut(begin, end);
    while (it != spans_.end() && it->first < end) {
      visit(it->second.writer.node);
      for (const ByteAccess& reader : it->second.readers) visit(reader.node);
      it = spans_.erase(it);
    }
    spans_[begin] = {end, access, {}};
  }

 private:
  struct Span {
    uint64_t end = 0;
    ByteAccess writer;
    std::vector<ByteAccess> readers;
  };
  using Spans = std::map<uint64_t, Span>;  // by begin; what is in none was never touched

  // A block that thousands read on few streams has few readers. (Looked for among the last ones
  // only, so that thousands of streams cost no more.)
  static void add_reader(std::vector<ByteAccess>& readers, const ByteAccess& access) {
    const size_t num_looked_at = std::min<size_t>(readers.size(), 16);
    const auto known =
        std::find_if(readers.rbegin(), readers.rbegin() + static_cast<ptrdiff_t>(num_looked_at),
                     [&](const ByteAccess& reader) { return reader.stream == access.stream; });
    if (known != readers.rbegin() + static_cast<ptrdiff_t>(num_looked_at)) {
      *known = access;
    } else {
      readers.push_back(access);
    }
  }

  void split(uint64_t at) {
    auto it = spans_.upper_bound(at);
    if (it == spans_.begin()) return;
    --it;
    if (it->first == at || it->second.end <= at) return;
    Span upper = it->second;
    it->second.end = at;
    spans_.emplace(at, std::move(upper));
  }
  // The first span in the range, after filling its holes.
  Spans::iterator cut(uint64_t begin, uint64_t end) {
    split(begin);
    split(end);
    uint64_t at = begin;
    for (auto it = spans_.lower_bound(begin); at < end; ++it) {
      const uint64_t next = it == spans_.end() ? end : std::min(end, it->first);
      if (next > at) it = spans_.emplace(at, Span{next, {}, {}}).first;
      at = it->second.end;
      EDDY_DCHECK(it->first < at) << "a span of no bytes is followed forever";
    }
    return spans_.lower_bound(begin);
  }

  Spans spans_;
};

}  // namespace eddy
