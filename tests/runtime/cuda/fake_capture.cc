// Stream capture of a fake GPU. What is issued to a capturing stream becomes nodes of its graph; a
// stream that waits for a captured event joins the capture. These fail and spoil the capture:
// waiting for the stream, querying it or its events, words, allocations, waits for events from
// outside, and ending it on another stream than it began on or before all streams have been joined.
// The end of a spoilt capture frees the graph that was captured into, also where that is the
// caller's, or a body that its conditional node goes on to own; the driver does so.
// What synchronizes the whole context spoils every capture in it, in any mode: that call itself,
// the unloading of a module, the end of a memory pool, a library's handles (spoil_captures). While
// a capture in global mode is open, every call that is not issued to a stream and comes from a
// thread without relaxed mode of its own is refused and spoils it.
#include <algorithm>

#include "runtime/coroutine/scheduler.h"
#include "tests/runtime/cuda/fake_cuda.h"

namespace eddy::testing {
namespace {

constexpr CuResult kOk = CuResult::kSuccess;

}  // namespace

CuResult FakeCuda::spoil(Capture& capture, CuResult result) {
  capture.is_spoilt = true;
  return result;
}

bool FakeCuda::spoil_captures_of(int device) {
  bool has_spoilt = false;
  for (auto& [handle, stream] : streams_) {
    if (stream->device != device || stream->capture == nullptr) continue;
    stream->capture->is_spoilt = true;
    has_spoilt = true;
  }
  return has_spoilt;
}

void FakeCuda::spoil_captures() {
  std::lock_guard lock(mutex_);
  if (Scheduler::current_or_null() != nullptr) violation("a library on a scheduler's thread waits");
  if (current_device() < 0) violation("a library without a current context");
  spoil_captures_of(current_device());
}

bool FakeCuda::is_capturing(CuStream stream) const {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  return found != streams_.end() && found->second->capture != nullptr;
}

bool FakeCuda::spoils_global_capture(const std::string& call) {
  static const std::set<std::string> kFine = {"stream_wait_event",
                                              "stream_write_value32",
                                              "stream_wait_value32",
                                              "event_record",
                                              "copy",
                                              "fill",
                                              "launch_kernel",
                                              "launch_kernel_ex",
                                              "graph_launch",
                                              "stream_is_capturing",
                                              "stream_begin_capture",
                                              "stream_end_capture",
                                              "stream_capture_info"};
  if (kFine.count(call) != 0) return false;
  {
    std::lock_guard lock(modes_mutex_);
    const auto mode = modes_.find(std::this_thread::get_id());
    if (mode != modes_.end() && mode->second == CuCaptureMode::kRelaxed) return false;
  }
  bool has_spoilt = false;
  for (auto& [handle, stream] : streams_) {
    if (stream->capture == nullptr || !stream->capture->is_global) continue;
    stream->capture->is_spoilt = true;
    has_spoilt = true;
  }
  return has_spoilt;
}

CuResult FakeCuda::begin_capture(CuStream handle, CuGraph graph, std::vector<CuGraphNode> after,
                                 CuCaptureMode mode) {
  const auto found = streams_.find(handle);
  if (found == streams_.end()) return CuResult::kInvalidHandle;
  if (found->second->capture != nullptr || !graphs_.has(graph)) return CuResult::kInvalidValue;
  const bool are_of_it = std::all_of(after.begin(), after.end(), [&](CuGraphNode node) {
    return graphs_.is_node_of(node, graph);
  });
  if (!are_of_it) return CuResult::kInvalidValue;
  found->second->capture = std::make_shared<Capture>();
  found->second->capture->graph = graph;
  found->second->capture->origin = handle;
  found->second->capture->is_global = mode == CuCaptureMode::kGlobal;
  found->second->last = std::move(after);
  return kOk;
}

CuResult FakeCuda::ask_capture(CuStream handle, CuCaptureStatus* status) const {
  const auto found = streams_.find(handle);
  if (found == streams_.end()) return CuResult::kInvalidHandle;
  const std::shared_ptr<Capture>& capture = found->second->capture;
  *status = capture == nullptr   ? CuCaptureStatus::kNone
            : capture->is_spoilt ? CuCaptureStatus::kInvalidated
                                 : CuCaptureStatus::kActive;
  return kOk;
}

// What the stream is behind; `edges` is null where all of them are plain.
std::optional<CuResult> FakeCuda::ask_capture_end(CuStream handle, CuCaptureStatus* status,
                                                  uint64_t* id, CuGraph* graph,
                                                  const CuGraphNode** last,
                                                  const CuGraphEdgeData*& edges, size_t* num_last) {
  const CuResult result = ask_capture(handle, status);
  if (result != kOk || *status != CuCaptureStatus::kActive) return result;
  const Stream& asked = *streams_.at(handle);
  *id = 1;
  *graph = asked.capture->graph;
  *last = asked.last.data();
  *num_last = asked.last.size();
  edges_.clear();
  for (CuGraphNode node : asked.last) {
    const unsigned char port = triggering_nodes_.count(node) != 0 ? 1 : 0;
    edges_.push_back({.from_port = port, .type = port});
  }
  const bool are_plain =
      std::ranges::all_of(edges_, [](const CuGraphEdgeData& edge) { return edge.from_port == 0; });
  edges = are_plain ? nullptr : edges_.data();
  return std::nullopt;
}

CuResult FakeCuda::end_capture(CuStream handle, CuGraph* graph) {
  const auto found = streams_.find(handle);
  if (found == streams_.end()) return CuResult::kInvalidHandle;
  const std::shared_ptr<Capture> capture = found->second->capture;
  if (capture == nullptr) return CuResult::kInvalidValue;
  if (capture->origin != handle) return spoil(*capture, CuResult::kCaptureUnmatched);
  const bool are_joined =
      capture->is_spoilt || graphs_.are_all_before(capture->nodes, found->second->last);
  for (auto& [other, stream] : streams_) {
    if (stream->capture != capture) continue;
    stream->capture = nullptr;
    stream->last.clear();
  }
  capture->has_ended = true;
  const CuResult result = capture->is_spoilt ? CuResult::kCaptureInvalidated
                          : !are_joined      ? CuResult::kCaptureUnjoined
                          : is_call_failing_ ? CuResult::kUnknown
                                             : kOk;
  *graph = result == kOk ? capture->graph : nullptr;
  if (result != kOk) graphs_.free_spoilt(capture->graph);
  num_spoilt_ += result != kOk ? 1 : 0;
  return result;
}

CuResult FakeCuda::destroy_graph(CuGraph graph) {
  std::string problem;
  const CuResult result = graphs_.destroy(graph, problem);
  if (!problem.empty()) violation(problem);
  return result;
}

CuResult FakeCuda::capture(Stream& stream, Op op) {
  Capture& into = *stream.capture;
  if (into.is_spoilt) return CuResult::kCaptureInvalidated;
  FakeNode node;
  bool is_triggering = false;
  switch (op.kind) {
    case OpKind::kKernel:
      node.type = CuGraphNodeType::kKernel;
      is_triggering = triggering_kernels_.count(op.kernel.name) != 0;
      node.launch = std::move(op.kernel);
      if (node.launch.is_programmatic && !stream.last.empty() && graphs_.are_kernels(stream.last)) {
        ++num_programmatic_;
        node.is_early = early_kernels_.count(node.launch.name) != 0;
      }
      break;
    case OpKind::kCopy:
      node.type = CuGraphNodeType::kMemcpy;
      break;
    case OpKind::kFill:
      node.type = CuGraphNodeType::kMemset;
      break;
    default:
      return spoil(into, CuResult::kCaptureUnsupported);
  }
  node.to = op.to;
  node.from = op.from;
  node.bytes = op.bytes;
  node.value = op.value;
  const CuGraphNode made = graphs_.append(into.graph, stream.last, std::move(node));
  into.nodes.push_back(made);
  if (is_triggering) triggering_nodes_.insert(made);
  stream.last = {made};
  return kOk;
}

// The stream waits for an event with a captured latest record.
CuResult FakeCuda::join_capture(Stream& stream, const Event& event) {
  if (event.capture->has_ended) return CuResult::kCapturedEvent;
  if (event.capture->is_spoilt) return CuResult::kCaptureInvalidated;
  if (stream.capture != nullptr && stream.capture != event.capture) {
    spoil(*stream.capture, CuResult::kCaptureMerge);
    return spoil(*event.capture, CuResult::kCaptureMerge);
  }
  stream.capture = event.capture;
  for (CuGraphNode node : event.last) {
    const bool is_known =
        std::find(stream.last.begin(), stream.last.end(), node) != stream.last.end();
    if (!is_known) stream.last.push_back(node);
  }
  return kOk;
}

}  // namespace eddy::testing
