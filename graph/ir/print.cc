#include "graph/ir/print.h"

#include <map>
#include <sstream>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr int64_t kShownElements = 8;

template <typename T>
void put_elements(std::ostream& out, const Constant& constant) {
  EDDY_DCHECK(constant.data != nullptr && constant.element != ElementType::kUndefined)
      << "a constant without elements";
  out << " {";
  for (int64_t i = 0; i < *constant.dims.count(); ++i) {
    if (i > 0) out << ", ";
    out << +static_cast<const T*>(constant.data)[i];
  }
  out << "}";
}

void put_constant(std::ostream& out, const Constant& constant) {
  out << "constant " << to_string(ValueType(constant.type()));
  const auto count = constant.dims.count();
  if (!count || *count > kShownElements || constant.data == nullptr) return;
  switch (constant.element) {
    case ElementType::kFloat:
      return put_elements<float>(out, constant);
    case ElementType::kDouble:
      return put_elements<double>(out, constant);
    case ElementType::kInt32:
      return put_elements<int32_t>(out, constant);
    case ElementType::kInt64:
      return put_elements<int64_t>(out, constant);
    case ElementType::kBool:
      return put_elements<uint8_t>(out, constant);
    default:
      return;
  }
}

// Names come from files: quotes, backslashes and control characters must not end a string.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

struct AttributePrinter {
  std::ostream& out;
  void operator()(int64_t value) const { out << value; }
  void operator()(float value) const { out << value; }
  void operator()(const std::string& value) const { out << quoted(value); }
  template <typename T>
  void operator()(const std::vector<T>& values) const {
    out << "[";
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out << ", ";
      (*this)(values[i]);
    }
    out << "]";
  }
  void operator()(const Constant& value) const { put_constant(out, value); }
  void operator()(const ValueType& value) const { out << to_string(value); }
};

class TextPrinter {
 public:
  explicit TextPrinter(const Graph& graph) : graph_(graph) {}

  std::string run() {
    out_ << "graph " << graph_.name() << "(";
    put_definitions(graph_.root().parameters);
    out_ << ") {\n";
    put_nodes(Graph::kRoot, 1);
    out_ << "  return ";
    put_uses(graph_.root().results);
    out_ << "\n}\n";
    return out_.str();
  }

 private:
  void indent(int depth) { out_ << std::string(static_cast<size_t>(depth) * 2, ' '); }

  void put_definitions(const std::vector<ValueId>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ << ", ";
      EDDY_DCHECK(!numbers_.contains(values[i])) << "value " << i << " is assigned twice";
      numbers_[values[i]] = next_++;
      const ValueInfo& info = graph_.value(values[i]);
      out_ << "%" << numbers_[values[i]];
      if (!info.name.empty()) out_ << " " << quoted(info.name);
      out_ << ": " << to_string(info.type);
    }
  }

  void put_uses(const std::vector<ValueId>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ << ", ";
      put_use(values[i]);
    }
  }

  void put_use(ValueId value) {
    if (value.is_none()) {
      out_ << "none";
    } else if (graph_.value(value).origin == ValueOrigin::kConstant) {
      put_constant(out_, graph_.constant(graph_.value(value).constant));
    } else {
      out_ << "%" << numbers_.at(value);
    }
  }

  void put_nodes(RegionId region, int depth) {
    for (NodeId id : graph_.region(region).nodes) {
      const Node& node = graph_.node(id);
      // Regions are printed before the outputs get their numbers: they are made first.
      indent(depth);
      put_head(node);
      for (size_t r = 0; r < node.regions.size(); ++r) put_region(node.regions[r], depth);
      out_ << " -> ";
      put_definitions(node.outputs);
      out_ << "\n";
    }
  }

  void put_head(const Node& node) {
    switch (node.kind) {
      case NodeKind::kExec:
        if (!node.op->domain.empty()) out_ << node.op->domain << ".";
        out_ << node.op->name << "-" << node.op->since_version;
        break;
      case NodeKind::kWhile:
        out_ << "while";
        break;
      case NodeKind::kCaseOf:
        out_ << "case-of";
        break;
    }
    out_ << " " << quoted(node.name) << " (";
    put_uses(node.inputs);
    out_ << ")";
    for (const auto& entry : node.attributes.entries()) {
      out_ << " " << entry.name << "=";
      std::visit(AttributePrinter{out_}, entry.value);
    }
    if (node.num_scan_outputs > 0) out_ << " scans=" << node.num_scan_outputs;
    if (node.default_region >= 0) out_ << " default=" << node.default_region;
    if (!node.device.empty()) out_ << " device=" << node.device;
  }

  void put_region(RegionId id, int depth) {
    const Region& region = graph_.region(id);
    out_ << "\n";
    indent(depth);
    out_ << region.name << "(";
    put_definitions(region.parameters);
    out_ << ") {\n";
    put_nodes(id, depth + 1);
    indent(depth + 1);
    out_ << "yield ";
    put_uses(region.results);
    out_ << "\n";
    indent(depth);
    out_ << "}";
  }

  const Graph& graph_;
  std::ostringstream out_;
  std::map<ValueId, int> numbers_;
  int next_ = 0;
};

}  // namespace

std::string print_text(const Graph& graph) { return TextPrinter(graph).run(); }

}  // namespace eddy
