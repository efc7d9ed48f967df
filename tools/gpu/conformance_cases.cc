#include "tools/gpu/conformance_cases.h"

#include <initializer_list>
#include <string>
#include <utility>

namespace eddy {
namespace {

using Of = ConformanceInput::Of;
using Given = std::initializer_list<std::pair<const char*, AttributeValue>>;

Attributes attributes(Given given) {
  Attributes made;
  for (const auto& [name, value] : given) made.set(name, value);
  return made;
}
std::vector<int64_t> ints(std::initializer_list<int64_t> values) { return values; }

ConformanceInput indices(const Dims& dims, int64_t limit) { return {dims, Of::kIndices, limit}; }
ConformanceInput given(const std::vector<int64_t>& values) {
  return {Dims{static_cast<int64_t>(values.size())}, Of::kGiven, 0, values};
}
const ConformanceInput kOmitted{{}, Of::kOmitted};

void add_movement(std::vector<ConformanceCase>& cases) {
  const auto to = [](ElementType type) { return attributes({{"to", static_cast<int64_t>(type)}}); };
  for (const ElementType type : {ElementType::kFloat, ElementType::kFloat16, ElementType::kInt64}) {
    cases.push_back({"Cast", {{{33, 67}}}, to(type)});
  }
  cases.push_back({"CastLike", {{{33, 67}}, {{3}, Of::kFloat}}});
  cases.push_back({"Concat", {{{5, 3, 7}}, {{5, 4, 7}}}, attributes({{"axis", int64_t{1}}})});
  cases.push_back({"Split", {{{5, 8, 7}}, given({3, 5})}, attributes({{"axis", int64_t{1}}}), 2});
  cases.push_back({"Expand", {{{3, 1}}, given({2, 3, 5})}});
  cases.push_back(
      {"Slice", {{{9, 31}}, given({1, 2}), given({8, 30}), given({0, 1}), given({2, 3})}});
  cases.push_back({"Gather", {{{40, 33}}, indices({7, 5}, 40)}});
  cases.push_back({"GatherElements", {{{40, 33}}, indices({11, 33}, 40)}});
  cases.push_back({"GatherND", {{{5, 7, 33}}, indices({13, 2}, 5)}});
  for (const char* op : {"Scatter", "ScatterElements"}) {
    cases.push_back({op, {{{40, 33}}, indices({1, 33}, 40), {{1, 33}}}});
  }
  cases.push_back({"ScatterND", {{{40, 33}}, indices({1, 1}, 40), {{1, 33}}}});
  cases.push_back({"DepthToSpace", {{{2, 8, 3, 5}}}, attributes({{"blocksize", int64_t{2}}})});
  cases.push_back({"SpaceToDepth", {{{2, 2, 6, 10}}}, attributes({{"blocksize", int64_t{2}}})});
  cases.push_back({"Trilu", {{{3, 17, 19}}}, attributes({{"upper", int64_t{0}}})});
  cases.push_back({"OneHot", {indices({67}, 10), given({10}), {{2}}}});
  cases.push_back({"TopK", {{{33, 300}}, given({5})}, {}, 2});
  cases.push_back({"CumSum", {{{3, 40, 5}}, given({1})}, {}, 1, 2});
  cases.push_back(
      {"CumSum", {{{2, 1000}}, given({1})}, attributes({{"reverse", int64_t{1}}}), 1, 2});
  cases.push_back({"Pad", {{{5, 7}}, given({1, 2, 3, 4})}});
  cases.push_back({"Tile", {{{3, 5}}, given({2, 3})}});
  cases.push_back({"Range", {{{}}, {{}, Of::kElement}, {{}, Of::kDivisor}}});
}

void add_products(std::vector<ConformanceCase>& cases) {
  cases.push_back({"MatMul", {{{3, 33, 67}}, {{67, 65}}}, {}, 1, 32});
  cases.push_back({"Gemm",
                   {{{67, 33}}, {{65, 67}}, {{65}}},
                   attributes({{"transA", int64_t{1}}, {"transB", int64_t{1}}}),
                   1,
                   32});
  cases.push_back({"MatMulInteger", {{{33, 67}, Of::kBytes}, {{67, 65}, Of::kBytes}}});
  for (const int64_t group : {1, 3}) {
    for (const auto& pads : {ints({1, 0, 1, 2}), ints({1, 1, 1, 1})}) {
      cases.push_back({"Conv",
                       {{{2, 6, 13, 11}}, {{9, 6 / group, 3, 3}}, {{9}}},
                       attributes({{"group", group}, {"pads", pads}}),
                       1,
                       32});
    }
  }
  cases.push_back({"ConvTranspose",
                   {{{2, 4, 7, 5}}, {{4, 6, 3, 3}}, {{6}}},
                   attributes({{"strides", ints({2, 2})}}),
                   1,
                   32});
}

void add_windows(std::vector<ConformanceCase>& cases) {
  const auto window = [](Given more) {
    Attributes made = attributes(more);
    made.set("kernel_shape", ints({3, 2}));
    made.set("strides", ints({2, 1}));
    return made;
  };
  cases.push_back({"MaxPool", {{{2, 5, 17, 13}}}, window({}), 2});
  cases.push_back(
      {"AveragePool", {{{2, 5, 17, 13}}}, window({{"pads", ints({1, 0, 1, 0})}}), 1, 4});
  // Those that libraries have: one result, even padding.
  for (const Dims& x : {Dims{2, 5, 17, 13}, Dims{2, 3, 7, 9, 8}}) {
    const auto axes = static_cast<size_t>(x.rank() - 2);
    Attributes even = attributes({{"kernel_shape", std::vector<int64_t>(axes, 3)},
                                  {"strides", std::vector<int64_t>(axes, 2)},
                                  {"pads", std::vector<int64_t>(2 * axes, 1)}});
    cases.push_back({"MaxPool", {{x}}, even});
    cases.push_back({"AveragePool", {{x}}, even, 1, 4});
    even.set("count_include_pad", int64_t{1});
    cases.push_back({"AveragePool", {{x}}, even, 1, 4});
  }
  cases.push_back({"GlobalAveragePool", {{{2, 5, 17, 19}}}, {}, 1, 4});
  cases.push_back({"GlobalMaxPool", {{{2, 5, 17, 19}}}});
  cases.push_back({"LayerNormalization", {{{33, 300}}, {{300}}, {{300}}}, {}, 1, 32});
  cases.push_back({"InstanceNormalization", {{{2, 5, 17, 19}}, {{5}}, {{5}}}, {}, 1, 32});
  cases.push_back({"BatchNormalization", {{{2, 5, 17}}, {{5}}, {{5}}, {{5}}, {{5}}}, {}, 1, 8});
  cases.push_back({"Resize",
                   {{{1, 2, 7, 9}}, kOmitted, kOmitted, given({1, 2, 15, 13})},
                   attributes({{"mode", std::string("nearest")}})});
}

// Few long ones, which CUB takes.
void add_lines(std::vector<ConformanceCase>& cases) {
  constexpr int64_t kLength = 40000;
  for (const char* op : {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean",
                         "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"}) {
    cases.push_back({op, {{{257, 129}}}});
    cases.push_back({op, {{{kLength}}}, {}, 1, 4});
  }
  for (const char* op : {"ArgMax", "ArgMin"}) {
    cases.push_back({op, {{{257, 129}}}});
    for (const int64_t takes_last : {0, 1}) {
      cases.push_back({op,
                       {{{kLength, 2}}},
                       attributes({{"axis", int64_t{0}}, {"select_last_index", takes_last}})});
    }
  }
  for (const int64_t largest : {0, 1}) {
    cases.push_back({"TopK", {{{2, kLength}}, given({50})}, attributes({{"largest", largest}}), 2});
  }
  cases.push_back({"CumSum",
                   {{{2, kLength}}, given({1})},
                   attributes({{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}}),
                   1,
                   4});
}

void add_others(std::vector<ConformanceCase>& cases) {
  cases.push_back({"QuantizeLinear", {{{33, 67}}, {{}}, {{}, Of::kBytes}}});
  cases.push_back(
      {"DequantizeLinear", {{{33, 67}, Of::kBytes}, {{}, Of::kFloat}, {{}, Of::kBytes}}});
  cases.push_back({"DynamicQuantizeLinear", {{{33, 67}, Of::kFloat}}, {}, 3});
  cases.push_back({"ConstantOfShape", {given({33, 67})}});
  for (const char* const direction : {"LEFT", "RIGHT"}) {
    cases.push_back(
        {"BitShift", {{{33, 67}}, {{67}}}, attributes({{"direction", std::string(direction)}})});
  }
  for (const auto& [op, gates] : {std::pair{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    constexpr int64_t kSteps = 5, kBatch = 3, kInput = 17, kHidden = 21;
    cases.push_back({op,
                     {{{kSteps, kBatch, kInput}},
                      {{1, gates * kHidden, kInput}},
                      {{1, gates * kHidden, kHidden}},
                      kOmitted,
                      {{kBatch}, Of::kInt32, kSteps}},
                     attributes({{"hidden_size", kHidden}}),
                     2,
                     64});
  }
}

std::vector<ConformanceCase> make_cases() {
  std::vector<ConformanceCase> cases;
  add_movement(cases);
  add_products(cases);
  add_windows(cases);
  add_lines(cases);
  add_others(cases);
  return cases;
}

}  // namespace

const std::vector<ConformanceCase>& conformance_cases() {
  static const std::vector<ConformanceCase>* const cases =
      new std::vector<ConformanceCase>(make_cases());
  return *cases;
}

}  // namespace eddy
