// Shape rules that operator families share: broadcasting, axes, host values, same-as-input.
//
// All work on dimensions that may be sizes, symbols or unknown, and all are called again while
// running, so none allocates on success. A failure names the broken rule and the shapes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"

namespace eddy {

// Adds every definition of a family.
Status add_schemas(OpTable& table, std::vector<OpDef> defs);

// Input i as a tensor; fails when it is a sequence or an optional. The pointer lives as long as
// the context.
Result<const TensorType*> tensor_input(const InferContext& context, size_t i);

// Joins two dimensions that must broadcast: 1 gives way; equal ones stay, a size wins over what is
// not known (which must be 1 or that size), different symbols become unknown. nullopt: they
// do not broadcast.
std::optional<int64_t> broadcast_dim(int64_t a, int64_t b);

// Joins two dimensions that must be equal: the more specific one; nullopt: they differ for sure.
std::optional<int64_t> merge_dim(int64_t a, int64_t b);

// NumPy broadcasting of two shapes.
std::optional<Dims> broadcast_dims(const Dims& a, const Dims& b);

// NumPy broadcasting of tensor inputs [first, last), with `element` as the result's type.
// Unranked when one of them is. "inputs 0 and 1 do not broadcast: [2,3] and [4]".
Result<TensorType> broadcast_inputs(const InferContext& context, size_t first, size_t last,
                                    ElementType element);

// Fails unless inputs [first, last) have the element type of input `first` (omitted ones are
// skipped).
Status expect_same_element(const InferContext& context, size_t first, size_t last);

// Whether two shapes may be one.
bool may_equal(const Dims& a, const Dims& b);
// Whether `from` may broadcast to `to`, which it does not widen.
bool may_stretch(const Dims& from, const Dims& to);

// One axis of an expected shape: a size, or what it counts where any size does.
struct ExpectedAxis {
  ExpectedAxis(const char* counted) : name(counted) {}
  ExpectedAxis(int64_t size, const char* counted = "n") : dim(size), name(counted) {}
  int64_t dim = kUnknownDim;
  const char* name;
};
using ExpectedShape = std::initializer_list<ExpectedAxis>;
// "past of shape [2,3] must be [batch, 8, length]", where input i is given and surely is not.
Status expect_shape(const InferContext& context, size_t i, std::string_view name,
                    ExpectedShape shape);
// "weights of shape [2,3] does not fit".
Status bad_shape(std::string_view name, const Dims& dims, std::string_view rule);

// Fails where input i, which is added element by element, surely has another shape than the result.
Status expect_addend(const InferContext& context, size_t i, const Dims& result);

// Fails where input i surely has not one element.
Status expect_one_element(const InferContext& context, size_t i, std::string_view name);

// `axis` in -rank..rank-1 as 0..rank-1. "axis 3 is out of range for rank 2: -2..1".
Result<int> normalize_axis(int64_t axis, int rank);
// The same with `rank` itself allowed (Unsqueeze's places, Flatten's axis): 0..rank.
Result<int> normalize_axis_inclusive(int64_t axis, int rank);
// A set of axes as a bit mask. Fails on axes out of range and on repeated ones.
Result<uint32_t> axes_mask(std::span<const int64_t> axes, int rank);

// The content of a one- or zero-dimensional int32 or int64 tensor, read in place.
class HostInts {
 public:
  // Fails when the view has another element type or more than one dimension.
  static Result<HostInts> read(const TensorView& view, std::string_view name);
  int64_t size() const { return size_; }
  int64_t operator[](int64_t i) const {
    EDDY_DCHECK(i >= 0 && i < size_) << "entry " << i << " of " << size_;
    return wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
  }

 private:
  const void* data_ = nullptr;
  int64_t size_ = 0;
  bool wide_ = true;
};

// The content of host-value input i where it is known and given; nullopt where it is not known
// yet (or omitted: see has_input).
Result<std::optional<HostInts>> host_ints(const InferContext& context, size_t i,
                                          std::string_view name);

// The same as an axes mask for `rank` dimensions.
Result<uint32_t> axes_mask(const HostInts& axes, int rank);

// Rule: output 0 has the type and shape of input 0.
Status infer_same_as_input(InferContext& context);
// Rule: output 0 is all tensor inputs broadcast, of their common element type.
Status infer_broadcast(InferContext& context);

// Shorthand for OpDef tables.
FormalInput in(std::string name, TypeSet types = kAllTypes, InputFlag flags = InputFlag::kNone);
FormalAttribute attribute(std::string name, AttributeKind kind, bool is_required = false);
// An int that is 0 or 1. What another number means differs from runtime to runtime.
FormalAttribute flag(std::string name);
// The same attribute, in opsets from `version` on, or up to `version`.
FormalAttribute since(int version, FormalAttribute attribute);
FormalAttribute until(int version, FormalAttribute attribute);
// Opsets 1 to 5: which inputs the kernel may overwrite. Read by nobody: the planner decides.
FormalAttribute consumed_inputs();

}  // namespace eddy
