// Claim: the cache returns what was stored under the same key and nothing else: files that are cut
// short, forged, links or in folders that others may write to are as if they were not there;
// nothing half-written is ever found; and a choice is the one that was kept first.
#include "ops/cuda/compiled/code_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "ops/cuda/compiled/disk_choices.h"

namespace eddy {
namespace {

namespace fs = std::filesystem;

class CodeCacheTest : public ::testing::Test {
 protected:
  CodeCacheTest()
      : root_(fs::path(::testing::TempDir()) /
              ("code_cache_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())),
        folder_((root_ / "eddy" / "kernels").string()),
        cache_(folder_) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~CodeCacheTest() override { fs::remove_all(root_); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (!fs::exists(folder_)) return found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path());
    return found;
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  const fs::path root_;
  const std::string folder_;
  const CodeCache cache_;
};

TEST_F(CodeCacheTest, WhatWasStoredIsFoundByItsKeyAlone) {
  EXPECT_FALSE(cache_.find("key"));
  cache_.store("key", std::string("code\0with nul", 13));
  EXPECT_EQ(cache_.find("key"), std::string("code\0with nul", 13));
  EXPECT_FALSE(cache_.find("key "));
  EXPECT_FALSE(cache_.find(""));
  cache_.store("key", "newer");
  EXPECT_EQ(cache_.find("key"), "newer");
  EXPECT_EQ(files().size(), 1u) << "nothing is left beside it";
}

TEST_F(CodeCacheTest, EveryByteThatIsChangedOrMissingMakesTheFileWorthless) {
  cache_.store("key", "some code");
  const fs::path file = files().at(0);
  const std::string whole = read(file);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    write(file, changed);
    EXPECT_FALSE(cache_.find("key")) << "byte " << at;
    write(file, whole.substr(0, at));
    EXPECT_FALSE(cache_.find("key")) << "cut at " << at;
  }
  write(file, whole + "x");
  EXPECT_FALSE(cache_.find("key"));
  cache_.store("key", "made anew");
  EXPECT_EQ(cache_.find("key"), "made anew");
}

TEST_F(CodeCacheTest, AnotherKeysFileUnderThisNameIsNotTaken) {
  cache_.store("one", "code of one");
  const fs::path one = files().at(0);
  const std::string bytes = read(one);
  fs::remove(one);
  cache_.store("two", "code of two");
  write(files().at(0), bytes);
  EXPECT_FALSE(cache_.find("two"));
}

TEST_F(CodeCacheTest, LinksFoldersAndPipesAreNotFollowed) {
  cache_.store("key", "code");
  const fs::path file = files().at(0);
  fs::rename(file, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", file);
  EXPECT_FALSE(cache_.find("key"));
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_FALSE(cache_.find("key"));
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(cache_.find("key")) << "nor waited for";
}

TEST_F(CodeCacheTest, AFolderThatOthersMayWriteToIsNotUsed) {
  cache_.store("key", "code");
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  EXPECT_FALSE(cache_.find("key"));
  cache_.store("other", "code");
  EXPECT_EQ(files().size(), 1u);
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
  EXPECT_EQ(cache_.find("key"), "code");
  ASSERT_EQ(chmod(files().at(0).c_str(), 0666), 0);
  EXPECT_FALSE(cache_.find("key"));
}

TEST_F(CodeCacheTest, WhereNothingCanBeStoredNothingIs) {
  const CodeCache none("");
  none.store("key", "code");
  EXPECT_FALSE(none.find("key"));
  const CodeCache impossible("/proc/no/such/folder");
  impossible.store("key", "code");
  EXPECT_FALSE(impossible.find("key"));
}

TEST_F(CodeCacheTest, AChoiceIsWhatWasKeptFirstOnThisDevice) {
  DiskChoices choices(folder_, "GPU one"), later(folder_, "GPU one"), other(folder_, "GPU two");
  EXPECT_FALSE(choices.find("conv"));
  EXPECT_EQ(choices.keep("conv", "algorithm 1"), "algorithm 1");
  EXPECT_EQ(later.keep("conv", "algorithm 2"), "algorithm 1");
  EXPECT_EQ(later.find("conv"), "algorithm 1");
  EXPECT_FALSE(other.find("conv"));
  EXPECT_FALSE(choices.find("pool"));
  ASSERT_EQ(files().size(), 1u) << "nothing is left beside it";
  write(files()[0], "forged");
  EXPECT_FALSE(choices.find("conv"));
  EXPECT_EQ(later.keep("conv", "algorithm 3"), "algorithm 3");
  EXPECT_EQ(files().size(), 1u);
  EXPECT_FALSE(DiskChoices("", "GPU one").keep("conv", "algorithm 1")) << "there is no place";
  EXPECT_FALSE(DiskChoices("/proc/no/folder", "GPU one").keep("conv", "algorithm 1"));
}

TEST_F(CodeCacheTest, OfManyThatKeepAChoiceAtOnceAllTakeTheSame) {
  for (int round = 0; round < 20; ++round) {
    const std::string key = "conv " + std::to_string(round);
    std::vector<std::optional<std::string>> kept(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kept.size(); ++i) {
      threads.emplace_back([&, i] {
        kept[i] = DiskChoices(folder_, "GPU").keep(key, "algorithm " + std::to_string(i));
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(kept[0].has_value());
    for (const auto& one : kept) EXPECT_EQ(one, kept[0]);
  }
}

TEST_F(CodeCacheTest, WritersBesideReadersNeverShowHalfAFile) {
  const std::string a(200'000, 'a');
  const std::string b(200'000, 'b');
  std::vector<std::thread> writers;
  for (const std::string* code : {&a, &b}) {
    writers.emplace_back([&, code] {
      for (int i = 0; i < 30; ++i) cache_.store("key", *code);
    });
  }
  int num_found = 0;
  for (int i = 0; i < 200; ++i) {
    const auto found = cache_.find("key");
    if (!found) continue;
    ++num_found;
    EXPECT_TRUE(*found == a || *found == b);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_TRUE(cache_.find("key").has_value());
  EXPECT_EQ(files().size(), 1u);
}

}  // namespace
}  // namespace eddy
