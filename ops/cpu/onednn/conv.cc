#include "ops/cpu/onednn/conv.h"

#include <algorithm>
#include <dnnl.hpp>
#include <string_view>
#include <utility>

#include "ops/cpu/onednn/thread.h"
#include "ops/cpu/transpose/transpose.h"

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

memory::dims channels_last(const memory::dims& dims) {
  memory::dims strides(dims.size(), dims[1]);
  for (size_t i = dims.size() - 1; i-- > 2;) strides[i] = strides[i + 1] * dims[i + 1];
  strides[0] = strides[2] * dims[2];
  strides[1] = 1;
  return strides;
}

// A change of layout with its scratch memory; empty where none is needed. Channels first to last
// and back are transposes of our own, which take less time than the library's.
struct Reorder {
  enum class Way : uint8_t { kNone, kLibrary, kToLast, kToFirst };
  Way way = Way::kNone;
  int64_t images = 0, channels = 0, positions = 0;  // of kToLast and kToFirst
  dnnl::reorder primitive;
  memory::desc space;

  Reorder() = default;
  Reorder(const memory::desc& from, const memory::desc& to) {
    if (from == to) return;
    if (set_transpose(from, to)) return;
    way = Way::kLibrary;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, attributes);
    primitive = dnnl::reorder(pd);
    space = pd.scratchpad_desc();
  }
  bool set_transpose(const memory::desc& from, const memory::desc& to) {
    const memory::dims dims = from.dims();
    if (dims.size() < 3) return false;
    const memory::desc first(dims, kFloat, row_major(dims)),
        last(dims, kFloat, channels_last(dims));
    if (from == first && to == last) way = Way::kToLast;
    if (from == last && to == first) way = Way::kToFirst;
    if (way == Way::kNone) return false;
    images = dims[0];
    channels = dims[1];
    positions = 1;
    for (size_t i = 2; i < dims.size(); ++i) positions *= dims[i];
    return true;
  }
  explicit operator bool() const { return way != Way::kNone; }
  size_t scratch_bytes(const memory::desc& wanted) const {
    return *this ? aligned(wanted.get_size()) + aligned(space.get_size()) : 0;
  }
  void execute(const dnnl::stream& stream, const memory& from, const memory& to,
               void* scratch) const {
    if (way != Way::kLibrary) return transpose(from, to);
    primitive.execute(stream, {{DNNL_ARG_FROM, from},
                               {DNNL_ARG_TO, to},
                               {DNNL_ARG_SCRATCHPAD, memory(space, engine(), scratch)}});
  }
  void transpose(const memory& from, const memory& to) const {
    const auto* in = static_cast<const uint32_t*>(from.get_data_handle());
    auto* out = static_cast<uint32_t*>(to.get_data_handle());
    const bool to_last = way == Way::kToLast;
    const int64_t rows = to_last ? positions : channels, columns = to_last ? channels : positions;
    for (int64_t i = 0; i < images; ++i) {
      const int64_t at = i * channels * positions;
      cpu::transpose_words(in + at, rows, out + at, columns, rows, columns);
    }
  }
};

// How many images to convolve at once: all, or a divisor of their number where reordered copies of
// all would leave the second-level cache. Small images are not worth a call each, nor are those
// whose weights are larger than they.
int64_t images_at_once(const ConvShape& s) {
  constexpr int64_t kSmall = 8 << 10, kFitting = 96 << 10;  // floats
  const int64_t image = s.channels * s.grid.input_size + s.filters * s.grid.output_size;
  const int64_t weights = s.filters * s.group_channels() * s.grid.kernel_size;
  if (image < kSmall || image < weights || s.batch * image <= kFitting) return s.batch;
  int64_t count = std::max<int64_t>(kFitting / image, 1);
  while (s.batch % count != 0) --count;
  return count;
}

}  // namespace

struct ConvPlan::Rep {
  memory::desc plain_x, plain_w, plain_y, x, w, bias, y, workspace;
  dnnl::primitive primitive;
  Reorder x_reorder, w_reorder, y_reorder;
  memory packed_weights;  // empty where weights are not constant
  // Everything above is for a block of images; a run takes this many blocks.
  int64_t num_blocks = 1, x_block = 0, y_block = 0;  // the latter in floats
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

  void create_all(const ConvShape& whole, const ConvOptions& options) {
    ConvShape shape = whole;
    shape.batch = images_at_once(whole);
    num_blocks = shape.batch > 0 ? whole.batch / shape.batch : 1;
    const Layout l(shape, options.is_transposed);
    x_block = l.x[0] * row_major(l.x)[0];
    y_block = l.y[0] * row_major(l.y)[0];
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

  // `data` as it is, or a reordered copy in the scratch memory.
  memory reordered(const dnnl::stream& stream, const Reorder& reorder, const float* data,
                   const memory::desc& plain, const memory::desc& wanted,
                   std::byte*& scratch) const {
    memory from(plain, engine(), const_cast<float*>(data));
    if (!reorder) return from;
    memory to(wanted, engine(), carve(scratch, wanted));
    reorder.execute(stream, from, to, carve(scratch, reorder.space));
    return to;
  }

  void run(const float* x_data, const float* w_data, const float* bias_data, float* y_data,
           std::byte* scratch) const {
    dnnl::stream stream(engine());
    const memory w_memory =
        packed_weights ? packed_weights : reordered(stream, w_reorder, w_data, plain_w, w, scratch);
    for (int64_t i = 0; i < num_blocks; ++i) {
      run_block(stream, x_data + i * x_block, w_memory, bias_data, y_data + i * y_block, scratch);
    }
    stream.wait();
  }

  void run_block(const dnnl::stream& stream, const float* x_data, const memory& w_memory,
                 const float* bias_data, float* y_data, std::byte* scratch) const {
    memory x_memory = reordered(stream, x_reorder, x_data, plain_x, x, scratch);
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
  }
};

ConvPlan::ConvPlan(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
ConvPlan::~ConvPlan() = default;

Result<std::unique_ptr<ConvPlan>> ConvPlan::create(const ConvShape& shape,
                                                   const ConvOptions& options) {
  if (shape.grid.rank > 3) return unsupported("oneDNN convolves at most 3 spatial axes");
  const OneThread one_thread;
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
  const OneThread one_thread;
  try {
    rep_->run(x, weights, bias, y, static_cast<std::byte*>(scratch));
  } catch (const dnnl::error& error) {
    return run_failed(std::string("oneDNN could not convolve: ") + error.what());
  }
  return Status::ok();
}

const std::string& ConvPlan::implementation() const { return rep_->implementation; }

}  // namespace eddy::onednn
