// Skeletons in words, as violations and plans say them.
//
//   total (AllReduce sum float[4]), on channel 0 of ranks 0, 1
//   loop halve: goes on while any rank would, agreed on by ranks 0, 1
//     after:
//       ask (message float[2]), on channel 3 of ranks 0, 1 from 0 to 1
//
// One line for each operation, loop and case in an order of their starts; regions are a loop's
// `before` and `after`, or branches. The same skeleton gives the same text. It must not be spoilt
// (find_spoilt, rank_proof.h). Threads: pure. Cost: O(size of the text).
#pragma once

#include <string>

#include "graph/proof/rank_skeleton.h"

namespace eddy {

std::string skeleton_text(const RankSkeleton& skeleton);

// "channel 1 of ranks 0, 2", and whom a message goes from and to.
std::string channel_text(const RankSkeleton& skeleton, const RankSkeleton::Post& post);

// "total (AllReduce sum float[4])", "the loop halve": of a post or entry.
std::string operation_text(const RankSkeleton& skeleton, const RankSkeleton::Vertex& vertex);

}  // namespace eddy
