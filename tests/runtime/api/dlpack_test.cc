// Claim: DLPack tensors of the host become inputs without a copy and go when the last copy of them
// does; results become DLPack tensors that outlive everything; what Eddy cannot take is refused
// with its reason and stays with the caller.
#include "runtime/api/dlpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A foreign tensor that counts its deletions.
struct Foreign {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> shape = {2, 3};
  std::vector<int64_t> strides = {3, 1};
  int num_deleted = 0;
  DLManagedTensor managed = {};

  Foreign() {
    managed.dl_tensor.data = values.data();
    managed.dl_tensor.device = {kDLCPU, 0};
    managed.dl_tensor.ndim = 2;
    managed.dl_tensor.dtype = {kDLFloat, 32, 1};
    managed.dl_tensor.shape = shape.data();
    managed.dl_tensor.strides = strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      ++static_cast<Foreign*>(self->manager_ctx)->num_deleted;
    };
  }
};

Graph doubling(const Library& library) {
  GraphBuilder b(library.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2, 3}));
  b.output("y", b.op("Add", {x, x}));
  return std::move(*b.finish());
}

TEST(Dlpack, AnArrayIsAnInputAndGoesWithItsLastCopy) {
  const Library library;
  auto session = std::move(*Session::create(library, doubling(library), {}));
  Foreign foreign;
  {
    auto x = tensor_from_dlpack(&foreign.managed);
    ASSERT_TRUE(x.is_ok()) << x.status().to_string();
    EXPECT_EQ(x->view().data, foreign.values.data());
    const auto outputs = session->run({{"x", *x}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_THAT((*outputs)[0].second.values<float>(), ElementsAre(2, 4, 6, 8, 10, 12));
    EXPECT_EQ(foreign.num_deleted, 0);
  }
  EXPECT_EQ(foreign.num_deleted, 1);
}

TEST(Dlpack, AResultOutlivesItsSession) {
  DLManagedTensor* lent = nullptr;
  {
    const Library library;
    auto session = std::move(*Session::create(library, doubling(library), {}));
    const Tensor x = Tensor::of<float>({2, 3}, {1, 1, 1, 2, 2, 2});
    const auto outputs = session->run({{"x", x}});
    ASSERT_TRUE(outputs.is_ok());
    auto made = tensor_to_dlpack((*outputs)[0].second);
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    lent = *made;
  }
  ASSERT_EQ(lent->dl_tensor.ndim, 2);
  EXPECT_EQ(lent->dl_tensor.shape[1], 3);
  EXPECT_EQ(static_cast<const float*>(lent->dl_tensor.data)[5], 4);
  auto back = tensor_from_dlpack(lent);
  ASSERT_TRUE(back.is_ok());
  EXPECT_THAT(back->values<float>(), ElementsAre(2, 2, 2, 4, 4, 4));
}

TEST(Dlpack, WhatEddyCannotTakeStaysTheCallers) {
  const auto refusal = [](const std::function<void(Foreign&)>& spoil) {
    Foreign foreign;
    spoil(foreign);
    const auto tensor = tensor_from_dlpack(&foreign.managed);
    EXPECT_FALSE(tensor.is_ok());
    EXPECT_EQ(foreign.num_deleted, 0);
    return tensor.status().message();
  };
  EXPECT_THAT(refusal([](Foreign& f) { f.strides = {1, 2}; }), HasSubstr("strides"));
  EXPECT_THAT(refusal([](Foreign& f) { f.managed.dl_tensor.dtype.lanes = 4; }),
              HasSubstr("4 lanes"));
  EXPECT_THAT(refusal([](Foreign& f) { f.managed.dl_tensor.dtype.bits = 12; }),
              HasSubstr("12 bits"));
  EXPECT_THAT(refusal([](Foreign& f) { f.managed.dl_tensor.device.device_type = kDLMetal; }),
              HasSubstr("device of type 8"));
  EXPECT_THAT(refusal([](Foreign& f) { f.managed.dl_tensor.ndim = 200; }), HasSubstr("rank 200"));
  EXPECT_THAT(refusal([](Foreign& f) { f.managed.dl_tensor.ndim = -1; }), HasSubstr("rank -1"));
  EXPECT_THAT(refusal([](Foreign& f) { f.shape = {-2, 3}; }), HasSubstr("negative"));
  EXPECT_THAT(refusal([](Foreign& f) {
                f.shape = {int64_t{1} << 62, 8};
                f.managed.dl_tensor.strides = nullptr;
              }),
              HasSubstr("counted"));
  EXPECT_THAT(refusal([](Foreign& f) { f.managed.dl_tensor.data = nullptr; }),
              HasSubstr("without memory"));
  EXPECT_THAT(tensor_from_dlpack(nullptr).status().message(), HasSubstr("no DLPack tensor"));
  EXPECT_THAT(tensor_to_dlpack(Tensor()).status().message(), HasSubstr("tensors only"));
}

TEST(Dlpack, AGpusMemoryIsRefusedByASessionWithoutOne) {
  const Library library;
  auto session = std::move(*Session::create(library, doubling(library), {}));
  Foreign foreign;
  foreign.managed.dl_tensor.device.device_type = kDLCUDA;
  const auto x = tensor_from_dlpack(&foreign.managed);
  ASSERT_TRUE(x.is_ok());
  EXPECT_THAT(session->run({{"x", *x}}).status().message(), HasSubstr("has no accelerator"));
}

}  // namespace
}  // namespace eddy
