// Claim: a job's folder goes with it; what a launcher left that was killed is removed by the next,
// and nothing that another holds, that is young, or that has another name.
#include "runtime/mpi/job_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ctime>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eddy {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::StartsWith;

class JobFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    parent_ = ::testing::TempDir() + "/job_folders";
    fs::remove_all(parent_);
    fs::create_directories(parent_);
  }
  std::string make(const std::string& name, int seconds_old) const {
    std::string path = parent_ + "/" + name;
    fs::create_directories(path + "/inside");
    const timespec then = {std::time(nullptr) - seconds_old, 0};
    const timespec times[] = {then, then};
    utimensat(AT_FDCWD, path.c_str(), times, 0);
    return path;
  }
  std::string parent_;
};

TEST_F(JobFolderTest, GoesWithAllThatIsInIt) {
  std::string path;
  {
    const JobFolder folder({"/nonexistent", parent_});
    path = folder.path();
    EXPECT_THAT(path, StartsWith(parent_ + "/eddy-job-"));
    fs::create_directories(path + "/inside");
    std::vector<std::string> environment;
    folder.add_variables(environment);
    EXPECT_THAT(environment, Contains("OMPI_MCA_btl_vader_backing_directory=" + path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(JobFolderTest, RemovesWhatIsSurelyLeft) {
  const std::string left = make("eddy-job-left00", 60);
  const std::string young = make("eddy-job-young0", 0);
  const std::string held = make("eddy-job-held00", 60);
  const std::string other = make("vader_segment", 60);
  const int lock = open(held.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  const JobFolder folder({parent_});
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(held));
  EXPECT_TRUE(fs::exists(other));
  close(lock);
}

TEST_F(JobFolderTest, WithoutAPlaceThereIsNone) {
  const JobFolder folder({"/nonexistent"});
  std::vector<std::string> environment;
  folder.add_variables(environment);
  EXPECT_EQ(folder.path(), "");
  EXPECT_TRUE(environment.empty());
}

}  // namespace
}  // namespace eddy
