// Claim: values survive the way into .npy and .pb files and back, files written by NumPy are
// read, and no file crashes the reader.
#include "graph/io/tensor_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "graph/base/random.h"
#include "tests/graph/io/model_writer.h"

namespace eddy {
namespace {

using test::as_bytes;

HostValue random_tensor(Random& random, ElementType element) {
  Dims dims;
  for (uint64_t rank = random.below(4); rank > 0; --rank) {
    dims.push_back(static_cast<int64_t>(random.below(4)));
  }
  HostValue value = HostValue::tensor(element, dims);
  // Of a type that files pack, memory holds its range, with the sign spread.
  const bool is_packed = kPackedTypes.contains(element);
  const bool is_signed = element == ElementType::kInt4 || element == ElementType::kInt2;
  const int range = element == ElementType::kBool ? 2
                    : is_packed                   ? 1 << element_bits(element)
                                                  : 256;
  for (std::byte& b : value.bytes) {
    const auto number = static_cast<int>(random.below(static_cast<uint64_t>(range)));
    b = static_cast<std::byte>(is_signed && number >= range / 2 ? number - range : number);
  }
  for (std::string& s : value.strings) s = std::string(random.below(5), 'q');
  return value;
}

void expect_equal(const HostValue& a, const HostValue& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.element, b.element);
  EXPECT_TRUE(a.dims == b.dims);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.strings, b.strings);
  ASSERT_EQ(a.elements.size(), b.elements.size());
  for (size_t i = 0; i < a.elements.size(); ++i) expect_equal(a.elements[i], b.elements[i]);
}

void expect_message(const Status& status, std::string_view part) {
  EXPECT_NE(status.to_string().find(part), std::string::npos) << status.to_string();
}

constexpr ElementType kNpyTypes[] = {
    ElementType::kBool,      ElementType::kInt8,      ElementType::kInt16,   ElementType::kInt32,
    ElementType::kInt64,     ElementType::kUint8,     ElementType::kUint16,  ElementType::kUint32,
    ElementType::kUint64,    ElementType::kFloat,     ElementType::kFloat16, ElementType::kDouble,
    ElementType::kComplex64, ElementType::kComplex128};

TEST(Npy, TensorsOfEveryNumpyTypeComeBack) {
  constexpr uint64_t kSeed = 3;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 20; ++round) {
    for (ElementType element : kNpyTypes) {
      const HostValue value = random_tensor(random, element);
      const Result<std::string> text = format_npy(value);
      ASSERT_TRUE(text.is_ok());
      const size_t header = text->size() - value.bytes.size();
      EXPECT_EQ(header % 64, 0u);
      const Result<HostValue> back = parse_npy(as_bytes(*text));
      ASSERT_TRUE(back.is_ok()) << back.status().to_string();
      expect_equal(*back, value);
    }
  }
}

std::string npy(int version, const std::string& header, const std::string& data) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  text += static_cast<char>(header.size());
  text += '\0';
  if (version > 1) text += std::string(2, '\0');
  return text + header + data;
}

TEST(Npy, ColumnMajorArraysAreTurned) {
  const std::string text =
      npy(2, "{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3)}\n", "\1\4\2\5\3\6");
  const Result<HostValue> value = parse_npy(as_bytes(text));
  ASSERT_TRUE(value.is_ok()) << value.status().to_string();
  EXPECT_EQ(std::memcmp(value->bytes.data(), "\1\2\3\4\5\6", 6), 0);
}

TEST(Npy, HeadersInOtherOrdersAndOldIntegersAreRead) {
  const std::string text = npy(3, "{ \"shape\":(2L,),\"fortran_order\":False,'descr':'<i2',}",
                               std::string("\1\0\2\0", 4));
  const Result<HostValue> value = parse_npy(as_bytes(text));
  ASSERT_TRUE(value.is_ok()) << value.status().to_string();
  EXPECT_EQ(value->view().as<int16_t>()[1], 2);
}

TEST(Npy, WhatIsWrongIsSaid) {
  const auto refuse = [](const std::string& text) { return parse_npy(as_bytes(text)).status(); };
  const std::string tail = "', 'fortran_order': False, 'shape': (2,)}";
  expect_message(refuse("hello"), "not a .npy file");
  expect_message(refuse(npy(4, "{'descr': '<f4" + tail, "")), ".npy version 4");
  expect_message(refuse(npy(1, "{'descr': '>f4" + tail, std::string(8, 'x'))), "little-endian");
  expect_message(refuse(npy(1, "{'descr': '|O" + tail, "")), "element type '|O' is not supported");
  expect_message(refuse(npy(1, "{'descr': '<f4" + tail, "abc")),
                 "has 3 bytes, but float[2] takes 8");
  expect_message(refuse(npy(1, "{'shape': (2,)}", "")), "header is not one of a plain array");
  expect_message(refuse(npy(1, "{'descr': [('a', '<f4')]}", "")), "not one of a plain array");
  expect_message(refuse(npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "")),
                 "size -1");
  expect_message(
      refuse(npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999)}",
                 "")),
      "too many elements");
}

TEST(Npy, MoreElementsThanAllowedAreRefused) {
  const std::string three = *format_npy(HostValue::tensor(ElementType::kFloat, {3}));
  ImportLimits limits;
  limits.max_elements = 3;
  EXPECT_TRUE(parse_npy(as_bytes(three), limits).is_ok());
  limits.max_elements = 2;
  expect_message(parse_npy(as_bytes(three), limits).status(), "too many elements");
}

TEST(Npy, CutFilesFailWithoutCrashing) {
  const std::string whole = *format_npy(HostValue::tensor(ElementType::kFloat, {2, 3}));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parse_npy(as_bytes(whole.substr(0, length))).is_ok());
  }
}

TEST(Npy, ValuesWithoutANumpyTypeAreRefused) {
  expect_message(format_npy(HostValue::tensor(ElementType::kBfloat16, {})).status(), "use .pb");
  expect_message(format_npy(HostValue::none()).status(), "only tensors");
}

TEST(Pb, TensorsOfEveryTypeComeBack) {
  constexpr uint64_t kSeed = 4;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 10; ++round) {
    for (int e = 1; e < kNumElementTypes; ++e) {
      const auto element = static_cast<ElementType>(e);
      const HostValue value = random_tensor(random, element);
      const std::string text = format_pb(value, "t");
      const Result<HostValue> back = parse_pb(as_bytes(text), TensorType(element));
      ASSERT_TRUE(back.is_ok()) << back.status().to_string();
      expect_equal(*back, value);
    }
  }
}

TEST(Pb, SequencesComeBack) {
  Random random(5);
  const HostValue value = HostValue::sequence(
      ElementType::kInt32,
      {random_tensor(random, ElementType::kInt32), random_tensor(random, ElementType::kInt32)});
  const std::string text = format_pb(value, "s");
  const auto type = ValueType::sequence_of(TensorType(ElementType::kInt32));
  const Result<HostValue> back = parse_pb(as_bytes(text), type);
  ASSERT_TRUE(back.is_ok());
  expect_equal(*back, value);
}

TEST(Pb, AnEmptyOptionalIsNone) {
  const std::string text = format_pb(HostValue::none(), "o");
  const auto type = ValueType::optional_of(TensorType(ElementType::kFloat));
  const Result<HostValue> back = parse_pb(as_bytes(text), type);
  ASSERT_TRUE(back.is_ok());
  EXPECT_EQ(back->kind, HostValue::Kind::kNone);
}

TEST(Pb, AnOptionalHoldsATensorOrASequence) {
  WireWriter inner = tensor_proto(HostValue::tensor(ElementType::kFloat, {2}).view(), "");
  WireWriter sequence;
  sequence.integer(2, 1);
  sequence.message(3, inner);
  WireWriter with_tensor, with_sequence;
  with_tensor.integer(2, 1);
  with_tensor.message(3, inner);
  with_sequence.integer(2, 3);
  with_sequence.message(5, sequence);
  const ValueType floats = TensorType(ElementType::kFloat);
  const Result<HostValue> a =
      parse_pb(as_bytes(with_tensor.data()), ValueType::optional_of(floats));
  ASSERT_TRUE(a.is_ok());
  EXPECT_EQ(a->kind, HostValue::Kind::kTensor);
  const Result<HostValue> b = parse_pb(as_bytes(with_sequence.data()),
                                       ValueType::optional_of(ValueType::sequence_of(floats)));
  ASSERT_TRUE(b.is_ok());
  ASSERT_EQ(b->kind, HostValue::Kind::kSequence);
  EXPECT_EQ(b->elements.size(), 1u);
}

TEST(TensorFile, FilesDifferByTheirEnding) {
  const HostValue value = HostValue::tensor(ElementType::kInt64, {2, 2});
  for (const char* ending : {".npy", ".pb"}) {
    const std::string path = ::testing::TempDir() + "/value" + ending;
    ASSERT_TRUE(write_value(path, value).is_ok());
    const Result<HostValue> back = read_value(path, TensorType(ElementType::kInt64));
    ASSERT_TRUE(back.is_ok()) << back.status().to_string();
    expect_equal(*back, value);
  }
  expect_message(read_value("x.txt", {}).status(), "'x.txt' is neither a .npy nor a .pb file");
  expect_message(write_value("x.txt", value), "neither");
  EXPECT_EQ(read_value("/nowhere/x.npy", {}).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace eddy
