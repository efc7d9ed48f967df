// SavePolicy: what a loop keeps of the forward pass for its way back, and what is computed again.
//
//   all       what reversed nodes read, of every iteration
//   carried   the carried values of every iteration; each iteration is computed again from them
//   every:K   the carried values of every K-th; K iterations are computed again, and kept, at a
//             time. K is a number, or the name of an input of the graph (int64[], added where there
//             is none), so that a run chooses it; less than 1 counts as 1
//   grow      as every:K, but segment i is i iterations long: for n trips, which nobody needs to
//             know, about sqrt(2 n) states and as many iterations at a time
//
// All but `all` run a loop's iterations once more. Exact gradients have the same bits whatever
// is chosen (DifferentiateOptions::exact).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "graph/base/status.h"

namespace eddy {

struct SavePolicy {
  enum class Kind : uint8_t { kAll, kCarried, kEvery, kGrow };
  Kind kind = Kind::kAll;
  int64_t every = 0;             // kEvery: at least 1, or
  std::string every_input = {};  // the name of the input that says

  // Segments of several iterations are computed again at a time.
  bool has_segments() const { return kind == Kind::kEvery || kind == Kind::kGrow; }

  bool operator==(const SavePolicy&) const = default;
};

struct SavePolicies {
  SavePolicy others = {};                                     // loops that `loops` does not name
  std::map<std::string, SavePolicy, std::less<>> loops = {};  // by Graph::path()

  const SavePolicy& of(std::string_view path) const;
};

std::string to_string(const SavePolicy& policy);
// "all", "carried", "every:100", "every:k", "grow". kInvalidArgument for others.
Result<SavePolicy> parse_save_policy(std::string_view text);
// "POLICY" or "PATH=POLICY". kInvalidArgument also for a path that is there already.
Status add_save_policy(std::string_view text, SavePolicies& policies);

}  // namespace eddy
