#include "graph/differentiate/gradient_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

// Of symbols, in a run.
using Sizes = std::map<int64_t, int64_t>;

Sizes sizes_of(const Graph& graph, const std::map<std::string, Dims>& inputs) {
  Sizes sizes;
  for (const ValueId id : graph.inputs()) {
    const ValueInfo& info = graph.value(id);
    const auto given = inputs.find(info.name);
    const TensorType& type = info.type.tensor;
    if (given == inputs.end() || !type.is_ranked) continue;
    for (int axis = 0; axis < std::min(type.dims.rank(), given->second.rank()); ++axis) {
      if (type.dims[axis] < kUnknownDim) sizes[type.dims[axis]] = given->second[axis];
    }
  }
  return sizes;
}

std::optional<int64_t> bytes_of(const TensorType& type, const Sizes& sizes = {}) {
  if (!type.is_ranked) return std::nullopt;
  Dims dims = type.dims;
  for (int axis = 0; axis < dims.rank(); ++axis) {
    if (const auto known = sizes.find(dims[axis]); known != sizes.end()) dims[axis] = known->second;
  }
  const std::optional<int64_t> count = dims.count();
  if (!count.has_value()) return std::nullopt;
  return *count * static_cast<int64_t>(element_size_bytes(type.element));
}

void add_bytes(std::optional<int64_t>& sum, const std::optional<int64_t>& more) {
  if (sum.has_value() && more.has_value()) {
    *sum += *more;
  } else {
    sum.reset();
  }
}

// "loop[7]/after/x" -> "loop/after/x"
std::string without_iterations(const std::string& path) {
  std::string plain;
  bool is_inside = false;
  for (const char c : path) {
    if (c == '[') is_inside = true;
    if (!is_inside) plain += c;
    if (c == ']') is_inside = false;
  }
  return plain;
}

bool is_in_loop(const std::string& path, const std::string& loop) {
  return path == loop || path.starts_with(loop + "/");
}

std::string kept_text(const std::optional<int64_t>& bytes) {
  return bytes.has_value() ? std::to_string(*bytes) + " bytes" : "tensors of unknown size";
}

// What each iteration of a loop leaves for its way back, the loop of that path: rows that it reads,
// and elements of sequences.
std::optional<int64_t> kept_bytes(const Graph& graph, const LoopView& loop,
                                  const std::string& way_back, const Sizes& sizes) {
  // Of all branches in it, of which an iteration takes one.
  const auto is_of_iteration = [&](RegionId region) {
    while (role(graph, region) == RegionRole::kBranch) {
      region = graph.node(graph.region(region).owner).region;
    }
    return loop.has(region);
  };
  std::set<ValueId> read;
  std::optional<int64_t> bytes = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (is_in_loop(graph.path(NodeId(n)), way_back)) {
      read.insert(node.inputs.begin(), node.inputs.end());
    }
    const bool pushes = node.kind == NodeKind::kExec && node.op->name == "SequenceInsert" &&
                        is_of_iteration(node.region);
    if (pushes) add_bytes(bytes, bytes_of(graph.value(node.inputs[1]).type.tensor, sizes));
  }
  for (size_t s = 0; s < loop.stacked().size(); ++s) {
    if (!read.contains(loop.stacked()[s])) continue;
    add_bytes(bytes, bytes_of(graph.value(loop.rows()[s]).type.tensor, sizes));
  }
  return bytes;
}

// A loop that leaves something for its way back.
struct Keeping {
  std::string way_back;  // the path of the loop that reads it
  std::string of;        // "iteration of 'recur'"
  const char* advice;
  std::string inside, outside = {};  // where memory that runs out may be what it takes: paths

  bool concerns(const std::string& path) const {
    return is_in_loop(path, inside) && (outside.empty() || !is_in_loop(path, outside));
  }
};

// Of a loop by its path, by what stands beside it. None: it keeps nothing, or as little as can be.
std::optional<Keeping> keeping_of(const std::string& path,
                                  const std::map<std::string, NodeId>& loops) {
  constexpr std::string_view kSegments = "/segments";
  constexpr std::string_view kAgain = "/again";
  if (const std::string segments = path + std::string(kSegments); loops.contains(segments)) {
    return Keeping{segments, "segment of '" + path + "'", "longer segments, or --save grow", path,
                   segments};
  }
  if (path.ends_with(kAgain)) {
    const size_t around = path.rfind(std::string(kSegments) + "/");
    if (around == path.npos) return std::nullopt;
    return Keeping{path.substr(0, path.size() - kAgain.size()) + "/grad",
                   "iteration of a segment of '" + path.substr(0, around) + "'",
                   "shorter segments, or --save grow", path.substr(0, around + kSegments.size())};
  }
  if (!loops.contains(path + "/grad")) return std::nullopt;
  return Keeping{path + "/grad", "iteration of '" + path + "'", "--save grow", path};
}

class Reporter {
 public:
  Reporter(const Graph& graph, const KeptValues& kept, GradientReport& report)
      : graph_(graph), kept_(kept), report_(report) {}

  // Its regions have been added.
  void add_loop(NodeId id) {
    Bytes bytes = bytes_[id];
    add_branches(id, bytes);
    report_.loops.push_back({.path = graph_.path(id),
                             .policy = to_string(kept_.policy(id)),
                             .why = kept_.why_all(id),
                             .bytes_per_iteration = bytes.iteration,
                             .state_bytes = bytes.state});
  }

  void add_region(RegionId id) {
    const Region& region = graph_.region(id);
    EDDY_DCHECK(!region.owner.is_none()) << "nothing of the root is kept";
    for (const auto& [reader, value] : captured_in(id)) {
      add(id, {Kept::What::kValue, value.index()}, KeptClass::kCaptured,
          "made outside of loops and branches");
    }
    const bool is_loop = role(graph_, id) != RegionRole::kBranch;
    if (is_loop && role(graph_, id) == RegionRole::kBefore) add_states(region.owner);
    for (const Kept& item : kept_.of(id)) {
      const bool is_row = is_loop && kept_.uses_rows(region.owner);
      add(id, item, is_row ? KeptClass::kRow : KeptClass::kPushed, why_kept(id, item, is_row));
    }
    if (is_loop && kept_.reads_iteration(id)) {
      add(id, {Kept::What::kValue, region.parameters[0].index()}, KeptClass::kDerived,
          "the loop that runs back counts, too");
      report_.kept.back().how = "iteration";
    }
    for (const NodeId node : kept_.derived(id)) {
      for (const ValueId output : graph_.node(node).outputs) {
        if (output.is_none()) continue;
        add(id, {Kept::What::kValue, output.index()}, KeptClass::kDerived,
            graph_.node(node).op->name + " makes it again of what is there");
      }
    }
  }

 private:
  struct Bytes {
    std::optional<int64_t> iteration = 0, state = 0;
  };

  // What each of the branches in it keeps: at most so much, as an iteration takes one.
  void add_branches(NodeId id, Bytes& bytes) {
    for (const RegionId region : graph_.node(id).regions) {
      for (const NodeId node : graph_.region(region).nodes) {
        if (graph_.node(node).kind != NodeKind::kCaseOf) continue;
        add_bytes(bytes.iteration, bytes_[node].iteration);
        add_branches(node, bytes);
      }
    }
  }

  std::vector<std::pair<RegionId, ValueId>> captured_in(RegionId id) const {
    const auto& all = kept_.captured();
    const auto first = all.lower_bound({id, ValueId(0)});
    auto last = first;
    while (last != all.end() && last->first == id) ++last;
    return {first, last};
  }

  void add_states(NodeId loop) {
    const bool is_row = kept_.has_state_rows(loop);
    const std::string where = is_row ? "a row" : "pushed";
    for (const Kept& item : kept_.state(loop)) {
      add(graph_.node(loop).regions[0], item, KeptClass::kState,
          where + "; what else is read is made again from it");
    }
  }

  std::string why_kept(RegionId id, const Kept& item, bool is_row) const {
    if (is_row) return "its shape is fixed, and the loop has no control flow inside";
    if (role(graph_, id) == RegionRole::kBranch) return "it is there where the branch was taken";
    if (item.form != Kept::Form::kItself) return "rows of a loop inside";
    if (item.what == Kept::What::kTrips) return "a loop inside takes as many trips back";
    const NodeId loop = graph_.region(id).owner;
    for (const RegionId region : graph_.node(loop).regions) {
      for (const NodeId node : graph_.region(region).nodes) {
        if (graph_.node(node).kind != NodeKind::kExec) return "the loop has control flow inside";
      }
    }
    return "its shape may change, or that of what is kept beside it";
  }

  // A name, or its producer's, of what becomes the parameter or what it becomes.
  std::string parameter_name(const ValueInfo& info) const {
    if (info.origin == ValueOrigin::kConstant) return "constant";
    if (info.index == 0) return "iteration";
    const LoopView loop(graph_, graph_.region(info.region).owner);
    const size_t k = info.index - 1;
    const bool is_carried = info.region == loop.before_id();
    EDDY_DCHECK(k < (is_carried ? loop.num_carried() : loop.num_forwarded())) << "parameter " << k;
    const std::vector<ValueId> others =
        is_carried ? std::vector<ValueId>{loop.initial()[k], loop.next()[k]}
                   : std::vector<ValueId>{loop.forwarded()[k], loop.outputs()[k]};
    for (const ValueId id : others) {
      if (!graph_.value(id).name.empty()) return graph_.value(id).name;
    }
    for (const ValueId id : others) {
      if (graph_.value(id).origin != ValueOrigin::kNodeOutput) continue;
      return graph_.node(graph_.value(id).producer).name;
    }
    return (is_carried ? "carried value " : "forwarded value ") + std::to_string(k);
  }

  void add(RegionId region, const Kept& item, KeptClass kind, std::string why) {
    KeptReport line{
        .path = graph_.path(graph_.region(region).owner) + "/" + graph_.region(region).name,
        .value = "",
        .type = "int64[]",
        .how = "trips",
        .kind = kind,
        .bytes = sizeof(int64_t),
        .why = std::move(why)};
    if (item.what == Kept::What::kTrips) {
      line.value = graph_.node(NodeId(item.index)).name;
    } else {
      const ValueInfo& info = graph_.value(ValueId(item.index));
      const TensorType& type = info.type.tensor;
      line.value = !info.name.empty() || info.producer.is_none() ? info.name
                                                                 : graph_.node(info.producer).name;
      if (line.value.empty()) line.value = parameter_name(info);
      line.type = to_string(info.type);
      line.how = item.what == Kept::What::kValue ? "value" : "shape";
      line.bytes = bytes_of(type);
      if (item.what == Kept::What::kShape) {
        line.bytes = std::nullopt;
        if (type.is_ranked) line.bytes = type.dims.rank() * int64_t{sizeof(int64_t)};
      }
    }
    line.is_of_inner_loop = item.form != Kept::Form::kItself;
    if (item.form == Kept::Form::kRows) line.bytes = std::nullopt;  // as many as its trips
    if (kind == KeptClass::kCaptured || kind == KeptClass::kDerived) line.bytes = 0;
    const bool is_state = kind == KeptClass::kState;
    Bytes& bytes = bytes_[graph_.region(region).owner];
    add_bytes(is_state ? bytes.state : bytes.iteration, line.bytes);
    report_.kept.push_back(std::move(line));
  }

  const Graph& graph_;
  const KeptValues& kept_;
  GradientReport& report_;
  std::map<NodeId, Bytes> bytes_;  // of a control node's regions
};

}  // namespace

const char* to_string(KeptClass kind) {
  switch (kind) {
    case KeptClass::kCaptured:
      return "captured";
    case KeptClass::kDerived:
      return "derived";
    case KeptClass::kRow:
      return "row";
    case KeptClass::kPushed:
      return "pushed";
    case KeptClass::kState:
      break;
  }
  return "state";
}

GradientReport make_gradient_report(const Graph& graph, const KeptValues& kept,
                                    const Activity& activity, const std::vector<ValueId>& wrt,
                                    const std::string& suffix) {
  GradientReport report;
  for (const ValueId id : wrt) {
    const ValueInfo& info = graph.value(id);
    report.gradients.push_back(
        {info.name, info.name + suffix, info.origin == ValueOrigin::kConstant});
  }
  Reporter reporter(graph, kept, report);
  for (uint32_t r = 1; r < graph.num_regions(); ++r) reporter.add_region(RegionId(r));
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kWhile || !activity.is_active(node)) continue;
    reporter.add_loop(NodeId(n));
  }
  return report;
}

Status with_saving_advice(Status status, const Graph& gradient,
                          const std::map<std::string, Dims>& inputs) {
  if (status.code() != StatusCode::kResourceExhausted) return status;
  const std::string path = without_iterations(status.path());
  const Sizes sizes = sizes_of(gradient, inputs);
  std::map<std::string, NodeId> loops;
  for (uint32_t n = 0; n < gradient.num_nodes(); ++n) {
    const Node& node = gradient.node(NodeId(n));
    if (node.kind == NodeKind::kWhile) loops[gradient.path(NodeId(n))] = NodeId(n);
  }
  std::string text;
  for (const auto& [loop, id] : loops) {  // one around another stands before it
    const std::optional<Keeping> keeping = keeping_of(loop, loops);
    if (!keeping || !keeping->concerns(path)) continue;
    const auto bytes = kept_bytes(gradient, LoopView(gradient, id), keeping->way_back, sizes);
    // The outermost one, or the innermost of which more is known.
    if (!text.empty() && !bytes.has_value()) continue;
    text = "the way back keeps " + kept_text(bytes) + " of each " + keeping->of +
           ": keep less with " + keeping->advice;
  }
  if (!text.empty()) status.append_message(text);
  return status;
}

}  // namespace eddy
