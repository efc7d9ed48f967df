#include "ops/schema/functions/einsum_equation.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

#include "graph/ir/types.h"

namespace eddy {
namespace {

constexpr int kEllipsis = -1;               // in a term: as many axes as there are
constexpr int kFirstEllipsisAxis = 1 << 8;  // labels of its axes, above all letters

Status bad_equation(std::string_view equation, const std::string& what) {
  std::string quoted(equation.substr(0, 80));
  return invalid_argument("equation '" + quoted + "' " + what);
}

struct Terms {
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
  bool has_result = false;
};

Status add_label(std::string_view equation, std::string_view text, size_t& i,
                 std::vector<int>& term) {
  const char c = text[i];
  if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
    term.push_back(c);
    return Status::ok();
  }
  const bool is_second = std::find(term.begin(), term.end(), kEllipsis) != term.end();
  if (text.substr(i, 3) != "..." || is_second) {
    return bad_equation(equation, is_second ? "has two ellipses in a term"
                                            : "has '" + std::string(1, c) + "', which is no label");
  }
  term.push_back(kEllipsis);
  i += 2;
  return Status::ok();
}

Result<Terms> split(std::string_view equation) {
  std::string text;
  for (const char c : equation) {
    if (c != ' ') text += c;
  }
  Terms terms;
  const size_t arrow = text.find("->");
  terms.has_result = arrow != std::string::npos;
  const std::string_view left = std::string_view(text).substr(0, arrow);
  terms.operands.emplace_back();
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == ',') {
      terms.operands.emplace_back();
      continue;
    }
    EDDY_RETURN_IF_ERROR(add_label(equation, left, i, terms.operands.back()));
  }
  if (!terms.has_result) return terms;
  const std::string_view right = std::string_view(text).substr(arrow + 2);
  for (size_t i = 0; i < right.size(); ++i) {
    EDDY_RETURN_IF_ERROR(add_label(equation, right, i, terms.result));
  }
  return terms;
}

Status check_result(std::string_view equation, const Terms& terms) {
  for (size_t i = 0; i < terms.result.size(); ++i) {
    const int label = terms.result[i];
    if (label == kEllipsis) continue;
    const std::string name = "'" + std::string(1, static_cast<char>(label)) + "'";
    const auto& result = terms.result;
    if (std::count(result.begin(), result.end(), label) > 1) {
      return bad_equation(equation, "has " + name + " twice in its result");
    }
    const bool is_known = std::any_of(
        terms.operands.begin(), terms.operands.end(), [&](const std::vector<int>& term) {
          return std::find(term.begin(), term.end(), label) != term.end();
        });
    if (!is_known) return bad_equation(equation, "has " + name + " in its result only");
  }
  return Status::ok();
}

Result<Terms> checked_terms(std::string_view equation, size_t num_operands) {
  constexpr size_t kMostOperands = 64;
  if (num_operands > kMostOperands) {
    return unsupported("an Einsum of " + std::to_string(num_operands) + " inputs, at most " +
                       std::to_string(kMostOperands) + " are supported");
  }
  EDDY_ASSIGN_OR_RETURN(Terms terms, split(equation));
  if (terms.operands.size() != num_operands) {
    return bad_equation(equation, "has " + std::to_string(terms.operands.size()) + " terms for " +
                                      std::to_string(num_operands) + " inputs");
  }
  EDDY_RETURN_IF_ERROR(check_result(equation, terms));
  return terms;
}

void append_ellipsis(int num_axes, std::vector<int>& labels) {
  for (int i = num_axes - 1; i >= 0; --i) labels.push_back(kFirstEllipsisAxis + i);
}

}  // namespace

Status check_einsum(std::string_view equation, size_t num_operands) {
  return checked_terms(equation, num_operands).status();
}

Result<EinsumEquation> parse_einsum(std::string_view equation, std::span<const int> ranks) {
  EDDY_ASSIGN_OR_RETURN(const Terms terms, checked_terms(equation, ranks.size()));
  EinsumEquation parsed;
  std::map<int, int> uses;  // of letters
  int most_axes = 0;        // of an ellipsis
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::vector<int>& term = terms.operands[i];
    const bool has_ellipsis = std::find(term.begin(), term.end(), kEllipsis) != term.end();
    const int letters = static_cast<int>(term.size()) - (has_ellipsis ? 1 : 0);
    const int axes = ranks[i] - letters;
    if (axes < 0 || (axes > 0 && !has_ellipsis)) {
      return bad_equation(equation, "names " + std::to_string(letters) + " axes of input " +
                                        std::to_string(i) + ", which has " +
                                        std::to_string(ranks[i]));
    }
    most_axes = std::max(most_axes, axes);
    EinsumEquation::Labels& labels = parsed.operands.emplace_back();
    for (const int label : term) {
      if (label == kEllipsis) {
        append_ellipsis(axes, labels);
      } else {
        labels.push_back(label);
        ++uses[label];
      }
    }
  }
  if (!terms.has_result) {
    append_ellipsis(most_axes, parsed.result);
    for (const auto& [label, count] : uses) {
      if (count == 1) parsed.result.push_back(label);
    }
  }
  for (const int label : terms.result) {
    if (label == kEllipsis) {
      append_ellipsis(most_axes, parsed.result);
    } else {
      parsed.result.push_back(label);
    }
  }
  if (parsed.result.size() <= kMaxRank) return parsed;
  return bad_equation(equation, "gives " + std::to_string(parsed.result.size()) +
                                    " axes, at most " + std::to_string(kMaxRank) +
                                    " are supported");
}

}  // namespace eddy
