#include "tools/command/ort_rival.h"

#include <dlfcn.h>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace eddy {
namespace {

constexpr uint32_t kInterfaceVersion = 17;

// Indices into the table.
enum : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetIntraOpNumThreads = 24,
  kSetInterOpNumThreads = 25,
  kCreateTensorWithData = 49,
  kGetTensorMutableData = 51,
  kGetTensorElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTensorTypeAndShape = 65,
  kCreateCpuMemoryInfo = 69,
  kReleaseEnv = 92,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseTensorTypeAndShapeInfo = 99,
  kReleaseSessionOptions = 100,
};

using Release = void (*)(void*);

// What OrtGetApiBase() returns.
struct ApiBase {
  void* const* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

std::string cached_library() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder =
      cache != nullptr ? cache : (home != nullptr ? std::string(home) : "/tmp") + "/.cache";
  return folder + "/eddy/onnxruntime/libonnxruntime.so.1";
}

}  // namespace

Result<std::unique_ptr<OrtLibrary>> OrtLibrary::open(const std::string& path) {
  std::unique_ptr<OrtLibrary> library(new OrtLibrary);
  const std::string cached = cached_library();
  for (const std::string& candidate : path.empty()
                                          ? std::vector<std::string>{cached, "libonnxruntime.so.1"}
                                          : std::vector<std::string>{path}) {
    library->handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library->handle_ != nullptr) break;
  }
  if (library->handle_ == nullptr) {
    return not_found(path.empty()
                         ? fmt::format("ONNX Runtime is not installed: put libonnxruntime.so.1 of "
                                       "npm's onnxruntime-node@1.30.0 at {}, or name it with --ort",
                                       cached)
                         : fmt::format("--ort {}: {}", path, dlerror()));
  }
  using GetApiBase = const ApiBase* (*)();
  const auto get_api_base = reinterpret_cast<GetApiBase>(dlsym(library->handle_, "OrtGetApiBase"));
  if (get_api_base == nullptr) {
    return invalid_argument(fmt::format("{} is no ONNX Runtime: it has no OrtGetApiBase", path));
  }
  library->version_ = get_api_base()->get_version();
  library->table_ = get_api_base()->get_api(kInterfaceVersion);
  if (library->table_ == nullptr) {
    return unsupported(fmt::format("ONNX Runtime {} does not know interface {}; use 1.17 or newer",
                                   library->version_, kInterfaceVersion));
  }
  using CreateEnv = void* (*)(int, const char*, void**);
  constexpr int kErrorsOnly = 3;
  EDDY_RETURN_IF_ERROR(
      library->check(library->at<CreateEnv>(kCreateEnv)(kErrorsOnly, "eddy", &library->env_)));
  return library;
}

// The library itself stays loaded: its threads may outlive its objects.
OrtLibrary::~OrtLibrary() {
  if (env_ != nullptr) at<Release>(kReleaseEnv)(env_);
}

Status OrtLibrary::check(void* status) const {
  if (status == nullptr) return Status::ok();
  using GetMessage = const char* (*)(const void*);
  Status failure =
      run_failed(std::string("ONNX Runtime: ") + at<GetMessage>(kGetErrorMessage)(status));
  at<Release>(kReleaseStatus)(status);
  return failure;
}

Result<std::unique_ptr<OrtModel>> OrtModel::load(
    const OrtLibrary& library, const std::string& path, int num_threads,
    const std::vector<std::pair<std::string, const HostValue*>>& inputs,
    const std::vector<std::string>& outputs) {
  std::unique_ptr<OrtModel> model(new OrtModel(library));
  EDDY_RETURN_IF_ERROR(model->create_session(path, num_threads));
  using CreateMemoryInfo = void* (*)(int, int, void**);
  constexpr int kArenaAllocator = 1;
  constexpr int kDefaultMemory = 0;
  EDDY_RETURN_IF_ERROR(library.check(library.at<CreateMemoryInfo>(kCreateCpuMemoryInfo)(
      kArenaAllocator, kDefaultMemory, &model->memory_info_)));
  for (const auto& [name, value] : inputs) {
    EDDY_RETURN_IF_ERROR(model->add_input(name, *value));
  }
  model->output_names_ = outputs;
  model->output_values_.assign(outputs.size(), nullptr);
  for (const std::string& name : model->input_names_) {
    model->input_name_pointers_.push_back(name.c_str());
  }
  for (const std::string& name : model->output_names_) {
    model->output_name_pointers_.push_back(name.c_str());
  }
  return model;
}

Status OrtModel::create_session(const std::string& path, int num_threads) {
  void* options = nullptr;
  using CreateOptions = void* (*)(void**);
  using SetThreads = void* (*)(void*, int);
  using CreateSession = void* (*)(void*, const char*, void*, void**);
  EDDY_RETURN_IF_ERROR(library_.check(library_.at<CreateOptions>(kCreateSessionOptions)(&options)));
  Status status =
      library_.check(library_.at<SetThreads>(kSetIntraOpNumThreads)(options, num_threads));
  if (status.is_ok()) {
    status = library_.check(library_.at<SetThreads>(kSetInterOpNumThreads)(options, num_threads));
  }
  if (status.is_ok()) {
    status = library_.check(library_.at<CreateSession>(kCreateSession)(library_.env_, path.c_str(),
                                                                       options, &session_));
  }
  library_.at<Release>(kReleaseSessionOptions)(options);
  return status;
}

// Element types have ONNX's numbers on both sides.
Status OrtModel::add_input(const std::string& name, const HostValue& value) {
  using CreateTensor = void* (*)(const void*, void*, size_t, const int64_t*, size_t, int, void**);
  const TensorView view = value.view();
  void* tensor = nullptr;
  EDDY_RETURN_IF_ERROR(library_.check(library_.at<CreateTensor>(kCreateTensorWithData)(
      memory_info_, view.data, view.size_bytes(), view.dims, static_cast<size_t>(view.rank),
      static_cast<int>(view.element), &tensor)));
  input_names_.push_back(name);
  input_values_.push_back(tensor);
  return Status::ok();
}

OrtModel::~OrtModel() {
  release_outputs();
  for (void* value : input_values_) library_.at<Release>(kReleaseValue)(value);
  if (memory_info_ != nullptr) library_.at<Release>(kReleaseMemoryInfo)(memory_info_);
  if (session_ != nullptr) library_.at<Release>(kReleaseSession)(session_);
}

void OrtModel::release_outputs() {
  const auto release = library_.at<Release>(kReleaseValue);
  for (void*& value : output_values_) {
    if (value != nullptr) release(std::exchange(value, nullptr));
  }
}

Status OrtModel::run() {
  using Run = void* (*)(void*, const void*, const char* const*, const void* const*, size_t,
                        const char* const*, size_t, void**);
  release_outputs();
  return library_.check(library_.at<Run>(kRun)(
      session_, nullptr, input_name_pointers_.data(), input_values_.data(), input_values_.size(),
      output_name_pointers_.data(), output_values_.size(), output_values_.data()));
}

Result<std::vector<HostValue>> OrtModel::outputs() const {
  using GetInfo = void* (*)(const void*, void**);
  using GetElement = void* (*)(const void*, int*);
  using GetRank = void* (*)(const void*, size_t*);
  using GetDims = void* (*)(const void*, int64_t*, size_t);
  std::vector<HostValue> values;
  for (void* output : output_values_) {
    void* info = nullptr;
    EDDY_RETURN_IF_ERROR(
        library_.check(library_.at<GetInfo>(kGetTensorTypeAndShape)(output, &info)));
    int element = 0;
    size_t rank = 0;
    int64_t dims[kMaxRank] = {};
    Status status = library_.check(library_.at<GetElement>(kGetTensorElementType)(info, &element));
    if (status.is_ok()) {
      status = library_.check(library_.at<GetRank>(kGetDimensionsCount)(info, &rank));
    }
    if (status.is_ok() && rank <= kMaxRank) {
      status = library_.check(library_.at<GetDims>(kGetDimensions)(info, dims, rank));
    }
    library_.at<Release>(kReleaseTensorTypeAndShapeInfo)(info);
    EDDY_RETURN_IF_ERROR(status);
    if (rank > kMaxRank || element == static_cast<int>(ElementType::kString)) {
      return unsupported("an output of ONNX Runtime that the benchmark cannot compare");
    }
    TensorView view = {nullptr, dims, static_cast<int32_t>(rank),
                       static_cast<ElementType>(element)};
    using GetData = void* (*)(void*, void**);
    EDDY_RETURN_IF_ERROR(
        library_.check(library_.at<GetData>(kGetTensorMutableData)(output, &view.data)));
    values.push_back(HostValue::copy_of(view));
  }
  return values;
}

}  // namespace eddy
