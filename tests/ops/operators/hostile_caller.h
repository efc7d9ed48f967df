// HostileCaller: calls of every operator of the standard table, of which most are wrong in one
// place or in all: random attributes, types, shapes and values; or a valid call with a change or
// two.
//
// A seed gives the same calls in the same order. Attributes that are tensors borrow memory of the
// caller's, until its next call.
#pragma once

#include <string>
#include <vector>

#include "graph/base/random.h"
#include "graph/ir/op.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {

class HostileCaller {
 public:
  explicit HostileCaller(uint64_t seed);
  OpCall next() {
    kept_.clear();
    return below(2) == 0 ? random_call() : changed_call();
  }

 private:
  OpCall random_call();
  OpCall changed_call();
  size_t below(uint64_t end) { return static_cast<size_t>(random_.below(end)); }

  Dims shape();
  ElementType element(const FormalInput& input, int opset);
  TestTensor tensor(ElementType type, const Dims& dims, bool may_be_wild = true);
  void add_input(OpCall& call, const FormalInput& input);
  TestValue value(const FormalInput& input, ElementType type, const Dims& dims, bool may_be_wild);
  int64_t integer();
  float real();
  std::string word();
  template <typename T, typename Make>
  std::vector<T> list(Make make);
  void add_attribute(OpCall& call, const FormalAttribute& attribute);

  void change(OpCall& call);
  void change_input(TestValue& input);
  Dims changed(Dims dims);
  void change_attribute(OpCall& call);

  OpTable table_;
  Random random_;
  std::vector<OpCall> valid_;
  std::vector<Dims> shapes_;
  ElementType shared_ = ElementType::kFloat;
  std::vector<TestTensor> kept_;
};

// "Clip 13 float[2,3] - int64[] axis=1".
std::string describe(const OpCall& call);

// EDDY_HOSTILE_CALLS and EDDY_HOSTILE_SEED, which make a test a campaign.
uint64_t number_of_hostile_calls(uint64_t otherwise);
uint64_t hostile_seed();

// Whether all results together have at most 2^16 elements: a session limits their memory, but not
// every test.
bool is_small(const std::vector<ValueType>& types);

using Outcome = Result<std::vector<TestValue>>;
std::string text_of(const Outcome& outcome);

// Expects both to be refused or to give the same; sums of floats may be added up in another order,
// as constants are packed for kernels. Where less is known, a graph may ask for more:
// "must be known" is no other end; nor is a lack of memory; and it may refuse what any sizes but 0
// would break.
void expect_same_end(const Outcome& known, const Outcome& less, const OpCall& call);

}  // namespace eddy::testing
