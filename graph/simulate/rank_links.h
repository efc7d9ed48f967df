// RankLinks: what an operation between ranks takes, once all of them have come to it.
//
// By a latency and a bandwidth that any two ranks have at once, for the algorithms that MPI has
// (Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH",
// 2005; n ranks, b bytes of an operand, l = ceil(log2 n)):
//
//   AllReduce      2 l latencies, 2 (n-1)/n b bytes     Broadcast   l latencies, l b bytes
//   AllGather      l latencies, (n-1) b bytes           AllToAll    n-1 latencies, (n-1)/n b bytes
//   ReduceScatter  l latencies, (n-1)/n b bytes         Barrier     l latencies
//   Send and Recv  1 latency, b bytes                   others      as AllReduce
//
// or by what was measured: [bytes, ns] of one kind, ascending, in between by lines, beyond the last
// by its bandwidth. As JSON (all keys may be missing):
//
//   {"latency_ns": 500, "bytes_per_ns": 5, "operations": {"AllReduce": [[4, 500], [1024, 800]]}}
//
// Errors (invalid argument, one line): JSON that does not parse, numbers that are none or below 0,
// a bandwidth of 0, sizes that do not ascend. Threads: pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/base/status.h"

namespace eddy {

struct RankLinks {
  // Of two ranks on one machine, about: MPI in shared memory.
  double latency_ns = 500;
  double bytes_per_ns = 5;
  std::map<std::string, std::vector<std::pair<double, double>>> measured = {};  // bytes, ns

  double operation_ns(const std::string& kind, double num_ranks, double bytes) const;
};

Result<RankLinks> parse_rank_links(std::string_view json);

}  // namespace eddy
