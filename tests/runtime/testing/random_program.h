// Random programs of whiles and case-ofs, and what they mean in plain C++: nothing here knows of
// graphs or the runtime. Same seed, same program; programs grow with seed % 16.
//
// Every loop ends: its number of trips is a number of the program modulo kMaxTrips + 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/base/random.h"

namespace eddy::testing {

inline constexpr int kMaxDepth = 4;
inline constexpr int64_t kMaxTrips = 4;
inline constexpr int64_t kMaxSelector = 3;

// pair float[2], rows float[?,2], number int64, list sequence(float[2])
enum class Kind { kPair, kRows, kNumber, kList };

struct Plain {
  std::vector<float> floats;  // pairs one after another
  int64_t number = 0;
};

enum class Do {
  kNeg,
  kMax,
  kMean,
  kShift,
  kFlat,
  kLast,
  kFirst,  // -> pair
  kAppend,
  kJoin,
  kSame,
  kStack,  // -> rows
  kAdd,
  kCount,
  kLength,
  kAsk,  // -> number
  kInsert,
  kErase,  // -> list
  kIdentity,
  kWhile,
  kCase  // -> any
};

using Var = size_t;
struct Step;
struct Block {
  std::vector<Var> parameters;
  std::vector<Step> steps;
  std::vector<Var> results;
};
// kWhile: reads = limit, initial…; blocks = before (results: number, forwarded…), after.
// kCase: reads = selector, pass-through… (else default region 0).
struct Step {
  Do what;
  std::vector<Var> reads;
  std::vector<Var> makes;
  std::vector<Block> blocks = {};
  bool flag = false;  // kWhile: has a limit; kCase: passes through
  uint32_t num_scans = 0;
};

struct Formula {
  Do what;
  std::vector<Kind> reads;
  Kind makes;
};
inline constexpr Kind P = Kind::kPair, R = Kind::kRows, N = Kind::kNumber, L = Kind::kList;
inline const std::vector<Formula> kFormulas = {
    {Do::kAppend, {R, P}, R}, {Do::kAppend, {R, P}, R}, {Do::kAppend, {R, P}, R},
    {Do::kNeg, {P}, P},       {Do::kMax, {P, P}, P},    {Do::kMean, {P, P}, P},
    {Do::kShift, {P, N}, P},  {Do::kFlat, {P}, P},      {Do::kLast, {R, P}, P},
    {Do::kFirst, {L, P}, P},  {Do::kAppend, {R, P}, R}, {Do::kJoin, {R, R}, R},
    {Do::kSame, {R}, R},      {Do::kStack, {L, P}, R},  {Do::kAdd, {N, N}, N},
    {Do::kCount, {R}, N},     {Do::kLength, {L}, N},    {Do::kAsk, {N}, N},
    {Do::kInsert, {L, P}, L}, {Do::kErase, {L, P}, L}};

// Makes the program of a seed.
class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed), max_steps_(1 + seed % 16 / 2) {}

  Block program() { return block({P, P, R, N, N, L}, 0, some_kinds(5)); }

 private:
  Kind some_kind() {
    constexpr Kind kKinds[] = {P, P, R, R, R, N, L};
    return kKinds[random_.below(std::size(kKinds))];
  }
  std::vector<Kind> some_kinds(uint64_t max) {
    std::vector<Kind> kinds(1 + random_.below(max));
    for (Kind& kind : kinds) kind = some_kind();
    return kinds;
  }
  Var fresh(Kind kind) {
    kinds_.push_back(kind);
    return kinds_.size() - 1;
  }
  // A visible variable, often a young one.
  Var pick(Kind kind) {
    std::vector<Var> fitting;
    for (Var var : visible_) {
      if (kinds_[var] == kind) fitting.push_back(var);
    }
    const size_t window =
        random_.below(2) == 0 ? std::min<size_t>(2, fitting.size()) : fitting.size();
    return fitting[fitting.size() - 1 - random_.below(window)];
  }
  std::vector<Var> pick_all(const std::vector<Kind>& kinds) {
    std::vector<Var> vars;
    for (Kind kind : kinds) vars.push_back(pick(kind));
    return vars;
  }

  Block block(const std::vector<Kind>& parameters, int depth, const std::vector<Kind>& results) {
    Block block;
    const size_t outside = visible_.size();
    for (Kind kind : parameters) visible_.push_back(block.parameters.emplace_back(fresh(kind)));
    for (uint64_t n = random_.below(max_steps_ + 1); n > 0; --n) {
      block.steps.push_back(step(depth));
      for (Var var : block.steps.back().makes) visible_.push_back(var);
    }
    block.results = pick_all(results);
    visible_.resize(outside);
    return block;
  }

  Step step(int depth) {
    const uint64_t choice = random_.below(8);
    if (choice == 0 && depth < kMaxDepth) return loop(depth);
    if (choice == 1 && depth < kMaxDepth) return branch(depth);
    if (choice == 2) {
      const Kind kind = some_kind();
      return {Do::kIdentity, {pick(kind)}, {fresh(kind)}};
    }
    const Formula& formula = kFormulas[random_.below(kFormulas.size())];
    return {formula.what, pick_all(formula.reads), {fresh(formula.makes)}};
  }

  Step loop(int depth) {
    const std::vector<Kind> carried = some_kinds(4);
    const std::vector<Kind> forwarded = some_kinds(4);
    Step step{Do::kWhile, {pick(N)}, {}};
    step.flag = random_.below(2) == 0;
    step.num_scans = static_cast<uint32_t>(random_.below(3));
    for (Kind kind : carried) step.reads.push_back(pick(kind));
    const auto with_number = [](std::vector<Kind> kinds) {
      kinds.insert(kinds.begin(), N);
      return kinds;
    };
    step.blocks.push_back(block(with_number(carried), depth + 1, with_number(forwarded)));
    std::vector<Kind> next = carried;
    next.insert(next.end(), step.num_scans, P);
    step.blocks.push_back(block(with_number(forwarded), depth + 1, next));
    for (Kind kind : forwarded) step.makes.push_back(fresh(kind));
    for (uint32_t s = 0; s < step.num_scans; ++s) step.makes.push_back(fresh(R));
    return step;
  }

  Step branch(int depth) {
    const std::vector<Kind> results = some_kinds(3);
    Step step{Do::kCase, {pick(N)}, {}};
    step.flag = random_.below(2) == 0;
    for (Kind kind : results) step.reads.push_back(pick(kind));
    for (uint64_t r = 1 + random_.below(kMaxSelector); r > 0; --r) {
      step.blocks.push_back(block({}, depth + 1, results));
    }
    for (Kind kind : results) step.makes.push_back(fresh(kind));
    return step;
  }

  Random random_;
  const uint64_t max_steps_;
  std::vector<Kind> kinds_;
  std::vector<Var> visible_;
};

// What a program means, in plain C++.
class Interpreter {
 public:
  std::vector<Plain> run(const Block& block, const std::vector<Plain>& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) at(block.parameters[i]) = arguments[i];
    for (const Step& step : block.steps) {
      const std::vector<Plain> made = run(step);
      for (size_t i = 0; i < made.size(); ++i) at(step.makes[i]) = made[i];
    }
    return read(block.results);
  }

 private:
  Plain& at(Var var) {
    if (values_.size() <= var) values_.resize(var + 1);
    return values_[var];
  }
  std::vector<Plain> read(const std::vector<Var>& vars) {
    std::vector<Plain> values;
    for (Var var : vars) values.push_back(at(var));
    return values;
  }

  std::vector<Plain> run(const Step& step) {
    const std::vector<Plain> in = read(step.reads);
    if (step.what == Do::kWhile) return loop(step, in);
    if (step.what == Do::kCase) {
      const auto selector = static_cast<size_t>(in[0].number % (kMaxSelector + 1));
      if (selector < step.blocks.size()) return run(step.blocks[selector], {});
      return step.flag ? std::vector<Plain>(in.begin() + 1, in.end()) : run(step.blocks[0], {});
    }
    return {formula(step.what, in)};
  }

  std::vector<Plain> loop(const Step& step, const std::vector<Plain>& in) {
    std::vector<Plain> carried(in.begin() + 1, in.end());
    std::vector<Plain> stacks(step.num_scans);
    for (int64_t i = 0;; ++i) {
      carried.insert(carried.begin(), Plain{{}, i});
      std::vector<Plain> forwarded = run(step.blocks[0], carried);
      const int64_t until = forwarded[0].number % (kMaxTrips + 1);
      const bool is_limited = step.flag && i >= in[0].number % kMaxTrips;
      if (is_limited || i >= until) {
        forwarded.erase(forwarded.begin());
        forwarded.insert(forwarded.end(), stacks.begin(), stacks.end());
        return forwarded;
      }
      forwarded[0] = Plain{{}, i};
      carried = run(step.blocks[1], forwarded);
      for (size_t s = step.num_scans; s > 0; --s) {
        append(stacks[s - 1].floats, carried.back().floats);
        carried.pop_back();
      }
    }
  }

  static void append(std::vector<float>& to, const std::vector<float>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  static Plain formula(Do what, const std::vector<Plain>& in) {
    Plain out = in[0];
    std::vector<float>& x = out.floats;
    switch (what) {
      case Do::kNeg:
        for (float& v : x) v = -v;
        break;
      case Do::kMax:
        for (size_t i : {0, 1}) x[i] = std::max(x[i], in[1].floats[i]);
        break;
      case Do::kMean:
        for (size_t i : {0, 1}) x[i] = (x[i] + in[1].floats[i]) * 0.5f;
        break;
      case Do::kShift:
        for (float& v : x) v = (v + static_cast<float>(in[1].number)) * 0.5f;
        break;
      case Do::kFirst:
        append(x, in[1].floats), x.resize(2);
        break;
      case Do::kLast:
        x.insert(x.begin(), in[1].floats.begin(), in[1].floats.end());
        x.erase(x.begin(), x.end() - 2);
        break;
      case Do::kAppend:
      case Do::kStack:
      case Do::kInsert:
        append(x, in[1].floats);
        break;
      case Do::kJoin:
        append(x, in[1].floats);
        x.erase(x.begin(), x.end() - std::min<int64_t>(10, static_cast<int64_t>(x.size())));
        break;
      case Do::kErase:
        append(x, in[1].floats), x.erase(x.begin(), x.begin() + 2);
        break;
      case Do::kAdd:
        out.number = (in[0].number + in[1].number) % 7;
        break;
      case Do::kAsk:
        out.number = (in[0].number + 1) % 7;
        break;
      case Do::kCount:
      case Do::kLength:
        return {{}, static_cast<int64_t>(x.size() / 2)};
      default:
        break;
    }
    return out;
  }

  std::vector<Plain> values_;
};

}  // namespace eddy::testing
