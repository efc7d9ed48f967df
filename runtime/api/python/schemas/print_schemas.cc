// print_schemas data | stubs: what eddy.ops is made of, as Python.
//
//   data    OPERATORS: {domain: {name: (version, inputs, (least, most) outputs, attributes)}},
//   where
//           an input is (name, flags) and an attribute name: (kind, is required)
//   stubs   ops.pyi
#include <cctype>
#include <climits>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "graph/base/check.h"
#include "graph/ir/op.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using Newest = std::map<std::string, std::map<std::string, const OpDef*>>;

Newest newest_of(const OpTable& table) {
  Newest made;
  for (const auto& def : table.all()) {
    const OpDef*& kept = made[def->domain][def->name];
    if (kept == nullptr || kept->since_version < def->since_version) kept = def.get();
  }
  return made;
}

const char* kind_name(AttributeKind kind) {
  static constexpr const char* kNames[] = {"int",    "float",   "str",    "ints",
                                           "floats", "strings", "tensor", "type"};
  return kNames[static_cast<size_t>(kind)];
}

const char* python_type(AttributeKind kind) {
  static constexpr const char* kTypes[] = {
      "_Int", "float", "str", "Sequence[int]", "Sequence[float]", "Sequence[str]", "Any", "Any"};
  return kTypes[static_cast<size_t>(kind)];
}

// Those that opsets from now on have.
bool is_current(const FormalAttribute& attribute) { return attribute.last_version == INT_MAX; }

bool is_keyword(const std::string& name) {
  for (const char* each :
       {"and",    "as",   "assert", "async",  "await", "break",    "class",   "def",
        "del",    "elif", "else",   "except", "for",   "from",     "global",  "if",
        "import", "in",   "is",     "lambda", "not",   "or",       "pass",    "raise",
        "return", "try",  "while",  "with",   "yield", "continue", "finally", "nonlocal"}) {
    if (name == each) return true;
  }
  return false;
}

std::string identifier(const std::string& name, size_t index) {
  std::string made;
  for (const char c : name) made += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (made.empty() || std::isdigit(static_cast<unsigned char>(made[0])) != 0) {
    made = "input" + std::to_string(index);
  }
  return is_keyword(made) ? made + "_" : made;
}

void print_data(const Newest& all) {
  std::puts("\"\"\"The newest definition of each operator; made by the build.\"\"\"\n");
  std::puts("OPERATORS = {");
  for (const auto& [domain, ops] : all) {
    std::printf("    \"%s\": {\n", domain.c_str());
    for (const auto& [name, def] : ops) {
      std::printf("        \"%s\": (%d, (", name.c_str(), def->since_version);
      for (size_t i = 0; i < def->inputs.size(); ++i) {
        const FormalInput& input = def->inputs[i];
        std::printf("(\"%s\", \"%s\"), ", identifier(input.name, i).c_str(),
                    has_flag(input.flags, InputFlag::kVariadic)   ? "variadic"
                    : has_flag(input.flags, InputFlag::kOptional) ? "optional"
                                                                  : "");
      }
      const int most = def->max_outputs == INT_MAX ? -1 : def->max_outputs;
      std::printf("), (%d, %d), {", def->min_outputs, most);
      for (const FormalAttribute& attribute : def->attributes) {
        if (!is_current(attribute)) continue;
        std::printf("\"%s\": (\"%s\", %s), ", attribute.name.c_str(), kind_name(attribute.kind),
                    attribute.is_required ? "True" : "False");
      }
      std::puts("}),");
    }
    std::puts("    },");
  }
  std::puts("}");
}

void print_stub(const OpDef& def, const char* indent) {
  std::printf("%sdef %s(", indent, def.name.c_str());
  bool has_all = false;
  bool may_follow_none = false;  // Python wants a default behind a default
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const FormalInput& input = def.inputs[i];
    const std::string name = identifier(input.name, i);
    if (has_flag(input.flags, InputFlag::kVariadic)) {
      std::printf("%s*%s: _Input, ", i > 0 ? "/, " : "", name.c_str());
      has_all = true;
    } else if (has_flag(input.flags, InputFlag::kOptional)) {
      std::printf("%s: _Optional = None, ", name.c_str());
      may_follow_none = true;
    } else {
      std::printf("%s: _Input%s, ", name.c_str(), may_follow_none ? " = ..." : "");
    }
  }
  if (!has_all) std::printf("%s*, ", def.inputs.empty() ? "" : "/, ");
  for (const FormalAttribute& attribute : def.attributes) {
    if (!is_current(attribute) || is_keyword(attribute.name)) continue;
    std::printf("%s: %s%s, ", attribute.name.c_str(), python_type(attribute.kind),
                attribute.is_required ? "" : " = ...");
  }
  std::printf("outputs: int = ..., opset: int = ..., node_name: str = ...) -> %s: ...\n",
              def.max_outputs == 1 ? "Tensor" : "Any");
}

void print_stubs(const Newest& all) {
  std::puts("\"\"\"Operators on values of a traced function; made by the build.\"\"\"\n");
  std::puts("import typing\nfrom typing import Any, List, Mapping, Sequence, Type, Union\n");
  std::puts("import numpy as np\n\nfrom ._tensor import Tensor\n");
  std::puts("_Input = Union[Tensor, np.ndarray, np.generic, bool, int, float, Sequence[Any]]");
  std::puts("_Optional = typing.Optional[_Input]\n_Int = Union[int, bool, Type[Any], np.dtype]\n");
  std::puts(
      "def op(name: str, *inputs: Any, domain: str = \"\", opset: int = 0, outputs: int = 1,");
  std::puts("       node_name: str = \"\", attributes: typing.Optional[Mapping[str, Any]] = None,");
  std::puts("       **more: Any) -> Any: ...");
  std::puts("def __dir__() -> List[str]: ...\n");
  for (const auto& [domain, ops] : all) {
    if (!domain.empty()) {
      const size_t dot = domain.rfind('.');
      const std::string name = dot == std::string::npos ? domain : domain.substr(dot + 1);
      std::printf("\nclass %s:\n", name.c_str());
    }
    for (const auto& [name, def] : ops) {
      if (!domain.empty()) std::puts("    @staticmethod");
      print_stub(*def, domain.empty() ? "" : "    ");
    }
  }
}

}  // namespace
}  // namespace eddy

int main(int count, char** arguments) {
  eddy::OpTable table;
  const eddy::Status status = eddy::add_standard_schemas(table);
  EDDY_CHECK(status.is_ok()) << status.message();
  const bool is_data = count == 2 && std::strcmp(arguments[1], "data") == 0;
  const bool is_stubs = count == 2 && std::strcmp(arguments[1], "stubs") == 0;
  if (!is_data && !is_stubs) {
    std::fputs("usage: print_schemas data|stubs\n", stderr);
    return 2;
  }
  const eddy::Newest all = eddy::newest_of(table);
  is_data ? eddy::print_data(all) : eddy::print_stubs(all);
  return 0;
}
