// RegionStrands: what the strands of one recorded region do, as commands of the proof; and an order
// in which they can be issued.
//
// Part of recorded_commands. Errors: none here; strands that wait for each other have no such
// order. Cost: O(commands * strands that wait).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/program/program.h"

namespace eddy {

struct RegionStrands {
  struct Strand {
    uint32_t stream = 0;
    std::vector<Program::Step> commands = {};

    void add(Program::Op op, uint32_t id) { commands.push_back({op, stream, id}); }
  };

  RegionId id;
  std::vector<Strand> strands = {};            // 0 is the main one
  std::map<uint32_t, uint32_t> local = {};     // events of the buffer that it uses, numbered
  std::map<uint32_t, uint32_t> previous = {};  // of an open region: those of the other set
  std::set<uint32_t> resets = {};              // events
  std::multiset<uint32_t> nodes = {};          // that it runs
  std::multiset<uint32_t> rows = {};           // of an open loop, that it stacks
  uint32_t num_takes = 0;
  bool has_begun = false;  // to use events

  // Behind its events: one that says that the strand may begin.
  uint32_t begin_event(size_t strand) const {
    return static_cast<uint32_t>(local.size() + strand - 1);
  }
  bool has_stream(uint32_t stream) const;
  // Behind the begin, a record before the waits for it; without the end. None: there is no order.
  std::optional<Program::Block> issue_order() const;
};

}  // namespace eddy
