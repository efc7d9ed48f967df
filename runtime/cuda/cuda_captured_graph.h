// CudaCapturedGraph: a graph of the driver that has been captured and made ready to launch.
//
// Owns both; the bodies of its conditional nodes belong to the graph. Errors: the driver's, as a
// Status. Threads: as CudaContext.
#pragma once

#include "runtime/cuda/cuda_context.h"
#include "runtime/device/graph_capture.h"

namespace eddy {

class CudaCapturedGraph : public CapturedGraph {
 public:
  CudaCapturedGraph(CudaContext& context, CuGraph graph, CuGraphExec executable)
      : context_(context), graph_(graph), executable_(executable) {}
  ~CudaCapturedGraph() override {
    const CudaContext::Use use(context_);
    context_.api().graph_exec_destroy(executable_);
    context_.api().graph_destroy(graph_);
  }
  Status launch(void* native_stream) override {
    EDDY_RETURN_IF_ERROR(context_.health());
    const CudaContext::Use use(context_);
    return context_.check(
        context_.api().graph_launch(executable_, static_cast<CuStream>(native_stream)),
        "cuGraphLaunch");
  }

 private:
  CudaContext& context_;
  const CuGraph graph_;  // owns the bodies of its conditional nodes
  const CuGraphExec executable_;
};

}  // namespace eddy
