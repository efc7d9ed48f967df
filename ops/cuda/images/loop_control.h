// What decides loops and cases on the device: parameters and bodies of two kernels of one thread
// each and of one of many, for the device and for tests on the host.
//
//   eddy_loop_step   counts a loop's iterations and decides whether another one begins; without a
//                    flag it does nothing: a round needs some kernels (runtime/cuda/plain_order.h)
//   eddy_case_choice selects the branch of a case that runs
//   eddy_loop_copy   the first thread takes steps over single elements, all threads take steps over
//                    many (scalar_step.h); carried values go to where the next iteration reads
//                    them, rows to where the loop's counter says; behind that, the first thread
//                    may do a step of the loop, too; and one block may tell the host at its end
//                    that all that came before it has run
//
// A body that holds several iterations has a word `go_on` in the device's memory: each test writes
// its decision there, too, and what belongs to the second iteration or a later one does nothing
// where it is 0 (kGuarded here; the guard of grid_order_inl.h in all other kernels). So a test that
// ends the loop is its last, and the counter, the handle and all values stay as they are then.
//
// Both end every loop around them once the word `stop` is not 0; a case that has no branch for its
// selector sets it. `stop`, `progress` and `failure` are in host memory that the device sees, so
// the host ends a loop by a write to `stop`, and reads how far it has come. To read `stop` takes as
// long as the bus does, a µs or more: where no kernel of the loop writes it, a test looks at it
// only when kMostUnaskedNs have passed since the last look, whose time the device keeps
// (`asked_ns`).
//
// On the device the decision goes to a conditional node's handle (cudaGraphSetConditional).
#pragma once

#include <cstdint>

#include "ops/cuda/device/scalar_ops.h"
#include "ops/cuda/images/scalar_step.h"

namespace eddy::cuda {

inline constexpr uint64_t kMostUnaskedNs = 20'000;
struct LoopStepParams {
  // kForget: with kStart, as if `stop` had never been looked at. kBehindAll: of a launch of one
  // block, in whose step all its other threads have come to their ends.
  enum Flags : uint32_t {
    kStart = 1,
    kAdvance = 2,
    kTest = 4,
    kGuarded = 8,
    kForget = 16,
    kBehindAll = 32
  };
  uint64_t handle;  // kTest
  int64_t* counter;
  const int64_t* limit;
  const uint8_t* predicate;  // kTest
  const volatile uint32_t* stop;
  volatile int64_t* progress;  // {the counter, whether the loop is over}
  uint32_t* go_on;             // null: the body holds one iteration
  uint64_t* asked_ns;          // null: each step looks at `stop`
  uint32_t flags;
  uint32_t reserved;
};
static_assert(sizeof(LoopStepParams) == 72);

// Pieces of memory that do not overlap. What the steps read or write may be among them where the
// first thread copies it, which it does with eight bytes and less. A map may read, element by
// element, what an earlier one writes: a thread has the same elements of both.
inline constexpr int kMaxLoopCopies = 8;
inline constexpr int kMaxScalarSteps = 32;
inline constexpr int kMaxMaps = 16;
inline constexpr uint64_t kFirstThreadsBytes = 8;
struct LoopCopyParams {
  // kToRow: `to` is as many pieces further on as *count says. kRows: *count rows of row_bytes each,
  // size_bytes at most, go to where the pointer at `to` leads.
  struct Piece {
    enum Kind : uint64_t { kWhole, kToRow, kRows };
    void* to;
    const void* from;
    uint64_t size_bytes;
    uint64_t kind = kWhole;
    const int64_t* count = nullptr;
    uint64_t row_bytes = 0;
  };
  const uint32_t* go_on;
  uint32_t flags;  // of LoopStepParams: kGuarded, kBehindAll
  int32_t num_pieces;
  Piece pieces[kMaxLoopCopies];
  LoopStepParams step;  // flags 0: none
  int64_t num_scalars;
  ScalarStepParams scalars[kMaxScalarSteps];  // before the maps, in order
  int64_t num_maps;
  MapParams maps[kMaxMaps];  // before the pieces, in order
  volatile uint32_t* told;   // a word of the host's that becomes 1 at the end; null: none
};
static_assert(sizeof(LoopCopyParams) == 2672);
static_assert(sizeof(LoopCopyParams::Piece) == 48, "host and device share it");

struct CaseChoiceParams {
  uint64_t handle;
  const void* selector;
  volatile uint32_t* stop;
  volatile int64_t* failure;
  int32_t type;  // 0: bool, 1: int32, 2: int64
  int32_t num_choices;
  int32_t fallback;  // < 0: the run fails
  int32_t reserved;
};
static_assert(sizeof(CaseChoiceParams) == 48);

// Words that host and device share while both run: on the device by what volatile means there, on a
// host that plays the device as atomics.
template <typename T>
EDDY_HD T read_shared(const volatile T* word) {
#ifdef __CUDA_ARCH__
  return *word;
#else
  return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}
template <typename T>
EDDY_HD void write_shared(volatile T* word, T value) {
#ifdef __CUDA_ARCH__
  *word = value;
#else
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
#endif
}

EDDY_HD bool is_called_off(uint32_t flags, const uint32_t* go_on) {
  return (flags & LoopStepParams::kGuarded) != 0 &&
         *static_cast<const volatile uint32_t*>(go_on) == 0;
}

// What a step reads of its loop: all of it may be read before it is needed.
struct LoopStepWords {
  int64_t count, limit;
  uint64_t asked_ns;
  bool predicate;
};
EDDY_HD LoopStepWords read_words(const LoopStepParams& p) {
  LoopStepWords words;
  const bool tests = (p.flags & LoopStepParams::kTest) != 0;
  const bool is_asked = p.asked_ns != nullptr && (p.flags & LoopStepParams::kForget) == 0;
  words.count = (p.flags & LoopStepParams::kStart) != 0 ? 0 : *p.counter;
  words.limit = tests ? *p.limit : 0;
  words.asked_ns = tests && is_asked ? *p.asked_ns : 0;
  words.predicate = tests && *p.predicate != 0;
  return words;
}

// Whether the loop is stopped, as far as it is worth a look.
template <typename Now>
EDDY_HD bool is_seen_stopped(const LoopStepParams& p, uint64_t asked_ns, Now now) {
  if (p.asked_ns == nullptr) {
    return (p.flags & (LoopStepParams::kAdvance | LoopStepParams::kTest)) != 0 &&
           read_shared(p.stop) != 0;
  }
  if ((p.flags & LoopStepParams::kForget) != 0) *p.asked_ns = 0;
  if ((p.flags & LoopStepParams::kTest) == 0) return false;
  const uint64_t time_ns = now();
  if (time_ns - asked_ns < kMostUnaskedNs) return false;
  *p.asked_ns = time_ns;
  return read_shared(p.stop) != 0;
}

// Set: (handle, value) -> void; Now: () -> ns of a clock of the whole device. Whether it goes on.
template <typename Set, typename Now>
EDDY_HD bool loop_step(const LoopStepParams& p, const LoopStepWords& words, Set set, Now now) {
  const bool is_stopped = is_seen_stopped(p, words.asked_ns, now);
  int64_t count = words.count;
  // A stopped iteration is not over: the counter keeps its number, which reports of the place show.
  if ((p.flags & LoopStepParams::kAdvance) != 0 && !is_stopped) ++count;
  *p.counter = count;
  write_shared(p.progress, count);
  if ((p.flags & LoopStepParams::kStart) != 0) write_shared(p.progress + 1, int64_t{0});
  if ((p.flags & LoopStepParams::kTest) == 0) return false;
  const bool goes_on = !is_stopped && count < words.limit && words.predicate;
  if (!goes_on) write_shared(p.progress + 1, int64_t{1});
  if (p.go_on != nullptr) *p.go_on = goes_on ? 1u : 0u;
  set(p.handle, goes_on ? 1u : 0u);
  return goes_on;
}
template <typename Set, typename Now>
EDDY_HD void loop_step(const LoopStepParams& p, Set set, Now now) {
  if (p.flags == 0 || is_called_off(p.flags, p.go_on)) return;
  loop_step(p, read_words(p), set, now);
}

// A word that the host may look at meanwhile, as it does for one that write_shared has written.
EDDY_HD void copy_word(uint64_t* to, const uint64_t* from) {
#ifdef __CUDA_ARCH__
  *to = *from;
#else
  __atomic_store_n(to, *from, __ATOMIC_RELAXED);
#endif
}

// Where it goes this time, and how much.
EDDY_HD LoopCopyParams::Piece piece_now(LoopCopyParams::Piece piece) {
  if (piece.kind == LoopCopyParams::Piece::kWhole) return piece;
  const uint64_t count = static_cast<uint64_t>(*piece.count);
  if (piece.kind == LoopCopyParams::Piece::kToRow) {
    piece.to = static_cast<char*>(piece.to) + count * piece.size_bytes;
    return piece;
  }
  piece.to = *static_cast<void* const*>(piece.to);
  const uint64_t size_bytes = count * piece.row_bytes;
  if (size_bytes < piece.size_bytes) piece.size_bytes = size_bytes;
  return piece;
}

// Copies by words where both ends allow, and what remains by bytes.
EDDY_HD void copy_piece(const LoopCopyParams::Piece& given, uint64_t first, uint64_t step) {
  const LoopCopyParams::Piece piece = piece_now(given);
  if (piece.size_bytes <= kFirstThreadsBytes && first != 0) return;
  if (piece.size_bytes <= kFirstThreadsBytes) step = 1;
  const uint64_t ends =
      reinterpret_cast<uint64_t>(piece.to) | reinterpret_cast<uint64_t>(piece.from);
  const uint64_t num_words = ends % sizeof(uint64_t) == 0 ? piece.size_bytes / sizeof(uint64_t) : 0;
  for (uint64_t i = first; i < num_words; i += step) {
    copy_word(static_cast<uint64_t*>(piece.to) + i, static_cast<const uint64_t*>(piece.from) + i);
  }
  for (uint64_t i = num_words * sizeof(uint64_t) + first; i < piece.size_bytes; i += step) {
    static_cast<uint8_t*>(piece.to)[i] = static_cast<const uint8_t*>(piece.from)[i];
  }
}

// Threads: `first`, `first + step`, … False: the launch is called off, and has no step. A source
// made for one launch does the same (copy_source.h).
EDDY_HD bool loop_copy_parts(const LoopCopyParams& p, uint64_t first, uint64_t step) {
  if (is_called_off(p.flags, p.go_on)) return false;
  if (first == 0) {
    for (int64_t k = 0; k < p.num_scalars; ++k) scalar_step(p.scalars[k]);
  }
  for (int64_t k = 0; k < p.num_maps; ++k) {
    for (uint64_t i = first; i < p.maps[k].count; i += step) map_element(p.maps[k], i);
  }
  for (int32_t k = 0; k < p.num_pieces; ++k) copy_piece(p.pieces[k], first, step);
  return true;
}

// Behind its own parts; behind those of all threads where kBehindAll says so.
template <typename Set, typename Now>
EDDY_HD void loop_copy_step(const LoopCopyParams& p, uint64_t first, Set set, Now now) {
  if (first == 0 && p.step.flags != 0) loop_step(p.step, set, now);
}

// By one thread, once all threads are through.
EDDY_HD void tell_end(const LoopCopyParams& p) {
#ifdef __CUDA_ARCH__
  __threadfence_system();
  *p.told = 1;
#else
  __atomic_store_n(p.told, 1u, __ATOMIC_RELEASE);
#endif
}

template <typename Set>
EDDY_HD void case_choice(const CaseChoiceParams& p, Set set) {
  int64_t value = p.type == 0 ? static_cast<int64_t>(*static_cast<const uint8_t*>(p.selector) != 0)
                  : p.type == 1 ? static_cast<int64_t>(*static_cast<const int32_t*>(p.selector))
                                : *static_cast<const int64_t*>(p.selector);
  const int64_t selected = value;
  if (value < 0 || value >= p.num_choices) value = p.fallback;
  if (value < 0) {
    if (read_shared(p.stop) == 0) {
      write_shared(p.failure + 1, selected);
      write_shared(p.failure, int64_t{1});
      write_shared(p.stop, uint32_t{1});
    }
    value = p.num_choices;
  }
  set(p.handle, static_cast<uint32_t>(value));
}

}  // namespace eddy::cuda
