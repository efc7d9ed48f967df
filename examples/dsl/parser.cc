#include <algorithm>
#include <charconv>
#include <set>

#include "examples/dsl/language.h"

namespace dsl {
namespace {

using enum Kind;

constexpr Name kSpaces = " \t\r\n";
constexpr Name kDigits = "0123456789";
constexpr Name kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
constexpr Name kKeywords[] = {"and", "case", "else",  "false",  "fn",     "for",  "in",    "let",
                              "not", "or",   "print", "return", "stream", "true", "while", "yield"};
// Binary operators with their levels: the higher, the tighter.
constexpr size_t kComparisons = 2, kTightest = 4;
using Operator = std::pair<Name, size_t>;
constexpr Operator kLevels[] = {{"or", 0}, {"and", 1}, {"<", 2},  {"<=", 2}, {">", 2},
                                {">=", 2}, {"==", 2},  {"!=", 2}, {"+", 3},  {"-", 3},
                                {"*", 4},  {"/", 4},   {"//", 4}, {"%", 4},  {"@", 4}};
constexpr std::pair<Name, Kind> kWords[] = {{"let", kLet},     {"while", kWhile},
                                            {"print", kPrint}, {"stream", kStream},
                                            {"yield", kYield}, {"return", kReturn}};
constexpr eddy_element kElements[] = {kReal, kInt, kBool};
// Ranges of the characters of UTF-8 that a terminal shows: their first ones, and their last ones.
constexpr Name kFirst[] = {" ", "\xc2\xa0", "\xe0\xa0\x80", "\xee\x80\x80", "\xf0\x90\x80\x80"};
constexpr Name kLast[] = {"~", "\xdf\xbf", "\xed\x9f\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf"};
constexpr const char* kTooDeep = "this is nested too deeply; use let";

// ---- Tokens ----
struct Token {
  Position at;
  Name text;  // empty: the end
};

// The first of the text: a byte, and where it is none of ASCII, those that go on with it in UTF-8.
Name character(Name text) {
  const bool is_ascii = (text[0] & 0x80) == 0;
  size_t size = 1;
  while (!is_ascii && size < text.size() && (text[size] & 0xc0) == 0x80) ++size;
  return text.substr(0, size);
}

bool begins(Name text, Name set) { return !text.empty() && set.find(text[0]) != set.npos; }

bool is_name(Name text) {
  const bool is_keyword = std::ranges::count(kKeywords, text) > 0;
  return begins(text, kLetters) && !begins(text, kDigits) && !is_keyword;
}

// Of a number, true or false; else none.
eddy_element element_of(Name text) {
  if (text == "true" || text == "false") return kBool;
  if (!begins(text, kDigits)) return EDDY_UNDEFINED;
  return text.find_first_not_of(kDigits) == text.npos ? kInt : kReal;
}

// The token at the start of the text, which is not empty, or all spaces there, or a comment.
Name first(Name text) {
  if (text[0] == '#') return text.substr(0, text.find('\n'));
  if (begins(text, kSpaces)) return text.substr(0, text.find_first_not_of(kSpaces));
  if (begins(text, kDigits)) {
    double number = 0;
    return {text.data(), std::from_chars(text.data(), text.data() + text.size(), number).ptr};
  }
  if (begins(text, kLetters)) return text.substr(0, text.find_first_not_of(kLetters));
  const Name pair = text.substr(0, 2);
  const bool is_pair = pair == "->" || std::ranges::count(kLevels, pair, &Operator::first) > 0;
  return is_pair ? pair : character(text);
}

// The last token is the end, right behind the last but one.
std::vector<Token> split(Name text, Position at) {
  std::vector<Token> tokens = {{at, {}}};
  while (!text.empty()) {
    const Name piece = first(text);
    const bool is_token = piece[0] != '#' && !begins(piece, kSpaces);
    if (is_token) tokens.back() = {at, piece};
    for (const char c : piece) {
      at.line += c == '\n';
      at.column = c == '\n' ? 1 : at.column + ((c & 0xc0) != 0x80);
    }
    if (is_token) tokens.push_back({at, {}});
    text.remove_prefix(piece.size());
  }
  return tokens;
}

class Parser {
 public:
  Parser(Name text, const Position& at) : tokens_(split(text, at)) {}

  Node program(Functions& functions) {
    Functions found;
    Node made{kBlock, now().at};
    while (!now().text.empty()) {
      if (!function(found)) made.parts.push_back(statement());
    }
    found.merge(functions);  // what is defined anew hides what was there
    functions = std::move(found);
    return made;
  }

 private:
  const Token& now() const { return tokens_[next_]; }
  const Token& take() { return now().text.empty() ? now() : tokens_[next_++]; }
  bool accept(Name symbol) { return now().text == symbol && (take(), true); }
  [[noreturn]] void expected(const std::string& what) const {
    const std::string found = now().text.empty() ? "the end" : quote(now().text);
    throw Failure(now().at, "expected " + what + ", found " + found);
  }
  void expect(Name symbol) {
    if (!accept(symbol)) expected(quote(symbol));
  }
  const Token& name() {
    if (!is_name(now().text)) expected("a name");
    return take();
  }
  // The items of a list, and what closes it, which may stand behind a comma.
  void items(Name close, const std::function<void()>& item) {
    do {
      item();
      if (!accept(",") && now().text != close) expected("',' or " + quote(close));
    } while (!accept(close));
  }
  static Node finish(Node node) {
    for (const Node& part : node.parts) node.depth = std::max(node.depth, part.depth + 1);
    if (node.depth > kMaxDepth) throw Failure(node.at, kTooDeep);
    return node;
  }
  template <typename... Nodes>
  static Node call(const Token& token, Name name, Nodes... arguments) {
    Node made{kCall, token.at, name};
    (made.parts.push_back(std::move(arguments)), ...);
    return finish(std::move(made));
  }

  // ---- Functions and types ----
  // Whether there is one.
  bool function(Functions& functions) {
    if (!accept("fn")) return false;
    const Token& token = name();
    Node made{kBlock, token.at};
    std::set<Name> names;
    const auto parameter = [&] {
      const auto& [at, text] = name();
      require(names.insert(text).second, at, "there is a parameter " + quote(text) + " already");
      made.parts.push_back({kName, at, text});
      if (accept(":")) made.parts.back().type = type();
    };
    expect("(");
    if (!accept(")")) items(")", parameter);
    if (accept("->")) made.type = type();
    made.parts.push_back(block({kBlock, now().at}));
    const Node& body = made.parts.back();
    require(!body.parts.empty() && body.parts.back().kind == kReturn, token.at,
            "the last statement of " + quote(token.text) + " must be a return");
    const bool is_new = functions.emplace(token.text, std::move(made)).second;
    require(is_new, token.at, "there is a function " + quote(token.text) + " already");
    return true;
  }
  eddy_type type() {
    const auto* const element = std::ranges::find(kElements, now().text, name_of);
    if (element == std::end(kElements)) expected("real, int or bool");
    eddy_type made = eddy::type(*element, {});
    take();
    if (!accept("[")) return made;
    items("]", [&] {
      const bool is_size = now().text == "?" || element_of(now().text) == kInt;
      if (!is_size || made.rank == EDDY_MAX_RANK) expected("a size or '?', at most 8 of them");
      made.dims[made.rank++] = accept("?") ? EDDY_UNKNOWN_DIM : literal().ints[0];
    });
    return made;
  }

  // ---- Statements ----
  Node block(Node made) {
    expect("{");
    while (!accept("}")) made.parts.push_back(statement());
    return made;
  }
  Node statement() {
    const Level level(depth_, now().at, kTooDeep);
    Node made{kValue, now().at};
    for (const auto& [word, kind] : kWords) {
      if (made.kind == kValue && accept(word)) made.kind = kind;
    }
    const bool is_set = is_name(now().text) && tokens_[next_ + 1].text == "=";
    if (made.kind == kValue && is_set) made.kind = kSet;
    if (made.kind == kLet || made.kind == kSet) {
      made.name = name().text;
      if (accept(":")) made.type = type();
      expect("=");
      if (made.kind == kLet && accept("while")) made.kind = kWhile;
    }
    const char* const first = tokens_[next_ - (made.kind == kWhile)].text.data();
    made.parts.push_back(expression());
    const Name last = tokens_[next_ - 1].text;
    made.text = excerpt({first, last.data() + last.size()}, 60);
    if (made.kind == kWhile) made.parts.push_back(block({kBlock, now().at}));
    return made;
  }
  Node arm() {
    Node made{kBlock, now().at};
    if (!accept("else")) {
      const eddy_element element = element_of(now().text);
      const bool is_label = element == kInt || element == kBool;
      if (!is_label) expected("a label (0, 1, false, true or else) or '}'");
      made = literal();
      made.kind = kBlock;
    }
    expect(":");
    if (now().text == "{") return block(std::move(made));
    made.parts.push_back(statement());
    return made;
  }

  // ---- Expressions ----
  // Of operators that bind as tightly as `loosest`, or tighter.
  Node expression(size_t loosest = 0) {
    const bool is_not = loosest <= kComparisons && now().text == "not";
    Node left = unary(is_not);
    for (size_t tightest = is_not ? kComparisons - 1 : kTightest;;) {
      const Token& token = now();
      const auto* const found = std::ranges::find(kLevels, token.text, &Operator::first);
      const size_t level = found == std::end(kLevels) ? kTightest + 1 : found->second;
      if (level < loosest || level > tightest) return left;
      take();
      left = call(token, token.text, std::move(left), expression(level + 1));
      tightest = level == kComparisons ? level - 1 : level;  // no comparison of comparisons
    }
  }
  Node unary(bool is_not = false) {
    const Level level(depth_, now().at, kTooDeep);
    const Token& token = now();
    if (is_not && accept("not")) return call(token, token.text, expression(kComparisons));
    if (accept("-")) return negative(token, unary());
    Node made = primary();
    while (now().text == "[") {
      const Token& bracket = take();
      items("]", [&] { made = call(bracket, "x[i]", std::move(made), expression()); });
    }
    if (const Token& power = now(); accept("^")) made = call(power, "^", std::move(made), unary());
    return made;
  }
  static Node negative(const Token& token, Node of) {
    const bool is_number = of.kind == kNumbers && of.type.rank == 0;
    if (!is_number || of.type.element == kBool) return call(token, "-x", std::move(of));
    for (int64_t& number : of.ints) number = -number;
    for (double& number : of.reals) number = -number;
    return of;
  }
  Node primary() {
    const Token& token = now();
    if (element_of(token.text) != EDDY_UNDEFINED) return literal();
    if (accept("[")) return list(token.at);
    if (accept("(")) {
      Node made = expression();
      expect(")");
      return made;
    }
    Node made{kName, token.at, token.text};
    const auto argument = [&] { made.parts.push_back(expression()); };
    if (accept("case")) {
      made.kind = kCase;
      argument();
      expect("{");
      while (!accept("}")) made.parts.push_back(arm());
    } else if (!is_name(token.text)) {
      expected("a value");
    } else if (take(); accept("(")) {
      made.kind = kCall;
      if (!accept(")")) items(")", argument);
    }
    return finish(std::move(made));
  }
  Node literal() {
    const auto& [at, text] = take();
    const eddy_element element = element_of(text);
    Node made{kNumbers, at, {}, eddy::type(element, {})};
    const auto read = [&, text = text](auto& number) {
      return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
    };
    if (element == kBool) made.ints = {text == "true"};
    bool is_held = element == kBool || read(made.reals.emplace_back());
    if (element == kInt) is_held = read(made.ints.emplace_back());
    require(is_held, at, "no " + name_of(element) + " can hold this number");
    return made;
  }
  // After its bracket: elements, or a value for each row.
  Node list(const Position& at) {
    Node made{kCall, at, "[x]"};
    items("]", [&] {
      made.parts.push_back(expression());
      if (made.parts.size() > 1 || !accept("for")) return;
      made.kind = kRows;
      made.name = name().text;
      expect("in");
      made.parts.push_back(expression());
      if (now().text != "]") expected("']'");
    });
    if (made.kind == kRows) return finish(std::move(made));
    // Numbers of the same dims, of which none is 0, become one constant.
    Node all{kNumbers, at, {}, made.parts[0].type};
    for (const Node& part : made.parts) {
      const bool is_alike = part.kind == kNumbers && part.type.element != kBool &&
                            std::ranges::equal(part.type.dims, all.type.dims);
      if (!is_alike || all.type.rank == EDDY_MAX_RANK) return finish(std::move(made));
      if (part.type.element == kReal) all.type.element = kReal;
      all.ints.insert(all.ints.end(), part.ints.begin(), part.ints.end());
      all.reals.insert(all.reals.end(), part.reals.begin(), part.reals.end());
    }
    std::shift_right(std::begin(all.type.dims), std::end(all.type.dims), 1);
    all.type.dims[0] = static_cast<int64_t>(made.parts.size());
    ++all.type.rank;
    return all;
  }

  const std::vector<Token> tokens_;
  size_t next_ = 0;
  size_t depth_ = 0;
};

}  // namespace

Node parse(Name text, const char* file, uint32_t line, Functions& functions) {
  return Parser(text, {sizeof(Position), file, line, 1, nullptr}).program(functions);
}

int num_open(Name lines) {
  int count = 0;
  for (const auto& [at, text] : split(lines, {}))
    count += begins(text, "{[(") - begins(text, "}])");
  return count;
}

std::string excerpt(Name text, size_t most) {
  std::string made;
  size_t kept = 0;  // before "..."
  for (size_t count = 0; !text.empty(); ++count) {
    if (count == most) return made.substr(0, kept) + "...";
    const Name next = character(text);
    const size_t k = std::ranges::upper_bound(kFirst, next) - kFirst;
    const bool is_shown = k > 0 && next.size() == kFirst[k - 1].size() && next <= kLast[k - 1];
    made += is_shown ? next : begins(next, kSpaces) ? " " : "?";
    if (count < most - 3) kept = made.size();
    text.remove_prefix(next.size());
  }
  return made;
}

}  // namespace dsl
