#include "runtime/api/host_predicate.h"

#include <atomic>
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

Status keep(const std::string& name, int64_t decision, const TensorView& output) {
  switch (output.element) {
    case ElementType::kBool:
      if (decision != 0 && decision != 1) {
        return run_failed("host function '" + name + "' decided " + std::to_string(decision) +
                          ", but its output is a bool: 0 or 1");
      }
      *output.mutable_as<bool>() = decision != 0;
      return Status::ok();
    case ElementType::kInt32:
      if (!std::in_range<int32_t>(decision)) {
        return run_failed("host function '" + name + "' decided " + std::to_string(decision) +
                          ", which its int32 output can't hold; give the node an int64 output");
      }
      *output.mutable_as<int32_t>() = static_cast<int32_t>(decision);
      return Status::ok();
    case ElementType::kInt64:
      *output.mutable_as<int64_t>() = decision;
      return Status::ok();
    default:
      return internal_error("a host function decides a bool, int32 or int64");
  }
}

bool run(const KernelArgs& args) {
  const auto& state = *static_cast<const HostState*>(args.state);
  Result<int64_t> decision =
      state.named->options.is_non_blocking ? call_watched(state, args) : call(state, args);
  if (!decision.is_ok()) return args.fail(decision.take_status());
  Status status = keep(state.name, *decision, args.outputs[0]);
  return status.is_ok() || args.fail(std::move(status));
}

// What it throws is the answer, unless it has kept the call.
CallOutcome start(const KernelArgs& args, PendingCall& call) {
  const auto& state = *static_cast<const HostState*>(args.state);
  const SessionScope scope(state.session, state.threads);
  const auto shared = std::make_shared<PendingCall>(std::move(call));
  const auto kept = [&args, &state](int64_t decision) {
    return keep(state.name, decision, args.outputs[0]);
  };
  Status thrown;
  try {
    state.named->async({args.inputs, args.num_inputs}, PendingDecision(shared, kept));
  } catch (const std::exception& error) {
    thrown = run_failed("host function '" + state.name + "' threw: " + error.what());
  } catch (...) {
    thrown = run_failed("host function '" + state.name + "' threw something");
  }
  if (!thrown.is_ok() && shared.use_count() == 1) {
    std::atomic_thread_fence(std::memory_order_acquire);  // of what other holders did to it
    if (shared->is_open()) shared->complete(std::move(thrown));
  }
  return CallOutcome::kLater;
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
  if (state->named->async) {
    kernel.start = start;
  } else {
    kernel.run = run;
  }
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace eddy
