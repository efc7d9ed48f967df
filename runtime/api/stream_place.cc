#include "runtime/api/stream_place.h"

#include "runtime/api/session_core.h"

namespace eddy {

Status StreamPlace::enter(SessionCore& core, Stream& stream, Run& run) {
  Device& device = core.stream_device();
  std::unique_ptr<StreamPlace> place(new StreamPlace(core, run));
  EDDY_ASSIGN_OR_RETURN(place->front_, device.create_event());
  EDDY_ASSIGN_OR_RETURN(const std::shared_ptr<Gate> gate, device.create_gate());
  run.hold_stream(gate);
  EDDY_RETURN_IF_ERROR(core.runs->enter_stream(run, *place));
  Event& front = *place->front_;
  if (!stream.record(front) || !stream.hold(gate)) {
    if (!core.runs->undo_enter_stream(run)) return Status::ok();
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
  SessionCore& core = core_;
  const SessionRuns::Arrival arrival = core.runs->leave_stream(*this);
  delete this;
  if (arrival.run_or_null != nullptr) {
    Run& run = static_cast<Run&>(*arrival.run_or_null);
    if (arrival.admission == SessionRuns::Admission::kTurn) core.start(run);
    if (arrival.admission == SessionRuns::Admission::kRefused) run.end(arrival.why);
  }
  core.runs->let_go();
}

}  // namespace eddy
