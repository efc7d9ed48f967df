// What the families of cuDNN's operators share: shapes and windows in the library's form, and
// descriptors with an owner.
//
// Threads: pure, but for DnnDescriptor, which has one owner.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "graph/ir/types.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/libraries/dnn_handles.h"

namespace eddy {

constexpr int kMaxDnnAxes = 2 + cuda::kMaxSpatialAxes;
using DnnInts = std::array<int, kMaxDnnAxes>;

// Whether the library has the type at all.
bool has_dnn_type(ElementType element);
DnnType dnn_type(ElementType element);
// 1 and 0, as the library reads factors for tensors of a type.
struct DnnFactors {
  const void* one;
  const void* zero;
};
DnnFactors dnn_factors(ElementType element);

// A positive number that an int holds.
bool fits_dnn_int(int64_t value);

// Where a tensor's second axis, the channels, lies: as it is named, or behind the spatial axes.
enum class DnnOrder : uint8_t { kChannelsFirst, kChannelsLast };
// [first, second, spatial …], dense.
struct DnnShape {
  DnnInts dims{}, strides{};
  int rank = 0;
  bool fits = true;  // the library's ints
};
// Takes the last `rank` of the spatial axes.
DnnShape dnn_shape(int64_t first, int64_t second, const int64_t (&spatial)[cuda::kMaxSpatialAxes],
                   int rank, DnnOrder order = DnnOrder::kChannelsFirst);

// Whether batch and channels are few enough for the kernels of pools and norms, some of which may
// have them for the second axis of a grid and then fail to launch, which is no refusal.
bool fits_dnn_grid(int64_t batch, int64_t channels);

// Planes are taken for images, volumes for volumes: 2 or 3.
int dnn_spatial_rank(const cuda::WindowParams& w);
// Whether the library supports the window: one padding for both ends, sizes that follow from it,
// numbers that ints hold.
bool is_dnn_window(const cuda::WindowParams& w);
// The last `rank` of a window's numbers.
DnnInts dnn_ints(const int64_t (&of_axis)[cuda::kMaxSpatialAxes], int rank);
// A window, for a plan's key.
void add_to_key(std::vector<int64_t>& key, const cuda::WindowParams& w);

// A descriptor that goes with its owner; null until it is made.
template <typename Descriptor>
class DnnDescriptor {
 public:
  DnnDescriptor() = default;
  ~DnnDescriptor() {
    if (made_ != nullptr) (*destroy_)(made_);
  }
  DnnDescriptor(const DnnDescriptor&) = delete;
  DnnDescriptor& operator=(const DnnDescriptor&) = delete;

  // Makes it by the calls of one table, which outlives this; `call` is the first one's name.
  Status make(const DnnHandles& handles, const std::function<int(Descriptor*)>& create,
              const std::function<int(Descriptor)>& destroy, const char* call) {
    EDDY_RETURN_IF_ERROR(handles.check(create(&made_), call));
    destroy_ = &destroy;
    return Status::ok();
  }
  Descriptor get() const { return made_; }

 private:
  Descriptor made_ = nullptr;
  const std::function<int(Descriptor)>* destroy_ = nullptr;
};

Status describe_tensor(const DnnHandles& handles, ElementType element, const DnnShape& shape,
                       DnnDescriptor<DnnTensor>& made);

}  // namespace eddy
