#include "graph/compile/fix_caches.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "graph/base/check.h"
#include "graph/compile/copy_graph.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"
#include "graph/loops/trip_rule.h"

namespace eddy {
namespace {

// Of one element each, without a fault whatever it is.
constexpr auto kElementFunctions = std::to_array<std::string_view>(
    {"Abs", "Add", "Clip", "Div", "Erf", "Exp", "Log", "Max", "Min", "Mul", "Neg", "Relu",
     "Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh", "Where"});

// The axis that grows, counted from the last one, 1, so that broadcasts keep it; its length in the
// round numbered 0, and in the buffer.
struct Growth {
  int from_end = 0;
  int64_t first = 0, full = 0;
  bool operator==(const Growth&) const = default;
};
struct Growing {
  Growth growth;
  bool is_zero_behind = false;
};

struct Cache {
  size_t carried = 0;
  NodeId append;
  Growth growth;
  Dims dims;  // of the buffer
};

struct FixedLoop {
  std::vector<Cache> caches;
  std::map<ValueId, Growing> growing;  // what its nodes make of them
};

bool is_op(const Node& node, std::string_view name) {
  return node.kind == NodeKind::kExec && node.op->domain.empty() && node.op->name == name;
}

// Known only if positive.
int64_t axis_of(const Node& node, int64_t fallback, int rank) {
  const int64_t axis = node.attributes.get_int("axis", fallback);
  return axis < 0 ? axis + rank : axis;
}

class CacheFinder {
 public:
  CacheFinder(const Graph& graph, NodeId loop, const std::vector<uint32_t>& uses,
              const FixCachesOptions& options)
      : graph_(graph), id_(loop), loop_(graph, loop), uses_(uses), options_(options) {}

  // None: it is left alone.
  std::optional<FixedLoop> run() {
    const std::optional<int64_t> rounds = most_rounds();
    if (!rounds || *rounds < 1) return std::nullopt;
    for (size_t k = 0; k < loop_.num_carried(); ++k) {
      const bool is_fixed = graph_.value(loop_.carried()[k]).type.is_static_tensor();
      if (!is_fixed && !add_cache(k, *rounds)) return std::nullopt;
    }
    if (found_.caches.empty()) return std::nullopt;
    for (const NodeId id : loop_.after().nodes) {
      const Node& node = graph_.node(id);
      if (node.kind != NodeKind::kExec || !reads_growing(node)) continue;
      if (!follow(node)) return std::nullopt;
    }
    const bool are_all_known = std::ranges::all_of(found_.growing, [&](const auto& each) {
      return reads_[each.first] == uses_[each.first.index()];
    });
    return are_all_known ? std::optional(std::move(found_)) : std::nullopt;
  }

 private:
  const TensorType& type(ValueId value) const { return graph_.value(value).type.tensor; }

  std::optional<int64_t> most_rounds() const {
    const std::optional<int64_t> limit = at_most(loop_.trip_limit());
    const std::optional<int64_t> bound = at_most(find_trip_rule(graph_, id_).bound);
    return limit && bound ? std::min(*limit, *bound) : limit ? limit : bound;
  }
  // A constant that is no less than the value.
  std::optional<int64_t> at_most(ValueId value) const {
    if (value.is_none()) return std::nullopt;
    const ValueInfo& info = graph_.value(resolve_forwarded(graph_, value));
    if (info.origin == ValueOrigin::kConstant) return constant(info);
    if (info.origin != ValueOrigin::kNodeOutput) return std::nullopt;
    const Node& node = graph_.node(info.producer);
    if (!is_op(node, "Min")) return std::nullopt;
    for (const ValueId input : node.inputs) {
      const ValueInfo& one = graph_.value(input);
      if (one.origin == ValueOrigin::kConstant) return constant(one);
    }
    return std::nullopt;
  }
  std::optional<int64_t> constant(const ValueInfo& info) const {
    const TensorView view = graph_.constant(info.constant).view();
    const bool is_one = view.element == ElementType::kInt64 && view.count() == 1;
    return is_one ? std::optional(*view.as<int64_t>()) : std::nullopt;
  }

  // False: carried value k is none.
  bool add_cache(size_t k, int64_t rounds) {
    const ValueId next = loop_.next()[k];
    const ValueInfo& info = graph_.value(next);
    if (info.origin != ValueOrigin::kNodeOutput || info.region != loop_.after_id()) return false;
    const Node& append = graph_.node(info.producer);
    if (!is_op(append, "Concat") || append.inputs.size() != 2) return false;
    const ValueType& from = graph_.value(loop_.initial()[k]).type;
    const ValueType& row = graph_.value(append.inputs[1]).type;
    const bool is_known = from.is_static_tensor() && row.is_static_tensor() &&
                          from.tensor.element != ElementType::kString;
    if (!is_known || !is_carried_only(k, append)) return false;
    Dims dims = from.tensor.dims;
    const int64_t axis = axis_of(append, 0, dims.rank());
    if (axis < 0 || axis >= dims.rank()) return false;
    const int at = static_cast<int>(axis);
    const int64_t first = std::exchange(dims[at], 1);
    const std::optional<int64_t> row_size = dims.count();
    if (!(row.tensor.dims == dims) || !row_size) return false;
    const auto element_bytes = static_cast<int64_t>(element_size_bytes(from.tensor.element));
    const int64_t most_rows = options_.most_bytes / element_bytes / std::max<int64_t>(*row_size, 1);
    if (first > most_rows || rounds > most_rows - first) return false;
    const Growth growth{dims.rank() - at, first, first + rounds};
    dims[at] = growth.full;
    found_.caches.push_back({k, info.producer, growth, dims});
    found_.growing[next] = {growth, true};
    ++reads_[next];  // by the loop itself
    return true;
  }

  // Handed on by `before` as it is, and read by the append alone.
  bool is_carried_only(size_t k, const Node& append) const {
    const ValueId carried = loop_.carried()[k];
    if (resolve_forwarded(graph_, append.inputs[0]) != carried) return false;
    if (resolve_forwarded(graph_, append.inputs[1]) == carried) return false;
    uint32_t names = 0, reads = 0;
    for (size_t j = 0; j < loop_.num_forwarded(); ++j) {
      if (loop_.forwarded()[j] != carried) continue;
      ++names;
      reads += uses_[loop_.received()[j].index()];
    }
    return names == uses_[carried.index()] && reads == 1;
  }

  bool reads_growing(const Node& node) const {
    return std::ranges::any_of(node.inputs,
                               [&](ValueId input) { return found_.growing.contains(input); });
  }

  // What a node of the round makes of growing values; false: it is not understood.
  bool follow(const Node& node) {
    if (!node.op->domain.empty() || node.outputs.size() != 1) return false;
    for (const ValueId input : node.inputs) {
      if (input.is_none() || !type(input).is_ranked) return false;
      if (found_.growing.contains(input)) ++reads_[input];
    }
    const auto is_named = [&](std::string_view name) { return node.op->name == name; };
    if (std::ranges::any_of(kElementFunctions, is_named)) return elements(node);
    if (is_named("Transpose")) return transpose(node);
    if (is_named("Softmax")) return softmax(node);
    return is_named("MatMul") && product(node);
  }

  void add(const Node& node, const Growth& growth, bool is_zero_behind) {
    found_.growing[node.outputs[0]] = {growth, is_zero_behind};
  }
  bool is_float(ValueId value) const { return kFloatTypes.contains(type(value).element); }

  bool elements(const Node& node) {
    std::optional<Growth> growth;
    for (const ValueId input : node.inputs) {
      const auto found = found_.growing.find(input);
      if (found == found_.growing.end()) continue;
      if (growth && !(*growth == found->second.growth)) return false;
      growth = found->second.growth;
    }
    const auto is_spread = [&](ValueId input) {
      if (found_.growing.contains(input)) return true;
      const Dims& dims = type(input).dims;
      const int at = dims.rank() - growth->from_end;
      return at < 0 || dims[at] == 1;
    };
    if (!std::ranges::all_of(node.inputs, is_spread) || !is_float(node.outputs[0])) return false;
    add(node, *growth, false);
    return true;
  }

  bool transpose(const Node& node) {
    const Growing from = found_.growing.at(node.inputs[0]);
    const int rank = type(node.inputs[0]).dims.rank();
    const std::span<const int64_t> perm = node.attributes.get_ints("perm");
    const int axis = rank - from.growth.from_end;
    for (int to = 0; to < rank; ++to) {
      const int64_t of = perm.empty() ? rank - 1 - to : perm[static_cast<size_t>(to)];
      if (of != axis) continue;
      add(node, {rank - to, from.growth.first, from.growth.full}, from.is_zero_behind);
      return true;
    }
    return false;
  }

  bool softmax(const Node& node) {
    const Growth growth = found_.growing.at(node.inputs[0]).growth;
    const int rank = type(node.inputs[0]).dims.rank();
    if (node.opset_version < 13 || type(node.outputs[0]).element != ElementType::kFloat) {
      return false;
    }
    add(node, growth, rank - axis_of(node, -1, rank) == growth.from_end);
    return true;
  }

  // Rows of the first, columns of the second, or both along what grows.
  bool product(const Node& node) {
    const auto a = found_.growing.find(node.inputs[0]), b = found_.growing.find(node.inputs[1]);
    const bool has_a = a != found_.growing.end(), has_b = b != found_.growing.end();
    if (type(node.inputs[0]).dims.rank() < 2 || type(node.inputs[1]).dims.rank() < 2) return false;
    if (type(node.outputs[0]).element != ElementType::kFloat) return false;
    const auto is_alike = [](const Growth& x, const Growth& y) {
      return x.first == y.first && x.full == y.full;
    };
    if (has_a && has_b) {
      return a->second.growth.from_end == 1 && b->second.growth.from_end == 2 &&
             is_alike(a->second.growth, b->second.growth);
    }
    const Growth growth = (has_a ? a : b)->second.growth;
    if (growth.from_end != (has_a ? 2 : 1)) return false;
    add(node, growth, false);
    return true;
  }

  const Graph& graph_;
  const NodeId id_;
  const LoopView loop_;
  const std::vector<uint32_t>& uses_;
  const FixCachesOptions& options_;
  FixedLoop found_;
  std::map<ValueId, uint32_t> reads_;
};

class CacheFixer : public GraphCopier {
 public:
  CacheFixer(const Graph& source, GraphBuilder& builder, const std::map<NodeId, FixedLoop>& loops,
             const std::string& device)
      : GraphCopier(source, builder), loops_(loops), device_(device) {}

 protected:
  std::vector<std::optional<ValueType>> carried_types(NodeId id) override {
    auto types = GraphCopier::carried_types(id);
    for (size_t k = 0; k < types.size(); ++k) {
      if (cache_or_null(id, k) != nullptr) types[k].reset();
    }
    return types;
  }

  std::vector<Value> initial_values(NodeId id) override {
    std::vector<Value> values = GraphCopier::initial_values(id);
    for (size_t k = 0; k < values.size(); ++k) {
      const Cache* const cache = cache_or_null(id, k);
      if (cache != nullptr) values[k] = buffer(LoopView(source_, id).initial()[k], *cache);
    }
    return values;
  }

  void loop(NodeId id) override {
    const auto found = loops_.find(id);
    found == loops_.end() ? GraphCopier::loop(id) : fixed(id, found->second);
  }

  void exec(NodeId id) override {
    const Node& node = source_.node(id);
    if (round_.loop == nullptr || node.region != round_.region) return copy_exec(id);
    for (const Cache& cache : round_.loop->caches) {
      if (cache.append == id) return append(node, cache);
    }
    std::vector<Value> inputs = values(node.inputs);
    const auto growth = [&](size_t i) {
      const auto found = round_.loop->growing.find(node.inputs[i]);
      return found == round_.loop->growing.end() ? nullptr : &found->second;
    };
    if (is_op(node, "Softmax") && growth(0) != nullptr) {
      const Growing& made = round_.loop->growing.at(node.outputs[0]);
      if (made.is_zero_behind) {
        inputs[0] = within(made.growth, inputs[0], -std::numeric_limits<float>::infinity());
      }
    } else if (is_op(node, "MatMul") && growth(0) != nullptr && growth(1) != nullptr) {
      for (const size_t i : {size_t{0}, size_t{1}}) {
        if (!growth(i)->is_zero_behind) inputs[i] = within(growth(i)->growth, inputs[i], 0);
      }
    }
    copy_exec(id, inputs, node.device);
  }

 private:
  // The round that is being built.
  struct Round {
    const FixedLoop* loop = nullptr;
    RegionId region;
    Value count;
    std::map<std::array<int64_t, 3>, Value> masks = {};
  };

  void fixed(NodeId id, const FixedLoop& plan) {
    const LoopView loop(source_, id);
    const Round around = round_;
    Value count;
    const CarriedToo counter{
        .initial = {builder_.scalar(int64_t{0})},
        .begin =
            [&](RegionId region, ValueSpan given) {
              count = given.empty() ? Value() : given[0];
              round_ = region == loop.after_id() ? Round{&plan, region, count} : around;
            },
        .end = [&](RegionId region) -> std::vector<Value> {
          round_ = around;
          if (region == loop.before_id()) return {count};
          return {there("Add", {count, builder_.scalar(int64_t{1})})};
        }};
    const std::vector<Value> rounds = copy_loop(id, counter);
    round_ = around;
    if (rounds.empty()) return;
    for (const Cache& cache : plan.caches) shorten(loop, cache, rounds[0]);
  }

  const Cache* cache_or_null(NodeId loop, size_t carried) const {
    const auto found = loops_.find(loop);
    if (found == loops_.end()) return nullptr;
    const std::vector<Cache>& caches = found->second.caches;
    const auto at = std::ranges::find(caches, carried, &Cache::carried);
    return at == caches.end() ? nullptr : &*at;
  }

  // As long as it will be, zeros behind what there is.
  Value buffer(ValueId initial, const Cache& cache) {
    const Dims dims = cache.dims;
    Dims rest = dims;
    const int axis = dims.rank() - cache.growth.from_end;
    rest[axis] -= cache.growth.first;
    const std::array<uint8_t, 16> zero = {};
    const ElementType element = source_.value(initial).type.tensor.element;
    const Value zeros = builder_.op(
        "Expand", {builder_.constant({const_cast<uint8_t*>(zero.data()), nullptr, 0, element}),
                   builder_.vector(rest.span())});
    if (cache.growth.first == 0) return zeros;
    return builder_.op("Concat", {value(initial), zeros}, {{"axis", int64_t{axis}}});
  }

  void append(const Node& node, const Cache& cache) {
    const Value is_place = mask(cache.growth, "Equal");
    const std::vector<Value> inputs = values(node.inputs);
    define(node.outputs[0], builder_.op("Where", {is_place, inputs[1], inputs[0]}, {},
                                        {.name = node.name,
                                         .device = node.device,
                                         .output_names = {source_.value(node.outputs[0]).name}}));
  }

  // What lies behind the length in this round's end, replaced.
  Value within(const Growth& growth, Value value, float behind) {
    return builder_.op("Where", {mask(growth, "LessOrEqual"), value, builder_.scalar(behind)});
  }

  // By place along the axis, whether its row is the round's, or of it or a round before.
  Value mask(const Growth& growth, const char* comparison) {
    Value& made = round_.masks[{growth.from_end, growth.first, comparison[0]}];
    if (!made.is_none()) return made;
    std::vector<int64_t> rounds(static_cast<size_t>(growth.full));
    for (size_t i = 0; i < rounds.size(); ++i) rounds[i] = static_cast<int64_t>(i) - growth.first;
    std::vector<int64_t> dims(static_cast<size_t>(growth.from_end), 1);
    dims[0] = growth.full;
    const Value places =
        builder_.constant({rounds.data(), dims.data(), growth.from_end, ElementType::kInt64});
    return made = there(comparison, {places, round_.count});
  }

  void shorten(const LoopView& loop, const Cache& cache, Value count) {
    for (size_t j = 0; j < loop.num_forwarded(); ++j) {
      if (loop.forwarded()[j] != loop.carried()[cache.carried]) continue;
      const Value length = there("Add", {count, builder_.scalar(cache.growth.first)});
      const Value end = builder_.op("Reshape", {length, builder_.int64s({1})});
      const int64_t axis = cache.dims.rank() - cache.growth.from_end;
      const ValueId output = loop.outputs()[j];
      define(output, builder_.op("Slice", {value(output), builder_.int64s({0}), end,
                                           builder_.int64s({axis})}));
    }
  }

  Value there(const char* op, std::initializer_list<Value> inputs) {
    return builder_.op(op, inputs, {}, {.device = device_});
  }

  const std::map<NodeId, FixedLoop>& loops_;
  const std::string& device_;
  Round round_;
};

}  // namespace

Result<FixedCaches> fix_caches(Graph graph, const OpTable& ops, const FixCachesOptions& options) {
  const std::vector<uint32_t> uses = count_uses(graph);
  std::map<NodeId, FixedLoop> loops;
  std::vector<std::string> paths;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).kind != NodeKind::kWhile) continue;
    std::optional<FixedLoop> found = CacheFinder(graph, NodeId(n), uses, options).run();
    if (!found) continue;
    loops.emplace(NodeId(n), std::move(*found));
    paths.push_back(graph.path(NodeId(n)));
  }
  if (loops.empty()) return FixedCaches{std::move(graph), {}};
  GraphBuilder builder(ops, graph.name());
  CacheFixer(graph, builder, loops, options.device).run();
  builder.adopt_blobs_of(std::move(graph));
  EDDY_ASSIGN_OR_RETURN(Graph fixed, builder.finish());
  return FixedCaches{std::move(fixed), std::move(paths)};
}

}  // namespace eddy
