// The types of CUDA's driver interface, as far as Eddy calls it: handles, codes and the few
// structs that cross the boundary.
//
// Why not cuda.h: the driver's binary interface is stable and small, and Eddy opens the driver when
// a program runs. With these declarations every build is the same build: no toolkit is needed to
// compile the device, its fake and its tests, and one binary serves machines with and without a
// GPU. Where a toolkit is, a test compares each of them with cuda.h.
//
// Names are ours (CuStream is the driver's CUstream); values are the driver's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eddy {

// Handles: pointers to types that only the driver knows.
struct CuContextTag;
struct CuStreamTag;
struct CuEventTag;
struct CuModuleTag;
struct CuFunctionTag;
struct CuMemoryPoolTag;
struct CuGraphTag;
struct CuGraphNodeTag;
struct CuGraphExecTag;
using CuContext = CuContextTag*;
using CuStream = CuStreamTag*;
using CuEvent = CuEventTag*;
using CuModule = CuModuleTag*;
using CuFunction = CuFunctionTag*;
using CuMemoryPool = CuMemoryPoolTag*;
using CuGraph = CuGraphTag*;
using CuGraphNode = CuGraphNodeTag*;
using CuGraphExec = CuGraphExecTag*;
using CuDevice = int;
using CuDevicePointer = uint64_t;
using CuConditionalHandle = uint64_t;

// CUresult; those that Eddy makes or looks for. Any other value may come back too.
enum class CuResult : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kUnsupportedPtxVersion = 222,
  kInvalidHandle = 400,
  kLossyQuery = 402,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kMisalignedAddress = 716,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCapturedEvent = 907,
  kUnknown = 999,
};

// CUdevice_attribute.
enum class CuDeviceAttribute : int {
  kNumMultiprocessors = 16,
  kCanMapHostMemory = 19,
  kMaxThreadsPerMultiprocessor = 39,
  kUnifiedAddressing = 41,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMemoryPoolsSupported = 115,
};

// CUstream_flags, CUevent_flags, CU_MEMHOSTALLOC_*, CUstreamWaitValue_flags.
constexpr unsigned kCuStreamNonBlocking = 1;
constexpr unsigned kCuEventDisableTiming = 2;
constexpr unsigned kCuHostAllocPortable = 1;
constexpr unsigned kCuHostAllocMapped = 2;
constexpr unsigned kCuWaitValueGreaterOrEqual = 0;  // (int32)(word - value) >= 0
constexpr unsigned kCuWriteValueDefault = 0;        // behind a memory barrier

// CU_STREAM_LEGACY, CU_STREAM_PER_THREAD: handles that are no streams, but mean one; the second a
// different one on each thread.
constexpr uintptr_t kCuStreamLegacy = 1;
constexpr uintptr_t kCuStreamPerThread = 2;

// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: the kernel waits by itself for what is
// before it in its stream.
constexpr int kCuLaunchProgrammatic = 6;

struct CuLaunchAttribute {
  int id = 0;
  int reserved = 0;
  int value = 0;  // of those that are numbers
  char padding[60] = {};
};
static_assert(sizeof(CuLaunchAttribute) == 72);
static_assert(offsetof(CuLaunchAttribute, value) == 8, "as the driver reads it");

struct CuLaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  CuStream stream = nullptr;
  CuLaunchAttribute* attributes = nullptr;
  unsigned num_attributes = 0;
};
static_assert(sizeof(CuLaunchConfig) == 56);
static_assert(offsetof(CuLaunchConfig, stream) == 32, "as the driver reads it");

// CUpointer_attribute, CUmemorytype.
constexpr int kCuPointerMemoryType = 2;  // unsigned
constexpr unsigned kCuMemoryTypeDevice = 2;

// CUmemPool_attribute.
constexpr int kCuPoolReleaseThreshold = 4;  // uint64_t: bytes kept at synchronization

// CUmemPoolProps: a pool of plain device memory.
struct CuMemoryPoolProps {
  int allocation_type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED, the only one
  int handle_types = 0;     // none are exported
  int location_type = 1;    // CU_MEM_LOCATION_TYPE_DEVICE
  int location_id = 0;      // the device's ordinal
  void* security_attributes = nullptr;
  size_t max_size_bytes = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};
static_assert(sizeof(CuMemoryPoolProps) == 88);
static_assert(offsetof(CuMemoryPoolProps, security_attributes) == 16 &&
                  offsetof(CuMemoryPoolProps, usage) == 32,
              "as the driver reads it");

// CUgraphNodeType.
enum class CuGraphNodeType : int {
  kKernel = 0,
  kMemcpy = 1,
  kMemset = 2,
  kEmpty = 5,
  kConditional = 13
};

// CUstreamCaptureMode: what else this thread, or others, may call meanwhile. CUstreamCaptureStatus.
enum class CuCaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };
enum class CuCaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };

// CUgraphConditionalNodeType.
enum class CuConditionalType : int { kIf = 0, kWhile = 1, kSwitch = 2 };
// A handle takes its default value at each launch of its graph.
constexpr unsigned kCuConditionalAssignDefault = 1;

// CUgraphEdgeData. Of a kernel port 0 is its end, others are earlier: its trigger, its launch.
struct CuGraphEdgeData {
  unsigned char from_port = 0;
  unsigned char to_port = 0;
  unsigned char type = 0;
  unsigned char reserved[5] = {};
};
static_assert(sizeof(CuGraphEdgeData) == 8);

struct CuKernelNodeParams {  // CUDA_KERNEL_NODE_PARAMS_v3
  CuFunction function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  void** params = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  CuContext context = nullptr;
};
static_assert(sizeof(CuKernelNodeParams) == 72);
static_assert(offsetof(CuKernelNodeParams, params) == 40, "as the driver reads it");

struct CuConditionalNodeParams {  // CUDA_CONDITIONAL_NODE_PARAMS
  CuConditionalHandle handle = 0;
  CuConditionalType type = CuConditionalType::kIf;
  unsigned size = 1;              // bodies
  CuGraph* bodies_out = nullptr;  // filled by the driver, which owns the graphs
  CuContext context = nullptr;
};
static_assert(sizeof(CuConditionalNodeParams) == 32);
static_assert(offsetof(CuConditionalNodeParams, bodies_out) == 16, "as the driver writes it");

struct CuGraphNodeParams {
  CuGraphNodeParams() : padding{} {}
  CuGraphNodeType type = CuGraphNodeType::kEmpty;
  int reserved0[3] = {};
  union {  // of which `type` names one; the rest must be zero
    int64_t padding[29];
    CuKernelNodeParams kernel;
    CuConditionalNodeParams conditional;
  };
  int64_t reserved2 = 0;
};
static_assert(sizeof(CuGraphNodeParams) == 256);
static_assert(offsetof(CuGraphNodeParams, kernel) == 16, "as the driver reads it");

}  // namespace eddy
