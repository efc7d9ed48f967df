#include "graph/proof/region_order.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/base/check.h"
#include "graph/proof/byte_history.h"

namespace eddy {

uint32_t RegionOrder::dense(uint32_t stream) {
  const uint32_t number = dense_.of(stream);
  if (number == lanes_.size()) lanes_.emplace_back();
  return number;
}

uint32_t RegionOrder::add_node(const Program::Step& step, uint32_t id, Touched touched) {
  return add_node({step, id, std::move(touched)});
}
uint32_t RegionOrder::add_node(Node added) {
  const uint32_t node = num_nodes();
  Lane& lane = lanes_[dense(added.step.stream)];
  if (lane.first == kNone) lane.first = node;
  lane.last = node;
  nodes_.push_back(std::move(added));
  return node;
}

void RegionOrder::begin_list() {
  listed_.clear();
  num_listed_nodes_ = 0;
}
void RegionOrder::list_node() {
  const uint32_t node = num_listed_nodes_++;
  EDDY_CHECK(node < nodes_.size()) << "more nodes are listed than were added";
  listed_.push_back({Program::Op::kLaunch, dense(nodes_[node].step.stream), node});
}
void RegionOrder::list_record(uint32_t stream, uint32_t event) {
  listed_.push_back({Program::Op::kRecord, dense(stream), event});
}
void RegionOrder::list_wait(uint32_t stream, uint32_t event) {
  listed_.push_back({Program::Op::kWait, dense(stream), event});
}

void RegionOrder::require(uint32_t before, uint32_t after, Reason reason) {
  if (before == after || before == kNone) return;
  EDDY_DCHECK(before < nodes_.size() && after < nodes_.size()) << before << " before " << after;
  required_.push_back({before, after});
  reasons_.push_back(reason);
}

void RegionOrder::require_bytes(uint32_t loop) {
  const auto turns = [&](uint32_t name) {
    return program_.memory[name].offsets_bytes.size() == 2 && program_.memory[name].loop == loop;
  };
  const auto any_turns = [&](const Node& node) {
    return std::ranges::any_of(node.touched.reads, turns) ||
           std::ranges::any_of(node.touched.writes, turns);
  };
  require_bytes(loop, 0);
  if (loop != kNone && std::ranges::any_of(nodes_, any_turns)) require_bytes(loop, 1);
}

// The first iteration is an even one, or an odd one.
void RegionOrder::require_bytes(uint32_t loop, uint32_t parity) {
  std::map<uint32_t, ByteHistory> arenas;
  const auto for_each_place = [&](uint32_t name, uint32_t iteration, auto visit) {
    const Program::Memory& memory = program_.memory[name];
    const bool is_known =
        memory.offsets_bytes.size() == 2 && memory.loop == loop && iteration != kAnyIteration;
    for (uint32_t i = 0; i < memory.offsets_bytes.size(); ++i) {
      if (is_known && i != ((iteration + parity) & 1)) continue;
      const uint64_t offset = memory.offsets_bytes[i];
      visit(arenas[memory.arena], offset, offset + memory.size_bytes);
    }
  };
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    const auto require_after = [&](uint32_t name) {
      return [this, node, name](uint32_t earlier) {
        require(earlier, node, {ProgramViolation::Kind::kUnorderedBytes, name});
      };
    };
    const Node& each = nodes_[node];
    const ByteAccess access = {node, each.step.stream};
    for (const uint32_t name : each.touched.reads) {
      for_each_place(name, each.reads_in, [&](ByteHistory& bytes, uint64_t begin, uint64_t end) {
        bytes.read(begin, end, access, require_after(name));
      });
    }
    for (const uint32_t name : each.touched.writes) {
      for_each_place(name, each.writes_in, [&](ByteHistory& bytes, uint64_t begin, uint64_t end) {
        bytes.write(begin, end, access, require_after(name));
      });
    }
  }
}

void RegionOrder::require_streams() {
  struct Use {
    uint32_t owner = kNone;  // the last that had it for itself
    uint32_t user = kNone;   // the last that stood on it since
  };
  std::vector<Use> uses;  // by dense stream
  const auto use_of = [&](uint32_t stream) -> Use& {
    const uint32_t number = dense(stream);
    if (number >= uses.size()) uses.resize(lanes_.size());
    return uses[number];
  };
  const Reason reason{ProgramViolation::Kind::kSharedStream, kNone};
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    const Program::Step& step = nodes_[node].step;
    // The begin and the end of a block are no work.
    if (!is_frame(step.op)) {
      Use& own = use_of(step.stream);
      require(own.owner, node, reason);
      own.user = node;
    }
    for (const uint32_t stream : nodes_[node].touched.streams) {
      Use& use = use_of(stream);
      require(use.owner, node, reason);
      require(use.user, node, reason);
      use = {node, kNone};
    }
  }
}

RegionOrder::Reason RegionOrder::reason_of(uint32_t before, uint32_t after) const {
  for (size_t i = 0; i < required_.size(); ++i) {
    if (required_[i].before == before && required_[i].after == after) return reasons_[i];
  }
  return {};
}

void RegionOrder::prove(uint32_t region, const std::function<bool(ProgramViolation)>& found) const {
  for (const Violation& violation : prove_order(num_nodes(), listed_, required_).violations) {
    if (violation.kind != Violation::Kind::kUnordered) {
      const bool goes_on = found(
          {ProgramViolation::Kind::kMalformed, region, kNone, kNone, kNone, violation.to_string()});
      if (!goes_on) return;
      continue;
    }
    const Reason reason = reason_of(violation.first, violation.second);
    const bool goes_on = found({reason.kind,
                                region,
                                nodes_[violation.first].id,
                                nodes_[violation.second].id,
                                reason.name,
                                {}});
    if (!goes_on) return;
  }
}

}  // namespace eddy
