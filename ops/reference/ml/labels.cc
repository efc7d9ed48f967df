// LabelEncoder, CategoryMapper and OneHotEncoder of domain ai.onnx.ml.
#include "ops/schema/ml/labels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"
#include "ops/schema/ml/ml.h"

namespace eddy {
namespace {

// How floats are looked up: bit by bit in version 2; in version 4 as numbers, and any NaN as one.
enum class FloatKeys : uint8_t { kBits, kNumbers };

// Elements as keys of a map: text as it is, integers as they are, floats as bits.
void key_at(const TensorView& view, int64_t i, FloatKeys, std::string& key) {
  key = view.as<std::string>()[i];
}
void key_at(const TensorView& view, int64_t i, FloatKeys keys, int64_t& key) {
  const Number number = load_number(view, i);
  if (number.kind != Number::Kind::kFloat) {
    key = number.to_integer<int64_t>();
    return;
  }
  double value = number.float_value;
  if (keys == FloatKeys::kBits && view.element == ElementType::kFloat) {
    key = std::bit_cast<int32_t>(view.as<float>()[i]);
    return;
  }
  if (keys == FloatKeys::kNumbers && std::isnan(value)) value = std::nan("");
  if (keys == FloatKeys::kNumbers && value == 0) value = 0;  // -0 too
  key = std::bit_cast<int64_t>(value);
}

void value_at(const TensorView& view, int64_t i, std::string& value) {
  value = view.as<std::string>()[i];
}
void value_at(const TensorView& view, int64_t i, Number& value) { value = load_number(view, i); }

void store(const TensorView& y, int64_t i, const std::string& value) {
  y.mutable_as<std::string>()[i] = value;
}
void store(const TensorView& y, int64_t i, const Number& value) { store_number(y, i, value); }

template <typename Key, typename Value>
struct MapState : KernelState {
  FloatKeys float_keys = FloatKeys::kBits;
  std::map<Key, Value> map;
  Value unknown{};
};

template <typename Key, typename Value>
bool run_map(const KernelArgs& args) {
  const auto& state = static_cast<const MapState<Key, Value>&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  Key key{};
  for (int64_t i = 0; i < x.count(); ++i) {
    key_at(x, i, state.float_keys, key);
    const auto found = state.map.find(key);
    store(y, i, found == state.map.end() ? state.unknown : found->second);
  }
  return true;
}

template <typename Key, typename Value>
BoundKernel kernel_of(std::unique_ptr<MapState<Key, Value>> state) {
  return BoundKernel{.run = run_map<Key, Value>, .state = std::move(state)};
}

// Where no element of the values' type is given for unknown keys.
void default_of(const Attributes& attributes, ElementType, std::string& value) {
  value = attributes.get_string("default_string", "_Unused");
}
void default_of(const Attributes& attributes, ElementType element, Number& value) {
  value = element == ElementType::kFloat || element == ElementType::kDouble
              ? Number::of_double(attributes.get_float("default_float", -0.0f))
              : Number::of_int(attributes.get_int("default_int64", -1));
}

template <typename Key, typename Value>
Result<BoundKernel> bind_encoder(const KernelInit& init, const LabelList& keys,
                                 const LabelList& values) {
  auto state = std::make_unique<MapState<Key, Value>>();
  const bool last_wins = init.op.since_version >= 4;
  state->float_keys = last_wins ? FloatKeys::kNumbers : FloatKeys::kBits;
  for (int64_t i = 0; i < keys.size; ++i) {
    Key key{};
    Value value{};
    key_at(keys.view(), i, state->float_keys, key);
    value_at(values.view(), i, value);
    if (last_wins) {
      state->map.insert_or_assign(std::move(key), std::move(value));
    } else {
      state->map.emplace(std::move(key), std::move(value));
    }
  }
  const Constant* unknown = nullptr;
  EDDY_RETURN_IF_ERROR(read_default_tensor(init.attributes, values, unknown));
  if (unknown != nullptr) {
    value_at(unknown->view(), 0, state->unknown);
  } else {
    default_of(init.attributes, values.element, state->unknown);
  }
  return kernel_of(std::move(state));
}

Result<BoundKernel> bind_label_encoder(const KernelInit& init) {
  LabelList keys, values;
  EDDY_RETURN_IF_ERROR(read_label_list(init.attributes, "keys", keys));
  EDDY_RETURN_IF_ERROR(read_label_list(init.attributes, "values", values));
  const bool from_text = keys.element == ElementType::kString;
  if (values.element == ElementType::kString) {
    return from_text ? bind_encoder<std::string, std::string>(init, keys, values)
                     : bind_encoder<int64_t, std::string>(init, keys, values);
  }
  return from_text ? bind_encoder<std::string, Number>(init, keys, values)
                   : bind_encoder<int64_t, Number>(init, keys, values);
}

// Text `texts[i]` is number numbers[i], or i where there are none; the last of equal keys counts.
Result<BoundKernel> bind_pairs(const KernelInit& init, std::span<const std::string> texts,
                               std::span<const int64_t> numbers) {
  const auto number_of = [&](size_t i) {
    return numbers.empty() ? static_cast<int64_t>(i) : numbers[i];
  };
  if (init.inputs[0].tensor.element == ElementType::kString) {
    auto state = std::make_unique<MapState<std::string, Number>>();
    for (size_t i = 0; i < texts.size(); ++i) {
      state->map.insert_or_assign(texts[i], Number::of_int(number_of(i)));
    }
    default_of(init.attributes, ElementType::kInt64, state->unknown);
    return kernel_of(std::move(state));
  }
  auto state = std::make_unique<MapState<int64_t, std::string>>();
  for (size_t i = 0; i < texts.size(); ++i) state->map.insert_or_assign(number_of(i), texts[i]);
  default_of(init.attributes, ElementType::kString, state->unknown);
  return kernel_of(std::move(state));
}

struct OneHotState : KernelState {
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;
  bool takes_unknown = true;
};

bool run_one_hot(const KernelArgs& args) {
  const auto& state = static_cast<const OneHotState&>(*args.state);
  const TensorView& x = args.inputs[0];
  auto* y = args.outputs[0].mutable_as<float>();
  const bool is_text = x.element == ElementType::kString;
  const size_t classes = is_text ? state.texts.size() : state.numbers.size();
  std::fill_n(y, x.count() * static_cast<int64_t>(classes), 0.0f);
  for (int64_t i = 0; i < x.count(); ++i, y += classes) {
    size_t k = classes;  // of a category that is listed twice, the last place counts
    while (k-- > 0) {
      const bool is_it = is_text ? x.as<std::string>()[i] == state.texts[k]
                                 : load_number(x, i).to_integer<int64_t>() == state.numbers[k];
      if (is_it) break;
    }
    const bool is_known = k < classes;
    if (is_known) y[k] = 1;
    if (is_known || state.takes_unknown) continue;
    return args.fail(run_failed("element " + std::to_string(i) +
                                " of X is none of the categories, and the attribute zeros is 0"));
  }
  return true;
}

Result<BoundKernel> bind_one_hot(const KernelInit& init) {
  auto state = std::make_unique<OneHotState>();
  const auto texts = init.attributes.get_strings("cats_strings");
  const auto numbers = init.attributes.get_ints("cats_int64s");
  state->texts.assign(texts.begin(), texts.end());
  state->numbers.assign(numbers.begin(), numbers.end());
  state->takes_unknown = init.attributes.get_int("zeros", 1) != 0;
  return BoundKernel{.run = run_one_hot, .state = std::move(state)};
}

}  // namespace

void add_ml_label_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, int since_version, BindFunction bind) {
    registry.add({.op = op,
                  .since_version = since_version,
                  .bind = std::move(bind),
                  .provider = "reference",
                  .domain = kMlDomain});
  };
  add("LabelEncoder", 1, [](const KernelInit& init) {
    return bind_pairs(init, init.attributes.get_strings("classes_strings"), {});
  });
  add("LabelEncoder", 2, bind_label_encoder);
  add("CategoryMapper", 1, [](const KernelInit& init) {
    return bind_pairs(init, init.attributes.get_strings("cats_strings"),
                      init.attributes.get_ints("cats_int64s"));
  });
  add("OneHotEncoder", 1, bind_one_hot);
}

}  // namespace eddy
