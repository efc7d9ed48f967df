// FakeCuda: CUDA's driver interface without a GPU, as exact as its contract and no kinder.
//
//   FakeCuda fake({.seed = 7});
//   fake.define_kernel("twice", sizeof(Params), [](const FakeKernelCall& call) { … });
//   auto device = CudaDevice::create(fake.api(), …);
//   while (fake.step()) {}
//
// Streams are queues: nothing runs before step() or a synchronization runs it. step() picks among
// all legal next operations by seed: uniformly, by fixed random priorities that change now and
// then, or with one stream starved. With num_queues, streams of one priority share queues: what was
// issued earlier to any stream of a queue runs before, waits included. An event wait binds to the
// latest record at the time of the call; an event that was never recorded is complete. Memory:
// fake_memory.h, each operation's pointers are checked when it runs. Capture: fake_capture.cc.
// Graphs: fake_graph.h.
//
// Errors: the k-th call can fail; a kernel can fault, and from then on every call of that device
// returns the same error (sticky). A call that needs a current context fails without one, or with
// another's stream. A scheduler's thread makes no call that may wait: for memory, a stream or the
// context, for a graph to be made ready, for a stream to be made. Breaches of the contract go to
// violations(), and objects that were not destroyed to leaks(). Threads: any.
//
// Not modelled: time, and operations of several streams that truly overlap (each runs whole, in
// some order).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "graph/base/random.h"
#include "runtime/cuda/cuda_api.h"
#include "tests/runtime/cuda/fake_graph.h"
#include "tests/runtime/cuda/fake_memory.h"

namespace eddy::testing {

struct FakeCudaOptions {
  uint64_t seed = 1;
  int num_devices = 1;
  int driver_version = 13000;
  bool has_memory_words = true;
  bool has_graphs = true;
  bool has_edge_data = true;  // captures can be asked for the data of edges
  bool has_upload = true;     // graphs can be uploaded before their first launch
  bool takes_any_image = false;
  int num_queues = 0;  // that the streams of one priority share, in order of issue; 0: none do
  size_t memory_bytes = size_t{1} << 30;  // of each device
  bool runs_kernels = true;               // else they are counted; only loop_copy does anything
};

// What a fake GPU has done since it was made; differences of two are what lies between.
struct FakeCudaCounts {
  uint64_t kernels = 0;         // that have run, of graphs too
  uint64_t calls = 0;           // of the driver that gave a stream something to run
  uint64_t graph_launches = 0;  // of those
  uint64_t word_writes = 0;     // and those
  uint64_t copies = 0;          // that have run, of graphs too
  uint64_t copied_bytes = 0;
  FakeCudaCounts operator-(const FakeCudaCounts& before) const {
    return {kernels - before.kernels,
            calls - before.calls,
            graph_launches - before.graph_launches,
            word_writes - before.word_writes,
            copies - before.copies,
            copied_bytes - before.copied_bytes};
  }
};

class FakeCuda {
 public:
  explicit FakeCuda(const FakeCudaOptions& options = {});
  ~FakeCuda();
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  std::shared_ptr<const CudaApi> api() const { return api_; }
  // Any module has it. `params_bytes`: of its one parameter, a struct.
  void define_kernel(const std::string& name, size_t params_bytes, FakeKernel kernel);
  // The kernel has a second parameter, a guard: null, or a word in device memory that is read when
  // it runs; it does nothing where that is 0.
  void give_guard(const std::string& name);
  // It runs all the same: a kernel that has forgotten its guard.
  void ignore_guard(const std::string& name);
  // The kernel does not wait for the grids before it, as all others do by themselves.
  void begin_early(const std::string& name);
  // What is captured behind the kernel may begin at its trigger: the edge that pends has data.
  void trigger_early(const std::string& name);
  // A module is loaded from an image that starts with these bytes; any other is invalid.
  static constexpr const char* kImage = "fake image";
  static constexpr const void* kImages[] = {kImage};

  // A kernel that a library has loaded by itself, and keeps.
  CuFunction library_function(const std::string& name);
  // For a library's stand-in, where that may synchronize the device: captures on the current device
  // are spoilt, and a thread that may not wait must not come here.
  void spoil_captures();

  // For a kernel's stand-in, while it runs: memory that is neither a device's nor page-locked is a
  // violation.
  void check_visible(const void* memory, size_t size_bytes);

  // Runs one operation. False when none can run, or may.
  bool step();
  // Nothing runs by steps from now on, or again.
  void hold(bool is_held) { is_held_ = is_held; }
  void run_all() {
    while (step()) {
    }
  }
  bool is_idle() const;  // nothing is queued

  // The k-th call from now (1 is the next one) fails; 0: none does.
  void fail_call(uint64_t k, CuResult result);
  // The next call of that entry fails.
  void fail_next(const std::string& entry, CuResult result);
  uint64_t num_calls() const { return num_calls_; }
  uint64_t num_graph_launches() const { return num_graph_launches_; }
  uint64_t num_instantiations() const { return num_instantiations_; }
  uint64_t num_uploads() const { return num_uploads_; }
  // First launches of graphs that had not been uploaded, and so did that, too.
  uint64_t num_late_uploads() const { return num_late_uploads_; }
  uint64_t num_loop_instantiations() const { return num_loop_instantiations_; }  // with a WHILE
  size_t num_loop_executables() const;  // of those, not destroyed
  // The body of the first WHILE of the latest instantiated graph with one: its nodes in the order
  // of recording; kernels by their names.
  std::vector<std::string> last_round() const;
  // Kernels captured with programmatic edges to all that they are behind.
  uint64_t num_programmatic() const { return num_programmatic_; }
  uint64_t num_copies() const { return counts().copies; }
  FakeCudaCounts counts() const {
    std::lock_guard lock(mutex_);
    return counts_;
  }
  // The largest copy from the host that a scheduler's thread has issued: what it has staged, too.
  size_t largest_copy_of_schedulers() const { return largest_copy_of_schedulers_; }
  // Kernels that have done nothing, because their guard cancelled them.
  uint64_t num_called_off() const { return num_called_off_; }
  bool is_capturing(CuStream stream) const;
  // Captures whose end has failed.
  uint64_t num_spoilt() const { return num_spoilt_; }
  std::string failed_call() const;  // the entry that failed last
  // The k-th kernel that runs from now faults: its device is lost.
  void fault_kernel(uint64_t k, CuResult result = CuResult::kIllegalAddress);
  void lose_device(int ordinal, CuResult result);
  bool is_lost(int ordinal) const;

  std::vector<std::string> violations() const;
  std::string leaks() const;  // "2 streams, 1 event"; empty when all were destroyed

 private:
  struct Device {
    explicit Device(size_t bytes) : memory(bytes) {}
    FakeMemory memory;
    CuResult lost = CuResult::kSuccess;
    int retained = 0;
  };
  struct Record {
    bool is_done = false;
  };
  struct Capture {
    CuGraph graph;
    CuStream origin;
    bool is_global = false;
    bool is_spoilt = false;
    bool has_ended = false;
    std::vector<CuGraphNode> nodes;
  };
  struct Event {
    int device;
    std::shared_ptr<Record> latest;
    std::shared_ptr<Capture> capture;  // its latest record was captured
    std::vector<CuGraphNode> last;     // there
  };
  enum class OpKind {
    kKernel,
    kGraph,
    kRecord,
    kWait,
    kWriteWord,
    kWaitWord,
    kCopy,
    kFill,
    kAllocate,
    kFree
  };
  struct Op {
    OpKind kind;
    FakeKernelLaunch kernel = {};
    std::shared_ptr<FakeExecutable> graph = nullptr;
    std::shared_ptr<Record> record = nullptr;
    uint64_t to = 0;
    uint64_t from = 0;
    size_t bytes = 0;
    uint32_t value = 0;
    uint64_t number = 0;  // in order of issue
  };
  struct Stream {
    int number;
    int device;
    std::vector<Op> ops;
    size_t next = 0;
    bool is_destroyed = false;
    bool is_running = false;         // a graph, between two of its rounds
    uint32_t priority = 0;           // to be chosen, not the driver's
    std::pair<int, int> queue = {};  // by the driver's priority
    std::shared_ptr<Capture> capture;
    std::vector<CuGraphNode> last;  // captured; what comes next is behind these
    bool is_empty() const { return next == ops.size() && !is_running; }
    bool has_next() const { return next < ops.size() && !is_running; }
  };
  struct Function {
    std::string name;
  };

  void fill_table(CudaApi& api);
  void fill_devices(CudaApi& api);
  void fill_contexts(CudaApi& api);
  void fill_streams(CudaApi& api);
  void fill_events(CudaApi& api);
  void fill_words(CudaApi& api);
  void fill_memory(CudaApi& api);
  void fill_kernels(CudaApi& api);
  void fill_graphs(CudaApi& api);
  void fill_capture(CudaApi& api);
  CuResult launch(CuFunction function, const CuLaunchConfig& config, void** params);
  CuResult begin_capture(CuStream stream, CuGraph graph, std::vector<CuGraphNode> after,
                         CuCaptureMode mode);
  CuResult ask_capture(CuStream stream, CuCaptureStatus* status) const;
  std::optional<CuResult> ask_capture_end(CuStream stream, CuCaptureStatus* status, uint64_t* id,
                                          CuGraph* graph, const CuGraphNode** last,
                                          const CuGraphEdgeData*& edges, size_t* num_last);
  CuResult end_capture(CuStream stream, CuGraph* graph);
  CuResult destroy_graph(CuGraph graph);
  CuResult capture(Stream& stream, Op op);
  CuResult join_capture(Stream& stream, const Event& event);
  CuResult spoil(Capture& capture, CuResult result);
  // Spoils all captures on a device's streams. False: none was open.
  bool spoil_captures_of(int device);
  // Whether an open capture forbids the calling thread the call; then it is spoilt.
  bool spoils_global_capture(const std::string& call);
  // Whether a call needs a current context, and whether it gives something back or waits, which
  // happens even when the call answers with an error.
  enum class CallKind { kFree, kRelease, kContext, kContextRelease };
  static bool is_release(CallKind kind) {
    return kind == CallKind::kRelease || kind == CallKind::kContextRelease;
  }
  // Wraps `body` with the lock, the k-th failure and, for calls of a context, its checks.
  template <typename... Args, typename Body>
  void define(std::function<CuResult(Args...)>& entry, const char* name, CallKind kind, Body body);

  template <typename Call>
  void run_failing(Call call);

  CuResult enqueue(CuStream stream, Op op);
  bool can_run(const Op& op) const;
  bool is_first_of_queue(const Stream& stream) const;
  bool step_locked();
  void run_graph(Stream& stream, const std::shared_ptr<FakeExecutable>& graph);
  // Another thread's graph goes on between its rounds.
  bool is_any_running() const;
  void let_callers_in();
  void let_graph_go_on();
  Stream* choose();
  void run(Stream& stream, Op op);
  void run_copy(const Stream& stream, uint64_t to, uint64_t from, size_t bytes);
  void run_fill(const Stream& stream, uint64_t to, uint32_t value, size_t bytes);
  bool run_node(Stream& stream, const FakeNode& node, FakeExecutable& graph);
  CuResult run_kernel(Stream& stream, const FakeKernelLaunch& launch, FakeExecutable* graph);
  bool is_called_off(const Stream& stream, const FakeKernelLaunch& launch);
  // False: a violation is noted, and the operation does not happen.
  bool check_access(const Stream& stream, const std::string& what, uint64_t address,
                    size_t size_bytes);
  bool check_copy_end(const Stream& stream, uint64_t address, size_t size_bytes);
  bool is_pinned(uint64_t address, size_t size_bytes) const;
  void lose(int device, CuResult result);
  void violation(const std::string& text);
  int current_device() const;  // -1: none
  size_t num_while_launches(int device) const;

  const FakeCudaOptions options_;
  mutable std::mutex mutex_;
  std::atomic<int> num_waiting_{0};  // callers, for the mutex
  Random random_;
  int policy_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::map<std::string, std::pair<size_t, FakeKernel>> kernels_;
  std::set<std::string> early_kernels_;
  std::set<std::string> triggering_kernels_;
  std::set<CuGraphNode> triggering_nodes_;                // captured
  std::vector<CuGraphEdgeData> edges_;                    // what the latest answer points to
  std::map<std::string, bool> guards_;                    // by kernel: whether it looks
  std::map<std::thread::id, std::vector<int>> contexts_;  // current ones, by thread
  std::mutex modes_mutex_;                                // taken behind mutex_, or alone
  std::map<std::thread::id, CuCaptureMode> modes_;        // under modes_mutex_; not there: global
  std::map<CuStream, std::unique_ptr<Stream>> streams_;
  std::map<CuEvent, std::unique_ptr<Event>> events_;
  std::map<CuMemoryPool, int> pools_;
  std::map<CuModule, int> modules_;
  std::map<CuFunction, std::unique_ptr<Function>> functions_;
  std::map<uint64_t, size_t> pinned_;  // address, size
  FakeGraphs graphs_;
  uintptr_t next_handle_ = 0x1000;
  int next_stream_ = 0;
  uint64_t next_op_ = 0;
  std::map<std::pair<int, int>, int> num_streams_;  // by device and the driver's priority, ever
  std::vector<std::string> violations_;
  std::atomic<uint64_t> num_calls_{0};
  std::atomic<uint64_t> num_graph_launches_{0};
  std::atomic<uint64_t> num_instantiations_{0};
  std::atomic<uint64_t> num_uploads_{0};
  std::atomic<uint64_t> num_late_uploads_{0};
  std::atomic<uint64_t> num_loop_instantiations_{0};
  std::atomic<uint64_t> num_programmatic_{0};
  std::atomic<uint64_t> num_called_off_{0};
  std::atomic<uint64_t> num_spoilt_{0};
  std::atomic<bool> is_held_{false};
  FakeCudaCounts counts_;  // under mutex_
  std::atomic<size_t> largest_copy_of_schedulers_{0};
  std::vector<std::string> last_round_;
  uint64_t fail_at_ = 0;
  std::string fail_next_;  // an entry
  CuResult fail_with_ = CuResult::kUnknown;
  std::string failed_call_;
  bool is_call_failing_ = false;  // the one that runs: it answers with an error, whatever it does
  uint64_t kernels_until_fault_ = 0;
  CuResult fault_with_ = CuResult::kIllegalAddress;
  std::shared_ptr<const CudaApi> api_;
};

// Runs a fake's operations from a thread of its own, as a GPU would.
class FakeEngine {
 public:
  explicit FakeEngine(FakeCuda& fake);
  ~FakeEngine();

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace eddy::testing
