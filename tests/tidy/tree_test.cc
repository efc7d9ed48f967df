// Claim: this source tree keeps its rules.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "tests/tidy/includes.h"
#include "tests/tidy/lengths.h"
#include "tests/tidy/operators.h"
#include "tests/tidy/readmes.h"
#include "tests/tidy/tree.h"

namespace eddy::tidy {
namespace {

// Bazel gives a link to a file of the real tree.
const Tree& source_tree() {
  static const Tree* tree =
      new Tree(load_tree(std::filesystem::canonical("WORKSPACE").parent_path()));
  return *tree;
}

void expect_none(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) ADD_FAILURE() << to_string(finding);
}

TEST(SourceTree, IsFound) { EXPECT_TRUE(exists(source_tree(), "tests/tidy/tree_test.cc")); }

TEST(SourceTree, IncludesPointDown) { expect_none(check_arrows(source_tree())); }

TEST(SourceTree, HasNoCircles) { expect_none(check_circles(source_tree())); }

TEST(SourceTree, ReadmesNameWhatExists) { expect_none(check_readme_names(source_tree())); }

TEST(SourceTree, EachPromiseNamesATest) { expect_none(check_promises(source_tree())); }

TEST(SourceTree, FoldersHaveBuildAndReadme) { expect_none(check_folders(source_tree())); }

TEST(SourceTree, OperatorsStandInFewFiles) { expect_none(check_operator_lists(source_tree())); }

TEST(SourceTree, LinesFitTheirColumns) { expect_none(check_widths(source_tree())); }

TEST(SourceTree, LongFilesAndFunctionsSayWhy) {
  for (const Long& file : find_long_files(source_tree())) {
    std::cout << "long file: " << file.path << ", " << file.lines << " lines\n";
  }
  for (const Long& function : find_long_functions(source_tree())) {
    std::cout << "long function: " << function.path << ":" << function.line << " " << function.name
              << ", " << function.lines << " lines\n";
  }
  expect_none(check_lengths(source_tree()));
}

}  // namespace
}  // namespace eddy::tidy
