// transpose_words and transpose_bytes put every element at the place of the definition, for sizes
// and strides on either side of each block, and write nothing beside them.
#include "ops/cpu/transpose/transpose.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/base/random.h"

namespace eddy::cpu {
namespace {

constexpr uint32_t kUntouched = 0xdeadbeef;

// Runs one transpose and compares every element of the result's memory with the definition; before
// and behind it lies a line that must stay as it is. The input's bytes don't repeat.
template <typename Element>
void check_elements(int64_t rows, int64_t columns, int64_t in_stride, int64_t out_stride,
                    void (&transpose)(const Element*, int64_t, Element*, int64_t, int64_t,
                                      int64_t)) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + ", strides " +
               std::to_string(in_stride) + " and " + std::to_string(out_stride));
  Random random(1);
  std::vector<Element> in(static_cast<size_t>((columns + 1) * in_stride));
  for (Element& element : in) element = static_cast<Element>(random.below(uint64_t{1} << 32));
  std::vector<Element> out(static_cast<size_t>((rows + 2) * out_stride),
                           static_cast<Element>(kUntouched));
  std::vector<Element> wanted = out;
  for (int64_t a = 0; a < rows; ++a) {
    for (int64_t b = 0; b < columns; ++b) {
      wanted[static_cast<size_t>((a + 1) * out_stride + b)] =
          in[static_cast<size_t>(a + b * in_stride)];
    }
  }
  transpose(in.data(), in_stride, out.data() + out_stride, out_stride, rows, columns);
  EXPECT_TRUE(out == wanted);
}
void check(int64_t rows, int64_t columns, int64_t in_stride, int64_t out_stride) {
  check_elements<uint32_t>(rows, columns, in_stride, out_stride, transpose_words);
  check_elements<float>(rows, columns, in_stride, out_stride, transpose_words);
  check_elements<uint8_t>(rows, columns, in_stride, out_stride, transpose_bytes);
}

TEST(TransposeTest, AgreesWithTheDefinitionOnSeededRandomSizesAndStrides) {
  const uint64_t seed = 20;
  RecordProperty("seed", std::to_string(seed));
  Random random(seed);
  const auto below = [&](uint64_t limit) { return static_cast<int64_t>(random.below(limit)); };
  for (int i = 0; i < 300; ++i) {
    const int64_t rows = below(150), columns = below(150);
    check(rows, columns, rows + below(3), columns + below(3));
  }
}

TEST(TransposeTest, AgreesWhereLinesOfTheResultCompeteForTheSamePlaces) {
  for (const int64_t columns : {512, 640, 1024}) {
    for (const int64_t rows : {1, 3, 4, 5, 32, 35}) check(rows, columns, rows, columns);
  }
  check(33, 1000, 33, 1024);
}

TEST(TransposeTest, AgreesWhereLinesOfTheInputCompeteForTheSamePlaces) {
  for (const int64_t rows : {512, 1024, 1023}) {
    for (const int64_t columns : {1, 3, 4, 32, 35}) check(rows, columns, 1024, columns);
  }
}

TEST(TransposeTest, NothingToMoveTouchesNothing) {
  check(0, 8, 8, 8);
  check(8, 0, 8, 8);
}

}  // namespace
}  // namespace eddy::cpu
