#include "tests/graph/io/graph_text.h"

#include <iomanip>
#include <map>
#include <sstream>

namespace eddy::test {
namespace {

// Small contents as hexadecimal bytes, large ones as an FNV-1a hash of them.
std::string bytes_text(const TensorView& view) {
  constexpr size_t kShownBytes = 64;
  const uint8_t* bytes = view.as<uint8_t>();
  std::ostringstream out;
  out << std::hex << std::setfill('0');
  if (view.size_bytes() <= kShownBytes) {
    for (size_t i = 0; i < view.size_bytes(); ++i) out << std::setw(2) << +bytes[i];
    return out.str();
  }
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < view.size_bytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  out << "hash " << hash;
  return out.str();
}

std::string content(const Constant& constant) {
  const TensorView view = constant.view();
  std::string text = to_string(ValueType(constant.type())) + "{";
  if (view.element == ElementType::kString) {
    for (int64_t i = 0; i < view.count(); ++i) text += '"' + view.as<std::string>()[i] + "\",";
  } else {
    text += bytes_text(view);
  }
  return text + "}";
}

class Describer {
 public:
  explicit Describer(const Graph& graph) : graph_(graph) {}

  std::string run() {
    out_ << "graph " << graph_.name() << "\n";
    region(graph_.root(), "");
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      out_ << "output " << graph_.output_names()[i] << " = " << use(graph_.outputs()[i]) << "\n";
    }
    return out_.str();
  }

 private:
  std::string dim_text(int64_t dim) { return dim <= -2 ? graph_.symbol(dim) : std::to_string(dim); }

  std::string type_text(const ValueType& type) {
    std::string text;
    for (int i = 0; i < type.num_wrappers; ++i) {
      text += type.wrappers[static_cast<size_t>(i)] == Wrapper::kSequence ? "seq " : "opt ";
    }
    text += std::string(element_type_name(type.tensor.element));
    if (!type.tensor.is_ranked) return text + "[...]";
    text += "[";
    for (int64_t dim : type.tensor.dims.span()) text += dim_text(dim) + ",";
    return text + "]";
  }

  std::string define(ValueId value) {
    numbers_.emplace(value, numbers_.size());
    return "%" + std::to_string(numbers_.size() - 1) + " '" + graph_.value(value).name + "' " +
           type_text(graph_.value(value).type);
  }

  std::string use(ValueId value) {
    if (value.is_none()) return "-";
    const ValueInfo& info = graph_.value(value);
    if (info.origin == ValueOrigin::kConstant) return content(graph_.constant(info.constant));
    const auto it = numbers_.find(value);
    return it == numbers_.end() ? "%undefined" : "%" + std::to_string(it->second);
  }

  void attribute(const Attributes::Entry& entry) {
    out_ << " " << entry.name << "=" << entry.value.index() << ":";
    const auto list = [&](const auto& values) {
      for (const auto& v : values) out_ << v << ";";
    };
    const AttributeValue& value = entry.value;
    if (const auto* i = std::get_if<int64_t>(&value)) out_ << *i;
    if (const auto* f = std::get_if<float>(&value)) out_ << *f;
    if (const auto* s = std::get_if<std::string>(&value)) out_ << *s;
    if (const auto* is = std::get_if<std::vector<int64_t>>(&value)) list(*is);
    if (const auto* fs = std::get_if<std::vector<float>>(&value)) list(*fs);
    if (const auto* ss = std::get_if<std::vector<std::string>>(&value)) list(*ss);
    if (const auto* c = std::get_if<Constant>(&value)) out_ << content(*c);
    if (const auto* t = std::get_if<ValueType>(&value)) out_ << type_text(*t);
  }

  void node(const Node& node, const std::string& indent) {
    static const char* kKinds[] = {"exec", "while", "case"};
    out_ << indent << kKinds[static_cast<int>(node.kind)] << " " << node.name;
    if (node.op != nullptr) {
      out_ << " " << node.op->domain << "." << node.op->name << "@" << node.opset_version;
    }
    for (const Attributes::Entry& entry : node.attributes.entries()) attribute(entry);
    out_ << " scans=" << node.num_scan_outputs << " default=" << node.default_region
         << " device=" << node.device << " (";
    for (ValueId input : node.inputs) out_ << use(input) << " ";
    out_ << ")\n";
    for (RegionId id : node.regions) region(graph_.region(id), indent + "  ");
    for (ValueId output : node.outputs) out_ << indent << "  -> " << define(output) << "\n";
  }

  void region(const Region& region, const std::string& indent) {
    out_ << indent << "region " << region.name << "\n";
    for (ValueId parameter : region.parameters) out_ << indent << define(parameter) << "\n";
    for (NodeId id : region.nodes) node(graph_.node(id), indent);
    out_ << indent << "results";
    for (ValueId result : region.results) out_ << " " << use(result);
    out_ << " captures " << region.captures.size() << "\n";
  }

  const Graph& graph_;
  std::map<ValueId, size_t> numbers_;
  std::ostringstream out_;
};

}  // namespace

std::string describe(const Graph& graph) { return Describer(graph).run(); }

}  // namespace eddy::test
