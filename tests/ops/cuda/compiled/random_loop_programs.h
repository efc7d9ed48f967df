// random_loop_program: seeded programs of persistent loops: carried values that permute, stay or
// are made anew, elementwise steps that broadcast, views, reductions of short and long rows, a
// counted iteration, a predicate that the values make or that the host gives.
#pragma once

#include <string>
#include <vector>

#include "graph/base/random.h"
#include "graph/ir/loop_program.h"
#include "ops/cuda/text/persistent_text.h"

namespace eddy::testing {

class RandomLoopMaker {
 public:
  explicit RandomLoopMaker(Random& random) : random_(random) {}

  LoopProgram make() {
    const Dims wide[] = {{4}, {2, 3}, {33}, {5, 64}, {300}, {2, 260}, {1024}, {1}};
    shape_ = wide[random_.below(std::size(wide))];
    const uint64_t num_carried = 1 + random_.below(4);
    p_.num_inputs = static_cast<uint32_t>(num_carried + 1 + random_.below(2));
    for (uint32_t i = 0; i < p_.num_inputs; ++i) add(i < num_carried ? shape_ : cut());
    p_.num_given = 1;
    const uint32_t given = add({}, ElementType::kBool);
    for (uint32_t k = 0; k < num_carried; ++k) p_.carried.push_back({add(shape_), k, 0});
    if (random_.below(2) == 0) p_.iteration = add({}, ElementType::kInt64);
    for (uint32_t v = 0; v < p_.values.size(); ++v) known_.push_back(v);
    fill(p_.before, random_.below(4));
    p_.predicate = random_.below(4) == 0 ? given : test(p_.before);
    const std::vector<uint32_t> made_before = known_;
    fill(p_.after, 1 + random_.below(6));
    for (auto& each : p_.carried) each.next = any(shape_);
    known_ = made_before;
    for (uint64_t r = 1 + random_.below(3); r > 0; --r) p_.results.push_back(any_float());
    return std::move(p_);
  }

 private:
  // The shape, one row or column of it, or one element.
  Dims cut() {
    Dims dims = shape_;
    const uint64_t form = random_.below(4);
    for (int d = 0; d < dims.rank(); ++d) {
      if (form == 3 || (form == 1 && d == 0) || (form == 2 && d + 1 == dims.rank())) dims[d] = 1;
    }
    return dims;
  }
  bool broadcasts(const Dims& dims) const {
    if (dims.rank() > shape_.rank()) return false;
    for (int d = 0; d < dims.rank(); ++d) {
      const int64_t to = shape_[shape_.rank() - dims.rank() + d];
      if (dims[d] != 1 && dims[d] != to) return false;
    }
    return true;
  }
  uint32_t add(const Dims& dims, ElementType element = ElementType::kFloat) {
    const auto number = static_cast<uint32_t>(p_.values.size());
    p_.values.push_back({element, dims, number});
    return number;
  }
  // Known values of floats, the newer ones more often.
  uint32_t any_float() {
    for (;;) {
      const size_t from = random_.below(2) == 0 ? known_.size() / 2 : 0;
      const uint32_t value = known_[from + random_.below(known_.size() - from)];
      if (p_.values[value].element == ElementType::kFloat) return value;
    }
  }
  uint32_t any(const Dims& dims) {
    for (;;) {
      const uint32_t value = any_float();
      if (p_.values[value].dims == dims) return value;
    }
  }
  uint32_t made(std::vector<LoopProgram::Step>& steps, LoopProgram::Step step, const Dims& dims,
                ElementType element = ElementType::kFloat) {
    const uint32_t result = step.result = add(dims, element);
    known_.push_back(result);
    steps.push_back(std::move(step));
    return result;
  }
  LoopProgram::Step elementwise(std::vector<uint32_t> arguments, const std::string& text) {
    LoopProgram::Step step;
    step.expression = std::move(*parse_expression(text, static_cast<uint32_t>(arguments.size())));
    step.arguments = std::move(arguments);
    return step;
  }
  uint32_t reduced(std::vector<LoopProgram::Step>& steps) {
    static constexpr const char* kOps[] = {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean",
                                           "ReduceL2"};
    LoopProgram::Step step;
    step.reduction = kOps[random_.below(std::size(kOps))];
    step.arguments = {any_float()};
    Dims dims = p_.values[step.arguments[0]].dims;
    step.axes = static_cast<uint32_t>(1 + random_.below((uint64_t{1} << dims.rank()) - 1));
    for (int d = 0; d < dims.rank(); ++d) {
      if ((step.axes >> d & 1) != 0) dims[d] = 1;
    }
    return made(steps, std::move(step), dims);
  }
  uint32_t test(std::vector<LoopProgram::Step>& steps) {
    LoopProgram::Step sum;
    sum.reduction = "ReduceMean";
    sum.arguments = {p_.carried[0].parameter};
    sum.axes = (1u << shape_.rank()) - 1;
    Dims one;
    const uint32_t value = made(steps, std::move(sum), one);
    const uint32_t bound = reduced_to_one(steps);
    const char* const text = random_.below(2) == 0 ? "Less_f32 0 1" : "Greater_f32 0 1";
    return made(steps, elementwise({value, bound}, text), one, ElementType::kBool);
  }
  uint32_t reduced_to_one(std::vector<LoopProgram::Step>& steps) {
    LoopProgram::Step step;
    step.reduction = "ReduceMax";
    step.arguments = {any_float()};
    step.axes = (1u << p_.values[step.arguments[0]].dims.rank()) - 1;
    return made(steps, std::move(step), {});
  }

  void fill(std::vector<LoopProgram::Step>& steps, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      switch (random_.below(6)) {
        case 0:
          reduced(steps);
          break;
        case 1: {  // the same memory with other dimensions
          const uint32_t of = any(shape_);
          const uint32_t view = add({*shape_.count(), 1});
          p_.values[view].memory = p_.values[of].memory;
          known_.push_back(view);
          break;
        }
        case 2:
          if (p_.iteration != LoopProgram::kNone) {
            const uint32_t number = made(steps, elementwise({p_.iteration}, "Cast_i64_f32 0"), {});
            const uint32_t first = any(shape_);
            made(steps, elementwise({first, number}, "Add_f32 0 1"), shape_);
          }
          break;
        case 3:
          made(steps, elementwise({any(shape_)}, "Tanh_f32 0; Abs_f32 1"), shape_);
          break;
        default: {
          const char* const texts[] = {"Add_f32 0 1", "Mul_f32 0 1; Tanh_f32 2", "Sub_f32 1 0",
                                       "Max_f32 0 1; Neg_f32 2; Add_f32 3 0"};
          const uint32_t first = any(shape_);
          uint32_t other = any_float();
          if (!broadcasts(p_.values[other].dims)) other = any(shape_);
          made(steps, elementwise({first, other}, texts[random_.below(4)]), shape_);
        }
      }
    }
  }

  Random& random_;
  LoopProgram p_;
  Dims shape_;
  std::vector<uint32_t> known_;
};

// One that a block can hold.
inline LoopProgram random_loop_program(Random& random) {
  for (;;) {
    LoopProgram program = RandomLoopMaker(random).make();
    if (cuda::loop_memory_bytes(program) <= cuda::kMostLoopBytes) return program;
  }
}

}  // namespace eddy::testing
