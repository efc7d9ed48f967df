// CublasLtApi: the interface to cuBLASLt: the calls that matrix products need, in one table, and
// the types that cross it.
//
// Opened when a session with a GPU is made (load_cublas_lt); nothing is linked, so one binary runs
// with and without it, and a test puts a fake underneath. Why not cublasLt.h: its binary interface
// is stable, and with these few declarations every build is the same build (a test compares them
// with the header where a toolkit is). Names are ours, numbers the library's.
//
// Matrices are column-major there; ours are row-major, so a product is computed as that of the
// transposes.
// Source: NVIDIA, cuBLAS library user's guide, chapter cuBLASLt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "graph/base/status.h"
#include "ops/cuda/libraries/handle_pool.h"

namespace eddy {

using LtHandle = struct LtHandleTag*;
using LtMatmul = struct LtMatmulTag*;          // cublasLtMatmulDesc_t
using LtLayout = struct LtLayoutTag*;          // cublasLtMatrixLayout_t
using LtPreference = struct LtPreferenceTag*;  // cublasLtMatmulPreference_t

constexpr int kLtSuccess = 0;  // cublasStatus_t
constexpr int kLtNoMemory = 3;
constexpr int kLtNotSupported = 15;  // no algorithm for this product
// The call was refused for its parameters, and nothing has been enqueued; the same call will be
// refused again.
constexpr bool is_lt_refusal(int status) {
  constexpr int kInvalidValue = 7, kArchMismatch = 8;
  return status == kLtNotSupported || status == kInvalidValue || status == kArchMismatch;
}

// cudaDataType, cublasComputeType_t, cublasOperation_t.
enum class LtType : int { kFloat = 0, kDouble = 1, kHalf = 2, kBfloat16 = 14 };
enum class LtCompute : int { kFloat = 68, kDouble = 70, kFastTf32 = 77 };
constexpr int32_t kLtTransposed = 1;

// cublasLtMatmulDescAttributes_t, cublasLtEpilogue_t, cublasLtMatrixLayoutAttribute_t,
// cublasLtMatmulPreferenceAttributes_t.
constexpr int kLtTransposeA = 3;
constexpr int kLtTransposeB = 4;
constexpr int kLtEpilogue = 7;
constexpr int kLtBiasPointer = 8;
constexpr uint32_t kLtEpilogueBias = 4;
constexpr int kLtBatchCount = 5;
constexpr int kLtBatchStride = 6;
constexpr int kLtMaxWorkspace = 1;
constexpr int kLtMinAlignmentA = 5;  // then B, C, D

struct LtAlgorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct LtHeuristic {  // cublasLtMatmulHeuristicResult_t
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(LtHeuristic) == 96);

// X(entry, symbol, signature).
#define EDDY_CUBLAS_LT_CALLS(X)                                                                \
  X(create, "cublasLtCreate", int(LtHandle * handle))                                          \
  X(destroy, "cublasLtDestroy", int(LtHandle handle))                                          \
  X(version, "cublasLtGetVersion", size_t())                                                   \
  X(status_name, "cublasLtGetStatusName", const char*(int status))                             \
  X(matmul_create, "cublasLtMatmulDescCreate",                                                 \
    int(LtMatmul * matmul, LtCompute compute, LtType scale))                                   \
  X(matmul_destroy, "cublasLtMatmulDescDestroy", int(LtMatmul matmul))                         \
  X(matmul_set, "cublasLtMatmulDescSetAttribute",                                              \
    int(LtMatmul matmul, int attribute, const void* value, size_t bytes))                      \
  X(layout_create, "cublasLtMatrixLayoutCreate",                                               \
    int(LtLayout * layout, LtType type, uint64_t rows, uint64_t columns, int64_t leading))     \
  X(layout_destroy, "cublasLtMatrixLayoutDestroy", int(LtLayout layout))                       \
  X(layout_set, "cublasLtMatrixLayoutSetAttribute",                                            \
    int(LtLayout layout, int attribute, const void* value, size_t bytes))                      \
  X(preference_create, "cublasLtMatmulPreferenceCreate", int(LtPreference * preference))       \
  X(preference_destroy, "cublasLtMatmulPreferenceDestroy", int(LtPreference preference))       \
  X(preference_set, "cublasLtMatmulPreferenceSetAttribute",                                    \
    int(LtPreference preference, int attribute, const void* value, size_t bytes))              \
  X(heuristic, "cublasLtMatmulAlgoGetHeuristic",                                               \
    int(LtHandle handle, LtMatmul matmul, LtLayout a, LtLayout b, LtLayout c, LtLayout d,      \
        LtPreference preference, int num_wanted, LtHeuristic* found, int* num_found))          \
  X(matmul, "cublasLtMatmul",                                                                  \
    int(LtHandle handle, LtMatmul matmul, const void* alpha, const void* a, LtLayout a_layout, \
        const void* b, LtLayout b_layout, const void* beta, const void* c, LtLayout c_layout,  \
        void* d, LtLayout d_layout, const LtAlgorithm* algorithm, void* workspace,             \
        size_t workspace_bytes, void* stream))

struct CublasLtApi {
#define EDDY_CUBLAS_LT_ENTRY(entry, symbol, ...) std::function<__VA_ARGS__> entry;
  EDDY_CUBLAS_LT_CALLS(EDDY_CUBLAS_LT_ENTRY)
#undef EDDY_CUBLAS_LT_ENTRY
  std::shared_ptr<HandlePool<LtHandle>> handles = std::make_shared<HandlePool<LtHandle>>();
};

// The process's table. Errors: kNotFound, saying what was looked for, and kUnsupported for a
// library that lacks a call; products then run on our own kernels.
Result<std::shared_ptr<const CublasLtApi>> load_cublas_lt();
// The same from another file; for tests.
Result<std::shared_ptr<const CublasLtApi>> load_cublas_lt_from(const char* library);

}  // namespace eddy
