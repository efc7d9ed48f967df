#include "runtime/execute/exec_start.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "graph/base/check.h"
#include "graph/base/processor.h"
#include "runtime/device/run_scope.h"
#include "runtime/execute/executable.h"
#include "runtime/execute/run_base.h"
#include "runtime/execute/values/stream_scratch.h"

namespace eddy {
namespace {

// What kernels throw is their error, too.
template <typename Call>
bool call_or_note(Status& error, const Call& call) {
  try {
    return call();
  } catch (const std::exception& thrown) {
    error = run_failed(std::string("the kernel threw: ") + thrown.what());
  } catch (...) {
    error = run_failed("the kernel threw something");
  }
  return false;
}

// Of one call that has said, or will say, kLater.
class Receiver : public PendingCall::Receiver,
                 public StopListener,
                 public std::enable_shared_from_this<Receiver> {
 public:
  Receiver(ExecNode& node, const Resume& resume)
      : node_(node), owner_(node.owner->control.owner), resume_(resume) {}

  void complete(Status status) override {
    std::function<void()> function;  // goes after the lock: what it holds is the user's
    {
      const std::lock_guard lock(mutex_);
      is_complete_ = true;
      function.swap(function_);
    }
    node_.owner->control.remove_listener(*this);
    if (!status.is_ok()) node_.error = std::move(status);
    const bool is_ok = node_.error.is_ok();
    resume_(node_.finish(is_ok));
  }
  void on_stop(std::function<void()> function) override {
    {
      const std::lock_guard lock(mutex_);
      if (is_complete_) return;  // perhaps by a file that was ready at once
      if (!has_stopped_) {
        function_ = std::move(function);
        return;
      }
    }
    call(function);
  }
  void complete_when_readable(int file, std::function<Status()> read) override {
    const FileWaits& files = node_.owner->executable().file_waits();
    if (!files.add) return complete(unsupported("nothing here waits for files"));
    const auto self = shared_from_this();
    const Result<uint64_t> wait = files.add(file, [self, read = std::move(read)] {
      Status status;
      call_or_note(status, [&] { return (status = read()).is_ok(); });
      self->complete(std::move(status));
    });
    if (!wait.is_ok()) return complete(wait.status());
    on_stop([self, &files, wait = *wait] {
      if (files.remove(wait)) self->complete(cancelled("the run was stopped"));
    });
  }

  void on_stop() override {
    std::function<void()> function;
    {
      const std::lock_guard lock(mutex_);
      has_stopped_ = true;
      function.swap(function_);
    }
    if (function) call(function);
  }

 private:
  // What it throws changes nothing: the call is still to be completed.
  void call(const std::function<void()>& function) {
    const RunScope scope(owner_);
    Status thrown;
    call_or_note(thrown, [&] { return function(), true; });
  }

  ExecNode& node_;
  const void* const owner_;
  const Resume resume_;
  std::mutex mutex_;
  // Under it.
  std::function<void()> function_;
  bool has_stopped_ = false;
  bool is_complete_ = false;
};

CallOutcome start_pending(ExecNode& node, const Resume& resume) {
  RunControl& control = node.owner->control;
  if (void* const stream = node.owner->answering_stream_or_null) node.args.stream = stream;
  const auto receiver = std::make_shared<Receiver>(node, resume);
  PendingCall call(receiver);
  control.add_listener(receiver);
  CallOutcome outcome = CallOutcome::kFailed;
  call_or_note(node.error, [&] {
    return (outcome = node.kernel->start(node.args, call)) != CallOutcome::kFailed;
  });
  if (outcome == CallOutcome::kLater && !call.is_open()) return outcome;
  if (outcome == CallOutcome::kLater) {
    node.error = internal_error("the kernel of " + node.node->op->name +
                                " answers later, but has not kept its call");
  } else if (!call.is_open()) {
    return CallOutcome::kLater;  // it will be answered, whatever has been said now
  }
  call.forget();
  control.remove_listener(*receiver);
  return node.finish(outcome == CallOutcome::kDone) ? CallOutcome::kDone : CallOutcome::kFailed;
}

CallOutcome run_tiles(ExecNode& node, const Resume& resume) {
  Workers* const workers = node.owner->executable().host().workers_or_null();
  uint32_t num_tiles = 0;
  const auto count = [&] { return num_tiles = node.kernel->count_tiles(node.args), true; };
  if (!call_or_note(node.error, count)) {
    return node.finish(false) ? CallOutcome::kDone : CallOutcome::kFailed;
  }
  const int num_workers = node.owner->executable().host().num_workers();
  if (num_tiles < 2 || num_workers < 2 || workers == nullptr) {
    const bool is_ok = call_or_note(node.error, [&] { return node.run(node.args); });
    return node.finish(is_ok) ? CallOutcome::kDone : CallOutcome::kFailed;
  }
  const BoundKernel& kernel = *node.kernel;
  const uint32_t at_once = kernel.count_at_once ? kernel.count_at_once(node.args) : num_tiles;
  EDDY_CHECK(at_once > 0) << "tiles of " << node.node->op->name << " that never run";
  void* shared = nullptr;
  if (kernel.shared_bytes != nullptr) {
    shared = node.args.scratch->reserve(kernel.shared_bytes(node.args));
    if (shared == nullptr) {
      node.error = resource_exhausted("no memory for what its tiles share");
      return node.finish(false) ? CallOutcome::kDone : CallOutcome::kFailed;
    }
  }
  return std::make_shared<TileTeam>(node, *workers, num_tiles, at_once, shared,
                                    node.owner->control.owner, resume)
      ->run();
}

}  // namespace

uint32_t TileTeam::most_helpers(const ExecNode& node, uint32_t num_tiles, uint32_t at_once) {
  const int num_workers = node.owner->executable().host().num_workers();
  EDDY_DCHECK(num_workers > 1 && num_tiles > 1 && at_once > 0) << num_workers << " workers";
  return std::min(std::min(num_tiles, at_once), static_cast<uint32_t>(num_workers)) - 1;
}

CallOutcome TileTeam::run() {
  const bool is_over = run_tiles(false);
  if (!is_over && !await_end()) return CallOutcome::kLater;
  return node_.finish(!has_failed_) ? CallOutcome::kDone : CallOutcome::kFailed;
}

bool TileTeam::run_tiles(bool is_helper) {
  TileRanges::Place place = tiles_.join(static_cast<uint32_t>(workers_.number_here()));
  for (bool is_over = false;;) {
    if (!is_helper) call_helpers();
    const uint32_t tile = tiles_.take(place);
    if (tile == tiles_.num_tiles()) return is_over;
    is_over = run_tile(tile, is_helper);
  }
}

void TileTeam::call_helpers() {
  // One for each tile but the caller's next.
  const uint32_t left = tiles_.num_left();
  const uint32_t wanted = left > 0 ? std::min(left - 1, most_helpers_) : 0;
  while (num_helpers_ < wanted && workers_.num_idle() > 0) {
    auto helper = std::make_unique<Helper>(Helper{shared_from_this()});
    workers_.assist(help, helper.release());
    ++num_helpers_;
  }
}

void TileTeam::help(void* context) {
  const std::unique_ptr<Helper> helper(static_cast<Helper*>(context));
  TileTeam& team = *helper->team;
  const RunScope scope(team.owner_);
  if (!team.run_tiles(true) || team.end_.exchange(End::kReached) == End::kByCaller) return;
  team.resume_(team.node_.finish(!team.has_failed_));
}

bool TileTeam::run_tile(uint32_t tile, bool is_helper) {
  EDDY_DCHECK(tile < tiles_.num_tiles()) << "tile " << tile << " of " << tiles_.num_tiles();
  await_turn(tile);
  if (!has_failed_.load(std::memory_order_relaxed)) {
    Status error;
    KernelArgs args = node_.args;
    args.error = &error;
    // Goes with the tile: once the last one has ended, nothing of the run may be held.
    StreamScratch own(node_.owner->allocator());
    args.shared = shared_or_null_;
    if (is_helper || shared_or_null_ != nullptr) args.scratch = &own;
    const bool is_ok = call_or_note(error, [&] { return node_.kernel->run_tile(args, tile); });
    if (!is_ok && !has_failed_.exchange(true)) node_.error = std::move(error);
  }
  // The last one acquires what all others have written.
  const uint32_t left = num_left_.fetch_sub(1, std::memory_order_acq_rel);
  EDDY_DCHECK(left > 0) << "more tiles end than there are";
  return left == 1;
}

bool TileTeam::await_end() {
  // 30 µs, about what it costs to move a strand; the longer where this thread has nothing to do.
  constexpr uint64_t kPatienceCycles = 75'000;
  constexpr uint64_t kIdlePatienceCycles = 4 * kPatienceCycles;
  const uint64_t began = processor_ticks();
  while (end_.load() != End::kReached) {
    const uint64_t waited = processor_ticks() - began;
    if (waited > (workers_.num_idle() < 0 ? kPatienceCycles : kIdlePatienceCycles)) break;
    cpu_relax();
  }
  End expected = End::kByCaller;
  return !end_.compare_exchange_strong(expected, End::kByHelper);
}

void TileTeam::await_turn(uint32_t tile) const {
  const uint32_t before = tile / at_once_ * at_once_;
  if (before == 0) return;
  constexpr int kSpins =
      2000;  // some 50 µs: a thread with one of those tiles has lost its processor
  for (int i = 0; tiles_.num_tiles() - num_left_.load(std::memory_order_acquire) < before; ++i) {
    i < kSpins ? cpu_relax() : std::this_thread::yield();
  }
}

CallOutcome start_node(void* exec_node, const Resume& resume) {
  ExecNode& node = *static_cast<ExecNode*>(exec_node);
  if (!node.begin()) return CallOutcome::kFailed;
  return node.kernel->start != nullptr ? start_pending(node, resume) : run_tiles(node, resume);
}

}  // namespace eddy
