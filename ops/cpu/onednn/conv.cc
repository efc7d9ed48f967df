#include "ops/cpu/onednn/conv.h"

#include <cstring>
#include <dnnl.hpp>
#include <string_view>
#include <utility>

#include "ops/cpu/onednn/thread.h"

namespace eddy::onednn {
namespace {

using dnnl::memory;
using Forward = dnnl::convolution_forward;
using Backward = dnnl::deconvolution_forward;  // oneDNN's name for transposed convolution
constexpr auto kFloat = memory::data_type::f32;

// One engine is enough: it only names the processor.
const dnnl::engine& engine() {
  static const dnnl::engine* const made = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *made;
}

memory::desc any_layout(const memory::dims& dims) {
  return {dims, kFloat, memory::format_tag::any};
}

memory::dims row_major(const memory::dims& dims) {
  memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// Dimensions as oneDNN wants them, and where the elements lie in ONNX's tensors.
struct Layout {
  memory::dims x, w, y, w_strides, strides, dilations, pad_begin, pad_end;

  Layout(const ConvShape& s, bool is_transposed) {
    const int rank = s.grid.rank;
    x = {s.batch, s.channels};
    y = {s.batch, s.filters};
    for (int i = 0; i < rank; ++i) {
      const auto at = static_cast<size_t>(i);
      const WindowAxis& axis = s.grid.axes[at];
      const int64_t wide = s.grid.input[at], narrow = s.grid.output[at];
      x.push_back(is_transposed ? narrow : wide);
      y.push_back(is_transposed ? wide : narrow);
      strides.push_back(axis.stride);
      dilations.push_back(axis.dilation - 1);
      pad_begin.push_back(axis.pad_begin);
      // What oneDNN needs to find its own output size right.
      pad_end.push_back((narrow - 1) * axis.stride + axis.extent() - wide - axis.pad_begin);
    }
    set_weights(s, is_transposed);
  }

  // oneDNN: [group,] filters, channels, taps. ONNX transposed: [channels, filters of a group,
  // taps].
  void set_weights(const ConvShape& s, bool is_transposed) {
    const int64_t f = s.group_filters(), c = s.group_channels();
    w = {s.group, f, c};
    w_strides = {f * c * s.grid.kernel_size,
                 is_transposed ? s.grid.kernel_size : c * s.grid.kernel_size,
                 is_transposed ? f * s.grid.kernel_size : s.grid.kernel_size};
    int64_t stride = s.grid.kernel_size;
    for (int i = 0; i < s.grid.rank; ++i) {
      const int64_t size = s.grid.kernel[static_cast<size_t>(i)];
      stride /= size;
      w.push_back(size);
      w_strides.push_back(stride);
    }
    if (s.group == 1) {
      w.erase(w.begin());
      w_strides.erase(w_strides.begin());
    }
  }
};

size_t aligned(size_t size_bytes) { return (size_bytes + 63) / 64 * 64; }

// A change of layout with its scratch memory; empty where none is needed.
struct Reorder {
  dnnl::reorder primitive;
  memory::desc space;

  Reorder() = default;
  Reorder(const memory::desc& from, const memory::desc& to) {
    if (from == to) return;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, attributes);
    primitive = dnnl::reorder(pd);
    space = pd.scratchpad_desc();
  }
  explicit operator bool() const { return static_cast<bool>(primitive); }
  size_t scratch_bytes(const memory::desc& wanted) const {
    return *this ? aligned(wanted.get_size()) + aligned(space.get_size()) : 0;
  }
  void execute(const dnnl::stream& stream, const memory& from, const memory& to,
               void* scratch) const {
    primitive.execute(stream, {{DNNL_ARG_FROM, from},
                               {DNNL_ARG_TO, to},
                               {DNNL_ARG_SCRATCHPAD, memory(space, engine(), scratch)}});
  }
};

}  // namespace

struct ConvPlan::Rep {
  memory::desc plain_x, plain_w, plain_y, x, w, bias, y, workspace;
  dnnl::primitive primitive;
  Reorder x_reorder, w_reorder, y_reorder;
  memory packed_weights;  // empty where weights are not constant
  bool has_bias = false;
  std::string implementation;

  template <typename Description>
  void set_primitive(const Description& description) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    set_primitive_descriptions(description, attributes);
  }
  void set_primitive_descriptions(const Forward::desc& description,
                                  const dnnl::primitive_attr& attributes) {
    take(Forward::primitive_desc(description, attributes, engine()));
  }
  void set_primitive_descriptions(const Backward::desc& description,
                                  const dnnl::primitive_attr& attributes) {
    take(Backward::primitive_desc(description, attributes, engine()));
  }
  void take(const Forward::primitive_desc& pd) {
    take_layouts(pd);
    primitive = Forward(pd);
  }
  void take(const Backward::primitive_desc& pd) {
    take_layouts(pd);
    primitive = Backward(pd);
  }
  template <typename PrimitiveDescription>
  void take_layouts(const PrimitiveDescription& pd) {
    x = pd.src_desc();
    w = pd.weights_desc();
    y = pd.dst_desc();
    workspace = pd.scratchpad_desc();
    implementation = pd.impl_info_str();
  }

  template <typename Operation>
  void create(const Layout& l, dnnl::algorithm algorithm) {
    const auto kind = dnnl::prop_kind::forward_inference;
    if (has_bias) {
      set_primitive(typename Operation::desc(kind, algorithm, any_layout(l.x), any_layout(l.w),
                                             bias, any_layout(l.y), l.strides, l.dilations,
                                             l.pad_begin, l.pad_end));
    } else {
      set_primitive(typename Operation::desc(kind, algorithm, any_layout(l.x), any_layout(l.w),
                                             any_layout(l.y), l.strides, l.dilations, l.pad_begin,
                                             l.pad_end));
    }
  }

  void create_all(const ConvShape& shape, const ConvOptions& options) {
    const Layout l(shape, options.is_transposed);
    has_bias = options.has_bias;
    bias = {{shape.filters}, kFloat, memory::format_tag::x};
    plain_x = {l.x, kFloat, row_major(l.x)};
    plain_y = {l.y, kFloat, row_major(l.y)};
    plain_w = {l.w, kFloat, l.w_strides};
    if (options.is_transposed)
      create<Backward>(l, dnnl::algorithm::deconvolution_direct);
    else
      create<Forward>(l, dnnl::algorithm::convolution_direct);
    x_reorder = Reorder(plain_x, x);
    y_reorder = Reorder(y, plain_y);
    if (options.constant_weights_or_null) {
      pack(options.constant_weights_or_null);
    } else {
      w_reorder = Reorder(plain_w, w);
    }
  }

  void pack(const float* weights) {
    packed_weights = memory(w, engine());
    memory plain(plain_w, engine(), const_cast<float*>(weights));
    dnnl::stream stream(engine());
    dnnl::reorder(plain, packed_weights).execute(stream, plain, packed_weights);
    stream.wait();
  }

  // Scratch: reordered x, y and weights, then the primitive's own.
  void* carve(std::byte*& scratch, const memory::desc& desc) const {
    void* place = scratch;
    scratch += aligned(desc.get_size());
    return place;
  }

  void run(const float* x_data, const float* w_data, const float* bias_data, float* y_data,
           std::byte* scratch) const {
    dnnl::stream stream(engine());
    const auto reordered = [&](const Reorder& reorder, const float* data, const memory::desc& plain,
                               const memory::desc& wanted) {
      memory from(plain, engine(), const_cast<float*>(data));
      if (!reorder) return from;
      memory to(wanted, engine(), carve(scratch, wanted));
      reorder.execute(stream, from, to, carve(scratch, reorder.space));
      return to;
    };
    memory x_memory = reordered(x_reorder, x_data, plain_x, x);
    memory w_memory = packed_weights ? packed_weights : reordered(w_reorder, w_data, plain_w, w);
    memory plain(plain_y, engine(), y_data);
    memory y_memory = y_reorder ? memory(y, engine(), carve(scratch, y)) : plain;
    memory space(workspace, engine(), carve(scratch, workspace));
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, x_memory},
                                                 {DNNL_ARG_WEIGHTS, w_memory},
                                                 {DNNL_ARG_DST, y_memory},
                                                 {DNNL_ARG_SCRATCHPAD, space}};
    if (has_bias) {
      arguments.insert({DNNL_ARG_BIAS, memory(bias, engine(), const_cast<float*>(bias_data))});
    }
    primitive.execute(stream, arguments);
    if (y_reorder) y_reorder.execute(stream, y_memory, plain, carve(scratch, y_reorder.space));
    stream.wait();
  }
};

ConvPlan::ConvPlan(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
ConvPlan::~ConvPlan() = default;

Result<std::unique_ptr<ConvPlan>> ConvPlan::create(const ConvShape& shape,
                                                   const ConvOptions& options) {
  if (shape.grid.rank > 3) return unsupported("oneDNN convolves at most 3 spatial axes");
  init_thread();
  auto rep = std::make_unique<Rep>();
  try {
    rep->create_all(shape, options);
  } catch (const dnnl::error& error) {
    return unsupported(std::string("oneDNN has no such convolution: ") + error.what());
  }
  if (std::string_view(rep->implementation).starts_with("ref")) {
    return unsupported("oneDNN has only its reference loops for this convolution");
  }
  return std::unique_ptr<ConvPlan>(new ConvPlan(std::move(rep)));
}

size_t ConvPlan::scratch_bytes() const {
  const Rep& r = *rep_;
  return 64 + aligned(r.workspace.get_size()) + r.x_reorder.scratch_bytes(r.x) +
         r.w_reorder.scratch_bytes(r.w) + r.y_reorder.scratch_bytes(r.y);
}

Status ConvPlan::run(const float* x, const float* weights, const float* bias, float* y,
                     void* scratch) const {
  init_thread();
  try {
    rep_->run(x, weights, bias, y, static_cast<std::byte*>(scratch));
  } catch (const dnnl::error& error) {
    return run_failed(std::string("oneDNN could not convolve: ") + error.what());
  }
  return Status::ok();
}

const std::string& ConvPlan::implementation() const { return rep_->implementation; }

}  // namespace eddy::onednn
