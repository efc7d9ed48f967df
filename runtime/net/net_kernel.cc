#include "runtime/net/net_kernel.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "ops/reference/eddy/collective.h"
#include "runtime/net/rank_session.h"

namespace eddy {
namespace {

struct AloneState : KernelState {
  Collective collective;
  size_t place = 0;  // Rank's answer
};

bool run_alone(const KernelArgs& args) {
  const auto& state = *static_cast<const AloneState*>(args.state);
  const bool has_input = args.num_inputs > 0 && state.collective.kind != CollectiveKind::kBarrier;
  const TensorView input = has_input ? args.inputs[0] : TensorView();
  if (state.collective.kind == CollectiveKind::kRank) {
    *args.outputs[0].mutable_as<int64_t>() = static_cast<int64_t>(state.place);
    return true;
  }
  Status status = run_collective(state.collective, {.inputs = {&input, 1}}, args.outputs[0]);
  return status.is_ok() || args.fail(std::move(status));
}

CallOutcome start_collective(const KernelArgs& args, PendingCall& call) {
  auto* const run = static_cast<RankRun*>(args.stream);
  if (run == nullptr) {
    args.fail(internal_error("a node communicates in a run without ranks"));
    return CallOutcome::kFailed;
  }
  return run->start(*static_cast<const BoundCollective*>(args.state), args, call);
}

bool is_message(const Collective& c) {
  return c.kind == CollectiveKind::kSend || c.kind == CollectiveKind::kRecv;
}

// The ranks in the order of their parts.
std::vector<uint32_t> members(const Collective& c, const World& world) {
  if (is_message(c)) {
    const auto other = static_cast<uint32_t>(c.root);
    return {std::min(world.rank(), other), std::max(world.rank(), other)};
  }
  std::vector<uint32_t> ranks(c.group.begin(), c.group.end());
  if (!c.group.empty()) return ranks;
  ranks.resize(world.num_ranks());
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

uint32_t index_of(std::span<const uint32_t> ranks, uint32_t rank) {
  return static_cast<uint32_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

bool has_known_shape(const KernelInit& init) {
  return init.inputs.empty() || init.inputs[0].is_static_tensor();
}

}  // namespace

bool is_collective(const OpDef& op) {
  constexpr std::array<std::string_view, 10> kNames = {
      "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AllToAll",
      "Exchange",  "Send",      "Recv",          "Barrier",   "Rank"};
  return op.domain == "eddy" && std::ranges::find(kNames, op.name) != kNames.end();
}

Result<BoundKernel> bind_collective(RankSession& session, const KernelInit& init) {
  EDDY_ASSIGN_OR_RETURN(const Collective c, read_collective(init.op.name, init.attributes));
  const World& world = session.world();
  const std::vector<uint32_t> ranks = members(c, world);
  const uint32_t position = index_of(ranks, world.rank());
  if (position == ranks.size()) {
    return invalid_argument("rank " + std::to_string(world.rank()) + " is not in its group");
  }
  BoundKernel kernel;
  kernel.provider = "net";
  if (ranks.size() == 1 || c.kind == CollectiveKind::kRank) {
    auto state = std::make_unique<AloneState>();
    state->collective = c;
    state->place = position;
    kernel.run = run_alone;
    kernel.state = std::move(state);
    return kernel;
  }
  auto state = std::make_unique<BoundCollective>();
  state->session = &session;
  state->name = init.node_name;
  state->collective = c;
  std::vector<uint32_t> ascending = ranks;
  std::ranges::sort(ascending);
  for (const uint32_t rank : ranks) state->places.by_position.push_back(index_of(ascending, rank));
  state->places.own = position;
  if (c.kind == CollectiveKind::kExchange) {
    EDDY_ASSIGN_OR_RETURN(auto pieces, exchange_pieces(c.from, c.to));
    state->places.pieces = std::make_shared<const std::vector<ExchangePiece>>(std::move(pieces));
  }
  if (c.kind == CollectiveKind::kBroadcast || is_message(c)) {
    state->places.root = index_of(ascending, static_cast<uint32_t>(c.root));
  }
  if (is_message(c)) {
    const auto other = static_cast<uint32_t>(c.root);
    const bool sends = c.kind == CollectiveKind::kSend;
    state->from = sends ? world.rank() : other;
    state->to = sends ? other : world.rank();
  }
  // Both sides of a message have one known shape, which was proved.
  const bool may_differ = !has_known_shape(init) || session.options().check_ranks;
  state->checks = may_differ && !is_message(c) && c.kind != CollectiveKind::kBarrier;
  state->channel = session.add_channel({ascending, static_cast<uint32_t>(c.channel)});
  kernel.start = start_collective;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace eddy
