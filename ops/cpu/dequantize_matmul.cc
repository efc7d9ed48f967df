// eddy.DequantizeMatMul with a constant B, which stays in bytes; anything else takes the plain
// loops.
#include <algorithm>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/bits_matrix.h"
#include "ops/cpu/families.h"
#include "ops/cpu/tiles.h"

namespace eddy {
namespace {

using cpu::BitsMatrix;

struct QuantizedState : KernelState {
  std::shared_ptr<const BitsMatrix> matrix;
};

const BitsMatrix& matrix_of(const KernelArgs& args) {
  return *static_cast<const QuantizedState&>(*args.state).matrix;
}

bool run(const KernelArgs& args, int64_t first, int64_t end) {
  const BitsMatrix& b = matrix_of(args);
  const TensorView& a = args.inputs[0];
  EDDY_DCHECK(a.rank > 0 && a.dims[a.rank - 1] == b.depth())
      << "A does not have " << b.depth() << " columns";
  int64_t rows = 1;
  for (int i = 0; i + 1 < a.rank; ++i) rows *= a.dims[i];
  if (rows == 0) return true;
  void* scratch = args.scratch->reserve(b.scratch_bytes(rows));
  if (scratch == nullptr) {
    return args.fail(resource_exhausted("no memory for a block of DequantizeMatMul's weights"));
  }
  float* const c = args.outputs[0].mutable_as<float>();
  for (int64_t panel = first; panel < end; ++panel) {
    b.multiply(rows, a.as<float>(), panel, nullptr, c + panel * b.panel_width(), b.columns(),
               scratch);
  }
  return true;
}

cpu::Tiles tiles_of(const KernelArgs& args) {
  const BitsMatrix& b = matrix_of(args);
  return cpu::Tiles::of(b.num_panels(), b.depth() * b.panel_width());
}

// Scales and zero points belong to the packing, so their values are part of its name.
std::string layout_of(const BitsMatrix::Source& source) {
  std::string layout = std::to_string(source.k) + "x" + std::to_string(source.n) +
                       (source.flip != 0 ? " signed " : " unsigned ");
  layout.append(reinterpret_cast<const char*>(source.scales.data()),
                source.scales.size() * sizeof(float));
  return layout.append(source.zeros.begin(), source.zeros.end());
}

// B[k][n] of bytes with a scale and a zero point for each column, or for all.
BitsMatrix::Source source_of(const TensorView& b, const TensorView& scale, const TensorView& zero) {
  BitsMatrix::Source source;
  source.b = b.as<uint8_t>();
  source.k = b.dims[0];
  source.n = b.dims[1];
  source.row_step = source.n;
  source.column_step = 1;
  source.flip = b.element == ElementType::kInt8 ? 0x80 : 0;
  source.block = std::max<int64_t>(source.k, 1);
  source.bits = 8;
  const auto count = static_cast<size_t>(source.k == 0 ? 0 : source.n);
  for (size_t j = 0; j < count; ++j) {
    const size_t at = scale.count() > 1 ? j : 0;
    source.scales.push_back(scale.as<float>()[at]);
    const uint8_t given = zero.is_omitted() ? 0 : zero.as<uint8_t>()[at];
    source.zeros.push_back(static_cast<uint8_t>(given ^ source.flip));
  }
  return source;
}

Result<BoundKernel> bind(const KernelInit& init) {
  const TensorView &b = init.constants[1], &scale = init.constants[2];
  const bool has_zero =
      init.inputs.size() > 3 && init.inputs[3].tensor.element != ElementType::kUndefined;
  const TensorView zero = has_zero ? init.constants[3] : TensorView();
  if (b.is_omitted() || scale.is_omitted() || (has_zero && zero.is_omitted())) {
    return unsupported("the fast DequantizeMatMul wants constant weights");
  }
  EDDY_CHECK(b.rank == 2) << "B has " << b.rank << " dimensions";
  EDDY_CHECK(scale.count() <= 1 || scale.count() == b.dims[1])
      << scale.count() << " scales for " << b.dims[1] << " columns";
  EDDY_CHECK(!has_zero || zero.count() == scale.count())
      << zero.count() << " zero points and " << scale.count() << " scales";
  const BitsMatrix::Source source = source_of(b, scale, zero);
  auto state = std::make_unique<QuantizedState>();
  state->matrix = init.pack<BitsMatrix>(b.data, layout_of(source), [&] {
    return std::make_shared<const BitsMatrix>(source, cpu::tile_kernels(), &init);
  });
  BoundKernel kernel;
  const TensorType& a = init.inputs[0].tensor;
  if (a.is_static() && a.dims.rank() > 0) {
    const int64_t depth = std::max<int64_t>(source.k, 1);
    kernel.scratch_bytes = state->matrix->scratch_bytes(a.dims.count().value_or(0) / depth);
  }
  if (state->matrix->num_panels() > 1) {
    cpu::set_tiles<tiles_of, run>(kernel);
  } else {
    kernel.run = cpu::run_all_units<tiles_of, run>;
  }
  kernel.state = std::move(state);
  kernel.unread_constants = 1 << 1 | 1 << 2 | 1 << 3;
  return kernel;
}

}  // namespace

void add_dequantize_matmul_cpu(KernelRegistry& registry) {
  registry.add({.op = "DequantizeMatMul",
                .bind = bind,
                .provider = "tile",
                .domain = "eddy",
                .has_tiles = true});
}

}  // namespace eddy
