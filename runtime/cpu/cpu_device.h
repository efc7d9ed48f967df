// CpuDevice: the embedded default device: host memory, streams and strands on one pool.
//
// Ownership: must outlive everything made from it. Threads: all members from any thread.
#pragma once

#include <memory>

#include "runtime/cpu/host_allocator.h"
#include "runtime/cpu/worker_pool.h"
#include "runtime/device/device.h"

namespace eddy {

struct CpuDeviceOptions {
  int num_threads = 0;                       // 0: one for each processor
  size_t memory_limit_bytes = 0;             // 0: no limit
  std::shared_ptr<WorkerPool> workers = {};  // shared with other devices; then not num_threads
  std::shared_ptr<HostMemory> memory = {};   // where tensors' memory comes from; null: the system
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options);

  std::string_view kind() const override { return "cpu"; }
  Allocator& allocator() override { return allocator_; }
  Result<std::unique_ptr<Stream>> create_stream() override;
  Result<std::unique_ptr<Event>> create_event() override;
  Result<std::shared_ptr<Gate>> create_gate() override;
  std::unique_ptr<StrandRunner> create_runner_or_null(const StrandCode& code,
                                                      const Bindings& bindings) override;
  Workers* workers_or_null() override { return pool_.get(); }
  int num_workers() const override { return pool_->num_threads(); }
  WorkerPool& pool() { return *pool_; }

 private:
  HostAllocator allocator_;
  const std::shared_ptr<WorkerPool> pool_;
};

}  // namespace eddy
