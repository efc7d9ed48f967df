// LRN for float: some positions of an image at a time, so that the channels of a window stay in the
// cache; one channel after the other, in vector loops over the positions.
#include <algorithm>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/tiles.h"

namespace eddy {
namespace {

using namespace cpu;

constexpr int64_t kChunk = 256;                   // positions
constexpr int64_t kTileWork = kTileElements / 4;  // elements: each is read many times
constexpr size_t kFloat = static_cast<size_t>(LoopType::kFloat);

// The channels whose squares LRN sums for channel c: `size` in all, of which the greater half is
// behind c.
class ChannelWindow {
 public:
  explicit ChannelWindow(int64_t size = 1) : before_((size - 1) / 2), after_(size / 2) {
    EDDY_DCHECK(size > 0) << "a window of " << size << " channels";
  }
  int64_t first(int64_t c) const { return c > before_ ? c - before_ : 0; }
  int64_t end(int64_t c, int64_t channels) const {
    return after_ < channels - c ? c + after_ + 1 : channels;
  }

 private:
  int64_t before_, after_;
};

struct LrnState : KernelState {
  ChannelWindow window;
  float factor = 0, bias = 1, beta = 0.75f;
  ReduceLoops squares;
  BinaryLoop multiply = nullptr, divide = nullptr, power = nullptr;
  UnaryLoop root = nullptr;
};

// [images, channels, plane], each image in bands of whole chunks.
struct Bands {
  int64_t images, channels, plane = 1, band, bands_each;

  explicit Bands(const TensorView& x) : images(x.dims[0]), channels(x.dims[1]) {
    EDDY_DCHECK(x.rank >= 2) << "no channels in a rank of " << x.rank;
    for (int i = 2; i < x.rank; ++i) plane *= x.dims[i];
    const int64_t wanted = kTileWork / std::max<int64_t>(channels, 1);
    band = std::max<int64_t>((wanted + kChunk - 1) / kChunk, 1) * kChunk;
    bands_each = (plane + band - 1) / band;
  }
};

// values = values to the power of beta, element by element; `spare` has as much room.
void raise(const LrnState& s, float* values, float* spare, int64_t count) {
  const float no_parameters[2] = {};
  if (s.beta != 0.75f) return s.power(values, &s.beta, values, count);
  s.root(values, values, count, no_parameters);
  s.root(values, spare, count, no_parameters);
  s.multiply(values, spare, values, count);
}

// All channels of at most kChunk positions, of which the first is x[0].
void run_chunk(const LrnState& s, const Bands& b, const float* x, float* y, int64_t count) {
  EDDY_DCHECK(count <= kChunk) << count << " positions at once";
  alignas(64) float totals[kChunk], bases[kChunk];
  for (int64_t c = 0; c < b.channels; ++c) {
    const int64_t first = s.window.first(c), end = s.window.end(c, b.channels);
    for (int64_t i = first; i < end; ++i) {
      (i == first ? s.squares.start_row : s.squares.fold_row)(x + i * b.plane, totals, count);
    }
    tile_kernels().normalize(
        {.count = count, .x = totals, .factor = s.factor, .shift = s.bias, .y = bases});
    raise(s, bases, totals, count);
    s.divide(x + c * b.plane, bases, y + c * b.plane, count);
  }
}

Tiles tiles_of(const KernelArgs& args) {
  const Bands b(args.inputs[0]);
  return Tiles::of(b.images * b.bands_each, b.channels * b.band, kTileWork);
}

bool run_bands(const KernelArgs& args, int64_t first, int64_t end) {
  const auto& s = static_cast<const LrnState&>(*args.state);
  const Bands b(args.inputs[0]);
  EDDY_DCHECK(end <= b.images * b.bands_each) << "bands " << first << " to " << end;
  for (int64_t unit = first; unit < end; ++unit) {
    const int64_t image = unit / b.bands_each * b.channels * b.plane;
    const int64_t begin = unit % b.bands_each * b.band;
    const int64_t last = std::min(begin + b.band, b.plane);
    for (int64_t i = begin; i < last; i += kChunk) {
      run_chunk(s, b, args.inputs[0].as<float>() + image + i,
                args.outputs[0].mutable_as<float>() + image + i, std::min(kChunk, last - i));
    }
  }
  return true;
}

Result<BoundKernel> bind_lrn(const KernelInit& init) {
  if (init.inputs[0].tensor.element != ElementType::kFloat) return no_fast_kernel(init);
  const LoopSet& set = loop_set();
  const auto binary = [&](BinaryOp op) { return set.binary[static_cast<size_t>(op)][kFloat]; };
  auto state = std::make_unique<LrnState>();
  state->window = ChannelWindow(init.attributes.get_int("size", 1));
  state->factor = init.attributes.get_float("alpha", 1e-4f) /
                  static_cast<float>(init.attributes.get_int("size", 1));
  state->bias = init.attributes.get_float("bias", 1.0f);
  state->beta = init.attributes.get_float("beta", 0.75f);
  state->squares = set.reduce[static_cast<size_t>(ReduceOp::kSumSquare)];
  state->multiply = binary(BinaryOp::kMul).both;
  state->divide = binary(BinaryOp::kDiv).both;
  state->power = binary(BinaryOp::kPow).right_scalar;
  state->root = set.unary[static_cast<size_t>(UnaryOp::kSqrt)][kFloat];
  EDDY_CHECK(state->multiply && state->divide && state->power && state->root)
      << "a loop is missing";
  BoundKernel kernel;
  kernel.run = run_all_units<tiles_of, run_bands>;
  if (fills_tiles(init.inputs[0], kTileWork)) set_tiles<tiles_of, run_bands>(kernel);
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_lrn_cpu(KernelRegistry& registry) {
  registry.add({.op = "LRN", .bind = bind_lrn, .provider = "cpu", .has_tiles = true});
}

}  // namespace eddy
