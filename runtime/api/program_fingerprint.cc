#include "runtime/api/program_fingerprint.h"

#include <bit>

#include "graph/base/fingerprint.h"
#include "ops/cpu/cpu_kernels.h"
#include "runtime/api/version.h"

namespace eddy {
namespace {

// What constants of a simplified graph are beyond this size follows from the graph as given.
constexpr size_t kSmallConstantBytes = 4096;

// The graph, and of the program all that is not in the graph.
class Printer {
 public:
  Printer(Fingerprint before, const Graph& graph, size_t max_constant_bytes,
          std::function<void()> evict_files = {})
      : graph_(graph),
        max_constant_bytes_(max_constant_bytes),
        evict_files_(std::move(evict_files)),
        fingerprint_(before) {}

  Fingerprint print_graph() {
    put(graph_.num_values());
    for (uint32_t v = 0; v < graph_.num_values(); ++v) put_value(graph_.value(ValueId(v)));
    put(graph_.num_nodes());
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) put_node(graph_.node(NodeId(n)));
    put(graph_.num_regions());
    for (uint32_t r = 0; r < graph_.num_regions(); ++r) put_region(graph_.region(RegionId(r)));
    return fingerprint_;
  }

  Fingerprint print_program(const Executable& program, bool is_host_driven) {
    put(kVersion);
    put(__VERSION__);
    put(describe_cpu_kernels());
    put(program.host().kind());
    put(is_host_driven);
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (graph_.node(NodeId(n)).kind == NodeKind::kExec) put_kernel(program.kernel(NodeId(n)));
    }
    for (const Program::Block& block : program.plan().program.blocks) put_block(block);
    return fingerprint_;
  }

 private:
  void put(std::string_view text) { fingerprint_.add(text); }
  void put(const char* text) { fingerprint_.add(std::string_view(text)); }
  void put(const std::string& text) { fingerprint_.add(std::string_view(text)); }
  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void put(T number) { fingerprint_.add(static_cast<uint64_t>(number)); }
  void put(float value) { put(std::bit_cast<uint32_t>(value)); }
  template <typename T>
  void put(const std::vector<T>& values) {
    put(values.size());
    for (const T& value : values) put(value);
  }
  template <typename Tag>
  void put(Id<Tag> id) {
    put(id.is_none() ? ~uint64_t{0} : uint64_t{id.index()});
  }

  void put(const Dims& dims) {
    put(dims.rank());
    for (const int64_t dim : dims) {
      put(dim);
      if (dim < kUnknownDim) put(graph_.symbol(dim));
    }
  }
  void put(const ValueType& type) {
    put(type.num_wrappers);
    for (int i = 0; i < type.num_wrappers; ++i) put(type.wrappers[static_cast<size_t>(i)]);
    put(type.tensor.element);
    put(type.tensor.is_ranked);
    if (type.tensor.is_ranked) put(type.tensor.dims);
  }
  void put(const Constant& constant) {
    const TensorView view = constant.view();
    put(constant.element);
    put(constant.dims);
    if (constant.element == ElementType::kString) {
      for (int64_t i = 0; i < view.count(); ++i) put(view.as<std::string>()[i]);
    } else if (view.size_bytes() <= max_constant_bytes_) {
      fingerprint_.add_bytes(view.data, view.size_bytes());
      count_read(view.size_bytes());
    }
  }
  void count_read(size_t size_bytes) {
    constexpr size_t kEvictBytes = 8 << 20;
    num_read_bytes_ += size_bytes;
    if (num_read_bytes_ < kEvictBytes || !evict_files_) return;
    evict_files_();
    num_read_bytes_ = 0;
  }

  void put_value(const ValueInfo& info) {
    put(info.origin);
    put(info.type);
    put(info.producer);
    put(info.region);
    put(info.index);
    if (info.origin == ValueOrigin::kConstant) put(graph_.constant(info.constant));
  }

  void put_node(const Node& node) {
    put(node.kind);
    put(node.region);
    put(node.inputs);
    put(node.outputs);
    put(node.regions);
    put(node.num_scan_outputs);
    put(node.default_region);
    put(node.device);
    put(node.attributes.entries().size());
    for (const Attributes::Entry& entry : node.attributes.entries()) {
      put(entry.name);
      put(entry.value.index());
      std::visit([this](const auto& value) { put(value); }, entry.value);
    }
    if (node.kind != NodeKind::kExec) return;
    put(node.op->domain);
    put(node.op->name);
    put(node.op->since_version);
    put(node.opset_version);
  }

  void put_kernel(const BoundKernel& kernel) {
    put(kernel.provider);
    put(kernel.since_version);
    put(kernel.place);
  }

  void put_region(const Region& region) {
    put(region.owner);
    put(region.parameters);
    put(region.nodes);
    put(region.results);
  }

  void put_block(const Program::Block& block) {
    put(block.streams.size());
    for (const uint32_t stream : block.streams) put(stream);
    put(block.steps.size());
    for (const Program::Step& step : block.steps) {
      put(step.op);
      put(step.stream);
      put(step.operand);
    }
  }

  const Graph& graph_;
  const size_t max_constant_bytes_;
  const std::function<void()> evict_files_;
  size_t num_read_bytes_ = 0;  // since files were evicted
  Fingerprint fingerprint_;
};

}  // namespace

Fingerprint graph_fingerprint(const Graph& graph, std::function<void()> evict_files) {
  return Printer(Fingerprint(), graph, SIZE_MAX, std::move(evict_files)).print_graph();
}

Fingerprint simplified_fingerprint(const Fingerprint& given, const Graph& graph) {
  return Printer(given, graph, kSmallConstantBytes).print_graph();
}

std::string program_fingerprint(const Fingerprint& made, const Executable& program,
                                bool is_host_driven) {
  return Printer(made, program.graph(), 0).print_program(program, is_host_driven).text();
}

}  // namespace eddy
