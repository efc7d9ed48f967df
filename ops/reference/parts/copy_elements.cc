#include "ops/reference/parts/copy_elements.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace eddy {

void copy_elements(const TensorView& from, int64_t from_index, const TensorView& to,
                   int64_t to_index, int64_t count) {
  if (from.element == ElementType::kString) {
    std::copy_n(from.as<std::string>() + from_index, count,
                to.mutable_as<std::string>() + to_index);
  } else if (count > 0) {
    const int64_t size = static_cast<int64_t>(element_size_bytes(from.element));
    std::memcpy(to.mutable_as<std::byte>() + to_index * size,
                from.as<std::byte>() + from_index * size, static_cast<size_t>(count * size));
  }
}

}  // namespace eddy
