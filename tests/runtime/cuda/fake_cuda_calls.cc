// long: the table of a fake GPU: what each call checks and enqueues, one after the other.
#include <algorithm>
#include <cstring>

#include "graph/base/check.h"
#include "runtime/coroutine/scheduler.h"
#include "tests/runtime/cuda/fake_cuda.h"

namespace eddy::testing {
namespace {

constexpr CuResult kOk = CuResult::kSuccess;

bool may_wait(const std::string& call) {
  static constexpr const char* kCalls[] = {
      "memory_allocate",    "host_allocate",     "host_free",
      "stream_create",      "stream_destroy",    "context_synchronize",
      "stream_synchronize", "graph_instantiate", "graph_upload"};
  return std::ranges::find(kCalls, call) != std::end(kCalls);
}

}  // namespace

int FakeCuda::current_device() const {
  const auto found = contexts_.find(std::this_thread::get_id());
  return found == contexts_.end() || found->second.empty() ? -1 : found->second.back();
}

template <typename Call>
void FakeCuda::run_failing(Call call) {
  is_call_failing_ = true;
  call();
  is_call_failing_ = false;
}

template <typename... Args, typename Body>
void FakeCuda::define(std::function<CuResult(Args...)>& entry, const char* name, CallKind kind,
                      Body body) {
  entry = [this, name, kind, body](Args... args) -> CuResult {
    num_waiting_.fetch_add(1, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    num_waiting_.fetch_sub(1, std::memory_order_relaxed);
    if (Scheduler::current_or_null() != nullptr && may_wait(name)) {
      violation(std::string(name) + " on a scheduler's thread");
    }
    if (++num_calls_ == fail_at_ || fail_next_ == name) {
      fail_next_.clear();
      failed_call_ = name;
      const bool is_sticky =
          fail_with_ == CuResult::kIllegalAddress || fail_with_ == CuResult::kLaunchFailed;
      // Without a current context the device is unknown.
      const int device = current_device();
      for (int d = 0; is_sticky && d < options_.num_devices; ++d) {
        if (device < 0 || d == device) lose(d, fail_with_);
      }
      if (is_release(kind)) run_failing([&] { body(args...); });  // freed all the same
      return fail_with_;
    }
    if (kind == CallKind::kContext || kind == CallKind::kContextRelease) {
      const int device = current_device();
      if (device < 0) {
        violation(std::string(name) + " without a current context");
        return CuResult::kInvalidContext;
      }
      const CuResult lost = devices_[static_cast<size_t>(device)]->lost;
      if (lost != kOk) {
        if (is_release(kind)) run_failing([&] { body(args...); });
        return lost;
      }
      if (spoils_global_capture(name)) return CuResult::kCaptureUnsupported;
    }
    return body(args...);
  };
}

CuResult FakeCuda::enqueue(CuStream handle, Op op) {
  const auto found = streams_.find(handle);
  if (found == streams_.end() || found->second->is_destroyed) {
    violation("work for a stream that does not exist");
    return CuResult::kInvalidHandle;
  }
  Stream& stream = *found->second;
  if (stream.device != current_device()) {
    violation("work for a stream of another device than the current one");
    return CuResult::kInvalidHandle;
  }
  if (devices_[static_cast<size_t>(stream.device)]->lost != kOk) {
    if (op.kind == OpKind::kRecord) op.record->is_done = true;
    if (op.kind == OpKind::kFree)
      devices_[static_cast<size_t>(stream.device)]->memory.mark_freed(op.to);
    return kOk;
  }
  if (stream.capture != nullptr) return capture(stream, std::move(op));
  ++counts_.calls;
  counts_.graph_launches += op.kind == OpKind::kGraph ? 1 : 0;
  counts_.word_writes += op.kind == OpKind::kWriteWord ? 1 : 0;
  op.number = next_op_++;
  stream.ops.push_back(std::move(op));
  return kOk;
}

void FakeCuda::fill_table(CudaApi& api) {
  fill_devices(api);
  fill_contexts(api);
  fill_streams(api);
  fill_events(api);
  if (options_.has_memory_words) fill_words(api);
  fill_memory(api);
  fill_kernels(api);
  if (!options_.has_graphs) return;
  fill_graphs(api);
  fill_capture(api);
}

void FakeCuda::fill_devices(CudaApi& api) {
  define(api.init, "init", CallKind::kFree, [](unsigned) { return kOk; });
  define(api.driver_version, "driver_version", CallKind::kFree, [this](int* version) {
    *version = options_.driver_version;
    return kOk;
  });
  // Names can be queried at any time, also of a lost device: neither counted nor failed.
  api.error_name = [](CuResult result, const char** name) {
    *name = result == CuResult::kOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == CuResult::kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : result == CuResult::kLaunchFailed   ? "CUDA_ERROR_LAUNCH_FAILED"
                                                  : "CUDA_ERROR_OF_THE_FAKE";
    return kOk;
  };
  api.error_string = [](CuResult, const char** text) {
    *text = "an error of the fake";
    return kOk;
  };
  define(api.device_count, "device_count", CallKind::kFree, [this](int* count) {
    *count = options_.num_devices;
    return kOk;
  });
  define(api.device_get, "device_get", CallKind::kFree, [this](CuDevice* device, int ordinal) {
    if (ordinal < 0 || ordinal >= options_.num_devices) return CuResult::kInvalidDevice;
    *device = ordinal;
    return kOk;
  });
  define(api.memory_info, "memory_info", CallKind::kContext,
         [this](size_t* free_bytes, size_t* bytes) {
           const FakeMemory& memory = devices_[static_cast<size_t>(current_device())]->memory;
           *free_bytes = memory.free_bytes();
           *bytes = memory.limit_bytes();
           return kOk;
         });
  define(api.device_name, "device_name", CallKind::kFree, [](char* name, int length, CuDevice) {
    std::strncpy(name, "Fake GPU", static_cast<size_t>(length));
    return kOk;
  });
  define(api.device_attribute, "device_attribute", CallKind::kFree,
         [](int* value, CuDeviceAttribute attribute, CuDevice) {
           switch (attribute) {
             case CuDeviceAttribute::kNumMultiprocessors:
               *value = 4;
               return kOk;
             case CuDeviceAttribute::kMaxThreadsPerMultiprocessor:
               *value = 2048;
               return kOk;
             case CuDeviceAttribute::kComputeCapabilityMajor:
               *value = 9;
               return kOk;
             case CuDeviceAttribute::kComputeCapabilityMinor:
               *value = 0;
               return kOk;
             default:
               *value = 1;
               return kOk;
           }
         });
  define(api.device_memory, "device_memory", CallKind::kFree, [this](size_t* bytes, CuDevice) {
    *bytes = options_.memory_bytes;
    return kOk;
  });
}

void FakeCuda::fill_contexts(CudaApi& api) {
  define(api.primary_context_retain, "primary_context_retain", CallKind::kFree,
         [this](CuContext* context, CuDevice device) {
           ++devices_.at(static_cast<size_t>(device))->retained;
           *context = reinterpret_cast<CuContext>(static_cast<uintptr_t>(device) + 1);
           return kOk;
         });
  define(api.primary_context_release, "primary_context_release", CallKind::kRelease,
         [this](CuDevice device) {
           --devices_.at(static_cast<size_t>(device))->retained;
           return kOk;
         });
  define(api.context_push, "context_push", CallKind::kFree, [this](CuContext context) {
    contexts_[std::this_thread::get_id()].push_back(
        static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1);
    return kOk;
  });
  define(api.context_pop, "context_pop", CallKind::kRelease, [this](CuContext* context) {
    auto& stack = contexts_[std::this_thread::get_id()];
    if (stack.empty()) return CuResult::kInvalidContext;
    *context = reinterpret_cast<CuContext>(static_cast<uintptr_t>(stack.back()) + 1);
    stack.pop_back();
    return kOk;
  });
}

// long: one entry of the table after the other.
void FakeCuda::fill_streams(CudaApi& api) {
  // A thread's own word, which never fails: not counted.
  api.thread_capture_mode = [this](CuCaptureMode* mode) {
    std::lock_guard lock(modes_mutex_);
    CuCaptureMode& own =
        modes_.try_emplace(std::this_thread::get_id(), CuCaptureMode::kGlobal).first->second;
    std::swap(own, *mode);
    return kOk;
  };
  define(api.context_synchronize, "context_synchronize", CallKind::kContextRelease, [this] {
    const int device = current_device();
    if (spoil_captures_of(device)) return CuResult::kCaptureUnsupported;
    const auto is_busy = [&](const auto& entry) {
      return entry.second->device == device && !entry.second->is_empty();
    };
    while (std::any_of(streams_.begin(), streams_.end(), is_busy)) {
      if (step_locked()) continue;
      if (is_any_running()) {
        let_graph_go_on();
        continue;
      }
      violation("a synchronization that never ends");
      return CuResult::kUnknown;
    }
    return devices_[static_cast<size_t>(device)]->lost;
  });
  define(api.stream_priorities, "stream_priorities", CallKind::kContext,
         [](int* least, int* greatest) {
           *least = 0;
           *greatest = -5;
           return kOk;
         });
  define(api.stream_create, "stream_create", CallKind::kContext,
         [this](CuStream* stream, unsigned flags, int priority) {
           if (flags != kCuStreamNonBlocking) violation("a stream that waits for the null stream");
           if (priority > 0 || priority < -5) violation("a stream of a priority that there is not");
           *stream = reinterpret_cast<CuStream>(next_handle_++);
           auto made = std::make_unique<Stream>();
           made->number = next_stream_++;
           made->device = current_device();
           const int place = num_streams_[{made->device, priority}]++;
           made->queue = {priority, options_.num_queues == 0 ? 0 : place % options_.num_queues};
           made->priority = policy_ == 2 && made->number % 2 == 0
                                ? UINT32_MAX  // starved: only when nothing else can run
                                : static_cast<uint32_t>(random_.next() >> 33);
           streams_[*stream] = std::move(made);
           return kOk;
         });
  define(api.stream_destroy, "stream_destroy", CallKind::kContextRelease, [this](CuStream stream) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return CuResult::kInvalidHandle;
    if (found->second->capture != nullptr) violation("a stream that captures is destroyed");
    found->second->is_destroyed = true;  // it ends its work first
    if (found->second->is_empty()) streams_.erase(found);
    return kOk;
  });
  define(api.stream_synchronize, "stream_synchronize", CallKind::kContextRelease,
         [this](CuStream stream) {
           const auto found = streams_.find(stream);
           if (found == streams_.end()) return CuResult::kInvalidHandle;
           if (found->second->capture != nullptr) {
             return spoil(*found->second->capture, CuResult::kCaptureUnsupported);
           }
           while (!found->second->is_empty()) {
             if (step_locked()) continue;
             if (is_any_running()) {
               let_graph_go_on();
               continue;
             }
             violation("a synchronization that never ends");
             return CuResult::kUnknown;
           }
           return devices_[static_cast<size_t>(found->second->device)]->lost;
         });
  define(api.stream_query, "stream_query", CallKind::kContext, [this](CuStream stream) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return CuResult::kInvalidHandle;
    if (found->second->capture != nullptr) {
      return spoil(*found->second->capture, CuResult::kCaptureUnsupported);
    }
    return found->second->is_empty() ? kOk : CuResult::kNotReady;
  });
  define(api.stream_context, "stream_context", CallKind::kContext,
         [this](CuStream stream, CuContext* context) {
           const auto found = streams_.find(stream);
           if (found == streams_.end()) return CuResult::kInvalidHandle;
           *context =
               reinterpret_cast<CuContext>(static_cast<uintptr_t>(found->second->device) + 1);
           return kOk;
         });
  define(api.stream_wait_event, "stream_wait_event", CallKind::kContext,
         [this](CuStream stream, CuEvent event, unsigned) {
           const auto found = events_.find(event);
           if (found == events_.end()) return CuResult::kInvalidHandle;
           const auto waiter = streams_.find(stream);
           if (waiter == streams_.end()) return CuResult::kInvalidHandle;
           Stream& waits = *waiter->second;
           if (found->second->capture != nullptr) return join_capture(waits, *found->second);
           if (waits.capture != nullptr) {
             return spoil(*waits.capture, CuResult::kCaptureIsolation);
           }
           if (found->second->latest == nullptr) return kOk;
           return enqueue(stream, {.kind = OpKind::kWait, .record = found->second->latest});
         });
}

void FakeCuda::fill_events(CudaApi& api) {
  define(api.event_create, "event_create", CallKind::kContext,
         [this](CuEvent* event, unsigned flags) {
           if (flags != kCuEventDisableTiming) violation("an event with timing");
           *event = reinterpret_cast<CuEvent>(next_handle_++);
           events_[*event] = std::make_unique<Event>(Event{current_device(), nullptr, nullptr, {}});
           return kOk;
         });
  define(api.event_destroy, "event_destroy", CallKind::kContextRelease, [this](CuEvent event) {
    return events_.erase(event) == 1 ? kOk : CuResult::kInvalidHandle;
  });
  define(api.event_record, "event_record", CallKind::kContext,
         [this](CuEvent event, CuStream stream) {
           const auto found = events_.find(event);
           if (found == events_.end()) return CuResult::kInvalidHandle;
           const auto on = streams_.find(stream);
           if (on == streams_.end()) return CuResult::kInvalidHandle;
           found->second->capture = on->second->capture;
           found->second->last = on->second->last;
           if (on->second->capture != nullptr) {
             found->second->latest = nullptr;
             return on->second->capture->is_spoilt ? CuResult::kCaptureInvalidated : kOk;
           }
           found->second->latest = std::make_shared<Record>();
           return enqueue(stream, {.kind = OpKind::kRecord, .record = found->second->latest});
         });
  define(api.event_query, "event_query", CallKind::kContext, [this](CuEvent event) {
    const auto found = events_.find(event);
    if (found == events_.end()) return CuResult::kInvalidHandle;
    if (found->second->capture != nullptr) {
      if (found->second->capture->has_ended) return CuResult::kCapturedEvent;
      return spoil(*found->second->capture, CuResult::kCapturedEvent);
    }
    const auto& latest = found->second->latest;
    return latest == nullptr || latest->is_done ? kOk : CuResult::kNotReady;
  });
}

void FakeCuda::fill_words(CudaApi& api) {
  define(api.stream_write_value32, "stream_write_value32", CallKind::kContext,
         [this](CuStream stream, CuDevicePointer to, uint32_t value, unsigned) {
           const int device = current_device();
           const bool is_ours =
               is_pinned(to, 4) || devices_[static_cast<size_t>(device)]->memory.contains(to);
           if (!is_ours) return CuResult::kInvalidValue;
           return enqueue(stream, {.kind = OpKind::kWriteWord, .to = to, .value = value});
         });
  define(api.stream_wait_value32, "stream_wait_value32", CallKind::kContext,
         [this](CuStream stream, CuDevicePointer to, uint32_t value, unsigned flags) {
           if (!is_pinned(to, 4) || flags != kCuWaitValueGreaterOrEqual) {
             return CuResult::kInvalidValue;
           }
           return enqueue(stream, {.kind = OpKind::kWaitWord, .to = to, .value = value});
         });
}

// long: one entry of the table after the other.
void FakeCuda::fill_memory(CudaApi& api) {
  define(api.pool_create, "pool_create", CallKind::kFree,
         [this](CuMemoryPool* pool, const CuMemoryPoolProps* props) {
           if (props->location_id < 0 || props->location_id >= options_.num_devices) {
             return CuResult::kInvalidValue;
           }
           *pool = reinterpret_cast<CuMemoryPool>(next_handle_++);
           pools_[*pool] = props->location_id;
           return kOk;
         });
  define(api.pool_destroy, "pool_destroy", CallKind::kRelease, [this](CuMemoryPool pool) {
    const auto found = pools_.find(pool);
    if (found == pools_.end()) return CuResult::kInvalidValue;
    spoil_captures_of(found->second);
    pools_.erase(found);
    return kOk;
  });
  define(api.pool_set_attribute, "pool_set_attribute", CallKind::kFree,
         [this](CuMemoryPool pool, int attribute, void*) {
           const bool is_known = pools_.count(pool) == 1 && attribute == kCuPoolReleaseThreshold;
           return is_known ? kOk : CuResult::kInvalidValue;
         });
  define(api.memory_allocate, "memory_allocate", CallKind::kContext,
         [this](CuDevicePointer* memory, size_t bytes, CuMemoryPool pool, CuStream stream) {
           const auto found = pools_.find(pool);
           if (found == pools_.end()) return CuResult::kInvalidValue;
           *memory = devices_[static_cast<size_t>(found->second)]->memory.reserve(bytes);
           if (*memory == 0) return CuResult::kOutOfMemory;
           return enqueue(stream, {.kind = OpKind::kAllocate, .to = *memory});
         });
  define(api.memory_free, "memory_free", CallKind::kContextRelease,
         [this](CuDevicePointer memory, CuStream stream) {
           if (!devices_[static_cast<size_t>(current_device())]->memory.is_reserved(memory)) {
             return CuResult::kInvalidValue;
           }
           return enqueue(stream, {.kind = OpKind::kFree, .to = memory});
         });
  define(api.host_allocate, "host_allocate", CallKind::kContext,
         [this](void** memory, size_t bytes, unsigned) {
           *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
           if (*memory == nullptr) return CuResult::kOutOfMemory;
           pinned_[reinterpret_cast<uint64_t>(*memory)] = bytes;
           return kOk;
         });
  define(api.host_free, "host_free", CallKind::kContextRelease, [this](void* memory) {
    if (pinned_.erase(reinterpret_cast<uint64_t>(memory)) == 0) return CuResult::kInvalidValue;
    std::free(memory);
    return kOk;
  });
  define(api.host_device_pointer, "host_device_pointer", CallKind::kContext,
         [this](CuDevicePointer* pointer, void* memory, unsigned) {
           *pointer = reinterpret_cast<uint64_t>(memory);
           return is_pinned(*pointer, 0) ? kOk : CuResult::kInvalidValue;
         });
  define(api.pointer_attribute, "pointer_attribute", CallKind::kContext,
         [this](void* value, int attribute, CuDevicePointer pointer) {
           if (attribute != kCuPointerMemoryType) return CuResult::kInvalidValue;
           const bool is_device =
               std::any_of(devices_.begin(), devices_.end(),
                           [&](const auto& device) { return device->memory.contains(pointer); });
           if (!is_device && !is_pinned(pointer, 0)) return CuResult::kInvalidValue;
           *static_cast<unsigned*>(value) = is_device ? kCuMemoryTypeDevice : 1;
           return kOk;
         });
  define(api.copy, "copy", CallKind::kContext,
         [this](CuDevicePointer to, CuDevicePointer from, size_t bytes, CuStream stream) {
           if (Scheduler::current_or_null() != nullptr && is_pinned(from, 0)) {
             largest_copy_of_schedulers_ = std::max<size_t>(largest_copy_of_schedulers_, bytes);
           }
           return enqueue(stream, {.kind = OpKind::kCopy, .to = to, .from = from, .bytes = bytes});
         });
  define(api.fill, "fill", CallKind::kContext,
         [this](CuDevicePointer to, unsigned char value, size_t bytes, CuStream stream) {
           return enqueue(stream,
                          {.kind = OpKind::kFill, .to = to, .bytes = bytes, .value = value});
         });
}

void FakeCuda::fill_kernels(CudaApi& api) {
  define(api.module_load, "module_load", CallKind::kContext,
         [this](CuModule* module, const void* image) {
           if (!options_.takes_any_image && std::memcmp(image, kImage, std::strlen(kImage)) != 0) {
             return CuResult::kInvalidImage;
           }
           *module = reinterpret_cast<CuModule>(next_handle_++);
           modules_[*module] = current_device();
           return kOk;
         });
  define(api.module_unload, "module_unload", CallKind::kContextRelease, [this](CuModule module) {
    const auto found = modules_.find(module);
    if (found == modules_.end()) return CuResult::kInvalidHandle;
    spoil_captures_of(found->second);
    modules_.erase(found);
    return kOk;
  });
  define(api.module_function, "module_function", CallKind::kContext,
         [this](CuFunction* function, CuModule module, const char* name) {
           if (modules_.count(module) == 0) return CuResult::kInvalidHandle;
           if (kernels_.count(name) == 0) return CuResult::kNotFound;
           *function = reinterpret_cast<CuFunction>(next_handle_++);
           functions_[*function] = std::make_unique<Function>(Function{name});
           return kOk;
         });
  define(
      api.launch_kernel, "launch_kernel", CallKind::kContext,
      [this](CuFunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
             unsigned bz, unsigned shared_bytes, CuStream stream, void** params, void**) {
        return launch(function, {gx, gy, gz, bx, by, bz, shared_bytes, stream}, params);
      });
  define(api.launch_kernel_ex, "launch_kernel_ex", CallKind::kContext,
         [this](const CuLaunchConfig* config, CuFunction function, void** params, void**) {
           return launch(function, *config, params);
         });
}

// long: one entry of the table after the other.
void FakeCuda::fill_graphs(CudaApi& api) {
  define(api.graph_create, "graph_create", CallKind::kFree, [this](CuGraph* graph, unsigned) {
    *graph = graphs_.create();
    return kOk;
  });
  define(api.graph_destroy, "graph_destroy", CallKind::kRelease,
         [this](CuGraph graph) { return destroy_graph(graph); });
  define(api.graph_add_node, "graph_add_node", CallKind::kFree,
         [this](CuGraphNode* node, CuGraph graph, const CuGraphNode* after, const void* edges,
                size_t num_after, CuGraphNodeParams* params) {
           if (edges != nullptr) return CuResult::kNotSupported;  // only plain ones
           FakeKernelLaunch launch;
           if (params->type == CuGraphNodeType::kKernel) {
             const CuKernelNodeParams& k = params->kernel;
             const auto found = functions_.find(k.function);
             if (found == functions_.end()) return CuResult::kInvalidHandle;
             const auto& [bytes, kernel] = kernels_.at(found->second->name);
             launch = {found->second->name,
                       &kernel,
                       {},
                       {k.grid_x, k.grid_y, k.grid_z},
                       {k.block_x, k.block_y, k.block_z}};
             launch.params.resize(bytes);
             if (bytes > 0) std::memcpy(launch.params.data(), k.params[0], bytes);
           }
           std::string problem;
           const CuResult result =
               graphs_.add_node(node, graph, after, num_after, *params, std::move(launch), problem);
           if (!problem.empty()) violation(problem);
           return result;
         });
  define(api.graph_conditional_handle, "graph_conditional_handle", CallKind::kFree,
         [this](CuConditionalHandle* handle, CuGraph graph, CuContext, unsigned value,
                unsigned flags) { return graphs_.add_handle(handle, graph, value, flags); });
  define(api.graph_nodes, "graph_nodes", CallKind::kFree,
         [this](CuGraph graph, CuGraphNode* nodes, size_t* num_nodes) {
           if (!graphs_.has(graph)) return CuResult::kInvalidValue;
           if (nodes != nullptr) return CuResult::kNotSupported;  // only how many there are
           *num_nodes = graphs_.num_nodes(graph);
           return kOk;
         });
  define(api.graph_instantiate, "graph_instantiate", CallKind::kContext,
         [this](CuGraphExec* executable, CuGraph graph, unsigned long long) {
           std::string problem;
           const CuResult result = graphs_.instantiate(executable, graph, problem);
           if (!problem.empty()) violation(problem);
           num_instantiations_ += result == kOk ? 1 : 0;
           if (result == kOk && graphs_.executable_or_null(*executable)->has_while) {
             ++num_loop_instantiations_;
             last_round_ = first_round(graphs_.executable_or_null(*executable)->nodes);
           }
           return result;
         });
  if (options_.has_upload) {
    define(api.graph_upload, "graph_upload", CallKind::kContext,
           [this](CuGraphExec executable, CuStream stream) {
             const auto graph = graphs_.executable_or_null(executable);
             const auto on = streams_.find(stream);
             if (graph == nullptr || on == streams_.end()) return CuResult::kInvalidHandle;
             if (on->second->capture != nullptr) {
               return spoil(*on->second->capture, CuResult::kCaptureUnsupported);
             }
             num_uploads_ += std::exchange(graph->is_uploaded, true) ? 0 : 1;
             return kOk;
           });
  }
  define(api.graph_exec_destroy, "graph_exec_destroy", CallKind::kContextRelease,
         [this](CuGraphExec executable) { return graphs_.destroy_executable(executable); });
  define(api.graph_launch, "graph_launch", CallKind::kContext,
         [this](CuGraphExec executable, CuStream stream) {
           auto graph = graphs_.executable_or_null(executable);
           if (graph == nullptr) return CuResult::kInvalidHandle;
           const int device = current_device();
           if (graph->has_while && num_while_launches(device) >= 5) {
             lose(device, CuResult::kLaunchFailed);  // what hardware does (Xid 13)
             return CuResult::kLaunchFailed;
           }
           ++num_graph_launches_;
           num_late_uploads_ += std::exchange(graph->is_uploaded, true) ? 0 : 1;
           return enqueue(stream, {.kind = OpKind::kGraph, .graph = std::move(graph)});
         });
}

void FakeCuda::fill_capture(CudaApi& api) {
  define(api.stream_is_capturing, "stream_is_capturing", CallKind::kContext,
         [this](CuStream stream, CuCaptureStatus* status) { return ask_capture(stream, status); });
  define(api.stream_begin_capture, "stream_begin_capture", CallKind::kContext,
         [this](CuStream stream, CuGraph graph, const CuGraphNode* after, const void*,
                size_t num_after, CuCaptureMode mode) {
           if (mode == CuCaptureMode::kThreadLocal) return CuResult::kNotSupported;
           return begin_capture(stream, graph, {after, after + num_after}, mode);
         });
  define(api.stream_end_capture, "stream_end_capture", CallKind::kContextRelease,
         [this](CuStream stream, CuGraph* graph) { return end_capture(stream, graph); });
  define(api.stream_capture_info, "stream_capture_info", CallKind::kContext,
         [this](CuStream stream, CuCaptureStatus* status, uint64_t* id, CuGraph* graph,
                const CuGraphNode** last, size_t* num_last) {
           const CuGraphEdgeData* edges = nullptr;
           return ask_capture_end(stream, status, id, graph, last, edges, num_last)
               .value_or(edges == nullptr ? kOk : CuResult::kLossyQuery);
         });
  if (!options_.has_edge_data) return;
  define(api.stream_capture_info_edges, "stream_capture_info_edges", CallKind::kContext,
         [this](CuStream stream, CuCaptureStatus* status, uint64_t* id, CuGraph* graph,
                const CuGraphNode** last, const CuGraphEdgeData** edges, size_t* num_last) {
           return ask_capture_end(stream, status, id, graph, last, *edges, num_last).value_or(kOk);
         });
}

}  // namespace eddy::testing
