#include "runtime/execute/values/row_sink.h"

namespace eddy {

// A run that is stopped goes on at once, and sees that it is.
class RowGate::Listener : public StopListener {
 public:
  explicit Listener(RowGate& gate) : gate_(gate) {}
  void on_stop() override {
    for (RowSink* const* sink : gate_.sinks_) {
      if (*sink != nullptr && (*sink)->forget_waiter()) return gate_.resume_(true);
    }
  }

 private:
  RowGate& gate_;
};

CallOutcome RowGate::start(void* row_gate, const Resume& resume) {
  RowGate& self = *static_cast<RowGate*>(row_gate);
  self.resume_ = resume;
  self.next_ = 0;
  self.listener_ = nullptr;  // perhaps of a run that was stopped
  return self.go_on() ? CallOutcome::kDone : CallOutcome::kLater;
}

// False: a waiter goes on from here. Then nothing of the gate is the caller's any more.
bool RowGate::go_on() {
  for (; next_ < sinks_.size(); ++next_) {
    RowSink* const sink = *sinks_[next_];
    if (sink == nullptr) continue;
    if (sink->has_room_or({})) continue;
    if (listener_ == nullptr) {
      listener_ = std::make_shared<Listener>(*this);
      control_.add_listener(listener_);
    }
    RunControl& control = control_;
    if (sink->has_room_or([this] { answer(); })) continue;
    // The stop is seen here, or by the listener.
    if (control.is_stopped() && sink->forget_waiter()) break;
    return false;
  }
  if (listener_ != nullptr) control_.remove_listener(*listener_);
  listener_ = nullptr;
  return true;
}

void RowGate::answer() {
  ++next_;
  if (go_on()) resume_(true);
}

}  // namespace eddy
