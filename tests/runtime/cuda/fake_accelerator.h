// FakeAccelerator: a second device for sessions, without a GPU: the CUDA device of runtime/cuda on
// a fake driver. Its kernels are the library's CPU kernels; they run on the fake's device memory,
// in the fake's seeded order.
//
//   FakeAccelerator fake(library, {.seed = 7});
//   SessionOptions options;
//   options.make_devices = {fake.maker()};
//
// So results must agree with the CPU's bit for bit, and what differs is a transfer, a wait or a
// lifetime that is missing: device memory is closed to the host, blocks that were freed are never
// handed out again, copies from or to pageable memory are violations (fake_cuda.h).
//
// As a kernel on a GPU does, one here reads host-value inputs when it is enqueued and all else when
// it runs. `cpu_share` in 0..1 is how many nodes, by a hash of their names, find no kernel; it
// mixes the devices at random.
//
// Ownership: outlives every session made with it. Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/api/library.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device/execution_device.h"
#include "tests/runtime/cuda/fake_cuda.h"

namespace eddy::testing {

struct FakeAcceleratorOptions {
  uint64_t seed = 1;
  double cpu_share = 0;
  bool can_copy_words = true;
  bool can_capture = true;     // else every kernel is launched by itself
  std::string may_fault = {};  // the operator whose kernels say that they may find faults
  FakeCudaOptions cuda = {};   // its seed is `seed`
};

class FakeAccelerator {
 public:
  FakeAccelerator(const Library& library, const FakeAcceleratorOptions& options);
  ~FakeAccelerator();

  // Each call makes a device of its own on the one fake driver.
  MakeDevice maker(int ordinal = 0);

  FakeCuda& cuda() { return cuda_; }
  uint64_t num_kernels() const { return num_kernels_; }  // that have run
  // The k-th execution from now of that node's kernel loses the device.
  void fault_node(std::string name, uint64_t k);
  // Violations of the driver's contract and errors that kernels raised, first come first.
  std::vector<std::string> problems() const;

 private:
  struct Call;
  struct Wrapped;

  static bool enqueue(const KernelArgs& args);
  void run(const FakeKernelCall& launch, uint64_t id);
  bool is_to_fault(const std::string& node);
  Result<ExecutionDevice> make(int ordinal);

  const Library& library_;
  const FakeAcceleratorOptions options_;
  FakeCuda cuda_;
  std::unique_ptr<FakeEngine> engine_;
  std::atomic<uint64_t> num_kernels_{0};
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Call>> calls_;  // under the mutex; enqueued
  uint64_t next_call_ = 1;                           // under the mutex
  std::vector<std::string> errors_;                  // under the mutex
  std::string faulty_node_;                          // under the mutex
  uint64_t executions_until_fault_ = 0;              // under the mutex
};

}  // namespace eddy::testing
