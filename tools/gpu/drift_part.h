// drift_part: ten million iterations of each kind of loop, and whether memory is where it was.
#pragma once

#include <functional>

#include "tools/gpu/report_part.h"

namespace eddy {

// Device memory in use, as the driver says (cuMemGetInfo), once the device is idle; of all
// processes. kUnsupported: it does not say.
Result<int64_t> driver_used_bytes(Device& device);

// Loops driven by the host, by the device as a recording, unrolled, as one kernel, merged with
// others and nested: runs of 10'000 iterations until there were 10'000'000, or the kind's share of
// the time that is left is over: a row of fewer is "short", for which one kind by itself (`only`:
// its name begins so) has all the time. Every run's result is checked. A row fails where, after the
// first runs, device memory in use has grown by more than a page of the driver's, or what Eddy
// holds has grown at all. A kind that this device cannot drive that way has status "left out" with
// the reason.
nlohmann::json report_drift(
    const SessionsUnderReport& what, const std::string& only = "",
    const std::function<Result<int64_t>(Device&)>& used_bytes = driver_used_bytes);

// There is a kind of loop whose name begins so.
bool is_drift_kind(const std::string& name);

}  // namespace eddy
