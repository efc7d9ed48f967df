#include "tools/gpu/conformance_cases.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

namespace eddy {
namespace {

using Of = ConformanceInput::Of;
using Type = ElementType;
using Given = std::initializer_list<std::pair<const char*, AttributeValue>>;

Attributes attributes(Given given) {
  Attributes made;
  for (const auto& [name, value] : given) made.set(name, value);
  return made;
}
std::vector<int64_t> ints(std::initializer_list<int64_t> values) { return values; }

ConformanceInput of_type(Type type, const Dims& dims) { return {dims, Of::kNumbers, 0, {}, type}; }
ConformanceInput bits(Type type, const Dims& dims) { return {dims, Of::kBits, 0, {}, type}; }
ConformanceInput indices(const Dims& dims, int64_t limit, Type type = Type::kInt64) {
  return {dims, Of::kIndices, limit, {}, type};
}
// An input that the host reads.
ConformanceInput given(const std::vector<int64_t>& values) {
  return {Dims{static_cast<int64_t>(values.size())}, Of::kGiven, 0, values, Type::kInt64};
}
// One number of the row's type.
ConformanceInput number(int64_t value) { return {{}, Of::kGiven, 0, {value}}; }
constexpr Type kIntegers[] = {Type::kInt8,  Type::kUint8,  Type::kInt16, Type::kUint16,
                              Type::kInt32, Type::kUint32, Type::kInt64, Type::kUint64};
const ConformanceInput kOmitted{{}, Of::kOmitted};

void add_elements(std::vector<ConformanceCase>& cases) {
  const Dims rows = {257, 129};
  const auto add_cast = [&](Type to) {
    cases.push_back({"Cast", {{{33, 67}}}, attributes({{"to", static_cast<int64_t>(to)}})});
  };
  for (const Type to :
       {Type::kFloat, Type::kDouble, Type::kFloat16, Type::kBfloat16, Type::kBool}) {
    add_cast(to);
  }
  std::ranges::for_each(kIntegers, add_cast);
  cases.push_back({"CastLike", {{{33, 67}}, of_type(Type::kFloat, {3})}});
  cases.push_back({"Clip", {{rows}, number(1), number(2)}});
  cases.push_back({"Clip", {{rows}, number(1)}});
  cases.push_back({"Clip", {{rows}, kOmitted, number(2)}});
  cases.push_back({"Clip", {{rows}}, attributes({{"min", 1.0f}, {"max", 2.0f}}), 1, 1, 10});
  for (const char* const way : {"none", "tanh"}) {
    cases.push_back({"Gelu", {{rows}}, attributes({{"approximate", std::string(way)}})});
  }
  cases.push_back({"Mod", {{rows}, {{129}, Of::kDivisor}}, attributes({{"fmod", int64_t{1}}})});
  for (const Type type : kIntegers) {  // floats have no other way
    cases.push_back({"Mod", {of_type(type, rows), {{129}, Of::kDivisor, 0, {}, type}}});
  }
  for (const char* const direction : {"LEFT", "RIGHT"}) {
    cases.push_back(
        {"BitShift", {{{33, 67}}, {{67}}}, attributes({{"direction", std::string(direction)}})});
  }
}

void add_movement(std::vector<ConformanceCase>& cases) {
  for (const int64_t inner : {7, 16}) {  // words of one element, and of 16 bytes
    cases.push_back(
        {"Concat", {{{5, 3, inner}}, {{5, 4, inner}}}, attributes({{"axis", int64_t{1}}})});
    cases.push_back(
        {"Split", {{{5, 8, inner}}, given({3, 5})}, attributes({{"axis", int64_t{1}}}), 2});
  }
  for (const int64_t inner : {33, 32}) {
    cases.push_back({"Gather", {{{40, inner}}, indices({7, 5}, 40)}});
  }
  cases.push_back({"Expand", {{{3, 1}}, given({2, 3, 5})}});
  cases.push_back(
      {"Slice", {{{9, 31}}, given({1, 2}), given({8, 30}), given({0, 1}), given({2, 3})}});
  cases.push_back({"GatherElements", {{{40, 33}}, indices({11, 33}, 40)}});
  cases.push_back({"GatherND", {{{5, 7, 33}}, indices({13, 2}, 5)}});
  cases.push_back({"Scatter", {{{40, 33}}, indices({1, 33}, 40), {{1, 33}}}, {}, 1, 1, 10});
  for (const char* const reduction : {"none", "add", "mul", "max", "min"}) {
    const Attributes made = attributes({{"reduction", std::string(reduction)}});
    // Where updates meet they are reduced; without a reduction they must not.
    const int64_t updates = std::string_view(reduction) == "none" ? 1 : 3;
    cases.push_back(
        {"ScatterElements", {{{40, 33}}, indices({updates, 33}, 40), {{updates, 33}}}, made, 1, 4});
    cases.push_back(
        {"ScatterND", {{{40, 33}}, indices({updates, 1}, 40), {{updates, 33}}}, made, 1, 4});
  }
  cases.push_back({"DepthToSpace", {{{2, 8, 3, 5}}}, attributes({{"blocksize", int64_t{2}}})});
  cases.push_back({"SpaceToDepth", {{{2, 2, 6, 10}}}, attributes({{"blocksize", int64_t{2}}})});
  for (const int64_t upper : {0, 1}) {
    cases.push_back({"Trilu", {{{3, 17, 19}}}, attributes({{"upper", upper}})});
  }
  for (const Type type : {Type::kFloat, Type::kInt32, Type::kInt64}) {
    cases.push_back({"OneHot", {indices({67}, 10, type), given({10}), {{2}}}});
  }
  cases.push_back({"Pad", {{{5, 7}}, given({1, 2, 3, 4})}});
  cases.push_back({"Tile", {{{3, 5}}, given({2, 3})}});
  cases.push_back({"Range", {number(1), number(100), number(3)}});
  for (const Type type : {Type::kBool, Type::kFloat16, Type::kFloat, Type::kInt64}) {
    static const int64_t value = 1;  // its first bytes, whatever the type
    cases.push_back({"ConstantOfShape",
                     {given({33, 67})},
                     attributes({{"value", Constant{type, {1}, &value}}})});
  }
}

// long: one kind of call after the other
void add_products(std::vector<ConformanceCase>& cases) {
  for (const int64_t m : {33, 3}) {  // tiles, rows
    cases.push_back({"MatMul", {{{m, 67}}, {{67, 65}}}, {}, 1, 32});
    for (const Type a : {Type::kInt8, Type::kUint8}) {
      for (const Type b : {Type::kInt8, Type::kUint8}) {
        cases.push_back(
            {"MatMulInteger", {bits(a, {m, 67}), bits(b, {67, 65}), bits(a, {}), bits(b, {})}});
      }
      cases.push_back({.op = "DequantizeMatMul",
                       .inputs = {of_type(Type::kFloat, {m, 67}), bits(a, {67, 65}),
                                  of_type(Type::kFloat, {65}), bits(a, {65})},
                       .slack = 3200,  // products of either sign
                       .domain = "eddy"});
    }
  }
  cases.push_back({"MatMul", {{{3, 33, 67}}, {{67, 65}}}, {}, 1, 32});
  cases.push_back({"MatMul", {{{3, 40, 200}}, {{3, 200, 36}}}, {}, 1, 32});  // TensorTile
  cases.push_back({"Gemm",
                   {{{67, 33}}, {{65, 67}}, {{65}}},
                   attributes({{"transA", int64_t{1}}, {"transB", int64_t{1}}}),
                   1,
                   32});
  for (const int64_t m : {33, 3}) {
    // A head's queries and keys; a projection with a bias and a residual.
    cases.push_back({.op = "PermutedMatMul",
                     .inputs = {{{1, m, 5, 19}}, {{1, 35, 5, 19}}},
                     .attributes = attributes({{"perm_a", ints({0, 2, 1, 3})},
                                               {"perm_b", ints({0, 2, 3, 1})},
                                               {"perm_y", ints({0, 2, 1, 3})}}),
                     .slack = 32,
                     .domain = "eddy"});
    cases.push_back({.op = "PermutedMatMul",
                     .inputs = {{{2, m, 67}}, {{67, 65}}, {{65}}, {{2, m, 65}}},
                     .slack = 32,
                     .domain = "eddy"});
    // The same heads where one projection left queries, keys and values side by side; scaled.
    cases.push_back(
        {.op = "PermutedMatMul",
         .inputs = {{{1, m, 3 * 5 * 16}}, {{1, 35, 3 * 5 * 16}}},
         .attributes = attributes({{"place_a", ints({0, 1, m * 240, 5, 16, m, 240, 16, 1})},
                                   {"place_b", ints({80, 1, 35 * 240, 5, 16, 16, 1, 35, 240})},
                                   {"alpha", 0.25f}}),
         .slack = 32,
         .domain = "eddy"});
    // A batch of one, turned over: its rows are matrices of one row.
    cases.push_back({.op = "PermutedMatMul",
                     .inputs = {{{1, m, 67}}, {{67, 65}}},
                     .attributes = attributes({{"perm_a", ints({1, 0, 2})}}),
                     .slack = 32,
                     .domain = "eddy"});
  }
  for (const int64_t filters : {9, 51}) {
    cases.push_back(
        {.op = "ConvRelu",
         .inputs = {{{2, 6, 13, 11}}, {{filters, 6, 3, 3}}, {{filters}}, {{2, filters, 13, 11}}},
         .attributes = attributes({{"pads", ints({1, 1, 1, 1})}}),
         .slack = 32,
         .domain = "eddy"});
  }
  for (const int64_t filters : {9, 51}) {
    for (const auto& pads : {ints({1, 0, 1, 2}), ints({1, 1, 1, 1})}) {
      cases.push_back({.op = "ChannelsLastConv",
                       .inputs = {{{2, 13, 11, 6}}, {{filters, 3, 3, 6}}, {{filters}}},
                       .attributes = attributes({{"pads", pads}, {"relu", int64_t{1}}}),
                       .slack = 32,
                       .domain = "eddy"});
    }
  }
  // By channel, with kernels of our own; rows of results that are no whole runs of them.
  for (const int64_t size : {3, 5, 7}) {
    for (const int64_t stride : {1, 2}) {
      const Dims y = {2, 12 / stride + 1, 10 / stride + 1, 8};
      cases.push_back({.op = "ChannelsLastConv",
                       .inputs = {{{2, 13, 11, 8}}, {{8, size, size, 1}}, {{8}}, {y}},
                       .attributes = attributes({{"pads", std::vector<int64_t>(4, size / 2)},
                                                 {"strides", ints({stride, stride})},
                                                 {"group", int64_t{8}},
                                                 {"relu", stride - 1}}),
                       .slack = 32,
                       .domain = "eddy"});
    }
  }
  for (const int64_t group : {1, 3}) {
    for (const auto& pads : {ints({1, 0, 1, 2}), ints({1, 1, 1, 1})}) {
      for (const int64_t filters : {9, 51}) {  // one by one, by tiles
        cases.push_back({"Conv",
                         {{{2, 6, 13, 11}}, {{filters, 6 / group, 3, 3}}, {{filters}}},
                         attributes({{"group", group}, {"pads", pads}}),
                         1,
                         32});
      }
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
  for (const char* op : {"ChannelsLastMaxPool", "ChannelsLastAveragePool"}) {
    cases.push_back({.op = op,
                     .inputs = {{{2, 17, 13, 5}}},
                     .attributes = window({{"pads", ints({1, 1, 1, 1})}}),
                     .slack = 4,
                     .domain = "eddy"});
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

// Short ones, a thread each; middling ones, a warp each; longer ones, a block each; few long ones,
// which CUB takes.
void add_lines(std::vector<ConformanceCase>& cases) {
  constexpr int64_t kLength = 40000;
  for (const char* op : {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean",
                         "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"}) {
    cases.push_back({op, {{{257, 31}}, given({1})}, {}, 1, 4});
    cases.push_back({op, {{{257, 129}}, given({1})}, {}, 1, 4});
    cases.push_back({op, {{{257, 129}}}, {}, 1, 4});
    cases.push_back({op, {{{kLength}}}, {}, 1, 4});
  }
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const int64_t axis : {0, 1}) {
      cases.push_back({op, {{{257, 129}}}, attributes({{"axis", axis}})});
    }
    cases.push_back({op, {{{257, 31}}}, attributes({{"axis", int64_t{1}}})});
    for (const int64_t takes_last : {0, 1}) {
      cases.push_back({op,
                       {{{kLength, 2}}},
                       attributes({{"axis", int64_t{0}}, {"select_last_index", takes_last}})});
    }
  }
  for (const char* const op : {"Softmax", "LogSoftmax"}) {
    for (const int64_t axis : {0, 1}) {
      cases.push_back({op, {{{257, 129}}}, attributes({{"axis", axis}}), 1, 8});
    }
    // Rows that one thread walks; those above have 32 threads and a block.
    cases.push_back({op, {{{257, 31}}}, attributes({{"axis", int64_t{1}}}), 1, 8});
  }
  cases.push_back({"TopK", {{{33, 300}}, given({5})}, {}, 2});
  for (const int64_t largest : {0, 1}) {
    cases.push_back({"TopK", {{{2, kLength}}, given({50})}, attributes({{"largest", largest}}), 2});
  }
  cases.push_back({"CumSum", {{{3, 40, 5}}, given({1})}, {}, 1, 2});
  cases.push_back(
      {"CumSum", {{{2, 1000}}, given({1})}, attributes({{"reverse", int64_t{1}}}), 1, 2});
  cases.push_back({"CumSum",
                   {{{2, kLength}}, given({1})},
                   attributes({{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}}),
                   1,
                   4});
}

void add_quantized(std::vector<ConformanceCase>& cases) {
  for (const Type type : {Type::kInt8, Type::kUint8}) {
    cases.push_back({"QuantizeLinear", {{{33, 67}}, {{}}, bits(type, {})}});
    cases.push_back({"DequantizeLinear", {bits(type, {33, 67}), {{}}, bits(type, {})}});
  }
  cases.push_back({"DequantizeLinear", {indices({33, 67}, 1000, Type::kInt32), {{}}}});
  cases.push_back({"DynamicQuantizeLinear", {of_type(Type::kFloat, {33, 67})}, {}, 3});
}

void add_recurrent(std::vector<ConformanceCase>& cases) {
  constexpr int64_t kBatch = 3, kInput = 17, kHidden = 21;
  const auto add = [&](const char* op, int64_t gates, int64_t steps, Attributes more) {
    more.set("hidden_size", kHidden);
    cases.push_back({op,
                     {{{steps, kBatch, kInput}},
                      {{1, gates * kHidden, kInput}},
                      {{1, gates * kHidden, kHidden}},
                      kOmitted,
                      {{kBatch}, Of::kLengths, steps, {}, Type::kInt32}},
                     std::move(more),
                     2,
                     64});
  };
  for (const int64_t steps : {5, 1}) {
    for (const int64_t is_linear_first : {0, 1}) {
      add("GRU", 3, steps, attributes({{"linear_before_reset", is_linear_first}}));
    }
    add("LSTM", 4, steps, {});
    add("RNN", 1, steps, {});
  }
  // Both ways, with biases and states to begin with.
  cases.push_back(
      {"LSTM",
       {{{5, kBatch, kInput}},
        {{2, 4 * kHidden, kInput}},
        {{2, 4 * kHidden, kHidden}},
        {{2, 8 * kHidden}},
        kOmitted,
        {{2, kBatch, kHidden}},
        {{2, kBatch, kHidden}}},
       attributes({{"hidden_size", kHidden}, {"direction", std::string("bidirectional")}}),
       3,
       64});
}

std::vector<ConformanceCase> make_cases() {
  std::vector<ConformanceCase> cases;
  add_elements(cases);
  add_movement(cases);
  add_products(cases);
  add_windows(cases);
  add_lines(cases);
  add_quantized(cases);
  add_recurrent(cases);
  return cases;
}

}  // namespace

bool ConformanceCase::is_of_one_type() const {
  return std::ranges::none_of(inputs, [](const ConformanceInput& input) {
    return input.of != Of::kOmitted && input.type == ElementType::kUndefined;
  });
}

const std::vector<ConformanceCase>& conformance_cases() {
  static const std::vector<ConformanceCase>* const cases =
      new std::vector<ConformanceCase>(make_cases());
  return *cases;
}

}  // namespace eddy
