// com.microsoft.MatMulNBits with constant weights, which stay packed; anything else takes the plain
// loops. Where g_idx scatters a block's rows, they are brought together once, and A's columns in
// each call. A tile of the call is some panels of columns.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/half.h"
#include "ops/cpu/bits_matrix.h"
#include "ops/cpu/families.h"
#include "ops/cpu/tiles.h"

namespace eddy {
namespace {

using cpu::BitsMatrix;
using cpu::Tiles;

struct BitsState : KernelState {
  std::shared_ptr<const BitsMatrix> matrix;
  // Which column of A stands at each row of the matrix; -1: none. Empty: the same.
  std::vector<int32_t> order;
  int64_t k = 0;  // columns of A
};

const BitsState& state_of(const KernelArgs& args) {
  return static_cast<const BitsState&>(*args.state);
}

const BitsMatrix& matrix_of(const KernelArgs& args) { return *state_of(args).matrix; }

template <typename T>
float widen(T value) {
  return static_cast<float>(value);
}

// Room for floats of the rows of A, the bias and a panel of C, where they are halves.
struct WideRoom {
  int64_t a = 0, bias = 0, c = 0;

  static WideRoom of(const BitsMatrix& matrix, int64_t rows) {
    const auto aligned = [](int64_t count) { return (count + 15) / 16 * 16; };
    return {aligned(rows * matrix.depth()), aligned(matrix.columns()),
            aligned(rows * matrix.panel_width())};
  }
  size_t bytes() const { return static_cast<size_t>(a + bias + c) * sizeof(float); }
};

int64_t rows_of(const KernelArgs& args) {
  return args.outputs[0].count() / matrix_of(args).columns();
}

bool out_of_memory(const KernelArgs& args) {
  return args.fail(resource_exhausted("no memory for a block of MatMulNBits' weights"));
}

// A's rows as the matrix has them, in floats.
template <typename T>
void arrange(const BitsState& state, int64_t rows, const T* a, float* to) {
  if (state.order.empty()) {
    std::transform(a, a + rows * state.k, to, widen<T>);
    return;
  }
  for (int64_t i = 0; i < rows; ++i, a += state.k) {
    for (const int32_t column : state.order) *to++ = column < 0 ? 0.0f : widen(a[column]);
  }
}

bool run_floats(const KernelArgs& args, int64_t first, int64_t end) {
  const BitsState& state = state_of(args);
  const BitsMatrix& b = *state.matrix;
  const int64_t rows = rows_of(args);
  if (rows == 0) return true;
  const int64_t arranged = state.order.empty() ? 0 : WideRoom::of(b, rows).a;
  auto* const room = static_cast<float*>(
      args.scratch->reserve(b.scratch_bytes(rows) + static_cast<size_t>(arranged) * sizeof(float)));
  if (room == nullptr) return out_of_memory(args);
  const float* a = args.inputs[0].as<float>();
  if (arranged > 0) {
    arrange(state, rows, a, room);
    a = room;
  }
  const float* bias = args.has_input(5) ? args.inputs[5].as<float>() : nullptr;
  float* c = args.outputs[0].mutable_as<float>();
  for (int64_t panel = first; panel < end; ++panel) {
    b.multiply(rows, a, panel, bias, c + panel * b.panel_width(), b.columns(), room + arranged);
  }
  return true;
}

template <typename T>
bool run_halves(const KernelArgs& args, int64_t first, int64_t end) {
  const BitsMatrix& b = matrix_of(args);
  const int64_t rows = rows_of(args);
  if (rows == 0) return true;
  const WideRoom room = WideRoom::of(b, rows);
  auto* const a = static_cast<float*>(args.scratch->reserve(room.bytes() + b.scratch_bytes(rows)));
  if (a == nullptr) return out_of_memory(args);
  float* const bias = a + room.a;
  float* const c = bias + room.bias;
  arrange(state_of(args), rows, args.inputs[0].as<T>(), a);
  if (args.has_input(5)) {
    const T* from = args.inputs[5].as<T>();
    std::transform(from, from + b.columns(), bias, widen<T>);
  }
  for (int64_t panel = first; panel < end; ++panel) {
    b.multiply(rows, a, panel, args.has_input(5) ? bias : nullptr, c, b.panel_width(), c + room.c);
    T* to = args.outputs[0].mutable_as<T>() + panel * b.panel_width();
    for (int64_t i = 0; i < rows; ++i) {
      const float* from = c + i * b.panel_width();
      std::transform(from, from + b.columns_of(panel), to + i * b.columns(),
                     [](float value) { return T(value); });
    }
  }
  return true;
}

Tiles tiles_of(const KernelArgs& args) {
  const BitsMatrix& b = matrix_of(args);
  return Tiles::of(b.num_panels(), b.depth() * b.panel_width());
}

// Constants as floats; empty where they are not known.
std::vector<float> floats_of(const TensorView& view) {
  std::vector<float> values(view.is_omitted() ? 0 : static_cast<size_t>(view.count()));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (view.element) {
      case ElementType::kFloat:
        values[i] = view.as<float>()[i];
        break;
      case ElementType::kFloat16:
        values[i] = widen(view.as<Float16>()[i]);
        break;
      default:
        values[i] = widen(view.as<Bfloat16>()[i]);
    }
  }
  return values;
}

// Those in floats must be bytes: others would need products of their own.
Status read_zeros(const TensorView& zeros, bool is_given, int64_t blocks,
                  BitsMatrix::Source& source) {
  const auto count = static_cast<size_t>(source.n * blocks);
  source.zeros.assign(count, static_cast<uint8_t>(1 << (source.bits - 1)));
  if (!is_given) return Status::ok();
  if (zeros.element != ElementType::kUint8) {
    const std::vector<float> values = floats_of(zeros);
    for (size_t i = 0; i < count; ++i) {
      source.zeros[i] = static_cast<uint8_t>(std::clamp(values[i], 0.0f, 255.0f));
      if (static_cast<float>(source.zeros[i]) != values[i]) {
        return unsupported("the fast MatMulNBits wants zero points that are bytes");
      }
    }
    return Status::ok();
  }
  const int64_t row_bytes = (blocks * source.bits + 7) / 8;
  for (int64_t j = 0; j < source.n; ++j) {
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t at = i * source.bits;
      const int byte = zeros.as<uint8_t>()[j * row_bytes + at / 8] >> (at % 8);
      source.zeros[static_cast<size_t>(j * blocks + i)] =
          static_cast<uint8_t>(byte & ((1 << source.bits) - 1));
    }
  }
  return Status::ok();
}

// Scales and zero points belong to the packing, so their values are part of its name.
std::string layout_of(const BitsMatrix::Source& source) {
  std::string layout = std::to_string(source.k) + "x" + std::to_string(source.n) + " of " +
                       std::to_string(source.bits) + " in " + std::to_string(source.block) + " ";
  layout.append(reinterpret_cast<const char*>(source.scales.data()),
                source.scales.size() * sizeof(float));
  return layout.append(source.zeros.begin(), source.zeros.end());
}

// g_idx as an order in which rows of a block stand together, filled up to whole blocks; empty where
// they do already. Too many of one block are for the plain loops.
Status read_order(const TensorView& groups, const BitsMatrix::Source& source, int64_t blocks,
                  std::vector<int32_t>& order) {
  const auto* const of_row = groups.as<int32_t>();
  const Status other =
      unsupported("the fast MatMulNBits wants at most a block's rows of each block");
  if (groups.count() < source.k) return other;
  std::vector<int64_t> filled(static_cast<size_t>(blocks), 0);
  order.assign(static_cast<size_t>(blocks * source.block), -1);
  bool is_in_order = true;
  for (int64_t i = 0; i < source.k; ++i) {
    const int64_t block = of_row[i];
    if (block < 0 || block >= blocks) return other;
    int64_t& count = filled[static_cast<size_t>(block)];
    if (count == source.block) return other;
    const int64_t at = block * source.block + count++;
    order[static_cast<size_t>(at)] = static_cast<int32_t>(i);
    is_in_order &= at == i;
  }
  if (is_in_order) order.clear();
  return Status::ok();
}

// B's columns with their weights in that order.
std::vector<uint8_t> arranged(const BitsMatrix::Source& source, int64_t blocks,
                              const std::vector<int32_t>& order) {
  const int64_t column_bytes = blocks * source.block * source.bits / 8;
  std::vector<uint8_t> bytes(static_cast<size_t>(source.n * column_bytes), 0);
  for (int64_t j = 0; j < source.n; ++j) {
    const uint8_t* const from = source.b + j * column_bytes;
    uint8_t* const to = bytes.data() + j * column_bytes;
    for (size_t p = 0; p < order.size(); ++p) {
      if (order[p] < 0) continue;
      const int64_t at = int64_t{order[p]} * source.bits;
      const auto place = static_cast<int64_t>(p) * source.bits;
      const int value = (from[at / 8] >> (at % 8)) & ((1 << source.bits) - 1);
      to[place / 8] = static_cast<uint8_t>(to[place / 8] | value << (place % 8));
    }
  }
  return bytes;
}

void set_run(BoundKernel& kernel, ElementType element, bool is_tiled) {
  const auto set = [&]<cpu::UnitsFunction run>() {
    if (is_tiled) return cpu::set_tiles<tiles_of, run>(kernel);
    kernel.run = cpu::run_all_units<tiles_of, run>;
  };
  if (element == ElementType::kFloat) return set.operator()<run_floats>();
  if (element == ElementType::kFloat16) return set.operator()<run_halves<Float16>>();
  set.operator()<run_halves<Bfloat16>>();
}

Result<BoundKernel> bind(const KernelInit& init) {
  const TensorView &b = init.constants[1], &scales = init.constants[2];
  const auto has = [&](size_t i) {
    return init.inputs.size() > i && init.inputs[i].tensor.element != ElementType::kUndefined;
  };
  const bool has_zeros = has(3), has_groups = has(4);
  if (b.is_omitted() || scales.is_omitted() || (has_zeros && init.constants[3].is_omitted()) ||
      (has_groups && init.constants[4].is_omitted())) {
    return unsupported("the fast MatMulNBits wants constant weights");
  }
  BitsMatrix::Source source;
  source.b = b.as<uint8_t>();
  source.k = init.attributes.get_int("K", 0);
  source.n = init.attributes.get_int("N", 0);
  source.block = init.attributes.get_int("block_size", 0);
  source.bits = static_cast<int>(init.attributes.get_int("bits", 4));
  source.column_step =
      (source.k + source.block - 1) / source.block * source.block * source.bits / 8;
  source.scales = floats_of(scales);
  const int64_t blocks = (source.k + source.block - 1) / source.block;
  EDDY_CHECK(static_cast<int64_t>(source.scales.size()) == source.n * blocks)
      << source.scales.size() << " scales of " << source.n * blocks;
  EDDY_RETURN_IF_ERROR(
      read_zeros(has_zeros ? init.constants[3] : TensorView(), has_zeros, blocks, source));
  auto state = std::make_unique<BitsState>();
  state->k = source.k;
  if (has_groups) {
    EDDY_RETURN_IF_ERROR(read_order(init.constants[4], source, blocks, state->order));
  }
  if (state->order.empty()) {
    state->matrix = init.pack<BitsMatrix>(b.data, layout_of(source), [&] {
      return std::make_shared<const BitsMatrix>(source, cpu::tile_kernels(), &init);
    });
  } else {
    const std::vector<uint8_t> bytes = arranged(source, blocks, state->order);
    source.b = bytes.data();
    source.k = blocks * source.block;
    state->matrix = std::make_shared<const BitsMatrix>(source, cpu::tile_kernels());
  }
  BoundKernel kernel;
  const TensorType& a = init.inputs[0].tensor;
  const int64_t rows = a.is_static() ? a.dims.count().value_or(0) / state->k : 0;
  if (rows > 0) {
    kernel.scratch_bytes = state->matrix->scratch_bytes(rows);
    if (a.element != ElementType::kFloat || !state->order.empty()) {
      kernel.scratch_bytes += WideRoom::of(*state->matrix, rows).bytes();
    }
  }
  set_run(kernel, a.element, state->matrix->num_panels() > 1);
  kernel.state = std::move(state);
  kernel.unread_constants = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4;
  return kernel;
}

}  // namespace

void add_matmul_bits_cpu(KernelRegistry& registry) {
  registry.add({.op = "MatMulNBits",
                .bind = bind,
                .provider = "tile",
                .domain = "com.microsoft",
                .has_tiles = true});
}

}  // namespace eddy
