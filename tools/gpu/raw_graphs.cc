#include "tools/gpu/raw_graphs.h"

#include <cstring>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr size_t kMostWords = 16;
// Looks at the word between two at a stream that might have failed: some ten microseconds.
constexpr int kLooks = 1 << 12;

int64_t seen(const volatile int64_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

}  // namespace

Status RawGraphs::open(const void* image_or_null) {
  CudaContext& context = gpu_.device.context();
  if (image_or_null == nullptr) {
    return unsupported("there are no graphs by hand: this build was made without a CUDA toolkit");
  }
  if (!context.facts().has_device_driven) {
    return unsupported("there are no graphs by hand: the driver lacks conditional nodes");
  }
  const CudaContext::Use use(context);
  const CudaApi& api = context.api();
  EDDY_RETURN_IF_ERROR(context.check(api.module_load(&module_, image_or_null), "cuModuleLoadData"));
  return context.check(api.module_function(&step_, module_, "eddy_rival_step"),
                       "cuModuleGetFunction");
}

RawGraphs::~RawGraphs() {
  const CudaContext::Use use(gpu_.device.context());
  if (module_ != nullptr) gpu_.device.context().api().module_unload(module_);
}

RawGraph::RawGraph(RawGraphs& raw)
    : raw_(raw), context_(raw.gpu_.device.context()), api_(context_.api()) {
  set_up();
}

void RawGraph::set_up() {
  const CudaContext::Use use(context_);
  Result<BufferRef> words = raw_.gpu_.device.allocator().allocate(kMostWords * sizeof(int64_t));
  Result<BufferRef> host_words = raw_.gpu_.device.staging().allocate(2 * sizeof(int64_t));
  if (!words.is_ok()) return keep(words.take_status());
  if (!host_words.is_ok()) return keep(host_words.take_status());
  words_ = std::move(*words);
  host_words_ = std::move(*host_words);
  std::memset(host_words_.data(), 0, 2 * sizeof(int64_t));
  ended_ = static_cast<int64_t*>(host_words_.data());
  keep(check(api_.stream_create(&stream_, kCuStreamNonBlocking, 0), "cuStreamCreateWithPriority"));
  if (!error_.is_ok()) return;
  keep(check(api_.fill(reinterpret_cast<CuDevicePointer>(words_.data()), 0,
                       kMostWords * sizeof(int64_t), stream_),
             "cuMemsetD8Async"));
  keep(check(api_.stream_synchronize(stream_), "cuStreamSynchronize"));
  total_ = word();
  launches_ = word();
  keep(check(api_.graph_create(&places_.emplace_back().graph, 0), "cuGraphCreate"));
}

RawGraph::~RawGraph() {
  const CudaContext::Use use(context_);
  if (executable_ != nullptr) api_.graph_exec_destroy(executable_);
  if (!places_.empty() && places_[0].graph != nullptr) api_.graph_destroy(places_[0].graph);
  if (stream_ != nullptr) api_.stream_destroy(stream_);
}

Status RawGraph::check(CuResult result, const char* call) { return context_.check(result, call); }

int64_t* RawGraph::word() {
  if (num_words_ == kMostWords) keep(internal_error("a graph by hand has too many words"));
  if (!error_.is_ok()) return nullptr;
  return static_cast<int64_t*>(words_.data()) + num_words_++;
}

void RawGraph::add_node(Level level, CuGraphNodeParams& params) {
  if (!error_.is_ok()) return;
  EDDY_CHECK(level < places_.size()) << "level " << level << " of " << places_.size();
  const CudaContext::Use use(context_);
  Place& place = places_[level];
  CuGraphNode node = nullptr;
  keep(check(api_.graph_add_node(&node, place.graph, &place.last, nullptr,
                                 place.last == nullptr ? 0 : 1, &params),
             "cuGraphAddNode"));
  place.last = node;
}

void RawGraph::add_kernel(Level level, const cuda::RivalParams& params) {
  cuda::RivalParams copy = params;
  void* pointers[] = {&copy};
  CuGraphNodeParams node;
  node.type = CuGraphNodeType::kKernel;
  node.kernel = {};
  node.kernel.function = raw_.step_;
  node.kernel.params = pointers;
  add_node(level, node);
}

RawGraph::Decided RawGraph::add_conditional(Level level, CuConditionalType type,
                                            unsigned num_bodies, unsigned default_value) {
  Decided made;
  EDDY_CHECK(num_bodies > 0) << "a conditional node without a body";
  made.bodies.assign(num_bodies, level);  // of a graph that has failed
  if (!error_.is_ok()) return made;
  {
    const CudaContext::Use use(context_);
    keep(check(api_.graph_conditional_handle(&made.handle, places_[level].graph, context_.handle(),
                                             default_value, kCuConditionalAssignDefault),
               "cuGraphConditionalHandleCreate"));
  }
  CuGraphNodeParams node;
  node.type = CuGraphNodeType::kConditional;
  node.conditional = {};
  node.conditional.handle = made.handle;
  node.conditional.type = type;
  node.conditional.size = num_bodies;
  node.conditional.context = context_.handle();
  add_node(level, node);
  if (!error_.is_ok()) return made;
  for (unsigned i = 0; i < num_bodies; ++i) {
    made.bodies[i] = places_.size();
    places_.push_back({node.conditional.bodies_out[i], nullptr});
  }
  return made;
}

Status RawGraph::finish() {
  EDDY_RETURN_IF_ERROR(error_);
  const CudaContext::Use use(context_);
  keep(check(api_.graph_instantiate(&executable_, places_[0].graph, 0), "cuGraphInstantiate"));
  return error_;
}

// Ok while it works.
Status RawGraph::look_at_stream() {
  const CudaContext::Use use(context_);
  const CuResult answer = api_.stream_query(stream_);
  if (answer == CuResult::kNotReady) return Status::ok();
  EDDY_RETURN_IF_ERROR(check(answer, "cuStreamQuery"));
  if (seen(ended_) >= num_launches_) return Status::ok();
  return run_failed("a graph by hand has ended without saying so");
}

Status RawGraph::start() {
  EDDY_RETURN_IF_ERROR(error_);
  EDDY_CHECK(executable_ != nullptr) << "start() follows finish()";
  ++num_launches_;
  const CudaContext::Use use(context_);
  keep(check(api_.graph_launch(executable_, stream_), "cuGraphLaunch"));
  return error_;
}

bool RawGraph::is_ended() {
  if (!error_.is_ok() || seen(ended_) >= num_launches_) return true;
  raw_.gpu_.progress();
  if (++num_looks_ % kLooks == 0) keep(look_at_stream());
  return !error_.is_ok();
}

Result<int64_t> RawGraph::read_total() {
  EDDY_RETURN_IF_ERROR(error_);
  const CudaContext::Use use(context_);
  int64_t* const on_host = static_cast<int64_t*>(host_words_.data()) + 1;
  keep(check(api_.copy(reinterpret_cast<CuDevicePointer>(on_host),
                       reinterpret_cast<CuDevicePointer>(total_), sizeof(int64_t), stream_),
             "cuMemcpyAsync"));
  keep(check(api_.stream_synchronize(stream_), "cuStreamSynchronize"));
  EDDY_RETURN_IF_ERROR(error_);
  return *on_host;
}

}  // namespace eddy
