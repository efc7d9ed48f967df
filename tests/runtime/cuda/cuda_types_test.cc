// Claim: our declarations of the driver's types are the driver's: sizes, offsets and values are
// those of cuda.h, where a toolkit brings it.
#include "runtime/cuda/cuda_types.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace eddy {
namespace {

#ifdef CUDA_VERSION

static_assert(sizeof(CuDevicePointer) == sizeof(CUdeviceptr));
static_assert(sizeof(CuConditionalHandle) == sizeof(CUgraphConditionalHandle));
static_assert(sizeof(CuLaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(CuLaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(CuLaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(CuLaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(CuLaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(CuLaunchConfig, num_attributes) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(CuMemoryPoolProps) == sizeof(CUmemPoolProps));
static_assert(offsetof(CuMemoryPoolProps, location_type) == offsetof(CUmemPoolProps, location));
static_assert(offsetof(CuMemoryPoolProps, usage) == offsetof(CUmemPoolProps, usage));
static_assert(sizeof(CuKernelNodeParams) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3));
static_assert(offsetof(CuKernelNodeParams, params) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v3, kernelParams));
static_assert(offsetof(CuKernelNodeParams, context) == offsetof(CUDA_KERNEL_NODE_PARAMS_v3, ctx));
static_assert(sizeof(CuConditionalNodeParams) == sizeof(CUDA_CONDITIONAL_NODE_PARAMS));
static_assert(offsetof(CuConditionalNodeParams, bodies_out) ==
              offsetof(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out));
static_assert(sizeof(CuGraphNodeParams) == sizeof(CUgraphNodeParams));
static_assert(sizeof(CuGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(offsetof(CuGraphEdgeData, type) == offsetof(CUgraphEdgeData, type));
static_assert(offsetof(CuGraphNodeParams, kernel) == offsetof(CUgraphNodeParams, kernel));

TEST(CudaTypesTest, ValuesAreTheDrivers) {
  const std::pair<int, int> pairs[] = {
      {static_cast<int>(CuResult::kOutOfMemory), CUDA_ERROR_OUT_OF_MEMORY},
      {static_cast<int>(CuResult::kNotInitialized), CUDA_ERROR_NOT_INITIALIZED},
      {static_cast<int>(CuResult::kNoDevice), CUDA_ERROR_NO_DEVICE},
      {static_cast<int>(CuResult::kInvalidDevice), CUDA_ERROR_INVALID_DEVICE},
      {static_cast<int>(CuResult::kInvalidImage), CUDA_ERROR_INVALID_IMAGE},
      {static_cast<int>(CuResult::kInvalidContext), CUDA_ERROR_INVALID_CONTEXT},
      {static_cast<int>(CuResult::kNoBinaryForGpu), CUDA_ERROR_NO_BINARY_FOR_GPU},
      {static_cast<int>(CuResult::kUnsupportedPtxVersion), CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
      {static_cast<int>(CuResult::kInvalidHandle), CUDA_ERROR_INVALID_HANDLE},
      {static_cast<int>(CuResult::kLossyQuery), CUDA_ERROR_LOSSY_QUERY},
      {static_cast<int>(CuResult::kNotFound), CUDA_ERROR_NOT_FOUND},
      {static_cast<int>(CuResult::kNotReady), CUDA_ERROR_NOT_READY},
      {static_cast<int>(CuResult::kIllegalAddress), CUDA_ERROR_ILLEGAL_ADDRESS},
      {static_cast<int>(CuResult::kLaunchOutOfResources), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
      {static_cast<int>(CuResult::kLaunchTimeout), CUDA_ERROR_LAUNCH_TIMEOUT},
      {static_cast<int>(CuResult::kMisalignedAddress), CUDA_ERROR_MISALIGNED_ADDRESS},
      {static_cast<int>(CuResult::kLaunchFailed), CUDA_ERROR_LAUNCH_FAILED},
      {static_cast<int>(CuResult::kNotPermitted), CUDA_ERROR_NOT_PERMITTED},
      {static_cast<int>(CuResult::kNotSupported), CUDA_ERROR_NOT_SUPPORTED},
      {static_cast<int>(CuResult::kCaptureUnsupported), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {static_cast<int>(CuResult::kCaptureInvalidated), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED},
      {static_cast<int>(CuResult::kCaptureMerge), CUDA_ERROR_STREAM_CAPTURE_MERGE},
      {static_cast<int>(CuResult::kCaptureUnmatched), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED},
      {static_cast<int>(CuResult::kCaptureUnjoined), CUDA_ERROR_STREAM_CAPTURE_UNJOINED},
      {static_cast<int>(CuResult::kCaptureIsolation), CUDA_ERROR_STREAM_CAPTURE_ISOLATION},
      {static_cast<int>(CuResult::kCapturedEvent), CUDA_ERROR_CAPTURED_EVENT},
      {static_cast<int>(CuCaptureMode::kRelaxed), CU_STREAM_CAPTURE_MODE_RELAXED},
      {static_cast<int>(CuCaptureStatus::kActive), CU_STREAM_CAPTURE_STATUS_ACTIVE},
      {static_cast<int>(CuResult::kUnknown), CUDA_ERROR_UNKNOWN},
      {static_cast<int>(CuDeviceAttribute::kNumMultiprocessors),
       CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {static_cast<int>(CuDeviceAttribute::kCanMapHostMemory),
       CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
      {static_cast<int>(CuDeviceAttribute::kMaxThreadsPerMultiprocessor),
       CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
      {static_cast<int>(CuDeviceAttribute::kUnifiedAddressing),
       CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
      {static_cast<int>(CuDeviceAttribute::kComputeCapabilityMajor),
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {static_cast<int>(CuDeviceAttribute::kComputeCapabilityMinor),
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {static_cast<int>(CuDeviceAttribute::kMemoryPoolsSupported),
       CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
      {kCuStreamNonBlocking, CU_STREAM_NON_BLOCKING},
      {kCuStreamLegacy, static_cast<int>(reinterpret_cast<uintptr_t>(CU_STREAM_LEGACY))},
      {kCuStreamPerThread, static_cast<int>(reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD))},
      {kCuEventDisableTiming, CU_EVENT_DISABLE_TIMING},
      {kCuHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE},
      {kCuHostAllocMapped, CU_MEMHOSTALLOC_DEVICEMAP},
      {kCuWaitValueGreaterOrEqual, CU_STREAM_WAIT_VALUE_GEQ},
      {kCuWriteValueDefault, CU_STREAM_WRITE_VALUE_DEFAULT},
      {kCuLaunchProgrammatic, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION},
      {kCuPoolReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD},
      {CuMemoryPoolProps{}.allocation_type, CU_MEM_ALLOCATION_TYPE_PINNED},
      {CuMemoryPoolProps{}.location_type, CU_MEM_LOCATION_TYPE_DEVICE},
      {static_cast<int>(CuGraphNodeType::kKernel), CU_GRAPH_NODE_TYPE_KERNEL},
      {static_cast<int>(CuGraphNodeType::kMemcpy), CU_GRAPH_NODE_TYPE_MEMCPY},
      {static_cast<int>(CuGraphNodeType::kMemset), CU_GRAPH_NODE_TYPE_MEMSET},
      {static_cast<int>(CuGraphNodeType::kEmpty), CU_GRAPH_NODE_TYPE_EMPTY},
      {static_cast<int>(CuGraphNodeType::kConditional), CU_GRAPH_NODE_TYPE_CONDITIONAL},
      {static_cast<int>(CuConditionalType::kIf), CU_GRAPH_COND_TYPE_IF},
      {static_cast<int>(CuConditionalType::kWhile), CU_GRAPH_COND_TYPE_WHILE},
      {static_cast<int>(CuConditionalType::kSwitch), CU_GRAPH_COND_TYPE_SWITCH},
      {kCuConditionalAssignDefault, CU_GRAPH_COND_ASSIGN_DEFAULT}};
  for (const auto& [ours, theirs] : pairs) EXPECT_EQ(ours, theirs);
}

#else

TEST(CudaTypesTest, ValuesAreTheDrivers) { GTEST_SKIP() << "no cuda.h in this build"; }

#endif

}  // namespace
}  // namespace eddy
