// LSTM, GRU, RNN for float. Constant weights are packed when the kernel is bound. A batch whose
// sequences have different lengths runs item by item.
#include <algorithm>
#include <array>

#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/recurrent_run.h"
#include "ops/cpu/recurrent_tiles.h"

namespace eddy {
namespace {

using cpu::PackedMatrix;
using cpu::RecurrentRun;
using cpu::RecurrentTiles;
using cpu::RecurrentWeights;

struct PackedDirection {
  std::shared_ptr<const PackedMatrix> w, r, r_candidate;
};

struct RecurrentState : KernelState {
  RecurrentRules rules;
  std::array<PackedDirection, 2> packed;
};

// Rows [first, first + count) of direction d.
RecurrentWeights rows_of(const TensorView& view, int d, int64_t first, int64_t count,
                         const PackedMatrix* packed_or_null) {
  EDDY_DCHECK(view.rank == 3 && d < view.dims[0] && first + count <= view.dims[1])
      << "rows " << first << " to " << first + count << " of direction " << d;
  const int64_t depth = view.dims[2];
  // Packed weights may have released their bytes.
  const auto* data = view.as<float>();
  if (data != nullptr) data += (d * view.dims[1] + first) * depth;
  return {packed_or_null, data, count, depth};
}

// R of a GRU falls into two parts (recurrent_run.h); otherwise the first part is all of it.
int64_t first_part(RecurrentKind kind, const TensorView& r) {
  return kind == RecurrentKind::kGru ? 2 * r.dims[2] : r.dims[1];
}

std::shared_ptr<const PackedMatrix> pack(const KernelInit& init, const RecurrentWeights& weights) {
  return cpu::pack_matrix(init, weights.rows, weights.depth, weights.count, 1, weights.depth);
}

// Scratch of one call: one direction at a time.
struct Memory {
  float *bias, *h, *c, *other, *gates;

  static size_t size_bytes(RecurrentKind kind, int64_t sequence, int64_t batch, int64_t hidden) {
    const int64_t width = num_gates(kind) * hidden;
    const int64_t steps = std::min(RecurrentRun::block_steps(kind, batch, hidden), sequence);
    // A run of one item looks further ahead than a run of the whole batch.
    const int64_t one = std::min(RecurrentRun::block_steps(kind, 1, hidden), sequence);
    const int64_t gates = std::max(steps * batch, one) * width;
    return static_cast<size_t>(width + 3 * batch * hidden + gates + 1) * sizeof(float);
  }

  static bool reserve(const KernelArgs& args, RecurrentKind kind, const RecurrentShape& s,
                      Memory& memory) {
    const int64_t width = num_gates(kind) * s.hidden, state = s.batch * s.hidden;
    auto* floats =
        static_cast<float*>(args.scratch->reserve(size_bytes(kind, s.sequence, s.batch, s.hidden)));
    if (floats == nullptr) return args.fail(resource_exhausted("no memory for the gates"));
    memory = {floats, floats + width, floats + width + state, floats + width + 2 * state,
              floats + width + 3 * state};
    return true;
  }
};

// One direction of the whole batch.
class Direction {
 public:
  Direction(const KernelArgs& args, const RecurrentState& state, const RecurrentShape& shape,
            const Memory& memory, int d)
      : args_(args),
        rules_(state.rules),
        s_(shape),
        memory_(memory),
        d_(d),
        packed_(state.packed[static_cast<size_t>(d)]) {}

  void run() {
    set_bias();
    load(5, memory_.h);
    if (rules_.kind == RecurrentKind::kLstm) load(6, memory_.c);
    if (has_one_length()) {
      if (s_.batch > 0) run_items(0, s_.batch, s_.length(0));
    } else {
      for (int64_t b = 0; b < s_.batch; ++b) run_items(b, 1, s_.length(b));
    }
    save(1, memory_.h);
    if (rules_.kind == RecurrentKind::kLstm) save(2, memory_.c);
  }

 private:
  // Adds up W's and R's biases, except where R's part of gate h must wait for the reset.
  void set_bias() {
    const int64_t width = num_gates(rules_.kind) * s_.hidden;
    const float* from = args_.has_input(3) ? args_.inputs[3].as<float>() + d_ * 2 * width : nullptr;
    const bool waits = cpu::has_candidate_bias(rules_);
    const int64_t added = waits ? 2 * s_.hidden : width;
    for (int64_t j = 0; j < width; ++j) {
      memory_.bias[j] = from ? from[j] + (j < added ? from[width + j] : 0.0f) : 0.0f;
    }
    candidate_bias_ = from && waits ? from + width + 2 * s_.hidden : nullptr;
  }

  void load(uint32_t input, float* state) const {
    for (int64_t b = 0; b < s_.batch; ++b) {
      float* to = state + b * s_.hidden;
      if (args_.has_input(input)) {
        const float* from = args_.inputs[input].as<float>() + state_offset(b);
        std::copy(from, from + s_.hidden, to);
      } else {
        std::fill(to, to + s_.hidden, 0.0f);
      }
    }
  }
  void save(uint32_t output, const float* state) const {
    float* to = output_or_null<float>(args_, output);
    for (int64_t b = 0; to && b < s_.batch; ++b) {
      const float* from = state + b * s_.hidden;
      std::copy(from, from + s_.hidden, to + state_offset(b));
    }
  }
  int64_t state_offset(int64_t b) const { return d_ * s_.state_direction + b * s_.state_batch; }

  bool has_one_length() const {
    for (int64_t b = 1; b < s_.batch; ++b) {
      if (s_.length(b) != s_.length(0)) return false;
    }
    return true;
  }

  void run_items(int64_t first, int64_t count, int64_t length) {
    const TensorView &w = args_.inputs[1], &r = args_.inputs[2];
    EDDY_DCHECK(length >= 0 && length <= s_.sequence && first + count <= s_.batch)
        << "items " << first << " to " << first + count << " of " << length << " steps";
    const int64_t split = first_part(rules_.kind, r);
    float* y = output_or_null<float>(args_, 0);
    if (y) y += first * s_.y_batch + d_ * s_.y_direction;
    const bool has_peephole = rules_.kind == RecurrentKind::kLstm && args_.has_input(7);
    RecurrentRun run{
        .rules = rules_,
        .shape = s_,
        .tiles = cpu::tile_kernels(),
        .direction = d_,
        .batch = count,
        .steps = length,
        .w = rows_of(w, d_, 0, w.dims[1], packed_.w.get()),
        .r = rows_of(r, d_, 0, split, packed_.r.get()),
        .r_candidate = rows_of(r, d_, split, r.dims[1] - split, packed_.r_candidate.get()),
        .x = args_.inputs[0].as<float>() + first * s_.x_batch,
        .bias = memory_.bias,
        .candidate_bias_or_null = candidate_bias_,
        .peephole_or_null =
            has_peephole ? args_.inputs[7].as<float>() + d_ * 3 * s_.hidden : nullptr,
        .y_or_null = y,
        .h = memory_.h + first * s_.hidden,
        .c = memory_.c + first * s_.hidden,
        .other = memory_.other,
        .gates = memory_.gates};
    run.run();
    for (int64_t t = length; y && t < s_.sequence; ++t) {
      for (int64_t b = 0; b < count; ++b) {
        float* row = y + t * s_.y_step + b * s_.y_batch;
        std::fill(row, row + s_.hidden, 0.0f);
      }
    }
  }

  const KernelArgs& args_;
  const RecurrentRules& rules_;
  const RecurrentShape& s_;
  const Memory& memory_;
  int d_;
  const PackedDirection& packed_;
  const float* candidate_bias_ = nullptr;
};

bool run_recurrent(const KernelArgs& args) {
  const auto& state = static_cast<const RecurrentState&>(*args.state);
  RecurrentShape shape;
  Status status = make_recurrent_shape(state.rules, args, shape);
  if (!status.is_ok()) return args.fail(std::move(status));
  Memory memory;
  if (!Memory::reserve(args, state.rules.kind, shape, memory)) return false;
  for (int d = 0; d < state.rules.num_directions; ++d) {
    Direction(args, state, shape, memory, d).run();
  }
  return true;
}

// The steps of a large one in tiles.
std::array<RecurrentTiles::Weights, 2> packed_weights(const RecurrentState& state) {
  std::array<RecurrentTiles::Weights, 2> weights;
  for (size_t d = 0; d < 2; ++d) {
    const PackedDirection& packed = state.packed[d];
    weights[d] = {packed.w.get(), packed.r.get(), packed.r_candidate.get()};
  }
  return weights;
}

// Calls visit(tiles) where the call falls into tiles.
template <typename Visit>
bool visit_tiles(const KernelArgs& args, const Visit& visit) {
  const auto& state = static_cast<const RecurrentState&>(*args.state);
  RecurrentShape shape;
  if (!make_recurrent_shape(state.rules, args, shape).is_ok()) return false;
  const auto weights = packed_weights(state);
  if (!RecurrentTiles::suits(args, state.rules, shape, weights)) return false;
  visit(RecurrentTiles(args, state.rules, shape, weights));
  return true;
}

uint32_t count_tiles(const KernelArgs& args) {
  uint32_t count = 1;
  visit_tiles(args, [&](const RecurrentTiles& tiles) { count = tiles.count(); });
  return count;
}
uint32_t count_tiles_at_once(const KernelArgs& args) {
  uint32_t count = 1;
  visit_tiles(args, [&](const RecurrentTiles& tiles) { count = tiles.num_at_once(); });
  return count;
}
size_t shared_bytes(const KernelArgs& args) {
  size_t size_bytes = 0;
  visit_tiles(args, [&](const RecurrentTiles& tiles) { size_bytes = tiles.shared_bytes(); });
  return size_bytes;
}
bool run_tile(const KernelArgs& args, uint32_t tile) {
  return visit_tiles(args, [&](const RecurrentTiles& tiles) { tiles.run(tile); });
}

template <RecurrentKind kKind>
Result<BoundKernel> bind_recurrent(const KernelInit& init) {
  if (init.inputs[0].tensor.element != ElementType::kFloat) {
    return unsupported("the fast " + init.op.name + " handles float only");
  }
  auto state = std::make_unique<RecurrentState>();
  EDDY_RETURN_IF_ERROR(parse_recurrent(kKind, init.attributes, state->rules));
  const TensorView &w = init.constants[1], &r = init.constants[2];
  for (int d = 0; d < state->rules.num_directions; ++d) {
    PackedDirection& packed = state->packed[static_cast<size_t>(d)];
    if (!w.is_omitted()) packed.w = pack(init, rows_of(w, d, 0, w.dims[1], nullptr));
    if (r.is_omitted()) continue;
    const int64_t split = first_part(kKind, r);
    packed.r = pack(init, rows_of(r, d, 0, split, nullptr));
    packed.r_candidate = pack(init, rows_of(r, d, split, r.dims[1] - split, nullptr));
  }
  BoundKernel kernel;
  kernel.unread_constants = (w.is_omitted() ? 0 : 1 << 1) | (r.is_omitted() ? 0 : 1 << 2);
  const TensorType &x = init.inputs[0].tensor, &r_type = init.inputs[2].tensor;
  if (x.is_static() && r_type.is_static() && x.dims.rank() == 3 && r_type.dims.rank() == 3) {
    const int64_t first = x.dims[0], second = x.dims[1];
    const bool batch_first = state->rules.batch_first;
    kernel.scratch_bytes = Memory::size_bytes(kKind, batch_first ? second : first,
                                              batch_first ? first : second, r_type.dims[2]);
  }
  kernel.run = run_recurrent;
  if (state->packed[0].r != nullptr) {
    kernel.count_tiles = count_tiles;
    kernel.run_tile = run_tile;
    kernel.count_at_once = count_tiles_at_once;
    kernel.shared_bytes = shared_bytes;
  }
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_recurrent_cpu(KernelRegistry& registry) {
  const auto add = [&](const char* op, auto bind) {
    registry.add({.op = op, .bind = bind, .provider = "tile", .has_tiles = true});
  };
  add("LSTM", bind_recurrent<RecurrentKind::kLstm>);
  add("GRU", bind_recurrent<RecurrentKind::kGru>);
  add("RNN", bind_recurrent<RecurrentKind::kRnn>);
}

}  // namespace eddy
