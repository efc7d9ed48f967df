// RunEnd: what learns how a run has ended that no thread waits for.
//
// Ownership: shared; the run holds it until it has ended, and each call is given that hold as
// `self`, which the callee may take over. What may own the session goes inside end() or
// end_at_once(). Errors: what they throw is the user's own exception (SessionCore::call_user).
// Threads: any; one call at a time.
#pragma once

#include <memory>

#include "graph/base/status.h"

namespace eddy {

class RunEnd {
 public:
  virtual ~RunEnd() = default;

  // Asked first, by the thread that ends the run (a worker, the scheduler's, one that stops it).
  // True: it has done what end() does, and no more is called. Quick: it waits for nothing, and
  // calls nothing of users'.
  virtual bool end_at_once([[maybe_unused]] std::shared_ptr<RunEnd>& self,
                           [[maybe_unused]] const Status& status) {
    return false;
  }
  // On the session's callback thread, or by a thread that waits for it; the session is held.
  virtual void end(std::shared_ptr<RunEnd>& self, const Status& status) = 0;
  // Behind end(), which has left `self` as it was: the session may be gone.
  virtual void left([[maybe_unused]] const Status& status) {}
};

}  // namespace eddy
