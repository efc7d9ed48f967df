#include "runtime/api/host_predicate.h"

#include <exception>

#include "runtime/api/session_scope.h"

namespace eddy {
namespace {

struct HostState : KernelState {
  const HostFunction* function = nullptr;
  const void* session = nullptr;
  std::string name;
};

Result<int64_t> call(const HostState& state, const KernelArgs& args) {
  SessionScope scope(state.session);
  try {
    return (*state.function)({args.inputs, args.num_inputs});
  } catch (const std::exception& error) {
    return run_failed("host function '" + state.name + "' threw: " + error.what());
  } catch (...) {
    return run_failed("host function '" + state.name + "' threw something");
  }
}

bool run(const KernelArgs& args) {
  const auto& state = *static_cast<const HostState*>(args.state);
  Result<int64_t> decision = call(state, args);
  if (!decision.is_ok()) return args.fail(decision.take_status());
  TensorView& output = args.outputs[0];
  switch (output.element) {
    case ElementType::kBool: *output.mutable_as<bool>() = *decision != 0; return true;
    case ElementType::kInt32: *output.mutable_as<int32_t>() = static_cast<int32_t>(*decision); return true;
    case ElementType::kInt64: *output.mutable_as<int64_t>() = *decision; return true;
    default: return args.fail(internal_error("a host function decides a bool, int32 or int64"));
  }
}

}  // namespace

Result<BoundKernel> bind_host_predicate(const Library& library, const void* session,
                                        const KernelInit& init) {
  auto state = std::make_unique<HostState>();
  state->session = session;
  state->name = std::string(init.attributes.get_string("name", ""));
  state->function = library.host_function_or_null(state->name);
  if (state->function == nullptr) {
    return not_found("there is no host function '" + state->name +
                     "'; add it to the library before the session is made");
  }
  BoundKernel kernel;
  kernel.run = run;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace eddy
