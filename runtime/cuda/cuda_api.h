// CudaApi: every CUDA call of Eddy, in one table, so that a test can put a fake underneath.
//
// The real table is filled from libcuda.so.1 when a program first asks (load_cuda_api); nothing is
// linked. The entries are std::function rather than bare pointers: a fake without globals needs
// its own state, and the two nanoseconds are lost beside a launch of microseconds.
//
// Entries marked optional may be empty: what needs them asks first (`if (api.graph_launch)`).
// Meaning, errors and threads of each call are the driver's; see its reference by the symbol.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "runtime/cuda/cuda_types.h"

namespace eddy {

// X(entry, symbol in libcuda, is_required, signature). Symbols carry the version suffix that
// cuda.h would choose, because dlsym does not.
#define EDDY_CUDA_CALLS(X)                                                                         \
  X(init, "cuInit", true, CuResult(unsigned flags))                                                \
  X(driver_version, "cuDriverGetVersion", true, CuResult(int* version))                            \
  X(error_name, "cuGetErrorName", true, CuResult(CuResult error, const char** name))               \
  X(error_string, "cuGetErrorString", true, CuResult(CuResult error, const char** text))           \
  X(device_count, "cuDeviceGetCount", true, CuResult(int* count))                                  \
  X(device_get, "cuDeviceGet", true, CuResult(CuDevice* device, int ordinal))                      \
  X(device_name, "cuDeviceGetName", true, CuResult(char* name, int length, CuDevice device))       \
  X(device_attribute, "cuDeviceGetAttribute", true,                                                \
    CuResult(int* value, CuDeviceAttribute attribute, CuDevice device))                            \
  X(device_memory, "cuDeviceTotalMem_v2", true, CuResult(size_t* bytes, CuDevice device))          \
  X(memory_info, "cuMemGetInfo_v2", false, CuResult(size_t* free_bytes, size_t* bytes))            \
  X(primary_context_retain, "cuDevicePrimaryCtxRetain", true,                                      \
    CuResult(CuContext* context, CuDevice device))                                                 \
  X(primary_context_release, "cuDevicePrimaryCtxRelease_v2", true, CuResult(CuDevice device))      \
  X(context_push, "cuCtxPushCurrent_v2", true, CuResult(CuContext context))                        \
  X(context_pop, "cuCtxPopCurrent_v2", true, CuResult(CuContext* context))                         \
  X(context_synchronize, "cuCtxSynchronize", true, CuResult())                                     \
  X(thread_capture_mode, "cuThreadExchangeStreamCaptureMode", true, CuResult(CuCaptureMode* mode)) \
  X(stream_priorities, "cuCtxGetStreamPriorityRange", true, CuResult(int* least, int* greatest))   \
  X(stream_create, "cuStreamCreateWithPriority", true,                                             \
    CuResult(CuStream* stream, unsigned flags, int priority))                                      \
  X(stream_destroy, "cuStreamDestroy_v2", true, CuResult(CuStream stream))                         \
  X(stream_synchronize, "cuStreamSynchronize", true, CuResult(CuStream stream))                    \
  X(stream_query, "cuStreamQuery", true, CuResult(CuStream stream))                                \
  X(stream_context, "cuStreamGetCtx", true, CuResult(CuStream stream, CuContext* context))         \
  X(stream_wait_event, "cuStreamWaitEvent", true,                                                  \
    CuResult(CuStream stream, CuEvent event, unsigned flags))                                      \
  X(stream_write_value32, "cuStreamWriteValue32_v2", false,                                        \
    CuResult(CuStream stream, CuDevicePointer address, uint32_t value, unsigned flags))            \
  X(stream_wait_value32, "cuStreamWaitValue32_v2", false,                                          \
    CuResult(CuStream stream, CuDevicePointer address, uint32_t value, unsigned flags))            \
  X(event_create, "cuEventCreate", true, CuResult(CuEvent* event, unsigned flags))                 \
  X(event_destroy, "cuEventDestroy_v2", true, CuResult(CuEvent event))                             \
  X(event_record, "cuEventRecord", true, CuResult(CuEvent event, CuStream stream))                 \
  X(event_query, "cuEventQuery", true, CuResult(CuEvent event))                                    \
  X(pool_create, "cuMemPoolCreate", true,                                                          \
    CuResult(CuMemoryPool* pool, const CuMemoryPoolProps* props))                                  \
  X(pool_destroy, "cuMemPoolDestroy", true, CuResult(CuMemoryPool pool))                           \
  X(pool_set_attribute, "cuMemPoolSetAttribute", true,                                             \
    CuResult(CuMemoryPool pool, int attribute, void* value))                                       \
  X(memory_allocate, "cuMemAllocFromPoolAsync", true,                                              \
    CuResult(CuDevicePointer* memory, size_t bytes, CuMemoryPool pool, CuStream stream))           \
  X(memory_free, "cuMemFreeAsync", true, CuResult(CuDevicePointer memory, CuStream stream))        \
  X(host_allocate, "cuMemHostAlloc", true, CuResult(void** memory, size_t bytes, unsigned flags))  \
  X(host_free, "cuMemFreeHost", true, CuResult(void* memory))                                      \
  X(host_device_pointer, "cuMemHostGetDevicePointer_v2", true,                                     \
    CuResult(CuDevicePointer* pointer, void* memory, unsigned flags))                              \
  X(pointer_attribute, "cuPointerGetAttribute", false,                                             \
    CuResult(void* value, int attribute, CuDevicePointer pointer))                                 \
  X(copy, "cuMemcpyAsync", true,                                                                   \
    CuResult(CuDevicePointer to, CuDevicePointer from, size_t bytes, CuStream stream))             \
  X(fill, "cuMemsetD8Async", true,                                                                 \
    CuResult(CuDevicePointer to, unsigned char value, size_t bytes, CuStream stream))              \
  X(module_load, "cuModuleLoadData", true, CuResult(CuModule* module, const void* image))          \
  X(module_unload, "cuModuleUnload", true, CuResult(CuModule module))                              \
  X(module_function, "cuModuleGetFunction", true,                                                  \
    CuResult(CuFunction* function, CuModule module, const char* name))                             \
  X(launch_kernel, "cuLaunchKernel", true,                                                         \
    CuResult(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,               \
             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,          \
             CuStream stream, void** params, void** extra))                                        \
  X(launch_kernel_ex, "cuLaunchKernelEx", false,                                                   \
    CuResult(const CuLaunchConfig* config, CuFunction function, void** params, void** extra))      \
  X(graph_create, "cuGraphCreate", false, CuResult(CuGraph* graph, unsigned flags))                \
  X(graph_destroy, "cuGraphDestroy", false, CuResult(CuGraph graph))                               \
  X(graph_add_node, "cuGraphAddNode_v2", false,                                                    \
    CuResult(CuGraphNode* node, CuGraph graph, const CuGraphNode* after,                           \
             const void* edge_data_or_null, size_t num_after, CuGraphNodeParams* params))          \
  X(graph_nodes, "cuGraphGetNodes", false,                                                         \
    CuResult(CuGraph graph, CuGraphNode* nodes_or_null, size_t* num_nodes))                        \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", false,                                       \
    CuResult(CuGraphExec* executable, CuGraph graph, unsigned long long flags))                    \
  X(graph_upload, "cuGraphUpload", false, CuResult(CuGraphExec executable, CuStream stream))       \
  X(graph_exec_destroy, "cuGraphExecDestroy", false, CuResult(CuGraphExec executable))             \
  X(graph_launch, "cuGraphLaunch", false, CuResult(CuGraphExec executable, CuStream stream))       \
  X(stream_begin_capture, "cuStreamBeginCaptureToGraph", false,                                    \
    CuResult(CuStream stream, CuGraph graph, const CuGraphNode* after,                             \
             const void* edge_data_or_null, size_t num_after, CuCaptureMode mode))                 \
  X(stream_is_capturing, "cuStreamIsCapturing", false,                                             \
    CuResult(CuStream stream, CuCaptureStatus* status))                                            \
  X(stream_end_capture, "cuStreamEndCapture", false, CuResult(CuStream stream, CuGraph* graph))    \
  X(stream_capture_info, "cuStreamGetCaptureInfo_v2", false,                                       \
    CuResult(CuStream stream, CuCaptureStatus* status, uint64_t* id, CuGraph* graph,               \
             const CuGraphNode** last, size_t* num_last))                                          \
  X(stream_capture_info_edges, "cuStreamGetCaptureInfo_v3", false,                                 \
    CuResult(CuStream stream, CuCaptureStatus* status, uint64_t* id, CuGraph* graph,               \
             const CuGraphNode** last, const CuGraphEdgeData** edges, size_t* num_last))           \
  X(graph_conditional_handle, "cuGraphConditionalHandleCreate", false,                             \
    CuResult(CuConditionalHandle* handle, CuGraph graph, CuContext context,                        \
             unsigned default_value, unsigned flags))

struct CudaApi {
#define EDDY_CUDA_ENTRY(entry, symbol, is_required, ...) std::function<__VA_ARGS__> entry;
  EDDY_CUDA_CALLS(EDDY_CUDA_ENTRY)
#undef EDDY_CUDA_ENTRY

  // Symbols that an optional entry lacks.
  std::vector<std::string> missing;

  // Conditional nodes work from CUDA 12.8 on (before it, empty bodies hang).
  static constexpr int kDeviceDrivenVersion = 12080;
  // What is issued to streams can be recorded as a part of a graph (CUDA 12.3 and newer).
  bool has_capture() const {
    return has_graphs() && stream_begin_capture && stream_end_capture && stream_capture_info;
  }
  bool has_graphs() const {
    return graph_create && graph_add_node && graph_instantiate && graph_exec_destroy &&
           graph_destroy && graph_launch;
  }
  // Kernels can be launched programmatically (cuda_launch.h).
  bool has_programmatic() const { return launch_kernel_ex && stream_is_capturing; }
  bool has_memory_words() const { return stream_write_value32 && stream_wait_value32; }
};

// Opens the driver and calls init. Errors: kDeviceLost, saying what was looked for, what is
// missing, or what the driver answered. Cost: the driver's start, some 100 ms the first time in a
// process. The library stays open to the end of the process, because its own threads do.
Result<std::shared_ptr<const CudaApi>> load_cuda_api();

// The same from another file; for tests.
Result<std::shared_ptr<const CudaApi>> load_cuda_api_from(const std::string& library);

// "13.0" of 13000.
std::string cuda_version_text(int version);

}  // namespace eddy
