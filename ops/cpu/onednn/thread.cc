#include "ops/cpu/onednn/thread.h"

// libgomp's, declared here because clang does not ship omp.h.
extern "C" void omp_set_num_threads(int);

namespace eddy::onednn {

[[gnu::noinline]] void init_thread() {
  thread_local bool is_ready = false;
  if (is_ready) return;
  omp_set_num_threads(1);
  is_ready = true;
}

}  // namespace eddy::onednn
