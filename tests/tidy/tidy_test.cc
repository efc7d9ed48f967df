// Claim: each check finds what is planted for it, and nothing in a clean tree.
#include <gtest/gtest.h>

#include <string>

#include "tests/tidy/includes.h"
#include "tests/tidy/lengths.h"
#include "tests/tidy/operators.h"
#include "tests/tidy/readmes.h"
#include "tests/tidy/tree.h"

namespace eddy::tidy {
namespace {

// Planted includes are put together here, so that they are none of this file's own.
std::string include(const std::string& path) { return "#" + ("include \"" + path) + "\"\n"; }

std::string repeated(const std::string& line, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += line;
  return text;
}

// The findings as "path: what", joined by "|".
std::string all(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += (text.empty() ? "" : "|") + to_string(finding);
  }
  return text;
}

TEST(Arrows, DownAndAcrossAreFine) {
  Tree tree;
  tree.files["graph/a.h"] = "";
  tree.files["ops/b.h"] = include("graph/a.h");
  tree.files["runtime/c.h"] = include("ops/b.h") + include("graph/a.h");
  tree.files["tools/d.cc"] = include("runtime/c.h");
  tree.files["tests/e.cc"] = include("tools/d.cc");
  EXPECT_EQ(all(check_arrows(tree)), "");
}

TEST(Arrows, UpIsFoundWithItsLine) {
  Tree tree;
  tree.files["runtime/c.h"] = "";
  tree.files["graph/a.h"] = "\n" + include("runtime/c.h");
  EXPECT_EQ(all(check_arrows(tree)),
            "graph/a.h:2: includes \"runtime/c.h\": graph must not know runtime");
}

TEST(Arrows, NoFileIncludesAnExample) {
  Tree tree;
  tree.files["examples/x.h"] = "";
  tree.files["runtime/c.cu"] = include("examples/x.h");
  EXPECT_EQ(check_arrows(tree).size(), 1u);
}

TEST(Arrows, RelativePathsAreFound) {
  Tree tree;
  tree.files["graph/a.h"] = include("b.h");
  tree.files["graph/b.h"] = "";
  EXPECT_EQ(check_arrows(tree).size(), 1u);
}

TEST(Circles, BetweenFilesAreFound) {
  Tree tree;
  tree.files["graph/a.h"] = include("graph/b.h");
  tree.files["graph/b.h"] = include("graph/c.h");
  tree.files["graph/c.h"] = include("graph/a.h");
  EXPECT_EQ(all(check_circles(tree)),
            "graph/a.h: files include each other in a circle: "
            "graph/a.h -> graph/b.h -> graph/c.h -> graph/a.h");
}

TEST(Circles, BetweenFoldersAreFoundWithoutOneBetweenFiles) {
  Tree tree;
  tree.files["graph/a/x.h"] = "";
  tree.files["graph/a/y.h"] = include("graph/b/x.h");
  tree.files["graph/b/x.h"] = "";
  tree.files["graph/b/y.h"] = include("graph/a/x.h");
  EXPECT_EQ(all(check_circles(tree)),
            "graph/a: folders include each other in a circle: graph/a -> graph/b -> graph/a");
}

TEST(Circles, ADiamondIsNone) {
  Tree tree;
  tree.files["graph/a.h"] = include("graph/b.h") + include("graph/c.h");
  tree.files["graph/b.h"] = include("graph/d/d.h");
  tree.files["graph/c.h"] = include("graph/d/d.h");
  tree.files["graph/d/d.h"] = "";
  EXPECT_EQ(all(check_circles(tree)), "");
}

TEST(ReadmeNames, WhatExistsIsFine) {
  Tree tree;
  tree.files["graph/base/BUILD"] = "name = \"status\"";
  tree.files["graph/base/status.h"] = "";
  tree.files["graph/README.md"] =
      "`graph/base/status.h` `base/` `status.h` `//graph/base:status` `//graph/...` `int32/int64`\n"
      "`a/b` `--flag` `<dnnl.h>` `graph/*/x.h`\n```\ngraph/nothing.h `graph/nothing.h`\n```\n";
  EXPECT_EQ(all(check_readme_names(tree)), "");
}

TEST(ReadmeNames, WhatDoesNotExistIsFound) {
  Tree tree;
  tree.files["graph/base/BUILD"] = "name = \"status\"";
  for (const char* word : {"graph/nothing", "base/nothing", "nothing.h", "ops/x.cc",
                           "//graph/base:check", "//ops", "tools/nothing run"}) {
    tree.files["graph/README.md"] = "\nsee `" + std::string(word) + "`\n";
    const auto findings = check_readme_names(tree);
    ASSERT_EQ(findings.size(), 1u) << word;
    EXPECT_EQ(findings[0].line, 2) << word;
  }
}

TEST(Promises, EachNamesATestThatExists) {
  Tree tree;
  tree.files["tests/a/b_test.cc"] = "";
  tree.files["graph/a.h"] = "";
  tree.files["README.md"] =
      "- **Elsewhere.** No promise.\n## Reliability\n- **Errors.** One line\n"
      "  (`tests/a/b_test.cc`).\n- **Order.** Proved `tests/a/b_test.cc`\n\nNot promised: a.\n";
  EXPECT_EQ(all(check_promises(tree)), "");
  for (const char* named : {"", "`graph/a.h`", "`tests/a/c_test.cc`", "`tests/a`"}) {
    tree.files["README.md"] =
        "## Reliability\n- **Errors.** Held by `tests/a/b_test.cc`\n- **Order.** " +
        std::string(named) + "\n\nNot promised: `tests/a/b_test.cc`\n";
    EXPECT_EQ(all(check_promises(tree)),
              "README.md:3: promises 'Order.' and names no test that holds it")
        << named;
  }
  tree.files["README.md"] = "## Reliability\n";
  EXPECT_EQ(check_promises(tree).size(), 1u);
}

TEST(Folders, NeedBuildAndReadme) {
  Tree tree;
  tree.files["graph/a/x.cc"] = "";
  EXPECT_EQ(all(check_folders(tree)),
            "graph/a: has sources but no BUILD|graph/a: has sources but no README.md");
  tree.files["graph/a/BUILD"] = "";
  tree.files["graph/a/README.md"] = "";
  EXPECT_EQ(all(check_folders(tree)), "");
}

TEST(Folders, TestsOfARoomShareItsReadme) {
  Tree tree;
  tree.files["graph/a/README.md"] = "";
  tree.files["tests/graph/a/BUILD"] = "";
  tree.files["tests/graph/a/x_test.cc"] = "";
  EXPECT_EQ(all(check_folders(tree)), "");
  tree.files["tests/graph/b/BUILD"] = "";
  tree.files["tests/graph/b/x_test.cc"] = "";
  EXPECT_EQ(all(check_folders(tree)), "tests/graph/b: has sources but no README.md");
}

TEST(Folders, AReadmeIsOneScreen) {
  Tree tree;
  tree.files["graph/README.md"] = repeated("line\n", kReadmeLines);
  EXPECT_EQ(all(check_folders(tree)), "");
  tree.files["graph/README.md"] += "line\n";
  EXPECT_EQ(check_folders(tree).size(), 1u);
}

TEST(Lengths, FilesAndTheirReasons) {
  Tree tree;
  tree.files["graph/a.h"] = repeated("int x;\n", kFileLines);
  EXPECT_EQ(all(check_lengths(tree)), "");
  tree.files["graph/a.h"] += "int y;\n";
  EXPECT_EQ(check_lengths(tree).size(), 1u);
  tree.files["graph/a.h"] = "// A table.\n// long: one row an operator\n" + tree.files["graph/a.h"];
  EXPECT_EQ(all(check_lengths(tree)), "");
  EXPECT_EQ(find_long_files(tree).size(), 1u);
}

TEST(Lengths, FunctionsAndTheirReasons) {
  Tree tree;
  const std::string function = "int f() {\n" + repeated("  g();\n", kFunctionLines - 2) + "}\n";
  tree.files["graph/a.cc"] = "namespace a {\n" + function + "}  // namespace a\n";
  EXPECT_EQ(all(check_lengths(tree)), "");
  const std::string longer = "int f() {\n  h();" + function.substr(function.find('\n'));
  const std::string longest = "int f() {\n  h();\n" + function.substr(function.find('\n') + 1);
  tree.files["graph/a.cc"] = "namespace a {\n" + longer + "}  // namespace a\n";
  EXPECT_EQ(all(check_lengths(tree)).find("graph/a.cc:2: f has 71 lines"), 0u);
  tree.files["graph/a.cc"] = "namespace a {\n// long: a story\n" + longest + "}\n";
  EXPECT_EQ(all(check_lengths(tree)), "");
}

TEST(Lengths, WideLinesCountCharacters) {
  Tree tree;
  tree.files["graph/a.h"] = "// " + repeated("→", kColumns - 3) + "\n";
  EXPECT_EQ(all(check_widths(tree)), "");
  tree.files["graph/a.h"] += "// " + repeated("→", kColumns - 2) + "\n";
  EXPECT_EQ(all(check_widths(tree)).find("graph/a.h:2: has 101 columns"), 0u);
  tree.files["graph/a.h"] = "f(\"" + repeated("a", kColumns) + "\");\n";
  EXPECT_EQ(all(check_widths(tree)), "");
  tree.files = {{"graph/README.md", repeated("a", 2 * kColumns) + "\n"}};
  EXPECT_EQ(all(check_widths(tree)), "");
}

std::string functions(const std::string& text) {
  std::string result;
  for (const Function& function : functions_of(text)) {
    result += function.name + " " + std::to_string(function.first_line) + "-" +
              std::to_string(function.last_line) + "|";
  }
  return result;
}

TEST(Functions, OfNamespacesAndClasses) {
  EXPECT_EQ(functions("namespace a {\nint f(int x) {\n  return x;\n}\n}\nvoid g() {}\n"),
            "f 2-4|g 6-6|");
  EXPECT_EQ(
      functions("struct alignas(64) S {\n  int x = 1;\n public:\n  int f() const {\n  }\n};\n"),
      "f 4-5|");
  EXPECT_EQ(functions("template <typename T,\n          typename U>\nT S::f(U u) {\n}\n"),
            "S::f 1-4|");
}

TEST(Functions, ConstructorsWithInitializers) {
  EXPECT_EQ(functions("S::S(int x)\n    : x_{x},\n      y_{} {\n  f();\n}\nint g() {}\n"),
            "S::S 1-5|g 6-6|");
}

TEST(Functions, ValuesAreNone) {
  EXPECT_EQ(functions("constexpr int kTable[] = {\n  f(1),\n};\nint x{1};\nenum class E { kA };\n"),
            "");
}

TEST(Functions, BracesInTextDoNotCount) {
  EXPECT_EQ(functions("// {\n/* { */\n#define X {\nchar c = '{';\nauto s = \"{\\\"\";\n"
                      "auto r = R\"x(})\" {)x\";\nint n = 1'000;\nvoid f() {\n}\n"),
            "f 8-9|");
}

TEST(Functions, LambdasBelongToTheFunctionAround) {
  EXPECT_EQ(functions("void f() {\n  auto g = [] {\n  };\n}\n"), "f 1-4|");
}

TEST(OperatorLists, ASixthIsFound) {
  std::string rows;
  std::string names;
  for (char c = 'a'; c < 'k'; ++c) {
    rows += std::string("  ROW(X, Op") + c + ", 6, kFloatTypes) \\\n";
    names += std::string("{\"Op") + c + "\"},\n";
  }
  Tree tree;
  EXPECT_EQ(check_operator_lists(tree).size(), 1u) << "there is no list";
  tree.files["ops/schema/unary_list.h"] = rows;
  tree.files["ops/reference/elementwise/unary.cc"] = names;
  tree.files["ops/cpu/a.h"] = names;
  tree.files["ops/cuda/b.cu"] = names;
  tree.files["ops/gradient/unary.cc"] = names;
  tree.files["ops/cuda/c.h"] = names.substr(10);  // nine of them: not a list
  tree.files["tests/ops/d.cc"] = names;
  EXPECT_EQ(all(check_operator_lists(tree)), "");
  tree.files["ops/cuda/e.cc"] = names;
  EXPECT_EQ(check_operator_lists(tree).size(), 6u);
}

}  // namespace
}  // namespace eddy::tidy
