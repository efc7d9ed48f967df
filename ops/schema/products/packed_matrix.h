// What eddy.PackMatrix makes beyond a matrix's panels: zeros that register tiles may read.
#pragma once

#include <cstdint>

namespace eddy {

inline constexpr int64_t kPackedSlack = 16;  // elements

}  // namespace eddy
