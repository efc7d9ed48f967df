// Index arithmetic that shape rules and kernels share: reading lists of integers, resolving
// negative axes, and the exact meaning of Slice, Pad and Reshape.
//
// Rules and kernels call the same functions, so the shape a rule promises is the shape a kernel
// fills. Nothing here allocates on success, so the rules may run once an iteration.
//
// Errors: invalid_argument with one line that names the offending number and its range.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"

namespace eddy {

// A short list of integers held inline: axes, starts, sizes, or pads (two for each axis).
class IntList {
 public:
  static constexpr int kCapacity = 2 * kMaxRank;

  // Entries that are not in use stay uninitialized: a list is made and dropped at every call.
  IntList() {}  // NOLINT(modernize-use-equals-default)
  IntList(const IntList& other) { *this = other; }
  IntList& operator=(const IntList& other) {
    size_ = other.size_;
    for (int i = 0; i < size_; ++i) values_[i] = other.values_[i];
    return *this;
  }

  int size() const { return size_; }
  bool is_empty() const { return size_ == 0; }
  int64_t operator[](int i) const {
    EDDY_DCHECK(i >= 0 && i < size_) << "entry " << i << " of " << size_;
    return values_[i];
  }
  int64_t& operator[](int i) {
    EDDY_DCHECK(i >= 0 && i < size_) << "entry " << i << " of " << size_;
    return values_[i];
  }
  std::span<const int64_t> span() const { return {values_, static_cast<size_t>(size_)}; }
  void clear() { size_ = 0; }
  void push_back(int64_t value) {
    EDDY_CHECK(size_ < kCapacity) << "an IntList holds at most " << kCapacity;
    values_[size_++] = value;
  }

 private:
  int size_ = 0;
  int64_t values_[kCapacity];
};

// Element i of an int32 or int64 tensor (any other type reads as int64: check first).
inline int64_t index_at(const TensorView& view, int64_t i) {
  EDDY_DCHECK(view.element == ElementType::kInt32 || view.element == ElementType::kInt64)
      << "indices of " << element_type_name(view.element);
  return view.element == ElementType::kInt32 ? view.as<int32_t>()[i] : view.as<int64_t>()[i];
}
inline bool is_index_type(ElementType type) {
  return type == ElementType::kInt32 || type == ElementType::kInt64;
}

// Copies an int32 or int64 tensor of rank 0 or 1; `what` names it in messages ("axes").
Status read_ints(const TensorView& view, std::string_view what, IntList& list);
Status read_ints(std::span<const int64_t> values, std::string_view what, IntList& list);
// The only element of an int32 or int64 tensor.
Status read_int(const TensorView& view, std::string_view what, int64_t& value);

// Where an operator's list of integers is: nowhere, given but not known yet, or here.
enum class ListState : uint8_t { kAbsent, kUnknown, kKnown };
struct ListArgument {
  ListState state = ListState::kAbsent;
  IntList values;       // kKnown
  int64_t length = -1;  // number of entries where known, else -1
};
// The list is the attribute in old opsets and an input in new ones; the attribute wins, as an
// OpDef admits only one of them.
Status list_argument(const InferContext& context, size_t input, std::string_view name,
                     ListArgument& list);

// "index 7 is out of range for axis 0 of size 5".
Status index_out_of_range(int64_t index, int axis, int64_t size);

// Appends a dimension, or fails where the rank would exceed kMaxRank.
Status push_dim(Dims& dims, int64_t dim);
// Where all dimensions are known: fails when the elements or their bytes exceed int64.
Status check_size(ElementType element, const Dims& dims);
// check_size, then sets output i.
Status set_checked_output(InferContext& context, size_t i, ElementType element, const Dims& dims);

// One axis of a slice: out[j] = in[start + j * step] for j in [0, count).
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};
using SliceRanges = std::array<SliceRange, kMaxRank>;
// Clamps as NumPy does. dim >= 0, step != 0.
SliceRange resolve_slice_range(int64_t dim, int64_t start, int64_t end, int64_t step);
// All axes of a Slice. axes may be empty (then 0, 1, ...), steps too (then 1). Where dims[axis] is
// unknown, count becomes kUnknownDim, or the dimension itself where the slice takes all of it.
Status resolve_slice(const Dims& dims, const IntList& starts, const IntList& ends,
                     const IntList& axes, const IntList& steps, SliceRanges& ranges);

// Elements before and after each axis, negative to crop.
struct PadAmounts {
  std::array<int64_t, kMaxRank> before{};
  std::array<int64_t, kMaxRank> after{};
};
// pads = all befores, then all afters, of the axes given (empty: all axes).
Status resolve_pads(const IntList& pads, const IntList& axes, bool has_axes, int rank,
                    PadAmounts& amounts);
enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };
Status parse_pad_mode(std::string_view name, int opset_version, PadMode& mode);

// The dimensions a Reshape makes: 0 copies (unless allow_zero), one -1 is inferred.
Status resolve_reshape(const Dims& from, const IntList& shape, bool allow_zero, Dims& to);

// perm, or the reversal of the axes where it is empty.
Status resolve_permutation(std::span<const int64_t> perm, int rank, IntList& resolved);

// The length of one of `parts` equal parts of `total`; with `uneven` rounded up, else exact.
Status equal_part(int64_t total, int64_t parts, bool uneven, int64_t& size);

}  // namespace eddy
