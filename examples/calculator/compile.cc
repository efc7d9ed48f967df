#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "examples/calculator/calculator.h"
#include "graph/ir/builder.h"

namespace eddy::calculator {
namespace {

using Values = std::vector<Value>;
using Names = std::set<std::string>;

constexpr int kMaxNesting = 600;  // of rules: ten or so for each pair of parentheses
constexpr size_t kComparisons = 2;
// Binary operators by level, loosest first.
constexpr std::string_view kLevels[][6] = {
    {"or"}, {"and"}, {"<", "<=", ">", ">=", "==", "!="}, {"+", "-"}, {"*", "/", "%", "@"}};

// What is called how here and in ONNX; of functions, how many arguments at most.
// clang-format off
constexpr size_t kAny = SIZE_MAX;
constexpr struct { std::string_view name, op; size_t most = 0; } kOperations[] = {
    {"+", "Add"}, {"-", "Sub"}, {"*", "Mul"}, {"/", "Div"}, {"%", "Mod"}, {"^", "Pow"},
    {"@", "MatMul"}, {"<", "Less"}, {"<=", "LessOrEqual"}, {">", "Greater"},
    {">=", "GreaterOrEqual"}, {"==", "Equal"}, {"!=", "Equal"}, {"and", "And"}, {"or", "Or"},
    {"not", "Not"}, {"negate", "Neg"}, {"index", "Gather"}, {"vector", "Concat"},
    {"abs", "Abs", 1}, {"sqrt", "Sqrt", 1}, {"exp", "Exp", 1}, {"log", "Log", 1},
    {"sin", "Sin", 1}, {"cos", "Cos", 1}, {"tanh", "Tanh", 1}, {"floor", "Floor", 1},
    {"min", "Min", kAny}, {"max", "Max", kAny}, {"sum", "ReduceSum", 1},
    {"mean", "ReduceMean", 1}, {"size", "Size", 1}, {"range", "Range", 1},
    {"concat", "Concat", kAny}, {"transpose", "Transpose", 1}};
// clang-format on

const auto* find_operation(std::string_view name) {
  return std::ranges::find(kOperations, name, [](auto& operation) { return operation.name; });
}

std::string describe(const Token& token) {
  return token.text.empty() ? "the end" : "'" + std::string(token.text) + "'";
}

// Recursive descent straight into a builder, whose first error is the program's: an error moves
// to the last token, where all rules end.
class Compiler {
 public:
  Compiler(std::vector<Token> tokens, const OpTable& ops) : tokens_(std::move(tokens)), b_(ops) {}

  Result<Program> program() {
    block();
    if (now().kind != Token::Kind::kEnd) fail("expected a statement, found " + found());
    EDDY_ASSIGN_OR_RETURN(Graph graph, b_.finish());
    return Program{std::move(graph), std::move(labels_)};
  }

 private:
  const Token& now() const { return tokens_[index_]; }
  bool is(std::string_view text) const { return now().text == text; }
  std::string found() const { return describe(now()); }
  Token take() { return index_ + 1 < tokens_.size() ? tokens_[index_++] : now(); }
  bool accept(std::string_view text) { return is(text) && (take(), true); }
  void fail(std::string message) { fail(now().at, std::move(message)); }
  void fail(Position at, std::string message) {
    b_.fail(invalid_argument(std::move(message)).prepend_path(name_at("syntax", at)));
    index_ = tokens_.size() - 1;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail("expected '" + std::string(text) + "', found " + found());
  }

  // One rule inside another, and the program's own recursion with it.
  struct Nesting {
    explicit Nesting(Compiler& c) : compiler(c) {
      if (++compiler.nesting_ > kMaxNesting) compiler.fail("this is nested too deeply");
    }
    ~Nesting() { --compiler.nesting_; }
    Compiler& compiler;
  };

  // statements

  void block() {
    const Nesting nesting(*this);
    while (b_.status().is_ok()) {
      const Position at = now().at;
      if (accept("let")) {
        assignment(true);
      } else if (accept("while")) {
        while_statement(at);
      } else if (accept("case")) {
        case_statement(at);
      } else if (accept("print")) {
        print_statement(at);
      } else if (now().kind == Token::Kind::kName) {
        assignment(false);
      } else {
        break;
      }
    }
  }

  void assignment(bool is_new) {
    const Token name = now();
    if (name.kind != Token::Kind::kName) return fail("expected a name, found " + found());
    const std::string text(take().text);
    if (is_new == (variables_.count(text) > 0)) {
      return fail(name.at, is_new ? "there is a '" + text + "' already; leave out the let"
                                  : "there is no '" + text + "' yet; declare it with let");
    }
    expect("=");
    const Value value = expression();
    variables_[text] = value;
  }

  void print_statement(Position at) {
    if (nesting_ > 1) return fail(at, "print stands outside of loops and branches");
    const char* start = now().text.data();
    const Value value = expression();
    if (!b_.status().is_ok()) return;
    const std::string_view last = tokens_[index_ - 1].text;
    labels_.emplace_back(start, last.data() + last.size());
    b_.output("print_" + std::to_string(labels_.size()), value);
  }

  // From here to the `end` of the loop or case we are in.
  struct Outline {
    Names assigned;  // variables that exist now
    size_t num_branches = 0;
    bool has_else = false;
  };
  Outline outline() const {
    Outline result;
    int depth = 0;
    for (size_t i = index_; i + 1 < tokens_.size() && depth >= 0; ++i) {
      const std::string text(tokens_[i].text);
      depth += text == "while" || text == "case" ? 1 : text == "end" ? -1 : 0;
      if (tokens_[i + 1].text == "=" && variables_.count(text) > 0) result.assigned.insert(text);
      if (depth == 0 && text == ":") ++result.num_branches;
      if (depth == 0 && text == "else") result.has_else = true;
    }
    return result;
  }
  Values values_of(const Names& names) {
    Values values;
    for (const std::string& name : names) values.push_back(variables_[name]);
    return values;
  }
  void bind(const Names& names, ValueSpan values) {
    size_t i = 0;
    for (const std::string& name : names) variables_[name] = values[i++];
  }

  // The loop carries what its body assigns.
  void while_statement(Position at) {
    const Names names = outline().assigned;
    if (names.empty()) return fail(at, "this loop changes no variable, so it would never end");
    const auto outer = variables_;
    const Values results = b_.while_loop(
        {.name = name_at("while", at), .initial = values_of(names)},
        [&](Value, ValueSpan carried) {
          bind(names, carried);
          const Value condition = expression();
          expect("do");
          return WhileTest{condition, {carried.begin(), carried.end()}};
        },
        [&](Value, ValueSpan forwarded) {
          bind(names, forwarded);
          block();
          return values_of(names);
        });
    expect("end");
    variables_ = outer;
    bind(names, results);
  }

  // The case gives what any of its branches assigns.
  void case_statement(Position at) {
    Value selector = expression();
    expect("of");
    const Outline all = outline();
    if (all.num_branches == 0 || all.assigned.empty())
      return fail(at, "no branch of this case changes a variable");
    if (!b_.status().is_ok()) return;
    const bool is_bool = b_.type(selector).tensor.element == ElementType::kBool;
    if (!is_bool) selector = cast(selector, ElementType::kInt64, at);
    const auto outer = variables_;
    std::vector<CaseBody> branches;
    for (size_t k = 0; k < all.num_branches; ++k) {
      branches.push_back([&, k] {
        label(k, all.has_else && k + 1 == all.num_branches);
        variables_ = outer;
        block();
        return values_of(all.assigned);
      });
    }
    const int else_branch = all.has_else ? static_cast<int>(all.num_branches) - 1 : -1;
    const Values results = b_.case_of(
        {.name = name_at("case", at), .selector = selector, .default_region = else_branch},
        branches);
    expect("end");
    variables_ = outer;
    bind(all.assigned, results);
  }
  void label(size_t k, bool is_else) {
    const std::string number = is_else ? "else" : std::to_string(k);
    const std::string truth = k == 0 ? "false" : k == 1 ? "true" : number;
    if (!accept(truth) && !accept(number)) {
      fail("branches come in order (false, true; or 0, 1, ... and else last): expected " +
           (truth == number ? "" : truth + ": or ") + number + ":, found " + found());
    }
    expect(":");
  }

  // expressions

  Value apply(std::string_view name, Position at, Values in) {
    if (!b_.status().is_ok()) return {};
    Attributes attributes;
    if (name == "%") attributes.set("fmod", 1);
    if (name == "sum" || name == "mean") attributes.set("keepdims", 0);
    if (name == "concat" || name == "vector") attributes.set("axis", 0);
    if (name == "range") in = {b_.scalar(0.0), in[0], b_.scalar(1.0)};
    if (name == "index") in.back() = cast(in.back(), ElementType::kInt64, at);
    const auto emit = [&](std::string_view op, const Values& inputs, Attributes with) {
      return b_.op(op, inputs, std::move(with), {.name = name_at(name, at)});
    };
    if (name == "vector") {
      for (Value& value : in) value = emit("Unsqueeze", {value, b_.int64s({0})}, {});
    }
    const Value result = emit(find_operation(name)->op, in, attributes);
    if (name == "!=") return emit("Not", {result}, {});
    return name == "size" ? cast(result, ElementType::kDouble, at) : result;
  }
  Value call(const std::string& name, Position at) {
    const auto* function = find_operation(name);
    if (function == std::end(kOperations) || function->most == 0) {
      fail(at, "there is no '" + name + "'");
      return {};
    }
    const Values arguments = list(")");
    if (arguments.size() > function->most) {
      fail(at, name + " takes 1 argument, not " + std::to_string(arguments.size()));
    }
    return apply(name, at, arguments);
  }
  Value cast(Value value, ElementType to, Position at) {
    return b_.op("Cast", {value}, {{"to", static_cast<int64_t>(to)}},
                 {.name = name_at("cast", at)});
  }

  Values list(std::string_view close) {
    Values values = {expression()};
    while (accept(",")) values.push_back(expression());
    expect(close);
    return values;
  }
  Value expression() { return binary(0); }
  Value binary(size_t level) {
    const Nesting nesting(*this);
    const Position at = now().at;
    if (level == std::size(kLevels)) return unary();
    if (level == kComparisons && accept("not")) return apply("not", at, {binary(level)});
    Value left = binary(level + 1);
    while (!is("") && std::ranges::count(kLevels[level], now().text) > 0) {
      const Token op = take();
      left = apply(op.text, op.at, {left, binary(level + 1)});
    }
    return left;
  }
  Value unary() {
    const Nesting nesting(*this);
    if (const Position at = now().at; accept("-")) return apply("negate", at, {unary()});
    const Value base = postfix();
    const Position at = now().at;
    return accept("^") ? apply("^", at, {base, unary()}) : base;
  }
  Value postfix() {
    Value base = primary();
    for (Position at = now().at; accept("["); at = now().at) {
      base = apply("index", at, {base, expression()});
      expect("]");
    }
    return base;
  }
  Value primary() {
    const Token token = take();
    const std::string name(token.text);
    if (token.kind == Token::Kind::kNumber) return b_.scalar(token.number);
    if (name == "true" || name == "false") return b_.scalar(name == "true");
    if (name == "[") return apply("vector", token.at, list("]"));
    if (name == "(") {
      const Value inner = expression();
      expect(")");
      return inner;
    }
    if (token.kind != Token::Kind::kName) {
      fail(token.at, "expected a value, found " + describe(token));
    } else if (accept("(")) {
      return call(name, token.at);
    } else if (variables_.count(name) == 0) {
      fail(token.at, "there is no '" + name + "' here; declare it with let");
    }
    return variables_[name];
  }

  std::vector<Token> tokens_;
  size_t index_ = 0;
  int nesting_ = 0;
  GraphBuilder b_;
  std::map<std::string, Value> variables_;  // those in scope
  std::vector<std::string> labels_;
};

}  // namespace

Result<Program> compile(std::string_view source, const OpTable& ops) {
  EDDY_ASSIGN_OR_RETURN(std::vector<Token> tokens, split(source));
  return Compiler(std::move(tokens), ops).program();
}

}  // namespace eddy::calculator
