// Claim: a session of a saved plan gives the bits of the session that the plan was saved of, and
// has its fingerprint: random graphs of nested loops and branches, with custom operators, sequences
// and host functions. A file that was changed or cut off anywhere is refused, or runs.
//
// EDDY_CHECK_SEEDS=N runs N seeds, EDDY_CHECK_FIRST=N starts there.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "graph/base/random.h"
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
      Result<RandomCase> made = generate(seed / 20, library_, {.has_floats = true});
      ASSERT_TRUE(made.is_ok()) << made.status().to_string();
      ASSERT_TRUE(save_plan(library_, std::move(made->graph), options_of(seed), path_).is_ok());
      content = read();
      inputs = std::move(made->inputs);
    }
    Random random(seed);
    std::string changed = content;
    if (random.below(4) == 0) changed.resize(random.below(changed.size()));
    for (uint64_t edits = random.below(4); edits > 0 && !changed.empty(); --edits) {
      changed[random.below(changed.size())] ^= static_cast<char>(1 + random.below(255));
    }
    write(changed);
    auto loaded = Session::load(library_, path_, {.num_threads = 1});
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
