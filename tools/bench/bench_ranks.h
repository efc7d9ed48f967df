// eddy bench ranks: what communication over ranks costs, beside MPI's own calls in the same run:
// two ranks (--ranks: so many) with one thread each.
//
//   turns of a while loop with one operation, by size: sums in any order and in rank order,
//   gathered parts, an agreed predicate; a loop without communication beside ranks and on one; a
//   sum whose other rank comes 5 ms late, beside 5 ms of work; batches that ranks share
//   (bench_split.h); the proof of 64 ranks; the start of a job
//
// Without a launcher it starts itself by mpirun; rank 0 says the rows. All ranks go through the
// rounds in step: in each, every contender has one sample, which begins when all ranks have met.
// Eddy's session is made anew for each sample, so that no thread of it runs beside MPI's own calls.
// The ways of a row are compared by their medians.
#pragma once

#include <string>

#include "tools/bench/bench_suite.h"
#include "tools/command/rank_options.h"

namespace eddy {

struct BenchRanksArguments {
  BenchOptions common;
  RankArguments ranks;  // 0: two
  // "mpi": this process opens MPI, closes it and does no more.
  std::string fresh;
  bool has_only_split = false;  // no row but those of batches that ranks share
};

// A missed figure is no failure.
Outcome bench_ranks(const BenchRanksArguments& arguments, Console& console, Interrupts& interrupts);

}  // namespace eddy
