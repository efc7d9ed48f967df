// SplitBench: batches that ranks share, beside one rank that runs all of it with one thread: rows
// of eddy bench ranks (split_cases.h).
//
//   EDDY_RETURN_IF_ERROR(SplitBench(arguments, library, *world, meet).measure(add_row));
//
// All ranks go through it in step. A sample of the shared batch ends when rank 0 has all outputs;
// while rank 0 runs the whole batch, the others sleep. Of models whose samples are shared by proof
// (tools/command/split_batch.h), rank 0 compares the outputs of both ways.
//
// Errors: kRunFailed where outputs differ; the sessions'. Threads: one.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "runtime/api/library.h"
#include "runtime/net/world.h"
#include "tools/bench/bench_suite.h"
#include "tools/bench/split_cases.h"

namespace eddy {

class SplitBench {
 public:
  // Waits for all ranks, with `nap` between two looks.
  using Meet = std::function<Status(std::chrono::nanoseconds nap)>;
  // ns of the shared batch, and of one rank's.
  using AddRow =
      std::function<void(const std::string& name, const Samples& shared, const Samples& alone)>;

  SplitBench(const Library& library, BenchSuite& suite, World& world, int rounds, Meet meet)
      : library_(library), suite_(suite), world_(world), rounds_(rounds), meet_(std::move(meet)) {}

  Status measure(const AddRow& add_row);

 private:
  // One way to run it: gives rank 0's outputs, or what this rank has of them.
  using Run = std::function<Result<NamedTensors>()>;

  Status add_proved(const SplitCase& model, const AddRow& add_row);
  Status add_sentences(const AddRow& add_row);
  Result<std::vector<Samples>> sample(const std::string& name, const Run& shared,
                                      const Run& alone_or_none);

  const Library& library_;
  BenchSuite& suite_;
  World& world_;
  const int rounds_;
  const Meet meet_;
};

}  // namespace eddy
