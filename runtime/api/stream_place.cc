#include "runtime/api/stream_place.h"

#include <utility>

namespace eddy {

Status StreamPlace::enter(Device& device, Stream& stream, std::shared_ptr<Gate> gate,
                          SessionRuns& runs, RunEntry& run, GoOn go_on) {
  std::unique_ptr<StreamPlace> place(new StreamPlace(runs, run, go_on));
  EDDY_ASSIGN_OR_RETURN(place->front_, device.create_event());
  EDDY_RETURN_IF_ERROR(runs.enter_stream(run, *place));
  Event& front = *place->front_;
  if (!stream.record(front) || !stream.hold(std::move(gate))) {
    if (!runs.undo_enter_stream(run)) return Status::ok();
    const Status health = device.health();
    return health.is_ok()
               ? run_failed("the stream takes no commands; if it captures, end that first")
               : health;
  }
  StreamPlace& self = *place.release();
  if (front.listen_or_complete(self)) self.on_complete();
  return Status::ok();
}

// The event is not touched by those that call its listener.
void StreamPlace::on_complete() {
  SessionRuns& runs = runs_;
  const GoOn go_on = go_on_;
  const SessionRuns::Arrival arrival = runs.leave_stream(*this);
  delete this;
  if (arrival.run_or_null != nullptr) go_on(arrival);
  runs.let_go();
}

}  // namespace eddy
