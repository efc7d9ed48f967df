// CallOutcome: how a call that may complete later has ended so far.
#pragma once

#include <cstdint>

namespace eddy {

enum class CallOutcome : uint8_t { kFailed, kDone, kLater };

}  // namespace eddy
