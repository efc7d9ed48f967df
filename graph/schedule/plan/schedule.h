// Schedule: a plan while it is made. For each region of the graph its streams, the nodes in the
// order of issue, and the records and waits between them.
//
// Streams are numbered within a region: stream 0 is the stream of the region's control node (the
// caller's, for the root); the others belong to the region while it runs. `streams` lists which of
// the machine's streams they are: any that are free as long as the region runs, so exclusive
// branches share them. A node that has regions stands in its parent's list as one launch. Events
// are numbered within a region; each is recorded once and may be waited for several times, later in
// issue order. emit_program.h makes the program of it, in which everything is explicit.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/graph.h"
#include "graph/program/program.h"
#include "graph/schedule/plan/memory_plan.h"

namespace eddy {

struct RegionSchedule {
  uint32_t num_streams = 1;
  // The machine's stream for each of the region's; empty: the same numbers.
  std::vector<uint32_t> streams;
  uint32_t num_events = 0;
  // Regions that are never at work together may use the same events of the machine: those of this
  // region begin here. Behind num_events come one for the entry and one for each further stream.
  // A pipelined one has two such sets, each followed by one event more for each stream.
  uint32_t first_event = 0;
  // For a pipelined loop's `after` (pipelined_loops.h): what its streams retain, by the operand of
  // kRetain; and its first waits for the iteration before, by event, with the node that each holds
  // up.
  bool is_pipelined = false;
  std::vector<std::vector<ValueId>> retained;
  std::vector<std::pair<uint32_t, NodeId>> held_up;
  // The device of each stream, into Plan::devices; empty: all on device 0.
  std::vector<uint32_t> devices;
  // In issue order: kLaunch (of any node; operand: its NodeId), kRecord, kWait, and of a pipelined
  // block kWaitPrevious and kRetain.
  std::vector<Program::Step> steps;
  std::vector<uint32_t> ranks;     // per node of Region::nodes: longest chain that follows
  std::vector<double> cost_ranks;  // the same in nanoseconds; empty unless ranked by costs

  uint32_t events_of_a_set() const { return num_events + (is_pipelined ? 2 : 1) * num_streams; }
  // The number of the machine's events that the region uses.
  uint32_t num_machine_events() const {
    if (num_streams == 1) return 0;
    return (is_pipelined ? 2 : 1) * events_of_a_set();
  }
  uint32_t machine_stream(uint32_t stream) const {
    EDDY_DCHECK(stream < num_streams && (streams.empty() || streams.size() == num_streams))
        << "stream " << stream << " of " << num_streams;
    return streams.empty() ? stream : streams[stream];
  }
};

struct Schedule {
  std::vector<RegionSchedule> regions;  // by RegionId
  uint32_t num_streams = 1;             // of the machine, over all regions
  uint32_t num_events = 0;
  // For a schedule for several devices, else empty: their names (0 is the host's CPU), the device
  // of each of the machine's streams, and the device in whose memory each value is, by ValueId.
  std::vector<std::string> devices;
  std::vector<uint32_t> stream_devices;
  std::vector<uint32_t> value_devices;
  MemoryPlan memory;
};

}  // namespace eddy
