// SessionOptions: what a session is made with. make_session_core copies them; the session calls
// `log` as long as it lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/types.h"
#include "runtime/api/shared_threads.h"
#include "runtime/device/execution_device.h"
#include "runtime/execute/loop_choice.h"
#include "runtime/net/rank_options.h"

namespace eddy {

enum class Loops { kAuto, kHost, kDevice };
enum class Assignment { kAuto, kRank, kMatching, kSerial };

class CostTable;
class HostMemory;
class StepObserver;
struct FluidMachine;

struct SessionOptions {
  int num_threads = 0;  // CPU workers; 0: one for each processor
  // Scheduler and workers together with other sessions (num_threads stays 0); null: its own.
  std::shared_ptr<SharedThreads> threads = {};
  size_t memory_limit_bytes = 0;  // of tensors; 0: no limit
  // Where it comes from (runtime/cpu/host_allocator.h), until the last tensor has gone; null: the
  // system. Constants and what kernels pack are not tensors of runs.
  std::shared_ptr<HostMemory> memory = {};
  uint32_t max_runs_in_flight = 64;  // further runs wait, in order, for their turn; 0: no limit
  // Runs that wait: for their turn, behind their stream, and with their outputs for their callback.
  // Further ones are refused at once, with kResourceExhausted. 0: no limit.
  uint32_t max_runs_waiting = 65'536;
  Loops loops = Loops::kAuto;  // what decides a loop's next iteration
  // With loops auto: loops that a device beside the host's can drive are driven in each way a few
  // times, then in the fastest. False: by the device.
  bool measure_loops = true;
  // Loops that a device drives are driven in this way alone where they can be, else as a captured
  // graph: for measuring one way.
  std::optional<LoopChoice::Way> only_loop_way = {};
  // Loops beside each other become one where a device could drive but some of them at once
  // (graph/compile/merge_loops.h).
  bool merges_loops = true;
  Assignment assignment = Assignment::kAuto;
  uint32_t max_streams = 0;  // hard cap per device; 0: no cap
  // What operators were measured to cost (`eddy measure`): decides whether streams pay and, where
  // asked, what is issued first. Null, and what the table lacks: estimates.
  std::shared_ptr<const CostTable> costs = {};
  bool rank_by_costs = false;  // longest chain by cost, not by number of nodes
  // What Assignment::kAuto simulates plans on, where costs are known or the machine has its
  // throughput; null: this CPU. Where neither is, it takes one stream unless much work overlaps.
  std::shared_ptr<const FluidMachine> plan_for = {};
  // Memory of this size and more that holds a value of changing shape goes back to the pool after
  // the value's last use; less stays for the next iteration or run.
  size_t min_released_bytes = 4096;
  // Constants that kernels have packed let go of their bytes; graph() then lacks them.
  bool release_constants = true;
  // Sessions of one library, one model and equal options have one plan, one set of constants and of
  // packed weights (shared_programs.h). False, and on devices that the options make: each its own.
  bool shares_program = true;
  // Values of fixed shape live in an arena, where the plan has proved that they may; else each
  // keeps memory of its own.
  bool use_arenas = true;
  bool simplify = true;  // fold constants, drop branches never taken and dead nodes
  // Normalizations behind convolutions become part of their weights: faster, and other bits within
  // rounding (graph/compile/fold_norms.h).
  bool folds_norms = false;
  // Convolutions of the CPU, and what stands between them, work on images whose channels lie in
  // blocks of a vector, windows of 3 x 3 by Winograd's transforms: faster, and other bits within
  // rounding (graph/compile/lay_out_images.h, ops/cpu/blocked/winograd_conv.h). So do convolutions
  // of weights that change (allow_winograd.h), and products in loops by matrices that are turned
  // over before (pack_before_loops.h). Convolutions of another device work on images as it wants
  // them (ExecutionDevice::wants_channels_last). The CPU's products read transposed operands where
  // they lie, too, with the same bits (fold_into_products.h). Rules for batches know none of this.
  bool blocks_channels = true;
  // Sizes of symbolic dimensions, fixed when the session is made (more shapes become known).
  std::vector<std::pair<std::string, int64_t>> dims = {};
  // Whole shapes of tensor inputs, likewise fixed; runs with other shapes are refused.
  std::vector<std::pair<std::string, Dims>> input_dims = {};
  // Asked again and again while the session is made, on that thread; a failure ends it and is what
  // create() returns. What it throws, or what makes devices does, is one. Empty: it is not asked.
  std::function<Status()> check = {};
  // Warnings about a model file, steps of making the session with their times, exceptions of
  // callbacks. Any thread, one line a call; must not throw.
  std::function<void(std::string_view line)> log = {};
  // Makes the device that the session runs on, or hands over one that it shares with others.
  // Empty: an embedded CPU device with num_threads and memory_limit_bytes. On a device that needs
  // polling, runs move while a thread waits for one, or while the host drives their loops.
  std::function<Result<std::shared_ptr<Device>>()> make_device = {};
  // Make devices beside it, with memory and kernels of their own (runtime/cuda/make_cuda_device.h):
  // nodes run on the one that they name (Node::device: its kind, "cuda:1" for the second of a
  // kind), others on the first that has a kernel for them, the rest on the CPU, with copies planned
  // between (graph/compile/place.h). Loops that a device can decide by itself may be driven by it,
  // others by the host. Two GPUs in one session are refused: neither reads the other's staging
  // memory (kUnsupported).
  std::vector<MakeDevice> make_devices = {};
  // Over which ranks the graph communicates; without a world, such a graph is refused.
  RankOptions ranks = {};
  // A run that a device's loss has ended names the nodes that it was at: their kernels have a small
  // one each before and behind them, and no loop is one kernel. Without, it names the nearest that
  // is known: where the host stood, or the loop with its iteration.
  bool locate_faults = false;
  // Session::operator_times() counts the calls of each operator and their time; a call takes some
  // tens of ns longer.
  bool times_operators = false;
  // Sees every step of every run (runtime/execute/step_observer.h); must outlive the session.
  StepObserver* observer_or_null = nullptr;
};

}  // namespace eddy
