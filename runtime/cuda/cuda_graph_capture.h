// CudaGraphCapture: GraphCapture (runtime/device/graph_capture.h) as CUDA graphs.
//
// Capture streams are its own, and capture into the graph. They run nothing, so nothing that polls
// or marks the device's streams can get into a capture; a graph that is made is uploaded on the
// first of them. Libraries keep handles and workspaces by stream: a capture stream's are used by
// the graphs of one capture only.
//
// Around a device-decided loop or case the capture is cut: what came before becomes the
// conditional node's dependencies, its body is a graph of its own that is captured into in turn,
// and the next capture begins behind the node.
//
//   WHILE   default 0; a kernel before it and the last of its body set its handle, so an inner loop
//           is re-armed each time its outer body runs
//   IF/ELSE for two branches, SWITCH for more
//
// README.md says which steps are kept until something else comes, and what holds several
// iterations.
//
// Capture is relaxed: other threads may call what they like, and so may kernels' host halves, but
// for what captures cannot hold (synchronizing a capture stream, asking after it): then finish()
// fails.
//
// Errors: the driver's answers, as CudaContext::check; kUnsupported without capture (before CUDA
// 12.3), and for loops and cases where conditional nodes or their kernels are missing.
// Cost: instantiation, milliseconds for large graphs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ops/cuda/images/loop_control.h"
#include "ops/cuda/text/fused_text.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/device/graph_capture.h"
#include "runtime/device/scalar_steps.h"

namespace eddy {

// The kernels of ops/cuda/images/loop_control.h; null where the build has none.
struct CudaLoopKernels {
  CuFunction step = nullptr;
  CuFunction choice = nullptr;
  CuFunction copy = nullptr;  // null: bodies hold one iteration
  // Makes one launch of `copy` a kernel of its own; empty: none is made. May take a second.
  std::function<Result<CuFunction>(const cuda::KernelSource& source)> compile = {};
};

class CudaGraphCapture : public GraphCapture, public ScalarSteps {
 public:
  // Null where the driver cannot capture into graphs. The context outlives it.
  static std::unique_ptr<CudaGraphCapture> create_or_null(CudaContext& context,
                                                          const CudaLoopKernels& kernels);
  ~CudaGraphCapture() override;

  Status make_streams(uint32_t count) override;
  Status begin() override;
  Result<void*> stream(uint32_t stream) override;
  Result<uint32_t> record(uint32_t stream) override;
  Status wait(uint32_t stream, uint32_t event) override;
  Status copy(void* to, const void* from, size_t size_bytes) override;
  Status copy_all(std::span<const MemoryCopy> copies) override;
  Status copy_now(void* native_stream, void* to, const void* from, size_t size_bytes) override;
  void tell_end(void* native_stream) override;
  std::string notice() const override;
  Result<std::unique_ptr<CapturedGraph>> finish() override;
  void abandon() override;

  bool can_decide() const override;
  Status start_counter(const LoopWords& words) override;
  Status advance_counter(const LoopWords& words) override;
  Status begin_while(const LoopTest& test) override;
  uint32_t least_launches() const override;
  Result<uint32_t> count_launches() override;
  Status begin_again() override;
  Status end_while() override;
  Status begin_case(const CaseChoice& choice, uint32_t num_branches) override;
  Status begin_branch() override;
  Status end_case() override;

  std::optional<Expression> scalar_of(const KernelInit& init,
                                      const BoundKernel& kernel) const override;
  Status compute(const Expression& expression, std::span<const void* const> inputs,
                 std::span<void* const> made) override;
  Status compute_all(const Expression& expression, std::span<const void* const> inputs,
                     const Elements& elements, std::span<void* const> made) override;

 private:
  // A graph that is being filled: the whole, a loop's body or a branch.
  struct Level {
    CuGraph graph = nullptr;
    std::vector<CuGraphNode> last;  // what comes next is behind these
    CuConditionalHandle handle = 0;
    bool is_loop = false;           // a loop's body
    LoopTest test = {};             // of a loop's body
    bool is_again = false;          // it holds a second iteration
    std::vector<CuGraph> branches;  // of a case; `graph` is the one begun last
    size_t next_branch = 0;
    size_t num_conditionals = 0;  // in it
  };

  CudaGraphCapture(CudaContext& context, const CudaLoopKernels& kernels)
      : context_(context), kernels_(kernels) {}
  Result<CuStream> native_stream(uint32_t index);
  Status open_capture();
  Status close_capture();
  // `last` of the level is what stream 0 is behind now.
  Status find_last();
  Status count(const LoopWords& words, uint32_t flags);
  Status keep_test(const LoopTest& test, CuConditionalHandle handle, uint32_t more_flags);
  // Keeps the step, alone or behind what is kept.
  Status keep(const cuda::LoopStepParams& step);
  // What is kept from now on, of the innermost level.
  cuda::LoopCopyParams& keep_new();
  // Launches what is kept.
  Status flush();
  // What is kept tells the stream; false: nothing is, or it is of more threads than one may speak
  // for.
  bool keep_end();
  Result<void*> capturing_stream(uint32_t index);
  // The innermost level is a body that may hold several iterations.
  bool is_watched() const { return !levels_.empty() && levels_.back().test.go_on != nullptr; }
  uint32_t guard_flag() const {
    return is_watched() && levels_.back().is_again ? uint32_t{cuda::LoopStepParams::kGuarded} : 0;
  }
  bool is_in_loop() const;
  // What is kept goes last, behind as many kernels as the body still needs.
  Status fill_body();
  void watch(const uint32_t* guard_or_null);
  void forget_watched();
  Status copy_by_kernel(std::span<const MemoryCopy> copies);
  void upload(CuGraphExec executable);
  Status launch_one(CuFunction function, const void* params, uint32_t num_blocks = 1,
                    uint32_t num_threads = 1);
  CuFunction copy_kernel(const cuda::LoopCopyParams& kept);
  Result<CuConditionalHandle> make_handle();
  // Adds the conditional node behind what there is; its bodies.
  Result<std::vector<CuGraph>> add_conditional(CuConditionalHandle handle, CuConditionalType type,
                                               uint32_t num_bodies);

  CudaContext& context_;
  const CudaLoopKernels kernels_;
  std::vector<CuStream> streams_;  // by capture stream
  std::vector<bool> has_begun_;    // by capture stream, in the capture that is open
  std::vector<CuEvent> events_;    // by number; reused from graph to graph
  uint32_t num_events_ = 0;
  bool is_capturing_ = false;
  // The end of a capture has failed. Then the driver has freed the graph that was captured into,
  // though it is ours or a conditional node's, and to destroy the root would free it once more, at
  // the process's cost. So the root is left alone: some KiB.
  bool is_graph_freed_ = false;
  // Steps over single elements, over many, copies and a loop's step of the innermost level, in this
  // order, of each some or none; none at all: nothing is kept.
  std::optional<cuda::LoopCopyParams> kept_;
  CuStream told_ = nullptr;      // of its end; null: none
  std::string why_interpreted_;  // none of the capture's launches is compiled any more
  std::vector<Level> levels_;  // innermost last; none: nothing is captured
};

}  // namespace eddy
