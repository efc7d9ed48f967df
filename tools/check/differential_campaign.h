// The differential campaign: random graphs run in every way sessions offer, compared with the
// oracle bit for bit: outputs, trip counts, and the digest of every execution of every node.
//
// A contestant is one way of running a graph. Each seed meets `contestants_per_seed` of them, in
// turn, with several runs on one session, so that whatever a run leaves behind shows. A mismatch is
// shrunk while it stays one; the report has the smaller graph as text, and the seed, which together
// with the options makes it again.
//
// Errors: what a contestant reports is a mismatch too, as is a graph that does not build; but where
// the system refuses memory or threads, meet() throws std::system_error.
// Threads: one; sessions use theirs. Cost: with serial sessions about 0.3 ms a graph of 16 nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/session.h"
#include "tools/check/generator.h"
#include "tools/check/shrink.h"
#include "tools/check/subject.h"

namespace eddy::check {

struct Contestant {
  std::string name;  // "cpu/rank/host"
  // Empty when all runs agree with the oracle; else what differs, in one line.
  std::function<std::string(Subject& subject)> difference;
};

// A contestant that makes a session with the options made for a recipe, and uses it in turn and
// bound (session_way.h).
using MakeSessionOptions = std::function<SessionOptions(const Recipe& recipe)>;
Contestant session_contestant(std::string name, MakeSessionOptions make_options);

// Sessions on the CPU, one contestant for each use that they are put to; how they are made is drawn
// from the recipe's seed. They share threads.
std::vector<Contestant> cpu_contestants();

struct DifferentialOptions {
  uint64_t first_seed = 0;
  uint64_t num_seeds = 1000;
  GenerateOptions generate = {};
  size_t contestants_per_seed = 1;
  size_t max_mismatches = 3;  // further seeds are not tried
  bool shrinks = true;
  // Asked before each seed, and while a mismatch is shrunk; may be empty.
  std::function<bool()> is_time_up = {};
};

struct Mismatch {
  uint64_t seed = 0;
  std::string contestant;
  std::string what;       // of the graph as generated
  FailingGraph smallest;  // that still fails
};

struct DifferentialReport {
  uint64_t num_graphs = 0;
  uint64_t num_comparisons = 0;  // graphs times contestants
  uint64_t num_nodes = 0;
  Subject::Met met;
  std::vector<Mismatch> mismatches;
};

// One graph after another, for callers that try each graph in several campaigns; run_differential
// is all of them in a row. Seeds are those of the recipes; options' first_seed, num_seeds and
// generate
// are the caller's business.
class DifferentialCampaign {
 public:
  DifferentialCampaign(std::vector<Contestant> contestants, DifferentialOptions options)
      : contestants_(std::move(contestants)), options_(std::move(options)) {}

  // False: enough mismatches; further graphs are not tried.
  bool meet(Subject& subject);
  const DifferentialReport& report() const { return report_; }

 private:
  const std::vector<Contestant> contestants_;
  const DifferentialOptions options_;
  DifferentialReport report_;
};

DifferentialReport run_differential(const Library& library,
                                    const std::vector<Contestant>& contestants,
                                    const DifferentialOptions& options);

}  // namespace eddy::check
