#include "tools/check/recipe.h"

#include <array>
#include <string>

#include "graph/base/check.h"
#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "tools/check/hash_ops.h"

namespace eddy::check {
namespace {

ValueType words_type() { return tensor_type(ElementType::kInt64, {kUnknownDim}); }

ValueType type_of(Kind kind) {
  switch (kind) {
    case Kind::kWords:
      return words_type();
    case Kind::kCount:
      return tensor_type(ElementType::kInt64, {});
    case Kind::kFloats:
      return tensor_type(ElementType::kFloat, {4});
    case Kind::kList:
      return ValueType::sequence_of(words_type());
    case Kind::kMaybe:
      return ValueType::optional_of(words_type());
  }
  return {};
}

class Emitter {
 public:
  Emitter(GraphBuilder& builder, size_t num_vars) : b(builder), values_(num_vars) {}

  std::vector<Value> emit(const Block& block, ValueSpan arguments) {
    EDDY_CHECK(arguments.size() <= block.parameters.size())
        << arguments.size() << " arguments for " << block.parameters.size() << " parameters";
    for (size_t i = 0; i < arguments.size(); ++i) values_[block.parameters[i]] = arguments[i];
    for (const Step& step : block.steps) {
      const std::vector<Value> made = emit(step);
      // After an error the builder gives fewer; nothing is looked at any more.
      for (size_t i = 0; i < step.makes.size() && i < made.size(); ++i) {
        values_[step.makes[i]] = made[i];
      }
    }
    return read(block.results);
  }

 private:
  std::vector<Value> read(const std::vector<Var>& vars) const {
    std::vector<Value> values;
    for (Var var : vars) {
      EDDY_CHECK(var < values_.size()) << "variable " << var << " of " << values_.size();
      values.push_back(values_[var]);
    }
    return values;
  }

  std::vector<Value> hash_op_of(const char* name, const Step& step, ValueSpan inputs,
                                Attributes more = {}, int num_outputs = 1) {
    more.set("id", static_cast<int64_t>(step.id));
    OpOptions options;
    options.domain = std::string(kHashDomain);
    options.num_outputs = num_outputs;
    return b.ops(name, inputs, std::move(more), std::move(options));
  }

  std::vector<Value> emit(const Step& step) {
    if (step.form == Form::kWhile) return loop(step);
    if (step.form == Form::kCase) return branch(step);
    const std::vector<Value> in = read(step.reads);
    if (step.form <= Form::kUnsqueeze) return words(step, in);
    if (step.form <= Form::kLength) return counts(step, in);
    if (step.form <= Form::kFloats) return floats(step, in);
    if (step.form <= Form::kAt) return lists(step, in);
    return optionals(step, in);
  }

  Value concat(Value x, Value y) { return b.op("Concat", {x, y}, {{"axis", int64_t{0}}}); }

  std::vector<Value> words(const Step& step, ValueSpan in) {
    switch (step.form) {
      case Form::kMix:
        return hash_op_of("Mix", step, in);
      case Form::kMixInPlace:
        return hash_op_of("MixInPlace", step, in);
      case Form::kTwins:
        return hash_op_of("Twins", step, in, {}, 2);
      case Form::kResize:
        return hash_op_of("Resize", step, in);
      case Form::kRow:
        return hash_op_of("Row", step, in);
      case Form::kAppend:
        return {concat(in[0], hash_op_of("Row", step, in.subspan(1))[0])};
      case Form::kKeepLast:
        return {b.op("Slice", {in[0], b.int64s({-2}), b.int64s({INT64_MAX}), b.int64s({0})})};
      case Form::kIdentity:
        return {b.op("Identity", {in[0]})};
      case Form::kReshape:
        return {b.op("Reshape", {in[0], b.int64s({-1})})};
      default:
        return {b.op("Squeeze", {b.op("Unsqueeze", {in[0], b.int64s({0})}), b.int64s({0})})};
    }
  }

  std::vector<Value> counts(const Step& step, ValueSpan in) {
    switch (step.form) {
      case Form::kTrips:
        return hash_op_of("Trips", step, in, {{"choices", step.choices}});
      case Form::kSize:
        return {b.op("Size", {in[0]})};
      case Form::kLength:
        return {b.op("SequenceLength", {in[0]})};
      default:
        return {b.op("HostPredicate", in,
                     {{"name", std::string(kChooseFunction)},
                      {"type", tensor_type(ElementType::kInt64, {})}},
                     {.domain = "eddy"})};
    }
  }

  std::vector<Value> floats(const Step& step, ValueSpan in) {
    switch (step.form) {
      case Form::kAddFloats:
        return {b.op("Add", {in[0], in[1]})};
      case Form::kMulFloats:
        return {b.op("Mul", {in[0], in[1]})};
      case Form::kTanh:
        return {b.op("Tanh", {in[0]})};
      case Form::kMaxFloats:
        return {b.op("Max", {in[0], in[1]})};
      case Form::kMatMul:
        return {b.op("MatMul", {in[0], matrix(step.id)})};
      default:
        return hash_op_of("Floats", step, in);
    }
  }

  std::vector<Value> lists(const Step& step, ValueSpan in) {
    const Value zero = b.scalar<int64_t>(0);
    switch (step.form) {
      case Form::kInsert:
        return {b.op("SequenceInsert", {in[0], in[1]})};
      case Form::kErase:
        return {b.op("SequenceErase", {b.op("SequenceInsert", {in[0], in[1]}), zero})};
      case Form::kAt:
        return {b.op("SequenceAt", {b.op("SequenceInsert", {in[0], in[1]}), zero})};
      default:
        return hash_op_of("Fold", step, in);
    }
  }

  std::vector<Value> optionals(const Step& step, ValueSpan in) {
    if (step.form == Form::kSome) return {b.op("Optional", {in[0]})};
    if (step.form == Form::kNothing) return {b.op("Optional", {}, {{"type", words_type()}})};
    const Value has = b.op("OptionalHasElement", {in[0]});
    if (step.form == Form::kHas)
      return hash_op_of("Trips", step, std::array{has}, {{"choices", step.choices}});
    const std::vector<CaseBody> bodies = {
        [&] { return std::vector<Value>{in[1]}; },
        [&] { return std::vector<Value>{b.op("OptionalGetElement", {in[0]})}; }};
    return b.case_of({.selector = has}, bodies);
  }

  // Weights of a 4 by 4 product, small enough that chains of products stay finite.
  Value matrix(uint64_t id) {
    std::vector<float> weights(16);
    Random random(id);
    for (float& weight : weights) weight = random.uniform(-0.5f, 0.5f);
    return b.tensor<float>({4, 4}, std::span<const float>(weights));
  }

  std::vector<Value> loop(const Step& step) {
    EDDY_CHECK(step.blocks.size() == 2 && !step.choices.empty()) << "half a loop";
    WhileOptions options{.initial = read(step.reads), .num_scan_outputs = step.num_scans};
    if (!step.limit.empty()) options.trip_limit = values_[step.limit[0]];
    const auto run = [&](size_t block, Value iteration, ValueSpan given) {
      std::vector<Value> arguments = {iteration};
      arguments.insert(arguments.end(), given.begin(), given.end());
      return emit(step.blocks[block], arguments);
    };
    std::vector<Value> made = b.while_loop(
        options,
        [&](Value iteration, ValueSpan carried) {
          const std::vector<Value> forwarded = run(0, iteration, carried);
          std::vector<Value> decides = read(step.go_reads);
          decides.insert(decides.begin(), iteration);
          const Value go = hash_op_of("Go", step, decides,
                                      {{"choices", step.choices}, {"early", step.early}})[0];
          return WhileTest{go, forwarded};
        },
        [&](Value iteration, ValueSpan forwarded) { return run(1, iteration, forwarded); });
    // Stacked rows are [trips, 3]; words have rank 1.
    EDDY_CHECK(made.size() >= step.num_scans) << "fewer results than rows";
    for (size_t s = made.size() - step.num_scans; s < made.size(); ++s) {
      made[s] = b.op("Reshape", {made[s], b.int64s({-1})});
    }
    return made;
  }

  std::vector<Value> branch(const Step& step) {
    EDDY_CHECK(!step.blocks.empty() && step.range > 0) << "a case without branches";
    EDDY_CHECK(step.default_region < static_cast<int32_t>(step.blocks.size()))
        << "branch " << step.default_region << " of " << step.blocks.size();
    const Value selector = hash_op_of("Pick", step, read(step.go_reads),
                                      {{"low", step.low},
                                       {"count", step.range},
                                       {"type", static_cast<int64_t>(step.selector)}})[0];
    CaseOptions options{.selector = selector, .pass_through = read(step.reads)};
    options.default_region = step.default_region;
    std::vector<CaseBody> bodies;
    for (const Block& block : step.blocks) bodies.push_back([&] { return emit(block, {}); });
    return b.case_of(options, bodies);
  }

  GraphBuilder& b;
  std::vector<Value> values_;  // by variable
};

Tensor random_words(Random& random) {
  constexpr int64_t kLengths[] = {3, 1, 0, 4, 2};
  const int64_t length = kLengths[random.below(std::size(kLengths))];
  std::vector<int64_t> words(static_cast<size_t>(length));
  for (int64_t& word : words) word = static_cast<int64_t>(random.next());
  return Tensor::of<int64_t>({length}, std::span<const int64_t>(words));
}

Tensor random_input(Kind kind, Random& random) {
  switch (kind) {
    case Kind::kWords:
      return random_words(random);
    case Kind::kCount:
      return Tensor::scalar(static_cast<int64_t>(random.below(4)));
    case Kind::kFloats: {
      float values[4];
      for (float& value : values) value = random.uniform(-1.0f, 1.0f);
      return Tensor::of<float>({4}, std::span<const float>(values));
    }
    case Kind::kList: {
      std::vector<Tensor> elements(random.below(3));
      for (Tensor& element : elements) element = random_words(random);
      return Tensor::sequence(ElementType::kInt64, std::move(elements));
    }
    case Kind::kMaybe:
      return random.below(3) == 0 ? Tensor() : random_words(random);
  }
  return {};
}

}  // namespace

Result<Graph> build(const Recipe& recipe, const Library& library) {
  GraphBuilder b(library.ops(), "seed " + std::to_string(recipe.seed));
  std::vector<Value> inputs;
  for (size_t i = 0; i < recipe.root.parameters.size(); ++i) {
    EDDY_CHECK(recipe.root.parameters[i] < recipe.kinds.size()) << "an input of no kind";
    const Kind kind = recipe.kinds[recipe.root.parameters[i]];
    inputs.push_back(b.input("in" + std::to_string(i), type_of(kind)));
  }
  const std::vector<Value> results = Emitter(b, recipe.kinds.size()).emit(recipe.root, inputs);
  for (size_t i = 0; i < results.size(); ++i) b.output("out" + std::to_string(i), results[i]);
  return b.finish();
}

NamedTensors make_inputs(const Recipe& recipe, uint64_t variant) {
  NamedTensors inputs;
  for (size_t i = 0; i < recipe.root.parameters.size(); ++i) {
    // Each input has a generator of its own, so that shrinking others away leaves it as it was.
    Random random(recipe.seed * 0x10001 + variant * 64 + recipe.root.parameters[i]);
    const Kind kind = recipe.kinds[recipe.root.parameters[i]];
    inputs.emplace_back("in" + std::to_string(i), random_input(kind, random));
  }
  return inputs;
}

}  // namespace eddy::check
