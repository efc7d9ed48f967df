// PinnedWords: 32-bit words in host memory that the device sees too, each on a cache line of its
// own: streams write their progress into them, and gates are words that streams wait for.
//
// Why: a word written last by the device shows the host what is done without a driver call and
// without a host function (4 µs against 39 on an H200, and the scheduler's thread stays free).
//
// Words come from pages that stay until the pool goes; a word given back is handed out again.
// Errors: as the driver's, when no page can be had. Threads: any.
#pragma once

#include <mutex>
#include <vector>

#include "runtime/cuda/cuda_context.h"

namespace eddy {

struct PinnedWord {
  uint32_t* host = nullptr;
  CuDevicePointer device = 0;
};

class PinnedWords {
 public:
  explicit PinnedWords(CudaContext& context) : context_(context) {}
  ~PinnedWords();  // every word must have been given back

  // A word that holds 0.
  Result<PinnedWord> acquire();
  void release(const PinnedWord& word);

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kWordBytes = 64;
  static_assert(kPageBytes % kWordBytes == 0 && kWordBytes % sizeof(uint32_t) == 0,
                "words fill a page, each aligned");
  Status add_page();  // under the mutex

  CudaContext& context_;
  std::mutex mutex_;
  std::vector<void*> pages_;      // under the mutex
  std::vector<PinnedWord> free_;  // under the mutex
};

}  // namespace eddy
