// Features of domain ai.onnx.ml: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer,
// Normalizer and Scaler.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/storage.h"
#include "ops/schema/ml/ml.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

// Elements along the last axis.
int64_t features_of(const TensorView& x) { return x.rank == 0 ? 1 : x.dims[x.rank - 1]; }

// The value for feature i of a list with one for all, or one for each.
template <typename T>
T one_or_each(const std::vector<T>& values, int64_t i) {
  return values[values.size() == 1 ? 0 : static_cast<size_t>(i)];
}

template <typename T>
struct Extract {
  static bool run(const KernelArgs& args) {
    const TensorView &x = args.inputs[0], &indices = args.inputs[1];
    const int64_t features = features_of(x), picked = indices.count();
    const int64_t rows = picked == 0 ? 0 : args.outputs[0].count() / picked;
    const int64_t* const index = indices.as<int64_t>();
    for (int64_t j = 0; j < picked; ++j) {
      if (index[j] >= 0 && index[j] < features) continue;
      return args.fail(index_out_of_range(index[j], x.rank - 1, features));
    }
    T* z = args.outputs[0].mutable_as<T>();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < picked; ++j) *z++ = x.as<T>()[row * features + index[j]];
    }
    return true;
  }
};

struct ThresholdState : KernelState {
  double threshold = 0;
};

bool run_binarizer(const KernelArgs& args) {
  const auto& state = static_cast<const ThresholdState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  for (int64_t i = 0; i < x.count(); ++i) {
    const bool is_above = load_number(x, i).to_double() > state.threshold;
    store_number(y, i, Number::of_int(is_above ? 1 : 0));
  }
  return true;
}

Result<BoundKernel> bind_binarizer(const KernelInit& init) {
  auto state = std::make_unique<ThresholdState>();
  state->threshold = init.attributes.get_float("threshold", 0);
  return BoundKernel{.run = run_binarizer, .state = std::move(state)};
}

bool run_vectorizer(const KernelArgs& args) {
  const TensorView& y = args.outputs[0];
  int64_t at = 0;
  for (int64_t row = 0; row < y.dims[0]; ++row) {
    for (uint32_t i = 0; i < args.num_inputs; ++i) {
      const TensorView& x = args.inputs[i];
      const int64_t features = features_of(x);
      for (int64_t k = 0; k < features; ++k) {
        store_number(y, at++, load_number(x, row * features + k));
      }
    }
  }
  return true;
}

Result<BoundKernel> bind_vectorizer(const KernelInit&) {
  return BoundKernel{.run = run_vectorizer, .state = nullptr};
}

struct ImputerState : KernelState {
  Number replaced;
  std::vector<Number> imputed;
};

bool is_same(const Number& a, const Number& b) {
  if (a.kind != Number::Kind::kFloat) return a.signed_value == b.signed_value;
  return a.float_value == b.float_value || (std::isnan(a.float_value) && std::isnan(b.float_value));
}

bool run_imputer(const KernelArgs& args) {
  const auto& state = static_cast<const ImputerState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t features = features_of(x);
  for (int64_t i = 0; i < x.count(); ++i) {
    const Number value = load_number(x, i);
    const bool is_replaced = is_same(value, state.replaced);
    store_number(y, i, is_replaced ? one_or_each(state.imputed, i % features) : value);
  }
  return true;
}

Result<BoundKernel> bind_imputer(const KernelInit& init) {
  auto state = std::make_unique<ImputerState>();
  const ElementType element = init.inputs[0].tensor.element;
  if (kIntTypes.contains(element)) {
    state->replaced = Number::of_int(init.attributes.get_int("replaced_value_int64", 0));
    for (const int64_t value : init.attributes.get_ints("imputed_value_int64s")) {
      if (element == ElementType::kInt32 && value != static_cast<int32_t>(value)) {
        return invalid_argument("imputed_value_int64s holds " + std::to_string(value) +
                                ", which is no int32, as X is");
      }
      state->imputed.push_back(Number::of_int(value));
    }
  } else {
    state->replaced = Number::of_double(init.attributes.get_float("replaced_value_float", 0));
    for (const float value : init.attributes.get_floats("imputed_value_floats")) {
      state->imputed.push_back(Number::of_double(value));
    }
  }
  return BoundKernel{.run = run_imputer, .state = std::move(state)};
}

enum class Norm : uint8_t { kMax, kL1, kL2 };

// What a row is divided by. The standard's formulas are those of values that are not negative; a
// sum is of magnitudes, and a negative value stays one.
double divisor_of(const TensorView& x, int64_t first, int64_t features, Norm norm) {
  double most = -INFINITY, sum = 0, squares = 0;
  for (int64_t i = first; i < first + features; ++i) {
    const double value = load_number(x, i).to_double();
    most = std::max(most, value);
    sum += std::abs(value);
    squares += value * value;
  }
  return norm == Norm::kMax ? most : norm == Norm::kL1 ? sum : std::sqrt(squares);
}

template <Norm norm>
bool run_normalizer(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t features = features_of(x), count = x.count();
  for (int64_t first = 0; first < count; first += features) {
    const double divisor = divisor_of(x, first, features, norm);
    for (int64_t i = first; i < first + features; ++i) {
      const double value = load_number(x, i).to_double();
      store_number(y, i, Number::of_double(divisor == 0 ? value : value / divisor));
    }
  }
  return true;
}

Result<BoundKernel> bind_normalizer(const KernelInit& init) {
  const std::string_view norm = init.attributes.get_string("norm", "MAX");
  return BoundKernel{.run = norm == "L1"   ? run_normalizer<Norm::kL1>
                            : norm == "L2" ? run_normalizer<Norm::kL2>
                                           : run_normalizer<Norm::kMax>,
                     .state = nullptr};
}

struct ScalerState : KernelState {
  std::vector<float> offsets, scales;
};

bool run_scaler(const KernelArgs& args) {
  const auto& state = static_cast<const ScalerState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t features = features_of(x);
  for (int64_t i = 0; i < x.count(); ++i) {
    const double moved =
        load_number(x, i).to_double() - double{one_or_each(state.offsets, i % features)};
    store_number(y, i, Number::of_double(moved * double{one_or_each(state.scales, i % features)}));
  }
  return true;
}

Result<BoundKernel> bind_scaler(const KernelInit& init) {
  auto state = std::make_unique<ScalerState>();
  const auto offsets = init.attributes.get_floats("offset");
  const auto scales = init.attributes.get_floats("scale");
  state->offsets.assign(offsets.begin(), offsets.end());
  state->scales.assign(scales.begin(), scales.end());
  if (offsets.empty()) state->offsets = {0};
  if (scales.empty()) state->scales = {1};
  return BoundKernel{.run = run_scaler, .state = std::move(state)};
}

}  // namespace

void add_ml_feature_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, BindFunction bind) {
    registry.add({.op = op, .bind = std::move(bind), .provider = "reference", .domain = kMlDomain});
  };
  add("ArrayFeatureExtractor", [](const KernelInit& init) {
    return bind_storage<Extract>(init, init.inputs[0].tensor.element);
  });
  add("Binarizer", bind_binarizer);
  add("FeatureVectorizer", bind_vectorizer);
  add("Imputer", bind_imputer);
  add("Normalizer", bind_normalizer);
  add("Scaler", bind_scaler);
}

}  // namespace eddy
