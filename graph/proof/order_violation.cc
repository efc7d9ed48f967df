#include "graph/proof/order_violation.h"

namespace eddy {

std::string Violation::to_string() const {
  const std::string a = std::to_string(first);
  const std::string b = std::to_string(second);
  switch (kind) {
    case Kind::kUnordered:
      return "node " + a + " is not ordered before node " + b;
    case Kind::kUnrecordedWait:
      return "command " + a + " waits for event " + b + ", not yet recorded";
    case Kind::kRecordedTwice:
      return "command " + a + " records event " + b + " again";
    case Kind::kLaunchedTwice:
      return "command " + a + " launches node " + b + " again";
    case Kind::kNeverLaunched:
      return "node " + a + " is never launched";
    case Kind::kOutOfRange:
      return "command or pair " + a + " names id " + b + ", out of range";
  }
  return "unknown violation";
}

}  // namespace eddy
