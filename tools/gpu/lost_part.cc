#include <chrono>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"
#include "runtime/cuda/cuda_device.h"
#include "tools/gpu/report_part.h"
#include "tools/gpu/rival_kernels.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int64_t kFatal = 4;  // of the executions
constexpr const char* kPlace = "at spin[3]/trap: ";

// A device whose Sign is the kernel that faults; what it needs lives as long as its kernels.
class Trap {
 public:
  static Result<ExecutionDevice> set(const ExecutionDevice& on, const void* image) {
    auto trap = std::make_shared<Trap>(on.device);
    EDDY_RETURN_IF_ERROR(trap->load(image));
    for (const KernelEntry& entry : on.kernels->entries()) trap->kernels_.add(entry);
    trap->kernels_.add({.op = "Sign",
                        .since_version = 9,
                        .bind = [trap = trap.get()](const KernelInit&) { return trap->bind(); },
                        .provider = "trap"});
    CudaDeviceKernels apart = trap->device().kernels();
    apart.compile_or_null = nullptr;
    apart.why_no_compile = "the trap is a kernel of its own";
    trap->device().set_kernels(std::move(apart));
    return ExecutionDevice{on.device, std::shared_ptr<const KernelRegistry>(trap, &trap->kernels_)};
  }
  explicit Trap(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Trap() {
    if (module_ == nullptr) return;
    const CudaContext::Use use(context());
    context().api().module_unload(module_);
  }

 private:
  struct State : KernelState {
    Trap* trap = nullptr;
  };

  CudaDevice& device() const { return static_cast<CudaDevice&>(*device_); }
  CudaContext& context() const { return device().context(); }
  Status load(const void* image) {
    if (image == nullptr) {
      return unsupported("there is no kernel that faults: this build was made without a toolkit");
    }
    EDDY_ASSIGN_OR_RETURN(count_, device().allocator().allocate(sizeof(int64_t)));
    const int64_t zero = 0;
    EDDY_RETURN_IF_ERROR(device().write(count_.data(), &zero, sizeof(zero)));
    const CudaContext::Use use(context());
    const CudaApi& api = context().api();
    EDDY_RETURN_IF_ERROR(context().check(api.module_load(&module_, image), "cuModuleLoadData"));
    return context().check(api.module_function(&function_, module_, "eddy_rival_trap"),
                           "cuModuleGetFunction");
  }
  Result<BoundKernel> bind() {
    auto state = std::make_unique<State>();
    state->trap = this;
    BoundKernel kernel;
    kernel.run = run;
    kernel.state = std::move(state);
    return kernel;
  }
  static bool run(const KernelArgs& args) {
    const Trap& trap = *static_cast<const State*>(args.state)->trap;
    cuda::TrapParams params{.out = static_cast<float*>(args.outputs[0].data),
                            .in = static_cast<const float*>(args.inputs[0].data),
                            .count = static_cast<int64_t*>(trap.count_.data()),
                            .fatal = kFatal};
    void* values[] = {&params};
    CudaContext& context = trap.context();
    const CudaContext::Use use(context);
    Status status = context.check(
        context.api().launch_kernel(trap.function_, 1, 1, 1, 1, 1, 1, 0,
                                    static_cast<CuStream>(args.stream), values, nullptr),
        "cuLaunchKernel");
    return status.is_ok() || args.fail(std::move(status));
  }

  const std::shared_ptr<Device> device_;
  KernelRegistry kernels_;
  BufferRef count_;
  CuModule module_ = nullptr;
  CuFunction function_ = nullptr;
};

Result<Graph> spin(const OpTable& ops) {
  GraphBuilder b(ops);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  const auto results = b.while_loop(
      {.name = "spin", .initial = {x}, .trip_limit = b.scalar(int64_t{10})},
      [&](Value, ValueSpan v) {
        return WhileTest{b.op("Less", {v[0], b.scalar(2.0f)}), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        const Value before = b.op("Tanh", {v[0]});
        const Value trap = b.op("Sign", {before}, {}, {.name = "trap"});
        return std::vector<Value>{b.op("Sin", {trap})};
      });
  b.output("y", results[0]);
  return b.finish();
}

Status run_once(Session& session) { return session.run({{"x", Tensor::scalar(0.5f)}}).status(); }

Status is_lost_at(const Status& ended, const std::string& place) {
  const bool is_reported = ended.to_string().find(place) != std::string::npos;
  if (ended.code() == StatusCode::kDeviceLost && is_reported) return Status::ok();
  return run_failed("it ended with: " + ended.to_string());
}

}  // namespace

Json report_lost(const SessionsUnderReport& what, const void* rival_image_or_null, bool by_device) {
  PartReport report("lost", what.pace);
  const Library library;
  ExecutionDevice device;
  SessionOptions options;
  options.loops = by_device ? Loops::kDevice : Loops::kHost;
  options.locate_faults = true;
  options.make_devices = {[&]() -> Result<ExecutionDevice> {
    if (device.device != nullptr) return device;
    EDDY_ASSIGN_OR_RETURN(const ExecutionDevice made, what.make_device());
    EDDY_ASSIGN_OR_RETURN(device, Trap::set(made, rival_image_or_null));
    return device;
  }};
  const auto add = [&](const char* name, const Status& ended, const std::string& place,
                       Clock::time_point start) {
    const std::chrono::duration<double, std::milli> took = Clock::now() - start;
    Json row = {{"case", name}, {"told", ended.to_string()}, {"ms", took.count()}};
    set_status(is_lost_at(ended, place), row);
    report.add(std::move(row));
  };
  auto session = Session::create(library, std::move(*spin(library.ops())), options);
  report.end_with(session.status());
  if (!session.is_ok()) return report.take();
  Clock::time_point start = Clock::now();
  add(by_device ? "a loop of the device's" : "a loop of the host's", run_once(**session), kPlace,
      start);
  start = Clock::now();
  add("the next run", run_once(**session), "", start);
  start = Clock::now();
  add("another session",
      Session::create(library, std::move(*spin(library.ops())), options).status(), "", start);
  session->reset();
  return report.take();
}

}  // namespace eddy
