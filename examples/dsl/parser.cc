#include <algorithm>
#include <charconv>

#include "examples/dsl/syntax.h"

namespace dsl {
namespace {

constexpr size_t kComparisons = 2;
// Binary operators by level, loosest first.
constexpr Name kLevels[][6] = {
    {"or"}, {"and"}, {"<", "<=", ">", ">=", "==", "!="}, {"+", "-"}, {"*", "/", "//", "%", "@"}};
using Word = std::pair<Name, Kind>;
constexpr Word kWords[] = {{"print", Kind::kPrint},
                           {"stream", Kind::kStream},
                           {"yield", Kind::kYield},
                           {"return", Kind::kReturn},
                           {"while", Kind::kWhile}};

class Parser {
 public:
  Parser(std::string_view text, Position at) : tokens_(split(text, at)) {}

  Node program(Functions& functions) {
    Functions found;
    Node made{Kind::kBlock, now().at};
    while (now().kind != Token::Kind::kEnd) {
      if (accept("fn")) {
        function(found);
      } else {
        made.parts.push_back(statement());
      }
    }
    found.merge(functions);  // what is defined anew hides what was there
    functions = std::move(found);
    return made;
  }

 private:
  const Token& now() const { return tokens_[next_]; }
  const Token& take() { return now().kind == Token::Kind::kEnd ? now() : tokens_[next_++]; }
  bool accept(Name symbol) { return now().is(symbol) && (take(), true); }
  [[noreturn]] void expected(const std::string& what) const {
    const std::string found = now().kind == Token::Kind::kEnd ? "the end" : quote(now().text);
    throw Failure(now().at, "expected " + what + ", found " + found);
  }
  void expect(Name symbol) {
    if (!accept(symbol)) expected(quote(symbol));
  }
  const Token& name() {
    if (now().kind != Token::Kind::kName) expected("a name");
    return take();
  }
  // A failure ends the parser, so only what succeeds comes up again.
  void descend() {
    if (++depth_ > kMaxDepth) throw Failure(now().at, "this is nested too deeply; use let");
  }
  static Node finish(Node node) {
    for (const Node& part : node.parts) node.depth = std::max(node.depth, part.depth + 1);
    if (node.depth > kMaxDepth) throw Failure(node.at, "this is nested too deeply; use let");
    return node;
  }
  template <typename... Nodes>
  static Node call(Position at, Name name, Nodes... arguments) {
    Node made{Kind::kCall, at, name};
    (made.parts.push_back(std::move(arguments)), ...);
    return finish(std::move(made));
  }

  // ---- Functions and types ----
  void function(Functions& functions) {
    const Token token = name();
    Node made{Kind::kBlock, token.at};
    expect("(");
    while (!accept(")")) {
      made.parts.push_back({Kind::kName, now().at, name().text});
      if (accept(":")) made.parts.back().type = type();
      if (!now().is(")")) expect(",");
    }
    const eddy_type result = accept("->") ? type() : eddy_type{};
    made.parts.push_back(block());
    Node& body = made.parts.back();
    body.type = result;
    if (body.parts.empty() || body.parts.back().kind != Kind::kReturn) {
      throw Failure(token.at, "the last statement of " + quote(token.text) + " must be a return");
    }
    if (functions.emplace(token.text, std::move(made)).second) return;
    throw Failure(token.at, "there is a function " + quote(token.text) + " already");
  }

  eddy_type type() {
    eddy_type made = eddy::type(EDDY_UNDEFINED, {});
    for (const eddy_element element : {kReal, kInt, kBool}) {
      if (now().text == name_of(element)) made.element = element;
    }
    if (made.element == EDDY_UNDEFINED) expected("real, int or bool");
    take();
    if (!accept("[")) return made;
    do {
      const bool is_size = now().is("?") || now().kind == Token::Kind::kInt;
      if (!is_size || made.rank == EDDY_MAX_RANK) expected("a size or '?', at most 8 of them");
      made.dims[made.rank++] = accept("?") ? EDDY_UNKNOWN_DIM : numbers().ints[0];
    } while (accept(","));
    expect("]");
    return made;
  }

  // ---- Statements ----
  Node block() {
    Node made{Kind::kBlock, now().at};
    expect("{");
    while (!accept("}")) made.parts.push_back(statement());
    return made;
  }

  Node statement() {
    descend();
    Node made{Kind::kSet, now().at};
    if (accept("let")) {
      made.kind = Kind::kLet;
      made.name = name().text;
      if (accept(":")) made.type = type();
      expect("=");
      if (accept("while")) made.kind = Kind::kWhile;
    } else if (now().kind == Token::Kind::kName && tokens_[next_ + 1].is("=")) {
      made.name = take().text;
      take();
    } else if (const auto* const word = std::ranges::find(kWords, now().text, &Word::first);
               word != std::end(kWords)) {
      made.kind = word->second;
      take();
    } else {
      made.kind = Kind::kValue;
    }
    const char* const first = tokens_[next_ - (made.kind == Kind::kWhile)].text.data();
    made.parts.push_back(expression());
    const Name last = tokens_[next_ - 1].text;
    made.text = std::string(first, last.data() + last.size());
    std::ranges::replace(made.text, '\n', ' ');
    if (made.text.size() > 60) made.text.replace(57, std::string::npos, "...");
    if (made.kind == Kind::kWhile) made.parts.push_back(block());
    --depth_;
    return made;
  }

  Node arm() {
    Node made{Kind::kBlock, now().at};
    if (!accept("else")) {
      const bool is_label = is_number() && now().kind != Token::Kind::kReal;
      if (!is_label) expected("a label (0, 1, false, true or else) or '}'");
      made = numbers();
      made.kind = Kind::kBlock;
    }
    expect(":");
    const bool is_block = now().is("{");
    if (is_block) made.parts = block().parts;
    if (!is_block) made.parts.push_back(statement());
    return made;
  }

  // ---- Expressions ----
  Node expression() { return level(0); }

  Node level(size_t number) {
    if (number == std::size(kLevels)) return unary();
    if (number == kComparisons && now().is("not")) {
      descend();
      const Token& token = take();
      Node made = call(token.at, token.text, level(kComparisons));
      --depth_;
      return made;
    }
    Node left = level(number + 1);
    while (!now().text.empty() && std::ranges::count(kLevels[number], now().text) > 0) {
      const Token& token = take();
      left = call(token.at, token.text, std::move(left), level(number + 1));
      if (number == kComparisons) break;
    }
    return left;
  }

  Node unary() {
    descend();
    const Token& token = now();
    Node made = accept("-") ? unary() : postfix();
    const bool is_number = made.kind == Kind::kNumbers && made.type.rank == 0;
    if (token.is("-") && is_number && made.type.element != kBool) {
      for (int64_t& number : made.ints) number = -number;
      for (double& number : made.reals) number = -number;
    } else if (token.is("-")) {
      made = call(token.at, "negate", std::move(made));
    } else if (now().is("^")) {
      const Token& power = take();
      made = call(power.at, power.text, std::move(made), unary());
    }
    --depth_;
    return made;
  }

  Node postfix() {
    Node made = primary();
    while (now().is("[")) {
      const Token& token = take();
      do {
        made = call(token.at, "index", std::move(made), expression());
      } while (accept(","));
      expect("]");
    }
    return made;
  }

  Node primary() {
    const Token& token = now();
    if (accept("(")) {
      Node made = expression();
      expect(")");
      return made;
    }
    if (accept("[")) return list(token.at);
    Node made{Kind::kName, token.at, token.text};
    if (accept("case")) {
      made.kind = Kind::kCase;
      made.parts.push_back(expression());
      expect("{");
      while (!accept("}")) made.parts.push_back(arm());
    } else if (token.kind == Token::Kind::kName) {
      take();
      if (accept("(")) {
        made.kind = Kind::kCall;
        while (!accept(")")) {
          made.parts.push_back(expression());
          if (!now().is(")")) expect(",");
        }
      }
    } else {
      if (!is_number()) expected("a value");
      return numbers();
    }
    return finish(std::move(made));
  }

  bool is_number() const {
    return now().kind == Token::Kind::kInt || now().kind == Token::Kind::kReal ||
           now().is("true") || now().is("false");
  }
  Node numbers() {
    const Token& token = take();
    Node made{Kind::kNumbers, token.at, token.text};
    eddy_element& element = made.type.element;
    element = token.kind == Token::Kind::kInt ? kInt : kReal;
    if (token.kind == Token::Kind::kKeyword) {
      element = kBool;
      made.ints = {token.is("true")};
      return made;
    }
    const char* const end = token.text.data() + token.text.size();
    std::errc wrong = std::from_chars(token.text.data(), end, made.reals.emplace_back()).ec;
    if (element == kInt) {
      wrong = std::from_chars(token.text.data(), end, made.ints.emplace_back()).ec;
    }
    if (wrong == std::errc()) return made;
    throw Failure(token.at, std::string("no ") + name_of(element) + " can hold this number");
  }

  // After its bracket: elements, or a value for each row. Numbers become one constant.
  Node list(Position at) {
    Node made{Kind::kCall, at, "list"};
    made.parts.push_back(expression());
    if (accept("for")) {
      made.kind = Kind::kRows;
      made.name = name().text;
      expect("in");
      made.parts.push_back(expression());
      expect("]");
      return finish(std::move(made));
    }
    while (!accept("]")) {
      expect(",");
      made.parts.push_back(expression());
    }
    Node all{Kind::kNumbers, at, {}, made.parts[0].type};
    for (const Node& part : made.parts) {
      eddy_type type = part.type;
      if (type.element == kReal) all.type.element = kReal;
      if (type.element == kInt) type.element = all.type.element;
      if (part.kind != Kind::kNumbers || type.element == kBool || !fits(type, all.type) ||
          type.rank == EDDY_MAX_RANK) {
        return finish(std::move(made));
      }
      all.ints.insert(all.ints.end(), part.ints.begin(), part.ints.end());
      all.reals.insert(all.reals.end(), part.reals.begin(), part.reals.end());
    }
    for (int32_t i = all.type.rank++; i > 0; --i) all.type.dims[i] = all.type.dims[i - 1];
    all.type.dims[0] = static_cast<int64_t>(made.parts.size());
    return all;
  }

  const std::vector<Token> tokens_;
  size_t next_ = 0;
  size_t depth_ = 0;
};

}  // namespace

Node parse(std::string_view text, Position at, Functions& functions) {
  return Parser(text, at).program(functions);
}

}  // namespace dsl
