// `while` and comprehensions become loops that carry what their blocks assign, `case` a case-of
// node; calls are written out where they stand. A carried type may widen (int[1], then int[?]): the
// whole program is compiled again, with the wider types, until none does.
#include <algorithm>
#include <functional>
#include <set>

#include "examples/dsl/language.h"

namespace dsl {
namespace {

constexpr size_t kMaxNodes = 500'000;  // compiled, in all passes, with calls written out

using enum Kind;
using eddy::ValueId;
using Values = std::vector<ValueId>;
using Names = std::set<Name>;
using Types = std::vector<eddy_type>;

// What is called how here and in ONNX (compose() makes those without an operator there), which
// arguments it takes (any, of the same elements, numbers, reals, bools), and how many.
struct Operation {
  Name name;
  const char* op;
  char rule;
  size_t least = 1, most = least;
  const char* attribute = nullptr;
  int64_t number = 0;
};
// clang-format off
constexpr Operation kOperations[] = {
    {"+", "Add", 'n', 2}, {"-", "Sub", 'n', 2}, {"*", "Mul", 'n', 2}, {"/", "Div", 'r', 2},
    {"^", "Pow", 'n', 2}, {"//", nullptr, 'n', 2}, {"%", nullptr, 'n', 2}, {"@", "MatMul", 'n', 2},
    {"<", "Less", 'n', 2}, {"<=", "LessOrEqual", 'n', 2}, {"==", "Equal", 's', 2},
    {">", "Greater", 'n', 2}, {">=", "GreaterOrEqual", 'n', 2}, {"!=", nullptr, 's', 2},
    {"and", "And", 'b', 2}, {"or", "Or", 'b', 2}, {"not", "Not", 'b'}, {"-x", "Neg", 'n'},
    {"abs", "Abs", 'n'}, {"sqrt", "Sqrt", 'r'}, {"exp", "Exp", 'r'}, {"log", "Log", 'r'},
    {"sin", "Sin", 'r'}, {"cos", "Cos", 'r'}, {"tanh", "Tanh", 'r'}, {"floor", "Floor", 'r'},
    {"min", "Min", 'n', 1, SIZE_MAX}, {"max", "Max", 'n', 1, SIZE_MAX},
    {"range", nullptr, 'n', 1, 2}, {"sum", "ReduceSum", 'n', 1, 1, "keepdims"},
    {"mean", "ReduceMean", 'r', 1, 1, "keepdims"}, {"argmax", "ArgMax", 'n', 1, 1, "keepdims"},
    {"concat", "Concat", 's', 1, SIZE_MAX, "axis"}, {"[x]", nullptr, 's', 1, SIZE_MAX},
    {"transpose", "Transpose", 'a'}, {"column", nullptr, 'a'}, {"fill", "Expand", 'a', 2},
    {"reshape", "Reshape", 'a', 2}, {"x[i]", "Gather", 'a', 2}, {"shape", "Shape", 'a'},
    {"size", "Size", 'a'}, {"rows", nullptr, 'a'}, {"real", "Cast", 'a', 1, 1, "to", kReal},
    {"int", "Cast", 'a', 1, 1, "to", kInt}, {"bool", "Cast", 'a', 1, 1, "to", kBool}};
// clang-format on

// Fails unless that many arguments are given to what takes so many.
void check_count(size_t given, Name name, size_t least, size_t most, const Position& at) {
  std::string takes = quote(name) + " takes " + std::to_string(least);
  if (most > least) takes += " or " + (most == SIZE_MAX ? "more" : std::to_string(most));
  takes += most == 1 ? " argument, not " : " arguments, not ";
  require(given >= least && given <= most, at, takes + std::to_string(given));
}

// A graph of the language's operations. Each node has the place `at`, so that what fails names it,
// also in a run.
struct Operations : eddy::Graph {
  using Graph::Graph;

  ValueId add(const char* op, const Values& inputs, const Position& at,
              const char* attribute = nullptr, int64_t number = 0) {
    eddy::Attributes attributes;
    if (attribute != nullptr) attributes.set(attribute, number);
    eddy_node made = attributes.node();
    made.location = &at;
    return this->op(op, inputs, made);
  }
  ValueId numbers(const Node& node) {
    const std::vector<int64_t> dims(node.type.dims, node.type.dims + node.type.rank);
    if (node.type.element == kBool) return constant(node.ints[0] != 0);
    if (node.type.element == kInt) return constant(eddy::tensor(node.ints.data(), dims));
    return constant(eddy::tensor(node.reals.data(), dims));
  }
  // The value with other elements: ints as reals.
  ValueId as(eddy_element element, ValueId value, const Position& at) {
    const eddy_type from = type(value);
    if (from.element == element) return value;
    if (from.element == kInt && element == kReal) return add("Cast", {value}, at, "to", kReal);
    const std::string wanted = name_of(element);
    throw Failure(
        at, "this is " + print_type(from) + ", not " + wanted + "; " + wanted + "() converts it");
  }
  // apply("+", {a, b}, at): a Cast where an int meets a real, then an Add.
  ValueId apply(Name name, Values of, const Position& at) {
    const auto* const known = std::ranges::find(kOperations, name, &Operation::name);
    if (known == std::end(kOperations)) throw Failure(at, "there is no function " + quote(name));
    check_count(of.size(), name, known->least, known->most, at);
    eddy_element wanted = known->rule == 'b' ? kBool : type(of[0]).element;
    if (known->rule == 'r') wanted = kReal;
    const auto is_real = [&](ValueId value) { return type(value).element == kReal; };
    if (wanted == kInt && std::ranges::any_of(of, is_real)) wanted = kReal;
    require(known->rule != 'n' || wanted != kBool, at,
            quote(name) + " takes numbers, not " + print_type(type(of[0])));
    for (ValueId& value : of) {
      if (known->rule != 'a') value = as(wanted, value, at);
    }
    if (known->rule == 'a' && known->least == 2) of[1] = as(kInt, of[1], at);
    if (of.size() == 1 && name == "min") return add("ReduceMin", of, at, "keepdims");
    if (of.size() == 1 && name == "max") return add("ReduceMax", of, at, "keepdims");
    if (known->op == nullptr) return compose(name, std::move(of), at);
    return add(known->op, of, at, known->attribute, known->number);
  }
  // Those that are no operator of ONNX.
  ValueId compose(Name name, Values of, const Position& at) {
    const auto vector = [&](int64_t value) { return constant(eddy::tensor(&value, {1})); };
    const auto number = [&](int64_t value) { return as(type(of[0]).element, constant(value), at); };
    if (name == "!=") return add("Not", {add("Equal", of, at)}, at);
    if (name == "column") return add("Unsqueeze", {of[0], vector(-1)}, at);
    if (name == "rows") return add("Gather", {add("Shape", of, at), constant(int64_t{0})}, at);
    if (name == "range" && of.size() == 1) of.insert(of.begin(), number(0));
    if (name == "range") return add("Range", {of[0], of[1], number(1)}, at);
    if (name == "[x]") {
      for (ValueId& part : of) part = add("Unsqueeze", {part, vector(0)}, at);
      return add("Concat", of, at, "axis");
    }
    // Division that rounds down, and what it leaves, which has the sign of the divisor.
    if (type(of[0]).element == kReal) {
      const ValueId whole = add("Floor", {add("Div", of, at)}, at);
      return name == "//" ? whole : add("Sub", {of[0], add("Mul", {of[1], whole}, at)}, at);
    }
    const ValueId rest = add("Mod", of, at);
    return name == "%" ? rest : add("Div", {add("Sub", {of[0], rest}, at), of[1]}, at);
  }
};

// ---- A program as a graph ----
// What the passes know of one another.
struct Known {
  std::map<size_t, Types> carried;  // by the loops, in the order in which a pass comes by them
  bool has_widened = false;
  size_t num_nodes = 0;
};

// Compiles the program once, with the types that loops are known to carry.
class Pass : public Operations {
 public:
  Pass(const Functions& functions, const eddy::Library& library, Known& known)
      : Operations(library, "program"), functions_(functions), known_(known) {}

  Compiled compile(const Node& program, const Variables& given) {
    for (const auto& [name, value] : given)
      variables_[name] = input(name, eddy::type(value.view()));
    const auto inputs = variables_;
    run_block(program, kBlock);
    Compiled made{*this, std::move(shown_), stream_, {}};
    for (const auto& [name, value] : variables_) {
      if (inputs.contains(name) && inputs.at(name) == value) continue;
      output("=" + std::string(name), value);
      made.kept.emplace_back(name);
    }
    return made;
  }

 private:
  Level descend(const Node& node) {
    require(++known_.num_nodes <= kMaxNodes, node.at, "the program is too long, calls included");
    return {depth_, node.at, "this is nested too deeply, calls included"};
  }

  // ---- Variables: what is seen here, in this region of this call ----
  ValueId& variable(Name name, const Position& at) {
    const auto it = variables_.find(name);
    if (it != variables_.end()) return it->second;
    throw Failure(at, "there is no " + quote(name) + " here; declare it with let");
  }
  // Those that a part of the program assigns and does not declare itself.
  Names assigned(const Node& node) const {
    Names found;
    if (node.kind == kSet && variables_.contains(node.name)) found.insert(node.name);
    for (const Node& part : node.parts) found.merge(assigned(part));
    return found;
  }
  Values current(const Names& names) {
    Values values;
    for (const Name name : names) values.push_back(variables_[name]);
    return values;
  }
  void set(const Names& names, const Values& values) {
    for (size_t k = 0; const Name name : names) variables_[name] = values[k++];
  }
  // The value, proved to be of the type, if that says something.
  ValueId promise(const eddy_type& wanted, ValueId value, const Position& at) {
    if (wanted.element == EDDY_UNDEFINED) return value;
    value = as(wanted.element, value, at);
    const eddy_type found = type(value);
    if (eddy::fits(found, wanted)) return value;
    throw Failure(at, "this is " + print_type(found) + ", not always " + print_type(wanted));
  }
  void declare(const Node& node, ValueId value) {
    const bool is_new = num_regions_ == 0 || !variables_.contains(node.name);
    require(is_new, node.at, "there is a " + quote(node.name) + " already; leave out the let");
    variables_[node.name] = promise(node.type, value, node.at);
  }
  void assign(const Node& node, ValueId value) {
    ValueId& before = variable(node.name, node.at);
    before = as(type(before).element, value, node.parts[0].at);
  }

  // ---- Statements ----
  // The value of the statement of kind `last` at the end, or 0.
  ValueId run_block(const Node& block, Kind last) {
    for (const Node& statement : block.parts) {
      const bool is_last = &statement == &block.parts.back();
      if (is_last && statement.kind == last) return value(statement.parts[0]);
      run(statement);
    }
    return 0;
  }
  void run(const Node& node) {
    const Level level = descend(node);
    if (node.kind == kLet) return declare(node, value(node.parts[0]));
    if (node.kind == kWhile) return run_while(node);
    if (node.kind == kSet) return assign(node, value(node.parts[0]));
    if (node.kind == kValue && node.parts[0].kind == kCase) {
      const Names names = assigned(node);
      return set(names, choose(node.parts[0], names, kBlock));
    }
    const bool is_end = node.kind == kYield || node.kind == kReturn;
    require(!is_end, node.at, "yield ends the block of a while, return that of a function");
    require(num_regions_ == 0, node.at, "this stands outside of loops and functions");
    const ValueId made = value(node.parts[0]);
    output(std::to_string(shown_.size()), made);
    require(node.kind != kStream || (!stream_ && rows_.contains(made)), node.at,
            "stream takes rows of a loop of this piece, once: let r = while ... { ... } stream r");
    if (node.kind == kStream) stream_ = shown_.size();
    shown_.push_back(&node);
  }
  void run_while(const Node& node) {
    const Node& test = node.parts[0];
    const Node& block = node.parts[1];
    const Names names = assigned(block);
    require(!names.empty(), node.at, "this loop sets no variable, so it would never end");
    eddy_while of = {};
    of.num_rows = !block.parts.empty() && block.parts.back().kind == kYield;
    const Values made = loop(
        node, node.text, of, names, [&] { return as(kBool, value(test), test.at); },
        [&](ValueId) { return run_block(block, kYield); });
    set(names, made);
    if (node.name.empty()) return;
    require(of.num_rows > 0, node.at, "no rows: the block does not end with a yield");
    rows_.insert(made.back());
    declare(node, made.back());
  }

  // ---- Cases ----
  // The variables as the taken arm leaves them, then its value, where `last` is that.
  Values choose(const Node& node, const Names& names, Kind last) {
    const Position& at = node.parts[0].at;
    ValueId which = value(node.parts[0]);
    const eddy_element element = type(which).element;
    if (element == kReal) throw Failure(at, "a case is of an int or a bool, not of a real");
    std::vector<const Node*> arms;
    const Node* otherwise = nullptr;
    for (size_t i = 1; i < node.parts.size(); ++i) {
      const Node& arm = node.parts[i];
      const bool is_else = arm.type.element == EDDY_UNDEFINED;
      const auto is_same = [&](const Node* other) { return other->ints == arm.ints; };
      require(otherwise == nullptr, arm.at, "nothing comes behind else");
      require(is_else || arm.type.element == element, arm.at,
              "labels must be those of " + name_of(element));
      require(std::ranges::none_of(arms, is_same), arm.at, "this case has that label already");
      const bool is_value = arm.parts.size() == 1 && arm.parts[0].kind == kValue;
      require(is_value || last != kValue, arm.at, "here an arm is one value");
      (is_else ? otherwise : arms.emplace_back()) = &arm;
    }
    if (element == kBool) {
      std::vector<const Node*> both(2, otherwise);
      for (const Node* const arm : arms) both[arm->ints[0] != 0] = arm;
      arms = both;
    } else {  // the number of the first that fits, or of the last
      const auto number = [&](size_t k) { return constant(static_cast<int64_t>(k)); };
      ValueId chosen = number(arms.size());
      for (size_t k = arms.size(); k-- > 0;) {
        const ValueId fits = apply("==", {which, constant(arms[k]->ints[0])}, at);
        chosen = add("Where", {fits, number(k), chosen}, at);
      }
      which = chosen;
      arms.push_back(otherwise);
    }
    const bool is_whole = std::ranges::count(arms, nullptr) == 0;
    require(is_whole || last != kValue, node.at, "this case has no value without an else");
    std::vector<std::function<Values()>> branches;
    for (const Node* const arm : arms) {
      const auto body = [=, this] { return arm == nullptr ? 0 : run_block(*arm, last); };
      branches.push_back([&, body] { return within(names, current(names), body); });
    }
    Position place = node.at;
    place.text = "case";
    eddy_case of = eddy::Graph::no_default();
    of.location = &place;
    return case_of(which, names.size() + (last == kValue), branches, of);
  }

  // ---- Values ----
  ValueId value(const Node& node) {
    const Level level = descend(node);
    if (node.kind == kNumbers) return numbers(node);
    if (node.kind == kName) return variable(node.name, node.at);
    if (node.kind == kRows) return rows(node);
    if (node.kind == kCase) return choose(node, {}, kValue)[0];
    const auto function = functions_.find(node.name);
    if (function != functions_.end()) return call(function->second, node);
    Values arguments;
    for (const Node& part : node.parts) arguments.push_back(value(part));
    return apply(node.name, arguments, node.at);
  }
  ValueId call(const Node& function, const Node& node) {
    const Node& block = function.parts.back();
    const size_t count = function.parts.size() - 1;
    check_count(node.parts.size(), node.name, count, count, node.at);
    const bool is_new = std::ranges::count(calls_, &function) == 0;
    require(is_new, node.at, quote(node.name) + " calls itself; use while");
    std::map<Name, ValueId> inside;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const Node& given = node.parts[i];
      inside[function.parts[i].name] = promise(function.parts[i].type, value(given), given.at);
    }
    calls_.push_back(&function);
    const Values made = within({}, {}, [&] {
      variables_ = std::move(inside);
      return run_block(block, kReturn);
    });
    calls_.pop_back();
    return promise(function.type, made[0], block.parts.back().at);
  }
  // A value for each row: a loop that ends after so many iterations.
  ValueId rows(const Node& node) {
    const Node& from = node.parts[1];
    const ValueId source = value(from);
    eddy_while of = {};
    of.trip_limit = apply("rows", {source}, from.at);
    of.num_rows = 1;
    const auto body = [&](ValueId iteration) {
      variables_[node.name] = apply("x[i]", {source, iteration}, from.at);
      return value(node.parts[0]);
    };
    const auto test = [&] { return constant(true); };
    const Values made = loop(node, "for " + std::string(node.name), of, {}, test, body);
    return *rows_.insert(made[0]).first;
  }

  // ---- Regions ----
  // Inside of one, where the names have these values: those at its end, then the body's, if any.
  Values within(const Names& names, const Values& values, const std::function<ValueId()>& body) {
    const auto outside = variables_;
    set(names, values);
    ++num_regions_;
    const ValueId result = body();
    --num_regions_;
    Values made = current(names);
    if (result != 0) made.push_back(result);
    variables_ = outside;
    return made;
  }
  // A loop that carries the variables of these names: as it leaves them, then its rows.
  Values loop(const Node& node, const std::string& text, eddy_while of, const Names& names,
              const std::function<ValueId()>& test, const std::function<ValueId(ValueId)>& body) {
    const Values initial = current(names);
    Types& types = known_.carried[num_loops_++];
    for (size_t k = types.size(); k < initial.size(); ++k) types.push_back(type(initial[k]));
    const auto widen = [&](const Values& values) {
      for (size_t k = 0; k < types.size(); ++k) {
        const eddy_type found = type(values[k]);
        known_.has_widened |= !eddy::fits(found, types[k]);
        types[k] = eddy::join(types[k], found);
      }
    };
    widen(initial);
    Position place = node.at;
    place.text = text.c_str();
    of.types = types.data();
    of.location = &place;
    const auto before = [&](ValueId, const Values& carried) {
      return eddy::Graph::Test{within(names, carried, test).back(), carried};
    };
    const auto after = [&](ValueId iteration, const Values& forwarded) {
      Values next = within(names, forwarded, [&] { return body(iteration); });
      widen(next);
      return next;
    };
    return while_loop(initial, before, after, of);
  }

  const Functions& functions_;
  Known& known_;
  std::map<Name, ValueId> variables_;
  std::vector<const Node*> calls_;  // functions that are written out here
  size_t num_regions_ = 0;          // around here, calls included
  size_t num_loops_ = 0;
  size_t depth_ = 0;
  std::set<ValueId> rows_;  // of loops
  std::optional<size_t> stream_;
  std::vector<const Node*> shown_;
};

}  // namespace

Compiled compile(const Node& program, const Functions& functions, const Variables& variables,
                 const eddy::Library& library) {
  for (Known known;; known.has_widened = false) {
    Compiled made = Pass(functions, library, known).compile(program, variables);
    if (!known.has_widened) return made;
  }
}

}  // namespace dsl
