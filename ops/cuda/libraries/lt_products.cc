#include "ops/cuda/libraries/lt_products.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "graph/base/check.h"

namespace eddy {
namespace {

// No kernel needs more, and every block of memory has it.
constexpr int64_t kMostAlignment = 16;

LtType lt_type(ElementType element) {
  switch (element) {
    case ElementType::kDouble:
      return LtType::kDouble;
    case ElementType::kFloat16:
      return LtType::kHalf;
    case ElementType::kBfloat16:
      return LtType::kBfloat16;
    default:
      return LtType::kFloat;
  }
}

// What a matrix is taken to be aligned to: no more than those behind it would be, if others of its
// size followed, so that the rows of a larger tensor and a tensor by itself have one algorithm.
int64_t alignment_of(const void* pointer, int64_t size_bytes) {
  const auto bits = reinterpret_cast<uintptr_t>(pointer) | static_cast<uintptr_t>(size_bytes) |
                    static_cast<uintptr_t>(kMostAlignment);
  return static_cast<int64_t>(bits & -bits);
}

// An address that is aligned so and to no more, for a question that reads nothing there.
const void* aligned_to(const void* pointer, int64_t alignment) {
  EDDY_DCHECK(alignment > 0 && alignment <= kMostAlignment) << "aligned to " << alignment;
  const auto block =
      reinterpret_cast<uintptr_t>(pointer) & ~static_cast<uintptr_t>(2 * kMostAlignment - 1);
  return reinterpret_cast<const void*>(block + static_cast<uintptr_t>(alignment));
}

// A product as cuBLASLt sees it: D (n x m) = first (n x k) times second (k x m), column-major.
struct LtProduct {
  struct Side {
    uint64_t rows, columns;  // as stored
    int64_t leading, batch_stride;
    bool is_transposed;
  };
  Side first, second;
  int64_t m, n, k, num_batches;
  int64_t leading, batch_stride;         // of the result
  const void* addend_or_null = nullptr;  // a matrix, times beta
  int64_t addend_leading;
  const void* row_or_null = nullptr;  // added to each row of ours

  // False: the library has no way for it.
  bool read(const cuda::ProductParams& p);
};

// A matrix of ours, rows x columns; its transpose is what column-major storage holds.
bool read_side(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step,
               LtProduct::Side& side) {
  side.is_transposed = column_step != 1;
  if (side.is_transposed && row_step != 1) return false;
  const int64_t inner = side.is_transposed ? rows : columns;
  const int64_t outer = side.is_transposed ? columns : rows;
  side.rows = static_cast<uint64_t>(inner);
  side.columns = static_cast<uint64_t>(outer);
  side.leading = std::max(side.is_transposed ? column_step : row_step, inner);
  return true;
}

bool LtProduct::read(const cuda::ProductParams& p) {
  EDDY_DCHECK(p.m >= 0 && p.n >= 0 && p.k >= 0) << p.m << " x " << p.n << " x " << p.k;
  m = p.m, n = p.n, k = p.k;
  num_batches = static_cast<int64_t>(p.num_batches);
  if (m == 0 || n == 0 || k == 0 || num_batches == 0 || p.batch_rank > 1) return false;
  if (num_batches > INT32_MAX) return false;
  if (p.out_column != 1 || p.out_row < n) return false;
  if (!read_side(k, n, p.b_row, p.b_column, first)) return false;
  if (!read_side(m, k, p.a_row, p.a_column, second)) return false;
  first.batch_stride = p.batch_rank == 1 ? p.b_batch[0] : 0;
  second.batch_stride = p.batch_rank == 1 ? p.a_batch[0] : 0;
  leading = addend_leading = p.out_row;
  batch_stride = p.batch_rank == 1 ? p.out_batch[0] : 0;
  if (p.bias != nullptr) {
    if (p.bias_row != 0 || p.bias_column != 1) return false;
    row_or_null = p.bias;
  }
  if (p.c == nullptr) return true;
  if (p.c_column != 1 || (num_batches != 1 && p.c_row != p.out_row)) return false;
  if (p.c_row >= n) {
    addend_or_null = p.c;
    addend_leading = p.c_row;
    return true;
  }
  if (p.c_row != 0 || p.beta != 1.0f || row_or_null != nullptr) return false;
  row_or_null = p.c;
  return true;
}

}  // namespace

// The layouts and the algorithm of one shape.
struct LtProducts::Plan {
  explicit Plan(const CublasLtApi& table) : api(table) {}
  ~Plan() {
    for (LtLayout layout : layouts) {
      if (layout != nullptr) api.layout_destroy(layout);
    }
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const CublasLtApi& api;
  std::array<LtLayout, 4> layouts{};  // first, second, addend, result
  LtHeuristic found{};
  std::atomic<bool> is_known{false};  // false: the library has no way, or has refused this one
};

namespace {

// The description of one call; it carries the row that is added, so calls have their own.
class Operation {
 public:
  Operation(const CublasLtApi& api, const LtProduct& product, LtCompute compute,
            const void* row_or_null)
      : api_(api) {
    const LtType scale = compute == LtCompute::kDouble ? LtType::kDouble : LtType::kFloat;
    status_ = api.matmul_create(&matmul_, compute, scale);
    if (product.first.is_transposed) set(kLtTransposeA, kLtTransposed);
    if (product.second.is_transposed) set(kLtTransposeB, kLtTransposed);
    if (row_or_null == nullptr) return;
    set(kLtEpilogue, kLtEpilogueBias);
    set(kLtBiasPointer, row_or_null);
  }
  ~Operation() {
    if (matmul_ != nullptr) api_.matmul_destroy(matmul_);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  int status() const { return status_; }
  LtMatmul get() const { return matmul_; }

 private:
  template <typename T>
  void set(int attribute, const T& value) {
    if (status_ == kLtSuccess) status_ = api_.matmul_set(matmul_, attribute, &value, sizeof(T));
  }
  const CublasLtApi& api_;
  LtMatmul matmul_ = nullptr;
  int status_ = kLtSuccess;
};

LtCompute compute_of(ElementType element, const LtOptions& options) {
  if (element == ElementType::kDouble) return LtCompute::kDouble;
  const bool is_fast = element == ElementType::kFloat && options.allows_tf32;
  return is_fast ? LtCompute::kFastTf32 : LtCompute::kFloat;
}

int make_layout(const CublasLtApi& api, LtType type, const LtProduct::Side& side,
                int64_t num_batches, LtLayout& layout) {
  int status = api.layout_create(&layout, type, side.rows, side.columns, side.leading);
  if (status != kLtSuccess || num_batches == 1) return status;
  const auto count = static_cast<int32_t>(num_batches);
  status = api.layout_set(layout, kLtBatchCount, &count, sizeof(count));
  if (status != kLtSuccess) return status;
  return api.layout_set(layout, kLtBatchStride, &side.batch_stride, sizeof(side.batch_stride));
}

}  // namespace

bool LtProducts::has_type(ElementType element) {
  return element == ElementType::kFloat || element == ElementType::kDouble ||
         element == ElementType::kFloat16 || element == ElementType::kBfloat16;
}

LtProducts::LtProducts(std::shared_ptr<const CublasLtApi> api, CudaLauncher& launcher,
                       const LtOptions& options)
    : api_(std::move(api)), launcher_(launcher), options_(options), plans_(options.max_plans) {}

Result<std::unique_ptr<LtProducts>> LtProducts::create(std::shared_ptr<const CublasLtApi> api,
                                                       CudaLauncher& launcher,
                                                       const LtOptions& options) {
  std::unique_ptr<LtProducts> made(new LtProducts(std::move(api), launcher, options));
  EDDY_ASSIGN_OR_RETURN(made->handle_, made->api_->handles->take(launcher, [&](LtHandle& handle) {
    return made->check(made->api_->create(&handle), "cublasLtCreate");
  }));
  return made;
}

LtProducts::~LtProducts() {
  if (handle_ != nullptr) api_->handles->give_back(launcher_, handle_);
}

Status LtProducts::check(int status, const char* call) const {
  if (status == kLtSuccess) return Status::ok();
  const char* const name = api_->status_name(status);
  std::string text =
      std::string(call) + " answered " + (name != nullptr ? name : std::to_string(status));
  if (is_lt_refusal(status)) return unsupported(std::move(text));
  if (status == kLtNoMemory) return resource_exhausted(std::move(text));
  return run_failed(std::move(text));
}

size_t LtProducts::num_plans() const {
  std::lock_guard lock(mutex_);
  return plans_.size();
}

// kUnsupported: the library has no way for it.
Status LtProducts::make_plan(Plan& plan, const Key& key, ElementType element,
                             const cuda::ProductParams& params) {
  LtProduct product;
  if (!product.read(params)) return Status::ok();
  const LtType type = lt_type(element);
  const auto rows = static_cast<uint64_t>(product.n), columns = static_cast<uint64_t>(product.m);
  const LtProduct::Side result{rows, columns, product.leading, product.batch_stride, false};
  LtProduct::Side addend = result;
  addend.leading = product.addend_leading;
  const LtProduct::Side* const sides[] = {&product.first, &product.second, &addend, &result};
  for (size_t i = 0; i < plan.layouts.size(); ++i) {
    EDDY_RETURN_IF_ERROR(
        check(make_layout(*api_, type, *sides[i], product.num_batches, plan.layouts[i]),
              "cublasLtMatrixLayoutCreate"));
  }
  EDDY_CHECK(key.size() >= 5) << "a key of " << key.size();
  const int64_t* const alignments = key.data() + key.size() - 5;  // the key ends in them
  const void* const row =
      product.row_or_null == nullptr ? nullptr : aligned_to(product.row_or_null, alignments[4]);
  const Operation operation(*api_, product, compute_of(element, options_), row);
  EDDY_RETURN_IF_ERROR(check(operation.status(), "cublasLtMatmulDescCreate"));
  LtPreference preference = nullptr;
  EDDY_RETURN_IF_ERROR(
      check(api_->preference_create(&preference), "cublasLtMatmulPreferenceCreate"));
  const std::unique_ptr<LtPreferenceTag, std::function<void(LtPreference)>> keep(
      preference, [this](LtPreference made) { api_->preference_destroy(made); });
  const uint64_t workspace = options_.max_workspace_bytes;
  int status = api_->preference_set(preference, kLtMaxWorkspace, &workspace, sizeof(workspace));
  for (int i = 0; i < 4 && status == kLtSuccess; ++i) {
    const auto bytes = static_cast<uint32_t>(alignments[i]);
    status = api_->preference_set(preference, kLtMinAlignmentA + i, &bytes, sizeof(bytes));
  }
  EDDY_RETURN_IF_ERROR(check(status, "cublasLtMatmulPreferenceSetAttribute"));
  int num_found = 0;
  status =
      api_->heuristic(handle_, operation.get(), plan.layouts[0], plan.layouts[1], plan.layouts[2],
                      plan.layouts[3], preference, 1, &plan.found, &num_found);
  EDDY_RETURN_IF_ERROR(check(status, "cublasLtMatmulAlgoGetHeuristic"));
  plan.is_known = num_found > 0 && plan.found.state == kLtSuccess;
  return Status::ok();
}

Result<std::shared_ptr<LtProducts::Plan>> LtProducts::find(const Key& key, ElementType element,
                                                           const cuda::ProductParams& params) {
  std::lock_guard lock(mutex_);
  if (std::shared_ptr<Plan> known = plans_.find(key)) return known;
  auto plan = std::make_shared<Plan>(*api_);
  Status status = make_plan(*plan, key, element, params);
  if (!status.is_ok() && status.code() != StatusCode::kUnsupported) return status;
  plans_.add(key, plan);
  return plan;
}

bool LtProducts::is_of_few_rows(const cuda::ProductParams& p) const {
  if (std::min(p.m, p.n) > cuda::kFewRows) return false;
  const int64_t elements = std::max(p.m, p.n) * p.k;
  return elements <= options_.most_of_few_rows / std::max<int64_t>(p.num_batches, 1);
}

Result<bool> LtProducts::run(const KernelArgs& args, ElementType element,
                             const cuda::ProductParams& p) {
  LtProduct product;
  if (is_of_few_rows(p) || !product.read(p)) return false;
  const bool has_addend = product.addend_or_null != nullptr;
  const void* const addend = has_addend ? product.addend_or_null : p.out;
  const auto element_bytes = static_cast<int64_t>(element_size_bytes(element));
  const Key key = {static_cast<int64_t>(element),
                   p.m,
                   p.n,
                   p.k,
                   product.first.leading,
                   product.second.leading,
                   product.first.is_transposed,
                   product.second.is_transposed,
                   product.num_batches,
                   product.first.batch_stride,
                   product.second.batch_stride,
                   product.leading,
                   product.batch_stride,
                   has_addend,
                   product.row_or_null != nullptr,
                   product.addend_leading,
                   alignment_of(p.b, p.k * p.n * element_bytes),
                   alignment_of(p.a, p.m * p.k * element_bytes),
                   alignment_of(addend, p.m * p.n * element_bytes),
                   alignment_of(p.out, p.m * p.n * element_bytes),
                   alignment_of(product.row_or_null, p.n * element_bytes)};
  bool is_done = false;
  EDDY_RETURN_IF_ERROR(launcher_.in_context([&]() -> Status {
    EDDY_ASSIGN_OR_RETURN(const std::shared_ptr<Plan> plan, find(key, element, p));
    if (!plan->is_known) return Status::ok();
    const size_t bytes = plan->found.workspace_bytes;
    void* const workspace = bytes == 0 ? nullptr : args.scratch->reserve(bytes);
    if (bytes > 0 && workspace == nullptr) {
      return resource_exhausted("no device memory for a product's workspace of " +
                                std::to_string(bytes) + " bytes");
    }
    const LtCompute compute = compute_of(element, options_);
    const Operation operation(*api_, product, compute, product.row_or_null);
    EDDY_RETURN_IF_ERROR(check(operation.status(), "cublasLtMatmulDescCreate"));
    const bool is_double = compute == LtCompute::kDouble;
    const float factors[] = {p.alpha, has_addend ? p.beta : 0.0f};
    const double wide[] = {factors[0], factors[1]};
    const auto factor = [&](int i) {
      return is_double ? static_cast<const void*>(wide + i) : static_cast<const void*>(factors + i);
    };
    Status status =
        check(api_->matmul(handle_, operation.get(), factor(0), p.b, plan->layouts[0], p.a,
                           plan->layouts[1], factor(1), addend, plan->layouts[2], p.out,
                           plan->layouts[3], &plan->found.algorithm, workspace, bytes, args.stream),
              "cublasLtMatmul");
    is_done = status.code() != StatusCode::kUnsupported;
    if (is_done) return status;
    plan->is_known = false;  // our own kernel from here on, in every run
    return Status::ok();
  }));
  return is_done;
}

}  // namespace eddy
