// Exchange: a tensor that lies over ranks in boxes comes to lie over them in others.
//
//   from = rows 0-1 on place 0, 2-3 on place 1;  to = rows 0-2 and 1-3, each with its neighbour's
//   EDDY_ASSIGN_OR_RETURN(const auto pieces, exchange_pieces(from, to));
//   // place 0 keeps rows 0-1 and gets row 2 of place 1; place 1 gets row 1, and keeps rows 2-3
//
// An element comes from the place itself where it has it, else from the first place that does.
// Pieces stand by target, and for each target in one order on all ranks, so that what is packed by
// one is unpacked by the other without a word on where.
//
// Errors: invalid_argument: numbers that make no boxes; an element that is wanted and nobody has.
// Cost: of exchange_pieces, the pieces times the places. Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/status.h"

namespace eddy {

// Of a tensor of 1 to kMaxRank axes: from `starts`, as far as `sizes`; none may be negative.
struct Box {
  std::vector<int64_t> starts;
  std::vector<int64_t> sizes;
  bool operator==(const Box&) const = default;
};

int64_t count_of(const Box& box);
std::string to_string(const Box& box);  // "[0:2, 4:8]"

// Places are positions in the group.
struct ExchangePiece {
  size_t source = 0;
  size_t target = 0;
  Box box;
};

// An attribute's numbers: for each place the starts, then the sizes of its box.
Result<std::vector<Box>> read_boxes(std::string_view attribute, std::span<const int64_t> numbers,
                                    size_t num_places);
Result<std::vector<ExchangePiece>> exchange_pieces(std::span<const Box> from,
                                                   std::span<const Box> to);

// Moves `piece` of a tensor from where `from_box` of it lies dense to where `to_box` does.
void copy_box(const void* from, const Box& from_box, void* to, const Box& to_box, const Box& piece,
              size_t element_bytes);

}  // namespace eddy
