// RegexFullMatch, by RE2: linear in the text, whatever the pattern is, and within a limit of
// memory. The pattern is compiled once, when the kernel is bound.
#include <re2/re2.h>

#include <string>

#include "ops/cpu/families.h"

namespace eddy {
namespace {

struct MatchState : KernelState {
  explicit MatchState(const std::string& pattern, const RE2::Options& options)
      : pattern(pattern, options) {}
  RE2 pattern;
};

bool run_match(const KernelArgs& args) {
  const RE2& pattern = static_cast<const MatchState&>(*args.state).pattern;
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  for (int64_t i = 0; i < y.count(); ++i) {
    y.mutable_as<bool>()[i] = RE2::FullMatch(x.as<std::string>()[i], pattern);
  }
  return true;
}

Result<BoundKernel> bind_match(const KernelInit& init) {
  const std::string pattern(init.attributes.get_string("pattern", ""));
  RE2::Options options;
  options.set_log_errors(false);
  auto state = std::make_unique<MatchState>(pattern, options);
  if (!state->pattern.ok()) {
    return invalid_argument("attribute 'pattern' is no regular expression of RE2: " +
                            state->pattern.error());
  }
  BoundKernel kernel;
  kernel.run = run_match;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_regex_cpu(KernelRegistry& registry) {
  registry.add(
      {.op = "RegexFullMatch", .since_version = 20, .bind = bind_match, .provider = "re2"});
}

}  // namespace eddy
