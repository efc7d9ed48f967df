#include "runtime/cuda/cuda_context.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {
namespace {

bool is_sticky(CuResult result) {
  switch (static_cast<int>(result)) {
    case 4:    // the driver is shutting down
    case 46:   // device unavailable
    case 214:  // uncorrectable memory error
    case 220:  // uncorrectable NVLink error
    case 226:  // contained error
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // context destroyed
    case 710:  // assert
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
    case 721:  // tensor memory leak
    case 810:  // terminated by the multi-process server
    case 911:  // external device
    case 999:  // unknown
      return true;
    default:
      return false;
  }
}

std::string answer_text(const CudaApi& api, CuResult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.error_name(result, &name);
  api.error_string(result, &text);
  std::string answer = name != nullptr ? name : "error " + std::to_string(static_cast<int>(result));
  if (text != nullptr) answer += " (" + std::string(text) + ")";
  return answer;
}

Status first_failure(const CudaApi& api, CuResult result, const char* call) {
  if (result == CuResult::kSuccess) return Status::ok();
  return device_lost(std::string(call) + " answered " + answer_text(api, result));
}

Result<CudaDeviceFacts> read_facts(const CudaApi& api, int ordinal, CuDevice device) {
  CudaDeviceFacts facts;
  facts.ordinal = ordinal;
  char name[256] = "";
  EDDY_RETURN_IF_ERROR(
      first_failure(api, api.device_name(name, sizeof(name) - 1, device), "cuDeviceGetName"));
  facts.name = name;
  int major = 0;
  int minor = 0;
  const std::pair<CuDeviceAttribute, int*> wanted[] = {
      {CuDeviceAttribute::kComputeCapabilityMajor, &major},
      {CuDeviceAttribute::kComputeCapabilityMinor, &minor},
      {CuDeviceAttribute::kNumMultiprocessors, &facts.num_multiprocessors},
      {CuDeviceAttribute::kMaxThreadsPerMultiprocessor, &facts.max_threads_per_multiprocessor}};
  for (const auto& [attribute, value] : wanted) {
    EDDY_RETURN_IF_ERROR(
        first_failure(api, api.device_attribute(value, attribute, device), "cuDeviceGetAttribute"));
  }
  facts.compute_capability = 10 * major + minor;
  EDDY_RETURN_IF_ERROR(
      first_failure(api, api.device_memory(&facts.memory_bytes, device), "cuDeviceTotalMem"));
  EDDY_RETURN_IF_ERROR(
      first_failure(api, api.driver_version(&facts.driver_version), "cuDriverGetVersion"));
  facts.has_memory_words = api.has_memory_words();
  facts.has_graphs = api.has_graphs();
  facts.has_capture = api.has_capture();
  facts.has_programmatic = api.has_programmatic() && facts.compute_capability >= 90;
  facts.has_device_driven = api.has_graphs() && api.graph_conditional_handle &&
                            facts.driver_version >= CudaApi::kDeviceDrivenVersion;
  return facts;
}

Status check_needs(const CudaApi& api, CuDevice device, const CudaDeviceFacts& facts) {
  const std::pair<CuDeviceAttribute, const char*> needs[] = {
      {CuDeviceAttribute::kCanMapHostMemory, "mapped host memory"},
      {CuDeviceAttribute::kUnifiedAddressing, "unified addresses"},
      {CuDeviceAttribute::kMemoryPoolsSupported, "memory pools"}};
  for (const auto& [attribute, what] : needs) {
    int value = 0;
    EDDY_RETURN_IF_ERROR(first_failure(api, api.device_attribute(&value, attribute, device),
                                       "cuDeviceGetAttribute"));
    if (value == 0) {
      return unsupported("CUDA device " + std::to_string(facts.ordinal) + " (" + facts.name +
                         ") has no " + what + "; Eddy needs it");
    }
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<CudaDeviceFacts>> list_cuda_devices(const CudaApi& api) {
  int count = 0;
  EDDY_RETURN_IF_ERROR(first_failure(api, api.device_count(&count), "cuDeviceGetCount"));
  std::vector<CudaDeviceFacts> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CuDevice device = 0;
    EDDY_RETURN_IF_ERROR(first_failure(api, api.device_get(&device, ordinal), "cuDeviceGet"));
    EDDY_ASSIGN_OR_RETURN(CudaDeviceFacts facts, read_facts(api, ordinal, device));
    devices.push_back(std::move(facts));
  }
  return devices;
}

Result<std::unique_ptr<CudaContext>> CudaContext::create(std::shared_ptr<const CudaApi> api,
                                                         int ordinal) {
  int count = 0;
  EDDY_RETURN_IF_ERROR(first_failure(*api, api->device_count(&count), "cuDeviceGetCount"));
  if (count == 0) return device_lost("the CUDA driver sees no device; run on the CPU");
  if (ordinal < 0 || ordinal >= count) {
    return invalid_argument("there is no CUDA device " + std::to_string(ordinal) + ": there are " +
                            std::to_string(count) + ", numbered from 0");
  }
  CuDevice device = 0;
  EDDY_RETURN_IF_ERROR(first_failure(*api, api->device_get(&device, ordinal), "cuDeviceGet"));
  EDDY_ASSIGN_OR_RETURN(CudaDeviceFacts facts, read_facts(*api, ordinal, device));
  EDDY_RETURN_IF_ERROR(check_needs(*api, device, facts));
  std::unique_ptr<CudaContext> context(new CudaContext(std::move(api), std::move(facts), device));
  EDDY_RETURN_IF_ERROR(first_failure(
      context->api(), context->api().primary_context_retain(&context->context_, device),
      "cuDevicePrimaryCtxRetain"));
  context->capture_turns_ = CaptureTurns::of(context->context_);
  const Use use(*context);
  int least = 0;
  int greatest = 0;
  if (context->api().stream_priorities(&least, &greatest) == CuResult::kSuccess) {
    context->stream_priority_ = std::max(least - 1, greatest);  // the lower number goes first
  }
  return context;
}

CudaContext::~CudaContext() {
  if (context_ != nullptr) api_->primary_context_release(device_);
}

Status CudaContext::keep() {
  CuContext kept = nullptr;
  return check(api_->primary_context_retain(&kept, device_), "cuDevicePrimaryCtxRetain");
}

Result<CuStream> CudaContext::make_stream() {
  CuStream stream = nullptr;
  EDDY_RETURN_IF_ERROR(check(api_->stream_create(&stream, kCuStreamNonBlocking, stream_priority_),
                             "cuStreamCreateWithPriority"));
  return stream;
}

void CudaContext::lose(Status status) {
  EDDY_CHECK(!status.is_ok()) << "a device is lost without a reason";
  std::lock_guard lock(mutex_);
  if (!loss_.is_ok()) return;
  loss_ = std::move(status);
  is_lost_.store(true, std::memory_order_release);
}

Status CudaContext::check(CuResult result, const char* call) {
  if (result == CuResult::kSuccess) [[likely]]
    return Status::ok();
  std::string message = "CUDA device " + std::to_string(facts_.ordinal) + ": " + call +
                        " answered " + answer_text(*api_, result);
  if (result == CuResult::kOutOfMemory) return resource_exhausted(std::move(message));
  if (!is_sticky(result)) return run_failed(std::move(message));
  lose(device_lost(message + "; the device is lost to this process, start a new one"));
  return health();
}

Status CudaContext::check_order(CuResult result, const char* call) {
  Status status = check(result, call);
  if (!status.is_ok() && !is_lost()) {
    lose(device_lost(status.message() + "; without it the order of its streams is lost"));
    return health();
  }
  return status;
}

Status CudaContext::health() const {
  if (!is_lost()) [[likely]]
    return Status::ok();
  std::lock_guard lock(mutex_);
  EDDY_DCHECK(!loss_.is_ok()) << "the device is lost without a reason";
  return loss_;
}

}  // namespace eddy
