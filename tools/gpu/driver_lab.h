// DriverLab: what one question to a driver works with (driver_part.h): streams, words, graphs and
// launches of the one kernel of probe_kernels.h, by the driver's calls alone.
//
//   EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
//   EDDY_RETURN_IF_ERROR(lab.launch({.op = cuda::ProbeOp::kWrite, .word = word}, stream));
//   EDDY_RETURN_IF_ERROR(lab.wait([&] { return DriverLab::seen(word) == 1; }, "a kernel's word"));
//
// Errors: the driver's answer with the call's name; kDeadlineExceeded of wait(). Threads: one, with
// the context current while the lab lives. Ownership: streams, graphs and words go with the lab;
// what a question has spoilt it must let go (forget_graph).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/cuda/cuda_context.h"
#include "tools/gpu/probe_kernels.h"
#include "tools/gpu/report_part.h"

namespace eddy {

// Calls that Eddy does without.
struct DriverExtras {
  std::function<CuResult(CuGraph graph, CuGraphNode* from, CuGraphNode* to, CuGraphEdgeData* data,
                         size_t* num_edges)>
      graph_edges;  // cuGraphGetEdges_v2
};
DriverExtras load_driver_extras();

class DriverLab {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{2};

  // `image_or_null`: probe_image().
  static Result<std::unique_ptr<DriverLab>> open(const GpuUnderReport& gpu,
                                                 const DriverExtras& extras,
                                                 const void* image_or_null);
  ~DriverLab();
  DriverLab(const DriverLab&) = delete;
  DriverLab& operator=(const DriverLab&) = delete;

  CudaContext& context() const { return gpu_.device.context(); }
  const CudaApi& api() const { return context().api(); }
  const DriverExtras& extras() const { return extras_; }
  // What gives devices other than a GPU time.
  void progress() const { gpu_.progress(); }
  Status check(CuResult result, const char* call) const;

  Result<CuStream> stream(int priority);
  Result<CuGraph> graph();
  void forget_graph(CuGraph graph) { std::erase(graphs_, graph); }
  // Instantiated; destroyed with the lab.
  Result<CuGraphExec> executable(CuGraph graph);
  // Two words of 4 bytes, or one of 8, all 0.
  Result<volatile uint32_t*> host_word();
  Result<volatile uint32_t*> device_word();

  Status launch(const cuda::ProbeParams& params, CuStream stream, bool is_programmatic = false);
  Status begin_capture(CuStream stream, CuGraph graph, const CuGraphNode* after_or_null = nullptr);
  Status end_capture(CuStream stream);
  // The node that the next captured one follows; null: none.
  Result<CuGraphNode> last_captured(CuStream stream);
  // A WHILE with a first round that runs, behind `after_or_null`.
  struct While {
    CuGraphNode node = nullptr;
    CuGraph body = nullptr;
    CuConditionalHandle handle = 0;
  };
  Result<While> add_while(CuGraph graph, const CuGraphNode* after_or_null);

  static uint32_t seen(const volatile uint32_t* word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
  }
  static void tell(volatile uint32_t* word, uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
  }
  // Polls, also the streams' faults at the end. `what` is named when patience is over.
  Status wait(const std::function<bool()>& is_over, const char* what) const;
  // All that the stream has.
  Status finish(CuStream stream) const;

 private:
  DriverLab(const GpuUnderReport& gpu, const DriverExtras& extras)
      : gpu_(gpu), extras_(extras), use_(gpu.device.context()) {}

  const GpuUnderReport& gpu_;
  const DriverExtras& extras_;
  const CudaContext::Use use_;
  CuModule module_ = nullptr;
  CuFunction function_ = nullptr;
  std::vector<CuStream> streams_;
  std::vector<CuGraph> graphs_;
  std::vector<CuGraphExec> executables_;
  std::vector<BufferRef> words_;
};

}  // namespace eddy
