// HandleTable: the objects behind the handles of the C interface.
//
// A handle is no address but the number of a cell and how often that cell was used before, so any
// bits at all may be asked about: a null, released, foreign or wrong handle is refused, and nothing
// is read through it. A cell counts references (its handle's holders) and pins (calls that are
// inside). An object goes with the last of both, so a release beside a call is safe. Objects that
// are for one thread at a time are pinned alone, which refuses a second such call beside the first.
//
//   state: | generation 24 | references 20 | alone 1 | pins 19 |   one atomic word
//
// The one process-wide thing of the interface; cells are reused, their memory is kept. A child of
// fork() may make and release handles whatever other threads of its parent were doing.
// Internal to runtime/api/c. Threads: any; pin() acquires what add() and unpin() have released.
// Cost: two locked instructions a call; a lock where a thread makes or ends several objects in a
// row.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "graph/base/short_lock.h"
#include "runtime/api/c/refusal.h"

namespace eddy::c {

enum class Kind : uint8_t {
  kNone,
  kError,
  kContext,
  kLibrary,
  kGraph,
  kSession,
  kRun,
  kValue,
  kRows,
  kExecutor,
  kPending,
  kStream,
};
const char* kind_name(Kind kind);

class Object {
 public:
  virtual ~Object() = default;
  // The last handle has gone; other objects may still keep it.
  virtual void released() noexcept {}
};

// How a call uses an object: beside others that do, or none of those that are alone with it.
enum class Use : uint8_t { kShared, kAlone };

class HandleTable {
 public:
  static HandleTable& get();
  // Once: from then on a process that forks has the lock meanwhile, so that the child can take it.
  static void guard_forks();

  // One reference to the object. Throws std::bad_alloc.
  void* add(Kind kind, std::shared_ptr<Object> object);
  Refusal retain(void* handle);
  Refusal release(void* handle);

  struct Cell {
    std::atomic<uint64_t> state{0};
    std::atomic<Kind> kind{Kind::kNone};  // of the generation: released and acquired by `state`
    uint32_t number = 0;
    std::shared_ptr<Object> object;
  };
  // The handle's cell, pinned; null where it is refused, with the reason.
  Cell* pin(void* handle, Kind kind, Use use, Refusal& why);
  void unpin(Cell& cell, Use use);
  void end_alone(Cell& cell);  // pinned alone, and shared from then on

 private:
  static constexpr uint32_t kChunk = 1024;
  static constexpr uint32_t kMaxChunks = 1u << 16;
  using Chunk = std::array<Cell, kChunk>;

  union Place;
  static Place place_;

  constexpr HandleTable() = default;
  // The last cell that the thread has ended is the next one that it takes.
  struct SpareCell;
  static SpareCell& spare_cell();
  Cell* cell_or_null(void* handle) const;
  Cell& take_free_cell();
  void give_back(Cell& cell);
  void end(Cell& cell, uint64_t generation);

  std::array<std::atomic<Chunk*>, kMaxChunks> chunks_{};
  ShortLock lock_;
  std::vector<uint32_t> free_;  // under the lock
  uint32_t num_cells_ = 0;      // under the lock
};

// An object for the time of a call.
template <typename T, Use use = Use::kShared>
class Pin {
 public:
  Pin(void* handle, Refusal& why) : cell_(HandleTable::get().pin(handle, T::kKind, use, why)) {}
  ~Pin() {
    if (cell_ != nullptr) HandleTable::get().unpin(*cell_, is_alone_ ? Use::kAlone : Use::kShared);
  }
  Pin(Pin&& other) noexcept
      : cell_(std::exchange(other.cell_, nullptr)), is_alone_(other.is_alone_) {}
  Pin& operator=(Pin&&) = delete;

  explicit operator bool() const { return cell_ != nullptr; }
  T& operator*() const { return static_cast<T&>(*cell_->object); }
  T* operator->() const { return &**this; }
  // Other calls may have the object alone from now on, before this one has returned.
  void share_with_others() const {
    if (std::exchange(is_alone_, false)) HandleTable::get().end_alone(*cell_);
  }
  // For what keeps the object alive beyond the call.
  std::shared_ptr<T> share() const { return std::static_pointer_cast<T>(cell_->object); }

 private:
  HandleTable::Cell* cell_;
  mutable bool is_alone_ = use == Use::kAlone;
};

template <typename Handle, typename T>
Handle make_handle(std::shared_ptr<T> object) {
  return static_cast<Handle>(HandleTable::get().add(T::kKind, std::move(object)));
}

// While a function of the user's runs that Eddy waits for (a kernel, a host function): what goes
// then goes on another thread, because a session may not wait there for its runs.
class UserCodeScope {
 public:
  UserCodeScope() { ++depth(); }
  ~UserCodeScope() { --depth(); }
  UserCodeScope(const UserCodeScope&) = delete;
  UserCodeScope& operator=(const UserCodeScope&) = delete;

  // Of this thread. Not inlined: a task that moved to another one would see the old one's.
  static int& depth();
};

}  // namespace eddy::c
