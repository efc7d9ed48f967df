// The host's half of MatMul, Gemm, MatMulInteger, eddy.DequantizeMatMul and eddy.PermutedMatMul: by
// cuBLASLt where it is there and has a way, else by our own kernels.
#include "graph/base/check.h"
#include "ops/cuda/libraries/lt_products.h"
#include "ops/cuda/products/product_plan.h"

namespace eddy {
namespace {

struct ProductState : KernelState {
  CudaLauncher* launcher = nullptr;
  ProductKernels kernels;
  LtProducts* lt_or_null = nullptr;
  ElementType element = ElementType::kFloat;
  float alpha = 1, beta = 1;
  bool transposes_a = false, transposes_b = false;
  ProductOrders orders;
};

const ProductState& state_of(const KernelArgs& args) {
  return *static_cast<const ProductState*>(args.state);
}

void set_operands(const KernelArgs& args, ProductPlan& plan) {
  plan.params().out = args.outputs[0].data;
  plan.params().a = args.inputs[0].data;
  plan.params().b = args.inputs[1].data;
}

// Runs a product of floats.
bool run_product(const KernelArgs& args, ProductPlan& plan) {
  const ProductState& state = state_of(args);
  if (state.lt_or_null != nullptr) {
    const bool is_float = state.element == ElementType::kFloat;
    if (is_float && plan.suits_tensor_tile(state.lt_or_null->most_of_tensor_tile())) {
      return plan.launch_tensor(args, *state.launcher, state.kernels);
    }
    const Result<bool> is_done = state.lt_or_null->run(args, state.element, plan.params());
    if (!is_done.is_ok()) return args.fail(is_done.status());
    if (*is_done) return true;
  }
  return plan.launch(args, *state.launcher, state.kernels, true);
}

bool run_matmul(const KernelArgs& args) {
  ProductPlan plan = ProductPlan::of(args.inputs[0], args.inputs[1]);
  set_operands(args, plan);
  return run_product(args, plan);
}

bool run_permuted_matmul(const KernelArgs& args) {
  const ProductOrders& orders = state_of(args).orders;
  const PermutedProduct product(args.inputs[0], args.inputs[1], args.outputs[0], orders);
  ProductPlan plan = ProductPlan::of(product);
  set_operands(args, plan);
  cuda::ProductParams& params = plan.params();
  const auto element_bytes = static_cast<int64_t>(element_size_bytes(args.inputs[0].element));
  params.a = static_cast<const char*>(params.a) + product.a_first * element_bytes;
  params.b = static_cast<const char*>(params.b) + product.b_first * element_bytes;
  params.alpha = orders.alpha;
  if (args.has_input(2)) {
    params.bias = args.inputs[2].data;
    params.bias_column = 1;
  }
  if (args.has_input(3)) {
    params.c = args.inputs[3].data;
    params.c_row = params.out_row;
    params.c_column = params.out_column;
  }
  return run_product(args, plan);
}

bool run_gemm(const KernelArgs& args) {
  const ProductState& state = state_of(args);
  const TensorView &a = args.inputs[0], &y = args.outputs[0];
  const int64_t m = y.dims[0], n = y.dims[1], k = a.dims[state.transposes_a ? 0 : 1];
  ProductPlan plan;
  EDDY_DCHECK(a.rank == 2 && a.dims[state.transposes_a ? 1 : 0] == m) << "A does not have " << m;
  plan.set_sizes(m, n, k);
  state.transposes_a ? plan.set_a(1, m) : plan.set_a(k, 1);
  state.transposes_b ? plan.set_b(1, k) : plan.set_b(n, 1);
  set_operands(args, plan);
  plan.params().alpha = state.alpha;
  plan.params().beta = state.beta;
  if (args.has_input(2)) {
    const TensorView& c = args.inputs[2];
    const int64_t columns = c.rank > 0 ? c.dims[c.rank - 1] : 1;
    const int64_t rows = c.rank > 1 ? c.dims[c.rank - 2] : 1;
    EDDY_DCHECK(columns == 1 || columns == n)
        << "C has " << columns << " columns, the result " << n;
    plan.params().c = c.data;
    plan.params().c_row = rows == 1 ? 0 : columns;
    plan.params().c_column = columns == 1 ? 0 : 1;
  }
  return run_product(args, plan);
}

// One zero point for all rows (columns), or one each.
int64_t zero_step(const KernelArgs& args, uint32_t input) {
  return args.has_input(input) && args.inputs[input].count() > 1 ? 1 : 0;
}

bool run_matmul_integer(const KernelArgs& args) {
  const ProductState& state = state_of(args);
  ProductPlan plan = ProductPlan::of(args.inputs[0], args.inputs[1]);
  set_operands(args, plan);
  const TensorView& a = args.inputs[0];
  plan.params().a_zero_rows = a.rank > 1 ? a.dims[a.rank - 2] : 1;
  plan.params().c = args.has_input(2) ? args.inputs[2].data : nullptr;
  plan.params().b_zero = args.has_input(3) ? args.inputs[3].data : nullptr;
  plan.params().a_zero_step = zero_step(args, 2);
  plan.params().b_zero_step = zero_step(args, 3);
  return plan.launch(args, *state.launcher, state.kernels, false);
}

bool run_dequantize_matmul(const KernelArgs& args) {
  const ProductState& state = state_of(args);
  ProductPlan plan = ProductPlan::of(args.inputs[0], args.inputs[1]);
  set_operands(args, plan);
  plan.params().c = args.inputs[2].data;
  plan.params().c_column = args.inputs[2].count() == 1 ? 0 : 1;
  plan.params().b_zero = args.has_input(3) ? args.inputs[3].data : nullptr;
  plan.params().b_zero_step = zero_step(args, 3);
  return plan.launch(args, *state.launcher, state.kernels, false);
}

Result<std::unique_ptr<ProductState>> make_state(const KernelInit& init, CudaLauncher& launcher,
                                                 const std::string& name,
                                                 const std::string& suffix) {
  auto state = std::make_unique<ProductState>();
  state->launcher = &launcher;
  EDDY_RETURN_IF_ERROR(state->kernels.find(init, launcher, name, suffix));
  return state;
}

Result<std::unique_ptr<ProductState>> make_library_state(const KernelInit& init,
                                                         CudaLauncher& launcher,
                                                         LtProducts* lt_or_null) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "MatMul", cuda::input_suffix(init)));
  state->element = init.inputs[0].tensor.element;
  if (LtProducts::has_type(state->element)) state->lt_or_null = lt_or_null;
  return state;
}

Result<BoundKernel> bind_matmul(const KernelInit& init, CudaLauncher& launcher,
                                LtProducts* lt_or_null) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_library_state(init, launcher, lt_or_null));
  return cuda::bound(run_matmul, std::move(state));
}

Result<BoundKernel> bind_permuted_matmul(const KernelInit& init, CudaLauncher& launcher,
                                         LtProducts* lt_or_null) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_library_state(init, launcher, lt_or_null));
  state->orders = ProductOrders::of(init.attributes);
  return cuda::bound(run_permuted_matmul, std::move(state));
}

Result<BoundKernel> bind_gemm(const KernelInit& init, CudaLauncher& launcher,
                              LtProducts* lt_or_null) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_library_state(init, launcher, lt_or_null));
  state->alpha = init.attributes.get_float("alpha", 1.0f);
  state->beta = init.attributes.get_float("beta", 1.0f);
  state->transposes_a = init.attributes.get_int("transA", 0) != 0;
  state->transposes_b = init.attributes.get_int("transB", 0) != 0;
  const bool is_real = kFloatTypes.contains(init.inputs[0].tensor.element);
  if (!is_real && (state->alpha != 1 || state->beta != 1)) {
    return unsupported("factors of integer products are not supported by the CUDA kernel of Gemm");
  }
  if (init.op.since_version < 7) return cuda::no_cuda_kernel(init);  // broadcasting by attribute
  return cuda::bound(run_gemm, std::move(state));
}

Result<BoundKernel> bind_matmul_integer(const KernelInit& init, CudaLauncher& launcher) {
  const std::string suffix = cuda::input_suffix(init, 0) + "_" + cuda::input_suffix(init, 1);
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "Byte", suffix));
  return cuda::bound(run_matmul_integer, std::move(state));
}

Result<BoundKernel> bind_dequantize_matmul(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state,
                        make_state(init, launcher, "Dequantize", cuda::input_suffix(init, 1)));
  return cuda::bound(run_dequantize_matmul, std::move(state));
}

}  // namespace

void add_products_cuda(KernelRegistry& registry, CudaLauncher& launcher, LtProducts* lt_or_null) {
  cuda::add_kernel(registry, launcher, "MatMul", bind_matmul, lt_or_null);
  cuda::add_kernel(registry, launcher, "Gemm", bind_gemm, lt_or_null);
  cuda::add_kernel(registry, launcher, "PermutedMatMul", bind_permuted_matmul, lt_or_null, "eddy");
  cuda::add_kernel(registry, launcher, "MatMulInteger", bind_matmul_integer);
  cuda::add_kernel(registry, launcher, "DequantizeMatMul", bind_dequantize_matmul, "eddy");
}

}  // namespace eddy
