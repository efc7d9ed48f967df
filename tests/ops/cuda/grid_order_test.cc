// Claim: every kernel of ours waits for the grids before it, first of all, in each source that makes
// kernels; so all of them may be launched programmatically.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace eddy::testing {
namespace {

using ::testing::StartsWith;
namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// From its first brace on, without what a macro needs at the ends of lines.
std::string body_at(const std::string& source, size_t at) {
  std::string body = source.substr(source.find('{', at) + 1, 400);
  std::erase(body, '\\');
  std::erase(body, '\n');
  return body.substr(body.find_first_not_of(' '));
}

TEST(GridOrder, EveryKernelWaitsFirst) {
  int num_kernels = 0;
  for (const auto& entry : fs::directory_iterator("ops/cuda")) {
    const std::string source = text_of(entry.path());
    for (size_t at = source.find("__global__"); at != std::string::npos;
         at = source.find("__global__", at + 1)) {
      std::string body = body_at(source, at);
      if (body.starts_with("eddy::cuda::")) body.erase(0, 12);
      EXPECT_THAT(body, StartsWith("await_earlier_grids();")) << entry.path();
      ++num_kernels;
    }
  }
  EXPECT_GE(num_kernels, 6) << "the sources are not there";
}

TEST(GridOrder, AKernelThatRunsLongLetsNobodyWait) {
  const std::string source = text_of("ops/cuda/persistent_inl.h");
  EXPECT_EQ(source.find("let_next_grid_wait"), std::string::npos);
}

}  // namespace
}  // namespace eddy::testing
