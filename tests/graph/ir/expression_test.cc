// Claim: an expression's text holds all of it: what is read from it has the same text again, every
// digit of its attributes included; any other text is refused with its step, and none is misread.
#include "graph/ir/expression.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "graph/base/random.h"

namespace eddy {
namespace {

Expression random_expression(Random& random) {
  Expression expression;
  expression.num_inputs = 1 + static_cast<uint32_t>(random.below(5));
  const uint64_t num_steps = 1 + random.below(Expression::kMaxSteps);
  for (uint64_t i = 0; i < num_steps; ++i) {
    ExpressionStep step;
    step.function.name = "F" + std::to_string(random.below(100)) + "_f32";
    if (random.below(2) == 0) {
      step.function.a = std::bit_cast<float>(static_cast<uint32_t>(random.next()));
      step.function.b = random.uniform(-1, 1);
    }
    const uint64_t num_arguments = 1 + random.below(Expression::kMaxArguments);
    for (uint64_t k = 0; k < num_arguments; ++k) {
      step.arguments.push_back(static_cast<uint32_t>(random.below(expression.num_inputs + i)));
    }
    expression.steps.push_back(std::move(step));
    const bool gives = i + 1 < num_steps && random.below(4) == 0;
    if (gives) expression.more_results.push_back(static_cast<uint32_t>(expression.num_inputs + i));
  }
  return expression;
}

TEST(Expression, TextAndExpressionAreInverse) {
  constexpr uint64_t kSeed = 31;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 200; ++round) {
    const Expression given = random_expression(random);
    const auto read = parse_expression(given.text(), given.num_inputs);
    ASSERT_TRUE(read.is_ok()) << read.status().to_string() << "\n" << given.text();
    ASSERT_EQ(read->steps.size(), given.steps.size());
    EXPECT_EQ(read->more_results, given.more_results);
    for (size_t i = 0; i < given.steps.size(); ++i) {
      const ExpressionStep &a = given.steps[i], &b = read->steps[i];
      EXPECT_EQ(a.function.name, b.function.name);
      EXPECT_EQ(a.arguments, b.arguments);
      EXPECT_EQ(std::bit_cast<uint32_t>(a.function.a), std::bit_cast<uint32_t>(b.function.a));
      EXPECT_EQ(std::bit_cast<uint32_t>(a.function.b), std::bit_cast<uint32_t>(b.function.b));
    }
  }
}

TEST(Expression, ATextThatWasChangedIsRefusedOrAnotherExpression) {
  constexpr uint64_t kSeed = 37;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    const Expression given = random_expression(random);
    std::string text = given.text();
    text[random.below(text.size())] = static_cast<char>(random.below(256));
    const auto read = parse_expression(text, given.num_inputs);
    if (!read.is_ok()) {
      EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
      continue;
    }
    for (size_t i = 0; i < read->steps.size(); ++i) {
      for (const uint32_t argument : read->steps[i].arguments) {
        EXPECT_LT(argument, given.num_inputs + i);
      }
    }
  }
}

// What each element is, as a term of inputs.
std::string term(const Expression& expression, uint32_t element,
                 const std::vector<std::string>& inputs) {
  if (element < inputs.size()) return inputs[element];
  const ExpressionStep& step = expression.steps[element - expression.num_inputs];
  std::string text = step.function.name + "(";
  for (const uint32_t argument : step.arguments) text += term(expression, argument, inputs) + ",";
  return text + ")";
}

TEST(Expression, ItsPartsGiveItsResults) {
  constexpr uint64_t kSeed = 41;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 200; ++round) {
    Expression whole = random_expression(random);
    while (whole.steps.size() > 8) whole.steps.pop_back();  // terms repeat what is read twice
    std::erase_if(whole.more_results, [&](uint32_t e) { return e >= whole.result(0); });
    std::vector<std::string> known;
    for (uint32_t i = 0; i < whole.num_inputs; ++i) known.push_back("x" + std::to_string(i));
    const std::vector<std::string> inputs = known;
    const std::vector<ExpressionPart> parts = parts_of(whole);
    ASSERT_EQ(parts.size(), whole.num_results());
    for (const ExpressionPart& part : parts) {
      std::vector<std::string> arguments;
      for (const uint32_t argument : part.arguments) arguments.push_back(known.at(argument));
      ASSERT_EQ(part.expression.num_inputs, arguments.size());
      EXPECT_TRUE(part.expression.more_results.empty());
      known.push_back(term(part.expression, part.expression.result(0), arguments));
      EXPECT_EQ(known.back(), term(whole, whole.result(part.result), inputs)) << whole.text();
    }
  }
}

TEST(Expression, WhatIsNoStepIsRefused) {
  for (const char* text : {"",
                           ";",
                           "Exp",
                           "Exp ",
                           " Exp 0",
                           "Exp 0;",
                           "Exp 0;Tanh 1",
                           "Exp 1",
                           "Exp -1",
                           "Exp 0x0",
                           "Exp 99999999999",
                           "Exp 0 @",
                           "Exp 0 @00000000",
                           "Exp 0 @0000000g,00000000",
                           "Exp 0 @00000000,00000000 0",
                           "Exp 0 0 0 0",
                           "9Exp 0",
                           "Exp\n 0",
                           "Exp 0; Exp 2",
                           "Exp 0 -> ",
                           "Exp 0 -> 0",
                           "Exp 0 -> 1",
                           "Exp 0; Exp 1 -> 1 1",
                           "Exp 0; Exp 1; Exp 2 -> 2 1",
                           "Exp 0; Exp 1 -> 1 -> 1",
                           "Exp 0; Exp 1 -> 1;",
                           "-> 1",
                           "@00000000,00000000"}) {
    EXPECT_FALSE(parse_expression(text, 1).is_ok()) << "'" << text << "'";
  }
  EXPECT_TRUE(parse_expression("Exp 0; Exp 1", 1).is_ok());
}

}  // namespace
}  // namespace eddy
