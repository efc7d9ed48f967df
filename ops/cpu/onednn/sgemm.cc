#include "ops/cpu/onednn/sgemm.h"

#include <dnnl.h>

#include "graph/base/check.h"
#include "ops/cpu/onednn/thread.h"

namespace eddy::onednn {

void sgemm(const SgemmArgs& args) {
  const OneThread one_thread;
  const dnnl_status_t status =
      dnnl_sgemm(args.transpose_a ? 'T' : 'N', args.transpose_b ? 'T' : 'N', args.m, args.n, args.k,
                 1.0f, args.a, args.a_row, args.b, args.b_row, args.beta, args.c, args.c_row);
  EDDY_CHECK(status == dnnl_success) << "dnnl_sgemm of " << args.m << " x " << args.n << " x "
                                     << args.k << " returned " << static_cast<int>(status);
}

}  // namespace eddy::onednn
