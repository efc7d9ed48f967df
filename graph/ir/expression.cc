#include "graph/ir/expression.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <map>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr std::string_view kArrow = " -> ";

bool is_name(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (const char c : text) {
    if (!is_word(c)) return false;
  }
  return !text.empty() && text.size() <= 64 && !(text[0] >= '0' && text[0] <= '9');
}

// All of `text` as a number of this base.
bool read_number(std::string_view text, int base, uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

// "3dcccccd,00000000".
bool read_attributes(std::string_view text, ElementFunction& function) {
  constexpr size_t kDigits = 8;
  uint32_t a = 0, b = 0;
  if (text.size() != 2 * kDigits + 1 || text[kDigits] != ',') return false;
  if (!read_number(text.substr(0, kDigits), 16, a)) return false;
  if (!read_number(text.substr(kDigits + 1), 16, b)) return false;
  function.a = std::bit_cast<float>(a);
  function.b = std::bit_cast<float>(b);
  return true;
}

// Cuts off what comes before `mark`, or all.
std::string_view take_until(std::string_view& text, std::string_view mark) {
  const size_t at = text.find(mark);
  const std::string_view taken = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
  return taken;
}

Status wrong(size_t step, std::string_view word) {
  return invalid_argument("step " + std::to_string(step) + " of the fused program has '" +
                          std::string(word.substr(0, 40)) +
                          "' where a function, an earlier element or @a,b belongs");
}

Result<ExpressionStep> parse_step(std::string_view text, size_t index, uint32_t num_elements) {
  ExpressionStep step;
  const std::string_view name = take_until(text, " ");
  if (!is_name(name)) return wrong(index, name);
  step.function.name = name;
  while (!text.empty()) {
    const std::string_view word = take_until(text, " ");
    if (word.starts_with('@')) {
      if (!text.empty() || !read_attributes(word.substr(1), step.function)) {
        return wrong(index, word);
      }
      break;
    }
    uint32_t argument = 0;
    if (!read_number(word, 10, argument) || argument >= num_elements ||
        step.arguments.size() == Expression::kMaxArguments) {
      return wrong(index, word);
    }
    step.arguments.push_back(argument);
  }
  if (step.arguments.empty()) return wrong(index, name);
  return step;
}

// What follows the arrow.
Status parse_results(std::string_view text, Expression& expression) {
  const auto last = static_cast<uint32_t>(expression.num_inputs + expression.steps.size() - 1);
  std::vector<uint32_t>& results = expression.more_results;
  do {
    const std::string_view word = take_until(text, " ");
    uint32_t element = 0;
    const bool fits = read_number(word, 10, element) && element >= expression.num_inputs &&
                      element < last && (results.empty() || element > results.back());
    if (!fits) {
      return invalid_argument("the fused program gives '" + std::string(word.substr(0, 40)) +
                              "' where a step's element before the last one belongs, ascending");
    }
    results.push_back(element);
  } while (!text.empty());
  return Status::ok();
}

// Parts in their order: each needs the steps of its result, but those of earlier parts.
class PartMaker {
 public:
  explicit PartMaker(const Expression& whole) : whole_(whole) {}

  ExpressionPart make(size_t result) {
    const uint32_t element = whole_.result(result);
    needed_.assign(whole_.num_inputs + whole_.steps.size(), false);
    needed_[element] = true;
    for (uint32_t e = element + 1; e-- > 0;) {
      if (!needed_[e] || is_given(e, element)) continue;
      for (const uint32_t argument : step_of(e).arguments) needed_[argument] = true;
    }
    ExpressionPart part;
    part.result = result;
    std::vector<uint32_t> numbers(needed_.size());
    const auto argument = [&](uint32_t e, uint32_t from) {
      numbers[e] = static_cast<uint32_t>(part.arguments.size());
      part.arguments.push_back(from);
    };
    for (uint32_t e = 0; e < element; ++e) {
      if (!needed_[e] || !is_given(e, element)) continue;
      argument(e, e < whole_.num_inputs ? e : whole_.num_inputs + earlier_[e]);
    }
    part.expression.num_inputs = static_cast<uint32_t>(part.arguments.size());
    for (uint32_t e = whole_.num_inputs; e <= element; ++e) {
      if (!needed_[e] || is_given(e, element)) continue;
      ExpressionStep& step = part.expression.steps.emplace_back(step_of(e));
      for (uint32_t& each : step.arguments) each = numbers[each];
      numbers[e] = static_cast<uint32_t>(part.arguments.size() + part.expression.steps.size() - 1);
    }
    earlier_.emplace(element, static_cast<uint32_t>(earlier_.size()));
    return part;
  }

 private:
  const ExpressionStep& step_of(uint32_t e) const { return whole_.steps[e - whole_.num_inputs]; }
  bool is_given(uint32_t e, uint32_t result) const {
    return e != result && (e < whole_.num_inputs || earlier_.contains(e));
  }

  const Expression& whole_;
  std::vector<bool> needed_;              // by element
  std::map<uint32_t, uint32_t> earlier_;  // number of the part that makes it, by element
};

}  // namespace

std::vector<ExpressionPart> parts_of(const Expression& expression) {
  PartMaker maker(expression);
  std::vector<ExpressionPart> parts;
  for (size_t k = 1; k < expression.num_results(); ++k) parts.push_back(maker.make(k));
  parts.push_back(maker.make(0));
  return parts;
}

std::string Expression::text() const {
  EDDY_CHECK(!steps.empty() && steps.size() <= kMaxSteps) << steps.size() << " steps";
  std::string text;
  for (const ExpressionStep& step : steps) {
    if (!text.empty()) text += "; ";
    text += step.function.name;
    EDDY_DCHECK(!step.arguments.empty() && step.arguments.size() <= kMaxArguments)
        << step.function.name << " of " << step.arguments.size() << " arguments";
    const size_t element = num_inputs + static_cast<size_t>(&step - steps.data());
    EDDY_DCHECK(std::ranges::all_of(step.arguments, [&](uint32_t a) { return a < element; }))
        << "element " << element << " reads a later one";
    for (const uint32_t argument : step.arguments) text += " " + std::to_string(argument);
    const auto a = std::bit_cast<uint32_t>(step.function.a);
    const auto b = std::bit_cast<uint32_t>(step.function.b);
    if (a == 0 && b == 0) continue;
    char attributes[24];
    std::snprintf(attributes, sizeof(attributes), " @%08x,%08x", a, b);
    text += attributes;
  }
  for (size_t k = 1; k < num_results(); ++k) {
    EDDY_DCHECK(result(k) >= num_inputs && result(k) < result(0)) << "no step's: " << result(k);
    text += (k == 1 ? std::string(kArrow) : " ") + std::to_string(result(k));
  }
  return text;
}

Result<Expression> parse_expression(std::string_view text, uint32_t num_inputs) {
  Expression expression;
  expression.num_inputs = num_inputs;
  const size_t arrow = text.find(kArrow);
  std::string_view steps = text.substr(0, arrow);
  while (!steps.empty()) {
    if (expression.steps.size() == Expression::kMaxSteps) {
      return invalid_argument("the fused program has more than " +
                              std::to_string(Expression::kMaxSteps) + " steps");
    }
    const auto num_elements = num_inputs + static_cast<uint32_t>(expression.steps.size());
    EDDY_ASSIGN_OR_RETURN(ExpressionStep step, parse_step(take_until(steps, "; "),
                                                          expression.steps.size(), num_elements));
    expression.steps.push_back(std::move(step));
  }
  if (expression.steps.empty()) return invalid_argument("the fused program has no step");
  if (arrow != std::string_view::npos) {
    EDDY_RETURN_IF_ERROR(parse_results(text.substr(arrow + kArrow.size()), expression));
  }
  return expression;
}

}  // namespace eddy
