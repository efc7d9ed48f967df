// FluidStreams: the device's side of the fluid model: streams run what was issued to them. Internal
// to fluid_model.
//
// A stream runs its steps in order. A step may first pass `delay_ns` in the stream; a kernel then
// shares the machine with all others at work. The owner pushes steps, advances time to next_ns(),
// and takes what happened out of take_decided().
//
//   resting ──wait──▶ parked ──record──▶ waking ──▶ running ──▶ at work, or delayed ──▶ running
//      ▲                 ▲                             │
//      └──────rest───────┴────────────wait─────────────┘
//
// All streams but 0 rest at first. A stream at rest has no worker; the next step that it gets is a
// wait, which takes no time of its own; the record that wakes it takes fork_ns more. A stream goes
// on without a rest where its next wait is over already. Events count their records.
#pragma once

#include <deque>
#include <queue>
#include <vector>

#include "graph/simulate/fluid_model.h"

namespace eddy {

struct FluidStep {
  enum class Kind : uint8_t { kWork, kDecision, kRecord, kWait, kRest };
  Kind kind = Kind::kWork;
  FluidSpan::What what = FluidSpan::What::kKernel;
  uint32_t id = 0;                      // for spans
  uint32_t event = 0;                   // kRecord, kWait
  uint64_t needed = 0;                  // kWait: records
  const FluidDemand* demand = nullptr;  // kWork, kDecision
  double delay_ns = 0;                  // before it, in the stream
  double earliest_ns = 0;
  double scale = 1;  // of all its times
};

class FluidStreams {
 public:
  // `lanes`: of each stream, for spans. Stream 0 starts at `start_ns`.
  FluidStreams(const FluidMachine& machine, const FluidOptions& options,
               const std::vector<uint32_t>& lanes, uint32_t num_events, double start_ns);

  void push(uint32_t stream, const FluidStep& step);

  // Runs what can run without time passing.
  void settle();
  // When the next thing happens; infinity: nothing more does.
  double next_ns();
  void advance_to(double time_ns);

  double now_ns() const { return now_; }
  bool is_over_limit() const { return timeline_.num_steps > options_.max_steps; }
  // Streams whose decision has been made since the last call.
  std::vector<uint32_t> take_decided();
  FluidTimeline& timeline() { return timeline_; }

 private:
  enum class State : uint8_t { kResting, kWaking, kRunning, kDelayed, kWorking, kParked };
  struct Stream {
    State state = State::kResting;
    uint32_t lane = 0;
    bool is_paid = false;    // the front's delay has passed
    bool has_rested = true;  // since it last ran
    std::deque<FluidStep> steps;
    double due = 0;           // while waking
    uint64_t generation = 0;  // of its latest entry in due_
    double started = 0;       // while at work
  };
  struct Parked {
    uint32_t stream;
    uint64_t needed;
  };
  struct Event {
    uint64_t num_records = 0;
    std::vector<Parked> parked;
  };
  struct Due {
    double time;
    uint64_t number;  // ties go by first come
    uint32_t stream;
    uint64_t generation;
    bool operator>(const Due& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  void run(uint32_t stream);
  bool run_step(uint32_t stream);  // false: the stream stands
  bool is_passed(const FluidStep& step) const;
  void park(uint32_t stream, const FluidStep& wait);
  void end_rest(uint32_t stream);
  bool rest(uint32_t stream);
  bool begin_work(uint32_t stream, const FluidStep& step);
  void end_work(uint32_t stream);
  void record(const FluidStep& step);
  void resume_at(uint32_t stream, double time_ns);
  void wake(uint32_t stream, double scale);
  void release_worker();
  void refresh_rates();

  const FluidMachine& machine_;
  const FluidOptions& options_;
  double now_ = 0;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::deque<uint32_t> ready_;  // may be able to run
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  uint64_t num_due_ = 0;
  std::vector<uint32_t> decided_;

  // At work, each with what is left of it, its demand and its rate.
  std::vector<uint32_t> working_;
  std::vector<double> left_ns_;
  std::vector<FluidDemand> demands_;
  std::vector<double> rates_;
  bool are_rates_fresh_ = true;

  // Workers: since when each idle one is, the last to have become so last (minus infinity: it
  // sleeps, and is on its way already where it is needed); how many streams have one or share one;
  // those for which a worker is being woken.
  std::vector<double> idle_since_;
  uint32_t num_with_worker_ = 0;
  double busy_ns_ = 0;  // what the step that just ran took of its stream, by waking others
  std::vector<uint32_t> waking_;

  FluidTimeline timeline_;
};

}  // namespace eddy
