// Claim: decode_tensor() gives the elements of a TensorProto however they are stored, refuses
// data that does not fit the shape, and borrows only what is aligned.
#include "graph/io/decode_tensor.h"

#include <gtest/gtest.h>

#include <limits>

namespace eddy {
namespace {

OnnxTensor empty_tensor(ElementType element, std::vector<int64_t> dims) {
  OnnxTensor tensor;
  tensor.data_type = static_cast<int32_t>(element);
  tensor.dims = std::move(dims);
  return tensor;
}

template <typename T>
std::vector<T> elements(const DecodedTensor& tensor) {
  const TensorView view = tensor.view();
  return {view.as<T>(), view.as<T>() + view.count()};
}

void expect_message(const Status& status, std::string_view part) {
  EXPECT_NE(status.to_string().find(part), std::string::npos) << status.to_string();
}

TEST(DecodeTensor, SmallTypesComeOutOfInt32Data) {
  OnnxTensor bytes = empty_tensor(ElementType::kInt8, {3});
  bytes.int32_data = {-1, 127, -128};
  EXPECT_EQ(elements<int8_t>(*decode_tensor(bytes, {})), (std::vector<int8_t>{-1, 127, -128}));
  OnnxTensor halves = empty_tensor(ElementType::kFloat16, {2});
  halves.int32_data = {0x3c00, 0xbc00};
  EXPECT_EQ(elements<uint16_t>(*decode_tensor(halves, {})),
            (std::vector<uint16_t>{0x3c00, 0xbc00}));
}

TEST(DecodeTensor, Uint32ComesOutOfUint64Data) {
  OnnxTensor tensor = empty_tensor(ElementType::kUint32, {2});
  tensor.uint64_data = {7, 0xffffffff};
  EXPECT_EQ(elements<uint32_t>(*decode_tensor(tensor, {})), (std::vector<uint32_t>{7, 0xffffffff}));
}

TEST(DecodeTensor, ComplexNumbersArePairsOfFloats) {
  OnnxTensor tensor = empty_tensor(ElementType::kComplex64, {1});
  tensor.float_data = {1, 2};
  const Result<DecodedTensor> decoded = decode_tensor(tensor, {});
  ASSERT_TRUE(decoded.is_ok());
  EXPECT_EQ(decoded->bytes.size(), 8u);
}

TEST(DecodeTensor, FourBitElementsAreUnpackedLowHalfFirst) {
  const std::byte raw[] = {std::byte{0xf1}, std::byte{0x07}};
  OnnxTensor tensor = empty_tensor(ElementType::kInt4, {3});
  tensor.has_raw_data = true;
  tensor.raw_data = raw;
  EXPECT_EQ(elements<int8_t>(*decode_tensor(tensor, {})), (std::vector<int8_t>{1, -1, 7}));
  OnnxTensor typed = empty_tensor(ElementType::kUint4, {3});
  typed.int32_data = {0xf1, 0x07};
  EXPECT_EQ(elements<uint8_t>(*decode_tensor(typed, {})), (std::vector<uint8_t>{1, 15, 7}));
}

TEST(DecodeTensor, TwoBitElementsAreUnpackedLowestFirst) {
  const std::byte raw[] = {std::byte{0b11'10'01'00}, std::byte{0b10}};
  OnnxTensor tensor = empty_tensor(ElementType::kInt2, {5});
  tensor.has_raw_data = true;
  tensor.raw_data = raw;
  EXPECT_EQ(elements<int8_t>(*decode_tensor(tensor, {})), (std::vector<int8_t>{0, 1, -2, -1, -2}));
  OnnxTensor typed = empty_tensor(ElementType::kUint2, {5});
  typed.int32_data = {0b11'10'01'00, 0b10};
  EXPECT_EQ(elements<uint8_t>(*decode_tensor(typed, {})), (std::vector<uint8_t>{0, 1, 2, 3, 2}));
  typed.int32_data = {0b11'10'01'00};
  const Status missing = decode_tensor(typed, {}).status();
  EXPECT_NE(missing.to_string().find("int32_data holds 1 numbers where the shape needs 2"),
            std::string::npos)
      << missing.to_string();
}

TEST(DecodeTensor, OddBoolsBecomeOne) {
  const std::byte raw[] = {std::byte{0}, std::byte{2}};
  OnnxTensor tensor = empty_tensor(ElementType::kBool, {2});
  tensor.has_raw_data = true;
  tensor.raw_data = raw;
  EXPECT_EQ(elements<uint8_t>(*decode_tensor(tensor, {})), (std::vector<uint8_t>{0, 1}));
  OnnxTensor typed = empty_tensor(ElementType::kBool, {2});
  typed.int32_data = {3, 0};
  EXPECT_EQ(elements<uint8_t>(*decode_tensor(typed, {})), (std::vector<uint8_t>{1, 0}));
}

TEST(DecodeTensor, StringsAreOwned) {
  OnnxTensor tensor = empty_tensor(ElementType::kString, {2});
  tensor.string_data = {"a", ""};
  EXPECT_EQ(elements<std::string>(*decode_tensor(tensor, {})), (std::vector<std::string>{"a", ""}));
}

TEST(DecodeTensor, OnlyAlignedRawDataIsBorrowable) {
  alignas(8) std::byte storage[24] = {};
  OnnxTensor tensor = empty_tensor(ElementType::kInt64, {2});
  tensor.has_raw_data = true;
  tensor.raw_data = std::span<const std::byte>(storage, 16);
  EXPECT_TRUE(decode_tensor(tensor, {})->is_borrowable);
  tensor.raw_data = std::span<const std::byte>(storage + 1, 16);
  EXPECT_FALSE(decode_tensor(tensor, {})->is_borrowable);
}

TEST(DecodeTensor, DataThatDoesNotFitTheShapeIsRefused) {
  OnnxTensor tensor = empty_tensor(ElementType::kFloat, {2, 2});
  tensor.float_data = {1, 2, 3};
  expect_message(decode_tensor(tensor, {}).status(), "float_data holds 3 numbers");
  tensor.has_raw_data = true;
  expect_message(decode_tensor(tensor, {}).status(), "the data has 0 bytes, but float[2,2]");
  OnnxTensor strings = empty_tensor(ElementType::kString, {2});
  expect_message(decode_tensor(strings, {}).status(), "string_data holds 0");
}

TEST(DecodeTensor, NegativeHugeAndTooManyDimensionsAreRefused) {
  expect_message(decode_tensor(empty_tensor(ElementType::kFloat, {-1}), {}).status(),
                 "a dimension has size -1");
  const int64_t huge = std::numeric_limits<int64_t>::max();
  const Status overflow =
      decode_tensor(empty_tensor(ElementType::kFloat, {huge, huge}), {}).status();
  EXPECT_EQ(overflow.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(decode_tensor(empty_tensor(ElementType::kFloat, {huge}), {}).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(decode_tensor(empty_tensor(ElementType::kFloat, std::vector<int64_t>(9, 1)), {})
                .status()
                .code(),
            StatusCode::kUnsupported);
}

TEST(DecodeTensor, UnknownElementTypesAndSegmentsAreRefused) {
  OnnxTensor tensor = empty_tensor(ElementType::kFloat, {});
  tensor.data_type = 99;
  expect_message(decode_tensor(tensor, {}).status(), "element type 99 does not exist");
  tensor.data_type = 1;
  tensor.is_segment = true;
  EXPECT_EQ(decode_tensor(tensor, {}).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace eddy
