// Device, Stream, Event, Allocator: the seam between the executor and what does the work.
//
// A stream is an in-order queue of a device. An event is a point in a stream that others wait
// for. Promised, as CUDA promises it: the order within a stream, and a record before the waits
// that name it; a wait binds to the latest record at the time of the call; an event never
// recorded counts as complete. Nothing else is ordered.
//
// Work is a function and a context that the caller keeps alive until the work has run. On the
// CPU the function does the work, on a worker or (cheap, stream idle) at once on the calling
// thread; on a device with a driver it enqueues kernels on the native stream. A Work that returns
// false has failed and has reported to its run why; the stream goes on with what is behind it, so a
// run's own Work must look whether its run has stopped.
//
// Devices do not know coroutines: they call an EventListener, from any thread, and the await
// room turns that into a wake-up.
//
// Ownership: streams, events and runners must go before their device. Errors: creation
// returns a Status; launch, record, wait and hold return false when the device refused (nothing
// was queued), and Device::health() says why. A device that is lost stays lost: its streams drop
// what is queued and become idle, so a caller that has awaited a stream asks health() before it
// trusts what it reads. The CPU refuses nothing.
// Progress: a device that needs polling moves only while poll() is called.
// Threads: one thread at a time issues to one stream; events may be queried from anywhere, and
// poll() and health() called.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/status.h"
#include "runtime/device/buffer.h"
#include "runtime/device/graph_capture.h"

namespace eddy {

struct StrandCode;
struct Bindings;
class Compile;
class Staging;
class StrandRunner;

using WorkFunction = bool (*)(void* context);

struct Work {
  WorkFunction run = nullptr;
  void* context = nullptr;
  bool is_cheap = true;  // below the inline budget: may run on the issuing thread
};

// Called once, from any thread, when the event or stream it was given to is done.
class EventListener {
 public:
  virtual ~EventListener() = default;
  virtual void on_complete() = 0;
};

class Event {
 public:
  virtual ~Event() = default;
  virtual bool is_complete() const = 0;
  // True: complete already, the listener is not kept. False: it will be called once; the event may
  // be destroyed within that call.
  virtual bool listen_or_complete(EventListener& listener) = 0;
};

// A place where streams stop until the host opens it; it stays open.
class Gate {
 public:
  virtual ~Gate() = default;
  virtual void open() = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;
  virtual bool launch(const Work& work) = 0;
  // False: what it is given now would not be handed on at once, but kept until poll().
  virtual bool has_room() const { return true; }
  virtual bool record(Event& event) = 0;
  virtual bool wait(Event& event) = 0;
  // What is issued after this runs once the gate is open. The stream keeps the gate until then.
  virtual bool hold(std::shared_ptr<Gate> gate) = 0;
  // True when everything issued has run: what it wrote may be read on this thread.
  virtual bool is_idle() const = 0;
  // As Event::listen_or_complete, for the moment in which the stream becomes idle.
  virtual bool listen_or_idle(EventListener& listener) = 0;
  // The driver's handle, for work that enqueues on it; null where there is none.
  virtual void* native() const { return nullptr; }
};

struct MemoryStatistics {
  size_t used_bytes = 0;  // in buffers with references
  size_t peak_bytes = 0;
  size_t cached_bytes = 0;  // kept for reuse
  uint64_t num_system_allocations = 0;
};

class Allocator : public BufferOwner {
 public:
  // At least size_bytes, aligned to 64. kResourceExhausted when the limit or memory is reached.
  virtual Result<BufferRef> allocate(size_t size_bytes) = 0;
  // Room for `count` std::string objects, all empty.
  virtual Result<BufferRef> allocate_strings(size_t count) = 0;
  virtual MemoryStatistics statistics() const = 0;
  // Gives what is cached for reuse back to the system, where something is.
  virtual void trim() {}
};

// Threads that run what they are given.
class Workers {
 public:
  virtual ~Workers() = default;
  // Returns before the call is made, or while another thread makes it.
  virtual void enqueue(void (*run)(void* context), void* context) = 0;
  // The same for a helper of the caller, which does its work alone where no helper comes: other
  // work goes first, and no thread is woken where all processors have something to do.
  virtual void assist(void (*run)(void* context), void* context) { enqueue(run, context); }
  // How many have nothing to do; below 0: so much work waits. A hint.
  virtual int num_idle() const = 0;
  // The calling thread: 0 for one that is none of these workers, else the same number above 0 each
  // time.
  virtual int number_here() const { return 0; }
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view kind() const = 0;  // "cpu", "cuda", "virtual"
  virtual Allocator& allocator() = 0;
  virtual Result<std::unique_ptr<Stream>> create_stream() = 0;
  // A stream of the driver's that its caller made and keeps.
  virtual Result<std::unique_ptr<Stream>> adopt_stream(void* /*native_stream*/) {
    return unsupported("a device of kind " + std::string(kind()) +
                       " has no streams but its own; use create_stream");
  }
  virtual Result<std::unique_ptr<Event>> create_event() = 0;
  // For the host alone to wait for, and no stream: a device may learn of such a point without
  // asking its driver to keep it.
  virtual Result<std::unique_ptr<Event>> create_host_event() { return create_event(); }
  virtual Result<std::shared_ptr<Gate>> create_gate() = 0;
  // Executes strands by itself; null where the device does not, so that the host has to.
  virtual std::unique_ptr<StrandRunner> create_runner_or_null(const StrandCode& code,
                                                              const Bindings& bindings) = 0;

  // What not every device can; null where it cannot. They live as long as the device.
  virtual Staging* staging_or_null() { return nullptr; }
  virtual Compile* compile_or_null() { return nullptr; }
  // Why that is null, where there is something to say.
  virtual std::string why_no_compile() const { return {}; }
  virtual std::unique_ptr<GraphCapture> create_capture_or_null() { return nullptr; }
  // What it does without, and why, a line each, for the log. More may come, behind the others,
  // while programs are bound and run.
  virtual std::vector<std::string> notices() const { return {}; }

  // Null: it has none of its own.
  virtual Workers* workers_or_null() { return nullptr; }
  // How many pieces of work it runs at once; 1: a plan gains nothing from several streams.
  virtual int num_workers() const { return 1; }
  // Ok, or why the device has refused something or is lost.
  virtual Status health() const { return Status::ok(); }
  virtual bool needs_polling() const { return false; }
  // Moves the device on by a little; false when there was nothing to do.
  virtual bool poll() { return false; }
  // Whether anything is under way that poll() would see end. From a no on, wakers are called when
  // that changes, once, by whichever thread gives the device work.
  virtual bool wants_polling() { return needs_polling(); }
  // A waker of one's own, until it is removed by the same key; it is not called after that.
  virtual void add_waker(const void* /*key*/, std::function<void()> /*waker*/) {}
  virtual void remove_waker(const void* /*key*/) {}
};

// Whether captured graphs of the device may hold loops and cases that it decides by itself.
inline bool can_decide_loops(Device& device) {
  const std::unique_ptr<GraphCapture> capture = device.create_capture_or_null();
  return capture != nullptr && capture->can_decide();
}

}  // namespace eddy
