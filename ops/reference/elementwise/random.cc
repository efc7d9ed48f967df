// Bernoulli, Multinomial, RandomNormal, RandomUniform and the Like forms; numbers by key.
//
// The generator of the former is Random (graph/base/random.h), seeded with the bits of the
// attribute `seed` as a float; without it by the node's name, so that nodes differ. Numbers are
// drawn in the order of the elements: a uniform one for each; of normal ones two for a pair, by Box
// and Muller (1958). A node draws the same numbers each time it runs: a kernel gives the same bits
// for the same inputs.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>

#include "graph/base/random.h"
#include "graph/base/text_hash.h"
#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"

namespace eddy {
namespace {

struct RandomState : KernelState {
  uint64_t seed = 0;
  double first = 0, second = 1;  // low and high, or mean and scale
};

void set_number(const TensorView& view, int64_t i, double value) {
  store_number(view, i, Number::of_double(value));
}

bool run_uniform(const KernelArgs& args) {
  const auto& state = static_cast<const RandomState&>(*args.state);
  Random random(state.seed);
  for (int64_t i = 0; i < args.outputs[0].count(); ++i) {
    set_number(args.outputs[0], i, state.first + (state.second - state.first) * random.uniform());
  }
  return true;
}

bool run_normal(const KernelArgs& args) {
  const auto& state = static_cast<const RandomState&>(*args.state);
  Random random(state.seed);
  const int64_t count = args.outputs[0].count();
  for (int64_t i = 0; i < count; i += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    const double angle = 2 * std::numbers::pi * random.uniform();
    set_number(args.outputs[0], i, state.first + state.second * radius * std::cos(angle));
    if (i + 1 == count) break;
    set_number(args.outputs[0], i + 1, state.first + state.second * radius * std::sin(angle));
  }
  return true;
}

// 1 with the element's probability, else 0.
bool run_bernoulli(const KernelArgs& args) {
  Random random(static_cast<const RandomState&>(*args.state).seed);
  for (int64_t i = 0; i < args.outputs[0].count(); ++i) {
    const double probability = load_number(args.inputs[0], i).to_double();
    set_number(args.outputs[0], i, random.uniform() < probability ? 1 : 0);
  }
  return true;
}

// The class at which the sum of weights passes a uniform part of their total.
bool run_multinomial(const KernelArgs& args) {
  Random random(static_cast<const RandomState&>(*args.state).seed);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t classes = x.dims[1], samples = y.dims[1];
  for (int64_t r = 0; samples > 0 && r < y.dims[0]; ++r) {
    const auto logarithm = [&](int64_t c) { return load_number(x, r * classes + c).to_double(); };
    double greatest = -HUGE_VAL, total = 0;
    for (int64_t c = 0; c < classes; ++c) greatest = std::max(greatest, logarithm(c));
    for (int64_t c = 0; c < classes; ++c) total += std::exp(logarithm(c) - greatest);
    if (!(total > 0)) {
      return args.fail(run_failed("the weights of row " + std::to_string(r) +
                                  " have no total: one is NaN or infinite, or there is none"));
    }
    for (int64_t i = 0; i < samples; ++i) {
      double rest = random.uniform() * total;
      int64_t drawn = 0;
      for (int64_t c = 0; c + 1 < classes; ++c) {
        rest -= std::exp(logarithm(c) - greatest);
        if (rest < 0) break;
        drawn = c + 1;
      }
      store_number(y, r * samples + i, Number::of_int(drawn));
    }
  }
  return true;
}

template <KernelFunction run>
Result<BoundKernel> bind_random(const KernelInit& init) {
  auto state = std::make_unique<RandomState>();
  const Attributes& attributes = init.attributes;
  state->seed = attributes.has("seed") ? std::bit_cast<uint32_t>(attributes.get_float("seed", 0))
                                       : text_hash(init.node_name);
  const bool is_normal = run == run_normal;
  state->first = attributes.get_float(is_normal ? "mean" : "low", 0);
  state->second = attributes.get_float(is_normal ? "scale" : "high", 1);
  return BoundKernel{.run = run, .state = std::move(state)};
}

// ---- By key: FoldKey and KeyedUniform of domain eddy ----
//
// Philox4x32-10: random bits as a function of a key and a counter, so that any part of a sequence
// is drawn without what stands before it, by anybody, and again. Keys that are folded and numbers
// that are drawn come from counters of different purposes, so they never meet. Source: Salmon,
// Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), the form that
// Random123 calls philox4x32. Cost: 20 multiplications a block.

using PhiloxBlock = std::array<uint32_t, 4>;

// The third and fourth word of counters.
constexpr uint64_t kDrawing = 0, kFolding = 1;

PhiloxBlock philox(uint64_t key, uint64_t counter, uint64_t purpose) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  PhiloxBlock c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                   static_cast<uint32_t>(purpose), static_cast<uint32_t>(purpose >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// Words 0 and 1, or 2 and 3.
uint64_t word_of(const PhiloxBlock& block, size_t i) {
  return uint64_t{block[2 * i]} | uint64_t{block[2 * i + 1]} << 32;
}

uint64_t fold_key(uint64_t key, uint64_t number) {
  return word_of(philox(key, number, kFolding), 0);
}

bool run_fold_key(const KernelArgs& args) {
  uint64_t key = static_cast<uint64_t>(*args.inputs[0].as<int64_t>());
  for (size_t i = 1; i < args.num_inputs; ++i) {
    key = fold_key(key, static_cast<uint64_t>(*args.inputs[i].as<int64_t>()));
  }
  *args.outputs[0].mutable_as<int64_t>() = static_cast<int64_t>(key);
  return true;
}

// Element i is part i % n of block i / n, whatever the shape.
bool run_keyed_floats(const KernelArgs& args) {
  const auto key = static_cast<uint64_t>(*args.inputs[0].as<int64_t>());
  float* const y = args.outputs[0].mutable_as<float>();
  const int64_t count = args.outputs[0].count();
  for (int64_t i = 0; i < count; i += 4) {
    const PhiloxBlock block = philox(key, static_cast<uint64_t>(i / 4), kDrawing);
    for (int64_t k = 0; k < std::min<int64_t>(4, count - i); ++k) {
      y[i + k] = static_cast<float>(block[static_cast<size_t>(k)] >> 8) * 0x1.0p-24f;
    }
  }
  return true;
}

bool run_keyed_doubles(const KernelArgs& args) {
  const auto key = static_cast<uint64_t>(*args.inputs[0].as<int64_t>());
  double* const y = args.outputs[0].mutable_as<double>();
  const int64_t count = args.outputs[0].count();
  for (int64_t i = 0; i < count; i += 2) {
    const PhiloxBlock block = philox(key, static_cast<uint64_t>(i / 2), kDrawing);
    for (int64_t k = 0; k < std::min<int64_t>(2, count - i); ++k) {
      const uint64_t bits = word_of(block, static_cast<size_t>(k));
      y[i + k] = static_cast<double>(bits >> 11) * 0x1.0p-53;
    }
  }
  return true;
}

Result<BoundKernel> bind_fold_key(const KernelInit&) {
  BoundKernel kernel;
  kernel.run = run_fold_key;
  return kernel;
}

Result<BoundKernel> bind_keyed_uniform(const KernelInit& init) {
  BoundKernel kernel;
  const bool is_double = init.outputs[0].tensor.element == ElementType::kDouble;
  kernel.run = is_double ? run_keyed_doubles : run_keyed_floats;
  return kernel;
}

}  // namespace

void add_random_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, BindFunction bind) {
    registry.add({.op = op, .bind = std::move(bind), .provider = "reference"});
  };
  add("Bernoulli", bind_random<run_bernoulli>);
  add("Multinomial", bind_random<run_multinomial>);
  for (const std::string_view name : {"RandomNormal", "RandomNormalLike"}) {
    add(name, bind_random<run_normal>);
  }
  for (const std::string_view name : {"RandomUniform", "RandomUniformLike"}) {
    add(name, bind_random<run_uniform>);
  }
  registry.add({.op = "FoldKey", .bind = bind_fold_key, .provider = "reference", .domain = "eddy"});
  registry.add({.op = "KeyedUniform",
                .bind = bind_keyed_uniform,
                .provider = "reference",
                .domain = "eddy"});
}

}  // namespace eddy
