// What Staging promises (runtime/device/staging.h), on every device that has it:
//
//   INSTANTIATE_TEST_SUITE_P(Cuda, StagingConformance, testing::Values(make_fake_gpu));
//
// Bytes of the device are read by a graph capture, which every such device has.
#pragma once

#include <array>
#include <numeric>

#include "runtime/device/staging.h"
#include "tests/runtime/device/conformance.h"

namespace eddy::testing {

class StagingConformance : public DeviceConformance {
 protected:
  // Work that enqueues on the stream.
  Status issue(Stream& stream, std::function<Status(void* native)> enqueue) {
    struct Issue {
      Stream& stream;
      const std::function<Status(void*)>& enqueue;
      Status status;
    } issue{stream, enqueue, {}};
    const auto run = [](void* context) {
      auto& self = *static_cast<Issue*>(context);
      self.status = self.enqueue(self.stream.native());
      return self.status.is_ok();
    };
    if (!stream.launch({run, &issue, false})) return device_->health();
    drain(stream);
    return issue.status;
  }
  std::vector<char> read(const BufferRef& there, size_t size_bytes) {
    const BufferRef here = *staging_->staging().allocate(size_bytes);
    EXPECT_TRUE(issue(*stream_, [&](void* native) {
                  return capture_->copy_now(native, here.data(), there.data(), size_bytes);
                }).is_ok());
    const char* const bytes = static_cast<const char*>(here.data());
    return {bytes, bytes + size_bytes};
  }

  Staging* const staging_ = device_->staging_or_null();
  std::unique_ptr<GraphCapture> capture_ = device_->create_capture_or_null();
  std::unique_ptr<Stream> stream_ = std::move(*device_->create_stream());
};

TEST_P(StagingConformance, KnowsItsOwnMemoryToTheLastByteAndNoOther) {
  const BufferRef block = *staging_->staging().allocate(1000);
  const char* const bytes = static_cast<const char*>(block.data());
  EXPECT_TRUE(staging_->is_staging(bytes, 1000));
  EXPECT_TRUE(staging_->is_staging(bytes + 999, 1));
  char elsewhere = 0;
  EXPECT_FALSE(staging_->is_staging(&elsewhere, 1));
  const BufferRef there = *device_->allocator().allocate(64);
  EXPECT_FALSE(staging_->is_staging(there.data(), 64));
}

TEST_P(StagingConformance, WritesBytesOfAnyHostMemoryAndReturnsWhenTheyAreThere) {
  const BufferRef there = *device_->allocator().allocate(4096);
  std::vector<char> bytes(4096);
  for (const size_t size_bytes : {size_t{1}, size_t{4096}}) {
    std::iota(bytes.begin(), bytes.end(), static_cast<char>(size_bytes % 100));
    const std::vector<char> wanted(bytes.begin(), bytes.begin() + static_cast<long>(size_bytes));
    ASSERT_TRUE(staging_->write(there.data(), bytes.data(), size_bytes).is_ok());
    bytes.assign(bytes.size(), 0);  // it is read by then
    EXPECT_EQ(read(there, size_bytes), wanted);
  }
  EXPECT_TRUE(staging_->write(there.data(), nullptr, 0).is_ok());
}

TEST_P(StagingConformance, CopiesWordsInTheOrderOfTheirStreamOrSaysThatItCannot) {
  const BufferRef block = *staging_->staging().allocate(3 * sizeof(int64_t));
  auto* const words = static_cast<int64_t*>(block.data());
  std::copy_n(std::array<int64_t, 3>{7, 0, 0}.begin(), 3, words);
  const Status status = issue(*stream_, [&](void* native) -> Status {
    EDDY_RETURN_IF_ERROR(staging_->copy_word(words + 1, words, native));
    return staging_->copy_word(words + 2, words + 1, native);
  });
  EXPECT_EQ(status.is_ok(), staging_->can_copy_words()) << status.to_string();
  EXPECT_EQ(status.code(), status.is_ok() ? StatusCode::kOk : StatusCode::kUnsupported);
  EXPECT_EQ(words[2], status.is_ok() ? 7 : 0);
}

}  // namespace eddy::testing
