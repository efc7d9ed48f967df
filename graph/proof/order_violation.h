// Violation, Proof: what is wrong with a list of steps and the orders required of it
// (happens_before.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace eddy {

struct Violation {
  enum class Kind {
    kUnordered,       // first, second: nodes of a required pair with no path
    kUnrecordedWait,  // first: command index; second: event
    kRecordedTwice,   // first: command index; second: event
    kLaunchedTwice,   // first: command index; second: node
    kNeverLaunched,   // first: node
    kOutOfRange,      // first: command index, or index of a required pair; second: id
  };
  Kind kind;
  uint32_t first;
  uint32_t second;
  bool operator==(const Violation&) const = default;

  // "node 3 is not ordered before node 7", "command 12 waits for event 4, not yet recorded", ...
  std::string to_string() const;
};

struct Proof {
  static constexpr size_t kMaxViolations = 100;
  std::vector<Violation> violations;
  bool is_safe() const { return violations.empty(); }
};

}  // namespace eddy
