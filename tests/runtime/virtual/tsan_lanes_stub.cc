#include "tests/runtime/virtual/tsan_lanes.h"

namespace eddy {

std::unique_ptr<TsanLanes> TsanLanes::make_or_null() { return nullptr; }

}  // namespace eddy
