// SessionObject: a session, what it counts, and where its graph comes from.
//
// Internal to runtime/api/c. Ownership: keeps its library; runs keep it. Threads: any.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/api/c/context.h"
#include "runtime/api/c/handles.h"
#include "runtime/api/c/locations.h"
#include "runtime/api/c/options.h"
#include "runtime/api/session.h"

namespace eddy::c {

struct SessionObject : Object {
  static constexpr Kind kKind = Kind::kSession;

  const Locations* locations_or_null() const { return locations.get(); }
  void count(eddy_code ended) {
    std::atomic<uint64_t>& counter = ended == EDDY_OK                  ? succeeded
                                     : ended == EDDY_CANCELLED         ? cancelled
                                     : ended == EDDY_DEADLINE_EXCEEDED ? late
                                                                       : failed;
    counter.fetch_add(1, std::memory_order_relaxed);
  }
  eddy_metrics metrics() const;
  // Successes that a run counts by itself, without a locked operation: one thread at a time adds.
  using Tally = std::list<std::atomic<uint64_t>>::iterator;
  Tally begin_tally();
  void end_tally(Tally tally);

  // A value in a GPU's memory must be in that of the session's.
  Refusal check_gpu_of(const Tensor& value) const;
  // Once its session is made.
  void find_owing_nodes();

  std::shared_ptr<LibraryObject> library;
  std::shared_ptr<const Locations> locations;
  CallerOptions own;
  bool may_owe = false;  // kernels or host functions of the caller's may answer later
  std::atomic<uint64_t> succeeded{0}, failed{0}, cancelled{0}, late{0};
  mutable std::mutex tallies_mutex;
  std::list<std::atomic<uint64_t>> tallies;  // under the mutex, but for what runs add
  std::unique_ptr<Session> session;          // goes first
};

// What the caller's options make of sessions of this library.
Refusal read_options(const LibraryObject& library, const eddy_option* given, size_t count,
                     SessionOptions& options, CallerOptions& own);
// A size for a dimension that the graph does not have is a slip of the pen.
Refusal check_dims(const Graph& graph, const SessionOptions& options);
// Of a caller's options; null: the defaults.
Refusal read_run_options(const eddy_run_options* given, RunOptions& options);

}  // namespace eddy::c
