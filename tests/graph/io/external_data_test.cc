// Claim: external data is read only from regular, unshared files below the model's folder, or
// behind the model where its reader says so, and only where it fits.
#include "graph/io/external_data.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary
namespace fs = std::filesystem;

class ExternalDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    base_ = fs::path(::testing::TempDir()) / ("external_" + std::string(info->name()));
    fs::remove_all(base_);
    fs::create_directories(base_ / "model" / "sub");
    write("model/weights.bin", std::string(16, '\0') + floats_as_text({1, 2, 3, 4}));
    write("secret.bin", floats_as_text({9, 9, 9, 9}));
  }
  void TearDown() override { fs::remove_all(base_); }

  static std::string floats_as_text(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }
  void write(const std::string& name, const std::string& content) {
    std::ofstream(base_ / name, std::ios::binary) << content;
  }
  // A model with one external initializer of type float[4].
  Result<Graph> import_with(const std::string& location, const std::string& offset = "16",
                            const std::string& length = "16", const ImportLimits& limits = {}) {
    WireWriter w;
    w.integer(1, 4);
    w.integer(2, 1);
    w.bytes(8, "w");
    w.integer(14, 1);
    const auto entry = [&](std::string_view key, const std::string& value) {
      WireWriter e;
      e.bytes(1, key);
      e.bytes(2, value);
      if (!value.empty()) w.message(13, e);
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    write("model/m.onnx", model(graph({.outputs = {untyped("w")}, .initializers = {w}})));
    ImportOptions options;
    options.limits = limits;
    return import_onnx((base_ / "model" / "m.onnx").string(), standard_ops(), options);
  }
  void expect_refused(const Result<Graph>& graph, StatusCode code, std::string_view part) {
    ASSERT_FALSE(graph.is_ok());
    EXPECT_EQ(graph.status().code(), code) << graph.status().to_string();
    EXPECT_NE(graph.status().message().find(part), std::string::npos) << graph.status().message();
  }

  fs::path base_;
};

TEST_F(ExternalDataTest, OffsetAndLengthSelectTheElements) {
  const Result<Graph> g = import_with("weights.bin");
  ASSERT_TRUE(g.is_ok()) << g.status().to_string();
  const TensorView w = g->constant(g->value(g->outputs()[0]).constant).view();
  EXPECT_EQ(w.as<float>()[0], 1.0f);
  EXPECT_EQ(w.as<float>()[3], 4.0f);
}

TEST_F(ExternalDataTest, WithoutALocationItStandsBehindTheModelWhereTheReaderSaysSo) {
  expect_refused(import_with(""), StatusCode::kInvalidArgument, "names no file");
  std::ifstream in(base_ / "model" / "m.onnx", std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  ImportOptions options;
  // As a field that no model has.
  options.data_begin = content.size() + 3;
  const auto import = [&](size_t size_bytes) {
    std::string data = std::string(16, '\0') + floats_as_text({1, 2, 3, 4});
    data.resize(size_bytes, '\0');
    WireWriter last;
    last.bytes(1001, data);
    const std::string whole = content + last.data();
    return import_onnx_bytes(std::as_bytes(std::span(whole)), standard_ops(), options);
  };
  const Result<Graph> g = import(32);
  ASSERT_TRUE(g.is_ok()) << g.status().to_string();
  EXPECT_EQ(g->constant(g->value(g->outputs()[0]).constant).view().as<float>()[3], 4.0f);
  expect_refused(import(31), StatusCode::kInvalidArgument, "of the model's own, which has 31");
}

TEST_F(ExternalDataTest, TheLengthMayBeLeftOut) {
  EXPECT_TRUE(import_with("weights.bin", "16", "").is_ok());
}

TEST_F(ExternalDataTest, FilesInSubfoldersAreRead) {
  write("model/sub/w.bin", floats_as_text({5, 6, 7, 8}));
  EXPECT_TRUE(import_with("sub/w.bin", "0").is_ok());
  EXPECT_TRUE(import_with("sub/../sub/w.bin", "0").is_ok());
}

TEST_F(ExternalDataTest, LargeFilesAreMapped) {
  write("model/large.bin", std::string(size_t{3} << 20, '\0') + floats_as_text({1, 2, 3, 4}));
  const Result<Graph> g = import_with("large.bin", std::to_string(size_t{3} << 20));
  ASSERT_TRUE(g.is_ok()) << g.status().to_string();
  const TensorView w = g->constant(g->value(g->outputs()[0]).constant).view();
  EXPECT_EQ(w.as<float>()[2], 3.0f);
}

TEST_F(ExternalDataTest, AMissingFileIsNamed) {
  expect_refused(import_with("gone.bin"), StatusCode::kNotFound, "cannot open 'gone.bin'");
}

TEST_F(ExternalDataTest, NamesThatLeaveTheFolderAreRefused) {
  for (const char* location : {"../secret.bin", "sub/../../secret.bin", "/etc/passwd"}) {
    expect_refused(import_with(location, "0"), StatusCode::kInvalidArgument,
                   "leads out of the model's folder");
  }
  expect_refused(import_with((base_ / "secret.bin").string(), "0"), StatusCode::kInvalidArgument,
                 "leads out of the model's folder");
}

TEST_F(ExternalDataTest, SymbolicLinksAreRefused) {
  fs::create_symlink("../secret.bin", base_ / "model" / "link.bin");
  expect_refused(import_with("link.bin", "0"), StatusCode::kInvalidArgument, "symbolic link");
  fs::create_directory_symlink("..", base_ / "model" / "up");
  expect_refused(import_with("up/secret.bin", "0"), StatusCode::kInvalidArgument, "symbolic link");
  fs::create_symlink("weights.bin", base_ / "model" / "inside.bin");
  expect_refused(import_with("inside.bin"), StatusCode::kInvalidArgument, "symbolic link");
}

TEST_F(ExternalDataTest, FilesAboveTheLimitAreRefused) {
  write("model/large.bin", std::string(4096, '\0'));
  ImportLimits limits;
  limits.max_file_bytes = 4096;
  EXPECT_TRUE(import_with("large.bin", "16", "16", limits).is_ok());
  limits.max_file_bytes = 4095;  // the model has fewer
  expect_refused(import_with("large.bin", "16", "16", limits), StatusCode::kResourceExhausted,
                 "'large.bin' has 4096 bytes, at most 4095 are allowed");
  limits.max_file_bytes = 10;
  expect_refused(import_with("large.bin", "16", "16", limits), StatusCode::kResourceExhausted,
                 "m.onnx' has ");
}

TEST_F(ExternalDataTest, HardLinksAreRefused) {
  fs::create_hard_link(base_ / "secret.bin", base_ / "model" / "hard.bin");
  expect_refused(import_with("hard.bin", "0"), StatusCode::kInvalidArgument,
                 "more than one hard link");
}

TEST_F(ExternalDataTest, FoldersAndPipesAreRefused) {
  expect_refused(import_with("sub", "0"), StatusCode::kInvalidArgument, "not a regular file");
  ASSERT_EQ(mkfifo((base_ / "model" / "pipe").c_str(), 0600), 0);
  expect_refused(import_with("pipe", "0"), StatusCode::kInvalidArgument, "not a regular file");
}

TEST_F(ExternalDataTest, ExtentsThatDoNotFitAreRefused) {
  expect_refused(import_with("weights.bin", "20"), StatusCode::kInvalidArgument,
                 "wants 16 bytes at offset 20 of 'weights.bin', which has 32");
  expect_refused(import_with("weights.bin", "18446744073709551600"), StatusCode::kInvalidArgument,
                 "wants 16 bytes");
  expect_refused(import_with("weights.bin", "0", "12"), StatusCode::kInvalidArgument,
                 "the data has 12 bytes, but float[4] takes 16");
  expect_refused(import_with("weights.bin", "-4"), StatusCode::kInvalidArgument,
                 "not a number of bytes");
  expect_refused(import_with("weights.bin", "16x"), StatusCode::kInvalidArgument,
                 "not a number of bytes");
}

TEST_F(ExternalDataTest, AModelFromMemoryNeedsAFolder) {
  WireWriter w;
  w.integer(1, 4);
  w.integer(2, 1);
  w.bytes(8, "w");
  w.integer(14, 1);
  WireWriter e;
  e.bytes(1, "location");
  e.bytes(2, "weights.bin");
  w.message(13, e);
  WireWriter offset;
  offset.bytes(1, "offset");
  offset.bytes(2, "16");
  w.message(13, offset);
  const std::string content = model(graph({.outputs = {untyped("w")}, .initializers = {w}}));
  expect_refused(import_text(content), StatusCode::kInvalidArgument, "came from memory");
  ImportOptions options;
  options.external_folder = (base_ / "model").string();
  EXPECT_TRUE(import_text(content, options).is_ok());
}

}  // namespace
}  // namespace eddy
