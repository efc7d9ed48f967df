// RawRanks: what communication over ranks is measured beside: MPI's own non-blocking calls on a
// communicator of all ranks, one at a time, each tested until it has completed.
//
// The calls go through the table that Eddy's transport uses (runtime/mpi/mpi_table.h), which adds
// some 20 ns to them. MPI must be open: while a World lives. No session of this process may run
// meanwhile, as MPI takes calls of one thread at a time.
//
// Errors: kRunFailed with MPI's words. Threads: one.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "graph/base/status.h"
#include "runtime/mpi/mpi_table.h"

namespace eddy {

class RawRanks {
 public:
  static Result<std::unique_ptr<RawRanks>> open(uint32_t num_ranks);
  ~RawRanks();
  RawRanks(const RawRanks&) = delete;
  RawRanks& operator=(const RawRanks&) = delete;

  // Each starts an operation, which complete() or test() ends. Sums of `count` floats.
  Status start_sum(const float* in, float* out, int64_t count);
  Status start_gather(const void* in, void* all, int64_t bytes);
  Status start_and(const bool* in, bool* out);

  // Whether what was started has completed.
  Result<bool> test();
  // Tests until it has, with `nap` between two tests.
  Status complete(std::chrono::nanoseconds nap = {});
  // Waits for all ranks.
  Status meet(std::chrono::nanoseconds nap = {});

 private:
  explicit RawRanks(const MpiTable& mpi) : mpi_(mpi) {}
  Status check(int32_t error) const;

  const MpiTable& mpi_;
  MpiCommunicator* all_ = nullptr;
  MpiRequests* requests_ = nullptr;
};

}  // namespace eddy
