// OpenSet: one of the two sets in which an open loop's `after` is recorded (lowering.h), its
// turn-taking taken off; check_open_sets: that the two take turns.
//
// A set's strands begin where the other's of the same streams have ended. Its events are reset by
// the main strand when the other set's strands have begun, so that its own have ended, and whoever
// waited for them has gone on; those that a first turn waits for are recorded before it. Who goes
// on behind the loop waits for the strands of both.
//
// Part of recorded_commands. Errors (kInternal): what is not so. Cost: O(items log items).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "runtime/execute/recorded_work.h"

namespace eddy {

struct OpenSet {
  struct Fork {
    const CodeItem* item;
    uint32_t waited;  // events: the end of the same stream in the other set
    uint32_t begun;
    uint32_t end;
    CodeItems rest;
  };
  std::set<uint32_t> waited;  // by the main strand before all else
  std::set<uint32_t> resets;
  std::vector<Fork> forks;
  std::multiset<uint32_t> rows;        // results of `after` that are stacked behind all else
  CodeItems rest;                      // of the main strand; forks among them
  std::map<uint32_t, uint32_t> local;  // events that its commands record, numbered in their order
};

// Of the loop's `after`, without the turn that ends it.
Result<OpenSet> read_open_set(const RecordedWork& work, NodeId loop, CodeItems items);

// `recorded`: before the first turn. `waited`: behind the last one.
Status check_open_sets(const RecordedWork& work, RegionId after, const OpenSet (&sets)[2],
                       const std::set<uint32_t>& recorded, const std::set<uint32_t>& waited);

}  // namespace eddy
