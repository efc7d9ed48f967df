// com.microsoft.MatMulNBits, one weight at a time, in double.
#include <cstdint>
#include <memory>
#include <string>

#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"

namespace eddy {
namespace {

struct BitsState : KernelState {
  int64_t k = 0, n = 0, bits = 0, block = 0;

  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t row_bytes() const { return blocks() * (block * bits / 8); }
  int64_t zero_bytes() const { return (blocks() * bits + 7) / 8; }
};

// Entry `index` of a row of packed values, the first in the lowest bits.
double unpack(const uint8_t* row, int64_t index, int64_t bits) {
  const int64_t at = index * bits;
  return (row[at / 8] >> (at % 8)) & ((1 << bits) - 1);
}

double zero_point(const KernelArgs& args, const BitsState& state, int64_t column, int64_t block) {
  if (!args.has_input(3)) return static_cast<double>(1 << (state.bits - 1));
  const TensorView& zeros = args.inputs[3];
  if (zeros.element != ElementType::kUint8) {
    return load_number(zeros, column * state.blocks() + block).to_double();
  }
  return unpack(zeros.as<uint8_t>() + column * state.zero_bytes(), block, state.bits);
}

// Whose scale and zero point row i has.
int64_t block_of(const KernelArgs& args, const BitsState& state, int64_t i) {
  return args.has_input(4) ? args.inputs[4].as<int32_t>()[i] : i / state.block;
}

double weight(const KernelArgs& args, const BitsState& state, int64_t column, int64_t i) {
  const int64_t block = block_of(args, state, i);
  const double scale = load_number(args.inputs[2], column * state.blocks() + block).to_double();
  const uint8_t* row = args.inputs[1].as<uint8_t>() + column * state.row_bytes();
  return (unpack(row, i, state.bits) - zero_point(args, state, column, block)) * scale;
}

bool run_matmul_bits(const KernelArgs& args) {
  const auto& state = static_cast<const BitsState&>(*args.state);
  const TensorView &a = args.inputs[0], &y = args.outputs[0];
  const int64_t rows = y.count() / state.n;
  if (args.has_input(4) && args.inputs[4].count() < state.k) {
    return args.fail(invalid_argument("g_idx has " + std::to_string(args.inputs[4].count()) +
                                      " elements for " + std::to_string(state.k) + " rows"));
  }
  for (int64_t i = 0; i < state.k; ++i) {
    const int64_t block = block_of(args, state, i);
    if (block >= 0 && block < state.blocks()) continue;
    return args.fail(invalid_argument("g_idx[" + std::to_string(i) + "] is " +
                                      std::to_string(block) + ", and there are " +
                                      std::to_string(state.blocks()) + " blocks"));
  }
  for (int64_t j = 0; j < state.n && rows > 0; ++j) {
    const double start = args.has_input(5) ? load_number(args.inputs[5], j).to_double() : 0;
    for (int64_t r = 0; r < rows; ++r) {
      double sum = start;
      for (int64_t i = 0; i < state.k; ++i) {
        sum += load_number(a, r * state.k + i).to_double() * weight(args, state, j, i);
      }
      store_number(y, r * state.n + j, Number::of_double(sum));
    }
  }
  return true;
}

Result<BoundKernel> bind_matmul_bits(const KernelInit& init) {
  auto state = std::make_unique<BitsState>();
  state->k = init.attributes.get_int("K", 0);
  state->n = init.attributes.get_int("N", 0);
  state->bits = init.attributes.get_int("bits", 4);
  state->block = init.attributes.get_int("block_size", 0);
  return BoundKernel{.run = run_matmul_bits, .state = std::move(state)};
}

}  // namespace

void add_matmul_bits_reference(KernelRegistry& registry) {
  registry.add({.op = "MatMulNBits",
                .bind = bind_matmul_bits,
                .provider = "reference",
                .domain = "com.microsoft"});
}

}  // namespace eddy
