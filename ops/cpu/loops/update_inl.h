// The loops of UpdateParameter; included by one source file for each instruction set.
#pragma once

#include "ops/cpu/loops/elementwise_inl.h"

namespace eddy::cpu {
namespace {

// A form's numbers in the type of the tensors.
template <typename T>
struct UpdateNumbers {
  T rate, share, norm, alpha, rest_of_alpha, beta, rest_of_beta, epsilon, kept;

  explicit UpdateNumbers(const UpdateCall& call)
      : rate(*static_cast<const T*>(call.rate)),
        share(call.share_or_null == nullptr ? T(1) : *static_cast<const T*>(call.share_or_null)),
        norm(static_cast<T>(call.form->norm)),
        alpha(static_cast<T>(call.form->alpha)),
        rest_of_alpha(static_cast<T>(call.form->rest_of_alpha)),
        beta(static_cast<T>(call.form->beta)),
        rest_of_beta(static_cast<T>(call.form->rest_of_beta)),
        epsilon(static_cast<T>(call.form->epsilon)),
        kept(static_cast<T>(call.form->kept)) {}
};

template <typename T>
EDDY_INLINE T over_root(T above, T squares, T epsilon) {
  return above / (scalar::Sqrt::apply(squares, nullptr) + epsilon);
}

// All of an element is read before any of it is written: results may stand where inputs are.
template <UpdateRule kRule, bool kHasNorm, typename T>
void update_body(const UpdateCall& call) {
  const UpdateNumbers<T> n(call);
  const T *x = static_cast<const T*>(call.x), *gradient = static_cast<const T*>(call.gradient);
  const T* first = static_cast<const T*>(call.states[0]);
  const T* second = static_cast<const T*>(call.states[1]);
  T* next = static_cast<T*>(call.next_x);
  T* next_first = static_cast<T*>(call.next_states[0]);
  T* next_second = static_cast<T*>(call.next_states[1]);
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < call.count; ++i) {
    const T old = x[i];
    const T g = kHasNorm ? n.norm * old + gradient[i] : gradient[i];
    if constexpr (kRule == UpdateRule::kDescent) {
      next[i] = old - n.rate * g;
    } else if constexpr (kRule == UpdateRule::kAdagrad) {
      const T squares = first[i] + g * g;
      next_first[i] = squares;
      next[i] = old - n.rate * over_root(g, squares, n.epsilon);
    } else if constexpr (kRule == UpdateRule::kAdam) {
      const T mean = n.alpha * first[i] + n.rest_of_alpha * g;
      const T squares = n.beta * second[i] + n.rest_of_beta * (g * g);
      next_first[i] = mean;
      next_second[i] = squares;
      next[i] = n.kept * (old - n.rate * over_root(mean, squares, n.epsilon));
    } else {
      const T momentum = n.alpha * first[i] + n.share * g;
      constexpr bool kLooksAhead = kRule == UpdateRule::kNesterov;
      next_first[i] = momentum;
      next[i] = old - n.rate * (kLooksAhead ? g + n.alpha * momentum : momentum);
    }
  }
}

template <UpdateRule kRule, typename T>
void update_loop(const UpdateCall& call) {
  (call.form->norm == 0 ? update_body<kRule, false, T> : update_body<kRule, true, T>)(call);
}

template <UpdateRule... kRules>
constexpr void put_updates_of(LoopSet& set) {
  ((set.update[static_cast<int>(kRules)] = {update_loop<kRules, float>,
                                            update_loop<kRules, double>}),
   ...);
}
constexpr void put_update_loops(LoopSet& set) {
  using enum UpdateRule;
  put_updates_of<kDescent, kMomentum, kNesterov, kAdagrad, kAdam>(set);
}

}  // namespace
}  // namespace eddy::cpu
