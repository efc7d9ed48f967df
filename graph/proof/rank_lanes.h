// RankLanes: the sequences in which operations of several ranks match.
//
// A lane is a channel's collectives, or its messages from one rank to another. What stands on a
// lane in one region of one rank is a chain of tokens: operations, and loops or cases that hold
// some.
#pragma once

#include <string>
#include <vector>

#include "graph/proof/rank_skeleton.h"

namespace eddy {

struct RankLanes {
  struct Lane {
    RankSkeleton::Channel channel;
    uint32_t from = RankSkeleton::kNone;  // of messages
    uint32_t to = RankSkeleton::kNone;
    auto operator<=>(const Lane&) const = default;
  };
  struct Token {
    uint32_t lane;
    uint32_t first;  // vertices: of an operation its post, twice; of others the entry and exit
    uint32_t last;
  };

  std::vector<Lane> lanes;
  std::vector<std::vector<uint32_t>> of_post;              // by rank and post
  std::vector<std::vector<std::vector<uint32_t>>> inside;  // by rank and control; ascending
};

// Skeletons must not be spoilt.
RankLanes find_lanes(const std::vector<const RankSkeleton*>& skeletons);

// By lane, then in the order of vertices.
std::vector<RankLanes::Token> tokens_of(const RankSkeleton& skeleton, uint32_t region,
                                        const RankLanes& lanes, uint32_t rank);

// Whether vertex `v` is an end of the vertex `operand`: a done or leave.
inline bool is_closing(const RankSkeleton::Vertex& vertex) {
  return vertex.op == RankSkeleton::Op::kDone || vertex.op == RankSkeleton::Op::kLeave;
}

// The name of the operation, loop or case of a post or entry.
const std::string& path_of(const RankSkeleton& skeleton, const RankSkeleton::Vertex& vertex);

// "0, 2"; of many the first.
std::string list_ranks(const std::vector<uint32_t>& ranks);

// "channel 1 of ranks 0, 2", and whom messages go from and to.
std::string describe(const RankLanes::Lane& lane);

// Appends what is wrong with this rank's chains alone: tokens of a lane out of order, a region that
// ends before an operation does, a pipelined loop whose iterations overtake each other.
void check_chains(const RankSkeleton& skeleton, uint32_t rank, const RankLanes& lanes,
                  std::vector<std::string>* violations);

}  // namespace eddy
