// Questions about captures and graphs.
#include <thread>

#include "ops/cuda/libraries/cublas_lt.h"
#include "ops/cuda/libraries/cudnn.h"
#include "tools/gpu/driver_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using cuda::ProbeOp;
using cuda::ProbeParams;

// ---------------------------------------------------------------- edges

// Two capture streams, and where what they capture goes.
struct Shape {
  DriverLab& lab;
  CuGraph graph;
  CuStream first, second;
  volatile uint32_t* word;

  Status kernel(CuStream stream) const { return lab.launch({.word = word}, stream, true); }
  // `to` goes on behind what `from` has.
  Status follow(CuStream to, CuStream from) const {
    CuEvent event = nullptr;
    EDDY_RETURN_IF_ERROR(
        lab.check(lab.api().event_create(&event, kCuEventDisableTiming), "cuEventCreate"));
    Status status = lab.check(lab.api().event_record(event, from), "cuEventRecord");
    if (status.is_ok()) {
      status = lab.check(lab.api().stream_wait_event(to, event, 0), "cuStreamWaitEvent");
    }
    lab.api().event_destroy(event);
    return status;
  }
};

Status record_chain(const Shape& s) {
  EDDY_RETURN_IF_ERROR(s.kernel(s.first));
  return s.kernel(s.first);
}

Status record_fork_and_join(const Shape& s) {
  EDDY_RETURN_IF_ERROR(s.kernel(s.first));
  EDDY_RETURN_IF_ERROR(s.follow(s.second, s.first));
  EDDY_RETURN_IF_ERROR(s.kernel(s.second));
  EDDY_RETURN_IF_ERROR(s.kernel(s.first));
  EDDY_RETURN_IF_ERROR(s.follow(s.first, s.second));
  return s.kernel(s.first);
}

Status record_copy(const Shape& s) {
  EDDY_RETURN_IF_ERROR(s.kernel(s.first));
  const auto address = reinterpret_cast<CuDevicePointer>(s.word);
  EDDY_RETURN_IF_ERROR(
      s.lab.check(s.lab.api().copy(address + sizeof(uint32_t), address, sizeof(uint32_t), s.first),
                  "cuMemcpyAsync"));
  return s.kernel(s.first);
}

// The capture is cut around the node, as Eddy cuts it.
Status record_conditional(const Shape& s) {
  EDDY_RETURN_IF_ERROR(s.kernel(s.first));
  EDDY_ASSIGN_OR_RETURN(const CuGraphNode last, s.lab.last_captured(s.first));
  EDDY_RETURN_IF_ERROR(s.lab.end_capture(s.first));
  EDDY_ASSIGN_OR_RETURN(const auto loop, s.lab.add_while(s.graph, &last));
  EDDY_RETURN_IF_ERROR(s.lab.begin_capture(s.first, s.graph, &loop.node));
  return s.kernel(s.first);
}

// "2 of 3 begin early": edges of the graph that the driver has made programmatic.
Result<std::string> edges_of(DriverLab& lab, CuGraph graph) {
  size_t num_edges = 0;
  const auto& ask = lab.extras().graph_edges;
  EDDY_RETURN_IF_ERROR(
      lab.check(ask(graph, nullptr, nullptr, nullptr, &num_edges), "cuGraphGetEdges"));
  std::vector<CuGraphNode> from(num_edges), to(num_edges);
  std::vector<CuGraphEdgeData> data(num_edges);
  EDDY_RETURN_IF_ERROR(
      lab.check(ask(graph, from.data(), to.data(), data.data(), &num_edges), "cuGraphGetEdges"));
  size_t num_early = 0;
  for (const CuGraphEdgeData& edge : data) num_early += edge.from_port != 0 ? 1 : 0;
  return std::to_string(num_early) + " of " + std::to_string(num_edges) + " begin early";
}

struct NamedShape {
  const char* name;
  Status (*record)(const Shape& shape);
};
constexpr NamedShape kShapes[] = {{"chain", record_chain},
                                  {"fork and join", record_fork_and_join},
                                  {"copy between", record_copy},
                                  {"conditional between", record_conditional}};

Status ask_edges(DriverLab& lab, Json& row) {
  if (!lab.extras().graph_edges) return unsupported("the driver has no cuGraphGetEdges_v2");
  if (!lab.api().has_programmatic()) return unsupported("the driver has no early launches");
  EDDY_ASSIGN_OR_RETURN(const CuStream first, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(const CuStream second, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const word, lab.device_word());
  for (const bool is_body : {false, true}) {
    for (const auto& [name, record] : kShapes) {
      EDDY_ASSIGN_OR_RETURN(CuGraph graph, lab.graph());
      if (is_body) {
        EDDY_ASSIGN_OR_RETURN(const auto loop, lab.add_while(graph, nullptr));
        graph = loop.body;
      }
      EDDY_RETURN_IF_ERROR(lab.begin_capture(first, graph));
      EDDY_RETURN_IF_ERROR(record({lab, graph, first, second, word}));
      EDDY_RETURN_IF_ERROR(lab.end_capture(first));
      EDDY_ASSIGN_OR_RETURN(row[std::string(is_body ? "in a body, " : "") + name],
                            edges_of(lab, graph));
    }
  }
  return Status::ok();
}

// ---------------------------------------------------------------- bodies

// The graph is instantiated, launched and over.
Status run_graph(DriverLab& lab, CuGraph graph) {
  EDDY_ASSIGN_OR_RETURN(const CuGraphExec executable, lab.executable(graph));
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_RETURN_IF_ERROR(lab.check(lab.api().graph_launch(executable, stream), "cuGraphLaunch"));
  return lab.finish(stream);
}

Status ask_decided_twice(DriverLab& lab, Json& row) {
  constexpr uint32_t kRounds = 5;
  EDDY_ASSIGN_OR_RETURN(const CuGraph graph, lab.graph());
  EDDY_ASSIGN_OR_RETURN(const auto loop, lab.add_while(graph, nullptr));
  EDDY_ASSIGN_OR_RETURN(auto* const counter, lab.host_word());
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_RETURN_IF_ERROR(lab.begin_capture(stream, loop.body));
  EDDY_RETURN_IF_ERROR(lab.launch({.op = ProbeOp::kDecide,
                                   .most = kRounds,
                                   .handle = loop.handle,
                                   .counter = (int64_t*)counter},
                                  stream));
  EDDY_RETURN_IF_ERROR(lab.end_capture(stream));
  EDDY_RETURN_IF_ERROR(run_graph(lab, graph));
  row["rounds"] = DriverLab::seen(counter);
  if (row["rounds"] == kRounds) return Status::ok();
  return run_failed("the last set does not count: " + row["rounds"].dump() + " rounds of 5");
}

Status ask_host_copy(DriverLab& lab, Json& row) {
  EDDY_ASSIGN_OR_RETURN(const CuGraph graph, lab.graph());
  EDDY_ASSIGN_OR_RETURN(const auto loop, lab.add_while(graph, nullptr));
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const word, lab.host_word());
  const auto address = reinterpret_cast<CuDevicePointer>(word);
  EDDY_RETURN_IF_ERROR(lab.begin_capture(stream, loop.body));
  Status taken =
      lab.check(lab.api().copy(address + sizeof(uint32_t), address, 4, stream), "cuMemcpyAsync");
  const Status ended = lab.end_capture(stream);
  if (!ended.is_ok()) lab.forget_graph(graph);
  if (taken.is_ok()) taken = ended;
  if (taken.is_ok()) taken = lab.executable(graph).status();
  row["host_to_host_in_a_body"] = taken.is_ok() ? "taken" : taken.message();
  return Status::ok();
}

// Loads by the driver's compiler alone, which knows the function.
Status ask_set_by_ptx(DriverLab& lab, Json& row) {
  constexpr const char* kText = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry eddy_probe_end (.param .u64 handle)
{
  .reg .b64 %h;
  .reg .b32 %v;
  .param .b64 to;
  .param .b32 value;
  ld.param.u64 %h, [handle];
  mov.u32 %v, 0;
  st.param.b64 [to], %h;
  st.param.b32 [value], %v;
  call.uni cudaGraphSetConditional, (to, value);
  ret;
}
)";
  CuModule module = nullptr;
  const Status loaded = lab.check(lab.api().module_load(&module, kText), "cuModuleLoadData");
  row["text_that_decides"] = loaded.is_ok() ? "loads" : loaded.message();
  if (module != nullptr) lab.api().module_unload(module);
  return Status::ok();
}

// ---------------------------------------------------------------- spoilt captures

// By another thread, as another session is.
Status elsewhere(DriverLab& lab, const std::function<Status()>& call) {
  Status status;
  std::thread([&] {
    const CudaContext::Use use(lab.context());
    status = call();
  }).join();
  return status;
}

Status library_status(int result, const char* call) {
  return result == 0 ? Status::ok() : run_failed(call + (": " + std::to_string(result)));
}

Status ask_what_spoils(DriverLab& lab, Json& row) {
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const word, lab.device_word());
  const auto meanwhile = [&](const char* name, const std::function<Status()>& call) -> Status {
    EDDY_ASSIGN_OR_RETURN(const CuGraph graph, lab.graph());
    EDDY_RETURN_IF_ERROR(lab.begin_capture(stream, graph));
    EDDY_RETURN_IF_ERROR(lab.launch({.word = word}, stream));
    const Status answer = elsewhere(lab, call);
    CuCaptureStatus status = CuCaptureStatus::kActive;
    if (lab.api().stream_is_capturing) lab.api().stream_is_capturing(stream, &status);
    const bool is_spoilt = !lab.end_capture(stream).is_ok() || status != CuCaptureStatus::kActive;
    if (is_spoilt) lab.forget_graph(graph);
    row[name] = std::string(is_spoilt ? "spoils it" : "leaves it alone") +
                (answer.is_ok() ? "" : "; " + answer.message());
    return Status::ok();
  };
  EDDY_RETURN_IF_ERROR(meanwhile("cuCtxSynchronize", [&] {
    return lab.check(lab.api().context_synchronize(), "cuCtxSynchronize");
  }));
  if (const auto dnn = load_cudnn(); dnn.is_ok()) {
    DnnHandle handle = nullptr;
    EDDY_RETURN_IF_ERROR(meanwhile(
        "cudnnCreate", [&] { return library_status((*dnn)->create(&handle), "cudnnCreate"); }));
    if (handle != nullptr) {
      EDDY_RETURN_IF_ERROR(meanwhile(
          "cudnnDestroy", [&] { return library_status((*dnn)->destroy(handle), "cudnnDestroy"); }));
    }
  }
  if (const auto lt = load_cublas_lt(); lt.is_ok()) {
    LtHandle handle = nullptr;
    EDDY_RETURN_IF_ERROR(meanwhile("cublasLtCreate", [&] {
      return library_status((*lt)->create(&handle), "cublasLtCreate");
    }));
    if (handle != nullptr) {
      EDDY_RETURN_IF_ERROR(meanwhile("cublasLtDestroy", [&] {
        return library_status((*lt)->destroy(handle), "cublasLtDestroy");
      }));
    }
  }
  return Status::ok();
}

Status ask_spoilt_body(DriverLab& lab, Json& row) {
  EDDY_ASSIGN_OR_RETURN(const CuGraph graph, lab.graph());
  EDDY_ASSIGN_OR_RETURN(const auto loop, lab.add_while(graph, nullptr));
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const word, lab.device_word());
  EDDY_RETURN_IF_ERROR(lab.begin_capture(stream, loop.body));
  EDDY_RETURN_IF_ERROR(lab.launch({.word = word}, stream));
  (void)elsewhere(lab,
                  [&] { return lab.check(lab.api().context_synchronize(), "cuCtxSynchronize"); });
  const Status ended = lab.end_capture(stream);
  lab.forget_graph(graph);
  row["end"] = ended.is_ok() ? "not spoilt" : ended.message();
  // Eddy leaves such a root alone; a driver without the defect survives this.
  if (!ended.is_ok()) {
    row["destroyed"] = lab.api().graph_destroy(graph) == CuResult::kSuccess ? "yes" : "refused";
  }
  return Status::ok();
}

}  // namespace

void add_capture_questions(std::vector<DriverQuestion>& questions) {
  questions.push_back({"edges", "which captured kernels may begin early", ask_edges});
  questions.push_back(
      {"decided_twice", "a handle is set twice before one evaluation", ask_decided_twice});
  questions.push_back({"host_copy", "does a body take a copy within host memory", ask_host_copy});
  questions.push_back(
      {"set_by_ptx", "does text load that calls cudaGraphSetConditional", ask_set_by_ptx});
  questions.push_back(
      {"what_spoils", "calls of another thread beside a relaxed capture", ask_what_spoils});
  questions.push_back(
      {"spoilt_body", "the end of a capture that was spoilt in a body", ask_spoilt_body, true});
}

}  // namespace eddy
