#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "examples/calculator/calculator.h"
#include "graph/ir/builder.h"

namespace eddy::calculator {
namespace {

struct Position {
  int line = 1;
  int column = 1;  // in bytes
};

struct Token {
  enum class Kind { kNumber, kName, kKeyword, kSymbol, kSpace, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text = {};  // a part of the source
  Position at = {};
  double number = NAN;  // of a kNumber; NaN where no double can hold it
};

using Values = std::vector<Value>;
using Names = std::set<std::string>;

constexpr int kMaxNesting = 600;  // of rules: ten or so for each pair of parentheses
constexpr size_t kComparisons = 2;
constexpr std::string_view kSpaces = " \t\n\v\f\r";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
constexpr std::string_view kKeywords[] = {"let", "while", "do",  "case",  "of",   "else", "end",
                                          "and", "or",    "not", "print", "true", "false"};

bool contains(std::string_view set, char c) { return set.find(c) != set.npos; }

// The token, space or comment at the start of `rest`, which is not empty.
Token first_token(std::string_view rest, Position at) {
  Token token{Token::Kind::kSymbol, rest, at};
  size_t size = 1;
  if (rest[0] == '#' || contains(kSpaces, rest[0])) {
    token.kind = Token::Kind::kSpace;
    size = rest[0] == '#' ? rest.find('\n') : rest.find_first_not_of(kSpaces);
  } else if (contains(kDigits, rest[0])) {
    token.kind = Token::Kind::kNumber;
    const char* const end = rest.data() + rest.size();
    size = static_cast<size_t>(std::from_chars(rest.data(), end, token.number).ptr - rest.data());
  } else if (contains(kLetters, rest[0])) {
    size = rest.find_first_not_of(kLetters);
    const bool is_keyword = std::ranges::count(kKeywords, rest.substr(0, size)) > 0;
    token.kind = is_keyword ? Token::Kind::kKeyword : Token::Kind::kName;
  } else if (rest.substr(1).starts_with('=') && contains("<>=!", rest[0])) {
    size = 2;
  } else {
    while (size < rest.size() && (rest[size] & 0xc0) == 0x80) ++size;  // the character's, in UTF-8
  }
  token.text = rest.substr(0, size);
  return token;
}

std::vector<Token> split(std::string_view source) {
  std::vector<Token> tokens;
  Position at;
  while (!source.empty()) {
    const Token token = first_token(source, at);
    if (token.kind != Token::Kind::kSpace) tokens.push_back(token);
    for (char c : token.text) {
      at = c == '\n' ? Position{at.line + 1, 1} : Position{at.line, at.column + 1};
    }
    source.remove_prefix(token.text.size());
  }
  tokens.push_back({Token::Kind::kEnd, {}, at});
  return tokens;
}

// Binary operators by level, loosest first.
constexpr std::string_view kLevels[][6] = {
    {"or"}, {"and"}, {"<", "<=", ">", ">=", "==", "!="}, {"+", "-"}, {"*", "/", "%", "@"}};

// What is called how here and in ONNX, with which attribute; how many arguments functions take.
// clang-format off
constexpr struct {
  std::string_view name, op; size_t most = 0; const char* attribute = nullptr; int64_t value = 0;
} kOperations[] = {
    {"+", "Add"}, {"-", "Sub"}, {"*", "Mul"}, {"/", "Div"}, {"%", "Mod", 0, "fmod", 1},
    {"^", "Pow"}, {"@", "MatMul"}, {"<", "Less"}, {"<=", "LessOrEqual"}, {">", "Greater"},
    {">=", "GreaterOrEqual"}, {"==", "Equal"}, {"!=", "Equal"}, {"and", "And"}, {"or", "Or"},
    {"not", "Not"}, {"negate", "Neg"}, {"index", "Gather"}, {"vector", "Concat", 0, "axis"},
    {"abs", "Abs", 1}, {"sqrt", "Sqrt", 1}, {"exp", "Exp", 1}, {"log", "Log", 1},
    {"sin", "Sin", 1}, {"cos", "Cos", 1}, {"tanh", "Tanh", 1}, {"floor", "Floor", 1},
    {"min", "Min", SIZE_MAX}, {"max", "Max", SIZE_MAX}, {"concat", "Concat", SIZE_MAX, "axis"},
    {"sum", "ReduceSum", 1, "keepdims"}, {"mean", "ReduceMean", 1, "keepdims"},
    {"size", "Size", 1}, {"range", "Range", 1}, {"transpose", "Transpose", 1}};
// clang-format on

std::string name_at(std::string_view what, Position at) {  // "index@4:12"
  return std::string(what) + "@" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

const auto* find_operation(std::string_view name) {
  return std::ranges::find(kOperations, name, [](auto& operation) { return operation.name; });
}

// Recursive descent straight into a builder; the builder's first error is the program's: an error
// moves to the last token, where all rules end.
class Compiler {
 public:
  Compiler(std::string_view source, const OpTable& ops) : tokens_(split(source)), b_(ops) {}

  Result<Program> program() {
    block();
    if (now().kind != Token::Kind::kEnd) expected("a statement");
    EDDY_ASSIGN_OR_RETURN(Graph graph, b_.finish());
    return Program{std::move(graph), std::move(labels_)};
  }

 private:
  const Token& now() const { return tokens_[index_]; }
  Token take() { return index_ + 1 < tokens_.size() ? tokens_[index_++] : now(); }
  bool accept(std::string_view text) { return now().text == text && (take(), true); }
  void expect(std::string_view text) {
    if (!accept(text)) expected("'" + std::string(text) + "'");
  }
  Value expected(const std::string& what) {
    const std::string text(now().text);
    return fail(now().at,
                "expected " + what + ", found " + (text.empty() ? "the end" : "'" + text + "'"));
  }
  Value fail(Position at, std::string message) {
    b_.fail(invalid_argument(std::move(message)).prepend_path(name_at("syntax", at)));
    index_ = tokens_.size() - 1;
    return {};
  }

  // One rule inside another, and the program's own recursion with it.
  struct Nesting {
    explicit Nesting(Compiler& compiler) : depth(compiler.nesting_) {
      if (++depth > kMaxNesting) compiler.fail(compiler.now().at, "this is nested too deeply");
    }
    ~Nesting() { --depth; }
    int& depth;
  };

  void block() {
    const Nesting nesting(*this);
    for (Position at = now().at; b_.status().is_ok(); at = now().at) {
      if (accept("while")) {
        while_statement(at);
      } else if (accept("case")) {
        case_statement(at);
      } else if (accept("print")) {
        print_statement(at);
      } else if (now().text == "let" || now().kind == Token::Kind::kName) {
        assignment();
      } else {
        return;
      }
    }
  }

  void assignment() {
    const bool is_new = accept("let");
    if (now().kind != Token::Kind::kName) expected("a name");
    const std::string name(now().text);
    if (is_new == variables_.contains(name)) {
      fail(now().at, is_new ? "there is a '" + name + "' already; leave out the let"
                            : "there is no '" + name + "' yet; declare it with let");
    }
    take();
    expect("=");
    variables_[name] = expression();
  }

  void print_statement(Position at) {
    if (nesting_ > 1) fail(at, "print stands outside of loops and branches");
    const auto start = now().text.begin();
    const Value value = expression();
    if (!b_.status().is_ok()) return;
    labels_.emplace_back(start, tokens_[index_ - 1].text.end());
    b_.output("print_" + std::to_string(labels_.size()), value);
  }

  // The text from here to the `end` of the current loop or case.
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
      if (tokens_[i + 1].text == "=" && variables_.contains(text)) result.assigned.insert(text);
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
    for (size_t i = 0; const std::string& name : names) variables_[name] = values[i++];
  }

  // The loop carries what its body assigns.
  void while_statement(Position at) {
    const Names names = outline().assigned;
    if (names.empty()) fail(at, "this loop changes no variable, so it would never end");
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
      fail(at, "no branch of this case changes a variable");
    if (!b_.status().is_ok()) return;
    const bool is_bool = b_.type(selector).tensor.element == ElementType::kBool;
    if (!is_bool) selector = b_.cast(selector, ElementType::kInt64, name_at("cast", at));
    const auto outer = variables_;
    std::vector<CaseBody> branches;
    for (size_t k = 0; k < all.num_branches; ++k) {
      branches.push_back([&, k] {
        variables_ = outer;
        label(all.has_else && k + 1 == all.num_branches ? "else" : std::to_string(k));
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
  void label(const std::string& number) {
    const std::string truth = number == "0" ? "false" : number == "1" ? "true" : "";
    if (!(accept(number) || (!truth.empty() && accept(truth))))
      expected((truth.empty() ? "" : truth + ": or ") + number + ": (branches come in order)");
    expect(":");
  }

  Value apply(std::string_view name, Position at, Values in) {
    const auto& operation = *find_operation(name);
    Attributes attributes;
    if (operation.attribute != nullptr) attributes.set(operation.attribute, operation.value);
    const std::string place = name_at(name, at);
    if (name == "range") in = {b_.scalar(0.0), in[0], b_.scalar(1.0)};
    if (name == "index") in[1] = b_.cast(in[1], ElementType::kInt64, place);
    for (Value& value : in) {
      if (name == "vector") value = b_.op("Unsqueeze", {value, b_.int64s({0})}, {}, {place});
    }
    const Value result = b_.op(operation.op, in, attributes, {place});
    if (name == "!=") return b_.op("Not", {result}, {}, {place});
    return name == "size" ? b_.cast(result, ElementType::kDouble, place) : result;
  }
  Value call(const std::string& name, Position at) {
    const auto* function = find_operation(name);
    if (function == std::end(kOperations) || function->most == 0)
      return fail(at, "there is no '" + name + "'");
    const Values arguments = list(")");
    if (arguments.size() > function->most)
      fail(at, name + " takes 1 argument, not " + std::to_string(arguments.size()));
    return apply(name, at, arguments);
  }
  Values list(std::string_view close) {
    Values values = {expression()};
    while (accept(",")) values.push_back(expression());
    expect(close);
    return values;
  }
  Value inner(std::string_view close) {
    const Value value = expression();
    expect(close);
    return value;
  }
  Value expression(size_t level = 0) {
    const Nesting nesting(*this);
    const Position at = now().at;
    if (level == std::size(kLevels)) return unary();
    if (level == kComparisons && accept("not")) return apply("not", at, {expression(level)});
    Value left = expression(level + 1);
    while (!now().text.empty() && std::ranges::count(kLevels[level], now().text) > 0) {
      const Token op = take();
      left = apply(op.text, op.at, {left, expression(level + 1)});
    }
    return left;
  }
  Value unary() {
    const Nesting nesting(*this);
    Position at = now().at;
    if (accept("-")) return apply("negate", at, {unary()});
    Value base = primary();
    for (at = now().at; accept("["); at = now().at) base = apply("index", at, {base, inner("]")});
    return accept("^") ? apply("^", at, {base, unary()}) : base;
  }
  Value primary() {
    const Token token = now();
    if (accept("[")) return apply("vector", token.at, list("]"));
    if (accept("(")) return inner(")");
    if (accept("true") || accept("false")) return b_.scalar(token.text == "true");
    if (token.kind == Token::Kind::kNumber) {
      if (std::isnan(token.number)) fail(token.at, "a double cannot hold this number");
      return take(), b_.scalar(token.number);
    }
    if (token.kind != Token::Kind::kName) return expected("a value");
    const std::string name(take().text);
    if (accept("(")) return call(name, token.at);
    if (variables_.contains(name)) return variables_[name];
    return fail(token.at, "there is no '" + name + "' here; declare it with let");
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
  return Compiler(source, ops).program();
}

// The last name in the path is the node that failed; the loops around it give their iterations.
std::string explain(const Status& status, const std::string& file) {
  static const std::regex mark("@(\\d+:\\d+)[^/@\\[]*(?:\\[(\\d+)\\])?");
  std::string place, iterations;
  const std::string& path = status.path();
  for (std::sregex_iterator it(path.begin(), path.end(), mark), end; it != end; ++it) {
    place = ":" + it->str(1);
    if (!(*it)[2].matched) continue;
    iterations += ", in iteration " + it->str(2) + " of the loop at " + it->str(1);
  }
  return file + place + ": " + status.message() + iterations;
}

}  // namespace eddy::calculator
