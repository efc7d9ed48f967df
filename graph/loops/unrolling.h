// Unrolling: how many iterations of a loop one round of its conditional node holds.
//
// A round of a WHILE node costs some 4 µs (H200) however little it does. So the body of a loop that
// holds no other loop or branch, and few small kernels, is recorded several times into one round, a
// test behind each:
//
//   WHILE { iteration · test · [iteration · test] · [iteration · test] }
//
// The iterations in brackets are guarded: each of their kernels first reads a word that the test
// before it has written, and does nothing where that is 0. All iterations use the same addresses
// (carried values have homes, device_control.h), so values, counter, progress and the node's handle
// are as the last real iteration left them, with the same bits. Every test sees a fault and the
// limit, and a cancel within 20 µs, as in a body of one iteration: the loop ends then, and reports
// the right one. (README.md, "Why unrolled loops keep their values".)
//
// Cost: a launch that does nothing takes some 1 µs, and behind the last iteration there are as many
// as the round has left. So a round is at most kLaunchesOfARound launches and kMostIterations
// iterations. Whether it pays depends on the loop's trips, so it is measured (loop_choice.h).
//
// Which bodies: why_not_unrolled() says it of the graph. The capture refuses those in which
// anything but a kernel of ours is launched, because nothing else looks at a guard: products and
// convolutions of libraries.
//
// Pure. Cost: O(nodes).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "graph/ir/graph.h"

namespace eddy {

struct Unrolling {
  static constexpr uint32_t kMostIterations = 8;
  static constexpr uint32_t kLaunchesOfARound = 32;
  static constexpr uint32_t kMostNodes = 12;  // of an iteration

  // The iterations in one round of a body with that many launches; 1: it is not unrolled.
  static constexpr uint32_t iterations_a_round(uint32_t num_launches) {
    return std::clamp(kLaunchesOfARound / std::max(num_launches, 1u), 1u, kMostIterations);
  }
};

static_assert(Unrolling::iterations_a_round(Unrolling::kMostNodes) > 1,
              "what may be unrolled is worth a second iteration");

// Why the body of a loop that the device drives is recorded once; empty if it may be recorded
// several times.
std::string why_not_unrolled(const Graph& graph, NodeId loop);

// The same for an outermost loop; empty if its body or that of a loop inside may be recorded
// several times.
std::string why_nothing_unrolled(const Graph& graph, NodeId outermost);

}  // namespace eddy
