// The k first of long lines by cub::DeviceRadixSort: the keys of all elements with their places are
// written, sorted (stably, so of equals the smaller place comes first), and the first k taken.
#include <cub/device/device_for.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "ops/cuda/reduce/cub_entries.h"
#include "ops/cuda/reduce/cub_line_inl.h"

namespace eddy::cuda {
namespace {

template <typename T>
struct KeyFill {
  SortKeys<T> keys_of;
  sort_word_t<T>* keys;
  uint32_t* places;
  EDDY_HD void operator()(uint32_t j) const {
    keys[j] = keys_of(j);
    places[j] = j;
  }
};

template <typename T>
struct TopTake {
  TopStore<T> store;
  const uint32_t* places;
  EDDY_HD void operator()(uint32_t rank) const { store(rank, places[rank]); }
};

constexpr size_t kAlignment = 256;
size_t aligned(size_t size_bytes) {
  return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Two of keys and two of places, since a sort goes from one to the other and back.
template <typename T>
class SortBuffers {
 public:
  SortBuffers(void* scratch, uint64_t length)
      : scratch_(static_cast<char*>(scratch)),
        keys_bytes_(aligned(length * sizeof(sort_word_t<T>))),
        places_bytes_(aligned(length * sizeof(uint32_t))) {}
  size_t size_bytes() const { return 2 * (keys_bytes_ + places_bytes_); }
  cub::DoubleBuffer<sort_word_t<T>> keys() const {
    return {at<sort_word_t<T>>(0), at<sort_word_t<T>>(keys_bytes_)};
  }
  cub::DoubleBuffer<uint32_t> places() const {
    return {at<uint32_t>(2 * keys_bytes_), at<uint32_t>(2 * keys_bytes_ + places_bytes_)};
  }
  void* rest() const { return scratch_ == nullptr ? nullptr : scratch_ + size_bytes(); }

 private:
  template <typename Item>
  Item* at(size_t offset) const {
    return scratch_ == nullptr ? nullptr : reinterpret_cast<Item*>(scratch_ + offset);
  }
  char* const scratch_;
  const size_t keys_bytes_, places_bytes_;
};

template <typename T>
cudaError_t top_k(const TopKCall& call, void* scratch, size_t* scratch_bytes, cudaStream_t stream) {
  const auto length = static_cast<uint32_t>(call.line.length);
  const SortBuffers<T> buffers(scratch, length);
  auto keys = buffers.keys();
  auto places = buffers.places();
  size_t rest_bytes = scratch == nullptr ? 0 : *scratch_bytes - buffers.size_bytes();
  if (scratch != nullptr) {
    const KeyFill<T> fill{{call}, keys.Current(), places.Current()};
    const cudaError_t filled = cub::DeviceFor::Bulk(length, fill, stream);
    if (filled != cudaSuccess) return filled;
  }
  const cudaError_t sorted = cub::DeviceRadixSort::SortPairs(
      buffers.rest(), rest_bytes, keys, places, length, 0, kSortBits<T>, stream);
  if (sorted != cudaSuccess) return sorted;
  if (scratch == nullptr) {
    *scratch_bytes = buffers.size_bytes() + rest_bytes;
    return cudaSuccess;
  }
  const TopTake<T> take{{call}, places.Current()};
  return cub::DeviceFor::Bulk(static_cast<uint32_t>(call.k), take, stream);
}

}  // namespace

int cub_top_k(const TopKCall& call, void* scratch, size_t* scratch_bytes, void* stream) {
  if (call.line.length > kMostSorted || call.k > call.line.length) return cudaErrorInvalidValue;
  cudaError_t status = cudaErrorInvalidValue;
  visit_line_type(call.line.type, [&](auto element) {
    status = run_cub([&] {
      return top_k<decltype(element)>(call, scratch, scratch_bytes,
                                      static_cast<cudaStream_t>(stream));
    });
  });
  return status;
}

}  // namespace eddy::cuda
