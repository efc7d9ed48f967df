// RawGraph: a CUDA graph of kernel and conditional nodes, put together by the driver's calls alone:
// what Eddy's loops are measured against, so nothing of Eddy's recorder, kernels or streams is in
// it.
//
//   RawGraphs raw(gpu); raw.open(image);
//   RawGraph graph(raw);
//   const auto loop = graph.add_while(graph.root());
//   graph.add_kernel(loop.bodies[0], {.counter = …, .loop = loop.handle, …});
//   graph.add_last_kernel({});      signals the host
//   graph.finish();
//   graph.start()                   cuGraphLaunch, on a stream of the graph's own
//   while (!graph.is_ended());      a look at the word that the last one writes
//
// Nodes of a level stand in a chain. Errors: the first one stays; every later call does nothing,
// and finish(), start(), error() and read_total() report it. A launch that fails, or ends without
// its word, is reported, too. Threads: one.
#pragma once

#include <vector>

#include "tools/gpu/report_part.h"
#include "tools/gpu/rival_kernels.h"

namespace eddy {

// What all graphs share: the module.
class RawGraphs {
 public:
  explicit RawGraphs(const GpuUnderReport& gpu) : gpu_(gpu) {}
  ~RawGraphs();
  RawGraphs(const RawGraphs&) = delete;
  RawGraphs& operator=(const RawGraphs&) = delete;

  // Errors: kUnsupported: no image, or a driver without conditional nodes.
  Status open(const void* image_or_null);

 private:
  friend class RawGraph;
  const GpuUnderReport& gpu_;
  CuModule module_ = nullptr;
  CuFunction step_ = nullptr;
};

class RawGraph {
 public:
  // A graph, or a conditional node's body, and the node that the next one follows.
  using Level = size_t;
  struct Decided {
    CuConditionalHandle handle = 0;
    std::vector<Level> bodies;
  };

  explicit RawGraph(RawGraphs& raw);
  ~RawGraph();
  RawGraph(const RawGraph&) = delete;
  RawGraph& operator=(const RawGraph&) = delete;

  static constexpr Level root() { return 0; }
  // Words of the device's memory, 0 at first.
  int64_t* word();
  // What the kernels of all rounds add to.
  int64_t* total() const { return total_; }

  void add_kernel(Level level, const cuda::RivalParams& params);
  // The last of the graph: it signals the host that the launch has ended.
  void add_last_kernel(cuda::RivalParams params) {
    params.launches = launches_;
    params.ended = ended_;
    add_kernel(root(), params);
  }
  // A WHILE whose first round runs; a SWITCH whose branch is 0 at first.
  Decided add_while(Level level) { return add_conditional(level, CuConditionalType::kWhile, 1, 1); }
  Decided add_switch(Level level, unsigned num_branches) {
    return add_conditional(level, CuConditionalType::kSwitch, num_branches, 0);
  }
  Status finish();

  // Behind the last one's end.
  Status start();
  // Also true once something has failed.
  bool is_ended();
  const Status& error() const { return error_; }
  Result<int64_t> read_total();

 private:
  struct Place {
    CuGraph graph = nullptr;
    CuGraphNode last = nullptr;
  };

  Decided add_conditional(Level level, CuConditionalType type, unsigned num_bodies,
                          unsigned default_value);
  void add_node(Level level, CuGraphNodeParams& params);
  Status check(CuResult result, const char* call);
  void keep(Status status) {
    if (error_.is_ok()) error_ = std::move(status);
  }
  void set_up();
  Status look_at_stream();

  RawGraphs& raw_;
  CudaContext& context_;
  const CudaApi& api_;
  Status error_;
  BufferRef words_, host_words_;
  size_t num_words_ = 0;
  int64_t *total_ = nullptr, *launches_ = nullptr;
  volatile int64_t* ended_ = nullptr;
  int64_t num_launches_ = 0;
  int num_looks_ = 0;  // at the word
  CuStream stream_ = nullptr;
  std::vector<Place> places_;
  CuGraphExec executable_ = nullptr;
};

}  // namespace eddy
