// lay_out_in_order: offsets for blocks of which there are too many to compare each with each other.
//
// Blocks are placed in the order of issue, each where a block of its size, or of at most twice its
// size, has stood whose life has surely ended: the last kCandidates of those are asked. Else it
// stands above all others.
//
// Contract: sizes are multiples of the alignment; `life` outlives the call; `start` and `end` are
// places in the order of issue of its home region and only guide. Deterministic.
// Cost: O(blocks * (log blocks + kCandidates)).
// Source: linear scan of live intervals (Poletto and Sarkar 1999), by happens-before on several
// streams.
#pragma once

#include <cstdint>
#include <span>

#include "graph/schedule/memory/layout.h"
#include "graph/schedule/memory/lifetimes.h"

namespace eddy {

struct OrderedBlock {
  uint64_t size_bytes = 0;
  const Lifetime* life = nullptr;
  uint32_t start = 0;
  uint32_t end = 0;
};

Layout lay_out_in_order(std::span<const OrderedBlock> blocks, const Lifetimes& lifetimes);

}  // namespace eddy
