// Claim: the bits of a network's outputs do not depend on the number of threads: 1, 2, 3, 8 and 64,
// run by run, with networks whose operators fall into tiles.
#include <gtest/gtest.h>

#include <cstring>

#include "examples/nets/net.h"
#include "runtime/api/session.h"

namespace eddy::nets {
namespace {

struct Case {
  const char* name;
  Result<Net> (*build)(const OpTable& ops, Scale scale, uint64_t seed);
  Scale scale;
};

class NetThreadsTest : public ::testing::TestWithParam<Case> {};

std::string bytes_of(const NamedTensors& outputs) {
  std::string bytes;
  for (const auto& [name, value] : outputs) {
    const TensorView view = value.view();
    bytes.append(static_cast<const char*>(view.data), view.size_bytes());
  }
  return bytes;
}

TEST_P(NetThreadsTest, BitsAreTheSame) {
  Library library;
  std::string expected;
  for (const int threads : {1, 2, 3, 8, 64}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    auto net = GetParam().build(library.ops(), GetParam().scale, 5);
    ASSERT_TRUE(net.is_ok()) << net.status().to_string();
    NamedTensors inputs;
    for (const auto& [name, value] : net->inputs) {
      inputs.emplace_back(name, Tensor::copy_of(value.view()));
    }
    SessionOptions options;
    options.num_threads = threads;
    options.folds_norms = true;
    auto session = Session::create(library, std::move(net->graph), options);
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    for (int run = 0; run < 3; ++run) {
      const auto outputs = (*session)->run(inputs);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      const std::string found = bytes_of(*outputs);
      ASSERT_FALSE(found.empty());
      if (expected.empty()) expected = found;
      ASSERT_EQ(found.size(), expected.size());
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0) << "run " << run;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NetThreadsTest,
                         ::testing::Values(Case{"mobilenet_v2", mobilenet_v2, Scale::kFull},
                                           Case{"efficientnet_b0", efficientnet_b0, Scale::kFull},
                                           Case{"lstm", lstm, Scale::kFull},
                                           Case{"decoder", decoder, Scale::kFull},
                                           Case{"bert_base", bert_base, Scale::kSmall},
                                           Case{"nasnet_a_large", nasnet_a_large, Scale::kSmall}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace eddy::nets
