#include "examples/dsl/operations.h"

#include <algorithm>

namespace dsl {
namespace {

// What is called how here and in ONNX (compose() makes those without an operator there), with how
// many arguments, and which: any, of the same elements, numbers, reals, bools.
struct Operation {
  Name name;
  const char* op;
  size_t least, most;
  char rule;
  const char* attribute = nullptr;
  int64_t number = 0;
};
// clang-format off
constexpr Operation kOperations[] = {
    {"+", "Add", 2, 2, 'n'}, {"-", "Sub", 2, 2, 'n'}, {"*", "Mul", 2, 2, 'n'},
    {"/", "Div", 2, 2, 'r'}, {"//", nullptr, 2, 2, 'n'}, {"%", nullptr, 2, 2, 'n'},
    {"^", "Pow", 2, 2, 'n'}, {"@", "MatMul", 2, 2, 'n'}, {"negate", "Neg", 1, 1, 'n'},
    {"<", "Less", 2, 2, 'n'}, {"<=", "LessOrEqual", 2, 2, 'n'}, {">", "Greater", 2, 2, 'n'},
    {">=", "GreaterOrEqual", 2, 2, 'n'}, {"==", "Equal", 2, 2, 's'}, {"!=", nullptr, 2, 2, 's'},
    {"and", "And", 2, 2, 'b'}, {"or", "Or", 2, 2, 'b'}, {"not", "Not", 1, 1, 'b'},
    {"abs", "Abs", 1, 1, 'n'},
    {"sqrt", "Sqrt", 1, 1, 'r'}, {"exp", "Exp", 1, 1, 'r'}, {"log", "Log", 1, 1, 'r'},
    {"sin", "Sin", 1, 1, 'r'}, {"cos", "Cos", 1, 1, 'r'}, {"tanh", "Tanh", 1, 1, 'r'},
    {"floor", "Floor", 1, 1, 'r'}, {"min", "Min", 1, 99, 'n'}, {"max", "Max", 1, 99, 'n'},
    {"sum", "ReduceSum", 1, 1, 'n', "keepdims"}, {"mean", "ReduceMean", 1, 1, 'r', "keepdims"},
    {"argmax", "ArgMax", 1, 1, 'n', "keepdims"}, {"range", nullptr, 1, 2, 'n'}, {"list", nullptr, 1, SIZE_MAX, 's'},
    {"concat", "Concat", 1, 99, 's', "axis"}, {"transpose", "Transpose", 1, 1, 'a'},
    {"column", nullptr, 1, 1, 'a'}, {"fill", "Expand", 2, 2, 'a'}, {"reshape", "Reshape", 2, 2, 'a'},
    {"shape", "Shape", 1, 1, 'a'}, {"size", "Size", 1, 1, 'a'}, {"rows", nullptr, 1, 1, 'a'},
    {"index", "Gather", 2, 2, 'a'}, {"real", "Cast", 1, 1, 'a', "to", kReal},
    {"int", "Cast", 1, 1, 'a', "to", kInt}, {"bool", "Cast", 1, 1, 'a', "to", kBool}};
// clang-format on

}  // namespace

ValueId Operations::node(const char* op, const Values& inputs, Position at, const char* attribute,
                         int64_t number) {
  const eddy_location place = location(at);
  eddy_attribute of = {};
  of.struct_size = sizeof(of);
  of.name = attribute;
  of.i = number;
  eddy_node made = {};
  made.location = &place;
  made.attributes = &of;
  made.num_attributes = attribute == nullptr ? 0 : 1;
  return graph_.op(op, inputs, made);
}

ValueId Operations::numbers(const Node& node) {
  const eddy_type& type = node.type;
  const std::vector<int64_t> dims(type.dims, type.dims + type.rank);
  if (type.element == kBool) return graph_.constant(node.ints[0] != 0);
  if (type.element == kInt) return graph_.constant(eddy::tensor(node.ints.data(), dims));
  return graph_.constant(eddy::tensor(node.reals.data(), dims));
}

ValueId Operations::as(eddy_element element, ValueId value, Position at) {
  const eddy_type from = type(value);
  if (from.element == element) return value;
  if (from.element == kInt && element == kReal) return node("Cast", {value}, at, "to", kReal);
  const std::string wanted = name_of(element);
  throw Failure(
      at, "this is " + print_type(from) + ", not " + wanted + "; " + wanted + "() converts it");
}

ValueId Operations::apply(Name name, Values of, Position at) {
  const auto* const known = std::ranges::find(kOperations, name, &Operation::name);
  if (known == std::end(kOperations)) throw Failure(at, "there is no function " + quote(name));
  if (of.size() < known->least || of.size() > known->most) {
    throw Failure(at, quote(name) + " does not take " + std::to_string(of.size()) + " arguments");
  }
  eddy_element wanted = known->rule == 'b' ? kBool : type(of[0]).element;
  if (known->rule == 'r') wanted = kReal;
  for (const ValueId value : of) {
    if (wanted == kInt && type(value).element == kReal) wanted = kReal;
  }
  if (known->rule == 'n' && wanted == kBool) {
    throw Failure(at, quote(name) + " takes numbers, not " + print_type(type(of[0])));
  }
  for (ValueId& value : of) {
    if (known->rule != 'a') value = as(wanted, value, at);
  }
  if (known->rule == 'a' && known->least == 2) of[1] = as(kInt, of[1], at);
  if (of.size() == 1 && name == "min") return node("ReduceMin", of, at, "keepdims");
  if (of.size() == 1 && name == "max") return node("ReduceMax", of, at, "keepdims");
  if (known->op == nullptr) return compose(name, of, at);
  return node(known->op, of, at, known->attribute, known->number);
}

ValueId Operations::compose(Name name, const Values& of, Position at) {
  const auto constant = [&](int64_t value) { return graph_.constant(value); };
  const auto vector = [&](int64_t value) {
    const std::vector<int64_t> dims = {1};
    return graph_.constant(eddy::tensor(&value, dims));
  };
  if (name == "!=") return node("Not", {node("Equal", of, at)}, at);
  if (name == "column") return node("Unsqueeze", {of[0], vector(-1)}, at);
  if (name == "rows") return node("Gather", {node("Shape", of, at), constant(0)}, at);
  if (name == "range") {
    const auto number = [&](int64_t value) { return as(type(of[0]).element, constant(value), at); };
    return node("Range", {of.size() == 1 ? number(0) : of[0], of.back(), number(1)}, at);
  }
  if (name == "list") {
    Values parts = of;
    for (ValueId& part : parts) part = node("Unsqueeze", {part, vector(0)}, at);
    return node("Concat", parts, at, "axis");
  }
  // Division that rounds down, and what it leaves, which has the sign of the divisor.
  if (type(of[0]).element == kReal) {
    const ValueId whole = node("Floor", {node("Div", of, at)}, at);
    return name == "//" ? whole : node("Sub", {of[0], node("Mul", {of[1], whole}, at)}, at);
  }
  const ValueId rest = node("Mod", of, at);
  return name == "%" ? rest : node("Div", {node("Sub", {of[0], rest}, at), of[1]}, at);
}

}  // namespace dsl
