// FluidMachine: one device as the fluid model sees it: shared throughput, one serial host, and
// what it costs to order streams.
//
// Two kinds are described by the same numbers:
//
//   a GPU   `num_units` multiprocessors shared by all streams; `host` costs are serial, in the
//           one thread that issues; `stream` costs pass in a stream between its kernels
//   a CPU   `num_units` workers, one a kernel; `num_workers` > 0: streams are strands
//           which workers pick up: issuing is free, what a strand does costs `stream` time, and
//           a strand goes to an idle worker, which takes handing_ns of the strand that sets it off
//           and then handoff_ns; waking_ns and wake_ns where the worker has idled for spin_ns
//
// All times in nanoseconds, finite and >= 0. As JSON (unknown keys are ignored, absent ones are
// 0 unless a default stands below):
//
//   {"name": "h200", "units": 132, "flops_per_ns": 5e4, "bytes_per_ns": 4800, "shortest_ns": 850,
//    "unit_bytes_per_ns": 60?, "elements_per_unit": 2048?,
//    "host": {"launch_ns": 4200, "record_ns": ..., "wait_ns": ..., "decision_ns": ...},
//    "stream": {"launch_ns": ..., "record_ns": ..., "wait_ns": ..., "fork_ns": ...},
//    "latency_ns": ..., "handoff_ns": ..., "readback_ns": ..., "run_ns": ..., "streams": 16?}
//
// Errors (invalid argument, one line): JSON that does not parse, a missing or negative number.
// Threads: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/base/status.h"

namespace eddy {

// What a kernel asks of the machine. Its rate is 1 when it runs alone.
struct FluidDemand {
  double solo_ns = 0;    // alone on the machine
  double units = 1;      // of the machine's, kept busy at rate 1
  double bandwidth = 0;  // share of the machine's, in [0, 1], at rate 1
  bool operator==(const FluidDemand&) const = default;
};

struct FluidMachine {
  struct Costs {
    double launch_ns = 0;
    double record_ns = 0;
    double wait_ns = 0;
    double fork_ns = 0;      // of the record that wakes a stream at rest; `stream` only
    double decision_ns = 0;  // what follows a predicate; `host`: and what asks for it
  };

  std::string name = "cpu";
  double num_units = 1;
  uint32_t num_workers = 0;  // 0: streams need no worker
  uint32_t max_streams = 0;  // that plans should try; 0: as many as workers, or 16

  Costs host;    // serial
  Costs stream;  // in the stream itself

  double latency_ns = 0;  // from a launch to the earliest start
  double handing_ns = 0;  // what handing a stream to an idle worker takes of the giver, and
  double handoff_ns = 0;  // from there, or a record, to the start of the stream that waits
  double waking_ns = 0;   // the same two where the worker sleeps
  double wake_ns = 0;
  double spin_ns = 0;      // workers idle for less than this are awake
  double pickup_ns = 0;    // a worker that has nothing else takes the next strand
  double readback_ns = 0;  // from the end of a decision until the issuer knows it
  double run_ns = 0;       // a run of one stream, beside its kernels
  // With several streams: from the call to the first command and from the last one until the caller
  // knows, together; more where the run takes longer than caller_spin_ns and he sleeps.
  double start_ns = 0;
  double sleeping_start_ns = 0;
  double caller_spin_ns = 0;

  // For kernels without measurements (fluid_demand()).
  double flops_per_ns = 0;          // of the whole machine; 0: unknown
  double bytes_per_ns = 0;          // likewise
  double unit_bytes_per_ns = 0;     // what one unit can draw; 0: its share of twice bytes_per_ns
  double shortest_ns = 0;           // no kernel takes less
  double elements_per_unit = 2048;  // outputs that keep a unit busy
};

// This machine's CPU with `num_workers` workers, by figures of tests/bench/predict_bench.
FluidMachine cpu_machine(uint32_t num_workers);

Result<FluidMachine> parse_fluid_machine(std::string_view json);

// A kernel by roofline: no faster than its operations, its bytes or the shortest kernel allow, on
// as many units as its outputs fill. Needs flops_per_ns and bytes_per_ns.
FluidDemand fluid_demand(const FluidMachine& machine, double flops, double bytes,
                         double num_outputs);

}  // namespace eddy
