// DAG files: a bare graph as JSON.
//
//   {"nodes": N, "edges": [[from, to], ...], "commands": [name for each node]?,
//    "costs": [seconds for each node]?, "devices": [device, or list of devices, for each node]?}
//
// A device is a string or an integer; naming it creates it: 0 and "0" are two, and beside 0 the
// other is written with its quotes. Keys come in any order, unknown ones are ignored. Edges may be
// redundant or duplicate; they are checked when the graph is built.
//
// Read in one streaming pass, so that a million nodes cost memory for their numbers only.
// Errors (invalid argument, one line): JSON that does not parse, with line and column; a missing,
// repeated or misshapen key; a list of the wrong length; an id, cost or device that is none, with
// its index; more nodes or edges than the limits allow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/analysis/dag.h"
#include "graph/base/status.h"
#include "graph/schedule/streams/stream_assignment.h"

namespace eddy {

struct DagFile {
  uint32_t num_nodes = 0;
  std::vector<Edge> edges;  // as written: not yet checked for range, cycles and duplicates

  // Each empty, or one entry for each node.
  std::vector<uint32_t> commands;  // indices into command_names
  std::vector<double> costs;       // finite, >= 0
  std::vector<uint32_t> devices;   // indices into device_names; the first device of each node
  std::vector<NodeDevice> further_devices;  // sorted; the others
  std::vector<NodeDevice> listed_devices;   // the same by node, as the file lists them

  std::vector<std::string> command_names;
  std::vector<std::string> device_names;
};

struct DagFileLimits {
  uint32_t max_nodes = 10'000'000;
  uint32_t max_edges = 200'000'000;
};

Result<DagFile> parse_dag_file(std::string_view json, const DagFileLimits& limits = {});

}  // namespace eddy
