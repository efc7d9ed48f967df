#include "graph/ir/builder.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "graph/base/check.h"
#include "graph/ir/checked_call.h"
#include "graph/ir/expansion.h"
#include "graph/ir/validate.h"

namespace eddy {
namespace {

// What follows graphs by recursion has room for; below kMaxBlockDepth of programs.
constexpr size_t kMaxOpenRegions = 900;

constexpr size_t kConstantAlignment = 64;

class HeapBlob : public Blob {
 public:
  explicit HeapBlob(size_t size_bytes)
      : size_(std::max<size_t>(size_bytes, 1)),
        data_(::operator new (size_, std::align_val_t{kConstantAlignment})) {}
  ~HeapBlob() override { ::operator delete (data_, std::align_val_t{kConstantAlignment}); }
  void* data() { return data_; }
  std::span<const std::byte> bytes() const override {
    return {static_cast<const std::byte*>(data_), size_};
  }

 private:
  const size_t size_;
  void* const data_;
};

class StringBlob : public Blob {
 public:
  StringBlob(const std::string* strings, size_t count) : strings_(strings, strings + count) {}
  const std::string* data() const { return strings_.data(); }

 private:
  std::vector<std::string> strings_;
};

// The first input that is not constant, of those whose content the rule reads if there is one: it
// is mostly small, and passes that look for products and chains find the others where they were
// made.
// SIZE_MAX: all are constant.
size_t input_to_pass(const Graph& graph, const Node& call) {
  size_t chosen = SIZE_MAX;
  bool is_read = false;
  for (size_t i = call.inputs.size(); i-- > 0;) {
    const ValueId input = call.inputs[i];
    if (input.is_none() || graph.value(input).origin == ValueOrigin::kConstant) continue;
    const bool is_host = has_flag(call.op->input_flags(i), InputFlag::kHostValue);
    if (is_host || !is_read) chosen = i;
    is_read |= is_host;
  }
  return chosen;
}

}  // namespace

GraphBuilder::GraphBuilder(const OpTable& ops, std::string name) : ops_(ops) {
  graph_.name_ = std::move(name);
  open_region(NodeId(), "");
}

GraphBuilder::~GraphBuilder() = default;

void GraphBuilder::set_opset(std::string domain, int version) {
  for (auto& [known, value] : opsets_) {
    if (known == domain) {
      value = version;
      return;
    }
  }
  opsets_.emplace_back(std::move(domain), version);
}

int64_t GraphBuilder::symbol(std::string_view name) {
  const int64_t next = -2 - static_cast<int64_t>(graph_.symbols_.size());
  const auto [it, is_new] = symbol_dims_.emplace(name, next);
  if (is_new) graph_.symbols_.emplace_back(name);
  return it->second;
}

Value GraphBuilder::input(std::string name, const ValueType& type) {
  if (!is_ok()) return {};
  if (open_.size() != 1) {
    fail(invalid_argument("input '" + name +
                          "' is declared inside a region; declare it at the root"));
    return {};
  }
  if (!input_names_.insert(name).second) {
    fail(invalid_argument("input '" + name + "' is declared twice"));
    return {};
  }
  if (type.tensor.is_static() && !type.tensor.dims.count()) {
    fail(resource_exhausted("input '" + name + "' is declared with the shape " +
                            to_string(type.tensor.dims) + ", which is too large"));
    return {};
  }
  return add_parameter(type, std::move(name));
}

void GraphBuilder::output(std::string name, Value value) {
  if (!is_ok() || !is_usable(value, "output '" + name + "'")) return;
  if (open_.size() != 1) {
    return fail(invalid_argument("output '" + name + "' is declared inside a region"));
  }
  if (!output_names_.insert(name).second) {
    return fail(invalid_argument("output '" + name + "' is declared twice"));
  }
  graph_.output_names_.push_back(std::move(name));
  graph_.regions_[0].results.push_back(value.id);
}

Constant GraphBuilder::make_constant(const TensorView& tensor) {
  Constant constant{tensor.element, Dims(tensor.shape()), nullptr};
  if (tensor.element == ElementType::kString) {
    auto blob =
        std::make_unique<StringBlob>(tensor.as<std::string>(), static_cast<size_t>(tensor.count()));
    constant.data = blob->data();
    adopt(std::move(blob));
    return constant;
  }
  auto blob = std::make_unique<HeapBlob>(tensor.size_bytes());
  EDDY_CHECK(tensor.data != nullptr || tensor.size_bytes() == 0) << "a constant without bytes";
  if (tensor.size_bytes() > 0) std::memcpy(blob->data(), tensor.data, tensor.size_bytes());
  constant.data = blob->data();
  adopt(std::move(blob));
  return constant;
}

Value GraphBuilder::constant(const TensorView& tensor, std::string name) {
  if (!is_ok()) return {};
  return add_constant(make_constant(tensor), std::move(name));
}

Value GraphBuilder::constant_in_blob(const TensorView& tensor, std::string name) {
  if (!is_ok()) return {};
  return add_constant({tensor.element, Dims(tensor.shape()), tensor.data}, std::move(name));
}

void GraphBuilder::adopt(std::shared_ptr<Blob> blob) { graph_.blobs_.push_back(std::move(blob)); }

void GraphBuilder::adopt_blobs_of(Graph&& graph) {
  for (auto& blob : graph.blobs_) adopt(std::move(blob));
  graph.blobs_.clear();
}

Value GraphBuilder::add_constant(Constant constant, std::string name) {
  ValueInfo info;
  info.name = std::move(name);
  info.type = constant.type();
  info.origin = ValueOrigin::kConstant;
  info.region = Graph::kRoot;
  info.constant = ConstantId(static_cast<uint32_t>(graph_.constants_.size()));
  graph_.constants_.push_back(constant);
  return add_value(std::move(info));
}

Value GraphBuilder::add_parameter(const ValueType& type, std::string name) {
  Region& region = graph_.regions_[open_.back().index()];
  ValueInfo info;
  info.name = std::move(name);
  info.type = type;
  info.region = open_.back();
  info.index = static_cast<uint32_t>(region.parameters.size());
  const Value value = add_value(std::move(info));
  region.parameters.push_back(value.id);
  return value;
}

Value GraphBuilder::add_value(ValueInfo info) {
  const ValueId id(static_cast<uint32_t>(graph_.values_.size()));
  graph_.values_.push_back(std::move(info));
  return {id};
}

RegionId GraphBuilder::open_region(NodeId owner, std::string name) {
  EDDY_CHECK(owner.is_none() == open_.empty()) << "a region belongs to a node, but for the root";
  EDDY_CHECK(owner.is_none() || graph_.node(owner).region == open_.back())
      << "the region of a node that stands elsewhere";
  if (open_.size() > kMaxOpenRegions) {
    fail(unsupported("loops and branches are nested more than " + std::to_string(kMaxOpenRegions) +
                     " deep; make one loop of several"));
  }
  const RegionId id(static_cast<uint32_t>(graph_.regions_.size()));
  Region region;
  region.owner = owner;
  region.name = std::move(name);
  graph_.regions_.push_back(std::move(region));
  node_names_.emplace_back();
  if (!owner.is_none()) graph_.nodes_[owner.index()].regions.push_back(id);
  open_.push_back(id);
  return id;
}

void GraphBuilder::close_region(std::span<const Value> results) {
  EDDY_CHECK(open_.size() > 1) << "the root is closed by finish() alone";
  Region& region = graph_.regions_[open_.back().index()];
  for (size_t i = 0; is_ok() && i < results.size(); ++i) {
    if (is_usable(results[i], "result " + std::to_string(i)))
      region.results.push_back(results[i].id);
  }
  open_.pop_back();
}

std::string GraphBuilder::unique_node_name(RegionId region, std::string wanted,
                                           std::string_view stem) {
  EDDY_DCHECK(region.index() < node_names_.size()) << "region " << region.index();
  NameSet& names = node_names_[region.index()];
  if (!wanted.empty() && names.insert(wanted)) return wanted;
  const std::string base = (wanted.empty() ? std::string(stem) : wanted) + "_";
  // Both parts of a loop have one path: what is made up names a node in one of them.
  const NodeId owner = graph_.region(region).owner;
  const NameSet* before = nullptr;
  if (!owner.is_none() && graph_.node(owner).kind == NodeKind::kWhile) {
    const RegionId first =
        graph_.node(owner).regions.empty() ? region : graph_.node(owner).regions[0];
    if (first != region) before = &node_names_[first.index()];
  }
  // Steps that double: no set of given names makes this long.
  for (uint64_t i = names.size(), step = 1;; i += step, step *= 2) {
    std::string name = base + std::to_string(i);
    if (before != nullptr && before->has(name)) continue;
    if (names.insert(name)) return name;
  }
}

NodeId GraphBuilder::add_node(Node node) {
  const NodeId id(static_cast<uint32_t>(graph_.nodes_.size()));
  node.region = open_.back();
  graph_.regions_[open_.back().index()].nodes.push_back(id);
  graph_.nodes_.push_back(std::move(node));
  return id;
}

void GraphBuilder::add_outputs(NodeId node, size_t count, std::span<const std::string> names) {
  EDDY_CHECK(graph_.node(node).outputs.empty()) << graph_.node(node).name << " has its outputs";
  for (size_t i = 0; i < count; ++i) {
    ValueInfo info;
    if (i < names.size()) info.name = names[i];
    info.origin = ValueOrigin::kNodeOutput;
    info.region = graph_.node(node).region;
    info.producer = node;
    info.index = static_cast<uint32_t>(i);
    const ValueId id = add_value(std::move(info)).id;
    graph_.nodes_[node.index()].outputs.push_back(id);
  }
}

std::vector<Value> GraphBuilder::output_values(NodeId node) const {
  std::vector<Value> values;
  for (ValueId id : graph_.node(node).outputs) values.push_back({id});
  return values;
}

// Not of a region that is closed.
bool GraphBuilder::is_visible(Value value) const {
  EDDY_CHECK(value.id.index() < graph_.values_.size()) << "a value of another builder";
  const ValueInfo& info = graph_.value(value.id);
  return info.origin == ValueOrigin::kConstant ||
         std::ranges::find(open_, info.region) != open_.end();
}

bool GraphBuilder::is_usable(Value value, const std::string& what) {
  if (value.is_none()) {
    fail(invalid_argument(what + " is missing"));
    return false;
  }
  if (is_visible(value)) return true;
  fail(invalid_argument(what + " uses value '" + graph_.value(value.id).name +
                        "' of a region that is closed; make it a result of that region"));
  return false;
}

Value GraphBuilder::op(std::string_view op_name, std::span<const Value> inputs,
                       Attributes attributes, OpOptions options) {
  return ops(op_name, inputs, std::move(attributes), std::move(options)).at(0);
}

std::vector<Value> GraphBuilder::ops(std::string_view op_name, std::span<const Value> inputs,
                                     Attributes attributes, OpOptions options) {
  const size_t num_outputs = static_cast<size_t>(std::max(options.num_outputs, 1));
  std::vector<Value> invalid(num_outputs);
  if (!is_ok()) return invalid;
  int opset = options.opset_version;
  if (opset == 0) {
    const auto it = std::find_if(opsets_.begin(), opsets_.end(),
                                 [&](const auto& pair) { return pair.first == options.domain; });
    opset = it != opsets_.end() ? it->second : (options.domain.empty() ? kDefaultOpset : 1);
  }
  Node node;
  node.op = ops_.find_or_null(options.domain, op_name, opset);
  node.name = unique_node_name(open_.back(), options.name, op_name);
  if (node.op == nullptr) {
    const std::string full =
        (options.domain.empty() ? "" : options.domain + ".") + std::string(op_name);
    fail(unsupported("operator '" + full + "' is not known in opset " + std::to_string(opset) +
                     ops_.advice(options.domain, op_name))
             .prepend_path(node.name));
    return invalid;
  }
  node.opset_version = opset;
  node.attributes = std::move(attributes);
  node.device = options.device;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_none() && !is_visible(inputs[i])) {
      is_usable(inputs[i], "input " + std::to_string(i) + " of " + node.name);
      return invalid;
    }
    node.inputs.push_back(inputs[i].id);
  }
  while (!node.inputs.empty() && node.inputs.back().is_none()) node.inputs.pop_back();
  if (node.op->expand != nullptr) return expand(std::move(node), num_outputs, options);
  const NodeId id = add_node(std::move(node));
  add_outputs(id, num_outputs, options.output_names);
  if (Status status = infer_exec(id); !status.is_ok()) {
    fail_at(id, std::move(status));
    return invalid;
  }
  return output_values(id);
}

void GraphBuilder::check_in_run(Node& call, size_t num_outputs) {
  const OpDef* const def = ops_.find_or_null("eddy", kCheckedCall, 1);
  const size_t passed = input_to_pass(graph_, call);
  const auto is_tensor = [&](ValueId input) {
    return input.is_none() || graph_.value(input).type.is_tensor();
  };
  if (def == nullptr || passed == SIZE_MAX || !std::ranges::all_of(call.inputs, is_tensor)) return;
  if (is_settled(call, num_outputs)) return;
  const NodeId id = add_node(make_checked_call(*def, call, num_outputs, passed));
  add_outputs(id, 1, {});
  if (Status status = infer_exec(id); !status.is_ok()) return fail_at(id, std::move(status));
  call.inputs[passed] = graph_.node(id).outputs[0];
}

std::vector<Value> GraphBuilder::expand(Node call, size_t num_outputs, const OpOptions& options) {
  std::vector<Value> outputs(num_outputs);
  std::vector<ValueType> types(num_outputs);
  if (Status status = infer_outputs(call, types); !status.is_ok()) {
    fail(std::move(status.prepend_path(call.name)));
    return outputs;
  }
  check_in_run(call, num_outputs);
  if (!is_ok()) return outputs;
  Expansion expansion(*this, call, num_outputs);
  call.op->expand(expansion);
  if (!is_ok()) return outputs;
  outputs = expansion.take_outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].is_none()) continue;
    if (!is_compatible(type(outputs[i]), types[i])) {
      fail(internal_error("the rule of " + call.op->name + " gives " + to_string(types[i]) +
                          ", but its nodes " + to_string(type(outputs[i])))
               .prepend_path(call.name));
      return outputs;
    }
    if (i < options.output_names.size()) set_name(outputs[i], options.output_names[i]);
  }
  return outputs;
}

const ValueType& GraphBuilder::type(Value value) const {
  static const ValueType kNothing;
  return value.is_none() ? kNothing : graph_.value(value.id).type;
}

void GraphBuilder::set_name(Value value, std::string name) {
  if (value.is_none()) return;
  ValueInfo& info = graph_.values_[value.id.index()];
  if (info.origin == ValueOrigin::kParameter && info.region == Graph::kRoot) {
    input_names_.erase(info.name);
    input_names_.insert(name);
  }
  info.name = std::move(name);
}

const Constant* GraphBuilder::constant_or_null(Value value) const {
  if (value.is_none() || graph_.value(value.id).origin != ValueOrigin::kConstant) return nullptr;
  return &graph_.constant(graph_.value(value.id).constant);
}

const Node* GraphBuilder::producer_or_null(Value value) const {
  if (value.is_none() || graph_.value(value.id).origin != ValueOrigin::kNodeOutput) return nullptr;
  const Node& node = graph_.node(graph_.value(value.id).producer);
  return node.region == open_.back() ? &node : nullptr;
}

void GraphBuilder::fail(Status status) {
  if (!is_ok() || status.is_ok()) return;
  status_ = std::move(status);
  status_.prepend_path(current_path());
}

void GraphBuilder::fail_at(NodeId node, Status status) {
  if (is_ok()) status_ = std::move(status.prepend_path(graph_.path(node)));
}

std::string GraphBuilder::current_path() const {
  std::string path;
  for (RegionId id : open_) {
    const Region& region = graph_.region(id);
    if (region.owner.is_none()) continue;
    if (!path.empty()) path += "/";
    path += graph_.node(region.owner).name;
    if (graph_.node(region.owner).kind == NodeKind::kCaseOf) path += "/" + region.name;
  }
  return path;
}

void GraphBuilder::compute_captures() {
  const auto use = [&](RegionId region, ValueId value) {
    if (value.is_none() || graph_.value(value).origin == ValueOrigin::kConstant) return;
    while (region != graph_.value(value).region) {
      EDDY_DCHECK(!graph_.region(region).owner.is_none())
          << "value " << value.index() << " is of a region that is not around its reader";
      graph_.regions_[region.index()].captures.push_back(value);
      region = graph_.node(graph_.region(region).owner).region;
    }
  };
  for (size_t r = 0; r < graph_.regions_.size(); ++r) {
    const RegionId id(static_cast<uint32_t>(r));
    for (NodeId node : graph_.region(id).nodes) {
      for (ValueId input : graph_.node(node).inputs) use(id, input);
    }
    for (ValueId result : graph_.region(id).results) use(id, result);
  }
  for (Region& region : graph_.regions_) {
    auto& captures = region.captures;
    std::sort(captures.begin(), captures.end());
    captures.erase(std::unique(captures.begin(), captures.end()), captures.end());
  }
}

Result<Graph> GraphBuilder::finish() {
  if (is_ok() && !controls_.empty()) {
    fail(invalid_argument("'" + graph_.node(controls_.back().node).name + "' is still open"));
  }
  if (!is_ok()) return status_;
  EDDY_CHECK(open_.size() == 1) << "finish() inside a region";
  EDDY_CHECK(node_names_.size() == graph_.regions_.size()) << "each region has its names";
  compute_captures();
  EDDY_RETURN_IF_ERROR(validate(graph_));
  return std::move(graph_);
}

}  // namespace eddy
