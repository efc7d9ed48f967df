// OutputMemory: memory that the caller has bound for one output of the graph, while a run writes
// it; and OutputTargets: the outputs that one value may become.
//
// The memory is a buffer like any other, shared by reference, but for one thing: only a value that
// may become the output is written there (find_output_routes), so to all others it is never
// writable. The maker of such a value takes the memory when no reference is left, else writes
// elsewhere. In a loop whose trips are settled when it is entered, only the iteration that makes
// the output does so (OutputGate). In others each iteration may make it: carried values rotate
// through the memory, and stay in the caller's if there are two for the output, taken by turns.
// Whatever is elsewhere in the end is copied by the code that has bound the memory.
//
//   bind → (a run: give, share, swap, drop) → forget → … → unbind
//
// Threads: binding and forgetting between runs; give_to() as Slot. is_held() pairs with the release
// of the last holder's reference.
#pragma once

#include <atomic>
#include <vector>

#include "graph/ir/graph.h"
#include "runtime/execute/values/slot.h"

namespace eddy {

class OutputMemory {
 public:
  OutputMemory();
  OutputMemory(const OutputMemory&) = delete;
  OutputMemory& operator=(const OutputMemory&) = delete;

  // Nobody may hold the memory bound before.
  void bind(void* data, size_t size_bytes);
  bool is_bound() const { return buffer_.data != nullptr; }
  const void* data() const { return buffer_.data; }
  // A slot, sequence or stack refers to it.
  bool is_held() const { return buffer_.references.load(std::memory_order_acquire) > 1; }
  bool is_in(const BufferRef& buffer) const { return buffer.get() == &buffer_; }
  // `buffer` refers to it, and nothing else does.
  bool is_only_in(const BufferRef& buffer) const {
    return is_in(buffer) && buffer_.references.load(std::memory_order_acquire) == 2;
  }
  // Room for size_bytes in it.
  bool fits(size_t size_bytes) const { return size_bytes > 0 && size_bytes <= size_bytes_; }
  // `holder` refers to it, if nothing else does.
  bool give_to(BufferRef& holder);
  // Ends the slot's claim.
  void take_from(Slot& slot) const;

 private:
  Buffer buffer_;  // its own reference is the binding's
  size_t size_bytes_ = 0;
};

// True when the buffer is the caller's.
bool is_callers_memory(const BufferRef& buffer);

// Closed in iterations of one loop that are known to make something else than the output.
struct OutputGate {
  // Of the strand that runs `node`; written by it.
  const std::atomic<int64_t>* iteration = nullptr;
  const int64_t* trips = nullptr;  // of this time; negative: not settled when the loop began
  int64_t num_carried = 0;
  NodeId node;                            // right inside the loop
  const Slot* carried_or_null = nullptr;  // from which the last of those iterations takes it

  bool is_open() const {
    return *trips < 0 || iteration->load(std::memory_order_relaxed) == *trips - num_carried;
  }
};

struct OutputTarget {
  OutputMemory* memory = nullptr;
  std::vector<Slot*> passed;  // names whose claims are over when the value is written
  std::vector<OutputGate> gates;

  // The value to be made may be the output, and has room there.
  bool may_take(size_t size_bytes) const;
  // As OutputMemory::give_to, once those claims have ended.
  bool give_to(BufferRef& holder, size_t size_bytes) const;
};

struct OutputTargets {
  std::vector<OutputTarget> all;
  // An input that ends where it stands may be overwritten there; null: none may.
  Slot* in_place_or_null = nullptr;
  // Where the exec node that makes the value looks for these, while memory is bound; null: it is
  // made otherwise.
  OutputTargets** maker_or_null = nullptr;
  BufferRef spare;  // what the slot had before it got the caller's memory

  // The slot's memory becomes the caller's, where some is bound that fits and is free. False:
  // the slot has what it had, or what it had before that was the caller's.
  bool give_to(Slot& slot, size_t size_bytes);

 private:
  bool give_in_place(Slot& slot, size_t size_bytes);
};

}  // namespace eddy
