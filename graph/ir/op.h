// OpDef, InferContext, OpTable: the definition of an operator for `graph`, injected from outside.
//
// An OpDef states an operator's formal inputs and outputs, its attributes and the rule that
// computes output types from input types. The same rule runs while building (dimensions may be
// unknown or symbolic) and while running (everything known), so there is one source of shapes.
// OpDefs live in an OpTable that outlives every graph built with it; graph/ holds none itself
// (ops/schema fills the standard table, a session may add custom operators).
//
// Threads: an OpTable is immutable once graphs are built; infer functions are pure.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/ir/attributes.h"
#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"

namespace eddy {

class Expansion;

// What an infer function sees and fills. Borrowed; lives for one call.
class InferContext {
 public:
  InferContext(const Attributes& attributes, std::span<const ValueType* const> inputs,
               std::span<const TensorView* const> values, std::span<ValueType> outputs,
               int opset_version)
      : attributes_(attributes),
        inputs_(inputs),
        values_(values),
        outputs_(outputs),
        opset_version_(opset_version) {}

  size_t num_inputs() const { return inputs_.size(); }
  // False for an omitted optional input.
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const ValueType& input(size_t i) const {
    EDDY_DCHECK(has_input(i)) << "input " << i << " of " << inputs_.size() << " is omitted";
    return *inputs_[i];
  }
  // The content of input i where it is known (a constant, or a host value at run time), else null.
  const TensorView* value_or_null(size_t i) const {
    return i < values_.size() ? values_[i] : nullptr;
  }
  const Attributes& attributes() const { return attributes_; }

  size_t num_outputs() const { return outputs_.size(); }
  void set_output(size_t i, const ValueType& type) {
    if (i < outputs_.size()) outputs_[i] = type;
  }
  // Opset of the operator's domain in the model; for rules that changed between versions when
  // one function serves several.
  int opset_version() const { return opset_version_; }

 private:
  const Attributes& attributes_;
  std::span<const ValueType* const> inputs_;
  std::span<const TensorView* const> values_;
  std::span<ValueType> outputs_;
  int opset_version_;
};

// Sets every output's type; messages name the rule that was broken ("inputs 0 and 1 do not
// broadcast: [2,3] and [4]"). The caller adds the node's name and path.
using InferFunction = std::function<Status(InferContext&)>;

// Builds the nodes that an operator's node stands for (expansion.h).
using ExpandFunction = void (*)(Expansion&);

// What its outputs hold of each sample, where several share one run (graph/ir/batch_rule.h).
class BatchContext;
using BatchRule = Status (*)(BatchContext&);

enum class InputFlag : uint8_t {
  kNone = 0,
  kOptional = 1,   // may be omitted
  kVariadic = 2,   // last input only: any number of these, at least one
  kHostValue = 4,  // its content decides output shapes (Reshape's shape)
  kShapeOnly = 8,  // only its shape is read (Shape, Size)
};
constexpr InputFlag operator|(InputFlag a, InputFlag b) {
  return static_cast<InputFlag>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool has_flag(InputFlag flags, InputFlag flag) {
  return (static_cast<uint8_t>(flags) & static_cast<uint8_t>(flag)) != 0;
}

struct FormalInput {
  std::string name;           // ONNX's name: "data", "axes"
  TypeSet types = kAllTypes;  // allowed element types (of the innermost tensor)
  InputFlag flags = InputFlag::kNone;
  // More types, in opsets from a later one on.
  TypeSet later_types = {};
  int later_since = 0;

  bool takes(ElementType element, int opset_version) const {
    return types.contains(element) ||
           (opset_version >= later_since && later_types.contains(element));
  }
};

enum class AttributeKind : uint8_t {
  kInt,
  kFloat,
  kString,
  kInts,
  kFloats,
  kStrings,
  kTensor,
  kType
};
struct FormalAttribute {
  std::string name;
  AttributeKind kind;
  bool is_required = false;
  bool is_flag = false;  // an int that is 0 or 1
  // The opsets that have the attribute, where they are not all opsets of the definition.
  int since_version = 0;
  int last_version = INT_MAX;
};

struct OpDef {
  std::string name;         // "Add"
  std::string domain = {};  // "" is ONNX's own
  int since_version = 1;    // first opset of the domain in which this definition holds
  std::vector<FormalInput> inputs = {};
  int min_outputs = 1;
  int max_outputs = 1;  // INT_MAX for variadic
  std::vector<FormalAttribute> attributes = {};
  // Nodes may have further attributes, which `infer` checks.
  bool takes_any_attribute = false;
  InferFunction infer = {};

  // Output 0 is input 0's elements under another shape: the executor may share the buffer and
  // skip the kernel (Identity, Reshape, Squeeze, Unsqueeze, Flatten).
  bool is_view = false;
  // Input whose buffer output 0 may overwrite when this is its last use and the sizes agree
  // (elementwise operators); any of the inputs 0..63 as a bit mask.
  uint64_t in_place_inputs = 0;
  // Output 0 may be input 0's buffer grown at its end (Concat on the outermost axis of extent).
  bool may_append = false;
  // Output shapes are known only after the kernel has run (NonZero), or values are sequences or
  // optionals: the kernel is a value kernel and makes its own outputs.
  bool is_value_op = false;
  // Its kernel may answer later, or wait for something else than a processor: streams beside it are
  // worth more than there are workers.
  bool may_wait = false;
  // The operator is a function of others: the builder makes their nodes instead of one of its own,
  // so no graph holds such a node and no kernel knows it. Null: the operator has kernels.
  ExpandFunction expand = nullptr;
  // Work for a cost estimate, in floating-point operations, of fully known types; null: the
  // number of output elements.
  double (*flops)(const InferContext&, std::span<const ValueType> outputs) = nullptr;
  // Asked where an input depends on samples; null: requests of such a graph share no run.
  BatchRule batch = nullptr;

  // The flags of a node's input i, which may be one of the variadic ones.
  InputFlag input_flags(size_t i) const {
    return inputs.empty() ? InputFlag::kNone : inputs[std::min(i, inputs.size() - 1)].flags;
  }
};

class OpTable {
 public:
  // Refuses a second definition of the same (domain, name, since_version).
  Status add(OpDef def);
  // The definition with the largest since_version <= opset_version; null when there is none.
  const OpDef* find_or_null(std::string_view domain, std::string_view name,
                            int opset_version) const;
  // Every name known in `domain`, in any version; for error messages and `eddy info`.
  bool knows(std::string_view domain, std::string_view name) const;
  // What a message adds that names an operator which find_or_null() does not find: ", known in newer
  // opsets only", or in another domain, or which name is near; or nothing.
  std::string advice(std::string_view domain, std::string_view name) const;
  const std::vector<std::unique_ptr<OpDef>>& all() const { return defs_; }

 private:
  std::vector<std::unique_ptr<OpDef>> defs_;  // sorted by (domain, name, since_version)
};

// Checks counts, element types and attributes, but for those `besides` the operator's, against
// `def`, then runs its infer function. Used by the builder and again by the executor for shapes
// that change.
Status infer_types(const OpDef& def, InferContext& context,
                   std::span<const std::string_view> besides = {});

}  // namespace eddy
