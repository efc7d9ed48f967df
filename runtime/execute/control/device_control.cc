#include "runtime/execute/control/device_control.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <utility>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/region_tree.h"
#include "graph/loops/device_loops.h"
#include "runtime/device/no_waiting.h"
#include "runtime/execute/control/control_recording.h"
#include "runtime/execute/control/persistent_launch.h"
#include "runtime/execute/executable.h"
#include "runtime/execute/resolve_program.h"

namespace eddy {
namespace {

// Loops that devices drive right now. The process's, because its devices are: sessions know nothing
// of each other, and the GPU that crashes is of all of them.
std::atomic<int>& num_driven() {
  static std::atomic<int> count{0};
  return count;
}

}  // namespace

DeviceControl::DeviceControl(RunState& state, NodeId loop)
    : state_(state),
      id_(loop),
      persistent_or_null_(state.executable().persistent_loop_or_null(loop)),
      choice_or_null_(state.executable().loop_choice_or_null(loop)) {
  find_outside();
  find_depth();
  find_rows();
  reads_copies_ = is_told_what_is_copied();
}

DeviceControl::~DeviceControl() { give_place_back(); }

bool DeviceControl::take_place() {
  int count = num_driven().load(std::memory_order_relaxed);
  while (count + depth_ <= kMostAtOnce) {
    if (num_driven().compare_exchange_weak(count, count + depth_, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void DeviceControl::find_depth() {
  const Graph& graph = state_.graph();
  depth_ = graph.node(id_).kind == NodeKind::kWhile ? 1 : 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).kind != NodeKind::kWhile) continue;
    int depth = 1;
    NodeId at(n);
    while (!at.is_none() && at != id_) {
      at = graph.region(graph.node(at).region).owner;
      depth += !at.is_none() && graph.node(at).kind == NodeKind::kWhile ? 1 : 0;
    }
    if (at == id_) depth_ = std::max(depth_, depth);
  }
}

void DeviceControl::find_rows() {
  const Graph& graph = state_.graph();
  if (graph.node(id_).kind != NodeKind::kWhile) return;
  for (const ValueId row : LoopView(graph, id_).rows()) {
    const TensorType& type = graph.value(row).type.tensor;
    const Result<size_t> size_bytes = tensor_size_bytes(type.element, type.dims.span());
    has_rows_ = true;
    row_bytes_ += size_bytes.is_ok() ? static_cast<int64_t>(*size_bytes) : kMostRowBytes;
  }
}

// What the loop reads from outside, and the parameters outside that may hold a block which a node
// inside writes.
void DeviceControl::find_outside() {
  const Graph& graph = state_.graph();
  const RegionTree tree(graph);
  std::set<const Slot*> found;
  const auto read = [&](ValueId value) {
    if (value.is_none()) return;
    const ValueId root = resolve_forwarded(graph, value);
    const ValueInfo& info = graph.value(root);
    if (info.origin == ValueOrigin::kConstant || tree.is_inside(info.region, id_)) return;
    found.insert(&state_.slot(root));
  };
  if (graph.node(id_).kind == NodeKind::kCaseOf) {
    for (ValueId input : graph.node(id_).inputs) read(input);
  }
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    if (!tree.is_inside(RegionId(r), id_)) continue;
    const Region& region = graph.region(RegionId(r));
    for (ValueId result : region.results) read(result);
    for (NodeId id : region.nodes) {
      const Node& node = graph.node(id);
      // A limit is read, not where it is.
      const bool is_loop = node.kind == NodeKind::kWhile;
      for (size_t i = is_loop ? 1 : 0; i < node.inputs.size(); ++i) read(node.inputs[i]);
    }
  }
  outside_.assign(found.begin(), found.end());
}

// A limit, or a decision carried in, that the host reads behind a copy of the device's.
bool DeviceControl::is_told_what_is_copied() const {
  const Graph& graph = state_.graph();
  const RegionTree tree(graph);
  const auto is_copied = [&](ValueId value) {
    if (value.is_none()) return false;
    const ValueId root = resolve_forwarded(graph, value);
    return copy_to_host_or_null(graph, root) != nullptr &&
           !tree.is_inside(graph.value(root).region, id_);
  };
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    const bool is_ours = NodeId(n) == id_ || tree.is_inside(node.region, id_);
    if (node.kind != NodeKind::kWhile || !is_ours) continue;
    if (std::ranges::any_of(node.inputs, is_copied)) return true;
  }
  return false;
}

void DeviceControl::read_outside(std::vector<const void*>& addresses) const {
  addresses.clear();
  for (const Slot* slot : outside_) addresses.push_back(slot->view.data);
}

LoopChoice::Advice DeviceControl::advice() const {
  const std::optional<Way> only = state_.executable().only_loop_way();
  if (only && (*only != Way::kKernel || persistent_or_null_ != nullptr)) return {*only, false};
  if (choice_or_null_ != nullptr) return choice_or_null_->next();
  return {persistent_or_null_ != nullptr ? Way::kKernel : Way::kRecording, false};
}

bool DeviceControl::must_wait() const {
  if (reads_copies_ || (choice_or_null_ != nullptr && !choice_or_null_->is_settled())) return true;
  // Those before it on its stream have their places until they have ended.
  if (!has_place_ && num_driven().load(std::memory_order_relaxed) + depth_ > kMostAtOnce) {
    return true;
  }
  const auto is_running = [](const auto& launch) { return !launch->innermost_running().is_none(); };
  return std::ranges::any_of(kernels_.all, is_running) ||
         std::ranges::any_of(recordings_.all, is_running) ||
         std::ranges::any_of(unrolled_.all, is_running);
}

int32_t DeviceControl::choose(void* device_control) {
  DeviceControl& self = *static_cast<DeviceControl*>(device_control);
  if (!std::exchange(self.is_asked_again_, false) && self.must_wait()) {
    self.is_asked_again_ = true;
    return kAskWhenIdle;
  }
  self.give_up_what_was_tried();
  self.way_ = self.take_advice();
  if (NoWaiting::has_refused_here()) {
    self.is_asked_again_ = true;
    return kAskAside;
  }
  if (self.way_ == Way::kHost || self.way_ == Way::kKernel) self.give_place_back();
  if (self.way_ == Way::kHost) return ResolvedProgram::kByHost;
  EDDY_DCHECK(self.current_ != nullptr) << "a device drives a loop by no launch";
  self.why_by_host_.clear();
  const bool is_awaited = self.is_try_ || self.has_rows_;
  return is_awaited ? ResolvedProgram::kTryDevice : ResolvedProgram::kByDevice;
}

// A way that is ruled out when it is to be tried is not asked for again.
DeviceControl::Way DeviceControl::take_advice() {
  LoopChoice::Advice advice = this->advice();
  Way way = ready_way(advice.way);
  while (advice.is_try && way != advice.way) {
    const Way refused = advice.way;
    advice = this->advice();
    if (advice.way == refused) break;
    way = ready_way(advice.way);
  }
  is_try_ = advice.is_try && way == advice.way;
  if (is_try_) began_ = Clock::now();
  if (advice.way == Way::kHost) why_by_host_ = "it is being measured";
  return way;
}

DeviceControl::Way DeviceControl::ready_way(Way wish) {
  if (wish == Way::kHost || is_ready(wish)) return wish;
  if (wish == Way::kUnrolled && is_ready(Way::kRecording)) return Way::kRecording;
  const bool has_other = wish != Way::kKernel && persistent_or_null_ != nullptr;
  return has_other && is_ready(Way::kKernel) ? Way::kKernel : Way::kHost;
}

DeviceControl::Launches& DeviceControl::launches_of(Way way) {
  EDDY_DCHECK(way != Way::kHost) << "the host launches nothing";
  return way == Way::kKernel ? kernels_ : way == Way::kUnrolled ? unrolled_ : recordings_;
}

std::string DeviceControl::how_by_device() const {
  if (way_ == Way::kHost) return "";
  std::lock_guard lock(current_mutex_);
  const std::string how = current_ != nullptr ? current_->text() : "";
  return how.empty() ? unrolled_.why_off : how;
}

int32_t DeviceControl::has_ended(void* device_control) {
  DeviceControl& self = *static_cast<DeviceControl*>(device_control);
  self.report();
  if (self.has_rows_) self.state_.loop(self.id_).leave_rows();
  return 0;
}

bool DeviceControl::left(void* device_control) {
  static_cast<DeviceControl*>(device_control)->report();
  return true;
}

void DeviceControl::report() {
  if (!is_try_) return;
  is_try_ = false;
  const std::chrono::nanoseconds elapsed = Clock::now() - began_;
  EDDY_DCHECK(choice_or_null_ != nullptr) << "a try that nobody has advised";
  choice_or_null_->report(way_, elapsed.count(), state_.loop(id_).iteration());
}

bool DeviceControl::is_ready(Way way) {
  const std::string& why_off = launches_of(way).why_off;
  why_by_host_ = why_off;
  if (!why_off.empty() || !rows_fit()) return false;
  if (way != Way::kKernel && !find_place()) return false;
  // What the loop has left the last time goes now, unless it is held elsewhere.
  for (ValueId output : state_.graph().node(id_).outputs) state_.slot(output).buffer.reset();
  addresses_.clear();
  if (way != Way::kKernel) read_outside(addresses_);
  if (!find_launch(way)) return false;
  Status room = has_rows_ ? state_.loop(id_).make_room(limit_) : Status::ok();
  if (!room.is_ok()) why_by_host_ = "its rows: " + room.message();
  return room.is_ok();
}

bool DeviceControl::rows_fit() {
  if (!has_rows_) return true;
  if (state_.loop(id_).streams_rows()) {
    why_by_host_ = "its rows are taken as they come";
    return false;
  }
  const Result<int64_t> limit = state_.trip_limit(id_);
  if (!limit.is_ok()) return false;  // the host says so
  limit_ = std::max<int64_t>(*limit, 0);
  if (row_bytes_ == 0 || limit_ <= kMostRowBytes / row_bytes_) return true;
  why_by_host_ = "the rows of " + std::to_string(limit_) + " iterations take more than " +
                 std::to_string(kMostRowBytes >> 20) + " MiB";
  return false;
}

bool DeviceControl::find_launch(Way way) {
  Launches& launches = launches_of(way);
  ++num_turns_;
  take(nullptr);
  if (find_known(launches)) return true;
  if (NoWaiting::refuses()) {
    --num_turns_;  // it is asked again
    return false;
  }
  // A kernel serves any addresses: one that could be given up would have been found.
  if (launches.all.size() == kMostLaunches && (way == Way::kKernel || !give_one_up(launches))) {
    why_by_host_ = "the memory of its earlier results is in use";
    return false;
  }
  EDDY_DCHECK(launches.all.size() < kMostLaunches) << launches.all.size() << " launches";
  Result<std::unique_ptr<ControlLaunch>> made = make_launch(way);
  if (way != Way::kKernel) words_ = {};  // they are the new one's, or of none
  if (!made.is_ok()) {
    const char* const what = way == Way::kKernel     ? "its kernel cannot be launched: "
                             : way == Way::kUnrolled ? "it could not be unrolled: "
                                                     : "it could not be recorded: ";
    launches.why_off = what + made.status().message();
    why_by_host_ = launches.why_off;
    if (choice_or_null_ != nullptr) choice_or_null_->rule_out(way, made.status().message());
    return false;
  }
  (*made)->addresses = addresses_;
  take(launches.all.emplace_back(std::move(*made)).get());
  return true;
}

bool DeviceControl::find_known(Launches& launches) {
  for (const auto& launch : launches.all) {
    if (launch->addresses != addresses_ || !launch->is_free()) continue;
    if (!launch->has_room(limit_)) continue;
    take(launch.get());
    return true;
  }
  return false;
}

void DeviceControl::take(ControlLaunch* launch) {
  std::lock_guard lock(current_mutex_);
  current_ = launch;
  if (launch != nullptr) launch->last_taken = num_turns_;
}

// Of those that are idle, the one taken longest ago.
bool DeviceControl::give_one_up(Launches& launches) {
  const uint64_t least_age = choice_or_null_ != nullptr ? kStaleAfter : 0;
  auto oldest = launches.all.end();
  for (auto at = launches.all.begin(); at != launches.all.end(); ++at) {
    const ControlLaunch& launch = **at;
    const bool is_idle = launch.is_free() && launch.innermost_running().is_none();
    if (!is_idle || num_turns_ - launch.last_taken < least_age) continue;
    if (oldest == launches.all.end() || launch.last_taken < (*oldest)->last_taken) oldest = at;
  }
  if (oldest == launches.all.end() || (*oldest)->check() < 0) return false;
  words_ = (*oldest)->words();
  launches.all.erase(oldest);
  return true;
}

// As soon as what it has left is not held any more.
void DeviceControl::give_up_what_was_tried() {
  if (choice_or_null_ == nullptr) return;
  if (!choice_or_null_->is_settled()) has_given_up_tried_ = false;
  if (has_given_up_tried_ || !choice_or_null_->is_settled()) return;
  if (NoWaiting::refuses()) return;
  const Way way = choice_or_null_->next().way;
  std::lock_guard lock(current_mutex_);
  has_given_up_tried_ = true;
  for (const Way other : {Way::kKernel, Way::kRecording, Way::kUnrolled}) {
    if (other == way) continue;
    std::vector<std::unique_ptr<ControlLaunch>>& all = launches_of(other).all;
    std::erase_if(all, [&](const std::unique_ptr<ControlLaunch>& launch) {
      const bool is_idle = launch->is_free() && launch->innermost_running().is_none();
      if (!is_idle || launch->check() < 0) return false;
      words_of_tried_.push_back(launch->words());
      if (current_ == launch.get()) current_ = nullptr;
      return true;
    });
    has_given_up_tried_ &= all.empty();
  }
}

Result<std::unique_ptr<ControlLaunch>> DeviceControl::make_launch(Way way) {
  EDDY_DCHECK(way != Way::kKernel || persistent_or_null_ != nullptr) << "the loop is no kernel";
  if (way == Way::kKernel) return PersistentLaunch::make(state_, id_, *persistent_or_null_);
  const uint32_t device = state_.executable().control_verdict(id_).device;
  return ControlRecording::make(state_, id_, *state_.captures()[device], words_,
                                way == Way::kUnrolled);
}

bool DeviceControl::find_place() {
  if (!has_place_) has_place_ = take_place();
  if (!has_place_ && state_.give_places_back(stream_)) has_place_ = take_place();
  if (!has_place_) {
    why_by_host_ = "devices drive as many loops at once as they may, " +
                   std::to_string(kMostAtOnce) + " over the process, inner ones counted";
  }
  return has_place_;
}

bool DeviceControl::launch(void* device_control) {
  DeviceControl& self = *static_cast<DeviceControl*>(device_control);
  EDDY_DCHECK(self.current_node_ != nullptr) << "the loop is on no strand";
  self.current_node_->store(self.id_.index(), std::memory_order_relaxed);
  Status status = self.current_->write_words();
  if (status.is_ok()) status = self.current_->launch(self.stream_);
  if (!status.is_ok()) self.current_->forget();  // it has not begun
  const NoWaiting::Pause pause;                  // it has begun, once
  if (status.is_ok()) status = self.current_->leave();
  ++self.num_launches_;
  return status.is_ok() || self.state_.fail(self.id_, std::move(status));
}

int32_t DeviceControl::finish(void* device_control) {
  DeviceControl& self = *static_cast<DeviceControl*>(device_control);
  int32_t result = 0;
  for (const Launches* launches : {&self.recordings_, &self.unrolled_}) {
    for (const auto& launch : launches->all) {
      if (launch->check() < 0) result = -1;
    }
  }
  return result;
}

NodeId DeviceControl::innermost_running() const {
  std::lock_guard lock(current_mutex_);
  return current_ != nullptr ? current_->innermost_running() : NodeId();
}

void DeviceControl::forget() {
  is_asked_again_ = false;
  if (current_ != nullptr) current_->forget();
}

bool DeviceControl::give_place_back() {
  if (has_place_) {
    const int before = num_driven().fetch_sub(depth_, std::memory_order_relaxed);
    EDDY_DCHECK(before >= depth_) << "of " << before << " places " << depth_ << " are given back";
  }
  return std::exchange(has_place_, false);
}

}  // namespace eddy
