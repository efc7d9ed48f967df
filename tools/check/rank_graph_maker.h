// The graph of a RankProgram, as one rank runs it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/builder.h"
#include "ops/schema/eddy/rank_rules.h"
#include "tools/check/rank_program.h"

namespace eddy::check {

// Whether the graph says how its ranks agree, and not the session's options.
inline bool is_marked(const RankStep& step) {
  return step.meets && !step.name.empty() && step.name.back() % 2 == 0;
}

class RankGraphMaker {
 public:
  RankGraphMaker(const RankProgram& program, const OpTable& ops, uint32_t rank)
      : program_(program), rank_(rank), b_(ops), values_(program.num_vars) {}

  Result<Graph> make() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      values_[program_.inputs[i]] =
          b_.input("x" + std::to_string(i), tensor_type(ElementType::kInt64, {2}));
    }
    build(program_.root);
    for (size_t i = 0; i < program_.root.results.size(); ++i) {
      b_.output("y" + std::to_string(i), b_.op("Identity", {values_[program_.root.results[i]]}));
    }
    return b_.finish();
  }

 private:
  Value number(int64_t x) { return b_.scalar(x); }
  Value wrapped(Value x, int64_t modulus) { return b_.op("Mod", {x, number(modulus)}); }
  Value sum(Value x) { return b_.op("ReduceSum", {x}, {{"keepdims", int64_t{0}}}); }

  void build(const RankBlock& block) {
    for (const RankStep& step : block.steps) build(step);
  }
  void build(const RankStep& step) {
    switch (step.what) {
      case RankStep::Do::kAdd:
        values_[step.made[0]] =
            wrapped(b_.op("Add", {values_[step.a], b_.op("Mul", {values_[step.b], number(3)})}),
                    kRankModulus);
        return;
      case RankStep::Do::kMax:
        values_[step.made[0]] = b_.op("Max", {values_[step.a], values_[step.b]});
        return;
      case RankStep::Do::kRank:
        values_[step.made[0]] = wrapped(b_.op("Add", {values_[step.a], own_rank()}), kRankModulus);
        return;
      case RankStep::Do::kReduce:
        return reduce(step);
      case RankStep::Do::kBroadcast:
        values_[step.made[0]] =
            b_.op("Broadcast", {values_[step.a]}, {{"root", step.root}, {"channel", step.channel}},
                  {.name = step.name, .domain = "eddy"});
        return;
      case RankStep::Do::kLoop:
        return loop(step);
      case RankStep::Do::kCase:
        return choice(step);
    }
  }
  Value own_rank() { return b_.op("Rank", {}, {}, {.domain = "eddy"}); }
  void reduce(const RankStep& step) {
    constexpr const char* kNames[] = {"sum", "min", "max"};
    values_[step.made[0]] = values_[step.a];
    if (std::ranges::count(step.group, static_cast<int64_t>(rank_)) == 0) return;
    Attributes attributes = {{"channel", step.channel},
                             {"reduction", std::string(kNames[step.reduction])}};
    if (step.group.size() < program_.num_ranks) attributes.set("group", step.group);
    values_[step.made[0]] = wrapped(
        b_.op("AllReduce", {values_[step.a]}, attributes, {.name = step.name, .domain = "eddy"}),
        kRankModulus);
  }
  std::vector<Value> all(const std::vector<RankVar>& vars) const {
    std::vector<Value> values;
    for (const RankVar var : vars) values.push_back(values_[var]);
    return values;
  }
  void set(const std::vector<RankVar>& vars, ValueSpan values) {
    for (size_t i = 0; i < vars.size() && i < values.size(); ++i) values_[vars[i]] = values[i];
  }
  Value marked(const RankStep& step, Value decision) {
    if (!is_marked(step)) return decision;
    const bool is_root = step.agree == RankAgree::kRoot;
    Attributes attributes = {{"how", std::string(is_root                         ? "root"
                                                 : step.agree == RankAgree::kAll ? "all"
                                                                                 : "any")}};
    if (is_root) attributes.set("root", step.root);
    return b_.op("Agree", {decision}, std::move(attributes), {.domain = "eddy"});
  }
  void loop(const RankStep& step) {
    Value limit = number(step.limit);
    if (step.limit_varies) limit = b_.op("Add", {limit, own_rank()});
    const std::vector<Value> made = b_.while_loop(
        {.name = step.name, .initial = all(step.initial), .trip_limit = limit},
        [&](Value, ValueSpan carried) {
          set(step.carried, carried);
          build(step.blocks[0]);
          const Value test =
              b_.op("Less", {wrapped(sum(values_[step.carried[0]]), 7), number(step.threshold)});
          return WhileTest{marked(step, test), all(step.carried)};
        },
        [&](Value, ValueSpan received) {
          set(step.received, received);
          build(step.blocks[1]);
          std::vector<Value> next;
          for (const Value value : all(step.blocks[1].results)) {
            next.push_back(wrapped(b_.op("Add", {value, number(1)}), kRankModulus));
          }
          return next;
        });
    set(step.made, made);
  }
  void choice(const RankStep& step) {
    std::vector<CaseBody> bodies;
    for (const RankBlock& block : step.blocks) {
      bodies.push_back([this, &block] {
        build(block);
        return all(block.results);
      });
    }
    CaseOptions options{.name = step.name,
                        .selector = marked(step, wrapped(sum(values_[step.a]), 3))};
    options.default_region = 0;
    set(step.made, b_.case_of(options, bodies));
  }

  const RankProgram& program_;
  const uint32_t rank_;
  GraphBuilder b_;
  std::vector<Value> values_;  // by variable
};

// How its loops and cases agree, by name, where its graph does not say it.
inline void add_agreements(const RankBlock& block, std::map<std::string, RankWorld::Agree>& agree) {
  for (const RankStep& step : block.steps) {
    if (step.meets && !is_marked(step)) {
      RankWorld::Agree& own = agree[step.name];
      own.decision = step.agree == RankAgree::kAll   ? RankSkeleton::Decision::kAgreeAll
                     : step.agree == RankAgree::kAny ? RankSkeleton::Decision::kAgreeAny
                                                     : RankSkeleton::Decision::kAgreeRoot;
      own.root = static_cast<uint32_t>(step.root);
    }
    for (const RankBlock& inner : step.blocks) add_agreements(inner, agree);
  }
}

}  // namespace eddy::check
