#include "ops/cpu/onednn/thread.h"

// libgomp's, declared here because clang does not ship omp.h.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}

namespace eddy::onednn {

OneThread::OneThread() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

OneThread::~OneThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

}  // namespace eddy::onednn
