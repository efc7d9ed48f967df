// The part of Reverse about products of rows that wait for the end of their loop.
#include <algorithm>

#include "graph/base/check.h"
#include "graph/differentiate/reverse.h"

namespace eddy {
namespace {

// An iteration stacks rows (p + q) elements; adding up would read and write p q.
bool is_worth_waiting(int64_t rows, int64_t p, int64_t q) { return 2 * rows * (p + q) <= p * q; }

// A push takes as long as to add up some thousand elements.
bool is_worth_pushing(int64_t p, int64_t q) { return p * q >= 4096; }

// Whether the product of a node with that matrix may wait, by what types say.
bool may_wait(const TensorType& matrix, const TensorType& product) {
  if (!matrix.is_static() || matrix.dims.rank() != 2) return false;
  if (!product.is_static() || product.dims.rank() == 0) return false;
  const int64_t width = product.dims[product.dims.rank() - 1];
  return width > 0 &&
         is_worth_waiting(*product.dims.count() / width, matrix.dims[0], matrix.dims[1]);
}

}  // namespace

bool Reverse::add_later(ValueId id, Value left, Value right) {
  if (waiting_or_null_ == nullptr || !builder_.status().is_ok()) return false;
  Waiting& waiting = *waiting_or_null_;
  if (std::ranges::count(*waiting.captures, id) == 0) return false;
  const ValueType &a = builder_.type(left), &b = builder_.type(right);
  const bool is_known = a.is_static_tensor() && b.is_static_tensor() && a.tensor.dims.rank() == 2 &&
                        b.tensor.dims.rank() == 2;
  if (!is_known) return false;
  if (!is_worth_waiting(a.tensor.dims[0], a.tensor.dims[1], b.tensor.dims[1])) return false;
  if (!is_in_branch_) {
    if (waiting.products.size() == waiting.num_places) return false;
    waiting.products.push_back({id, left, right});
    return true;
  }
  const auto at = std::ranges::find(waiting.pushed, id);
  if (at == waiting.pushed.end()) return false;
  EDDY_DCHECK(waiting.sequences.size() == waiting.num_sequences())
      << waiting.sequences.size() << " of " << waiting.num_sequences() << " sequences";
  Value* const sequences = &waiting.sequences[2 * static_cast<size_t>(at - waiting.pushed.begin())];
  sequences[0] = op("SequenceInsert", {sequences[0], left});
  sequences[1] = op("SequenceInsert", {sequences[1], right});
  return true;
}

std::vector<ValueId> Reverse::waiting_matrices(RegionId region,
                                               const std::vector<ValueId>& captures) const {
  std::vector<ValueId> found;
  for (const NodeId id : source_.region(region).nodes) {
    const Node& node = source_.node(id);
    if (exact_ || node.kind != NodeKind::kExec || !activity_.is_active(node)) continue;
    const GradientRule* rule =
        rules_.find_or_null(node.op->domain, node.op->name, node.opset_version);
    for (size_t i = 0; i < node.inputs.size() && i < 64; ++i) {
      const bool is_product = rule != nullptr && (rule->row_products >> i & 1) != 0;
      if (!is_product || std::ranges::count(captures, node.inputs[i]) == 0) continue;
      const TensorType& matrix = source_.value(node.inputs[i]).type.tensor;
      const TensorType& product = source_.value(node.outputs[0]).type.tensor;
      if (may_wait(matrix, product)) found.push_back(node.inputs[i]);
    }
  }
  return found;
}

std::set<ValueId> Reverse::pushed_matrices(NodeId id, const std::vector<ValueId>& captures) const {
  EDDY_DCHECK(source_.node(id).kind == NodeKind::kCaseOf) << source_.path(id) << " has no branches";
  std::set<ValueId> found;
  for (const RegionId branch : source_.node(id).regions) {
    for (const ValueId matrix : waiting_matrices(branch, captures)) {
      const Dims& dims = source_.value(matrix).type.tensor.dims;
      if (is_worth_pushing(dims[0], dims[1])) found.insert(matrix);
    }
    for (const NodeId inner : source_.region(branch).nodes) {
      const bool is_case = source_.node(inner).kind == NodeKind::kCaseOf;
      if (is_case) found.merge(pushed_matrices(inner, captures));
    }
  }
  return found;
}

Reverse::Waiting Reverse::begin_waiting(RegionId after, const LoopParts& parts,
                                        bool branches_push) const {
  Waiting waiting{.captures = &parts.captures};
  waiting.num_places = static_cast<uint32_t>(waiting_matrices(after, parts.captures).size());
  if (!branches_push) return waiting;
  std::set<ValueId> pushed;
  for (const NodeId id : source_.region(after).nodes) {
    if (source_.node(id).kind == NodeKind::kCaseOf) {
      pushed.merge(pushed_matrices(id, parts.captures));
    }
  }
  waiting.pushed.assign(pushed.begin(), pushed.end());
  return waiting;
}

void Reverse::start_sequences(const Waiting& waiting, WhileOptions& options) {
  for (const ValueId matrix : waiting.pushed) {
    const TensorType& type = source_.value(matrix).type.tensor;
    for (const int64_t width : type.dims) {
      const Value shape = builder_.int64s({1, width});
      const Value row = make_zeros(builder_, type.element, shape, {.name = "grad/zeros"});
      options.initial.push_back(op("SequenceConstruct", {row}));
      options.carried_types.push_back(
          ValueType::sequence_of(TensorType(type.element, {kUnknownDim, width})));
    }
  }
}

void Reverse::append_rows(const Waiting& waiting, std::vector<Value>& results) {
  EDDY_DCHECK(waiting.products.size() <= waiting.num_places)
      << waiting.products.size() << " products in " << waiting.num_places << " places";
  for (const Waiting::Product& each : waiting.products)
    results.insert(results.end(), {each.left, each.right});
  for (size_t i = waiting.products.size(); i < waiting.num_places; ++i) {
    const Value nothing = builder_.scalar(int64_t{0});
    results.insert(results.end(), {nothing, nothing});
  }
}

void Reverse::add_waited(const Waiting& waiting, const LoopParts& parts, std::vector<Value>& made) {
  if (!builder_.status().is_ok()) return;
  EDDY_DCHECK(waiting.num_rows() <= made.size()) << made.size() << " outputs of a reversed loop";
  const ValueSpan rows = ValueSpan(made).last(waiting.num_rows());
  const auto flat = [&](Value value) { return op("Flatten", {value}, {{"axis", int64_t{-1}}}); };
  const auto add_product = [&](ValueId id, Value left, Value right) {
    const auto at = std::ranges::find(parts.captures, id);
    EDDY_DCHECK(at != parts.captures.end()) << "the product of a value that is not captured";
    Value& sum = made[parts.carried.size() + static_cast<size_t>(at - parts.captures.begin())];
    const Value product = op("Gemm", {flat(left), flat(right)}, {{"transA", int64_t{1}}});
    sum = add_adjoints(builder_, sum, product, {.name = "grad/Add", .opset_version = opset_});
  };
  for (size_t i = 0; i < waiting.products.size(); ++i) {
    add_product(waiting.products[i].id, rows[2 * i], rows[2 * i + 1]);
  }
  const size_t first = parts.carried.size() + parts.captures.size() + parts.tapes.size();
  EDDY_DCHECK(waiting.pushed.empty() ||
              first + waiting.num_sequences() + waiting.num_rows() <= made.size())
      << made.size() << " outputs of a reversed loop";
  const auto all_of_sequence = [&](size_t i) {
    return op("ConcatFromSequence", {made[first + i]}, {{"axis", int64_t{0}}});
  };
  for (size_t i = 0; i < waiting.pushed.size(); ++i) {
    add_product(waiting.pushed[i], all_of_sequence(2 * i), all_of_sequence(2 * i + 1));
  }
}

}  // namespace eddy
