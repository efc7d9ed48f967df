// CudaCapturedGraph: a graph of the driver that has been captured and made ready to launch.
//
// Owns both; the bodies of its conditional nodes belong to the graph. One that tells its end does
// so to one stream (stream_tails.h) and is launched on no other. Errors: the driver's, as a Status.
// Threads: as CudaContext.
#pragma once

#include "runtime/cuda/cuda_context.h"
#include "runtime/device/graph_capture.h"

namespace eddy {

class CudaCapturedGraph : public CapturedGraph {
 public:
  CudaCapturedGraph(CudaContext& context, CuGraph graph, CuGraphExec executable,
                    CuStream told_or_null)
      : context_(context), graph_(graph), executable_(executable), told_or_null_(told_or_null) {}
  ~CudaCapturedGraph() override {
    const CudaContext::Use use(context_);
    context_.api().graph_exec_destroy(executable_);
    context_.api().graph_destroy(graph_);
  }
  Status launch(void* native_stream) override {
    EDDY_RETURN_IF_ERROR(context_.health());
    if (told_or_null_ != nullptr) {
      if (told_or_null_ != native_stream) {
        return internal_error("a graph that tells a stream of its end is launched on another one");
      }
      context_.stream_tails().arm(told_or_null_);
    }
    const CudaContext::Use use(context_);
    Status status = context_.check(
        context_.api().graph_launch(executable_, static_cast<CuStream>(native_stream)),
        "cuGraphLaunch");
    if (told_or_null_ != nullptr && !status.is_ok()) context_.stream_tails().disarm(told_or_null_);
    return status;
  }

 private:
  CudaContext& context_;
  const CuGraph graph_;  // owns the bodies of its conditional nodes
  const CuGraphExec executable_;
  const CuStream told_or_null_;
};

}  // namespace eddy
