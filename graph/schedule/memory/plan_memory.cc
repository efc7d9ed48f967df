#include "graph/schedule/memory/plan_memory.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "graph/analysis/antichain.h"
#include "graph/analysis/transitive_reduction.h"
#include "graph/base/bit_matrix.h"
#include "graph/base/check.h"
#include "graph/ir/region_tree.h"
#include "graph/schedule/memory/layout.h"
#include "graph/schedule/memory/layout_in_order.h"
#include "graph/schedule/memory/lifetimes.h"
#include "graph/schedule/memory/node_order.h"
#include "graph/schedule/memory/storages.h"

namespace eddy {
namespace {

// Lives looked at for the heaviest moment, about.
constexpr size_t kMomentBudget = 16'000'000;

uint64_t aligned(uint64_t size_bytes) {
  return (size_bytes + kBlockAlignmentBytes - 1) / kBlockAlignmentBytes * kBlockAlignmentBytes;
}

// One block to place: a storage, or one of the two of a storage that alternates.
struct Block {
  uint32_t storage;
  uint64_t size_bytes;  // aligned
};

class MemoryPlanner {
 public:
  MemoryPlanner(const Graph& graph, const Schedule& plan, const MemoryOptions& options)
      : graph_(graph),
        options_(options),
        tree_(graph),
        order_(graph, plan),
        plan_(plan),
        lifetimes_(tree_, order_),
        found_(find_storages(graph, order_, plan.devices.empty())) {}

  MemoryPlan run() {
    measure_lifetimes();
    if (options_.allow_in_place) join_in_place();
    for (auto& [device, storages] : storages_by_device()) plan_arena(device, storages);
    return {std::move(found_.values), std::move(arenas_)};
  }

 private:
  Storage& storage(uint32_t s) { return found_.all[s]; }
  // The storage whose block s has, after joining.
  uint32_t leader(uint32_t s) const {
    while (leader_[s] != s) s = leader_[s] = leader_[leader_[s]];
    return s;
  }
  uint64_t size_bytes(uint32_t s) const {
    return aligned(found_.all[s].size_bytes) * num_blocks(s);
  }
  size_t num_blocks(uint32_t s) const { return found_.all[s].loop.is_none() ? 1 : 2; }

  void measure_lifetimes() {
    leader_.resize(found_.all.size());
    std::iota(leader_.begin(), leader_.end(), 0);
    for (const Storage& storage : found_.all) {
      life_.push_back(lifetimes_.lifetime(storage.home, storage.accesses));
    }
  }

  // In issue order, so that chains of nodes join from their beginning; inner regions first, so that
  // what they make has not been joined to what comes behind.
  void join_in_place() {
    for (size_t r = plan_.regions.size(); r-- > 0;) {
      for (const Program::Step& step : plan_.regions[r].steps) {
        if (step.op != Program::Op::kLaunch) continue;
        if (graph_.node(NodeId(step.operand)).kind == NodeKind::kExec)
          join_in_place(NodeId(step.operand));
      }
    }
  }

  void join_in_place(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op->in_place_inputs == 0) return;
    const ValueId output = node.outputs[0];
    if (found_.of_value[output.index()] == Storages::kNone) return;
    const uint32_t written = leader(found_.of_value[output.index()]);
    // A node that wrote its block earlier would overwrite what stands there until then.
    if (!storage(written).begins_with_its_writer) return;
    for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), 64); ++i) {
      if (node.inputs[i].is_none() || (node.op->in_place_inputs >> i & 1) == 0) continue;
      const uint32_t only = found_.of_value[node.inputs[i].index()];
      if (only == Storages::kNone) continue;
      if (may_overwrite(id, node, i, leader(only), written)) return join(leader(only), written);
    }
  }

  // The node may write `written` where input i's storage `read` stands.
  bool may_overwrite(NodeId id, const Node& node, size_t i, uint32_t read, uint32_t written) {
    if (read == written || storage(read).is_carried || storage(read).home != node.region ||
        storage(read).size_bytes != storage(written).size_bytes) {
      return false;
    }
    const TensorType& from = graph_.value(node.inputs[i]).type.tensor;
    const TensorType& to = graph_.value(node.outputs[0]).type.tensor;
    if (!from.is_ranked || !(from.dims == to.dims) ||
        element_size_bytes(from.element) != element_size_bytes(to.element)) {
      return false;
    }
    for (size_t other = 0; other < node.inputs.size(); ++other) {
      const bool is_allowed = other < 64 && (node.op->in_place_inputs >> other & 1) != 0;
      if (is_allowed && same_memory(node.inputs[other], node.inputs[i])) continue;
      if (may_be(node.inputs[other], read)) return false;
    }
    for (size_t k = 1; k < node.outputs.size(); ++k) {
      if (may_be(node.outputs[k], read)) return false;
    }
    const Lifetime& life = life_[read];
    return !life.lasts_to_end &&
           std::all_of(life.touches.begin(), life.touches.end(),
                       [&](NodeId touch) { return touch == id || order_.precedes(touch, id); });
  }
  // Both stand for one storage, element for element.
  bool same_memory(ValueId a, ValueId b) const {
    if (a.is_none()) return false;
    const uint32_t storage = found_.of_value[a.index()];
    return a == b ||
           (storage != Storages::kNone && !b.is_none() && storage == found_.of_value[b.index()] &&
            graph_.value(a).type == graph_.value(b).type);
  }
  bool may_be(ValueId value, uint32_t s) const {
    if (value.is_none()) return false;
    const uint32_t other = found_.of_value[value.index()];
    return other != Storages::kNone && leader(other) == s;
  }

  // The shorter list of accesses goes to the longer one, so that long chains stay cheap.
  void join(uint32_t first, uint32_t second) {
    EDDY_CHECK(leader_[first] == first && leader_[second] == second && first != second)
        << "storages " << first << " and " << second << " are joined already";
    leader_[first] = second;
    Storage& into = storage(second);
    Storage& from = storage(first);
    if (into.accesses.size() < from.accesses.size()) std::swap(into.accesses, from.accesses);
    into.begins_with_its_writer = false;
    into.accesses.insert(into.accesses.end(), from.accesses.begin(), from.accesses.end());
    from.accesses = {};
    const RegionId home = tree_.common(into.home, from.home);
    life_[second] = home == into.home && home == from.home
                        ? lifetimes_.united(std::move(life_[first]), life_[second])
                        : lifetimes_.lifetime(home, into.accesses);
    into.home = home;
  }

  // Of a node that makes one of its names; "" where loops and cases make all.
  std::string device_of(const Storage& storage) const {
    for (const ValueId name : storage.names) {
      const ValueInfo& info = graph_.value(name);
      if (info.origin != ValueOrigin::kNodeOutput) continue;
      const Node& maker = graph_.node(info.producer);
      if (maker.kind == NodeKind::kExec) return maker.device;
    }
    return "";
  }

  std::map<std::string, std::vector<uint32_t>> storages_by_device() {
    std::map<std::string, std::vector<uint32_t>> devices;
    for (uint32_t s = 0; s < found_.all.size(); ++s) {
      if (leader_[s] != s || storage(s).names.empty()) continue;
      const ValueId value = storage(s).names[0];
      const std::string device = plan_.devices.empty()
                                     ? device_of(storage(s))
                                     : plan_.devices[plan_.value_devices[value.index()]];
      devices[device].push_back(s);
    }
    return devices;
  }

  // The largest blocks are compared each with each other, the others stand above them.
  void plan_arena(const std::string& device, const std::vector<uint32_t>& storages) {
    std::vector<Block> blocks;
    for (const uint32_t s : storages) {
      for (size_t copy = 0; copy < num_blocks(s); ++copy) {
        blocks.push_back({s, aligned(storage(s).size_bytes)});
      }
    }
    std::vector<Block> small;
    if (blocks.size() > options_.max_compared) {
      std::ranges::stable_sort(blocks, std::ranges::greater(), &Block::size_bytes);
      small.assign(blocks.begin() + options_.max_compared, blocks.end());
      blocks.resize(options_.max_compared);
    }
    const uint64_t bound = lower_bound(Graph::kRoot, storages);
    Layout layout = lay_out_blocks(blocks, bound);
    const Layout above = lay_out_small_blocks(small);
    for (const uint64_t offset : above.offsets_bytes) {
      layout.offsets_bytes.push_back(layout.peak_bytes + offset);
    }
    layout.peak_bytes += above.peak_bytes;
    blocks.insert(blocks.end(), small.begin(), small.end());
    EDDY_DCHECK(bound <= layout.peak_bytes)
        << "an arena of " << layout.peak_bytes << " bytes is below its bound, " << bound;
    const auto arena = static_cast<uint32_t>(arenas_.size());
    arenas_.push_back({device, layout.peak_bytes, bound, static_cast<uint32_t>(blocks.size())});
    std::map<uint32_t, std::vector<uint64_t>> offsets;
    for (size_t b = 0; b < blocks.size(); ++b) {
      offsets[blocks[b].storage].push_back(layout.offsets_bytes[b]);
    }
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const uint32_t its = found_.of_value[v];
      const auto place = its == Storages::kNone ? offsets.end() : offsets.find(leader(its));
      if (place == offsets.end()) continue;
      ValueMemory& memory = found_.values[v];
      memory.arena = arena;
      memory.offsets_bytes = place->second;
      if (found_.turns[v] == Turn::kFirst) {
        memory.offsets_bytes.resize(1);
        continue;
      }
      EDDY_CHECK(memory.offsets_bytes.size() == 2) << "value " << v << " alternates in one place";
      memory.loop = found_.all[its].loop;
      if (found_.turns[v] == Turn::kNext) std::ranges::reverse(memory.offsets_bytes);
    }
  }

  // The number of each block's home among those that there are.
  std::vector<uint32_t> number_homes(const std::vector<Block>& blocks) const {
    std::vector<uint32_t> numbers(graph_.num_regions(), UINT32_MAX);
    std::vector<uint32_t> homes;
    uint32_t count = 0;
    for (const Block& block : blocks) {
      uint32_t& number = numbers[life_[block.storage].home.index()];
      if (number == UINT32_MAX) number = count++;
      homes.push_back(number);
    }
    return homes;
  }

  // By these numbers: whether what is at home there never meets.
  BitMatrix exclusions(const std::vector<Block>& blocks, const std::vector<uint32_t>& homes) const {
    std::vector<RegionId> regions;
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (homes[b] == regions.size()) regions.push_back(life_[blocks[b].storage].home);
    }
    const auto count = static_cast<uint32_t>(regions.size());
    BitMatrix excluded(count, count);
    for (uint32_t a = 0; a < count; ++a) {
      for (uint32_t b = 0; b < a; ++b) {
        if (!lifetimes_.exclude(regions[a], regions[b])) continue;
        excluded.set(a, b);
        excluded.set(b, a);
      }
    }
    return excluded;
  }

  Layout lay_out_blocks(const std::vector<Block>& blocks, uint64_t bound) {
    const auto count = static_cast<uint32_t>(blocks.size());
    BitMatrix conflicts(count, count);
    const std::vector<uint32_t> homes = number_homes(blocks);
    const BitMatrix excluded = exclusions(blocks, homes);
    for (uint32_t a = 0; a < count; ++a) {
      for (uint32_t b = 0; b < a; ++b) {
        // Of two branches these are half of all pairs.
        if (excluded.test(homes[a], homes[b])) continue;
        const bool is_conflict =
            blocks[a].storage == blocks[b].storage ||
            lifetimes_.overlap(life_[blocks[a].storage], life_[blocks[b].storage]);
        if (!is_conflict) continue;
        conflicts.set(a, b);
        conflicts.set(b, a);
      }
    }
    std::vector<uint64_t> sizes;
    std::vector<uint32_t> starts;
    std::vector<uint32_t> ends;
    for (const Block& block : blocks) {
      sizes.push_back(block.size_bytes);
      const auto [start, end] = rough_span(life_[block.storage]);
      starts.push_back(start);
      ends.push_back(end);
    }
    return lay_out({sizes, starts, ends, conflicts, bound});
  }

  Layout lay_out_small_blocks(const std::vector<Block>& small) {
    std::vector<OrderedBlock> blocks;
    for (const Block& block : small) {
      const Lifetime& life = life_[block.storage];
      const auto [start, end] = rough_span(life);
      blocks.push_back({block.size_bytes, &life, start, end});
    }
    return lay_out_in_order(blocks, lifetimes_);
  }

  // The span of places in the order of issue, of the home region only, so a guide and no more.
  std::pair<uint32_t, uint32_t> rough_span(const Lifetime& life) const {
    uint32_t start = UINT32_MAX;
    uint32_t end = 0;
    for (const NodeId node : life.writes) start = std::min(start, order_.issue_position(node));
    for (const NodeId node : life.touches) end = std::max(end, order_.issue_position(node));
    if (life.lasts_to_end) {
      end = static_cast<uint32_t>(graph_.region(life.home).nodes.size());
    }
    return {start, std::max(start, end)};
  }

  // What must be held at once while `region` runs, of the given storages: those at home there,
  // and for each loop or branch the most that its regions hold.
  uint64_t lower_bound(RegionId region, const std::vector<uint32_t>& storages) {
    std::vector<std::vector<uint32_t>> by_home(graph_.num_regions());
    for (const uint32_t s : storages) by_home[storage(s).home.index()].push_back(s);
    std::vector<uint64_t> bounds(graph_.num_regions(), 0);
    // Inner regions have larger ids.
    for (auto r = static_cast<uint32_t>(graph_.num_regions()); r-- > region.index();) {
      std::vector<Lifetime> lives;
      std::vector<uint64_t> weights;
      for (const uint32_t s : by_home[r]) {
        lives.push_back(life_[s]);
        weights.push_back(size_bytes(s));
      }
      for (const NodeId node : graph_.region(RegionId(r)).nodes) {
        uint64_t inside = 0;
        for (const RegionId inner : graph_.node(node).regions) {
          inside = std::max(inside, bounds[inner.index()]);
        }
        if (inside == 0) continue;
        lives.push_back(lifetimes_.of_node(RegionId(r), node));
        weights.push_back(inside);
      }
      bounds[r] = heaviest(lives, weights);
    }
    return bounds[region.index()];
  }

  uint64_t heaviest(const std::vector<Lifetime>& lives, const std::vector<uint64_t>& weights) {
    EDDY_DCHECK(lives.size() == weights.size()) << "one weight for each life";
    if (are_on_one_stream(lives)) return heaviest_on_one_stream(lives, weights);
    if (lives.size() <= kExactBound) return heaviest_set(lives, weights);
    return heaviest_moment(lives, weights);
  }

  bool are_on_one_stream(const std::vector<Lifetime>& lives) const {
    if (lives.empty() || lives[0].writes.empty()) return false;
    const uint32_t stream = order_.stream(lives[0].writes[0]);
    const auto is_there = [&](const std::vector<NodeId>& nodes) {
      return nodes.size() == 1 && order_.stream(nodes[0]) == stream;
    };
    return std::ranges::all_of(lives, [&](const Lifetime& life) {
      return is_there(life.writes) && (life.lasts_to_end || is_there(life.touches));
    });
  }

  uint64_t heaviest_on_one_stream(const std::vector<Lifetime>& lives,
                                  const std::vector<uint64_t>& weights) const {
    std::vector<WeightedInterval> intervals;
    for (size_t i = 0; i < lives.size(); ++i) {
      const Lifetime& life = lives[i];
      const uint32_t last = life.lasts_to_end ? UINT32_MAX : order_.position(life.touches[0]);
      intervals.push_back({order_.position(life.writes[0]), last, weights[i]});
    }
    return heaviest_weight_of_intervals(intervals);
  }

  uint64_t heaviest_set(const std::vector<Lifetime>& lives, const std::vector<uint64_t>& weights) {
    const auto count = static_cast<uint32_t>(lives.size());
    if (count <= kFewNodes) return heaviest_of_few(lives, weights);
    // One that ends before another begins before it, too.
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return rough_span(lives[i]).first; });
    BitMatrix later(count, count);
    std::vector<uint64_t> ordered;
    for (uint32_t a = 0; a < count; ++a) {
      ordered.push_back(weights[order[a]]);
      for (uint32_t b = a + 1; b < count; ++b) {
        if (lifetimes_.ends_before(lives[order[a]], lives[order[b]])) later.set(a, b);
      }
    }
    return heaviest_antichain(transitive_reduction(later), ordered).weight;
  }

  uint64_t heaviest_of_few(const std::vector<Lifetime>& lives,
                           const std::vector<uint64_t>& weights) const {
    std::array<uint32_t, kFewNodes> comparable = {};
    for (size_t a = 0; a < lives.size(); ++a) {
      for (size_t b = 0; b < lives.size(); ++b) {
        if (a == b || !lifetimes_.ends_before(lives[a], lives[b])) continue;
        comparable[a] |= uint32_t{1} << b;
        comparable[b] |= uint32_t{1} << a;
      }
    }
    return heaviest_weight_of_few(std::span(comparable).first(lives.size()), weights);
  }

  // What is alive when a node writes: written by then, and still to be touched. Of many, at some of
  // the writes.
  uint64_t heaviest_moment(const std::vector<Lifetime>& lives,
                           const std::vector<uint64_t>& weights) {
    const auto is_by = [this](NodeId a, NodeId b) { return a == b || order_.precedes(a, b); };
    uint64_t heaviest = 0;
    const size_t step = std::max<size_t>(1, lives.size() * lives.size() / kMomentBudget);
    for (size_t m = 0; m < lives.size(); m += step) {
      EDDY_DCHECK(!lives[m].writes.empty()) << "life " << m << " is never written";
      const NodeId now = lives[m].writes[0];
      uint64_t weight = 0;
      for (size_t i = 0; i < lives.size(); ++i) {
        const Lifetime& life = lives[i];
        const bool has_begun = std::any_of(life.writes.begin(), life.writes.end(),
                                           [&](NodeId write) { return is_by(write, now); });
        const bool goes_on =
            life.lasts_to_end || std::any_of(life.touches.begin(), life.touches.end(),
                                             [&](NodeId touch) { return is_by(now, touch); });
        if (has_begun && goes_on) weight += weights[i];
      }
      heaviest = std::max(heaviest, weight);
    }
    return heaviest;
  }

  const Graph& graph_;
  const MemoryOptions options_;
  const RegionTree tree_;
  const NodeOrder order_;
  const Schedule& plan_;
  const Lifetimes lifetimes_;
  Storages found_;
  std::vector<Lifetime> life_;            // by storage
  mutable std::vector<uint32_t> leader_;  // by storage; paths are halved as they are walked
  std::vector<MemoryArena> arenas_;
};

}  // namespace

std::string_view reason_text(NoBlock reason) {
  switch (reason) {
    case NoBlock::kHasBlock:
      return "";
    case NoBlock::kConstant:
      return "a constant";
    case NoBlock::kGraphInput:
      return "an input of the caller";
    case NoBlock::kLoopCounter:
      return "a loop's counter";
    case NoBlock::kNotATensor:
      return "a sequence or an optional";
    case NoBlock::kStrings:
      return "made of strings";
    case NoBlock::kChangingShape:
      return "of a shape known only while running";
    case NoBlock::kEmpty:
      return "without elements";
    case NoBlock::kMadeByKernel:
      return "made by an operator that makes its own outputs";
    case NoBlock::kScanRows:
      return "growing while its loop runs";
    case NoBlock::kLeavesGraph:
      return "leaving the graph";
    case NoBlock::kKeptByReader:
      return "maybe kept by a reader";
    case NoBlock::kHandedOn:
      return "handed on by reference";
  }
  return "?";
}

MemoryPlan plan_memory(const Graph& graph, const Schedule& plan, const MemoryOptions& options) {
  return MemoryPlanner(graph, plan, options).run();
}

}  // namespace eddy
