// AllReduce, AllGather, ReduceScatter, Broadcast, AllToAll, Exchange, Send, Recv, Barrier, Rank;
// and Agree, a mark on a decision, which communicates where its ranks meet
// (graph/ranks/agree_decisions.h).
//
// may_wait of an operator of this domain is what tells passes that it has effects
// (graph/ir/node_facts.h); Rank has none.
#include "ops/schema/eddy/collective.h"

#include <algorithm>
#include <array>
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr std::array<std::string_view, 10> kKinds = {
    "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AllToAll",
    "Exchange",  "Send",      "Recv",          "Barrier",   "Rank"};
constexpr std::array<std::string_view, 7> kReductions = {"sum", "min", "max",    "prod",
                                                         "and", "or",  "average"};
// What moves is bytes; strings have none that another process could read.
constexpr TypeSet kMovedTypes = kNumericTypes | kBoolType | kFloat8Types | kSmallIntTypes;

Status read_group(const Attributes& attributes, Collective& collective) {
  const std::span<const int64_t> group = attributes.get_ints("group");
  std::vector<int64_t> sorted(group.begin(), group.end());
  std::ranges::sort(sorted);
  if (!sorted.empty() && sorted.front() < 0) {
    return invalid_argument("attribute 'group' has the rank " + std::to_string(sorted.front()) +
                            "; ranks count from 0");
  }
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    return invalid_argument("attribute 'group' has rank " + std::to_string(*twice) + " twice");
  }
  const int64_t size = attributes.get_int("size", 0);
  const auto members = static_cast<int64_t>(group.size());
  if (size < 0) {
    return invalid_argument("attribute 'size' is " + std::to_string(size) +
                            "; it is the number of ranks");
  }
  if (size > 0 && members > 0 && size != members) {
    return invalid_argument("attribute 'size' is " + std::to_string(size) + ", but 'group' has " +
                            std::to_string(members) + " ranks");
  }
  collective.group.assign(group.begin(), group.end());
  collective.num_ranks = std::max(size, members);
  return Status::ok();
}

Status check_root(const Collective& collective) {
  const int64_t root = collective.root;
  if (root < 0) {
    return invalid_argument("attribute 'root' is " + std::to_string(root) + "; ranks count from 0");
  }
  const bool is_outside = collective.group.empty()
                              ? collective.num_ranks > 0 && root >= collective.num_ranks
                              : std::ranges::count(collective.group, root) == 0;
  if (!is_outside) return Status::ok();
  return invalid_argument("attribute 'root' is rank " + std::to_string(root) +
                          ", which is not in the group");
}

Status read_exchange(const Attributes& attributes, Collective& collective) {
  collective.place = attributes.get_int("place", -1);
  const std::span<const int64_t> from = attributes.get_ints("from"), to = attributes.get_ints("to");
  if (from.size() != to.size()) {
    return invalid_argument("attribute 'from' has " + std::to_string(from.size()) +
                            " numbers and 'to' has " + std::to_string(to.size()) +
                            "; each has the box of every rank");
  }
  const int64_t n = collective.num_ranks;
  if (n == 0) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(collective.from, read_boxes("from", from, static_cast<size_t>(n)));
  EDDY_ASSIGN_OR_RETURN(collective.to, read_boxes("to", to, static_cast<size_t>(n)));
  if (collective.place >= -1 && collective.place < n) return Status::ok();
  return invalid_argument("attribute 'place' is " + std::to_string(collective.place) +
                          "; it is one of " + std::to_string(n) + " in the group");
}

// The collective of a rule's operator, whose attributes the rule has been given.
template <CollectiveKind kind>
Result<Collective> read(const InferContext& context) {
  return read_collective(kKinds[static_cast<size_t>(kind)], context.attributes());
}

Status check_reduced_type(const Collective& collective, ElementType element) {
  const RankReduction reduction = collective.reduction;
  const bool is_logical = reduction == RankReduction::kAnd || reduction == RankReduction::kOr;
  const TypeSet types = is_logical                             ? kBoolType
                        : reduction == RankReduction::kAverage ? kFloatTypes
                                                               : kNumericTypes;
  if (types.contains(element)) return Status::ok();
  const std::string_view takes = is_logical                             ? "bool"
                                 : reduction == RankReduction::kAverage ? "floats"
                                                                        : "numbers";
  return invalid_argument("reduction '" + std::string(kReductions[static_cast<size_t>(reduction)]) +
                          "' takes " + std::string(takes) + ", not " +
                          std::string(element_type_name(element)));
}

// Where `axis` is; -1 where the input has no known rank.
Result<int> find_axis(const Collective& collective, const TensorType& x) {
  if (!x.is_ranked) return -1;
  return normalize_axis(collective.axis, x.dims.rank());
}

// Fails where the axis surely can't be cut into one equal part for each rank.
Status check_parts(const Collective& collective, int64_t dim, int axis) {
  if (dim < 0 || collective.num_ranks == 0 || dim % collective.num_ranks == 0) return Status::ok();
  return invalid_argument("axis " + std::to_string(axis) + " of size " + std::to_string(dim) +
                          " can't be cut into equal parts for " +
                          std::to_string(collective.num_ranks) + " ranks");
}

Status infer_all_reduce(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const Collective c, read<CollectiveKind::kAllReduce>(context));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_RETURN_IF_ERROR(check_reduced_type(c, x->element));
  return infer_same_as_input(context);
}

Status infer_all_gather(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const Collective c, read<CollectiveKind::kAllGather>(context));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const int axis, find_axis(c, *x));
  TensorType y = *x;
  if (axis >= 0) {
    int64_t dim = y.dims[axis];
    const bool is_known = dim >= 0 && c.num_ranks > 0;
    if (is_known && __builtin_mul_overflow(dim, c.num_ranks, &dim)) {
      return invalid_argument("the parts of " + std::to_string(c.num_ranks) +
                              " ranks are together too long for axis " + std::to_string(axis));
    }
    y.dims[axis] = is_known ? dim : kUnknownDim;
    return set_checked_output(context, 0, y.element, y.dims);
  }
  context.set_output(0, y);
  return Status::ok();
}

Status infer_reduce_scatter(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const Collective c, read<CollectiveKind::kReduceScatter>(context));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_RETURN_IF_ERROR(check_reduced_type(c, x->element));
  EDDY_ASSIGN_OR_RETURN(const int axis, find_axis(c, *x));
  TensorType y = *x;
  if (axis >= 0) {
    EDDY_RETURN_IF_ERROR(check_parts(c, x->dims[axis], axis));
    const bool is_known = x->dims[axis] >= 0 && c.num_ranks > 0;
    y.dims[axis] = is_known ? x->dims[axis] / c.num_ranks : kUnknownDim;
  }
  context.set_output(0, y);
  return Status::ok();
}

Status infer_broadcast_from_root(InferContext& context) {
  EDDY_RETURN_IF_ERROR(read<CollectiveKind::kBroadcast>(context).status());
  return infer_same_as_input(context);
}

Status infer_all_to_all(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const Collective c, read<CollectiveKind::kAllToAll>(context));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const int axis, find_axis(c, *x));
  if (axis >= 0) EDDY_RETURN_IF_ERROR(check_parts(c, x->dims[axis], axis));
  return infer_same_as_input(context);
}

// Fails where x surely is not the box that the rank has.
Status check_box(const Collective& c, const TensorType& x) {
  if (c.from.empty() || !x.is_ranked) return Status::ok();
  const size_t rank = c.from[0].sizes.size();
  if (static_cast<size_t>(x.dims.rank()) != rank) {
    return invalid_argument("attributes 'from' and 'to' have boxes of " + std::to_string(rank) +
                            " axes, but the input is " + to_string(x));
  }
  if (c.place < 0) return Status::ok();
  const std::vector<int64_t>& sizes = c.from[static_cast<size_t>(c.place)].sizes;
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t dim = x.dims[static_cast<int>(axis)];
    if (dim < 0 || dim == sizes[axis]) continue;
    return invalid_argument("axis " + std::to_string(axis) + " of the input is " +
                            std::to_string(dim) + ", but place " + std::to_string(c.place) +
                            " of the group has " + std::to_string(sizes[axis]) +
                            " there (attribute 'from')");
  }
  return Status::ok();
}

Status infer_exchange(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const Collective c, read<CollectiveKind::kExchange>(context));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_RETURN_IF_ERROR(check_box(c, *x));
  TensorType y = *x;
  if (c.to.empty()) {
    for (int axis = 0; y.is_ranked && axis < y.dims.rank(); ++axis) y.dims[axis] = kUnknownDim;
    context.set_output(0, y);
    return Status::ok();
  }
  std::vector<int64_t> dims = c.to[static_cast<size_t>(std::max<int64_t>(c.place, 0))].sizes;
  for (const Box& box : c.to) {
    for (size_t axis = 0; c.place < 0 && axis < dims.size(); ++axis) {
      if (box.sizes[axis] != dims[axis]) dims[axis] = kUnknownDim;
    }
  }
  return set_checked_output(context, 0, y.element, Dims(dims));
}

template <CollectiveKind kind>
Status infer_flag(InferContext& context) {
  EDDY_RETURN_IF_ERROR(read<kind>(context).status());
  context.set_output(0, TensorType(ElementType::kBool, Dims()));
  return Status::ok();
}

Status infer_recv(InferContext& context) {
  EDDY_RETURN_IF_ERROR(read<CollectiveKind::kRecv>(context).status());
  const auto& type = std::get<ValueType>(*context.attributes().find_or_null("type"));
  if (!type.is_static_tensor() || !kMovedTypes.contains(type.tensor.element)) {
    return invalid_argument(
        "attribute 'type' of Recv must be a tensor of numbers or bools whose "
        "sizes are all known");
  }
  return set_checked_output(context, 0, type.tensor.element, type.tensor.dims);
}

Status infer_rank(InferContext& context) {
  EDDY_RETURN_IF_ERROR(read<CollectiveKind::kRank>(context).status());
  context.set_output(0, TensorType(ElementType::kInt64, Dims()));
  return Status::ok();
}

Status infer_agree(InferContext& context) {
  const std::string_view how = context.attributes().get_string("how", "");
  if (how != "all" && how != "any" && how != "root") {
    return invalid_argument("attribute 'how' of Agree is '" + std::string(how) +
                            "'; it must be all, any or root");
  }
  const Result<Collective> group = read_collective("Broadcast", context.attributes());
  EDDY_RETURN_IF_ERROR(group.status());
  if (how != "root" && context.attributes().has("root")) {
    return invalid_argument("attribute 'root' of Agree is for ranks that agree by how = root");
  }
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  if (x->is_ranked && x->dims.count().value_or(1) != 1) {
    return invalid_argument("Agree takes a decision of one element, not " + to_string(*x));
  }
  return infer_same_as_input(context);
}

// What it waits for and does not read, so that its place in an order can be said
// (graph/ranks/tie_channels.h).
FormalInput after() { return in("after", kAllTypes, InputFlag::kVariadic | InputFlag::kOptional); }

// One that works on parts of a value: over a group, and mostly along an axis.
OpDef over_group(const char* name, TypeSet types, InferFunction infer,
                 std::vector<FormalAttribute> attributes) {
  attributes.push_back(attribute("group", kInts));
  attributes.push_back(attribute("size", kInt));
  attributes.push_back(attribute("channel", kInt));
  return {.name = name,
          .domain = "eddy",
          .inputs = {in("input", types), after()},
          .attributes = std::move(attributes),
          .infer = std::move(infer),
          .may_wait = true};
}

}  // namespace

Result<Collective> read_collective(std::string_view op, const Attributes& attributes) {
  const auto kind = std::ranges::find(kKinds, op);
  EDDY_CHECK(kind != kKinds.end()) << op << " does not communicate";
  Collective result;
  result.kind = static_cast<CollectiveKind>(kind - kKinds.begin());
  EDDY_RETURN_IF_ERROR(read_group(attributes, result));
  result.root = attributes.get_int("root", result.group.empty() ? 0 : result.group[0]);
  EDDY_RETURN_IF_ERROR(check_root(result));
  result.axis = attributes.get_int("axis", 0);
  result.channel = attributes.get_int("channel", 0);
  if (result.channel < 0) {
    return invalid_argument("attribute 'channel' is " + std::to_string(result.channel) +
                            "; channels count from 0");
  }
  const std::string_view reduction = attributes.get_string("reduction", "sum");
  const auto found = std::ranges::find(kReductions, reduction);
  if (found == kReductions.end()) {
    return invalid_argument("attribute 'reduction' is '" + std::string(reduction) +
                            "'; it is sum, min, max, prod, and, or or average");
  }
  result.reduction = static_cast<RankReduction>(found - kReductions.begin());
  const std::string_view order = attributes.get_string("order", "rank");
  if (order != "rank" && order != "any") {
    return invalid_argument("attribute 'order' is '" + std::string(order) + "'; it is rank or any");
  }
  result.in_rank_order = order == "rank";
  if (result.kind == CollectiveKind::kExchange) {
    EDDY_RETURN_IF_ERROR(read_exchange(attributes, result));
  }
  return result;
}

Status add_collective_schemas(OpTable& table) {
  const TypeSet reduced = kNumericTypes | kBoolType;
  const FormalAttribute axis = attribute("axis", kInt), root = attribute("root", kInt);
  const FormalAttribute reduction = attribute("reduction", kString);
  const FormalAttribute order = attribute("order", kString), channel = attribute("channel", kInt);
  OpDef barrier = over_group("Barrier", kAllTypes, infer_flag<CollectiveKind::kBarrier>, {});
  barrier.inputs = {after()};
  return add_schemas(
      table,
      {over_group("AllReduce", reduced, infer_all_reduce, {reduction, order}),
       over_group("AllGather", kMovedTypes, infer_all_gather, {axis}),
       over_group("ReduceScatter", reduced, infer_reduce_scatter, {axis, reduction, order}),
       over_group("Broadcast", kMovedTypes, infer_broadcast_from_root, {root}),
       over_group("AllToAll", kMovedTypes, infer_all_to_all, {axis}),
       over_group("Exchange", kNumericTypes | kBoolType | kFloat8Types, infer_exchange,
                  {attribute("from", kInts, true), attribute("to", kInts, true),
                   attribute("place", kInt)}),
       std::move(barrier),
       {.name = "Send",
        .domain = "eddy",
        .inputs = {in("input", kMovedTypes), after()},
        .attributes = {attribute("root", kInt, true), channel},
        .infer = infer_flag<CollectiveKind::kSend>,
        .may_wait = true},
       {.name = "Recv",
        .domain = "eddy",
        .inputs = {after()},
        .attributes = {attribute("root", kInt, true), attribute("type", kType, true), channel},
        .infer = infer_recv,
        .may_wait = true},
       {.name = "Agree",
        .domain = "eddy",
        .inputs = {in("input", kBoolType | TypeSet{ElementType::kInt32, ElementType::kInt64})},
        .attributes = {attribute("how", kString, true), attribute("group", kInts), root},
        .infer = infer_agree,
        .may_wait = true},
       {.name = "Rank",
        .domain = "eddy",
        .attributes = {attribute("group", kInts)},
        .infer = infer_rank}});
}

}  // namespace eddy
