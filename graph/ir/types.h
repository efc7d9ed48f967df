// Dims, TensorType and ValueType: what is known of a value before it exists.
//
// A Dims is a shape of known rank, at most kMaxRank, stored inline: copying one allocates
// nothing, so the same shape rules serve the builder and the executor's hot paths. A dimension
// is a size (>= 0), kUnknownDim, or a symbol: a negative number interned by the graph, equal
// exactly when two dimensions are known to be the same although their size is not.
//
// A ValueType is a tensor type inside at most kMaxWrappers layers of sequence and optional:
// optional(sequence(tensor(float))) is {kOptional, kSequence} around a TensorType.
//
// Errors: none here; parsing code checks ranks before it builds a Dims (exceeding kMaxRank is a
// programmer error).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "graph/base/check.h"
#include "graph/ir/element_type.h"

namespace eddy {

inline constexpr int kMaxRank = 8;
inline constexpr int64_t kUnknownDim = -1;  // symbols are <= -2

class Dims {
 public:
  constexpr Dims() = default;  // rank 0: a scalar
  constexpr Dims(std::initializer_list<int64_t> dims) {
    for (int64_t dim : dims) push_back(dim);
  }
  explicit Dims(std::span<const int64_t> dims) {
    for (int64_t dim : dims) push_back(dim);
  }

  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int axis) const {
    EDDY_DCHECK(axis >= 0 && axis < rank_) << "axis " << axis << " of " << rank_;
    return dims_[static_cast<size_t>(axis)];
  }
  constexpr int64_t& operator[](int axis) {
    EDDY_DCHECK(axis >= 0 && axis < rank_) << "axis " << axis << " of " << rank_;
    return dims_[static_cast<size_t>(axis)];
  }
  constexpr void push_back(int64_t dim) {
    EDDY_CHECK(rank_ < kMaxRank) << "a shape has at most " << kMaxRank << " dimensions";
    dims_[static_cast<size_t>(rank_++)] = dim;
  }
  const int64_t* data() const { return dims_.data(); }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  std::span<const int64_t> span() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  // True when every dimension is a size.
  bool is_static() const;
  // Product of the dimensions; nullopt when one is unknown, the product overflows int64 or, where
  // one is zero, that of the others exceeds 2^28: kernels step through them, and no memory bounds
  // them.
  std::optional<int64_t> count() const;

  bool operator==(const Dims& other) const;

 private:
  int rank_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
};

struct TensorType {
  ElementType element = ElementType::kUndefined;
  bool is_ranked = false;  // false: dims means nothing
  Dims dims;

  TensorType() = default;
  explicit TensorType(ElementType e) : element(e) {}
  TensorType(ElementType e, Dims d) : element(e), is_ranked(true), dims(d) {}

  bool is_static() const { return is_ranked && dims.is_static(); }
  bool operator==(const TensorType& other) const;
};

enum class Wrapper : uint8_t { kSequence, kOptional };
inline constexpr int kMaxWrappers = 4;

struct ValueType {
  TensorType tensor;  // innermost
  uint8_t num_wrappers = 0;
  std::array<Wrapper, kMaxWrappers> wrappers{};  // outermost first

  ValueType() = default;
  ValueType(TensorType t) : tensor(t) {}

  static ValueType sequence_of(const ValueType& inner) { return wrap(Wrapper::kSequence, inner); }
  static ValueType optional_of(const ValueType& inner) { return wrap(Wrapper::kOptional, inner); }

  bool is_tensor() const { return num_wrappers == 0; }
  bool is_sequence() const { return num_wrappers > 0 && wrappers[0] == Wrapper::kSequence; }
  bool is_optional() const { return num_wrappers > 0 && wrappers[0] == Wrapper::kOptional; }
  // A tensor of known shape, so its bytes can be planned for (strings aside).
  bool is_static_tensor() const { return is_tensor() && tensor.is_static(); }
  // The type one layer in; only for sequences and optionals.
  ValueType unwrapped() const;
  bool operator==(const ValueType& other) const;

 private:
  static ValueType wrap(Wrapper wrapper, const ValueType& inner);
};

// Shorthand: tensor_type(ElementType::kFloat, {1, 576}).
inline ValueType tensor_type(ElementType element, Dims dims) { return TensorType(element, dims); }

// The least specific type that covers both, or nullopt when element types or wrappers differ:
// equal dimensions stay, different ones become unknown, different ranks become unranked.
std::optional<ValueType> join(const ValueType& a, const ValueType& b);

// True when a value of type `actual` may be passed where `expected` is required (unknown and
// symbolic dimensions on either side match anything).
bool is_compatible(const ValueType& actual, const ValueType& expected);

// "float[2,?,s1]", "int64[...]" (unranked), "sequence(float[3])".
std::string to_string(const Dims& dims);
std::string to_string(const ValueType& type);

}  // namespace eddy
