#include "runtime/api/host_predicate.h"

#include <chrono>
#include <exception>
#include <utility>

#include "runtime/api/session_scope.h"

namespace eddy {
namespace {

struct HostState : KernelState {
  const Library::NamedHostFunction* named = nullptr;
  const LogFunction* log = nullptr;
  const void* session = nullptr;
  const void* threads = nullptr;
  std::string name;
};

Result<int64_t> call(const HostState& state, const KernelArgs& args) {
  SessionScope scope(state.session, state.threads);
  try {
    return state.named->function({args.inputs, args.num_inputs});
  } catch (const std::exception& error) {
    return run_failed("host function '" + state.name + "' threw: " + error.what());
  } catch (...) {
    return run_failed("host function '" + state.name + "' threw something");
  }
}

constexpr auto kSlow = std::chrono::microseconds(100);

// A function that may run on the scheduler thread holds up everything there.
Result<int64_t> call_watched(const HostState& state, const KernelArgs& args) {
  const auto start = std::chrono::steady_clock::now();
  Result<int64_t> decision = call(state, args);
  const auto took = std::chrono::steady_clock::now() - start;
  if (took > kSlow && *state.log) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    (*state.log)("host function '" + state.name + "' is declared non-blocking but took " +
                 std::to_string(us) + " µs");
  }
  return decision;
}

Status too_large(const HostState& state, int64_t decision) {
  return run_failed("host function '" + state.name + "' decided " + std::to_string(decision) +
                    ", which its int32 output can't hold; give the node an int64 output");
}

bool run(const KernelArgs& args) {
  const auto& state = *static_cast<const HostState*>(args.state);
  Result<int64_t> decision =
      state.named->options.is_non_blocking ? call_watched(state, args) : call(state, args);
  if (!decision.is_ok()) return args.fail(decision.take_status());
  TensorView& output = args.outputs[0];
  switch (output.element) {
    case ElementType::kBool:
      *output.mutable_as<bool>() = *decision != 0;
      return true;
    case ElementType::kInt32:
      if (!std::in_range<int32_t>(*decision)) return args.fail(too_large(state, *decision));
      *output.mutable_as<int32_t>() = static_cast<int32_t>(*decision);
      return true;
    case ElementType::kInt64:
      *output.mutable_as<int64_t>() = *decision;
      return true;
    default:
      return args.fail(internal_error("a host function decides a bool, int32 or int64"));
  }
}

}  // namespace

Result<BoundKernel> bind_host_predicate(const Library& library, const void* session,
                                        const void* threads, const LogFunction& log,
                                        const KernelInit& init) {
  auto state = std::make_unique<HostState>();
  state->session = session;
  state->threads = threads;
  state->name = std::string(init.attributes.get_string("name", ""));
  state->log = &log;
  state->named = library.host_function_or_null(state->name);
  if (state->named == nullptr) {
    return not_found("there is no host function '" + state->name +
                     "'; add it to the library before the session is made");
  }
  BoundKernel kernel;
  kernel.run = run;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace eddy
