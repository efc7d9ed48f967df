// VirtualStream, VirtualEvent, VirtualGate: queues that move only when their engine steps them.
//
// Semantics are CUDA's (runtime/device/device.h), to the letter: work never runs where it is
// issued, a wait remembers which record it waits for, an event never recorded is complete.
// A lane's step runs the first item of its queue; a wait for a point not reached yet parks the
// stream until it is.
//
// Once the device is lost, items are dropped, records count as reached, and the stream is idle.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/virtual/virtual_engine.h"

namespace eddy {

class VirtualStream;

// What an event and the items that name it share: an event may be destroyed while they are queued.
// Under the engine's lock.
struct VirtualEventState {
  struct Waiting {
    uint64_t record;
    EventListener* listener;
  };

  // Appends the listeners to call once the lock is let go.
  void complete(VirtualEngine& engine, uint64_t record, std::vector<EventListener*>& called);

  uint64_t number = 0;  // for people
  bool is_gate = false;
  uint64_t issued = 0;  // records
  uint64_t completed = 0;
  std::vector<Waiting> listeners;
  std::vector<VirtualStream*> parked;
};

class VirtualEvent : public Event {
 public:
  explicit VirtualEvent(VirtualEngine& engine);
  ~VirtualEvent() override { engine_.count_event(-1); }
  bool is_complete() const override;
  bool listen_or_complete(EventListener& listener) override;

 private:
  friend class VirtualStream;
  VirtualEngine& engine_;
  const std::shared_ptr<VirtualEventState> state_;
};

class VirtualGate : public Gate {
 public:
  explicit VirtualGate(VirtualEngine& engine);
  ~VirtualGate() override { engine_.count_event(-1); }
  void open() override;

 private:
  friend class VirtualStream;
  VirtualEngine& engine_;
  const std::shared_ptr<VirtualEventState> state_;  // recorded once, reached when the gate opens
};

class VirtualStream : public Stream, public VirtualLane {
 public:
  explicit VirtualStream(VirtualEngine& engine);
  // Moves the device on until what is queued has run. Nothing of that may wait for what has not
  // ended: a programmer error.
  ~VirtualStream() override;

  bool launch(const Work& work) override;
  bool record(Event& event) override;
  bool wait(Event& event) override;
  bool hold(std::shared_ptr<Gate> gate) override;
  bool is_idle() const override;
  bool listen_or_idle(EventListener& listener) override;

  void step(std::unique_lock<std::mutex>& guard) override;
  std::string waits_for() const override;
  void stop_waiting() override;

 private:
  struct Item {
    enum class Kind : uint8_t { kWork, kRecord, kWait } kind = Kind::kWork;
    Work work = {};
    std::shared_ptr<VirtualEventState> event = nullptr;
    uint64_t record = 0;
    uint64_t number = 0;  // for the watcher
  };

  // Whether something is queued that steps of the device will bring to an end.
  bool may_go_on() const;
  bool may_enqueue(FaultKind kind, const char* what);  // under the lock
  void push(Item item);                                // likewise
  bool park_or_go_on(const Item& item);                // likewise
  void finish_item(std::vector<EventListener*>& listeners);

  VirtualEngine& engine_;
  // Under the engine's lock.
  std::deque<Item> queue_;
  std::vector<EventListener*> idle_listeners_;
  bool is_killed_ = false;
};

}  // namespace eddy
