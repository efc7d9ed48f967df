// Claim: stacks that share elements behave as vectors do that are copied: whatever one of them
// pushes or pops, the others keep what they had; and each element goes with its last holder.
#include "runtime/execute/values/element_stack.h"

#include <gtest/gtest.h>

#include "graph/base/random.h"
#include "runtime/cpu/host_allocator.h"

namespace eddy {
namespace {

// Elements that are told apart by their addresses.
SequenceElement element(int64_t number) {
  SequenceElement made;
  made.data = reinterpret_cast<const void*>(number + 1);
  made.element = ElementType::kInt64;
  return made;
}

int64_t number_of(const SequenceElement& element) {
  return reinterpret_cast<int64_t>(element.data) - 1;
}

void push(HostAllocator& memory, ElementStack& stack, SequenceElement element) {
  const Status status = stack.push_back(std::move(element), memory);
  ASSERT_TRUE(status.is_ok()) << status.message();
}

void expect_equal(const ElementStack& stack, const std::vector<int64_t>& expected) {
  ASSERT_EQ(stack.size(), expected.size());
  ASSERT_EQ(stack.empty(), expected.empty());
  const auto all = stack.in_order();
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(number_of(stack[i]), expected[i]) << "at " << i;
    ASSERT_EQ(number_of(*all[i]), expected[i]) << "at " << i;
  }
  if (expected.empty()) return;
  ASSERT_EQ(number_of(stack.back()), expected.back());
}

TEST(ElementStackTest, StacksThatShareElementsAreAsVectorsThatAreCopied) {
  HostAllocator memory;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    std::vector<ElementStack> stacks(4);
    std::vector<std::vector<int64_t>> vectors(4);
    for (int64_t step = 0; step < 2000; ++step) {
      const size_t at = random.below(4), from = random.below(4);
      const uint64_t kind = random.below(100);
      if (kind < 60) {
        push(memory, stacks[at], element(step));
        vectors[at].push_back(step);
      } else if (kind < 85 && !vectors[at].empty()) {
        stacks[at].pop_back();
        vectors[at].pop_back();
      } else if (kind < 97) {
        stacks[at] = stacks[from];
        vectors[at] = vectors[from];
      } else if (kind < 98) {
        stacks[at].clear();
        vectors[at].clear();
      }
      if (step % 50 == 0) {
        for (size_t i = 0; i < 4; ++i) expect_equal(stacks[i], vectors[i]);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(ElementStackTest, AnElementGoesWithItsLastHolder) {
  struct Owner : BufferOwner {
    int num_released = 0;
    void release(Buffer* buffer) noexcept override {
      ++num_released;
      delete buffer;
    }
  } owner;
  const auto with_buffer = [&] {
    auto* buffer = new Buffer;
    buffer->owner = &owner;
    SequenceElement made;
    made.buffer = BufferRef(buffer);
    return made;
  };
  HostAllocator memory;
  ElementStack stack;
  for (int i = 0; i < 3; ++i) push(memory, stack, with_buffer());
  ElementStack longer = stack;
  push(memory, longer, with_buffer());
  stack.pop_back();
  EXPECT_EQ(owner.num_released, 0);
  longer.pop_back();
  EXPECT_EQ(owner.num_released, 1);
  longer.pop_back();  // the third, which only this one still held
  EXPECT_EQ(owner.num_released, 2);
  longer.clear();
  EXPECT_EQ(owner.num_released, 2);
  stack.clear();
  EXPECT_EQ(owner.num_released, 4);
}

// So long that letting go one by one in a recursion would end the stack of the thread.
TEST(ElementStackTest, AMillionElementsGoWithoutRecursion) {
  HostAllocator memory;
  ElementStack stack;
  for (int64_t i = 0; i < 1'000'000; ++i) push(memory, stack, element(i));
  EXPECT_EQ(number_of(stack[0]), 0);
  EXPECT_EQ(number_of(stack[123'456]), 123'456);
  ElementStack other = stack;
  stack.clear();
  EXPECT_EQ(other.size(), 1'000'000u);
  other.clear();
  EXPECT_TRUE(other.empty());
}

// 1,000 links of some 200 bytes do not fit into 64 KiB; what was pushed before stays.
TEST(ElementStackTest, LinksCountAsMemoryInUse) {
  HostAllocator memory(64 << 10);
  ElementStack stack;
  Status status;
  int64_t pushed = 0;
  for (; pushed < 1000 && status.is_ok(); ++pushed) {
    status = stack.push_back(element(pushed), memory);
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.message();
  ASSERT_EQ(stack.size(), static_cast<size_t>(pushed) - 1);
  EXPECT_EQ(number_of(stack.back()), pushed - 2);
  EXPECT_GE(memory.statistics().used_bytes, stack.size() * sizeof(SequenceElement));
  stack.clear();
  EXPECT_EQ(memory.statistics().used_bytes, 0u);
}

}  // namespace
}  // namespace eddy
