// The gradient campaign: gradients of random programs (gradient_program.h) against dual numbers
// (dual_oracle.h), through sessions made and driven in ways drawn from the seed: on workers, on the
// host, on the virtual device in orders of completion of each policy.
//
// Each derivative must agree to 1e-9 relative, each loop that runs forward must have the trips that
// it has there. The same gradient with a drawn policy for each loop (graph/differentiate/
// save_policy.h), run in another way, must have the same bits. Of every tenth program second
// derivatives are compared, too, half of them through tapes of such policies. The loss itself is a
// contestant: it may not change by being differentiated.
//
// Errors: what differs is a mismatch; so is a gradient that can't be made, but for programs whose
// loss depends on no input. Threads: one; sessions use theirs. Cost: some 10 ms a program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/differentiate/gradient_rule.h"
#include "runtime/api/library.h"
#include "tools/check/session_way.h"

namespace eddy::check {

struct GradientCampaignOptions {
  size_t max_mismatches = 3;  // further seeds are not tried
  // Each so-manieth program is differentiated twice.
  uint64_t twice_every = 10;
  // Stands between the pass and the sessions, for planting defects; empty: nothing does.
  std::function<Result<Graph>(Graph gradient)> plant = {};
};

struct GradientMismatch {
  uint64_t seed = 0;
  std::string what;
  size_t num_nodes = 0;  // of the program
};

struct GradientCampaignReport {
  uint64_t num_programs = 0;
  uint64_t num_flat = 0;         // whose loss depends on no input
  uint64_t num_derivatives = 0;  // compared
  uint64_t num_second_derivatives = 0;
  uint64_t num_loops_made_again = 0;  // under a policy that keeps less
  uint64_t num_compared_by_bits = 0;  // outputs, under such policies
  uint64_t num_iterations = 0;        // forward
  uint64_t num_loops_without_trip = 0;
  std::vector<GradientMismatch> mismatches;
};

struct GradientRun;

class GradientCampaign {
 public:
  explicit GradientCampaign(GradientCampaignOptions options);

  // False: enough mismatches; further programs are not tried.
  bool meet(uint64_t seed);
  const GradientCampaignReport& report() const { return report_; }

 private:
  // Empty, or what differs.
  std::string difference(uint64_t seed, size_t& num_nodes);
  std::string compare_policies(Graph gradient, const GradientRun& all, const NamedTensors& inputs,
                               uint64_t seed);
  std::string compare_first(const Graph& program, uint64_t seed);
  std::string compare_second(const Graph& gradient, const Graph& program,
                             const std::string& parameter, uint64_t seed);

  const GradientCampaignOptions options_;
  const Library library_;
  GradientTable rules_;
  CheckThreads threads_;
  GradientCampaignReport report_;
};

}  // namespace eddy::check
