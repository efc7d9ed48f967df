#include "tests/tools/check/mutants.h"

#include <cstring>

#include "graph/base/check.h"
#include "runtime/cpu/host_allocator.h"
#include "runtime/execute/values/element_stack.h"

namespace eddy::check {
namespace {

// The device's own strands, of an edited copy.
class MutantStrands : public StrandRunner {
 public:
  MutantStrands(Device& device, const StrandCode& code, const Bindings& bindings,
                const Mutation& mutation, bool& is_planted)
      : edited_{code, bindings, {}}, mutation_(mutation), is_planted_(is_planted) {
    if (mutation_.edit) is_planted_ |= mutation_.edit(edited_, mutation_.n);
    inner_ = device.create_runner_or_null(edited_.code, edited_.bindings);
  }

  void start(RunControl& control) override {
    const bool is_honest = mutation_.launch == LaunchBug::kNone && !mutation_.at_end;
    if (is_honest || num_starts_++ < mutation_.n) {
      return inner_->start(control);
    }
    is_planted_ = true;
    given_ = &control;
    own_.stop = StopReason::kRunning;
    own_.context = this;
    own_.on_complete = [](void* self) { static_cast<MutantStrands*>(self)->complete(); };
    inner_->start(own_);
  }
  void run_here(RunControl& control) override { start(control); }
  StrandState strand_state(uint32_t strand) const override { return inner_->strand_state(strand); }

 private:
  void complete() {
    if (mutation_.launch == LaunchBug::kNeverCompletes) return;
    if (mutation_.at_end) mutation_.at_end();
    given_->on_complete(given_->context);
  }

  EditedCode edited_;
  std::unique_ptr<StrandRunner> inner_;
  const Mutation& mutation_;
  bool& is_planted_;
  RunControl own_;
  RunControl* given_ = nullptr;
  size_t num_starts_ = 0;
};

}  // namespace

class MutantStream : public Stream {
 public:
  MutantStream(std::unique_ptr<Stream> inner, std::unique_ptr<Stream> other, MutantDevice& device)
      : inner_(std::move(inner)),
        other_(std::move(other)),
        device_(device),
        bug_(device.mutation_.stream) {}
  ~MutantStream() override {
    while (!other_->is_idle()) device_.poll();
  }

  bool launch(const Work& work) override {
    if (has_held_) {  // behind the one that should have followed it
      has_held_ = false;
      return inner_->launch(work) && inner_->launch(held_);
    }
    if (bug_ == StreamBug::kLostLaunch && device_.is_turn()) return true;
    if (bug_ == StreamBug::kLaunchedTwice && device_.is_turn()) (void)inner_->launch(work);
    if (bug_ == StreamBug::kRunsEarly && device_.is_turn()) return work.run(work.context), true;
    if (bug_ == StreamBug::kSwapped && device_.is_turn()) {
      held_ = work;
      return has_held_ = true;
    }
    return inner_->launch(work) || bug_ == StreamBug::kIgnoresRefusal;
  }
  bool record(Event& event) override {
    flush();
    if (bug_ == StreamBug::kLostRecord && device_.is_turn()) return true;
    if (bug_ == StreamBug::kEarlyRecord && device_.is_turn()) return other_->record(event);
    return inner_->record(event) || bug_ == StreamBug::kIgnoresRefusal;
  }
  bool wait(Event& event) override {
    flush();
    if (bug_ == StreamBug::kLostWait && device_.is_turn()) return true;
    return inner_->wait(event) || bug_ == StreamBug::kIgnoresRefusal;
  }
  bool hold(std::shared_ptr<Gate> gate) override { return inner_->hold(std::move(gate)); }
  bool is_idle() const override {
    const bool is_idle = inner_->is_idle() && !has_held_;
    if (bug_ == StreamBug::kIdleTooEarly && !is_idle && device_.is_turn()) return true;
    return is_idle;
  }
  bool listen_or_idle(EventListener& listener) override {
    flush();
    if (bug_ == StreamBug::kNeverIdle && device_.is_turn()) return false;
    return inner_->listen_or_idle(listener);
  }

 private:
  void flush() {
    if (has_held_) (void)inner_->launch(held_);
    has_held_ = false;
  }

  const std::unique_ptr<Stream> inner_;
  const std::unique_ptr<Stream> other_;  // idle, so what is recorded there happens at once
  MutantDevice& device_;
  const StreamBug bug_;
  Work held_;
  bool has_held_ = false;
};

// The mutant allocates its own blocks, so that a planted defect harms no other allocator.
class MutantDevice::MutantAllocator : public Allocator {
 public:
  explicit MutantAllocator(MutantDevice& device) : device_(device) {}

  Result<BufferRef> allocate(size_t size_bytes) override {
    constexpr size_t kAlignment = 64;
    Block& block = blocks_.emplace_back();
    block.bytes.resize(size_bytes + kAlignment, 0xa5);
    auto address = reinterpret_cast<uintptr_t>(block.bytes.data());
    block.buffer.data =
        reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
    block.buffer.capacity_bytes = size_bytes;
    block.buffer.owner = this;
    spoil(block);
    ++num_used_;
    return BufferRef(&block.buffer);
  }
  Result<BufferRef> allocate_strings(size_t) override {
    return unsupported("mutants have no strings");
  }
  void release(Buffer* buffer) noexcept override {
    std::memset(buffer->data, 0x5a, buffer->capacity_bytes);
    --num_used_;
  }
  MemoryStatistics statistics() const override {
    MemoryStatistics statistics;
    statistics.used_bytes = num_used_;
    return statistics;
  }

 private:
  struct Block {
    std::vector<unsigned char> bytes;
    Buffer buffer;
  };
  void spoil(Block& block) {
    if (!device_.is_turn() || blocks_.size() < 2) return;
    Block& before = blocks_[blocks_.size() - 2];
    if (is_link(before) || is_link(block)) return;
    switch (device_.mutation_.memory) {
      case MemoryBug::kSameBlockTwice:
        if (before.buffer.capacity_bytes >= block.buffer.capacity_bytes) {
          block.buffer.data = before.buffer.data;
        }
        break;
      case MemoryBug::kFreedEarly:
        std::memset(before.buffer.data, 0x5a, before.buffer.capacity_bytes);
        break;
      case MemoryBug::kNone:
        break;
    }
  }

  // Between two elements of a sequence: pointers, whose loss ends a process before any check.
  bool is_link(const Block& block) const { return block.buffer.capacity_bytes == link_bytes_; }

  // What a sequence asks for to hold an element.
  static size_t find_link_bytes() {
    struct Probe : HostAllocator {
      Result<BufferRef> allocate(size_t size_bytes) override {
        asked = size_bytes;
        return HostAllocator::allocate(size_bytes);
      }
      size_t asked = 0;
    } probe;
    ElementStack stack;
    const Status status = stack.push_back({}, probe);
    EDDY_CHECK(status.is_ok()) << status.message();
    return probe.asked;
  }

  MutantDevice& device_;
  const size_t link_bytes_ = find_link_bytes();
  std::deque<Block> blocks_;
  size_t num_used_ = 0;
};

MutantDevice::MutantDevice(std::shared_ptr<VirtualDevice> device, Mutation mutation)
    : device_(std::move(device)), mutation_(std::move(mutation)) {
  if (mutation_.memory != MemoryBug::kNone) allocator_ = std::make_unique<MutantAllocator>(*this);
}

MutantDevice::~MutantDevice() = default;

Allocator& MutantDevice::allocator() {
  if (allocator_) return *allocator_;
  if (mutation_.allocator_or_null != nullptr) return *mutation_.allocator_or_null;
  if (mutation_.leak_to_or_null != nullptr && is_turn()) {
    auto leaked = device_->allocator().allocate(1);
    if (leaked.is_ok()) mutation_.leak_to_or_null->push_back(std::move(*leaked));
  }
  return device_->allocator();
}

Status MutantDevice::health() const {
  return mutation_.hides_loss ? Status::ok() : device_->health();
}

Result<std::unique_ptr<Event>> MutantDevice::create_event() {
  if (mutation_.leak_events_to_or_null != nullptr && is_turn()) {
    EDDY_ASSIGN_OR_RETURN(auto leaked, device_->create_event());
    mutation_.leak_events_to_or_null->push_back(std::move(leaked));
  }
  return device_->create_event();
}

Result<std::unique_ptr<Stream>> MutantDevice::create_stream() {
  EDDY_ASSIGN_OR_RETURN(auto stream, device_->create_stream());
  if (mutation_.stream == StreamBug::kNone) return stream;
  EDDY_ASSIGN_OR_RETURN(auto other, device_->create_stream());
  return std::unique_ptr<Stream>(
      std::make_unique<MutantStream>(std::move(stream), std::move(other), *this));
}

std::unique_ptr<StrandRunner> MutantDevice::create_runner_or_null(const StrandCode& code,
                                                                  const Bindings& bindings) {
  return std::make_unique<MutantStrands>(*device_, code, bindings, mutation_, is_planted_);
}

}  // namespace eddy::check
