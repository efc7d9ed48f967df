// Claim: whatever attributes, types, shapes and values a call has, each operator of the table ends
// in a result or in an error of one line, by the plain kernels and by the fast ones; and whatever
// is known of its inputs when it is built into a graph, it ends alike.
//
// EDDY_HOSTILE_CALLS sets how many calls are made, EDDY_HOSTILE_SEED from which seed; both are
// printed. A call that ends the process is named before it does.
#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ops/schema/standard.h"
#include "tests/ops/operators/function_calls.h"
#include "tests/ops/operators/hostile_caller.h"

namespace eddy::testing {
namespace {

char current[4096];  // the call that is being made

void name_call(int signal) {
  const ssize_t ignored = write(STDERR_FILENO, current, strnlen(current, sizeof(current)));
  static_cast<void>(ignored);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void expect_one_line(const Status& status, const OpCall& call) {
  if (status.is_ok()) return;
  const std::string& message = status.message();
  EXPECT_FALSE(message.empty()) << describe(call);
  EXPECT_EQ(message.find('\n'), std::string::npos) << describe(call) << ": " << message;
  EXPECT_NE(status.code(), StatusCode::kInternal) << describe(call) << ": " << message;
}

// Makes calls until one fails its expectations; `make_one` says whether a call gave a result.
// Most are refused; of so many one must not be.
template <typename MakeOne>
void make_calls(uint64_t one_of, const MakeOne& make_one) {
  const uint64_t num_calls = number_of_hostile_calls(20'000);
  const uint64_t seed = hostile_seed();
  std::cout << num_calls << " calls from seed " << seed << std::endl;
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, name_call);
  HostileCaller caller(seed);
  uint64_t num_run = 0;
  for (uint64_t i = 0; i < num_calls && !::testing::Test::HasFailure(); ++i) {
    const OpCall call = caller.next();
    std::snprintf(current, sizeof(current), "call %llu: %s\n", static_cast<unsigned long long>(i),
                  describe(call).c_str());
    num_run += make_one(call);
  }
  std::cout << num_run << " ran" << std::endl;
  EXPECT_GT(num_run, num_calls / one_of);
}

TEST(HostileCalls, EndInAResultOrInOneLine) {
  make_calls(50, [](const OpCall& call) {
    const auto types = infer_op(call);
    expect_one_line(types.status(), call);
    if (!types.is_ok() || !is_small(*types)) return false;
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      expect_one_line(run_op(call, kernels).status(), call);
    }
    return true;
  });
}

enum class Values { kAll, kOfSizes, kNone };  // of tensors, which are known when it is built

Outcome run_knowing(OpCall call, Known known, Values values) {
  const OpDef* const def = find_op(call);
  call.known = known;
  call.constant_inputs = 0;
  for (size_t i = 0; i < std::min<size_t>(call.inputs.size(), 64); ++i) {
    const bool is_host = has_flag(def->input_flags(i), InputFlag::kHostValue);
    const bool is_known = values == Values::kAll || (values == Values::kOfSizes && is_host);
    const bool is_tensor = call.inputs[i].kind == TestValue::Kind::kTensor;
    if (is_known && is_tensor) call.constant_inputs |= uint64_t{1} << i;
  }
  return run_op(call, KernelSet::kCpu);
}

TEST(HostileCalls, EndAlikeWhateverIsKnownOfThem) {
  make_calls(20, [](const OpCall& call) {
    const auto types = infer_op(call);
    if (types.is_ok() && !is_small(*types)) return false;
    const Outcome known = run_knowing(call, Known::kShapes, Values::kOfSizes);
    expect_same_end(known, run_knowing(call, Known::kShapes, Values::kAll), call);
    expect_same_end(known, run_knowing(call, Known::kRanks, Values::kNone), call);
    expect_same_end(known, run_knowing(call, Known::kNothing, Values::kNone), call);
    return known.is_ok();
  });
}

// Every function but those between ranks has a valid call to start from.
TEST(HostileCalls, StartFromAValidCallOfEachFunction) {
  OpTable table;
  ASSERT_TRUE(add_standard_schemas(table).is_ok());
  Random random(hostile_seed());
  std::set<const OpDef*> called;
  for (const OpCall& call : function_calls(random)) {
    const OpDef* const def = table.find_or_null(call.domain, call.op, call.opset);
    ASSERT_TRUE(def != nullptr && def->expand != nullptr) << describe(call);
    called.insert(def);
    const Outcome outcome = run_op(call, KernelSet::kCpu);
    EXPECT_TRUE(outcome.is_ok()) << describe(call) << ": " << text_of(outcome);
  }
  for (const auto& def : table.all()) {
    const bool is_between_ranks = std::string_view(def->name).starts_with("All");
    if (def->expand == nullptr || is_between_ranks) continue;
    EXPECT_TRUE(called.contains(def.get()))
        << def->domain << "." << def->name << " since " << def->since_version;
  }
}

}  // namespace
}  // namespace eddy::testing
