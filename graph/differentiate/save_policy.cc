#include "graph/differentiate/save_policy.h"

#include <charconv>

namespace eddy {

const SavePolicy& SavePolicies::of(std::string_view path) const {
  const auto at = loops.find(path);
  return at == loops.end() ? others : at->second;
}

std::string to_string(const SavePolicy& policy) {
  switch (policy.kind) {
    case SavePolicy::Kind::kAll:
      return "all";
    case SavePolicy::Kind::kCarried:
      return "carried";
    case SavePolicy::Kind::kEvery:
      return "every:" +
             (policy.every_input.empty() ? std::to_string(policy.every) : policy.every_input);
    case SavePolicy::Kind::kGrow:
      break;
  }
  return "grow";
}

namespace {
SavePolicy of_kind(SavePolicy::Kind kind) {
  SavePolicy policy;
  policy.kind = kind;
  return policy;
}
}  // namespace

Result<SavePolicy> parse_save_policy(std::string_view text) {
  constexpr std::string_view kEvery = "every:";
  if (text == "all") return of_kind(SavePolicy::Kind::kAll);
  if (text == "carried") return of_kind(SavePolicy::Kind::kCarried);
  if (text == "grow") return of_kind(SavePolicy::Kind::kGrow);
  SavePolicy policy = of_kind(SavePolicy::Kind::kEvery);
  const char* const end = text.data() + text.size();
  if (text.starts_with(kEvery)) {
    const char first = text.size() > kEvery.size() ? text[kEvery.size()] : '0';
    if (first == '_' || (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z')) {
      policy.every_input = text.substr(kEvery.size());
      return policy;
    }
    const auto [last, error] = std::from_chars(text.data() + kEvery.size(), end, policy.every);
    if (error == std::errc() && last == end && policy.every >= 1) return policy;
    return invalid_argument("every:K takes a whole K of at least 1, or an input's name, not '" +
                            std::string(text.substr(kEvery.size())) + "'");
  }
  return invalid_argument("a loop saves all, carried, every:K or grow, not '" + std::string(text) +
                          "'");
}

Status add_save_policy(std::string_view text, SavePolicies& policies) {
  const size_t at = text.rfind('=');
  if (at == std::string_view::npos) {
    EDDY_ASSIGN_OR_RETURN(policies.others, parse_save_policy(text));
    return Status::ok();
  }
  const std::string path(text.substr(0, at));
  if (path.empty()) {
    return invalid_argument("'" + std::string(text) + "' names no loop before its '='");
  }
  EDDY_ASSIGN_OR_RETURN(const SavePolicy policy, parse_save_policy(text.substr(at + 1)));
  if (policies.loops.emplace(path, policy).second) return Status::ok();
  return invalid_argument("the loop '" + path + "' has two policies; give it one");
}

}  // namespace eddy
