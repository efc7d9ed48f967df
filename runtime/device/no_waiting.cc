#include "runtime/device/no_waiting.h"

namespace eddy {

constinit thread_local NoWaiting* NoWaiting::current_ = nullptr;

}  // namespace eddy
