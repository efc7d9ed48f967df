#include "tools/check/generator.h"

#include <algorithm>
#include <array>
#include <optional>

#include "graph/base/check.h"
#include "graph/base/random.h"

namespace eddy::check {
namespace {

// At most two; no memory of its own.
struct Kinds {
  Kinds(std::initializer_list<Kind> list) : size(list.size()) {
    EDDY_CHECK(list.size() <= std::size(kinds)) << list.size() << " kinds";
    std::copy(list.begin(), list.end(), kinds);
  }
  const Kind* begin() const { return kinds; }
  const Kind* end() const { return kinds + size; }
  size_t size;
  Kind kinds[2] = {};
};

struct Formula {
  Form form;
  Kinds reads;  // the last one may come several times where is_variadic
  Kinds makes;
  bool is_variadic = false;
};

constexpr Kind W = Kind::kWords, C = Kind::kCount, F = Kind::kFloats, L = Kind::kList,
               M = Kind::kMaybe;

std::vector<Formula> make_formulas(const GenerateOptions& options) {
  std::vector<Formula> formulas = {
      {Form::kMix, {W, W}, {W}, true}, {Form::kMix, {W, C}, {W}, true},
      {Form::kMix, {W}, {W}, true},    {Form::kMixInPlace, {W, W}, {W}, true},
      {Form::kMixInPlace, {W}, {W}},   {Form::kTwins, {W, W}, {W, W}, true},
      {Form::kResize, {W}, {W}, true}, {Form::kRow, {W, C}, {W}, true},
      {Form::kAppend, {W, W}, {W}},    {Form::kAppend, {W, C}, {W}},
      {Form::kKeepLast, {W}, {W}},     {Form::kIdentity, {W}, {W}},
      {Form::kReshape, {W}, {W}},      {Form::kUnsqueeze, {W}, {W}},
      {Form::kTrips, {W}, {C}, true},  {Form::kSize, {W}, {C}},
  };
  for (int twice = 0; options.has_host_functions && twice < 2; ++twice) {
    formulas.push_back({Form::kChoose, {W}, {C}});
  }
  if (options.has_lists) {
    for (const Formula& formula : std::initializer_list<Formula>{{Form::kInsert, {L, W}, {L}},
                                                                 {Form::kErase, {L, W}, {L}},
                                                                 {Form::kAt, {L, W}, {W}},
                                                                 {Form::kFold, {L}, {W}},
                                                                 {Form::kLength, {L}, {C}}}) {
      formulas.push_back(formula);
    }
  }
  if (options.has_optionals) {
    formulas.insert(formulas.end(), {{Form::kSome, {W}, {M}},
                                     {Form::kNothing, {}, {M}},
                                     {Form::kHas, {M}, {C}},
                                     {Form::kGetOr, {M, W}, {W}}});
  }
  if (options.has_floats) {
    for (int twice = 0; twice < 2; ++twice) {
      formulas.insert(formulas.end(), {{Form::kAddFloats, {F, F}, {F}},
                                       {Form::kMulFloats, {F, F}, {F}},
                                       {Form::kTanh, {F}, {F}},
                                       {Form::kMatMul, {F}, {F}},
                                       {Form::kMaxFloats, {F, F}, {F}},
                                       {Form::kFloats, {F, W}, {F}, true},
                                       {Form::kRow, {F}, {W}},
                                       {Form::kMix, {W, F}, {W}, true}});
    }
  }
  return formulas;
}

class Maker {
 public:
  Maker(uint64_t seed, const GenerateOptions& options)
      : options_(drawn(seed, options)), random_(seed), formulas_(make_formulas(options_)) {
    recipe_.seed = seed;
    kinds_ = {W, W, W, C};
    if (options_.has_lists) kinds_.push_back(L);
    if (options_.has_optionals) kinds_.push_back(M);
    if (options_.has_floats) kinds_.insert(kinds_.end(), {F, F});
    const int spread = std::max(1, options.max_steps - options.min_steps + 1);
    // Small ones are the many: most defects need few nodes.
    const int first = static_cast<int>(below(static_cast<uint64_t>(spread)));
    const int second = static_cast<int>(below(static_cast<uint64_t>(spread)));
    steps_left_ = options.min_steps + std::min(first, second);
  }

  Recipe make() {
    std::vector<Kind> inputs = {W, W, C};
    if (options_.has_lists) inputs.push_back(L);
    if (options_.has_optionals) inputs.push_back(M);
    if (options_.has_floats) inputs.push_back(F);
    const int steps = steps_left_;
    recipe_.root = block(inputs, 0, 1, steps, [this] { return some_kinds(1, 4); });
    return std::move(recipe_);
  }

 private:
  static GenerateOptions drawn(uint64_t seed, GenerateOptions options) {
    if (options.has_optionals && Random(~seed).below(4) == 0) {
      options.has_lists = options.has_optionals = false;
    }
    options.has_floats |= options.may_have_floats && Random(~seed ^ 0xf10a).below(4) == 0;
    return options;
  }

  uint64_t below(uint64_t bound) { return random_.below(bound); }
  bool one_in(uint64_t n) { return below(n) == 0; }
  Kind some_kind() { return kinds_[below(kinds_.size())]; }
  std::vector<Kind> some_kinds(uint64_t min, uint64_t max) {
    EDDY_CHECK(min <= max) << min << " to " << max << " kinds";
    std::vector<Kind> kinds(min + below(max - min + 1));
    for (Kind& kind : kinds) kind = some_kind();
    return kinds;
  }
  Var fresh(Kind kind) {
    recipe_.kinds.push_back(kind);
    return static_cast<Var>(recipe_.kinds.size() - 1);
  }
  Kind kind_of(Var var) const { return recipe_.kinds[var]; }

  // A visible variable of that kind: half of the time one of the two youngest, else any, from
  // whatever depth. The root's inputs have every kind, so there always is one.
  Var pick(Kind kind) {
    std::vector<Var> fitting;
    for (Var var : visible_) {
      if (kind_of(var) == kind) fitting.push_back(var);
    }
    EDDY_CHECK(!fitting.empty()) << "no variable of kind " << static_cast<int>(kind);
    const size_t window = one_in(2) ? std::min<size_t>(2, fitting.size()) : fitting.size();
    return fitting[fitting.size() - 1 - below(window)];
  }
  template <typename Range>
  std::vector<Var> pick_all(const Range& kinds) {
    std::vector<Var> vars;
    for (Kind kind : kinds) vars.push_back(pick(kind));
    return vars;
  }
  static bool is_dense(Kind kind) { return kind != L && kind != M; }
  Kind dense_kind() {
    const Kind kind = some_kind();
    return is_dense(kind) ? kind : W;
  }

  // Up to `steps` steps inside; `results` names the kinds of the results once they are made.
  template <typename Results>
  Block block(const std::vector<Kind>& parameters, int depth, int64_t repeats, int steps,
              const Results& results) {
    Block block;
    const size_t outside = visible_.size();
    for (Kind kind : parameters) visible_.push_back(block.parameters.emplace_back(fresh(kind)));
    while (steps > 0 && steps_left_ > 0) {
      --steps_left_;
      const int before = steps_left_;
      block.steps.push_back(step(depth, repeats));
      steps -= 1 + before - steps_left_;
      for (Var var : block.steps.back().makes) visible_.push_back(var);
    }
    block.results = pick_all(results());
    if (!block.parameters.empty() && one_in(3)) permute(block, parameters);
    visible_.resize(outside);
    return block;
  }

  // Results become parameters of the same kinds, in another order: swaps, rotations, repeats.
  void permute(Block& block, const std::vector<Kind>& parameters) {
    for (Var& result : block.results) {
      std::vector<Var> same;
      for (size_t p = 0; p < parameters.size(); ++p) {
        if (parameters[p] == kind_of(result)) same.push_back(block.parameters[p]);
      }
      if (!same.empty() && !one_in(4)) result = same[below(same.size())];
    }
  }

  Step step(int depth, int64_t repeats) {
    const uint64_t choice = below(10);
    if (choice <= 1 && depth < options_.max_depth) return loop(depth, repeats);
    if (choice == 2 && depth < options_.max_depth) return branch(depth, repeats);
    const Formula& formula = formulas_[below(formulas_.size())];
    Step step{.form = formula.form, .id = random_.next() >> 1};
    step.reads = pick_all(formula.reads);
    EDDY_CHECK(!formula.is_variadic || formula.reads.size > 0) << "nothing to read several times";
    while (formula.is_variadic && one_in(3)) step.reads.push_back(pick(*(formula.reads.end() - 1)));
    for (Kind kind : formula.makes) step.makes.push_back(fresh(kind));
    if (step.form == Form::kTrips || step.form == Form::kHas)
      step.choices = trip_choices(options_.max_repeats);
    return step;
  }

  // One to three of 0, 1, 2 and 17, none above `most`.
  std::vector<int64_t> trip_choices(int64_t most) {
    constexpr std::array<int64_t, 6> kTrips = {2, 17, 1, 2, 0, 17};
    std::vector<int64_t> choices(1 + below(2));
    for (int64_t& choice : choices) {
      choice = kTrips[below(kTrips.size())];
      if (choice > most) choice = std::min<int64_t>(most, 2);
    }
    return choices;
  }

  int inner_steps() { return static_cast<int>(below(6)); }  // 0: an empty body

  Step loop(int depth, int64_t repeats) {
    EDDY_CHECK(repeats > 0) << "a loop in what never runs";
    Step step{.form = Form::kWhile, .id = random_.next() >> 1};
    step.choices = trip_choices(std::max<int64_t>(1, options_.max_repeats / repeats));
    const int64_t most = *std::max_element(step.choices.begin(), step.choices.end());
    if (one_in(4)) step.early = static_cast<int64_t>(2 + below(8));
    if (one_in(3)) step.limit = {pick(C)};
    const std::vector<Kind> carried = some_kinds(0, 4);
    const std::vector<Kind> forwarded = one_in(2) ? carried : some_kinds(0, 4);
    step.num_scans = static_cast<uint32_t>(one_in(3) ? 1 + below(2) : 0);
    step.reads = pick_all(carried);
    const auto with_iteration = [](std::vector<Kind> kinds) {
      kinds.insert(kinds.begin(), C);
      return kinds;
    };
    const int before_steps = one_in(2) ? inner_steps() : 0;
    // What decides is seen from inside `before`: carried, captured or just made.
    step.blocks.push_back(
        block(with_iteration(carried), depth + 1, repeats * (most + 1), before_steps, [&] {
          step.go_reads = {pick(dense_kind())};
          return forwarded;
        }));
    step.blocks.push_back(block(with_iteration(forwarded), depth + 1,
                                repeats * std::max<int64_t>(most, 1), inner_steps(),
                                [&] { return carried; }));
    add_rows(step);
    for (Kind kind : forwarded) step.makes.push_back(fresh(kind));
    for (uint32_t s = 0; s < step.num_scans; ++s) step.makes.push_back(fresh(W));
    return step;
  }

  // The last steps of `after` make the rows to stack, of what its results are.
  void add_rows(Step& loop) {
    EDDY_CHECK(loop.blocks.size() == 2 && !loop.blocks[1].parameters.empty()) << "half a loop";
    Block& after = loop.blocks[1];
    for (uint32_t s = 0; s < loop.num_scans; ++s) {
      Step row{.form = Form::kRow, .id = random_.next() >> 1};
      row.reads = {after.parameters[0]};
      for (Var var : after.results) {
        if (is_dense(kind_of(var))) row.reads.push_back(var);
      }
      row.makes = {fresh(W)};
      after.results.push_back(row.makes[0]);
      after.steps.push_back(std::move(row));
    }
  }

  Step branch(int depth, int64_t repeats) {
    Step step{.form = Form::kCase, .id = random_.next() >> 1};
    const std::vector<Kind> results = some_kinds(one_in(4) ? 0 : 1, 3);
    const uint64_t num_branches = 1 + below(3);
    step.go_reads = {pick(dense_kind())};
    const ElementType kSelectors[] = {ElementType::kBool, ElementType::kInt32, ElementType::kInt64};
    step.selector = num_branches == 2 ? kSelectors[below(3)] : kSelectors[1 + below(2)];
    step.range = static_cast<int64_t>(num_branches);
    if (step.selector != ElementType::kBool && one_in(2)) {
      step.low = -1;  // out of range at either end
      step.range += 2;
      const bool passes = one_in(2);
      if (passes) step.reads = pick_all(results);
      // A case-of without results can't pass anything through.
      if (!passes || results.empty())
        step.default_region = static_cast<int32_t>(below(num_branches));
    }
    for (uint64_t n = 0; n < num_branches; ++n) {
      step.blocks.push_back(block({}, depth + 1, repeats, inner_steps(), [&] { return results; }));
    }
    for (Kind kind : results) step.makes.push_back(fresh(kind));
    return step;
  }

  const GenerateOptions options_;
  Random random_;
  const std::vector<Formula> formulas_;
  std::vector<Kind> kinds_;  // to draw from
  int steps_left_ = 0;
  std::vector<Var> visible_;
  Recipe recipe_;
};

}  // namespace

Recipe make_recipe(uint64_t seed, const GenerateOptions& options) {
  return Maker(seed, options).make();
}

Result<RandomCase> generate(uint64_t seed, const Library& library, const GenerateOptions& options) {
  Recipe recipe = make_recipe(seed, options);
  EDDY_ASSIGN_OR_RETURN(Graph graph, build(recipe, library));
  NamedTensors inputs = make_inputs(recipe, 0);
  return RandomCase{std::move(recipe), std::move(graph), std::move(inputs)};
}

}  // namespace eddy::check
