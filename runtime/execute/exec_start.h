// start_node: an exec node whose kernel may answer later (ops/contract/pending_call.h), or whose
// call falls apart into tiles that idle workers share.
//
// Tiles: the calling thread takes tiles, and so does each worker that is idle then or becomes idle
// while some are left to take; which ones, tile_ranges.h says. No thread waits, but for tiles that
// follow others (BoundKernel::count_at_once): a thread that has taken one looks until those before
// have ended, as each is being run; and the caller for the last ones: 30 µs, because a strand that
// moves to another worker costs about as much, and 120 µs where no work waits for a thread. After
// that the call is answered by the worker that ends it.
//
// Errors: the node's; of several tiles that fail, one. Threads: those of the run. Cost: of tiles,
// two atomic operations each and an enqueue for each helper.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/device/strand_runner.h"
#include "runtime/execute/exec_node.h"
#include "runtime/execute/tile_ranges.h"

namespace eddy {

// The tiles of one call. Workers that help hold references: one that comes too late finds nothing
// to do, and perhaps nothing of the node.
class TileTeam : public std::enable_shared_from_this<TileTeam> {
 public:
  // `at_once`: tiles that follow none of each other. `shared_or_null`: the call's memory. `owner`:
  // the run's (RunControl).
  TileTeam(ExecNode& node, Workers& workers, uint32_t num_tiles, uint32_t at_once,
           void* shared_or_null, const void* owner, const Resume& resume)
      : node_(node),
        workers_(workers),
        resume_(resume),
        owner_(owner),
        at_once_(at_once),
        shared_or_null_(shared_or_null),
        most_helpers_(most_helpers(node, num_tiles, at_once)),
        tiles_(num_tiles, at_once, most_helpers_ + 1),
        num_left_(num_tiles) {}

  CallOutcome run();

 private:
  // Which of them goes on once all tiles have ended.
  enum class End : uint8_t { kByCaller, kByHelper, kReached };
  struct Helper {
    std::shared_ptr<TileTeam> team;
  };
  static void help(void* helper);
  static uint32_t most_helpers(const ExecNode& node, uint32_t num_tiles, uint32_t at_once);
  void call_helpers();
  // What one thread does. True: its tile was the last one to end.
  bool run_tiles(bool is_helper);
  // True: it was the last one to end. A helper has scratch memory of its own for each.
  bool run_tile(uint32_t tile, bool is_helper);
  // A while. True: all tiles have ended, and it is for the caller to go on.
  bool await_end();
  // Until the tiles that this one follows have ended.
  void await_turn(uint32_t tile) const;

  ExecNode& node_;
  Workers& workers_;
  const Resume resume_;
  const void* const owner_;  // of the run, which a late helper may find gone
  const uint32_t at_once_;
  void* const shared_or_null_;
  const uint32_t most_helpers_;
  TileRanges tiles_;
  std::atomic<uint32_t> num_left_;
  std::atomic<bool> has_failed_{false};
  // Acquires and releases what tiles have written, between the last helper and the caller.
  std::atomic<End> end_{End::kByCaller};
  uint32_t num_helpers_ = 0;  // the caller's
};

// A StartCallFunction.
CallOutcome start_node(void* exec_node, const Resume& resume);

}  // namespace eddy
