// Schedule: a plan while it is made, inside graph/schedule: for each region of the graph its streams,
// the nodes in the order of issue, and the records and waits between them.
//
// Streams are numbered within a region: stream 0 is the stream of the region's control node (the
// caller's, for the root); the others belong to the region while it runs. `streams` says which of
// the machine's streams they are: any that are free as long as the region runs, so exclusive
// branches share them. A node that has regions stands in its parent's list as one launch. Events
// are numbered within a region; each is recorded once and may be waited for several times, later in
// issue order. emit_program.h makes the program of it, in which everything is explicit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/memory_plan.h"

namespace eddy {

struct PlanCommand {
  enum class Kind : uint8_t { kLaunch, kRecord, kWait };
  Kind kind = Kind::kLaunch;
  uint32_t stream = 0;
  NodeId node;         // kLaunch; kRecord and kWait: the node they follow or precede
  uint32_t event = 0;  // kRecord, kWait
};

// How the next iteration is ordered behind the streams that go on (all waits are of stream 0).
struct OpenEnd {
  static constexpr uint32_t kNoEvent = UINT32_MAX;
  struct PreviousWait {
    NodeId before;       // none: before the iteration's further streams begin
    uint32_t event = 0;  // as recorded in the iteration before
    NodeId serves;       // the node that must not begin earlier; for people
  };
  // From there on exec nodes of the stream read these values by references of the stream's own.
  struct Take {
    uint32_t stream = 0;
    NodeId before;  // right before that node
    std::vector<ValueId> values;
    uint32_t event = kNoEvent;  // recorded right behind it
  };
  std::vector<uint32_t> end_waits;  // events of this iteration, waited for at its end
  std::vector<PreviousWait> previous_waits;
  std::vector<Take> takes;
};

struct RegionSchedule {
  uint32_t num_streams = 1;
  // The machine's stream for each of the region's; empty: the same numbers.
  std::vector<uint32_t> streams;
  uint32_t num_events = 0;
  // Regions that are never at work together may use the same events of the machine: those of this
  // region begin here. Behind num_events come one for the entry and one for each further stream.
  // An open region has two such sets, each followed by one event more for each stream.
  uint32_t first_event = 0;
  std::optional<OpenEnd> open;
  // The device of each stream, into Plan::devices; empty: all on device 0.
  std::vector<uint32_t> devices;
  std::vector<PlanCommand> commands;  // issue order
  std::vector<uint32_t> ranks;        // per node of Region::nodes: longest chain that follows
  std::vector<double> cost_ranks;     // the same in nanoseconds; empty unless ranked by costs

  uint32_t events_of_a_set() const { return num_events + (open ? 2 : 1) * num_streams; }
  // Of the machine.
  uint32_t num_machine_events() const {
    if (num_streams == 1) return 0;
    return (open ? 2 : 1) * events_of_a_set();
  }
  uint32_t machine_stream(uint32_t stream) const {
    return streams.empty() ? stream : streams[stream];
  }
};

struct Schedule {
  std::vector<RegionSchedule> regions;  // by RegionId
  uint32_t num_streams = 1;             // of the machine, over all regions
  uint32_t num_events = 0;
  // Of a schedule for several devices, else empty: their names (0 is the host's CPU), the device of
  // each of the machine's streams, and the device in whose memory each value is, by ValueId.
  std::vector<std::string> devices;
  std::vector<uint32_t> stream_devices;
  std::vector<uint32_t> value_devices;
  MemoryPlan memory;
};

}  // namespace eddy
