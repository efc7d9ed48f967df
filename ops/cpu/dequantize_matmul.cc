// eddy.DequantizeMatMul with a constant B, which stays in bytes; anything else takes the plain
// loops.
#include <algorithm>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/quantized_matrix.h"

namespace eddy {
namespace {

using cpu::QuantizedMatrix;

struct QuantizedState : KernelState {
  std::shared_ptr<const QuantizedMatrix> matrix;
};

bool run(const KernelArgs& args) {
  const QuantizedMatrix& b = *static_cast<const QuantizedState&>(*args.state).matrix;
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
  b.multiply(rows, a.as<float>(), args.outputs[0].mutable_as<float>(), scratch);
  return true;
}

// Scales and zero points belong to the packing, so their values are part of its name.
std::string layout_of(const QuantizedMatrix::Source& source) {
  const auto count = static_cast<size_t>(source.has_columns ? source.n : 1);
  std::string layout = std::to_string(source.k) + "x" + std::to_string(source.n) +
                       (source.is_signed ? " signed " : " unsigned ");
  layout.append(reinterpret_cast<const char*>(source.scale), count * sizeof(float));
  if (source.zero_or_null != nullptr) {
    layout.append(" zero ").append(static_cast<const char*>(source.zero_or_null), count);
  }
  return layout;
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
  const QuantizedMatrix::Source source{.b = b.data,
                                       .is_signed = b.element == ElementType::kInt8,
                                       .k = b.dims[0],
                                       .n = b.dims[1],
                                       .scale = scale.as<float>(),
                                       .zero_or_null = has_zero ? zero.data : nullptr,
                                       .has_columns = scale.count() > 1};
  auto state = std::make_unique<QuantizedState>();
  state->matrix = init.pack<QuantizedMatrix>(b.data, layout_of(source), [&] {
    const std::string size = std::to_string(source.k) + "x" + std::to_string(source.n);
    return std::make_shared<const QuantizedMatrix>(
        source, init.pack_bytes(b.data, "quantized panels " + size,
                                QuantizedMatrix::size_bytes(source.k, source.n),
                                [&](std::byte* to) { QuantizedMatrix::fill(source, to); }));
  });
  BoundKernel kernel;
  const TensorType& a = init.inputs[0].tensor;
  if (a.is_static() && a.dims.rank() > 0) {
    const int64_t depth = std::max<int64_t>(source.k, 1);
    kernel.scratch_bytes = state->matrix->scratch_bytes(a.dims.count().value_or(0) / depth);
  }
  kernel.run = run;
  kernel.state = std::move(state);
  kernel.unread_constants = 1 << 1 | 1 << 2 | 1 << 3;
  return kernel;
}

}  // namespace

void add_dequantize_matmul_cpu(KernelRegistry& registry) {
  registry.add({.op = "DequantizeMatMul", .bind = bind, .provider = "tile", .domain = "eddy"});
}

}  // namespace eddy
