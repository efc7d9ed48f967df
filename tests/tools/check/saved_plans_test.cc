// Claim: a session of a saved plan gives the bits of the session that the plan was saved of, and
// has its fingerprint: random graphs of nested loops and branches, with custom operators, sequences
// and host functions. A file that was changed or cut off anywhere is refused, or runs, and its
// bytes in memory are as it is; so are files whose facts were changed with their fingerprint.
//
// EDDY_CHECK_SEEDS=N runs N seeds, EDDY_CHECK_FIRST=N starts there. With addresses checked:
//   bazel test --config=asan_ubsan --test_env=EDDY_CHECK_SEEDS=10000
//       --test_filter='*ChangedAndCut*' //tests/tools/check:saved_plans_test
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "graph/base/fingerprint.h"
#include "graph/base/random.h"
#include "graph/io/wire_reader.h"
#include "graph/ir/builder.h"
#include "runtime/api/saved_plan.h"
#include "runtime/api/session.h"
#include "tools/check/digest.h"
#include "tools/check/generator.h"
#include "tools/check/hash_ops.h"

namespace eddy::check {
namespace {

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string digests(Session& session, const NamedTensors& inputs) {
  RunOptions options;
  options.timeout = std::chrono::seconds(20);
  const Result<NamedTensors> outputs = session.run(inputs, options);
  if (!outputs.is_ok()) return outputs.status().to_string();
  std::string text;
  for (const auto& [name, value] : *outputs) {
    text += name + " " + std::to_string(digest(value)) + "\n";
  }
  return text;
}

// A graph whose weights are packed by each kernel that packs plain bytes.
Result<RandomCase> packed_case(const Library& library) {
  GraphBuilder b(library.ops());
  Random random(1);
  const auto weights = [&](const Dims& dims) {
    std::vector<float> values(static_cast<size_t>(*dims.count()));
    for (float& value : values) value = static_cast<float>(random.below(200)) / 100 - 1;
    return b.tensor<float>(dims, values);
  };
  const auto bytes = [&](const Dims& dims) {
    std::vector<uint8_t> values(static_cast<size_t>(*dims.count()));
    for (uint8_t& value : values) value = static_cast<uint8_t>(random.below(256));
    return b.tensor<uint8_t>(dims, values);
  };
  NamedTensors inputs;
  const auto input = [&](const std::string& name, const Dims& dims) {
    const std::vector<float> values(static_cast<size_t>(*dims.count()), 0.5f);
    inputs.emplace_back(name, Tensor::of(dims, std::span<const float>(values)));
    return b.input(name, tensor_type(ElementType::kFloat, dims));
  };
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  const Value image = input("image", {1, 32, 24, 24});
  const Value wide = b.op("Conv", {image, weights({32, 32, 3, 3})}, {{"pads", ones}});
  b.output("image_y", b.op("Conv", {wide, weights({16, 32, 1, 1})}));
  b.output("line_y", b.op("Conv", {input("line", {1, 4, 20}), weights({8, 4, 3})}));
  const Value row = input("row", {1, 64});
  b.output("row_y", b.op("MatMul", {row, weights({64, 48})}));
  const Value dequantized = b.op("DequantizeLinear", {bytes({64, 48}), b.scalar(0.01f)});
  b.output("wide_y", b.op("MatMul", {row, dequantized}));
  const Value whole = b.op("Cast", {row}, {{"to", static_cast<int64_t>(ElementType::kUint8)}});
  b.output("whole_y", b.op("MatMulInteger", {whole, bytes({64, 48})}));
  b.output("bits_y", b.op("MatMulNBits", {row, bytes({24, 2, 16}), weights({24 * 2})},
                          {{"K", int64_t{64}}, {"N", int64_t{24}}, {"block_size", int64_t{32}}},
                          {.domain = "com.microsoft"}));
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  return RandomCase{{}, std::move(graph), std::move(inputs)};
}

// The facts in front changed, with the fingerprint that they then have (plan_file.h).
void change_facts(std::string& plan, Random& random) {
  constexpr size_t kMagicBytes = 10, kSumBytes = 32;
  WireReader reader(std::as_bytes(std::span(plan)));
  if (!reader.next() || reader.type() != WireType::kBytes) return;
  const size_t size = reader.bytes().size();
  if (size <= kMagicBytes + kSumBytes) return;
  char* const facts = plan.data() + reader.payload_offset() + kMagicBytes + kSumBytes;
  const size_t facts_size = size - kMagicBytes - kSumBytes;
  for (uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
    facts[random.below(facts_size)] ^= static_cast<char>(1 + random.below(255));
  }
  Fingerprint sum;
  sum.add(std::string_view(facts, facts_size));
  sum.text().copy(facts - kSumBytes, kSumBytes);
}

class SavedPlansTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(add_hash_ops(library_).is_ok()); }
  void TearDown() override { std::remove(path_.c_str()); }

  SessionOptions options_of(uint64_t seed) const {
    SessionOptions options;
    options.num_threads = 2;
    options.simplify = seed % 3 != 0;
    options.loops = seed % 2 == 0 ? Loops::kDevice : Loops::kHost;
    options.assignment = seed % 5 < 2 ? Assignment::kRank : Assignment::kAuto;
    return options;
  }

  std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
  }

  Library library_;
  const std::string path_ = ::testing::TempDir() + "saved_" + std::to_string(getpid()) + ".plan";
};

TEST_F(SavedPlansTest, RandomGraphsGiveTheSameBitsAndFingerprint) {
  const uint64_t first = number("EDDY_CHECK_FIRST", 0), count = number("EDDY_CHECK_SEEDS", 150);
  size_t num_equal = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("EDDY_CHECK_FIRST=" + std::to_string(seed) + " EDDY_CHECK_SEEDS=1");
    GenerateOptions generating;
    generating.may_have_floats = true;
    Result<RandomCase> made = generate(seed, library_, generating);
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    const SessionOptions options = options_of(seed);
    const Status saved = save_plan(library_, made->graph.copy(), options, path_);
    ASSERT_TRUE(saved.is_ok()) << saved.to_string();
    ASSERT_TRUE(check_plan_is_of(path_, made->graph).is_ok());
    auto original = Session::create(library_, std::move(made->graph), options);
    ASSERT_TRUE(original.is_ok()) << original.status().to_string();
    auto loaded = Session::load(library_, path_, options);
    ASSERT_TRUE(loaded.is_ok()) << loaded.status().to_string();
    EXPECT_EQ(digests(**loaded, made->inputs), digests(**original, made->inputs));
    num_equal += (*loaded)->fingerprint() == (*original)->fingerprint();
  }
  EXPECT_EQ(num_equal, count) << "programs of saved plans differ from those that were saved";
}

TEST_F(SavedPlansTest, ChangedAndCutFilesAreRefusedOrRun) {
  const uint64_t first = number("EDDY_CHECK_FIRST", 0), count = number("EDDY_CHECK_SEEDS", 300);
  std::string content;
  NamedTensors inputs;
  size_t num_refused = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("EDDY_CHECK_FIRST=" + std::to_string(seed) + " EDDY_CHECK_SEEDS=1");
    if (seed % 20 == 0 || content.empty()) {
      Result<RandomCase> made = seed % 60 == 0
                                    ? packed_case(library_)
                                    : generate(seed / 20, library_, {.has_floats = true});
      ASSERT_TRUE(made.is_ok()) << made.status().to_string();
      ASSERT_TRUE(save_plan(library_, std::move(made->graph), options_of(seed), path_).is_ok());
      content = read();
      inputs = std::move(made->inputs);
    }
    Random random(seed);
    std::string changed = content;
    if (random.below(3) == 0) change_facts(changed, random);
    if (random.below(4) == 0) changed.resize(random.below(changed.size()));
    for (uint64_t edits = random.below(4); edits > 0 && !changed.empty(); --edits) {
      // Half of them in the first bytes, where facts and the graph are.
      const uint64_t most = random.below(2) == 0 ? changed.size() : changed.size() / 8 + 1;
      changed[random.below(most)] ^= static_cast<char>(1 + random.below(255));
    }
    write(changed);
    const SessionOptions options = {.num_threads = 1};
    auto loaded = seed % 2 == 0
                      ? Session::load(library_, path_, options)
                      : Session::load_bytes(library_, std::as_bytes(std::span(changed)), options);
    num_refused += !loaded.is_ok();
    if (loaded.is_ok()) {
      digests(**loaded, inputs);
    } else {
      EXPECT_NE(loaded.status().message(), "");
    }
  }
  if (count >= 100) {
    EXPECT_GT(num_refused, count / 4);
  }
}

}  // namespace
}  // namespace eddy::check
