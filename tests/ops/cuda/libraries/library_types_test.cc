// Claim: our declarations of cuBLASLt's and cuDNN's types are the libraries': sizes, offsets and
// values are those of their headers, where a toolkit brings them.
#include <gtest/gtest.h>

#include "ops/cuda/libraries/cublas_lt.h"
#include "ops/cuda/libraries/cudnn.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif
#if __has_include(<cudnn.h>)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn.h>
#endif

namespace eddy {
namespace {

#ifdef CUBLAS_VER_MAJOR

static_assert(sizeof(LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(LtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(LtHeuristic, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(LtHeuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

TEST(LibraryTypes, ValuesAreCublasLts) {
  const std::pair<int, int> pairs[] = {
      {kLtSuccess, CUBLAS_STATUS_SUCCESS},
      {kLtNotSupported, CUBLAS_STATUS_NOT_SUPPORTED},
      {static_cast<int>(LtType::kFloat), CUDA_R_32F},
      {static_cast<int>(LtType::kDouble), CUDA_R_64F},
      {static_cast<int>(LtType::kHalf), CUDA_R_16F},
      {static_cast<int>(LtType::kBfloat16), CUDA_R_16BF},
      {static_cast<int>(LtCompute::kFloat), CUBLAS_COMPUTE_32F},
      {static_cast<int>(LtCompute::kDouble), CUBLAS_COMPUTE_64F},
      {static_cast<int>(LtCompute::kFastTf32), CUBLAS_COMPUTE_32F_FAST_TF32},
      {kLtTransposed, CUBLAS_OP_T},
      {kLtTransposeA, CUBLASLT_MATMUL_DESC_TRANSA},
      {kLtTransposeB, CUBLASLT_MATMUL_DESC_TRANSB},
      {kLtEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE},
      {kLtBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER},
      {static_cast<int>(kLtEpilogueBias), CUBLASLT_EPILOGUE_BIAS},
      {kLtBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT},
      {kLtBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET},
      {kLtMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES},
      {kLtMinAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES},
      {kLtMinAlignmentA + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}};
  for (const auto& [ours, theirs] : pairs) EXPECT_EQ(ours, theirs);
}

#else

TEST(LibraryTypes, ValuesAreCublasLts) { GTEST_SKIP() << "no cublasLt.h in this build"; }

#endif

#ifdef CUDNN_MAJOR

static_assert(sizeof(DnnAlgorithm) == sizeof(cudnnConvolutionFwdAlgoPerf_t));
static_assert(offsetof(DnnAlgorithm, workspace_bytes) ==
              offsetof(cudnnConvolutionFwdAlgoPerf_t, memory));
static_assert(offsetof(DnnAlgorithm, determinism) ==
              offsetof(cudnnConvolutionFwdAlgoPerf_t, determinism));

TEST(LibraryTypes, ValuesAreCudnns) {
  const std::pair<int, int> pairs[] = {
      {kDnnSuccess, CUDNN_STATUS_SUCCESS},
      {static_cast<int>(DnnType::kFloat), CUDNN_DATA_FLOAT},
      {static_cast<int>(DnnType::kDouble), CUDNN_DATA_DOUBLE},
      {static_cast<int>(DnnType::kHalf), CUDNN_DATA_HALF},
      {static_cast<int>(DnnType::kBfloat16), CUDNN_DATA_BFLOAT16},
      {kDnnFormatNchw, CUDNN_TENSOR_NCHW},
      {kDnnFormatNhwc, CUDNN_TENSOR_NHWC},
      {kDnnCrossCorrelation, CUDNN_CROSS_CORRELATION},
      {kDnnDefaultMath, CUDNN_DEFAULT_MATH},
      {kDnnFmaMath, CUDNN_FMA_MATH},
      {kDnnDeterministic, CUDNN_DETERMINISTIC},
      {static_cast<int>(DnnPoolMode::kMax), CUDNN_POOLING_MAX_DETERMINISTIC},
      {static_cast<int>(DnnPoolMode::kAverageOfWindow),
       CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING},
      {static_cast<int>(DnnPoolMode::kAverageOfInput), CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING},
      {kDnnPropagateNan, CUDNN_PROPAGATE_NAN},
      {kDnnRelu, CUDNN_ACTIVATION_RELU},
      {kDnnIdentity, CUDNN_ACTIVATION_IDENTITY},
      {kDnnPrecomputedGemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM},
      {kDnnNormSpatial, CUDNN_BATCHNORM_SPATIAL}};
  for (const auto& [ours, theirs] : pairs) EXPECT_EQ(ours, theirs);
}

#else

TEST(LibraryTypes, ValuesAreCudnns) { GTEST_SKIP() << "no cudnn.h in this build"; }

#endif

}  // namespace
}  // namespace eddy
