#include "ops/cpu/cpu_kernels.h"

#include <gnu/libc-version.h>

#include "ops/cpu/byte_tile/byte_tile.h"
#include "ops/cpu/families.h"
#include "ops/cpu/loops/loops.h"
#include "ops/cpu/onednn/version.h"
#include "ops/cpu/tile/tile.h"
#include "ops/reference/reference_kernels.h"

namespace eddy {

void add_cpu_kernels(KernelRegistry& registry) {
  add_reference_kernels(registry);
  add_elementwise_cpu(registry);
  add_reduction_cpu(registry);
  add_softmax_cpu(registry);
  add_quantize_cpu(registry);
  add_movement_cpu(registry);
  add_sequence_cpu(registry);
  add_indexing_cpu(registry);
  add_matmul_cpu(registry);
  add_matmul_permuted_cpu(registry);
  add_matmul_integer_cpu(registry);
  add_dequantize_matmul_cpu(registry);
  add_matmul_bits_cpu(registry);
  add_conv_cpu(registry);
  add_pool_cpu(registry);
  add_pool_indices_cpu(registry);
  add_resize_cpu(registry);
  add_recurrent_cpu(registry);
  add_normalization_cpu(registry);
  add_attention_cpu(registry);
  add_dft_cpu(registry);
  add_deform_conv_cpu(registry);
  add_grid_sample_cpu(registry);
  add_regions_cpu(registry);
  add_image_decoder_cpu(registry);
  add_regex_cpu(registry);
  add_suppression_cpu(registry);
  add_trees_cpu(registry);
  add_blocked_cpu(registry);
}

namespace {

const char* isa_name(cpu::Isa isa) {
  switch (isa) {
    case cpu::Isa::kBaseline:
      return "x86-64-v2";
    case cpu::Isa::kAvx2:
      return "avx2";
    case cpu::Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace

int64_t channels_in_block() { return cpu::tile_kernels().width; }

int64_t columns_in_panel() { return cpu::tile_kernels().panel_width(); }

std::string describe_cpu_kernels() {
  return onednn::version_text() + ", loops " + isa_name(cpu::loop_set().isa) + ", tiles " +
         cpu::tile_kernels().name + ", byte tiles " + cpu::byte_tile_kernels().name + ", glibc " +
         gnu_get_libc_version();
}

}  // namespace eddy
