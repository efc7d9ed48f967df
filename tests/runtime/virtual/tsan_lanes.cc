#include "tests/runtime/virtual/tsan_lanes.h"

#include <sanitizer/tsan_interface.h>
#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <vector>

#include "graph/base/check.h"

// Both sides of a switch read and write what they hand over, and that is no race: one thread does
// it.
#define EDDY_UNWATCHED __attribute__((no_sanitize("thread")))

// ThreadSanitizer's, declared in no header of its own.
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}

namespace eddy {
namespace {

namespace fcontext = boost::context::detail;

constexpr size_t kStackBytes = 1 << 20;

class Lane {
 public:
  Lane()
      : stack_(
            mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        fiber_(__tsan_create_fiber(0)) {
    EDDY_CHECK(stack_ != MAP_FAILED) << "no memory for the stack of a lane";
    context_ =
        fcontext::make_fcontext(static_cast<char*>(stack_) + kStackBytes, kStackBytes, &Lane::loop);
  }
  ~Lane() {
    __tsan_destroy_fiber(fiber_);
    munmap(stack_, kStackBytes);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  EDDY_UNWATCHED int32_t run(const LaneWork& work) {
    run_ = work.run;
    decide_ = work.decide;
    work_context_ = work.context;
    caller_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, __tsan_switch_to_fiber_no_sync);
    context_ = fcontext::jump_fcontext(context_, this).fctx;
    return result_;
  }

  // In the lane's name. No stack is needed for that.
  EDDY_UNWATCHED void release(void* address) {
    void* const caller = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, __tsan_switch_to_fiber_no_sync);
    __tsan_release(address);
    __tsan_switch_to_fiber(caller, __tsan_switch_to_fiber_no_sync);
  }
  EDDY_UNWATCHED void acquire(void* address) {
    void* const caller = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, __tsan_switch_to_fiber_no_sync);
    __tsan_acquire(address);
    __tsan_switch_to_fiber(caller, __tsan_switch_to_fiber_no_sync);
  }

  // Addresses to order by: what the host gives the lane, and what the lane has done.
  char given = 0;
  char done = 0;

 private:
  EDDY_UNWATCHED static void loop(fcontext::transfer_t from) {
    for (;;) {
      Lane& lane = *static_cast<Lane*>(from.data);
      lane.result_ = lane.run_ != nullptr ? static_cast<int32_t>(lane.run_(lane.work_context_))
                                          : lane.decide_(lane.work_context_);
      __tsan_switch_to_fiber(lane.caller_, __tsan_switch_to_fiber_no_sync);
      from = fcontext::jump_fcontext(from.fctx, nullptr);
    }
  }

  void* const stack_;
  void* const fiber_;
  fcontext::fcontext_t context_ = nullptr;
  void* caller_ = nullptr;
  WorkFunction run_ = nullptr;
  DecideFunction decide_ = nullptr;
  void* work_context_ = nullptr;
  int32_t result_ = 0;
};

// Neither accesses nor locks count while it lives.
class Unwatched {
 public:
  Unwatched() {
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unwatched() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

class WatchedAllocator : public Allocator {
 public:
  explicit WatchedAllocator(Allocator& allocator) : allocator_(allocator) {}

  Result<BufferRef> allocate(size_t size_bytes) override {
    return handed_out([&] { return allocator_.allocate(size_bytes); });
  }
  Result<BufferRef> allocate_strings(size_t count) override {
    return handed_out([&] { return allocator_.allocate_strings(count); });
  }
  void release(Buffer* buffer) noexcept override {
    __tsan_release(buffer->data);
    const Unwatched unwatched;
    buffer->owner = owner_;
    owner_->release(buffer);
  }
  MemoryStatistics statistics() const override { return allocator_.statistics(); }

 private:
  template <typename Allocate>
  Result<BufferRef> handed_out(const Allocate& allocate) {
    Result<BufferRef> made = Status(internal_error("not allocated"));
    {
      const Unwatched unwatched;
      made = allocate();
      if (!made.is_ok()) return made;
      owner_ = made->get()->owner;
      made->get()->owner = this;
    }
    __tsan_acquire(made->data());
    return made;
  }

  Allocator& allocator_;
  BufferOwner* owner_ = nullptr;  // of everything that the allocator hands out
};

void* address_of(const EventPoint& point) { return const_cast<void*>(point.event); }

class Lanes : public TsanLanes {
 public:
  int32_t run(LaneNumber number, const LaneWork& work) override { return lane(number).run(work); }

  void on_record(LaneNumber number, const EventPoint& point) override {
    release(number, address_of(point));
  }
  void on_wait(LaneNumber number, const EventPoint& point) override {
    if (point.event != nullptr && point.record > 0) acquire(number, address_of(point));
  }
  void on_issue(LaneNumber number, uint64_t) override { release(0, &lane(number).given); }
  void on_begin(LaneNumber number, uint64_t) override { acquire(number, &lane(number).given); }
  void on_idle_seen(LaneNumber number) override {
    release(number, &lane(number).done);
    acquire(0, &lane(number).done);
  }
  void on_point_seen(const EventPoint& point) override { on_wait(0, point); }
  void on_start(LaneNumber main_strand) override {
    release(0, &lane(main_strand).given);
    acquire(main_strand, &lane(main_strand).given);
  }
  void on_end(LaneNumber strand) override { on_idle_seen(strand); }
  void on_allocate(const void*, size_t) override {}

  std::unique_ptr<Allocator> watched_allocator(Allocator& allocator) override {
    return std::make_unique<WatchedAllocator>(allocator);
  }

 private:
  Lane& lane(LaneNumber number) {
    while (lanes_.size() < number) lanes_.push_back(std::make_unique<Lane>());
    return *lanes_[number - 1];
  }
  // 0 is the host: the caller.
  void release(LaneNumber number, void* address) {
    return number == 0 ? __tsan_release(address) : lane(number).release(address);
  }
  void acquire(LaneNumber number, void* address) {
    return number == 0 ? __tsan_acquire(address) : lane(number).acquire(address);
  }

  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace

std::unique_ptr<TsanLanes> TsanLanes::make_or_null() { return std::make_unique<Lanes>(); }

}  // namespace eddy
