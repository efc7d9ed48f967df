// Claim: a model of one operator, mostly a wrong one, ends alike by sessions that know all sizes,
// none of them, or which are equal: all refuse it, when they are made or in the run, or all give
// the same bits.
//
// EDDY_HOSTILE_CALLS and EDDY_HOSTILE_SEED make it a campaign; both are printed.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/session.h"
#include "tests/ops/operators/hostile_caller.h"

namespace eddy {
namespace {

using testing::OpCall;
using testing::Outcome;
using testing::TestTensor;
using testing::TestValue;

enum class Sizes {
  kKnown,    // and the content of inputs that decide shapes
  kUnknown,  // each a `?`
  kNamed,    // a symbol for each size
  kAlone,    // a symbol for each dimension
};

ValueType type_of(GraphBuilder& b, const TestValue& value, size_t input, Sizes sizes) {
  ValueType type = value.type();
  for (int axis = 0; axis < type.tensor.dims.rank(); ++axis) {
    int64_t& dim = type.tensor.dims[axis];
    if (sizes == Sizes::kUnknown) dim = kUnknownDim;
    if (sizes == Sizes::kNamed) dim = b.symbol("n" + std::to_string(dim));
    if (sizes == Sizes::kAlone) {
      dim = b.symbol("d" + std::to_string(input) + "_" + std::to_string(axis));
    }
  }
  return type;
}

TestValue value_of(const Tensor& tensor) {
  if (!tensor.is_tensor()) return TestValue::none(tensor.element_type());
  return TestValue(TestTensor::copy_of(tensor.view()));
}

class HostileCallsTest : public ::testing::Test {
 protected:
  Outcome run(OpCall call, Sizes sizes) {
    GraphBuilder b(library_.ops());
    const OpDef* const def = testing::find_op(call);
    std::vector<ValueType> types;
    NamedTensors inputs;
    call.constant_inputs = 0;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const TestValue& value = call.inputs[i];
      types.push_back(value.kind == TestValue::Kind::kOmitted ? ValueType()
                                                              : type_of(b, value, i, sizes));
      if (value.kind == TestValue::Kind::kOmitted) continue;
      if (sizes == Sizes::kKnown && has_flag(def->input_flags(i), InputFlag::kHostValue)) {
        call.constant_inputs |= uint64_t{1} << i;
      } else {
        inputs.emplace_back("input_" + std::to_string(i), Tensor::borrow(value.tensor().view()));
      }
    }
    EDDY_ASSIGN_OR_RETURN(Graph graph, testing::graph_of_call(b, call, types));
    SessionOptions options;
    options.threads = threads_;
    options.memory_limit_bytes = size_t{64} << 20;
    options.shares_program = false;
    EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library_, std::move(graph), options));
    EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session->run(inputs));
    std::vector<TestValue> values;
    for (const auto& [name, tensor] : outputs) values.push_back(value_of(tensor));
    return values;
  }

  // Sequences and optionals are left out; so is what the test for them all runs without a session.
  static bool is_of_tensors(const OpCall& call) {
    for (const TestValue& input : call.inputs) {
      const bool is_tensor = input.kind == TestValue::Kind::kTensor && !input.is_optional;
      if (!is_tensor && input.kind != TestValue::Kind::kOmitted) return false;
    }
    return call.inputs.size() < 64;
  }

  Library library_;
  std::shared_ptr<SharedThreads> threads_ = std::make_shared<SharedThreads>(1);
};

TEST_F(HostileCallsTest, EndAlikeWhateverIsKnownOfTheirSizes) {
  const uint64_t num_calls = testing::number_of_hostile_calls(3'000);
  const uint64_t seed = testing::hostile_seed();
  std::cout << num_calls << " calls from seed " << seed << std::endl;
  testing::HostileCaller caller(seed);
  uint64_t num_run = 0;
  for (uint64_t i = 0; i < num_calls && !HasFailure(); ++i) {
    const OpCall call = caller.next();
    if (!is_of_tensors(call)) continue;
    const auto types = testing::infer_op(call);
    if (types.is_ok() && !testing::is_small(*types)) continue;
    SCOPED_TRACE("call " + std::to_string(i));
    const Outcome known = run(call, Sizes::kKnown);
    num_run += known.is_ok();
    for (const Sizes sizes : {Sizes::kUnknown, Sizes::kNamed, Sizes::kAlone}) {
      testing::expect_same_end(known, run(call, sizes), call);
    }
  }
  std::cout << num_run << " gave results" << std::endl;
  EXPECT_GT(num_run, num_calls / 20);
}

}  // namespace
}  // namespace eddy
