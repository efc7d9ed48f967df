// Claim: a launch runs the program as the ranks that were asked for, with what root needs, on all
// processors; where there is no launcher, one line says what to install.
#include "runtime/mpi/launcher.h"

#include <unistd.h>
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eddy {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

TEST(Launcher, RunsTheProgramAgainUnderTheOneThatWasNamed) {
  auto launch = make_launch({.num_ranks = 3,
                             .mpirun = "/bin/true",
                             .program = "/proc/self/exe",
                             .arguments = {"run", "a model.onnx"}});
  ASSERT_TRUE(launch.is_ok()) << launch.status().to_string();
  EXPECT_EQ(launch->mpirun, "/bin/true");
  EXPECT_THAT(launch->arguments,
              IsSupersetOf({"--quiet", "--oversubscribe", "-n", "3", "run", "a model.onnx"}));
  EXPECT_EQ(launch->arguments.back(), "a model.onnx");
  EXPECT_THAT(launch->arguments, Contains(HasSubstr("launcher_test")));
  if (geteuid() == 0) {
    EXPECT_THAT(launch->environment,
                IsSupersetOf({"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}));
  }
}

TEST(Launcher, WithoutOneTheErrorNamesThePackage) {
  const char* const before = std::getenv("PATH");
  const std::string kept = before == nullptr ? "" : before;
  setenv("PATH", "/nonexistent", 1);
  const Status status = make_launch({}).status();
  setenv("PATH", kept.c_str(), 1);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("openmpi-bin"));
}

TEST(Launcher, OneThatDoesNotRunIsRefusedByItsName) {
  const Status status = make_launch({.mpirun = "/nonexistent/mpirun"}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("/nonexistent/mpirun"));
}

}  // namespace
}  // namespace eddy
