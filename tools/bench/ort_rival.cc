#include "tools/bench/ort_rival.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "tools/command/cache_folder.h"

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

// The struct that OrtGetApiBase() returns.
struct ApiBase {
  void* const* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

}  // namespace

Result<std::unique_ptr<OrtLibrary>> OrtLibrary::open(const std::string& path) {
  std::unique_ptr<OrtLibrary> library(new OrtLibrary);
  const std::string cached = cache_folder() + "/onnxruntime/libonnxruntime.so.1";
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

OrtValue& OrtValue::operator=(OrtValue&& other) noexcept {
  if (this == &other) return *this;
  reset();
  library_ = other.library_;
  value_ = std::exchange(other.value_, nullptr);
  return *this;
}

void OrtValue::reset() {
  if (value_ != nullptr) library_->at<Release>(kReleaseValue)(std::exchange(value_, nullptr));
}

Result<TensorView> OrtValue::view(Dims& dims) const {
  using GetInfo = void* (*)(const void*, void**);
  using GetElement = void* (*)(const void*, int*);
  using GetRank = void* (*)(const void*, size_t*);
  using GetDims = void* (*)(const void*, int64_t*, size_t);
  using GetData = void* (*)(void*, void**);
  EDDY_CHECK(library_ != nullptr && value_ != nullptr) << "a view of no value";
  const OrtLibrary& library = *library_;
  void* info = nullptr;
  EDDY_RETURN_IF_ERROR(library.check(library.at<GetInfo>(kGetTensorTypeAndShape)(value_, &info)));
  int element = 0;
  size_t rank = 0;
  int64_t sizes[kMaxRank] = {};
  Status status = library.check(library.at<GetElement>(kGetTensorElementType)(info, &element));
  if (status.is_ok()) {
    status = library.check(library.at<GetRank>(kGetDimensionsCount)(info, &rank));
  }
  if (status.is_ok() && rank <= kMaxRank) {
    status = library.check(library.at<GetDims>(kGetDimensions)(info, sizes, rank));
  }
  library.at<Release>(kReleaseTensorTypeAndShapeInfo)(info);
  EDDY_RETURN_IF_ERROR(status);
  if (rank > kMaxRank || element == static_cast<int>(ElementType::kString)) {
    return unsupported("an output of ONNX Runtime that the benchmark cannot compare");
  }
  dims = Dims(std::span<const int64_t>(sizes, rank));
  TensorView view = {nullptr, dims.data(), static_cast<int32_t>(rank),
                     static_cast<ElementType>(element)};
  EDDY_RETURN_IF_ERROR(
      library.check(library.at<GetData>(kGetTensorMutableData)(value_, &view.data)));
  return view;
}

Result<std::unique_ptr<OrtSession>> OrtSession::load(const OrtLibrary& library,
                                                     const std::string& path, int num_threads) {
  std::unique_ptr<OrtSession> session(new OrtSession(library));
  EDDY_RETURN_IF_ERROR(session->create(path, num_threads));
  using CreateMemoryInfo = void* (*)(int, int, void**);
  constexpr int kArenaAllocator = 1;
  constexpr int kDefaultMemory = 0;
  EDDY_RETURN_IF_ERROR(library.check(library.at<CreateMemoryInfo>(kCreateCpuMemoryInfo)(
      kArenaAllocator, kDefaultMemory, &session->memory_info_)));
  return session;
}

Status OrtSession::create(const std::string& path, int num_threads) {
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

OrtSession::~OrtSession() {
  if (memory_info_ != nullptr) library_.at<Release>(kReleaseMemoryInfo)(memory_info_);
  if (session_ != nullptr) library_.at<Release>(kReleaseSession)(session_);
}

// Element types have ONNX's numbers on both sides.
Result<OrtValue> OrtSession::tensor(const TensorView& view) const {
  using CreateTensor = void* (*)(const void*, void*, size_t, const int64_t*, size_t, int, void**);
  void* value = nullptr;
  EDDY_RETURN_IF_ERROR(library_.check(library_.at<CreateTensor>(kCreateTensorWithData)(
      memory_info_, view.data, view.size_bytes(), view.dims, static_cast<size_t>(view.rank),
      static_cast<int>(view.element), &value)));
  return OrtValue(library_, value);
}

Status OrtSession::run(std::span<const char* const> input_names,
                       std::span<const OrtValue* const> inputs,
                       std::span<const char* const> output_names,
                       std::span<OrtValue> outputs) const {
  using Run = void* (*)(void*, const void*, const char* const*, const void* const*, size_t,
                        const char* const*, size_t, void**);
  EDDY_CHECK(input_names.size() == inputs.size() && output_names.size() == outputs.size())
      << inputs.size() << " inputs and " << outputs.size() << " outputs";
  std::vector<void*> raw(inputs.size() + outputs.size(), nullptr);
  std::ranges::transform(inputs, raw.begin(), &OrtValue::get);
  void** const raw_outputs = raw.data() + inputs.size();
  for (OrtValue& output : outputs) output = OrtValue();
  Status status = library_.check(
      library_.at<Run>(kRun)(session_, nullptr, input_names.data(), raw.data(), inputs.size(),
                             output_names.data(), output_names.size(), raw_outputs));
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = OrtValue(library_, raw_outputs[i]);
  return status;
}

struct OrtModel::Feed {
  std::unique_ptr<OrtSession> session;
  std::vector<std::string> names;  // of inputs, then of outputs
  std::vector<const char*> input_names, output_names;
  std::vector<OrtValue> inputs;
  std::vector<const OrtValue*> input_pointers;
};

OrtModel::OrtModel(std::shared_ptr<const Feed> feed)
    : feed_(std::move(feed)), outputs_(feed_->output_names.size()) {}

Result<std::unique_ptr<OrtModel>> OrtModel::load(
    const OrtLibrary& library, const std::string& path, int num_threads,
    const std::vector<std::pair<std::string, const HostValue*>>& inputs,
    const std::vector<std::string>& outputs) {
  const auto feed = std::make_shared<Feed>();
  EDDY_ASSIGN_OR_RETURN(feed->session, OrtSession::load(library, path, num_threads));
  for (const auto& [name, value] : inputs) {
    EDDY_ASSIGN_OR_RETURN(feed->inputs.emplace_back(), feed->session->tensor(value->view()));
    feed->names.push_back(name);
  }
  feed->names.insert(feed->names.end(), outputs.begin(), outputs.end());
  for (size_t i = 0; i < feed->names.size(); ++i) {
    const bool is_input = i < inputs.size();
    (is_input ? feed->input_names : feed->output_names).push_back(feed->names[i].c_str());
    if (is_input) feed->input_pointers.push_back(&feed->inputs[i]);
  }
  return std::unique_ptr<OrtModel>(new OrtModel(feed));
}

std::unique_ptr<OrtModel> OrtModel::share() const {
  return std::unique_ptr<OrtModel>(new OrtModel(feed_));
}

Status OrtModel::run() {
  return feed_->session->run(feed_->input_names, feed_->input_pointers, feed_->output_names,
                             outputs_);
}

Result<std::vector<HostValue>> OrtModel::outputs() const {
  std::vector<HostValue> values;
  for (const OrtValue& output : outputs_) {
    Dims dims;
    EDDY_ASSIGN_OR_RETURN(const TensorView view, output.view(dims));
    values.push_back(HostValue::copy_of(view));
  }
  return values;
}

}  // namespace eddy
