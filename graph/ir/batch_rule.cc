#include "graph/ir/batch_rule.h"

#include <algorithm>
#include <utility>

namespace eddy {

Extent Extent::number(int64_t number) {
  Extent extent;
  extent.is_known_ = true;
  extent.number_ = number;
  return extent;
}

Extent Extent::dim(int64_t dim) {
  if (dim >= 0) return number(dim);
  Extent extent;
  if (dim == kUnknownDim) return extent;
  extent.is_known_ = true;
  extent.symbols_ = {dim};
  return extent;
}

bool Extent::equals(const Extent& other) const {
  return is_known_ && other.is_known_ && number_ == other.number_ && symbols_ == other.symbols_;
}

bool Extent::differs(const Extent& other) const {
  return is_number() && other.is_number() && number_ != other.number_;
}

Extent Extent::operator*(const Extent& other) const {
  Extent product;
  if (!is_known_ || !other.is_known_) return product;
  if (__builtin_mul_overflow(number_, other.number_, &product.number_)) return {};
  product.is_known_ = true;
  std::ranges::merge(symbols_, other.symbols_, std::back_inserter(product.symbols_));
  return product;
}

Extent Extent::divided_into(const Extent& whole) const {
  if (!is_known_ || !whole.is_known_ || number_ <= 0 || whole.number_ % number_ != 0) return {};
  if (!std::ranges::includes(whole.symbols_, symbols_)) return {};
  Extent quotient = number(whole.number_ / number_);
  std::ranges::set_difference(whole.symbols_, symbols_, std::back_inserter(quotient.symbols_));
  return quotient;
}

Batched Batched::of_counts(std::vector<Count> counts) {
  const bool has_samples =
      std::ranges::any_of(counts, [](const Count& count) { return count.is_of_samples; });
  return {has_samples ? Kind::kCounts : Kind::kShared, 0, {}, std::move(counts)};
}

}  // namespace eddy
