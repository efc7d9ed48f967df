// Random programs of several ranks: whiles and cases in nests, with collectives inside and beside
// them, and what they mean in plain C++, all ranks in step: nothing here knows of graphs.
//
// Variables are two whole numbers each. Loops and cases that hold collectives agree (all, any,
// root) or are decided by what a collective has made equal; others may be decided by each rank for
// itself. Loops end, by a trip limit that may differ by rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/base/random.h"

namespace eddy::check {

using RankVar = size_t;
using RankValue = std::array<int64_t, 2>;
enum class RankAgree { kNone, kAll, kAny, kRoot };

struct RankBlock;
struct RankStep {
  enum class Do { kAdd, kMax, kRank, kReduce, kBroadcast, kLoop, kCase };
  Do what = Do::kAdd;
  std::string name = {};
  RankVar a = 0, b = 0;  // a: what is reduced; of cases what decides
  int64_t channel = 0;
  int reduction = 0;                // sum, min, max
  std::vector<int64_t> group = {};  // of kReduce, ascending
  int64_t root = 0;                 // of kBroadcast and RankAgree::kRoot
  RankAgree agree = RankAgree::kNone;
  bool meets = false;  // ranks decide as one: it holds collectives
  int64_t limit = 0;   // of loops; and the rank's number, if it varies
  bool limit_varies = false;
  int64_t threshold = 0;
  std::vector<RankVar> initial = {};   // of loops
  std::vector<RankVar> carried = {};   // in `before`
  std::vector<RankVar> received = {};  // in `after`
  std::vector<RankBlock> blocks;       // before, after; or branches
  std::vector<RankVar> made = {};
};
struct RankBlock {
  std::vector<RankStep> steps;
  std::vector<RankVar> results;
};
struct RankProgram {
  uint32_t num_ranks = 2;
  size_t num_vars = 0;
  std::vector<RankVar> inputs;
  RankBlock root;
};

inline int64_t wrap(int64_t x, int64_t m) { return ((x % m) + m) % m; }
constexpr int64_t kRankModulus = 1009;

class RankProgramMaker {
 public:
  RankProgramMaker(uint64_t seed, uint32_t num_ranks, bool has_subsets)
      : random_(seed), has_subsets_(has_subsets) {
    program_.num_ranks = num_ranks;
  }
  RankProgram make() {
    for (int i = 0; i < 3; ++i) program_.inputs.push_back(new_var());
    program_.root = block(program_.inputs, true, 0, 2);
    program_.num_vars = num_vars_;
    return std::move(program_);
  }

 private:
  RankVar new_var() { return num_vars_++; }
  RankVar pick(const std::vector<RankVar>& vars) { return vars[random_.below(vars.size())]; }

  RankStep reduce(const std::vector<RankVar>& visible, bool is_of_all) {
    RankStep step;
    step.what = RankStep::Do::kReduce;
    step.a = pick(visible);
    step.name = "sum" + std::to_string(num_names_++);
    step.channel = static_cast<int64_t>(random_.below(3));
    step.reduction = static_cast<int>(random_.below(3));
    for (uint32_t r = 0; r < program_.num_ranks; ++r) step.group.push_back(r);
    if (!is_of_all && has_subsets_ && program_.num_ranks > 2 && random_.below(2) == 0) {
      step.group.erase(step.group.begin() +
                       static_cast<ptrdiff_t>(random_.below(step.group.size())));
    }
    step.made = {new_var()};
    return step;
  }

  RankBlock block(std::vector<RankVar> visible, bool may_talk, int depth, size_t num_results) {
    RankBlock result;
    const size_t count = 2 + random_.below(depth == 0 ? 7 : 4);
    for (size_t i = 0; i < count; ++i) {
      RankStep step = this->step(visible, may_talk, depth);
      visible.insert(visible.end(), step.made.begin(), step.made.end());
      result.steps.push_back(std::move(step));
    }
    for (size_t i = 0; i < num_results; ++i) result.results.push_back(pick(visible));
    return result;
  }

  RankStep step(const std::vector<RankVar>& visible, bool may_talk, int depth) {
    const uint64_t draw = random_.below(20);
    if (draw < 4 && depth < 4) return loop(visible, may_talk && random_.below(4) > 0, depth);
    if (draw < 7 && depth < 4) return choice(visible, may_talk && random_.below(4) > 0, depth);
    if (draw < 12 && may_talk) return reduce(visible, false);
    RankStep step;
    step.a = pick(visible);
    step.b = pick(visible);
    if (draw < 14 && may_talk) {
      step.what = RankStep::Do::kBroadcast;
      step.name = "cast" + std::to_string(num_names_++);
      step.channel = static_cast<int64_t>(random_.below(3));
      step.root = static_cast<int64_t>(random_.below(program_.num_ranks));
    } else {
      step.what = draw < 17   ? RankStep::Do::kAdd
                  : draw < 19 ? RankStep::Do::kMax
                              : RankStep::Do::kRank;
    }
    step.made = {new_var()};
    return step;
  }

  void decide(RankStep& step, bool meets) {
    step.meets = meets;
    if (!meets) return;
    step.agree = static_cast<RankAgree>(1 + random_.below(3));
    step.root = static_cast<int64_t>(random_.below(program_.num_ranks));
  }

  RankStep loop(const std::vector<RankVar>& visible, bool meets, int depth) {
    RankStep step;
    step.what = RankStep::Do::kLoop;
    step.name = "loop" + std::to_string(num_names_++);
    decide(step, meets);
    step.limit = 1 + static_cast<int64_t>(random_.below(3));
    step.limit_varies = random_.below(3) == 0;
    step.threshold = 2 + static_cast<int64_t>(random_.below(6));
    const size_t num_carried = 1 + random_.below(2);
    for (size_t i = 0; i < num_carried; ++i) {
      step.initial.push_back(pick(visible));
      step.carried.push_back(new_var());
      step.received.push_back(new_var());
    }
    std::vector<RankVar> inside = visible;
    inside.insert(inside.end(), step.carried.begin(), step.carried.end());
    RankBlock before = random_.below(2) == 0 ? RankBlock{} : block(inside, meets, depth + 1, 0);
    before.results = step.carried;
    inside = visible;
    inside.insert(inside.end(), step.received.begin(), step.received.end());
    RankBlock after = block(inside, meets, depth + 1, num_carried);
    // All ranks meet in each turn.
    if (meets) after.steps.push_back(reduce(inside, true));
    step.blocks = {std::move(before), std::move(after)};
    for (size_t i = 0; i < num_carried; ++i) step.made.push_back(new_var());
    return step;
  }

  RankStep choice(const std::vector<RankVar>& visible, bool meets, int depth) {
    RankStep step;
    step.what = RankStep::Do::kCase;
    step.name = "case" + std::to_string(num_names_++);
    step.a = pick(visible);
    decide(step, meets);
    for (int i = 0; i < 2; ++i) {
      step.blocks.push_back(block(visible, meets, depth + 1, 1));
      if (meets) step.blocks.back().steps.push_back(reduce(visible, true));
    }
    step.made = {new_var()};
    return step;
  }

  Random random_;
  const bool has_subsets_;
  RankProgram program_;
  size_t num_vars_ = 0;
  int num_names_ = 0;
};

// All ranks in step.
class RankOracle {
 public:
  // By rank, and by input.
  RankOracle(const RankProgram& program, const std::vector<std::vector<RankValue>>& inputs)
      : program_(program), values_(program.num_ranks) {
    std::vector<size_t> all;
    for (size_t r = 0; r < program.num_ranks; ++r) {
      all.push_back(r);
      values_[r].resize(program.num_vars);
      for (size_t i = 0; i < program.inputs.size(); ++i) {
        values_[r][program.inputs[i]] = inputs[r][i];
      }
    }
    run(program.root, all);
  }
  RankValue result(size_t rank, size_t i) const { return values_[rank][program_.root.results[i]]; }
  uint64_t num_collectives() const { return num_collectives_; }

 private:
  using Ranks = std::vector<size_t>;
  static int64_t sum(const RankValue& value) { return value[0] + value[1]; }

  void run(const RankBlock& block, const Ranks& ranks) {
    for (const RankStep& step : block.steps) run(step, ranks);
  }
  int64_t agree(const RankStep& step, const Ranks& ranks,
                const std::function<int64_t(size_t)>& own) {
    int64_t result =
        own(step.agree == RankAgree::kRoot ? static_cast<size_t>(step.root) : ranks[0]);
    for (const size_t r : ranks) {
      if (step.agree == RankAgree::kAll) result = std::min(result, own(r));
      if (step.agree == RankAgree::kAny) result = std::max(result, own(r));
    }
    return result;
  }
  void run(const RankStep& step, const Ranks& ranks) {
    switch (step.what) {
      case RankStep::Do::kLoop:
      case RankStep::Do::kCase:
        if (step.meets) return control(step, ranks);
        for (const size_t r : ranks) control(step, {r});
        return;
      case RankStep::Do::kReduce:
        return reduce(step, ranks);
      case RankStep::Do::kBroadcast:
        ++num_collectives_;
        for (const size_t r : ranks) {
          values_[r][step.made[0]] = values_[static_cast<size_t>(step.root)][step.a];
        }
        return;
      default:
        break;
    }
    for (const size_t r : ranks) {
      std::vector<RankValue>& v = values_[r];
      for (size_t i = 0; i < 2; ++i) {
        const int64_t a = v[step.a][i], b = v[step.b][i];
        v[step.made[0]][i] = step.what == RankStep::Do::kAdd ? wrap(a + 3 * b, kRankModulus)
                             : step.what == RankStep::Do::kMax
                                 ? std::max(a, b)
                                 : wrap(a + static_cast<int64_t>(r), kRankModulus);
      }
    }
  }
  void reduce(const RankStep& step, const Ranks& ranks) {
    ++num_collectives_;
    RankValue result{};
    for (size_t i = 0; i < 2; ++i) {
      result[i] = values_[static_cast<size_t>(step.group[0])][step.a][i];
      for (size_t k = 1; k < step.group.size(); ++k) {
        const int64_t x = values_[static_cast<size_t>(step.group[k])][step.a][i];
        result[i] = step.reduction == 0   ? result[i] + x
                    : step.reduction == 1 ? std::min(result[i], x)
                                          : std::max(result[i], x);
      }
      result[i] = wrap(result[i], kRankModulus);
    }
    for (const size_t r : ranks) {
      const bool is_in = std::ranges::count(step.group, static_cast<int64_t>(r)) > 0;
      values_[r][step.made[0]] = is_in ? result : values_[r][step.a];
    }
  }
  void control(const RankStep& step, const Ranks& ranks) {
    if (step.what == RankStep::Do::kCase) {
      const auto own = [&](size_t r) { return wrap(sum(values_[r][step.a]), 3); };
      const int64_t chosen = step.meets ? agree(step, ranks, own) : own(ranks[0]);
      const RankBlock& block = step.blocks[chosen == 1 ? 1 : 0];
      run(block, ranks);
      for (const size_t r : ranks) values_[r][step.made[0]] = values_[r][block.results[0]];
      return;
    }
    for (const size_t r : ranks) assign(r, step.initial, step.carried);
    for (int64_t turn = 0;; ++turn) {
      run(step.blocks[0], ranks);
      const auto own = [&](size_t r) -> int64_t {
        const int64_t limit = step.limit + (step.limit_varies ? static_cast<int64_t>(r) : 0);
        return turn < limit && wrap(sum(values_[r][step.carried[0]]), 7) < step.threshold;
      };
      if ((step.meets ? agree(step, ranks, own) : own(ranks[0])) == 0) break;
      for (const size_t r : ranks) assign(r, step.carried, step.received);
      run(step.blocks[1], ranks);
      for (const size_t r : ranks) {
        assign(r, step.blocks[1].results, step.carried);
        for (const RankVar var : step.carried) {
          for (int64_t& x : values_[r][var]) x = wrap(x + 1, kRankModulus);
        }
      }
    }
    for (const size_t r : ranks) assign(r, step.carried, step.made);
  }
  void assign(size_t rank, const std::vector<RankVar>& from, const std::vector<RankVar>& to) {
    std::vector<RankValue> moved;
    for (const RankVar var : from) moved.push_back(values_[rank][var]);
    for (size_t i = 0; i < to.size(); ++i) values_[rank][to[i]] = moved[i];
  }

  const RankProgram& program_;
  std::vector<std::vector<RankValue>> values_;  // by rank and variable
  uint64_t num_collectives_ = 0;
};

}  // namespace eddy::check
