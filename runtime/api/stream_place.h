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

#include "runtime/api/session_runs.h"

namespace eddy {

class StreamPlace : private EventListener, private StreamEntry {
 public:
  // The run at the place goes on or, refused, ends.
  using GoOn = void (*)(const SessionRuns::Arrival& arrival);

  // The run goes on by itself from here, with the gate open at its end. A failure leaves it as it
  // was.
  static Status enter(Device& device, Stream& stream, std::shared_ptr<Gate> gate, SessionRuns& runs,
                      RunEntry& run, GoOn go_on);

 private:
  StreamPlace(SessionRuns& runs, RunEntry& run, GoOn go_on)
      : StreamEntry{&run}, runs_(runs), go_on_(go_on) {}
  void on_complete() override;

  SessionRuns& runs_;
  const GoOn go_on_;
  std::unique_ptr<Event> front_;
};

}  // namespace eddy
