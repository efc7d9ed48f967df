// The opsets of ONNX's own domain: the one place that says which ones Eddy reads.
#pragma once

namespace eddy {

inline constexpr int kOldestOpset = 1;
inline constexpr int kNewestOpset = 28;
// Of nodes that are built without one: new enough for what Eddy builds, and known to every current
// reader of what Eddy writes.
inline constexpr int kDefaultOpset = 22;

}  // namespace eddy
