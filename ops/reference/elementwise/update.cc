// UpdateParameter (ops/schema/eddy/update_form.h): one element after the other.
#include <array>
#include <cmath>
#include <type_traits>

#include "ops/reference/elementwise/elementwise.h"
#include "ops/reference/parts/outputs.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/schema/eddy/update_parameter.h"

namespace eddy {
namespace {

struct UpdateState : KernelState {
  UpdateForm form;
};

// A number of type T in which each operation is rounded to T.
template <typename T>
struct Rounded {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, float>;
  Wide value;

  static Rounded of(Wide wide) { return {static_cast<Wide>(static_cast<T>(wide))}; }
  static Rounded of_attribute(double number) {
    if constexpr (std::is_same_v<T, double>)
      return {number};
    else if constexpr (std::is_same_v<T, float>)
      return {static_cast<float>(number)};
    else
      return of(double_to_float_odd(number));
  }
  friend Rounded operator+(Rounded a, Rounded b) { return of(a.value + b.value); }
  friend Rounded operator-(Rounded a, Rounded b) { return of(a.value - b.value); }
  friend Rounded operator*(Rounded a, Rounded b) { return of(a.value * b.value); }
  friend Rounded operator/(Rounded a, Rounded b) { return of(a.value / b.value); }
  friend Rounded root(Rounded a) { return of(std::sqrt(a.value)); }
};

template <typename N>
struct Element {
  N x, gradient;
  std::array<N, 2> states;
};

// The element behind the step, with its states.
template <typename N>
void update(const UpdateForm& form, N rate, N share, Element<N>& e) {
  const auto number = [](double of) { return N::of_attribute(of); };
  const N g = form.norm == 0 ? e.gradient : number(form.norm) * e.x + e.gradient;
  const auto over_root = [&](N above, N squares) {
    return above / (root(squares) + number(form.epsilon));
  };
  switch (form.rule) {
    case UpdateRule::kDescent:
      e.x = e.x - rate * g;
      return;
    case UpdateRule::kMomentum:
      e.states[0] = number(form.alpha) * e.states[0] + share * g;
      e.x = e.x - rate * e.states[0];
      return;
    case UpdateRule::kNesterov:
      e.states[0] = number(form.alpha) * e.states[0] + share * g;
      e.x = e.x - rate * (g + number(form.alpha) * e.states[0]);
      return;
    case UpdateRule::kAdagrad:
      e.states[0] = e.states[0] + g * g;
      e.x = e.x - rate * over_root(g, e.states[0]);
      return;
    case UpdateRule::kAdam:
      e.states[0] = number(form.alpha) * e.states[0] + number(form.rest_of_alpha) * g;
      e.states[1] = number(form.beta) * e.states[1] + number(form.rest_of_beta) * (g * g);
      e.x = number(form.kept) * (e.x - rate * over_root(e.states[0], e.states[1]));
      return;
  }
}

template <typename T>
struct UpdateParameter {
  static bool run(const KernelArgs& args) {
    using N = Rounded<T>;
    using In = UpdateInputs;
    const UpdateForm& form = static_cast<const UpdateState&>(*args.state).form;
    const auto read = [&](uint32_t input, int64_t i) {
      return N{static_cast<typename N::Wide>(args.inputs[input].as<T>()[i])};
    };
    const auto write = [&](uint32_t output, int64_t i, N number) {
      T* const to = output_or_null<T>(args, output);
      if (to != nullptr) to[i] = static_cast<T>(number.value);
    };
    const N rate = read(In::kRate, 0);
    const N share = args.has_input(In::kShare) ? read(In::kShare, 0) : N::of(1);
    const auto states = static_cast<uint32_t>(num_states(form.rule));
    for (int64_t i = 0; i < args.inputs[In::kX].count(); ++i) {
      Element<N> e{read(In::kX, i), read(In::kGradient, i), {N::of(0), N::of(0)}};
      for (uint32_t s = 0; s < states; ++s) e.states[s] = read(In::kStates + s, i);
      update(form, rate, share, e);
      write(0, i, e.x);
      for (uint32_t s = 0; s < states; ++s) write(1 + s, i, e.states[s]);
    }
    return true;
  }
};

Result<BoundKernel> bind_update(const KernelInit& init) {
  auto state = std::make_unique<UpdateState>();
  EDDY_ASSIGN_OR_RETURN(state->form, parse_update(init.attributes));
  return bind_typed<UpdateParameter, float, double, Float16, Bfloat16>(init, UpdateInputs::kX,
                                                                       std::move(state));
}

}  // namespace

void add_update_reference(KernelRegistry& registry) {
  registry.add(
      {.op = "UpdateParameter", .bind = bind_update, .provider = "reference", .domain = "eddy"});
}

}  // namespace eddy
