// Claim: each limit of ImportLimits refuses what is above it, with its own message, and lets pass
// what is not; memory is charged by what a file describes, and a file buys it with its size.
#include "graph/io/import_limits.h"

#include <gtest/gtest.h>

#include "graph/io/memory_budget.h"
#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

std::string negations(int count, const std::string& name = "n") {
  Messages nodes;
  for (int i = 0; i < count; ++i) {
    nodes.push_back(
        node("Neg", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)}, {}, name));
  }
  return model(graph({.nodes = nodes,
                      .inputs = {info("v0", floats({4}))},
                      .outputs = {untyped("v" + std::to_string(count))}}));
}

struct Case {
  const char* name;
  void (*lower)(ImportLimits& limits);
  const char* says;
};

TEST(ImportLimits, EachRefusesWhatIsAboveIt) {
  const std::string bytes = negations(20, std::string(100, 'n'));
  ASSERT_TRUE(import_text(bytes).is_ok());
  const Case cases[] = {
      {"nesting", [](ImportLimits& l) { l.max_nesting = 1; }, "more than 1 deep"},
      {"nodes", [](ImportLimits& l) { l.max_nodes = 19; }, "more than 19 nodes"},
      {"messages", [](ImportLimits& l) { l.max_messages = 10; }, "more than 10 messages"},
      {"names", [](ImportLimits& l) { l.max_name_bytes = 99; }, "a name of 100 bytes"},
      {"memory",
       [](ImportLimits& l) {
         l.min_memory_bytes = 1000;
         l.memory_per_file_byte = 0;
       },
       "more than 1000 bytes of memory"},
      {"memory in all", [](ImportLimits& l) { l.max_memory_bytes = 2000; },
       "more than 2000 bytes of memory"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ImportOptions options;
    c.lower(options.limits);
    expect_import_error(bytes, StatusCode::kResourceExhausted, c.says, options);
  }
}

TEST(ImportLimits, ElementsOfOneTensorAreCounted) {
  const std::string bytes = model(graph(
      {.outputs = {untyped("w")}, .initializers = {tensor<float>("w", {5}, {1, 2, 3, 4, 5})}}));
  ImportOptions options;
  options.limits.max_elements = 5;
  EXPECT_TRUE(import_text(bytes, options).is_ok());
  options.limits.max_elements = 4;
  expect_import_error(bytes, StatusCode::kResourceExhausted, "more than 4 elements", options);
}

TEST(MemoryBudget, AFileBuysMemoryWithItsSize) {
  ImportLimits limits;
  limits.min_memory_bytes = 100;
  limits.memory_per_file_byte = 10;
  limits.max_memory_bytes = 1000;
  MemoryBudget budget(limits);
  EXPECT_TRUE(budget.charge(100));
  budget.add_file(5);
  EXPECT_TRUE(budget.charge(50));
  EXPECT_FALSE(budget.charge(1));
  budget.add_file(UINT64_MAX);  // no further than the maximum
  EXPECT_TRUE(budget.charge(850));
  EXPECT_FALSE(budget.charge(1));
}

TEST(MemoryBudget, WhatDoesNotFitLeavesNothing) {
  ImportLimits limits;
  limits.min_memory_bytes = 100;
  MemoryBudget budget(limits);
  EXPECT_FALSE(budget.charge(UINT64_MAX));
  EXPECT_FALSE(budget.charge(1));
}

}  // namespace
}  // namespace eddy
