// Claim: a call of any operator, mostly a wrong or an odd one, that both Eddy and ONNX Runtime
// answer has one answer, but for those that kDifferences lists, each with its reason; and
// the half of it that is Eddy's ends no process.
//
// Calls are made in processes of their own, as ONNX Runtime ends some. EDDY_HOSTILE_CALLS and
// EDDY_HOSTILE_SEED make it a campaign; both are printed.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ops/operators/hostile_caller.h"
#include "tests/tools/bench/rival.h"

namespace eddy::testing {
namespace {

enum class Phase { kOurs, kTheirs, kDone };

// What a process that makes calls leaves, also when it dies.
struct Shared {
  uint64_t index;  // of the call that is being made
  Phase phase;
  uint64_t num_ours, num_both;
  size_t size;  // of `lines`
  char call[2048];
  char lines[1 << 20];  // a difference each

  void add_line(const std::string& line) {
    const std::string text = line + '\n';
    if (size + text.size() > sizeof(lines)) return;
    std::memcpy(lines + size, text.data(), text.size());
    size += text.size();
  }
};

using Predicate = bool (*)(const OpCall& call);

bool always(const OpCall&) { return true; }
bool has_empty_input(const OpCall& call) {
  return std::ranges::any_of(call.inputs, [](const TestValue& input) {
    return input.kind == TestValue::Kind::kTensor && input.tensor().count() == 0;
  });
}
bool is_of_integers(const OpCall& call) {
  return !kFloatTypes.contains(call.inputs[0].tensor().element());
}

bool is_not_periodic(const OpCall& call) { return call.attributes.get_int("periodic", 1) == 0; }
constexpr const char* kOfOne = "a window of one sample is 0 / 0 in the standard, and a number here";

bool names_no_axes(const OpCall& call) {
  const bool is_attribute = call.attributes.has("axes");
  return is_attribute ? call.attributes.get_ints("axes").empty() : has_empty_input(call);
}
bool is_causal_with_other_keys(const OpCall& call) {
  if (call.attributes.get_int("unidirectional", 0) == 0) return false;
  if (call.inputs.size() < 2 || call.inputs[1].kind != TestValue::Kind::kTensor) return false;
  const Dims query = call.inputs[0].tensor().dims(), key = call.inputs[1].tensor().dims();
  return key.rank() < 3 || key[key.rank() == 4 ? 2 : 1] != query[1];
}

// What both answer, but differently, and why Eddy stays with its answer.
struct Difference {
  std::string_view op;  // the begin of its name
  Predicate applies;
  const char* why;
};
constexpr Difference kDifferences[] = {
    {"Bernoulli", always, "random"},
    {"Dropout", always, "random"},
    {"Multinomial", always, "random"},
    {"Random", always, "random"},
    {"Cast", [](const OpCall& call) { return !is_of_integers(call); },
     "what does not fit an integer is left to each runtime"},
    {"Pow", is_of_integers, "what does not fit an integer is left to each runtime"},
    {"Shrink", is_of_integers, "what does not fit an integer is left to each runtime"},
    {"ReduceLogSum", is_of_integers, "logarithms of integers are cut off, and of 0 fit none"},
    {"Reduce", has_empty_input, "of nothing a mean is no number, and axes that are kept stay"},
    {"Arg", has_empty_input, "axes that are kept have one index, also of nothing"},
    {"ConvInteger", has_empty_input, "ONNX Runtime leaves its result unwritten"},
    {"ConvTranspose", has_empty_input, "an empty image has an empty result"},
    {"NonZero", [](const OpCall& call) { return call.inputs[0].tensor().dims().rank() == 0; },
     "the standard: a scalar has places of no axes"},
    {"MaxUnpool", [](const OpCall& call) { return call.inputs.size() > 2; },
     "the standard's test: places are those of the size without output_shape"},
    {"MeanVarianceNormalization", always, "the standard: 1e-9 is added, also where all are equal"},
    {"Squeeze", names_no_axes, "an empty list of axes names none; ONNX Runtime takes all"},
    {"TopK", [](const OpCall& call) { return call.attributes.get_int("sorted", 1) == 0; },
     "in any order"},
    {"BatchNormalization",
     [](const OpCall& call) { return call.attributes.get_float("epsilon", 1) < 0; },
     "a variance below 0 has no root"},
    {"BlackmanWindow", is_not_periodic, kOfOne},
    {"HammingWindow", is_not_periodic, kOfOne},
    {"HannWindow", is_not_periodic, kOfOne},
    {"MultiHeadAttention", is_causal_with_other_keys,
     "ONNX Runtime's last query sees all keys, also where these are more than queries"},
};

bool is_known(const OpCall& call) {
  return std::ranges::any_of(kDifferences, [&](const Difference& known) {
    return call.op.starts_with(known.op) && known.applies(call);
  });
}

// Where numbers have no end, are huge or next to nothing, runtimes differ by the order of their
// operations.
bool is_tame(double number) {
  return number == 0 || (std::fabs(number) <= 1e4 && std::fabs(number) >= 1e-12);
}
bool is_tame(const OpCall& call) {
  for (const auto& [name, value] : call.attributes.entries()) {
    const auto* const one = std::get_if<float>(&value);
    const auto* const all = std::get_if<std::vector<float>>(&value);
    if (one != nullptr && (*one == 0 || !is_tame(*one))) return false;
    if (all != nullptr && !std::ranges::all_of(*all, [](float f) { return is_tame(f); })) {
      return false;
    }
  }
  for (const TestValue& input : call.inputs) {
    if (input.kind != TestValue::Kind::kTensor) continue;
    const TestTensor& tensor = input.tensor();
    for (int64_t i = 0; kFloatTypes.contains(tensor.element()) && i < tensor.count(); ++i) {
      if (!is_tame(number_at(tensor.view(), i))) return false;
    }
  }
  return true;
}

// Sequences and optionals are left out, and 4- and 2-bit numbers, which ONNX Runtime packs.
bool is_of_tensors(const OpCall& call) {
  for (const TestValue& input : call.inputs) {
    const bool is_tensor = input.kind == TestValue::Kind::kTensor && !input.is_optional;
    if (!is_tensor && input.kind != TestValue::Kind::kOmitted) return false;
    if (kPackedTypes.contains(input.element)) return false;
  }
  return call.inputs.size() < 64;
}

class RivalHostileTest : public RivalTest {
 protected:
  RivalHostileTest()
      : shared_(static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~RivalHostileTest() override { munmap(shared_, sizeof(Shared)); }

  void make_call(const OpCall& call) {
    const auto types = infer_op(call);
    if (!is_of_tensors(call) || !types.is_ok() || !is_small(*types)) return;
    if (!is_tame(call) || is_known(call)) return;
    const Outcome ours = run_op(call, KernelSet::kCpu);
    if (!ours.is_ok()) return;
    ++shared_->num_ours;
    std::vector<ElementType> elements;
    for (const TestValue& value : *ours) {
      if (value.kind != TestValue::Kind::kTensor || kPackedTypes.contains(value.element)) return;
      elements.push_back(value.element);
    }
    shared_->phase = Phase::kTheirs;
    const auto theirs = run_rival(call, elements);
    if (!theirs.is_ok()) return;
    ++shared_->num_both;
    for (size_t o = 0; o < theirs->size(); ++o) {
      const TestTensor& mine = (*ours)[o].tensor();
      // What training would read; ONNX Runtime leaves it unwritten.
      if (call.op.find("LayerNormalization") != std::string::npos && (o == 1 || o == 2)) continue;
      const bool is_narrow = element_bits(mine.element()) < 32;
      const double tolerance = is_narrow ? 2e-2 : 1e-3;
      auto same = is_close(mine, (*theirs)[o], tolerance, tolerance);
      if (!same && call.op.starts_with("QLinear")) same = is_within(mine, (*theirs)[o], 1);
      if (same) continue;
      shared_->add_line("call " + std::to_string(shared_->index) + ": " + describe(call) +
                        ": output " + std::to_string(o) + ": " + same.message());
      return;
    }
  }

  // Makes calls from the shared index on, in a process; whether it came to the end.
  bool make_calls(uint64_t num_calls, uint64_t seed) {
    const pid_t child = fork();
    if (child == 0) {
      HostileCaller caller(seed);
      for (uint64_t i = 0; i < num_calls; ++i) {
        const OpCall call = caller.next();
        if (i < shared_->index) continue;
        shared_->index = i;
        shared_->phase = Phase::kOurs;
        std::snprintf(shared_->call, sizeof(shared_->call), "%s", describe(call).c_str());
        make_call(call);
      }
      shared_->phase = Phase::kDone;
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return shared_->phase == Phase::kDone;
  }

  Shared* const shared_;
};

TEST_F(RivalHostileTest, BothGiveOneAnswer) {
  const uint64_t num_calls = number_of_hostile_calls(3'000);
  const uint64_t seed = hostile_seed();
  std::cout << num_calls << " calls from seed " << seed << std::endl;
  uint64_t num_ended = 0;
  while (!make_calls(num_calls, seed)) {
    ASSERT_EQ(shared_->phase, Phase::kTheirs) << "call " << shared_->index << ": " << shared_->call;
    ++num_ended;
    ++shared_->index;
  }
  std::cout << shared_->num_ours << " results, " << shared_->num_both << " of both, " << num_ended
            << " processes that ONNX Runtime ended" << std::endl;
  EXPECT_GT(shared_->num_both, num_calls / 20);
  EXPECT_EQ(shared_->size, 0U) << std::string(shared_->lines, shared_->size);
}

}  // namespace
}  // namespace eddy::testing
