// Collective: what an operator of domain `eddy` that communicates between ranks says of itself.
//
//   EDDY_ASSIGN_OR_RETURN(const Collective c, read_collective("AllReduce", node.attributes));
//
// One reader serves shape rules, the reference (ops/reference/eddy/collective.h) and whatever
// carries the operators out. The attributes and what each operator gives stand in
// graph/io/EDDY_DOMAIN.md.
//
// Errors: invalid_argument in one line that names the attribute: a rank twice or below 0 in
// `group`, `size` unlike `group`, a root outside of it, an unknown reduction or order, boxes that
// are none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/attributes.h"
#include "ops/schema/eddy/exchange.h"

namespace eddy {

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
  kExchange,
  kSend,
  kRecv,
  kBarrier,
  kRank
};
enum class RankReduction : uint8_t { kSum, kMin, kMax, kProd, kAnd, kOr, kAverage };

struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  // The ranks that take part, in the order that parts have; empty: all of the world.
  std::vector<int64_t> group;
  // How many they are; 0: not known before there is a world.
  int64_t num_ranks = 0;
  int64_t root = 0;  // a rank of the world: Broadcast's origin; Send's and Recv's other side
  int64_t axis = 0;  // as given, may count from the end
  int64_t channel = 0;
  RankReduction reduction = RankReduction::kSum;
  // Operands are combined in the order of their ranks, so that bits depend on nothing else.
  bool in_rank_order = true;
  // Of Exchange, by position in the group (exchange.h); empty as long as num_ranks is not known.
  std::vector<Box> from;
  std::vector<Box> to;
  int64_t place = -1;  // the rank's own; -1: not known before there is a world
};

Result<Collective> read_collective(std::string_view op, const Attributes& attributes);

}  // namespace eddy
