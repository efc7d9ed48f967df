#include "runtime/execute/run_base.h"

#include "graph/base/check.h"
#include "graph/ir/control_view.h"
#include "runtime/device/no_waiting.h"

namespace eddy {

RunBase::RunBase(const Executable& executable, Allocator& allocator)
    : executable_(executable), allocator_(allocator), loops_(graph().num_nodes(), nullptr) {}

std::atomic<uint32_t>& RunBase::current_node(uint32_t strand) {
  EDDY_DCHECK(strand != RunControl::kNoStrand) << "of no strand";
  while (current_nodes_.size() <= strand) current_nodes_.emplace_back(UINT32_MAX);
  return current_nodes_[strand];
}

void RunBase::forget_errors() {
  std::lock_guard lock(mutex_);
  error_ = Status();
  control.error = Status();
}

bool RunBase::fail(NodeId node, Status status) {
  if (NoWaiting::has_refused_here()) return false;  // it will be done again
  std::lock_guard lock(mutex_);
  if (error_.is_ok()) {
    error_ = std::move(status);
    tell_where(error_, node);
  }
  return false;
}

Status RunBase::take_error() {
  std::lock_guard lock(mutex_);
  Status own = std::exchange(error_, Status());
  Status devices = std::exchange(control.error, Status());
  const uint32_t strand = std::exchange(control.failed_strand, RunControl::kNoStrand);
  if (!own.is_ok()) return own;
  if (devices.is_ok()) return internal_error("the run failed, and nothing has said why");
  if (strand < current_nodes_.size()) {
    const uint32_t node = current_node(strand).load(std::memory_order_relaxed);
    tell_where(devices, node == UINT32_MAX ? NodeId() : NodeId(node));
  }
  return devices;
}

Status RunBase::first_error() const {
  std::lock_guard lock(mutex_);
  return error_;
}

Status RunBase::found_at(Status stop) const {
  NodeId found;
  for (const std::atomic<uint32_t>& current : current_nodes_) {
    const uint32_t node = current.load(std::memory_order_relaxed);
    if (node == UINT32_MAX) continue;
    const Region& region = graph().region(graph().node(NodeId(node)).region);
    const bool is_in_loop = !region.owner.is_none();
    if (found.is_none() || is_in_loop) found = NodeId(node);
    if (is_in_loop) break;
  }
  if (!found.is_none()) tell_where(stop, found);
  return stop;
}

void RunBase::forget_nodes() {
  for (std::atomic<uint32_t>& node : current_nodes_) {
    node.store(UINT32_MAX, std::memory_order_relaxed);
  }
}

bool RunBase::fail(Status status) {
  std::lock_guard lock(mutex_);
  if (error_.is_ok()) error_ = std::move(status);
  return false;
}

int64_t RunBase::iteration(NodeId loop, NodeId inner) const {
  const auto tail = tails_.find(inner.index());
  if (tail == tails_.end()) return progress(loop).iteration();
  return tail->second->iteration.load(std::memory_order_relaxed);
}

int64_t RunBase::issued_iteration(NodeId loop, NodeId inner) const {
  const LoopProgress& progress = this->progress(loop);
  const bool is_after = graph().node(inner).region == LoopView(graph(), loop).after_id();
  // A device does not count the iteration that a fault ends; a tail counts by itself.
  const bool is_counted_on =
      is_after && !progress.is_driven_by_device() && !tails_.contains(inner.index());
  return is_counted_on ? progress.begun() : iteration(loop, inner);
}

std::string RunBase::iteration_path(NodeId id) const { return path_of(id, &RunBase::iteration); }

std::string RunBase::ended_path(NodeId id) const { return path_of(id, &RunBase::issued_iteration); }

std::string RunBase::path_of(NodeId id, IterationOf iteration_of) const {
  std::string path = graph().node(id).name;
  NodeId inner = id;
  RegionId at = graph().node(id).region;
  while (!graph().region(at).owner.is_none()) {
    const NodeId owner_id = graph().region(at).owner;
    const Node& owner = graph().node(owner_id);
    const bool is_loop = owner.kind == NodeKind::kWhile;
    path = owner.name +
           (is_loop ? "[" + std::to_string((this->*iteration_of)(owner_id, inner)) + "]"
                    : "/" + graph().region(at).name) +
           "/" + path;
    inner = owner_id;
    at = owner.region;
  }
  return path;
}

namespace {

std::string_view state_text(StrandState state) {
  switch (state) {
    case StrandState::kIdle:
      return "not running";
    case StrandState::kQueued:
      return "waits for a worker";
    case StrandState::kRunning:
      return "running";
    case StrandState::kWaitingForStrand:
      return "waits for another strand";
    case StrandState::kWaitingForDevice:
      return "waits for the device";
    case StrandState::kWaitingForAnswer:
      return "waits for an answer";
  }
  return "?";
}

}  // namespace

// Calls that fall apart into tiles wait for an answer, too, and owe none.
std::vector<NodeId> RunBase::owing_nodes(const StrandRunner& runner) const {
  std::vector<NodeId> nodes;
  for (uint32_t strand = 0; strand < current_nodes_.size(); ++strand) {
    const uint32_t node = current_nodes_[strand].load(std::memory_order_relaxed);
    if (node == UINT32_MAX || !graph().node(NodeId(node)).op->may_wait) continue;
    if (runner.strand_state(strand) == StrandState::kWaitingForAnswer) nodes.emplace_back(node);
  }
  return nodes;
}

std::string RunBase::describe_strands(const StrandRunner& runner) const {
  std::string text;
  for (uint32_t strand = 0; strand < current_nodes_.size(); ++strand) {
    const uint32_t node = current_nodes_[strand].load(std::memory_order_relaxed);
    const StrandState state = runner.strand_state(strand);
    text += "  strand " + std::to_string(strand) + ": " + std::string(state_text(state));
    if (node != UINT32_MAX) {
      const Node& at = graph().node(NodeId(node));
      text += state == StrandState::kRunning ? ", at " : ", last at ";
      text += iteration_path(NodeId(node)) + " (" + at.op->name;
      const std::string_view function = at.attributes.get_string("name", "");
      if (at.op->name == "HostPredicate") text += " '" + std::string(function) + "'";
      text += ")";
    }
    text += "\n";
  }
  return text;
}

}  // namespace eddy
