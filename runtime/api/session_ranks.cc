#include "runtime/api/session_ranks.h"

#include <algorithm>
#include <array>
#include <optional>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "ops/cpu/cpu_kernels.h"
#include "runtime/api/program_fingerprint.h"
#include "runtime/api/version.h"
#include "runtime/cpu/worker_pool.h"
#include "runtime/net/net_kernel.h"
#include "runtime/net/rank_facts.h"
#include "runtime/net/rank_graph.h"
#include "runtime/net/rank_session.h"
#include "runtime/net/world.h"

namespace eddy {
namespace {

// Of the inputs that are to be equal on all ranks: their bytes are compared.
Status check_replicated(const Graph& graph, const RankWorld& world, bool has_one_device) {
  EDDY_DCHECK(world.replicated.size() == graph.inputs().size()) << "of other inputs";
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (!world.replicated[i]) continue;
    const ValueInfo& input = graph.value(graph.inputs()[i]);
    const bool is_numbers = !input.type.is_sequence() && !input.type.is_optional() &&
                            input.type.tensor.element != ElementType::kString;
    if (is_numbers && has_one_device) continue;
    return unsupported("input '" + input.name + "' can't be declared equal on all ranks: only " +
                       "tensors of numbers can, in sessions of the CPU alone");
  }
  return Status::ok();
}

bool needs_equal_shapes(const OpDef& op) {
  constexpr std::array<std::string_view, 5> kNames = {"AllReduce", "AllGather", "ReduceScatter",
                                                      "Broadcast", "AllToAll"};
  return is_collective(op) && std::ranges::find(kNames, op.name) != kNames.end();
}

using SharedShape = SessionCore::SharedShape;

// None: no input's shape decides it.
std::optional<SharedShape::Dim> find_dim(const SessionCore& core, int64_t dim) {
  if (dim >= 0) return SharedShape::Dim{.size = dim};
  for (size_t i = 0; i < core.inputs.size() && dim != kUnknownDim; ++i) {
    const ValueType& type = core.inputs[i].type;
    if (!type.is_tensor() || !type.tensor.is_ranked) continue;
    for (int axis = 0; axis < type.tensor.dims.rank(); ++axis) {
      if (type.tensor.dims[axis] == dim) return SharedShape::Dim{dim, i, axis};
    }
  }
  return std::nullopt;
}

std::optional<SharedShape> find_shared_shape(const SessionCore& core, NodeId id) {
  const Graph& graph = core.graph();
  const ValueType& type = graph.value(graph.node(id).inputs[0]).type;
  if (!type.is_tensor() || !type.tensor.is_ranked || type.is_static_tensor()) return std::nullopt;
  SharedShape shape{graph.path(id), {}};
  for (int axis = 0; axis < type.tensor.dims.rank(); ++axis) {
    const std::optional<SharedShape::Dim> dim = find_dim(core, type.tensor.dims[axis]);
    if (!dim) return std::nullopt;
    shape.dims.push_back(*dim);
  }
  return shape;
}

// Whether a run gets there, whatever its branches and loops decide.
bool runs_always(const Graph& graph, RegionId region) {
  while (region != Graph::kRoot) {
    if (role(graph, region) != RegionRole::kBefore) return false;
    region = graph.node(graph.region(region).owner).region;
  }
  return true;
}

// Of one graph for all ranks; what may not run at all is looked at when it does.
void find_shared_shapes(SessionCore& core) {
  for (uint32_t n = 0; n < core.graph().num_nodes(); ++n) {
    const Node& node = core.graph().node(NodeId(n));
    if (node.kind != NodeKind::kExec || !needs_equal_shapes(*node.op)) continue;
    if (!runs_always(core.graph(), node.region)) continue;
    auto shape = find_shared_shape(core, NodeId(n));
    if (shape) core.shared_shapes.push_back(std::move(*shape));
  }
}

}  // namespace

bool waits_for_ranks(const SessionCore& core) {
  return core.ranks != nullptr && has_communication(core.graph());
}

Result<Graph> prepare_ranks(SessionCore& core, Graph graph, ForRanks& ranks) {
  EDDY_ASSIGN_OR_RETURN(ranks.world, rank_world_of(core.options.ranks, graph));
  EDDY_RETURN_IF_ERROR(check_replicated(graph, ranks.world, core.has_one_device()));
  // Runs end before the threads go.
  const WorkerPool* const workers =
      core.host().needs_polling() ? nullptr : core.threads->workers().get();
  core.ranks->set_host(core.host().allocator(),
                       [workers] { return workers != nullptr && workers->has_waiting(); });
  ranks.graph = simplified_fingerprint(ranks.graph, graph);
  return prepare_for_ranks(std::move(graph), core.library.ops(), ranks.world);
}

Status agree_with_ranks(SessionCore& core, const ForRanks& ranks) {
  const RankOptions& options = core.options.ranks;
  RankFacts facts;
  facts.version = kVersion;
  facts.carrier = options.world->carrier();
  facts.options = std::to_string(options.num_run_slots) + " run slots";
  if (options.check_ranks) facts.options += ", checked ranks";
  for (const std::string& name : options.replicated) facts.options += ", equal " + name;
  facts.processor = describe_cpu_kernels();
  if (options.is_one_graph) {
    facts.graph = ranks.graph.text();
    find_shared_shapes(core);
  } else {
    facts.options += ", graphs that may differ";
  }
  EDDY_ASSIGN_OR_RETURN(facts.skeleton,
                        skeleton_of(core.graph(), core.plan().program, ranks.world));
  const auto check = [&core] { return core.options.check ? core.options.check() : Status::ok(); };
  EDDY_RETURN_IF_ERROR(core.ranks->agree(facts, check));
  core.poll_ranks();
  return Status::ok();
}

}  // namespace eddy
