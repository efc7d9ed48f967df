#include "runtime/api/c/handles.h"

#include <pthread.h>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "graph/base/check.h"

namespace eddy::c {
namespace {

constexpr int kReferenceShift = 20;
constexpr int kGenerationShift = 40;
constexpr uint64_t kOneReference = uint64_t{1} << kReferenceShift;
constexpr uint64_t kCountMask = (uint64_t{1} << 20) - 1;
constexpr uint64_t kAlone = uint64_t{1} << 19;
constexpr uint64_t kPinMask = kAlone - 1;
constexpr uint64_t kGenerationMask = (uint64_t{1} << 24) - 1;
static_assert(kPinMask < kOneReference && kCountMask << kReferenceShift >> kGenerationShift == 0 &&
                  kGenerationMask << kGenerationShift >> kGenerationShift == kGenerationMask,
              "pins, references and the generation share one word");

uint64_t references(uint64_t state) { return state >> kReferenceShift & kCountMask; }
uint64_t pins(uint64_t state) { return state & kPinMask; }
uint64_t generation(uint64_t state) { return state >> kGenerationShift; }
uint64_t pin_of(Use use) { return use == Use::kAlone ? 1 | kAlone : 1; }
uint64_t generation_of(void* handle) { return reinterpret_cast<uintptr_t>(handle) >> 32; }

const char* article(Kind kind) {
  return kind == Kind::kError || kind == Kind::kExecutor ? "an " : "a ";
}

Refusal refused(void* handle, Kind wanted) {
  const std::string name = wanted == Kind::kNone ? "object" : kind_name(wanted);
  if (handle == nullptr) return {EDDY_INVALID_HANDLE, "the handle of the " + name + " is null"};
  return {EDDY_INVALID_HANDLE, "the handle of the " + name + " was released, or is none of Eddy's"};
}

Refusal other_kind(Kind is, Kind wanted) {
  return {EDDY_INVALID_HANDLE, std::string("the handle is that of ") + article(is) + kind_name(is) +
                                   ", not of " + article(wanted) + kind_name(wanted)};
}

Refusal is_busy(Kind kind) {
  return {EDDY_INVALID_STATE, std::string("another thread is inside a call with this ") +
                                  kind_name(kind) + ", which is for one thread at a time"};
}

}  // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "nothing";
    case Kind::kError:
      return "error";
    case Kind::kContext:
      return "context";
    case Kind::kLibrary:
      return "library";
    case Kind::kGraph:
      return "graph";
    case Kind::kSession:
      return "session";
    case Kind::kRun:
      return "run";
    case Kind::kValue:
      return "value";
    case Kind::kRows:
      return "stream of rows";
    case Kind::kExecutor:
      return "executor";
    case Kind::kPending:
      return "pending answer";
    case Kind::kStream:
      return "stream";
  }
  return "object";
}

__attribute__((noinline)) int& UserCodeScope::depth() {
  thread_local int depth = 0;
  return depth;
}

// All zeros, so that its pages come as handles do; never destroyed, for programs that release at
// exit.
union HandleTable::Place {
  constexpr Place() : table() {}
  constexpr ~Place() {}
  HandleTable table;
};
constinit HandleTable::Place HandleTable::place_;

HandleTable& HandleTable::get() { return place_.table; }

void HandleTable::guard_forks() {
  [[maybe_unused]] static const int failed = pthread_atfork(
      [] { get().lock_.lock(); }, [] { get().lock_.unlock(); }, [] { get().lock_.unlock(); });
}

HandleTable::Cell* HandleTable::cell_or_null(void* handle) const {
  const uint64_t number = reinterpret_cast<uintptr_t>(handle) & 0xffffffffu;
  if (number == 0 || (number - 1) / kChunk >= kMaxChunks) return nullptr;
  Chunk* const chunk = chunks_[(number - 1) / kChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[(number - 1) % kChunk];
}

struct HandleTable::SpareCell {
  ~SpareCell() {
    is_gone = true;
    if (cell_or_null != nullptr) get().give_back(*cell_or_null);
  }
  Cell* cell_or_null = nullptr;
  bool is_gone = false;  // the thread ends
};

// Not inlined, as UserCodeScope::depth().
__attribute__((noinline)) HandleTable::SpareCell& HandleTable::spare_cell() {
  thread_local SpareCell spare;
  return spare;
}

void HandleTable::give_back(Cell& cell) {
  const std::lock_guard lock(lock_);
  free_.push_back(cell.number);
}

HandleTable::Cell& HandleTable::take_free_cell() {
  if (Cell* const spare = std::exchange(spare_cell().cell_or_null, nullptr)) return *spare;
  const std::lock_guard lock(lock_);
  if (!free_.empty()) {
    const uint32_t number = free_.back();
    free_.pop_back();
    return (*chunks_[number / kChunk].load(std::memory_order_relaxed))[number % kChunk];
  }
  if (num_cells_ / kChunk >= kMaxChunks) throw std::bad_alloc();
  const uint32_t number = num_cells_;
  if (number % kChunk == 0) {
    free_.reserve(number + kChunk);  // so that end() allocates nothing
    chunks_[number / kChunk].store(new Chunk, std::memory_order_release);
  }
  ++num_cells_;
  Cell& cell = (*chunks_[number / kChunk].load(std::memory_order_relaxed))[number % kChunk];
  cell.number = number;
  return cell;
}

void* HandleTable::add(Kind kind, std::shared_ptr<Object> object) {
  EDDY_CHECK(object != nullptr && kind != Kind::kNone) << "a handle of nothing";
  Cell& cell = take_free_cell();
  const uint64_t age = generation(cell.state.load(std::memory_order_relaxed));
  cell.kind.store(kind, std::memory_order_relaxed);
  cell.object = std::move(object);
  cell.state.store(age << kGenerationShift | kOneReference, std::memory_order_release);
  return reinterpret_cast<void*>(static_cast<uintptr_t>(age << 32 | (cell.number + 1)));
}

HandleTable::Cell* HandleTable::pin(void* handle, Kind kind, Use use, Refusal& why) {
  Cell* const cell = cell_or_null(handle);
  uint64_t state = cell == nullptr ? 0 : cell->state.load(std::memory_order_acquire);
  do {
    if (references(state) == 0 || generation(state) != generation_of(handle)) [[unlikely]] {
      why = refused(handle, kind);
      return nullptr;
    }
    // A cell that was used anew meanwhile has another state.
    if (const Kind is = cell->kind.load(std::memory_order_relaxed); is != kind) [[unlikely]] {
      why = other_kind(is, kind);
      return nullptr;
    }
    if (use == Use::kAlone && (state & kAlone) != 0) [[unlikely]] {
      why = is_busy(kind);
      return nullptr;
    }
    EDDY_CHECK(pins(state) < kPinMask) << "half a million calls on one object";
  } while (
      !cell->state.compare_exchange_weak(state, state + pin_of(use), std::memory_order_acquire));
  return cell;
}

void HandleTable::unpin(Cell& cell, Use use) {
  const uint64_t before = cell.state.fetch_sub(pin_of(use), std::memory_order_acq_rel);
  EDDY_DCHECK(pins(before) > 0 && (use == Use::kShared || (before & kAlone) != 0))
      << "an object is let go that was not pinned so";
  const uint64_t state = before - pin_of(use);
  if (references(state) == 0 && pins(state) == 0) end(cell, generation(state));
}

void HandleTable::end_alone(Cell& cell) {
  const uint64_t before = cell.state.fetch_sub(kAlone, std::memory_order_release);
  EDDY_CHECK((before & kAlone) != 0) << "a call that is not alone shares its object";
}

Refusal HandleTable::retain(void* handle) {
  Cell* const cell = cell_or_null(handle);
  uint64_t state = cell == nullptr ? 0 : cell->state.load(std::memory_order_relaxed);
  do {
    if (references(state) == 0 || generation(state) != generation_of(handle)) {
      return refused(handle, Kind::kNone);
    }
    if (references(state) == kCountMask) {
      return {EDDY_RESOURCE_EXHAUSTED, "an object has at most 1048575 references"};
    }
  } while (
      !cell->state.compare_exchange_weak(state, state + kOneReference, std::memory_order_relaxed));
  return {};
}

Refusal HandleTable::release(void* handle) {
  Cell* const cell = cell_or_null(handle);
  uint64_t state = cell == nullptr ? 0 : cell->state.load(std::memory_order_relaxed);
  do {
    if (references(state) == 0 || generation(state) != generation_of(handle)) {
      return refused(handle, Kind::kNone);
    }
  } while (!cell->state.compare_exchange_weak(
      state, state - kOneReference, std::memory_order_acq_rel, std::memory_order_relaxed));
  state -= kOneReference;
  if (references(state) == 0 && pins(state) == 0) end(*cell, generation(state));
  return {};
}

void HandleTable::end(Cell& cell, uint64_t age) {
  EDDY_DCHECK(cell.object != nullptr) << "an object ends twice";
  std::shared_ptr<Object> object = std::move(cell.object);
  cell.object.reset();
  const uint64_t next = (age + 1) & kGenerationMask;
  cell.state.store(next << kGenerationShift, std::memory_order_release);
  // A cell that has been used so often is used no more, as its first handles would be good again.
  if (next != 0) {
    SpareCell& spare = spare_cell();
    if (spare.cell_or_null == nullptr && !spare.is_gone) {
      spare.cell_or_null = &cell;
    } else {
      give_back(cell);
    }
  }
  object->released();
  if (UserCodeScope::depth() == 0) return;
  try {
    auto* const last = new std::shared_ptr<Object>(std::move(object));
    // Where the system has no thread it is left alone: to wait here could never end.
    std::thread([last] { delete last; }).detach();
  } catch (const std::exception&) {
  }
}

}  // namespace eddy::c
