// Plan: the immutable result of planning a graph: for each region its streams, the order in which
// nodes are issued, and the records and waits that order streams against each other.
//
// Streams are numbered within a region: stream 0 is the stream of the region's control node (the
// caller's, for the root); the others belong to the region while it runs: they start behind its
// entry, and its exit waits for them. `streams` says which of the machine's streams they are: any
// that are free as long as the region runs, so exclusive branches share them. A node that has
// regions stands in its parent's plan as one launch. Events are numbered within a region; each is
// recorded once and may be waited for several times, later in issue order.
//
// A loop's `after` may be open: its further streams are not waited for at its end, so that the next
// iteration begins while they still run. They go on in order from one iteration to the next, and
// are waited for when the loop ends. What the next iteration must not touch before, its stream 0
// waits for: at the end of the iteration, or within the next. Events then come in two sets, which
// take turns by iteration. A further stream may take references of its own to values that move on
// with the iteration, so that only the taking is waited for, and not what reads them.
//
// The commands and waits alone say what is ordered; everything else is for people.
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

struct RegionPlan {
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

struct Plan {
  std::vector<RegionPlan> regions;  // by RegionId
  uint32_t num_streams = 1;         // of the machine, over all regions
  uint32_t num_events = 0;
  // Of a plan for several devices, else empty: their names (0 is the host's CPU), the device of
  // each of the machine's streams, and the device in whose memory each value is, by ValueId.
  std::vector<std::string> devices;
  std::vector<uint32_t> stream_devices;
  std::vector<uint32_t> value_devices;
  MemoryPlan memory;
  std::string assignment;            // "rank", "matching", "serial": for reports
  std::vector<std::string> notices;  // one line each: why it was planned this way
  bool is_proved =
      false;  // it (prove_plan), or what was recorded of it; a session runs nothing else
};

}  // namespace eddy
