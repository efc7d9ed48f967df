#include "ops/cuda/dnn_convolutions.h"

#include <array>
#include <atomic>
#include <limits>

namespace eddy {
namespace {

using cuda::ConvParams;
using cuda::WindowParams;

constexpr int kMostAlgorithms = 8;
constexpr int kMaxDims = 2 + cuda::kMaxSpatialAxes;
using IntDims = std::array<int, kMaxDims>;

DnnType dnn_type(ElementType element) {
  switch (element) {
    case ElementType::kDouble:
      return DnnType::kDouble;
    case ElementType::kFloat16:
      return DnnType::kHalf;
    case ElementType::kBfloat16:
      return DnnType::kBfloat16;
    default:
      return DnnType::kFloat;
  }
}

// Planes are taken for images, volumes for volumes.
int spatial_rank(const WindowParams& w) {
  const bool is_flat = w.in[0] == 1 && w.kernel[0] == 1 && w.out[0] == 1;
  return is_flat ? 2 : 3;
}

// The library knows one padding for both ends, and computes sizes from it.
bool has_even_padding(const WindowParams& w) {
  for (int i = 0; i < cuda::kMaxSpatialAxes; ++i) {
    const int64_t room = w.in[i] + 2 * w.pad[i] - (w.kernel[i] - 1) * w.dilation[i] - 1;
    if (room < 0 || room / w.stride[i] + 1 != w.out[i]) return false;
  }
  return true;
}

bool fits_int(int64_t value) { return value > 0 && value <= std::numeric_limits<int>::max(); }

// [first, second, spatial …], row-major.
struct Shape {
  IntDims dims{}, strides{};
  int rank = 0;
  bool fits = true;

  void add(int64_t dim) {
    fits = fits && fits_int(dim);
    dims[static_cast<size_t>(rank++)] = static_cast<int>(dim);
  }
  Shape& finish() {
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const auto at = static_cast<size_t>(i);
      fits = fits && fits_int(stride);
      strides[at] = static_cast<int>(stride);
      stride *= dims[at];
    }
    return *this;
  }
};

Shape shape_of(int64_t first, int64_t second, const int64_t (&spatial)[cuda::kMaxSpatialAxes],
               int rank) {
  Shape shape;
  shape.add(first);
  shape.add(second);
  for (int i = cuda::kMaxSpatialAxes - rank; i < cuda::kMaxSpatialAxes; ++i) shape.add(spatial[i]);
  return shape.finish();
}

}  // namespace

// The descriptors and the algorithm of one shape.
struct DnnConvolutions::Plan {
  explicit Plan(const CudnnApi& table) : api(table) {}
  ~Plan() {
    for (DnnTensor tensor : {x, y, bias}) {
      if (tensor != nullptr) api.tensor_destroy(tensor);
    }
    if (w != nullptr) api.filter_destroy(w);
    if (convolution != nullptr) api.convolution_destroy(convolution);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const CudnnApi& api;
  DnnTensor x = nullptr, y = nullptr, bias = nullptr;
  DnnFilter w = nullptr;
  DnnConvolution convolution = nullptr;
  DnnAlgorithm chosen{};
  std::atomic<bool> is_known{false};  // false: the library has no way, or has refused this one
  bool is_double = false;
};

DnnConvolutions::DnnConvolutions(std::shared_ptr<const CudnnApi> api, CudaLauncher& launcher,
                                 const DnnOptions& options)
    : api_(std::move(api)), launcher_(launcher), options_(options), plans_(options.max_plans) {}

Result<std::unique_ptr<DnnConvolutions>> DnnConvolutions::create(
    std::shared_ptr<const CudnnApi> api, CudaLauncher& launcher, const DnnOptions& options) {
  std::unique_ptr<DnnConvolutions> made(new DnnConvolutions(std::move(api), launcher, options));
  EDDY_RETURN_IF_ERROR(launcher.in_context([&]() -> Status {
    EDDY_RETURN_IF_ERROR(made->handle_of(nullptr).status());
    made->end_stream(nullptr);  // the first stream takes it
    return Status::ok();
  }));
  launcher.on_stream_end(made.get(),
                         [owner = made.get()](NativeStream stream) { owner->end_stream(stream); });
  return made;
}

DnnConvolutions::~DnnConvolutions() {
  launcher_.forget_stream_ends(this);
  plans_.clear();
  const Status status = launcher_.in_context([&] {
    for (const auto& [stream, handle] : handles_) api_->destroy(handle);
    for (DnnHandle handle : free_handles_) api_->destroy(handle);
    return Status::ok();
  });
  static_cast<void>(status);  // of a lost device nothing is left to give back
}

bool DnnConvolutions::has_type(ElementType element) {
  return element == ElementType::kFloat || element == ElementType::kDouble ||
         element == ElementType::kFloat16 || element == ElementType::kBfloat16;
}

Status DnnConvolutions::check(int status, const char* call) const {
  if (status == kDnnSuccess) return Status::ok();
  const char* const text = api_->error_string(status);
  std::string answer =
      std::string(call) + " answered " + (text != nullptr ? text : std::to_string(status));
  return is_dnn_refusal(status) ? unsupported(std::move(answer)) : run_failed(std::move(answer));
}

Result<DnnHandle> DnnConvolutions::handle_of(NativeStream stream) {
  std::lock_guard lock(mutex_);
  const auto known = handles_.find(stream);
  if (known != handles_.end()) return known->second;
  EDDY_ASSIGN_OR_RETURN(const DnnHandle handle, take_handle());
  // Kept only with its stream: the next run would enqueue on another one.
  Status status = check(api_->set_stream(handle, stream), "cudnnSetStream");
  if (!status.is_ok()) {
    api_->destroy(handle);
    return status;
  }
  handles_.emplace(stream, handle);
  return handle;
}

// Under the mutex.
Result<DnnHandle> DnnConvolutions::take_handle() {
  if (!free_handles_.empty()) {
    const DnnHandle handle = free_handles_.back();
    free_handles_.pop_back();
    return handle;
  }
  DnnHandle handle = nullptr;
  EDDY_RETURN_IF_ERROR(check(api_->create(&handle), "cudnnCreate"));
  return handle;
}

// Under the mutex. The library may look at a handle's stream when it gets another one, so none of
// these has one that is gone.
void DnnConvolutions::free_handle(DnnHandle handle) {
  if (api_->set_stream(handle, nullptr) == kDnnSuccess) {
    free_handles_.push_back(handle);
  } else {
    api_->destroy(handle);
  }
}

void DnnConvolutions::end_stream(NativeStream stream) {
  std::lock_guard lock(mutex_);
  const auto known = handles_.find(stream);
  if (known == handles_.end()) return;
  free_handle(known->second);
  handles_.erase(known);
}

size_t DnnConvolutions::num_handles() const {
  std::lock_guard lock(mutex_);
  return handles_.size() + free_handles_.size();
}

Status DnnConvolutions::describe(Plan& plan, ElementType element, const ConvParams& p) const {
  const WindowParams& w = p.window;
  const int rank = spatial_rank(w);
  const int64_t channels = p.groups * p.channels, filters = p.groups * p.filters;
  const int64_t ones[cuda::kMaxSpatialAxes] = {1, 1, 1};
  const Shape x = shape_of(p.batch, channels, w.in, rank);
  const Shape y = shape_of(p.batch, filters, w.out, rank);
  const Shape weights = shape_of(filters, p.channels, w.kernel, rank);
  const Shape bias = shape_of(1, filters, ones, rank);
  plan.is_known = has_even_padding(w) && x.fits && y.fits && weights.fits && fits_int(p.groups);
  if (!plan.is_known) return Status::ok();
  const DnnType type = dnn_type(element);
  plan.is_double = type == DnnType::kDouble;
  const auto tensor = [&](const Shape& shape, DnnTensor& made) {
    EDDY_RETURN_IF_ERROR(check(api_->tensor_create(&made), "cudnnCreateTensorDescriptor"));
    return check(api_->tensor_set(made, type, shape.rank, shape.dims.data(), shape.strides.data()),
                 "cudnnSetTensorNdDescriptor");
  };
  EDDY_RETURN_IF_ERROR(tensor(x, plan.x));
  EDDY_RETURN_IF_ERROR(tensor(y, plan.y));
  EDDY_RETURN_IF_ERROR(tensor(bias, plan.bias));
  EDDY_RETURN_IF_ERROR(check(api_->filter_create(&plan.w), "cudnnCreateFilterDescriptor"));
  EDDY_RETURN_IF_ERROR(
      check(api_->filter_set(plan.w, type, kDnnFormatNchw, weights.rank, weights.dims.data()),
            "cudnnSetFilterNdDescriptor"));
  IntDims pads{}, strides{}, dilations{};
  for (int i = 0; i < rank; ++i) {
    const int from = cuda::kMaxSpatialAxes - rank + i;
    const auto at = static_cast<size_t>(i);
    pads[at] = static_cast<int>(w.pad[from]);
    strides[at] = static_cast<int>(w.stride[from]);
    dilations[at] = static_cast<int>(w.dilation[from]);
  }
  EDDY_RETURN_IF_ERROR(
      check(api_->convolution_create(&plan.convolution), "cudnnCreateConvolutionDescriptor"));
  const DnnType compute = plan.is_double ? DnnType::kDouble : DnnType::kFloat;
  int status = api_->convolution_set(plan.convolution, rank, pads.data(), strides.data(),
                                     dilations.data(), kDnnCrossCorrelation, compute);
  if (status == kDnnSuccess) {
    status = api_->convolution_groups(plan.convolution, static_cast<int>(p.groups));
  }
  if (status == kDnnSuccess) {
    const bool is_exact = element == ElementType::kFloat && !options_.allows_tf32;
    status = api_->convolution_math(plan.convolution, is_exact ? kDnnFmaMath : kDnnDefaultMath);
  }
  return check(status, "cudnnSetConvolutionNdDescriptor");
}

// The first deterministic algorithm within the workspace.
Status DnnConvolutions::choose(DnnHandle handle, Plan& plan) const {
  std::array<DnnAlgorithm, kMostAlgorithms> found{};
  int num_found = 0;
  EDDY_RETURN_IF_ERROR(check(api_->choose(handle, plan.x, plan.w, plan.convolution, plan.y,
                                          kMostAlgorithms, &num_found, found.data()),
                             "cudnnGetConvolutionForwardAlgorithm_v7"));
  plan.is_known = false;
  for (int i = 0; i < num_found && !plan.is_known; ++i) {
    const DnnAlgorithm& one = found[static_cast<size_t>(i)];
    plan.is_known = one.status == kDnnSuccess && one.determinism == kDnnDeterministic &&
                    one.workspace_bytes <= options_.max_workspace_bytes;
    if (plan.is_known) plan.chosen = one;
  }
  return Status::ok();
}

Result<std::shared_ptr<DnnConvolutions::Plan>> DnnConvolutions::find(DnnHandle handle,
                                                                     ElementType element,
                                                                     const ConvParams& p) {
  Key key = {static_cast<int64_t>(element), p.batch, p.groups, p.channels, p.filters};
  const WindowParams& w = p.window;
  for (int i = 0; i < cuda::kMaxSpatialAxes; ++i) {
    key.insert(key.end(), {w.in[i], w.out[i], w.kernel[i], w.stride[i], w.dilation[i], w.pad[i]});
  }
  std::lock_guard lock(mutex_);
  if (std::shared_ptr<Plan> known = plans_.find(key)) return known;
  auto plan = std::make_shared<Plan>(*api_);
  Status status = describe(*plan, element, p);
  if (status.is_ok() && plan->is_known) status = choose(handle, *plan);
  if (status.code() == StatusCode::kUnsupported) {
    plan->is_known = false;
  } else if (!status.is_ok()) {
    return status;
  }
  plans_.add(std::move(key), plan);
  return plan;
}

Status DnnConvolutions::enqueue(const KernelArgs& args, DnnHandle handle, const Plan& plan,
                                const ConvParams& p) const {
  const size_t bytes = plan.chosen.workspace_bytes;
  void* const workspace = bytes == 0 ? nullptr : args.scratch->reserve(bytes);
  if (bytes > 0 && workspace == nullptr) {
    return resource_exhausted("no device memory for a convolution's workspace of " +
                              std::to_string(bytes) + " bytes");
  }
  const float factors[] = {1, 0};
  const double wide[] = {1, 0};
  const auto factor = [&](int i) {
    return plan.is_double ? static_cast<const void*>(wide + i)
                          : static_cast<const void*>(factors + i);
  };
  EDDY_RETURN_IF_ERROR(
      check(api_->convolve(handle, factor(0), plan.x, p.in, plan.w, p.weights, plan.convolution,
                           plan.chosen.algorithm, workspace, bytes, factor(1), plan.y, p.out),
            "cudnnConvolutionForward"));
  if (p.bias == nullptr) return Status::ok();
  return check(api_->add(handle, factor(0), plan.bias, p.bias, factor(0), plan.y, p.out),
               "cudnnAddTensor");
}

Result<bool> DnnConvolutions::run(const KernelArgs& args, ElementType element,
                                  const ConvParams& p) {
  if (p.count == 0 || p.channels == 0) return false;
  bool is_done = false;
  EDDY_RETURN_IF_ERROR(launcher_.in_context([&]() -> Status {
    EDDY_ASSIGN_OR_RETURN(DnnHandle handle, handle_of(args.stream));
    EDDY_ASSIGN_OR_RETURN(const std::shared_ptr<Plan> plan, find(handle, element, p));
    if (!plan->is_known) return Status::ok();
    Status status = enqueue(args, handle, *plan, p);
    is_done = status.code() != StatusCode::kUnsupported;
    if (is_done) return status;
    plan->is_known = false;  // our own kernel from here on, in every run
    return Status::ok();
  }));
  return is_done;
}

}  // namespace eddy
