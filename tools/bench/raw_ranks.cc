#include "tools/bench/raw_ranks.h"

#include <numeric>
#include <thread>
#include <vector>

#include "runtime/mpi/mpi_library.h"

namespace eddy {
namespace {

constexpr int32_t kNumber = 31'000;  // apart from those of sessions
constexpr uint64_t kTag = 1;         // one operation at a time

}  // namespace

Result<std::unique_ptr<RawRanks>> RawRanks::open(uint32_t num_ranks) {
  EDDY_ASSIGN_OR_RETURN(const MpiTable* const mpi, load_mpi());
  std::unique_ptr<RawRanks> raw(new RawRanks(*mpi));
  std::vector<int32_t> ranks(num_ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  EDDY_RETURN_IF_ERROR(raw->check(
      mpi->make_communicator(ranks.data(), static_cast<int32_t>(num_ranks), kNumber, &raw->all_)));
  raw->requests_ = mpi->make_requests(0);
  if (raw->requests_ == nullptr) return resource_exhausted("out of memory for MPI's requests");
  return raw;
}

RawRanks::~RawRanks() {
  if (requests_ != nullptr) mpi_.free_requests(requests_);
  if (all_ != nullptr) mpi_.free_communicator(all_);
}

Status RawRanks::check(int32_t error) const { return mpi_status(mpi_, error, "MPI fails"); }

Status RawRanks::start_sum(const float* in, float* out, int64_t count) {
  return check(
      mpi_.all_reduce(requests_, all_, kTag, in, out, count, MpiType::kFloat, MpiReduction::kSum));
}

Status RawRanks::start_gather(const void* in, void* all, int64_t bytes) {
  return check(mpi_.all_gather(requests_, all_, kTag, in, all, bytes));
}

Status RawRanks::start_and(const bool* in, bool* out) {
  return check(
      mpi_.all_reduce(requests_, all_, kTag, in, out, 1, MpiType::kBool, MpiReduction::kAnd));
}

Result<bool> RawRanks::test() {
  const MpiCompletion* done = nullptr;
  int32_t count = 0;
  EDDY_RETURN_IF_ERROR(check(mpi_.test_some(requests_, &done, &count)));
  if (count > 0) EDDY_RETURN_IF_ERROR(check(done[0].error));
  return count > 0;
}

Status RawRanks::complete(std::chrono::nanoseconds nap) {
  for (;;) {
    EDDY_ASSIGN_OR_RETURN(const bool is_done, test());
    if (is_done) return Status::ok();
    if (nap.count() > 0) std::this_thread::sleep_for(nap);
  }
}

Status RawRanks::meet(std::chrono::nanoseconds nap) {
  EDDY_RETURN_IF_ERROR(check(mpi_.barrier(requests_, all_, kTag)));
  return complete(nap);
}

}  // namespace eddy
