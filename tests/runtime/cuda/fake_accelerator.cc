#include "tests/runtime/cuda/fake_accelerator.h"

#include <cstring>
#include <functional>

#include "graph/base/check.h"
#include "runtime/cuda/cuda_transfers.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

namespace eddy::testing {
namespace {

constexpr const char* kKernel = "library";
constexpr const char* kLoopStep = "eddy_loop_step";
constexpr const char* kChoice = "eddy_case_choice";
constexpr const char* kCopy = "eddy_loop_copy";
constexpr size_t kMaxAddresses = 24;

// The addresses are there for the fake to check: each must be in a living block.
struct Params {
  uint64_t call;
  uint64_t addresses[kMaxAddresses];
};

class VectorScratch : public Scratch {
 public:
  void* reserve(size_t size_bytes) override {
    if (bytes_.size() < size_bytes + 64) bytes_.resize(size_bytes + 64);
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    return bytes_.data() + (64 - address % 64) % 64;
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

// One execution, from its enqueueing on.
struct FakeAccelerator::Call {
  KernelFunction run = nullptr;
  std::shared_ptr<const KernelState> state;  // a GPU has its own copy of what a launch needs
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  std::vector<Dims> dims;
  std::vector<std::vector<std::byte>> host_values;
  std::string op;
  std::string node;
  bool is_recorded = false;  // it runs each time its graph does
};

// A library kernel's state, and how to reach the fake.
struct FakeAccelerator::Wrapped : KernelState {
  FakeAccelerator* owner = nullptr;
  CudaContext* context = nullptr;
  CuFunction function = nullptr;
  BoundKernel kernel;  // without its state
  std::shared_ptr<const KernelState> state;
  uint64_t host_values = 0;  // bit i: input i is read when the kernel is enqueued
  std::string op;
  std::string node;
};

FakeAccelerator::FakeAccelerator(const Library& library, const FakeAcceleratorOptions& options)
    : library_(library), options_(options), cuda_([&options] {
        FakeCudaOptions cuda = options.cuda;
        cuda.seed = options.seed;
        return cuda;
      }()) {
  cuda_.define_kernel(kKernel, sizeof(Params), [this](const FakeKernelCall& call) {
    run(call, call.params_as<Params>().call);
  });
  define_loop_kernels(cuda_);
  engine_ = std::make_unique<FakeEngine>(cuda_);
}

FakeAccelerator::~FakeAccelerator() = default;

bool FakeAccelerator::enqueue(const KernelArgs& args) {
  const auto& wrapped = *static_cast<const Wrapped*>(args.state);
  auto call = std::make_shared<Call>();
  call->run = wrapped.kernel.run;
  call->state = wrapped.state;
  call->op = wrapped.op;
  call->node = wrapped.node;
  call->is_recorded = wrapped.owner->cuda_.is_capturing(static_cast<CuStream>(args.stream));
  call->dims.reserve(args.num_inputs + args.num_outputs);
  Params params{};
  size_t num_addresses = 0;
  const auto keep = [&](const TensorView& view, std::vector<TensorView>& views) {
    views.push_back(view);
    if (view.is_omitted()) return;
    call->dims.push_back(Dims(view.shape()));
    views.back().dims = call->dims.back().data();
  };
  for (uint32_t i = 0; i < args.num_inputs; ++i) {
    keep(args.inputs[i], call->inputs);
    TensorView& view = call->inputs.back();
    if (view.is_omitted() || view.data == nullptr) continue;
    if ((wrapped.host_values >> i & 1) != 0) {
      const auto* bytes = static_cast<const std::byte*>(view.data);
      auto& copy = call->host_values.emplace_back(bytes, bytes + view.size_bytes());
      view.data = copy.data();
    } else if (num_addresses < kMaxAddresses) {
      params.addresses[num_addresses++] = reinterpret_cast<uint64_t>(view.data);
    }
  }
  for (uint32_t o = 0; o < args.num_outputs; ++o) {
    keep(args.outputs[o], call->outputs);
    if (num_addresses < kMaxAddresses && args.outputs[o].size_bytes() > 0) {
      params.addresses[num_addresses++] = reinterpret_cast<uint64_t>(args.outputs[o].data);
    }
  }
  {
    std::lock_guard lock(wrapped.owner->mutex_);
    params.call = wrapped.owner->next_call_++;
    wrapped.owner->calls_[params.call] = std::move(call);
  }
  const CudaContext::Use use(*wrapped.context);
  void* values[] = {&params};
  Status status = wrapped.context->check(
      wrapped.context->api().launch_kernel(wrapped.function, 1, 1, 1, 1, 1, 1, 0,
                                           static_cast<CuStream>(args.stream), values, nullptr),
      "cuLaunchKernel");
  return status.is_ok() || args.fail(std::move(status));
}

void FakeAccelerator::fault_node(std::string name, uint64_t k) {
  std::lock_guard lock(mutex_);
  faulty_node_ = std::move(name);
  executions_until_fault_ = k;
}

bool FakeAccelerator::is_to_fault(const std::string& node) {
  std::lock_guard lock(mutex_);
  if (node != faulty_node_ || executions_until_fault_ == 0) return false;
  return --executions_until_fault_ == 0;
}

void FakeAccelerator::run(const FakeKernelCall& launch, uint64_t id) {
  std::shared_ptr<Call> call;
  {
    std::lock_guard lock(mutex_);
    const auto found = calls_.find(id);
    if (found == calls_.end()) return errors_.push_back("a kernel runs twice");
    call = found->second;
    if (!call->is_recorded) calls_.erase(found);
  }
  if (is_to_fault(call->node)) return launch.fault();
  VectorScratch scratch;
  Status error;
  KernelArgs args;
  args.inputs = call->inputs.data();
  args.outputs = call->outputs.data();
  args.num_inputs = static_cast<uint32_t>(call->inputs.size());
  args.num_outputs = static_cast<uint32_t>(call->outputs.size());
  args.state = call->state.get();
  args.scratch = &scratch;
  args.error = &error;
  const bool is_fine = call->run(args);
  ++num_kernels_;
  if (is_fine) return;
  std::lock_guard lock(mutex_);
  errors_.push_back(call->op + ": " + error.to_string());
}

// long: what is made refers to what is made before it.
Result<ExecutionDevice> FakeAccelerator::make(int ordinal) {
  // What kernels refer to; the device goes last.
  struct Parts {
    ~Parts() {
      if (module == nullptr) return;
      const CaptureTurns::Alone alone(device->context().capture_turns());
      const CudaContext::Use use(device->context());
      device->context().api().module_unload(module);
    }
    std::shared_ptr<CudaDevice> device;
    CuModule module = nullptr;
    CuFunction function = nullptr;
    KernelRegistry kernels;
  };
  auto parts = std::make_shared<Parts>();
  auto api = std::make_shared<CudaApi>(*cuda_.api());
  if (!options_.can_capture) api->stream_begin_capture = nullptr;
  EDDY_ASSIGN_OR_RETURN(parts->device, CudaDevice::create(api, {.ordinal = ordinal}));
  CudaDeviceKernels own;
  CudaContext& context = parts->device->context();
  {
    const CudaContext::Use use(context);
    EDDY_RETURN_IF_ERROR(
        context.check(context.api().module_load(&parts->module, FakeCuda::kImage), "load"));
    EDDY_RETURN_IF_ERROR(context.check(
        context.api().module_function(&parts->function, parts->module, kKernel), "function"));
    EDDY_RETURN_IF_ERROR(context.check(
        context.api().module_function(&own.loop.step, parts->module, kLoopStep), "step"));
    EDDY_RETURN_IF_ERROR(context.check(
        context.api().module_function(&own.loop.choice, parts->module, kChoice), "choice"));
    EDDY_RETURN_IF_ERROR(
        context.check(context.api().module_function(&own.loop.copy, parts->module, kCopy), "copy"));
  }
  const auto bind = [this, &library = library_.cpu_kernels(), &context,
                     function = parts->function](const KernelInit& init) -> Result<BoundKernel> {
    const size_t hash = std::hash<std::string>()(std::string(init.node_name)) ^ options_.seed;
    if (static_cast<double>(hash % 1000) < options_.cpu_share * 1000) {
      return unsupported("the test wants it on the CPU");
    }
    auto wrapped = std::make_unique<Wrapped>();
    EDDY_ASSIGN_OR_RETURN(wrapped->kernel, library.bind(init));
    if (wrapped->kernel.run == nullptr) return unsupported("it makes its own outputs");
    wrapped->state = std::move(wrapped->kernel.state);
    wrapped->owner = this;
    wrapped->context = &context;
    wrapped->function = function;
    wrapped->op = init.op.name;
    wrapped->node = init.node_name;
    for (size_t i = 0; i < init.inputs.size() && i < 64; ++i) {
      const auto& formals = init.op.inputs;
      if (formals.empty()) continue;
      const InputFlag flags = formals[std::min(i, formals.size() - 1)].flags;
      if (has_flag(flags, InputFlag::kHostValue)) wrapped->host_values |= uint64_t{1} << i;
    }
    BoundKernel kernel;
    kernel.run = enqueue;
    kernel.may_fault = options_.may_fault == init.op.name;
    kernel.unread_constants = wrapped->kernel.unread_constants;
    kernel.state = std::move(wrapped);
    return kernel;
  };
  std::map<std::pair<std::string_view, std::string_view>, int> oldest;
  for (const KernelEntry& entry : library_.cpu_kernels().entries()) {
    const auto [known, is_new] = oldest.try_emplace({entry.domain, entry.op}, entry.since_version);
    if (!is_new) known->second = std::min(known->second, entry.since_version);
  }
  for (const auto& [name, since_version] : oldest) {
    parts->kernels.add({.op = name.second,
                        .since_version = since_version,
                        .bind = bind,
                        .provider = "fake",
                        .domain = name.first});
  }
  if (!options_.can_copy_words) own.loop.copy = nullptr;
  parts->device->set_kernels(std::move(own));
  add_cuda_transfers(parts->kernels, *parts->device);
  return ExecutionDevice{std::shared_ptr<Device>(parts, parts->device.get()),
                         std::shared_ptr<const KernelRegistry>(parts, &parts->kernels)};
}

MakeDevice FakeAccelerator::maker(int ordinal) {
  return [this, ordinal] { return make(ordinal); };
}

std::vector<std::string> FakeAccelerator::problems() const {
  std::vector<std::string> problems = cuda_.violations();
  std::lock_guard lock(mutex_);
  problems.insert(problems.end(), errors_.begin(), errors_.end());
  return problems;
}

}  // namespace eddy::testing
