#include "tests/runtime/cuda/fake_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "graph/base/check.h"

namespace eddy::testing {

FakeCuda::FakeCuda(const FakeCudaOptions& options)
    : options_(options), random_(options.seed), policy_(static_cast<int>(options.seed % 3)) {
  for (int i = 0; i < options.num_devices; ++i) {
    devices_.push_back(std::make_unique<Device>(options.memory_bytes));
  }
  auto api = std::make_shared<CudaApi>();
  fill_table(*api);
  api_ = std::move(api);
}

FakeCuda::~FakeCuda() {
  // leaks() lists the objects that were not destroyed; the memory itself ends here.
  for (const auto& [address, bytes] : pinned_) std::free(reinterpret_cast<void*>(address));
}

void FakeCuda::define_kernel(const std::string& name, size_t params_bytes, FakeKernel kernel) {
  std::lock_guard lock(mutex_);
  kernels_[name] = {params_bytes, std::move(kernel)};
}

void FakeCuda::begin_early(const std::string& name) {
  std::lock_guard lock(mutex_);
  early_kernels_.insert(name);
}

CuFunction FakeCuda::library_function(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto function = reinterpret_cast<CuFunction>(next_handle_++);
  functions_[function] = std::make_unique<Function>(Function{name});
  return function;
}

void FakeCuda::trigger_early(const std::string& name) {
  std::lock_guard lock(mutex_);
  triggering_kernels_.insert(name);
}

void FakeCuda::give_guard(const std::string& name) {
  std::lock_guard lock(mutex_);
  guards_.emplace(name, true);
}

void FakeCuda::ignore_guard(const std::string& name) {
  std::lock_guard lock(mutex_);
  guards_[name] = false;
}

CuResult FakeCuda::launch(CuFunction function, const CuLaunchConfig& config, void** params) {
  const auto found = functions_.find(function);
  if (found == functions_.end()) return CuResult::kInvalidHandle;
  const std::string& name = found->second->name;
  const uint64_t threads = uint64_t{config.block_x} * config.block_y * config.block_z;
  if (config.grid_x == 0 || config.grid_y == 0 || config.grid_z == 0 || threads == 0 ||
      threads > 1024 || config.grid_y > 65535 || config.grid_z > 65535) {
    violation("kernel " + name + " with an impossible grid");
    return CuResult::kInvalidValue;
  }
  const auto& [bytes, kernel] = kernels_.at(name);
  FakeKernelLaunch launch{name,
                          &kernel,
                          {},
                          {config.grid_x, config.grid_y, config.grid_z},
                          {config.block_x, config.block_y, config.block_z}};
  for (unsigned i = 0; i < config.num_attributes; ++i) {
    if (config.attributes[i].id != kCuLaunchProgrammatic) return CuResult::kInvalidValue;
    launch.is_programmatic = config.attributes[i].value != 0;
  }
  launch.params.resize(bytes);
  if (bytes > 0) std::memcpy(launch.params.data(), params[0], bytes);
  if (guards_.count(name) != 0) std::memcpy(&launch.guard, params[1], sizeof(launch.guard));
  return enqueue(config.stream, {.kind = OpKind::kKernel, .kernel = std::move(launch)});
}

// ---------------------------------------------------------------- what runs

bool FakeCuda::can_run(const Op& op) const {
  if (op.kind == OpKind::kWait) return op.record->is_done;
  if (op.kind != OpKind::kWaitWord) return true;
  const uint32_t word = std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(op.to))
                            .load(std::memory_order_acquire);
  return static_cast<int32_t>(word - op.value) >= 0;
}

bool FakeCuda::is_first_of_queue(const Stream& stream) const {
  if (options_.num_queues == 0) return true;
  const uint64_t number = stream.ops[stream.next].number;
  return std::none_of(streams_.begin(), streams_.end(), [&](const auto& entry) {
    const Stream& other = *entry.second;
    if (other.device != stream.device || other.queue != stream.queue) return false;
    return other.is_running || (other.has_next() && other.ops[other.next].number < number);
  });
}

FakeCuda::Stream* FakeCuda::choose() {
  std::vector<Stream*> ready;
  for (auto& [handle, stream] : streams_) {
    if (stream->has_next() && can_run(stream->ops[stream->next]) && is_first_of_queue(*stream)) {
      ready.push_back(stream.get());
    }
  }
  if (ready.empty()) return nullptr;
  if (policy_ == 0) return ready[random_.below(ready.size())];
  if (policy_ == 1 && random_.below(8) == 0) {  // a change of priorities
    ready[random_.below(ready.size())]->priority = static_cast<uint32_t>(random_.next());
  }
  return *std::min_element(ready.begin(), ready.end(), [](const Stream* a, const Stream* b) {
    return a->priority < b->priority;
  });
}

bool FakeCuda::step() {
  std::lock_guard lock(mutex_);
  return !is_held_ && step_locked();
}

bool FakeCuda::step_locked() {
  Stream* stream = choose();
  if (stream == nullptr) return false;
  Op op = std::move(stream->ops[stream->next++]);
  if (stream->is_empty()) {
    stream->ops.clear();
    stream->next = 0;
  }
  run(*stream, std::move(op));
  std::erase_if(streams_, [](const auto& entry) {
    return entry.second->is_destroyed && entry.second->is_empty();
  });
  return true;
}

bool FakeCuda::is_idle() const {
  std::lock_guard lock(mutex_);
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto& entry) { return entry.second->is_empty(); });
}

void FakeCuda::run(Stream& stream, Op op) {
  FakeMemory& memory = devices_[static_cast<size_t>(stream.device)]->memory;
  switch (op.kind) {
    case OpKind::kWait:
    case OpKind::kWaitWord:
      break;
    case OpKind::kRecord:
      op.record->is_done = true;
      break;
    case OpKind::kKernel:
      run_kernel(stream, op.kernel, nullptr);
      break;
    case OpKind::kGraph:
      run_graph(stream, op.graph);
      break;
    case OpKind::kWriteWord:
      if (memory.contains(op.to)) {
        if (!check_access(stream, "a written word", op.to, sizeof(op.value))) break;
        const FakeMemory::Open open(memory);
        *reinterpret_cast<uint32_t*>(op.to) = op.value;
        break;
      }
      std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(op.to))
          .store(op.value, std::memory_order_release);
      break;
    case OpKind::kCopy:
      run_copy(stream, op.to, op.from, op.bytes);
      break;
    case OpKind::kFill:
      run_fill(stream, op.to, op.value, op.bytes);
      break;
    case OpKind::kAllocate:
      memory.mark_allocated(op.to);
      break;
    case OpKind::kFree:
      memory.mark_freed(op.to);
      break;
  }
}

void FakeCuda::run_copy(const Stream& stream, uint64_t to, uint64_t from, size_t bytes) {
  ++counts_.copies;
  counts_.copied_bytes += bytes;
  const bool is_fine = check_copy_end(stream, to, bytes);
  if (!check_copy_end(stream, from, bytes) || !is_fine) return;
  const FakeMemory::Open open(devices_[static_cast<size_t>(stream.device)]->memory);
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
}

void FakeCuda::run_fill(const Stream& stream, uint64_t to, uint32_t value, size_t bytes) {
  if (!check_access(stream, "a fill", to, bytes)) return;
  const FakeMemory::Open open(devices_[static_cast<size_t>(stream.device)]->memory);
  std::memset(reinterpret_cast<void*>(to), static_cast<int>(value), bytes);
}

// The lock is let go between the rounds of its loops, so that others may call meanwhile.
void FakeCuda::run_graph(Stream& stream, const std::shared_ptr<FakeExecutable>& graph) {
  const int device = stream.device;
  const auto is_lost = [&] {
    return devices_[static_cast<size_t>(device)]->lost != CuResult::kSuccess;
  };
  stream.is_running = true;
  FakeGraphs::run(
      *graph, random_,
      [&](const FakeNode& node) { return !is_lost() && run_node(stream, node, *graph); },
      [this] { let_callers_in(); });
  stream.is_running = false;
  for (const std::string& problem : graph->problems) violation(problem);
  graph->problems.clear();
}

bool FakeCuda::is_any_running() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& entry) { return entry.second->is_running; });
}

// Waiting callers enter first: a plain unlock would let this thread retake the mutex before they
// wake.
void FakeCuda::let_callers_in() {
  if (num_waiting_.load(std::memory_order_relaxed) == 0) return;
  mutex_.unlock();
  while (num_waiting_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
  mutex_.lock();
}

void FakeCuda::let_graph_go_on() {
  mutex_.unlock();
  std::this_thread::yield();
  mutex_.lock();
}

bool FakeCuda::run_node(Stream& stream, const FakeNode& node, FakeExecutable& graph) {
  if (node.type == CuGraphNodeType::kKernel) {
    return run_kernel(stream, node.launch, &graph) == CuResult::kSuccess;
  }
  if (node.type == CuGraphNodeType::kMemcpy) run_copy(stream, node.to, node.from, node.bytes);
  if (node.type == CuGraphNodeType::kMemset) run_fill(stream, node.to, node.value, node.bytes);
  return true;
}

CuResult FakeCuda::run_kernel(Stream& stream, const FakeKernelLaunch& launch,
                              FakeExecutable* graph) {
  Device& device = *devices_[static_cast<size_t>(stream.device)];
  if (kernels_until_fault_ > 0 && --kernels_until_fault_ == 0) {
    lose(stream.device, fault_with_);
    return fault_with_;
  }
  for (size_t at = 0; at + 8 <= launch.params.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, launch.params.data() + at, 8);
    if (device.memory.contains(word)) check_access(stream, "kernel " + launch.name, word, 0);
  }
  if (is_called_off(stream, launch)) return device.lost;
  std::optional<FakeMemory::Open> open;
  const FakeKernelCall call{{launch.grid[0], launch.grid[1], launch.grid[2]},
                            {launch.block[0], launch.block[1], launch.block[2]},
                            launch.params.data(),
                            graph,
                            [&] {
                              open.reset();
                              const bool was_running = std::exchange(stream.is_running, true);
                              let_callers_in();
                              stream.is_running = was_running;
                              open.emplace(device.memory);
                              return device.lost == CuResult::kSuccess;
                            },
                            [&] { lose(stream.device, CuResult::kIllegalAddress); }};
  ++counts_.kernels;
  // The host may wait for the word that this one writes.
  const bool may_tell = launch.name.starts_with("eddy_loop_copy");
  if (!options_.runs_kernels && !may_tell) return device.lost;
  open.emplace(device.memory);
  (*launch.kernel)(call);
  return device.lost;
}

bool FakeCuda::is_called_off(const Stream& stream, const FakeKernelLaunch& launch) {
  if (launch.guard == nullptr) return false;
  const auto address = reinterpret_cast<uint64_t>(launch.guard);
  if (!check_access(stream, "the guard of " + launch.name, address, sizeof(uint32_t))) return false;
  const FakeMemory::Open open(devices_[static_cast<size_t>(stream.device)]->memory);
  if (*launch.guard != 0 || !guards_.at(launch.name)) return false;
  ++num_called_off_;
  return true;
}

bool FakeCuda::check_access(const Stream& stream, const std::string& what, uint64_t address,
                            size_t size_bytes) {
  const std::string problem =
      devices_[static_cast<size_t>(stream.device)]->memory.check(address, size_bytes);
  if (problem.empty()) return true;
  violation(what + " of stream " + std::to_string(stream.number) + " uses " + problem);
  return false;
}

bool FakeCuda::check_copy_end(const Stream& stream, uint64_t address, size_t size_bytes) {
  if (devices_[static_cast<size_t>(stream.device)]->memory.contains(address)) {
    return check_access(stream, "a copy", address, size_bytes);
  }
  if (is_pinned(address, size_bytes)) return true;
  violation("a copy of stream " + std::to_string(stream.number) +
            " from or to pageable host memory");
  return false;
}

bool FakeCuda::is_pinned(uint64_t address, size_t size_bytes) const {
  auto after = pinned_.upper_bound(address);
  if (after == pinned_.begin()) return false;
  const auto& [begin, bytes] = *--after;
  return address - begin <= bytes && size_bytes <= bytes - (address - begin);
}

void FakeCuda::check_visible(const void* memory, size_t size_bytes) {
  const auto address = reinterpret_cast<uint64_t>(memory);
  const bool is_visible = is_pinned(address, size_bytes) ||
                          std::any_of(devices_.begin(), devices_.end(), [&](const auto& device) {
                            return device->memory.contains(address) &&
                                   device->memory.check(address, size_bytes).empty();
                          });
  if (!is_visible) violation("a kernel uses memory that no device sees");
}

// A lost device runs nothing more: its queues end, and threads that wait for them are released.
void FakeCuda::lose(int device, CuResult result) {
  devices_[static_cast<size_t>(device)]->lost = result;
  for (auto& [handle, stream] : streams_) {
    if (stream->device != device) continue;
    for (; stream->next < stream->ops.size(); ++stream->next) {
      const Op& op = stream->ops[stream->next];
      if (op.kind == OpKind::kRecord) op.record->is_done = true;
      if (op.kind == OpKind::kAllocate)
        devices_[static_cast<size_t>(device)]->memory.mark_allocated(op.to);
      if (op.kind == OpKind::kFree) devices_[static_cast<size_t>(device)]->memory.mark_freed(op.to);
    }
  }
}

void FakeCuda::lose_device(int ordinal, CuResult result) {
  std::lock_guard lock(mutex_);
  lose(ordinal, result);
}

bool FakeCuda::is_lost(int ordinal) const {
  std::lock_guard lock(mutex_);
  return devices_[static_cast<size_t>(ordinal)]->lost != CuResult::kSuccess;
}

// ---------------------------------------------------------------- faults and reports

void FakeCuda::fail_call(uint64_t k, CuResult result) {
  std::lock_guard lock(mutex_);
  fail_at_ = k == 0 ? 0 : num_calls_ + k;
  fail_with_ = result;
  if (k != 0) failed_call_.clear();
}

void FakeCuda::fail_next(const std::string& entry, CuResult result) {
  std::lock_guard lock(mutex_);
  fail_next_ = entry;
  fail_with_ = result;
  failed_call_.clear();
}

std::string FakeCuda::failed_call() const {
  std::lock_guard lock(mutex_);
  return failed_call_;
}

void FakeCuda::fault_kernel(uint64_t k, CuResult result) {
  std::lock_guard lock(mutex_);
  kernels_until_fault_ = k;
  fault_with_ = result;
}

void FakeCuda::violation(const std::string& text) {
  if (violations_.size() < 100) violations_.push_back(text);
}

std::vector<std::string> FakeCuda::violations() const {
  std::lock_guard lock(mutex_);
  return violations_;
}

std::vector<std::string> FakeCuda::last_round() const {
  std::lock_guard lock(mutex_);
  return last_round_;
}

size_t FakeCuda::num_loop_executables() const {
  std::lock_guard lock(mutex_);
  return graphs_.num_loop_executables();
}

std::string FakeCuda::leaks() const {
  std::lock_guard lock(mutex_);
  std::string text;
  const auto count = [&text](size_t number, const char* what) {
    if (number == 0) return;
    text +=
        (text.empty() ? "" : ", ") + std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  count(static_cast<size_t>(
            std::count_if(streams_.begin(), streams_.end(),
                          [](const auto& entry) { return !entry.second->is_destroyed; })),
        "stream");
  count(events_.size(), "event");
  count(pools_.size(), "memory pool");
  count(modules_.size(), "module");
  count(pinned_.size(), "pinned block");
  count(graphs_.num_graphs(), "graph");
  count(graphs_.num_executables(), "executable graph");
  size_t blocks = 0;
  int retained = 0;
  for (const auto& device : devices_) {
    blocks += device->memory.num_blocks();
    retained += device->retained;
  }
  count(blocks, "device block");
  count(static_cast<size_t>(retained), "retained context");
  size_t pushed = 0;
  for (const auto& [thread, stack] : contexts_) pushed += stack.size();
  count(pushed, "pushed context");
  return text;
}

size_t FakeCuda::num_while_launches(int device) const {
  size_t count = 0;
  for (const auto& [handle, stream] : streams_) {
    if (stream->device != device) continue;
    count += stream->is_running ? 1 : 0;
    for (size_t i = stream->next; i < stream->ops.size(); ++i) {
      const Op& op = stream->ops[i];
      count += op.kind == OpKind::kGraph && op.graph->has_while ? 1 : 0;
    }
  }
  return count;
}

// ---------------------------------------------------------------- engine

FakeEngine::FakeEngine(FakeCuda& fake)
    : thread_([this, &fake] {
        while (!stop_.load(std::memory_order_relaxed)) {
          if (!fake.step()) std::this_thread::yield();
        }
      }) {}

FakeEngine::~FakeEngine() {
  stop_.store(true, std::memory_order_relaxed);
  thread_.join();
}

}  // namespace eddy::testing
