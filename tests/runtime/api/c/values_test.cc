// Claim: values of every kind go in and come out as they were: strings as offsets and bytes,
// sequences, nothing, borrowed memory, and DLPack in both forms without a copy.
#include "runtime/api/c/eddy_dlpack.h"
#include "tests/runtime/api/c/fixture.h"

namespace eddy::c {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CValues : public CApi {};

TEST_F(CValues, StringsAreOffsetsAndBytes) {
  const int64_t dims[] = {2, 1};
  const int64_t offsets[] = {0, 3, 3};
  Owned<eddy_value> value;
  ASSERT_EQ(said([&](auto e) {
              return api().value_from_strings(dims, 2, offsets, "one", value.out(), e);
            }),
            "ok");
  eddy_tensor view = {};
  ASSERT_EQ(api().value_tensor(value.get(), &view, nullptr), EDDY_OK);
  EXPECT_EQ(view.element, EDDY_STRING);
  EXPECT_EQ(view.data, nullptr);
  EXPECT_EQ(view.dims[0], 2);
  size_t size = 0;
  ASSERT_EQ(api().value_strings(value.get(), nullptr, nullptr, &size, nullptr), EDDY_OK);
  ASSERT_EQ(size, 3u);
  int64_t read[3] = {};
  std::string bytes(size, ' ');
  ASSERT_EQ(api().value_strings(value.get(), read, bytes.data(), nullptr, nullptr), EDDY_OK);
  EXPECT_THAT(read, ElementsAre(0, 3, 3));
  EXPECT_EQ(bytes, "one");
  const int64_t falling[] = {0, 3, 2};
  EXPECT_THAT(said([&](auto e) {
                return api().value_from_strings(dims, 2, falling, "one", value.out(), e);
              }),
              HasSubstr("offset 2 is below the one before it"));
}

TEST_F(CValues, SequencesAndNothingAreKinds) {
  const float numbers[] = {1, 2};
  const std::vector<int64_t> dims = {2};
  const eddy_tensor of = tensor(numbers, dims);
  Owned<eddy_value> element;
  ASSERT_EQ(api().value_copy(&of, element.out(), nullptr), EDDY_OK);
  const eddy_value two[] = {element.get(), element.get()};
  Owned<eddy_value> sequence;
  ASSERT_EQ(api().value_sequence(EDDY_FLOAT, two, 2, sequence.out(), nullptr), EDDY_OK);
  size_t length = 0;
  ASSERT_EQ(api().value_length(sequence.get(), &length, nullptr), EDDY_OK);
  EXPECT_EQ(length, 2u);
  Owned<eddy_value> last;
  ASSERT_EQ(api().value_at(sequence.get(), 1, last.out(), nullptr), EDDY_OK);
  EXPECT_THAT(floats(last.get()), ElementsAre(1, 2));
  EXPECT_THAT(said([&](auto e) {
                Owned<eddy_value> none;
                return api().value_at(sequence.get(), 2, none.out(), e);
              }),
              HasSubstr("there is no element 2; the sequence has 2"));
  EXPECT_THAT(said([&](auto e) {
                Owned<eddy_value> none;
                return api().value_sequence(EDDY_INT64, two, 2, none.out(), e);
              }),
              HasSubstr("element 0 of the sequence is of another type: float"));
  Owned<eddy_value> none;
  ASSERT_EQ(api().value_none(none.out(), nullptr), EDDY_OK);
  int32_t kind = -1;
  ASSERT_EQ(api().value_kind(none.get(), &kind, nullptr), EDDY_OK);
  EXPECT_EQ(kind, 0);
  eddy_tensor view = {};
  EXPECT_THAT(said([&](auto e) { return api().value_tensor(none.get(), &view, e); }),
              HasSubstr("the value is nothing, not a tensor"));
}

void set(void* user) { ++*static_cast<int*>(user); }

TEST_F(CValues, BorrowedMemoryIsReleasedOnceAlsoWhenRefused) {
  int released = 0;
  const float numbers[] = {1, 2};
  const std::vector<int64_t> dims = {2};
  eddy_tensor of = tensor(numbers, dims);
  Owned<eddy_value> value;
  ASSERT_EQ(api().value_borrow(&of, set, &released, value.out(), nullptr), EDDY_OK);
  eddy_tensor view = {};
  ASSERT_EQ(api().value_tensor(value.get(), &view, nullptr), EDDY_OK);
  EXPECT_EQ(view.data, numbers) << "no copy";
  EXPECT_EQ(released, 0);
  value.reset();
  EXPECT_EQ(released, 1);
  of.data = nullptr;
  EXPECT_EQ(api().value_borrow(&of, set, &released, value.out(), nullptr), EDDY_INVALID_ARGUMENT);
  EXPECT_EQ(released, 2);
}

template <typename Managed>
struct Lent {
  Managed managed = {};
  int64_t shape[2] = {1, 2};
  float numbers[2] = {3, 4};
  int deleted = 0;

  Lent() {
    managed.dl_tensor.data = numbers;
    managed.dl_tensor.device.device_type = decltype(managed.dl_tensor.device.device_type)(1);
    managed.dl_tensor.ndim = 2;
    managed.dl_tensor.dtype = {2, 32, 1};
    managed.dl_tensor.shape = shape;
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Lent*>(self->manager_ctx)->deleted; };
  }
};

TEST_F(CValues, DlpackComesInAndGoesOutWithoutACopy) {
  Lent<DLManagedTensor> lent;
  Owned<eddy_value> value;
  ASSERT_EQ(said([&](auto e) { return api().value_from_dlpack(&lent.managed, value.out(), e); }),
            "ok");
  EXPECT_THAT(floats(value.get()), ElementsAre(3, 4));
  DLManagedTensor* out = nullptr;
  ASSERT_EQ(api().value_to_dlpack(value.get(), &out, nullptr), EDDY_OK);
  EXPECT_EQ(out->dl_tensor.data, lent.numbers);
  value.reset();
  EXPECT_EQ(lent.deleted, 0) << "what goes out keeps it";
  out->deleter(out);
  EXPECT_EQ(lent.deleted, 1);
}

TEST_F(CValues, VersionedDlpackIsCheckedAndReadOnly) {
  Lent<DLManagedTensorVersioned> lent;
  Owned<eddy_value> value;
  lent.managed.version = {2, 0};
  EXPECT_THAT(said([&](auto e) {
                return api().value_from_dlpack_versioned(&lent.managed, value.out(), e);
              }),
              HasSubstr("of version 2.0; hand over one of 1.x"));
  EXPECT_EQ(lent.deleted, 0) << "a refused tensor stays the caller's";
  lent.managed.version = {1, 1};
  ASSERT_EQ(said([&](auto e) {
              return api().value_from_dlpack_versioned(&lent.managed, value.out(), e);
            }),
            "ok");
  DLManagedTensorVersioned* out = nullptr;
  ASSERT_EQ(api().value_to_dlpack_versioned(value.get(), &out, nullptr), EDDY_OK);
  EXPECT_EQ(out->version.major, 1u);
  EXPECT_EQ(out->flags & DLPACK_FLAG_BITMASK_READ_ONLY, DLPACK_FLAG_BITMASK_READ_ONLY);
  EXPECT_EQ(out->dl_tensor.ndim, 2);
  EXPECT_EQ(out->dl_tensor.data, lent.numbers);
  out->deleter(out);
  value.reset();
  EXPECT_EQ(lent.deleted, 1);
  int64_t strides[] = {1, 1};
  Lent<DLManagedTensor> strided;
  strided.shape[0] = 2;
  strided.managed.dl_tensor.strides = strides;
  EXPECT_THAT(
      said([&](auto e) { return api().value_from_dlpack(&strided.managed, value.out(), e); }),
      HasSubstr("make it contiguous first"));
  EXPECT_EQ(strided.deleted, 0);
}

}  // namespace
}  // namespace eddy::c
