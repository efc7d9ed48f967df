// back_edge_order: two iterations of a pipelined loop's `after` behind one another, each followed
// by one node for all that happens between them (the turn), with every pair that must be ordered.
//
// Every name of the loop has one place: what changes it comes after all that used it before. Values
// move on in the turn, `before` runs, and its results are tested and forwarded. On an asynchronous
// stream a reader of an alias has ended before the turn: its memory may be another's to write from
// there on. The loop's end waits for all streams: that is what a pipelined loop means, and nothing
// to prove.
//
// Part of the program's proof. Cost: near linear in the steps of `after` and what they touch.
#pragma once

#include <vector>

#include "graph/proof/region_order.h"

namespace eddy {

// What a proof of a pipelined loop is made from.
struct PipelinedLoop {
  const Program& program;
  const ReachingWrites& contents;
  const Program::Step& step;        // kLoop
  const Touched& before;            // all that the region does
  std::vector<uint32_t> own_names;  // of `before` and `after`

  const Program::Loop& loop() const { return program.loops[step.operand]; }
};

// `inside`: by step of `after`.
RegionOrder back_edge_order(const PipelinedLoop& pipelined, const std::vector<Touched>& inside);

// Lists both iterations, with the records and waits that `after` has.
void list_back_edge(const Program::Block& after, RegionOrder& order);

}  // namespace eddy
