#include "tools/gpu/driver_lab.h"

#include <cstring>

#include "ops/cuda/libraries/library.h"

namespace eddy {

DriverExtras load_driver_extras() {
  static constexpr const char* kNames[] = {"libcuda.so.1"};
  DriverExtras extras;
  const Result<DynamicLibrary> driver = DynamicLibrary::open(kNames);
  if (driver.is_ok()) driver->find("cuGraphGetEdges_v2", extras.graph_edges);
  return extras;
}

Result<std::unique_ptr<DriverLab>> DriverLab::open(const GpuUnderReport& gpu,
                                                   const DriverExtras& extras,
                                                   const void* image_or_null) {
  if (image_or_null == nullptr) {
    return unsupported("there is no kernel to ask with: this build was made without a toolkit");
  }
  const CudaDeviceFacts& facts = gpu.device.context().facts();
  if (!facts.has_device_driven || !facts.has_memory_words) {
    return unsupported("the driver lacks conditional nodes or words in streams");
  }
  std::unique_ptr<DriverLab> lab(new DriverLab(gpu, extras));
  const CudaApi& api = lab->api();
  EDDY_RETURN_IF_ERROR(
      lab->check(api.module_load(&lab->module_, image_or_null), "cuModuleLoadData"));
  EDDY_RETURN_IF_ERROR(lab->check(api.module_function(&lab->function_, lab->module_, "eddy_probe"),
                                  "cuModuleGetFunction"));
  return lab;
}

DriverLab::~DriverLab() {
  for (const CuGraphExec executable : executables_) api().graph_exec_destroy(executable);
  for (const CuGraph graph : graphs_) api().graph_destroy(graph);
  for (const CuStream stream : streams_) api().stream_destroy(stream);
  if (module_ != nullptr) api().module_unload(module_);
}

Status DriverLab::check(CuResult result, const char* call) const {
  return context().check(result, call);
}

Result<CuStream> DriverLab::stream(int priority) {
  CuStream stream = nullptr;
  EDDY_RETURN_IF_ERROR(check(api().stream_create(&stream, kCuStreamNonBlocking, priority),
                             "cuStreamCreateWithPriority"));
  return streams_.emplace_back(stream);
}

Result<CuGraph> DriverLab::graph() {
  CuGraph graph = nullptr;
  EDDY_RETURN_IF_ERROR(check(api().graph_create(&graph, 0), "cuGraphCreate"));
  return graphs_.emplace_back(graph);
}

Result<CuGraphExec> DriverLab::executable(CuGraph graph) {
  CuGraphExec executable = nullptr;
  EDDY_RETURN_IF_ERROR(check(api().graph_instantiate(&executable, graph, 0), "cuGraphInstantiate"));
  return executables_.emplace_back(executable);
}

Result<volatile uint32_t*> DriverLab::host_word() {
  EDDY_ASSIGN_OR_RETURN(BufferRef memory, gpu_.device.staging().allocate(sizeof(uint64_t)));
  auto* const word = static_cast<uint32_t*>(memory.data());
  std::memset(word, 0, sizeof(uint64_t));
  words_.push_back(std::move(memory));
  return static_cast<volatile uint32_t*>(word);
}

Result<volatile uint32_t*> DriverLab::device_word() {
  EDDY_ASSIGN_OR_RETURN(BufferRef memory, gpu_.device.allocator().allocate(sizeof(uint64_t)));
  const uint64_t zero = 0;
  EDDY_RETURN_IF_ERROR(gpu_.device.write(memory.data(), &zero, sizeof(zero)));
  auto* const word = static_cast<uint32_t*>(memory.data());
  words_.push_back(std::move(memory));
  return static_cast<volatile uint32_t*>(word);
}

Status DriverLab::launch(const cuda::ProbeParams& params, CuStream stream, bool is_programmatic) {
  cuda::ProbeParams copy = params;
  void* values[] = {&copy};
  if (!is_programmatic) {
    return check(api().launch_kernel(function_, 1, 1, 1, 1, 1, 1, 0, stream, values, nullptr),
                 "cuLaunchKernel");
  }
  CuLaunchAttribute programmatic{.id = kCuLaunchProgrammatic, .value = 1};
  const CuLaunchConfig config{.stream = stream, .attributes = &programmatic, .num_attributes = 1};
  return check(api().launch_kernel_ex(&config, function_, values, nullptr), "cuLaunchKernelEx");
}

Status DriverLab::begin_capture(CuStream stream, CuGraph graph, const CuGraphNode* after_or_null) {
  return check(
      api().stream_begin_capture(stream, graph, after_or_null, nullptr,
                                 after_or_null == nullptr ? 0 : 1, CuCaptureMode::kRelaxed),
      "cuStreamBeginCaptureToGraph");
}

Status DriverLab::end_capture(CuStream stream) {
  CuGraph graph = nullptr;
  return check(api().stream_end_capture(stream, &graph), "cuStreamEndCapture");
}

Result<CuGraphNode> DriverLab::last_captured(CuStream stream) {
  CuCaptureStatus status = CuCaptureStatus::kNone;
  uint64_t id = 0;
  CuGraph graph = nullptr;
  const CuGraphNode* last = nullptr;
  size_t num_last = 0;
  EDDY_RETURN_IF_ERROR(
      check(api().stream_capture_info(stream, &status, &id, &graph, &last, &num_last),
            "cuStreamGetCaptureInfo"));
  return num_last == 0 ? nullptr : last[0];
}

Result<DriverLab::While> DriverLab::add_while(CuGraph graph, const CuGraphNode* after_or_null) {
  While made;
  EDDY_RETURN_IF_ERROR(check(api().graph_conditional_handle(&made.handle, graph, context().handle(),
                                                            1, kCuConditionalAssignDefault),
                             "cuGraphConditionalHandleCreate"));
  CuGraphNodeParams params;
  params.type = CuGraphNodeType::kConditional;
  params.conditional = {};
  params.conditional.handle = made.handle;
  params.conditional.type = CuConditionalType::kWhile;
  params.conditional.context = context().handle();
  EDDY_RETURN_IF_ERROR(check(api().graph_add_node(&made.node, graph, after_or_null, nullptr,
                                                  after_or_null == nullptr ? 0 : 1, &params),
                             "cuGraphAddNode"));
  made.body = params.conditional.bodies_out[0];
  return made;
}

Status DriverLab::wait(const std::function<bool()>& is_over, const char* what) const {
  for (const Clock::time_point end = Clock::now() + kPatience; !is_over();) {
    progress();
    if (Clock::now() > end) return deadline_exceeded(std::string(what) + " does not come");
  }
  return Status::ok();
}

Status DriverLab::finish(CuStream stream) const {
  CuResult answer = CuResult::kNotReady;
  const auto is_over = [&] {
    answer = api().stream_query(stream);
    return answer != CuResult::kNotReady;
  };
  EDDY_RETURN_IF_ERROR(wait(is_over, "a stream's end"));
  return check(answer, "cuStreamQuery");
}

}  // namespace eddy
