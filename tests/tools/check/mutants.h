// Mutants: defects planted between a session and its virtual device, for tests of the watchers.
// Nothing of this is in any program that is shipped.
//
//   MutantDevice     what a device hands out is what a mutant of it hands out
//   CommandEdit      changes a copy of the code of strands, or of what its calls call
//   StreamMutant     a stream that breaks one of its promises
//   MemoryMutant     an allocator that does
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/device/strand_runner.h"
#include "runtime/virtual/virtual_device.h"

namespace eddy::check {

// A decision or launch that lies about another.
struct Liar {
  DecideFunction decide = nullptr;
  WorkFunction run = nullptr;
  void* context = nullptr;
  uint32_t branches = 0;
  bool has_lied = false;
};

// What a mutant's strands execute.
struct EditedCode {
  StrandCode code;
  Bindings bindings;
  std::deque<Liar> liars;
};
// Edits the n-th place where it applies; false when there are fewer.
using CommandEdit = std::function<bool(EditedCode& edited, size_t n)>;

enum class StreamBug : uint8_t {
  kNone,
  kLostWait,
  kLostRecord,
  kLostLaunch,
  kLaunchedTwice,
  kRunsEarly,
  kSwapped,
  kIdleTooEarly,
  kNeverIdle,
  kEarlyRecord,
  kIgnoresRefusal
};
enum class MemoryBug : uint8_t { kNone, kSameBlockTwice, kFreedEarly };
enum class LaunchBug : uint8_t { kNone, kStopIgnored, kNeverCompletes };

struct Mutation {
  CommandEdit edit = {};
  StreamBug stream = StreamBug::kNone;
  MemoryBug memory = MemoryBug::kNone;
  LaunchBug launch = LaunchBug::kNone;
  std::vector<BufferRef>* leak_to_or_null = nullptr;  // references to memory are kept there
  std::vector<std::unique_ptr<Event>>* leak_events_to_or_null = nullptr;  // one of each is kept
  std::function<void()> at_end = {};       // called when a launch has ended, before its run knows
  bool hides_loss = false;                 // health() says ok whatever happens
  Allocator* allocator_or_null = nullptr;  // instead of the device's own; no defect
  size_t n = 0;  // which occurrence; of a launch bug, how often strands start without it
};

class MutantDevice : public Device {
 public:
  MutantDevice(std::shared_ptr<VirtualDevice> device, Mutation mutation);
  ~MutantDevice() override;

  std::string_view kind() const override { return device_->kind(); }
  Allocator& allocator() override;
  Result<std::unique_ptr<Stream>> create_stream() override;
  Result<std::unique_ptr<Event>> create_event() override;
  Result<std::shared_ptr<Gate>> create_gate() override { return device_->create_gate(); }
  std::unique_ptr<StrandRunner> create_runner_or_null(const StrandCode& code,
                                                      const Bindings& bindings) override;
  int num_workers() const override { return device_->num_workers(); }
  Status health() const override;
  bool needs_polling() const override { return true; }
  bool poll() override { return device_->poll(); }

  // Whether the place that was asked for exists; where not, nothing was planted.
  bool is_planted() const { return is_planted_; }

 private:
  friend class MutantStream;
  class MutantAllocator;
  // Counts one occurrence; true when it is the one to spoil.
  bool is_turn() {
    if (num_seen_++ != mutation_.n) return false;
    is_planted_ = true;
    return true;
  }

  const std::shared_ptr<VirtualDevice> device_;
  const Mutation mutation_;
  std::unique_ptr<MutantAllocator> allocator_;
  size_t num_seen_ = 0;
  bool is_planted_ = false;
};

}  // namespace eddy::check
