#include "ops/cuda/libraries/dnn_convolutions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace eddy {
namespace {

using cuda::ConvParams;
using cuda::WindowParams;

constexpr int kMostAlgorithms = 8;
constexpr size_t kMostMeasured = 3;
// A later answer of the heuristic is taken where it takes less than this part of the time, and so
// many milliseconds less: the library times single calls, with their launches. Of convolutions of 4
// to 7 µs it tells 40 to 70 µs, in another order than that of their kernels (H200).
constexpr float kClearlyFaster = 0.95f;
constexpr float kLaunchesMs = 0.1f;

DnnOrder order_of(const ConvParams& p) {
  return p.is_channels_last != 0 ? DnnOrder::kChannelsLast : DnnOrder::kChannelsFirst;
}

// An algorithm under a math type, as it is kept.
std::string text_of(const DnnAlgorithm& one) {
  return "algorithm " + std::to_string(one.algorithm) + ", math " + std::to_string(one.math);
}

}  // namespace

Result<bool> DnnConvolutions::describe(DnnHandle handle, Plan& plan, ElementType element,
                                       const ConvParams& p, When when) const {
  const WindowParams& w = p.window;
  const int rank = dnn_spatial_rank(w);
  const int64_t channels = p.groups * p.channels, filters = p.groups * p.filters;
  const int64_t ones[cuda::kMaxSpatialAxes] = {1, 1, 1};
  const DnnOrder order = order_of(p);
  const DnnShape x = dnn_shape(p.batch, channels, w.in, rank, order);
  const DnnShape y = dnn_shape(p.batch, filters, w.out, rank, order);
  const DnnShape weights = dnn_shape(filters, p.channels, w.kernel, rank, order);
  if (!is_dnn_window(w) || !x.fits || !y.fits || !weights.fits || !fits_dnn_int(p.groups)) {
    return false;
  }
  EDDY_RETURN_IF_ERROR(describe_tensor(handles_, element, x, plan.x));
  EDDY_RETURN_IF_ERROR(describe_tensor(handles_, element, y, plan.y));
  EDDY_RETURN_IF_ERROR(
      describe_tensor(handles_, element, dnn_shape(1, filters, ones, rank, order), plan.bias));
  EDDY_RETURN_IF_ERROR(describe_filter(plan, element, weights, order));
  EDDY_RETURN_IF_ERROR(describe_convolution(plan, element, p));
  EDDY_RETURN_IF_ERROR(describe_activation(plan, p));
  const int wanted = wanted_math(element);
  EDDY_ASSIGN_OR_RETURN(const std::vector<DnnAlgorithm> listed, list(handle, plan, wanted));
  if (listed.empty()) return false;
  plan.chosen = listed[0];
  if (options_.choices_or_null != nullptr && listed.size() > 1) {
    plan.chosen = choose(handle, plan, listed, choice_key(element, p, wanted), when);
  }
  EDDY_RETURN_IF_ERROR(set_math(plan, plan.chosen.math));
  plan.is_one_call = p.ends_in_relu != 0 || plan.chosen.algorithm == kDnnPrecomputedGemm;
  return true;
}

Result<bool> DnnConvolutions::describe_or_note(DnnHandle handle, Plan& plan, ElementType element,
                                               const ConvParams& p, When when) const {
  Result<bool> has_way = describe(handle, plan, element, p, when);
  if (has_way.is_ok() && !*has_way) {
    note_refusal(p, "cuDNN has no deterministic algorithm for it, within the workspace");
  } else if (has_way.status().code() == StatusCode::kUnsupported) {
    note_refusal(p, has_way.status().message());
  }
  return has_way;
}

void DnnConvolutions::note_refusal(const ConvParams& p, const std::string& why) const {
  const int rank = dnn_spatial_rank(p.window);
  const auto sizes = [&](const int64_t(&of_axis)[cuda::kMaxSpatialAxes]) {
    std::string text;
    for (int i = cuda::kMaxSpatialAxes - rank; i < cuda::kMaxSpatialAxes; ++i) {
      text += (text.empty() ? "" : "x") + std::to_string(of_axis[i]);
    }
    return text;
  };
  handles_.note_refusal("a convolution of " + std::to_string(p.groups * p.channels) +
                        " channels of " + sizes(p.window.in) + " by " +
                        std::to_string(p.groups * p.filters) + " filters of " +
                        sizes(p.window.kernel) + " in " + std::to_string(p.groups) + " groups" +
                        (p.is_channels_last != 0 ? ", channels last," : "") +
                        " is run by our own kernel, which may take far longer: " + why);
}

Status DnnConvolutions::describe_filter(Plan& plan, ElementType element, const DnnShape& weights,
                                        DnnOrder order) const {
  const CudnnApi& api = handles_.api();
  EDDY_RETURN_IF_ERROR(
      plan.w.make(handles_, api.filter_create, api.filter_destroy, "cudnnCreateFilterDescriptor"));
  const int format = order == DnnOrder::kChannelsLast ? kDnnFormatNhwc : kDnnFormatNchw;
  return handles_.check(
      api.filter_set(plan.w.get(), dnn_type(element), format, weights.rank, weights.dims.data()),
      "cudnnSetFilterNdDescriptor");
}

Status DnnConvolutions::describe_convolution(Plan& plan, ElementType element,
                                             const ConvParams& p) const {
  const CudnnApi& api = handles_.api();
  EDDY_RETURN_IF_ERROR(plan.convolution.make(handles_, api.convolution_create,
                                             api.convolution_destroy,
                                             "cudnnCreateConvolutionDescriptor"));
  const DnnConvolution made = plan.convolution.get();
  const int rank = dnn_spatial_rank(p.window);
  const DnnInts pads = dnn_ints(p.window.pad, rank);
  const DnnInts strides = dnn_ints(p.window.stride, rank);
  const DnnInts dilations = dnn_ints(p.window.dilation, rank);
  const bool is_double = element == ElementType::kDouble;
  EDDY_RETURN_IF_ERROR(handles_.check(
      api.convolution_set(made, rank, pads.data(), strides.data(), dilations.data(),
                          kDnnCrossCorrelation, is_double ? DnnType::kDouble : DnnType::kFloat),
      "cudnnSetConvolutionNdDescriptor"));
  EDDY_RETURN_IF_ERROR(handles_.check(api.convolution_groups(made, static_cast<int>(p.groups)),
                                      "cudnnSetConvolutionGroupCount"));
  return set_math(plan, wanted_math(element));
}

Status DnnConvolutions::describe_activation(Plan& plan, const ConvParams& p) const {
  const CudnnApi& api = handles_.api();
  EDDY_RETURN_IF_ERROR(plan.activation.make(handles_, api.activation_create, api.activation_destroy,
                                            "cudnnCreateActivationDescriptor"));
  const int mode = p.ends_in_relu != 0 ? kDnnRelu : kDnnIdentity;
  return handles_.check(api.activation_set(plan.activation.get(), mode, kDnnPropagateNan, 0.0),
                        "cudnnSetActivationDescriptor");
}

// What algorithms are asked for with.
int DnnConvolutions::wanted_math(ElementType element) const {
  if (element == ElementType::kFloat16 || element == ElementType::kBfloat16) return kDnnTensorMath;
  const bool is_exact = element == ElementType::kFloat && !options_.allows_tf32;
  return is_exact ? kDnnFmaMath : kDnnDefaultMath;
}

Status DnnConvolutions::set_math(const Plan& plan, int math) const {
  return handles_.check(handles_.api().convolution_math(plan.convolution.get(), math),
                        "cudnnSetConvolutionMathType");
}

// Deterministic algorithms within the workspace, under a math type that may be taken. Workspace and
// determinism are those under that math type, so they run under no other.
Result<std::vector<DnnAlgorithm>> DnnConvolutions::list(DnnHandle handle, const Plan& plan,
                                                        int wanted_math) const {
  std::array<DnnAlgorithm, kMostAlgorithms> found{};
  int num_found = 0;
  EDDY_RETURN_IF_ERROR(handles_.check(
      handles_.api().choose(handle, plan.x.get(), plan.w.get(), plan.convolution.get(),
                            plan.y.get(), kMostAlgorithms, &num_found, found.data()),
      "cudnnGetConvolutionForwardAlgorithm_v7"));
  std::vector<DnnAlgorithm> listed;
  for (int i = 0; i < num_found && listed.size() < kMostMeasured; ++i) {
    const DnnAlgorithm& one = found[static_cast<size_t>(i)];
    if (one.status != kDnnSuccess || one.determinism != kDnnDeterministic ||
        one.workspace_bytes > options_.max_workspace_bytes) {
      continue;
    }
    const bool is_too_coarse = wanted_math == kDnnFmaMath && one.math != kDnnFmaMath;
    if (!is_too_coarse && one.math != kDnnConvertingMath) listed.push_back(one);
  }
  return listed;
}

std::string DnnConvolutions::choice_key(ElementType element, const ConvParams& p,
                                        int wanted_math) const {
  std::string text = "cuDNN " + std::to_string(handles_.api().version()) + ", convolution, math " +
                     std::to_string(wanted_math) + ", of";
  for (const int64_t number : key_of(element, p)) text += " " + std::to_string(number);
  return text;
}

DnnAlgorithm DnnConvolutions::choose(DnnHandle handle, const Plan& plan,
                                     const std::vector<DnnAlgorithm>& listed,
                                     const std::string& key, When when) const {
  KeptChoices& choices = *options_.choices_or_null;
  std::optional<std::string> kept = choices.find(key);
  if (!kept && when == When::kPreparing) {
    const Result<DnnAlgorithm> fastest = measure(handle, plan, listed);
    if (fastest.is_ok()) kept = choices.keep(key, text_of(*fastest));
  }
  const auto found = std::ranges::find(listed, kept.value_or(""), text_of);
  return found == listed.end() ? listed[0] : *found;
}

// The library runs all of them, in memory of its own, and waits. The first round warms up.
Result<DnnAlgorithm> DnnConvolutions::measure(DnnHandle handle, const Plan& plan,
                                              const std::vector<DnnAlgorithm>& listed) const {
  std::array<DnnAlgorithm, kMostAlgorithms> timed{};
  int num_timed = 0;
  EDDY_RETURN_IF_ERROR(handles_.launcher().alone_in_context([&]() -> Status {
    for (int round = 0; round < 2; ++round) {
      EDDY_RETURN_IF_ERROR(handles_.check(
          handles_.api().measure(handle, plan.x.get(), plan.w.get(), plan.convolution.get(),
                                 plan.y.get(), kMostAlgorithms, &num_timed, timed.data()),
          "cudnnFindConvolutionForwardAlgorithm"));
    }
    return Status::ok();
  }));
  const auto time_of = [&](const DnnAlgorithm& one) {
    for (int i = 0; i < num_timed; ++i) {
      const DnnAlgorithm& time = timed[static_cast<size_t>(i)];
      if (time.status == kDnnSuccess && text_of(time) == text_of(one)) return time.time;
    }
    return std::numeric_limits<float>::infinity();
  };
  const DnnAlgorithm* fastest = &listed[0];
  for (const DnnAlgorithm& one : listed) {
    const float least = time_of(*fastest), time = time_of(one);
    if (time < kClearlyFaster * least && time < least - kLaunchesMs) fastest = &one;
  }
  if (std::isinf(time_of(*fastest))) return unsupported("cuDNN has measured none of its answers");
  return *fastest;
}

Status DnnConvolutions::enqueue(const KernelArgs& args, DnnHandle handle, const Plan& plan,
                                ElementType element, const ConvParams& p) const {
  const size_t bytes = plan.chosen.workspace_bytes;
  void* const workspace = bytes == 0 ? nullptr : args.scratch->reserve(bytes);
  if (bytes > 0 && workspace == nullptr) {
    return resource_exhausted("no device memory for a convolution's workspace of " +
                              std::to_string(bytes) + " bytes");
  }
  if (p.bias != nullptr && plan.is_one_call) {
    Status status = enqueue_as_one(handle, plan, element, p, {workspace, bytes});
    if (status.code() != StatusCode::kUnsupported) return status;
    plan.is_one_call = false;
  }
  return enqueue_apart(handle, plan, element, p, {workspace, bytes});
}

Status DnnConvolutions::enqueue_as_one(DnnHandle handle, const Plan& plan, ElementType element,
                                       const ConvParams& p, Workspace workspace) const {
  const DnnFactors factors = dnn_factors(element);
  const bool adds = p.addend != nullptr;  // else what stands there is not read
  return handles_.check(
      handles_.api().convolve_with_addends(
          handle, factors.one, plan.x.get(), p.in, plan.w.get(), p.weights, plan.convolution.get(),
          plan.chosen.algorithm, workspace.data, workspace.bytes, adds ? factors.one : factors.zero,
          plan.y.get(), adds ? p.addend : p.out, plan.bias.get(), p.bias, plan.activation.get(),
          plan.y.get(), p.out),
      "cudnnConvolutionBiasActivationForward");
}

Status DnnConvolutions::enqueue_apart(DnnHandle handle, const Plan& plan, ElementType element,
                                      const ConvParams& p, Workspace workspace) const {
  const CudnnApi& api = handles_.api();
  const DnnFactors factors = dnn_factors(element);
  EDDY_RETURN_IF_ERROR(
      handles_.check(api.convolve(handle, factors.one, plan.x.get(), p.in, plan.w.get(), p.weights,
                                  plan.convolution.get(), plan.chosen.algorithm, workspace.data,
                                  workspace.bytes, factors.zero, plan.y.get(), p.out),
                     "cudnnConvolutionForward"));
  const auto add = [&](const DnnDescriptor<DnnTensor>& shape, const void* addend) {
    return handles_.check(
        api.add(handle, factors.one, shape.get(), addend, factors.one, plan.y.get(), p.out),
        "cudnnAddTensor");
  };
  if (p.bias != nullptr) EDDY_RETURN_IF_ERROR(add(plan.bias, p.bias));
  if (p.addend != nullptr) EDDY_RETURN_IF_ERROR(add(plan.y, p.addend));
  if (p.ends_in_relu == 0) return Status::ok();
  return handles_.check(api.activate(handle, plan.activation.get(), factors.one, plan.y.get(),
                                     p.out, factors.zero, plan.y.get(), p.out),
                        "cudnnActivationForward");
}

DnnPlans<DnnConvolutions::Plan>::Key DnnConvolutions::key_of(ElementType element,
                                                             const ConvParams& p) {
  std::vector<int64_t> key = {
      static_cast<int64_t>(element), p.batch, p.groups, p.channels, p.filters, p.ends_in_relu};
  add_to_key(key, p.window);
  if (p.is_channels_last != 0) key.push_back(1);
  return key;
}

void DnnConvolutions::prepare(ElementType element, const ConvParams& p) {
  if (p.count == 0 || p.channels == 0) return;
  plans_.prepare(key_of(element, p), [&](DnnHandle handle, Plan& plan) {
    return describe_or_note(handle, plan, element, p, When::kPreparing);
  });
}

Result<bool> DnnConvolutions::run(const KernelArgs& args, ElementType element,
                                  const ConvParams& p) {
  if (p.count == 0 || p.channels == 0) return false;
  return plans_.run(
      args, key_of(element, p),
      [&](DnnHandle handle, Plan& plan) {
        return describe_or_note(handle, plan, element, p, When::kRunning);
      },
      [&](DnnHandle handle, const Plan& plan) {
        Status status = enqueue(args, handle, plan, element, p);
        if (status.code() == StatusCode::kUnsupported) note_refusal(p, status.message());
        return status;
      });
}

}  // namespace eddy
