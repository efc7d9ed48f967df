// StreamPlace: where a run stands in the order of a caller's stream.
//
//   … work in front │ front: an event │ gate │ work behind …
//
// The event comes when everything in front has run: then the run goes on to its turn. The gate
// holds what is behind until the run has ended, however it ends. A run that is stopped leaves its
// place behind, empty.
//
// Internal to runtime/api. Ownership: a place owns itself, until its event has come.
#pragma once

#include <memory>

#include "runtime/api/run.h"

namespace eddy {

class StreamPlace : private EventListener {
 public:
  // The run goes on by itself from here. A failure leaves it as it was.
  static Status enter(SessionCore& core, Stream& stream, Run& run);

  RunEntry* run_or_null = nullptr;  // under the mutex of SessionRuns; null: it was stopped

 private:
  StreamPlace(SessionCore& core, Run& run) : run_or_null(&run), core_(core) {}
  void on_complete() override;

  SessionCore& core_;
  std::unique_ptr<Event> front_;
};

}  // namespace eddy
