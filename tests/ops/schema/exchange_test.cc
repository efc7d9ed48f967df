// Claim: pieces cover what each place wants, once, from the place itself where it has it, else from
// the first that does; they move what a tensor has there; and what nobody has is named. Against a
// search element by element.
#include "ops/schema/eddy/exchange.h"

#include <iostream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/base/random.h"

namespace eddy {
namespace {

using Index = std::vector<int64_t>;

// All of its elements, in the order in which they lie.
std::vector<Index> elements(const Box& box) {
  std::vector<Index> all;
  for (int64_t i = 0; i < count_of(box); ++i) {
    Index index = box.starts;
    int64_t rest = i;
    for (size_t axis = box.sizes.size(); axis-- > 0;) {
      index[axis] += rest % box.sizes[axis];
      rest /= box.sizes[axis];
    }
    all.push_back(std::move(index));
  }
  return all;
}

bool has(const Box& box, const Index& index) {
  for (size_t axis = 0; axis < index.size(); ++axis) {
    const int64_t at = index[axis] - box.starts[axis];
    if (at < 0 || at >= box.sizes[axis]) return false;
  }
  return true;
}

std::vector<Box> random_boxes(size_t count, size_t rank, Random& random) {
  std::vector<Box> boxes;
  for (size_t i = 0; i < count; ++i) {
    Box box;
    for (size_t axis = 0; axis < rank; ++axis) {
      box.starts.push_back(static_cast<int64_t>(random.below(4)));
      box.sizes.push_back(static_cast<int64_t>(random.below(5)));
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

// The place that an element comes from; none: nobody has it.
std::optional<size_t> source_of(const std::vector<Box>& from, size_t target, const Index& index) {
  if (has(from[target], index)) return target;
  for (size_t place = 0; place < from.size(); ++place) {
    if (has(from[place], index)) return place;
  }
  return std::nullopt;
}

TEST(Exchange, PiecesAreWhatASearchByElementFinds) {
  int num_refused = 0, num_moved = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const size_t places = 1 + random.below(4), rank = random.below(4);
    const std::vector<Box> from = random_boxes(places, rank, random);
    std::vector<Box> to = random_boxes(places, rank, random);
    std::vector<std::map<Index, size_t>> wanted(places);  // where each element comes from
    bool is_whole = true;
    for (size_t target = 0; target < places; ++target) {
      for (const Index& index : elements(to[target])) {
        const auto source = source_of(from, target, index);
        is_whole &= source.has_value();
        if (source) wanted[target][index] = *source;
      }
    }
    const auto pieces = exchange_pieces(from, to);
    ASSERT_EQ(pieces.is_ok(), is_whole) << pieces.status().to_string();
    num_refused += is_whole ? 0 : 1;
    if (!is_whole) continue;
    std::vector<std::map<Index, size_t>> got(places);
    for (const ExchangePiece& piece : *pieces) {
      for (const Index& index : elements(piece.box)) {
        ASSERT_TRUE(got[piece.target].emplace(index, piece.source).second) << "twice";
        ++num_moved;
      }
    }
    EXPECT_EQ(got, wanted);
  }
  EXPECT_GT(num_refused, 300);
  EXPECT_GT(num_moved, 3000);
}

TEST(Exchange, ACopyPutsEachElementWhereTheOtherBoxHasIt) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::vector<Box> boxes = random_boxes(2, random.below(4), random);
    const auto pieces = exchange_pieces(boxes, std::vector<Box>{boxes[0], boxes[0]});
    std::map<Index, uint16_t> number;
    std::vector<uint16_t> from(static_cast<size_t>(count_of(boxes[1])) + 1, 7);
    for (const Index& index : elements(boxes[1])) {
      const auto next = static_cast<uint16_t>(number.size());
      from[next] = number[index] = next;
    }
    std::vector<uint16_t> to(static_cast<size_t>(count_of(boxes[0])) + 1, 9999);
    if (!pieces.is_ok()) continue;
    for (const ExchangePiece& piece : *pieces) {
      if (piece.target != 1 || piece.source != 1) continue;
      copy_box(from.data(), boxes[1], to.data(), boxes[0], piece.box, sizeof(uint16_t));
    }
    size_t i = 0;
    for (const Index& index : elements(boxes[0])) {
      const auto found = number.find(index);
      EXPECT_EQ(to[i++], found == number.end() ? 9999 : found->second);
    }
    EXPECT_EQ(to[i], 9999) << "behind its end";
  }
}

TEST(Exchange, WhatNobodyHasIsNamed) {
  const std::vector<Box> from = {{{0, 0}, {2, 4}}, {{2, 0}, {2, 4}}};
  const std::vector<Box> to = {{{0, 0}, {2, 4}}, {{1, 2}, {2, 4}}};
  EXPECT_THAT(exchange_pieces(from, to).status().to_string(),
              ::testing::HasSubstr("no rank has [1:2, 4:6], which place 1 of the group wants"));
}

}  // namespace
}  // namespace eddy
