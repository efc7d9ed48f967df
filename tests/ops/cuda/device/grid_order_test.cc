// Claim: every kernel of ours waits for the grids before it, first of all, in each source that
// makes kernels; so all of them may be launched programmatically. Every one that computes values
// reads its guard next, before it reads or writes anything; so all of them may be called off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
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
  for (const auto& entry : fs::recursive_directory_iterator("ops/cuda")) {
    if (!entry.is_regular_file()) continue;
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

// Exceptions are the kernels of loop_control.h, which receive the guard in their parameters, and a
// persistent loop, which no body holds.
TEST(GridOrder, EveryKernelThatComputesCanBeCalledOff) {
  int num_kernels = 0;
  for (const auto& entry : fs::recursive_directory_iterator("ops/cuda")) {
    const std::string name = entry.path().filename().string();
    if (name == "loop_control.cu" || name == "persistent_inl.h") continue;
    const std::string source = text_of(entry.path());
    for (size_t at = source.find("__global__"); at != std::string::npos;
         at = source.find("__global__", at + 1)) {
      const std::string head = source.substr(at, source.find('{', at) - at);
      EXPECT_THAT(head, HasSubstr("const unsigned* guard)")) << entry.path();
      std::string body = body_at(source, at);
      for (size_t colons; (colons = body.find("eddy::cuda::")) != std::string::npos;) {
        body.erase(colons, 12);
      }
      std::erase(body, ' ');
      EXPECT_THAT(body, StartsWith("await_earlier_grids();let_next_grid_wait();"
                                   "if(is_called_off(guard))return;"))
          << entry.path();
      ++num_kernels;
    }
  }
  EXPECT_EQ(num_kernels, 3) << "threads, blocks, fused";
}

TEST(GridOrder, AKernelThatRunsLongLetsNoGridWait) {
  const std::string source = text_of("ops/cuda/compiled/persistent_inl.h");
  EXPECT_EQ(source.find("let_next_grid_wait"), std::string::npos);
}

}  // namespace
}  // namespace eddy::testing
