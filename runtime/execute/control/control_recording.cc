#include "runtime/execute/control/control_recording.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "graph/ir/aliases.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/region_tree.h"
#include "graph/loops/device_loops.h"
#include "graph/loops/unrolling.h"
#include "runtime/execute/control/recorded_scalars.h"
#include "runtime/execute/executable.h"

namespace eddy {
namespace {

constexpr size_t kMostWords = 1024;  // of host memory
constexpr size_t kElementBytes = 8;  // of the largest type
// Of a node that has its memory and addresses, and is enqueued nowhere.
constexpr uint32_t kNoStream = UINT32_MAX;

}  // namespace

ControlRecording::ControlRecording(RunState& state, NodeId loop, GraphCapture& capture,
                                   bool unrolls)
    : state_(state),
      top_(loop),
      memory_(state.executable().memory(state.executable().control_verdict(loop).device)),
      capture_(capture),
      unrolls_(unrolls),
      uses_(count_uses(state.graph())) {}

Result<std::unique_ptr<ControlLaunch>> ControlRecording::make(RunState& state, NodeId loop,
                                                              GraphCapture& capture,
                                                              BufferRef words, bool unrolls) {
  if (unrolls) {
    const std::string why_not = why_nothing_unrolled(state.graph(), loop);
    if (!why_not.empty()) return unsupported(why_not);
  }
  std::unique_ptr<ControlRecording> made(new ControlRecording(state, loop, capture, unrolls));
  made->words_ = std::move(words);
  Status status = capture.make_streams(made->num_streams());
  if (status.is_ok()) status = capture.begin();
  if (status.is_ok()) status = made->record();
  made->put_back();
  if (status.is_ok() && unrolls && made->most_iterations_ == 1) {
    status = unsupported(made->why_not_unrolled_);
  }
  if (status.is_ok()) {
    made->notice_ = capture.notice();
    Result<std::unique_ptr<CapturedGraph>> recording = capture.finish();
    if (recording.is_ok()) {
      made->graph_ = std::move(*recording);
      return std::unique_ptr<ControlLaunch>(std::move(made));
    }
    status = recording.take_status();
  }
  capture.abandon();
  return status;
}

// As many as the widest of its blocks has.
uint32_t ControlRecording::num_streams() const {
  const std::vector<Program::Block>& blocks = state_.executable().plan().program.blocks;
  const RegionTree regions(graph());
  size_t most = 1;
  for (uint32_t block = 0; block < blocks.size(); ++block) {
    if (!regions.is_inside(RegionId(block), top_)) continue;
    most = std::max(most, blocks[block].streams.size());
  }
  return static_cast<uint32_t>(most);
}

// ---------------------------------------------------------------- memory

size_t ControlRecording::bytes_of(ValueId value) const {
  const TensorType& type = graph().value(value).type.tensor;
  const Result<size_t> size_bytes = tensor_size_bytes(type.element, type.dims.span());
  return size_bytes.is_ok() ? *size_bytes : 0;
}

Result<void*> ControlRecording::device_memory(size_t size_bytes) {
  EDDY_ASSIGN_OR_RETURN(BufferRef buffer, memory_.allocate(size_bytes));
  kept_.push_back(buffer);
  return buffer.data();
}

Result<void*> ControlRecording::home(ValueId value, size_t size_bytes) {
  const auto known = homes_.find(value.index());
  if (known != homes_.end()) return known->second.data();
  EDDY_ASSIGN_OR_RETURN(BufferRef buffer, memory_.allocate(size_bytes));
  return (homes_[value.index()] = std::move(buffer)).data();
}

Result<int64_t*> ControlRecording::host_words(size_t count) {
  if (!words_) {
    EDDY_ASSIGN_OR_RETURN(words_, state_.allocator().allocate(kMostWords * sizeof(int64_t)));
  }
  // Those of one that was given up say what that did.
  if (num_words_ == 0) std::memset(words_.data(), 0, kMostWords * sizeof(int64_t));
  if (num_words_ + count > kMostWords) return resource_exhausted("too many loops in one");
  num_words_ += count;
  return static_cast<int64_t*>(words_.data()) + (num_words_ - count);
}

void ControlRecording::point(ValueId value, void* data) {
  Slot& slot = state_.slot(value);
  slot.buffer.reset();
  slot.view.data = data;
  pointed_.push_back(value);
}

// The host's way of the same loop finds its still values and their nodes as they were.
void ControlRecording::put_back() {
  for (ValueId value : pointed_) state_.put_back(value);
  for (ExecNode* exec : bound_) exec->bind();
  pointed_.clear();
  bound_.clear();
}

Result<const void*> ControlRecording::decision_address(ValueId value) {
  const ValueId root = resolve_forwarded(graph(), value);
  if (const Node* copy = copy_to_host_or_null(graph(), root); copy != nullptr) {
    // What comes from outside may be gone there, and is on the host.
    const bool is_made_here = RegionTree(graph()).is_inside(copy->region, top_);
    const ValueId read = is_made_here ? copy->inputs[0] : root;
    return static_cast<const void*>(state_.slot(read).view.data);
  }
  if (const auto kept = kept_decisions_.find(root.index()); kept != kept_decisions_.end()) {
    return static_cast<const void*>(kept->second);
  }
  EDDY_ASSIGN_OR_RETURN(int64_t* const word, host_words(1));
  const TensorView& view = state_.slot(root).view;
  std::memcpy(word, view.data, std::min(view.size_bytes(), sizeof(int64_t)));
  return static_cast<const void*>(word);
}

// ---------------------------------------------------------------- recording

Status ControlRecording::record() {
  EDDY_RETURN_IF_ERROR(capture_.stream(0).status());
  const Node& node = graph().node(top_);
  if (node.kind == NodeKind::kCaseOf) return record_top_case(node);
  if (!may_stop_itself()) {
    EDDY_ASSIGN_OR_RETURN(void* const asked, device_memory(sizeof(uint64_t)));
    asked_ns_ = static_cast<uint64_t*>(asked);
  }
  EDDY_RETURN_IF_ERROR(make_rows());
  EDDY_RETURN_IF_ERROR(record_loop(top_));
  EDDY_RETURN_IF_ERROR(copy_rows_out(loops_.front().words));
  // What the outside sees, and what owns it.
  const LoopView loop(graph(), top_);
  for (size_t k = 0; k < loop.num_forwarded(); ++k) {
    const ValueId output = loop.outputs()[k];
    if (uses_[output.index()] == 0) continue;
    const ValueId root = resolve_forwarded(graph(), loop.forwarded()[k]);
    const ValueInfo& info = graph().value(root);
    if (info.origin == ValueOrigin::kConstant ||
        !RegionTree(graph()).is_inside(info.region, top_)) {
      outputs_.push_back(
          {&state_.slot(output), &state_.slot_for(loop.forwarded()[k], output), {}, {}});
      continue;
    }
    const Slot& slot = state_.slot(root);
    BufferRef owner;
    for (const auto* memory : {&homes_, &made_}) {
      for (const auto& [value, buffer] : *memory) {
        if (buffer.data() == slot.view.data) owner = buffer;
      }
    }
    outputs_.push_back({&state_.slot(output), nullptr, owner, slot.view.data});
  }
  return Status::ok();
}

Status ControlRecording::record_top_case(const Node& node) {
  EDDY_RETURN_IF_ERROR(record_case(top_));
  for (const ValueId output : node.outputs) {
    const auto at = homes_.find(output.index());
    if (at == homes_.end()) continue;
    outputs_.push_back({&state_.slot(output), nullptr, at->second, at->second.data()});
  }
  return Status::ok();
}

Result<ControlRecording::Loop*> ControlRecording::make_words(NodeId id) {
  EDDY_ASSIGN_OR_RETURN(void* const on_device, device_memory(2 * sizeof(int64_t)));
  EDDY_ASSIGN_OR_RETURN(int64_t* const on_host, host_words(3));
  Loop loop;
  loop.id = id;
  loop.words.counter = static_cast<int64_t*>(on_device);
  loop.words.limit = loop.words.counter + 1;
  loop.words.stop = state_.stop_word();
  loop.words.progress = on_host;
  loop.words.asked_ns = asked_ns_;
  on_host[1] = 1;  // nothing of it runs before it is launched
  loop.limit_word = on_host + 2;
  return &loops_.emplace_back(loop);
}

Status ControlRecording::record_loop(NodeId id) {
  const Node& node = graph().node(id);
  EDDY_ASSIGN_OR_RETURN(Loop* const loop, make_words(id));
  EDDY_RETURN_IF_ERROR(enter_loop(*loop));
  EDDY_RETURN_IF_ERROR(capture_.start_counter(loop->words));
  Addresses first;
  EDDY_RETURN_IF_ERROR(record_region(LoopView(graph(), node).before_id(), &first));
  const bool is_filled = capture_.least_launches() > 1 && !state_.executable().locates_faults();
  const bool unrolls = (unrolls_ || is_filled) && why_not_unrolled(graph(), id).empty();
  EDDY_RETURN_IF_ERROR(record_rounds(node, loop->words, first, unrolls));
  return leave_loop(node);
}

// The limit goes to the device, initial values to the homes of the parameters.
Status ControlRecording::enter_loop(const Loop& loop) {
  const LoopView view(graph(), loop.id);
  std::vector<MemoryCopy> copies = {{loop.words.limit, loop.limit_word, sizeof(int64_t)}};
  for (size_t k = 0; k < view.num_carried(); ++k) {
    const ValueId parameter = view.carried()[k];
    if (is_carried_idly(view, k, uses_)) continue;
    if (state_.executable().value_device(parameter) == 0) {
      // A decision: the device keeps it. What comes from the host is read at each launch.
      EDDY_ASSIGN_OR_RETURN(void* const kept, device_memory(sizeof(uint8_t)));
      kept_decisions_[parameter.index()] = kept;
      const ValueId from = resolve_forwarded(graph(), view.initial()[k]);
      const bool is_given = graph().value(from).origin == ValueOrigin::kConstant ||
                            !RegionTree(graph()).is_inside(graph().value(from).region, top_);
      if (is_given) {
        EDDY_ASSIGN_OR_RETURN(int64_t* const word, host_words(1));
        carried_in_.push_back({&state_.slot(from), reinterpret_cast<uint8_t*>(word)});
        copies.push_back({kept, word, sizeof(uint8_t)});
      } else {
        EDDY_ASSIGN_OR_RETURN(const void* const address, decision_address(from));
        copies.push_back({kept, address, sizeof(uint8_t)});
      }
      continue;
    }
    const size_t size_bytes = bytes_of(parameter);
    EDDY_ASSIGN_OR_RETURN(void* const to, home(parameter, size_bytes));
    const Slot& from = state_.slot_for(view.initial()[k], parameter);
    if (loop.id == top_) {
      entries_.push_back({&from, to});
    } else {
      copies.push_back({to, from.view.data, size_bytes});
    }
  }
  EDDY_RETURN_IF_ERROR(copy_all(std::move(copies)));
  point_to_homes(view);
  return Status::ok();
}

// Of an inner loop: its outputs are where it leaves its values.
Status ControlRecording::leave_loop(const Node& node) {
  const LoopView loop(graph(), node);
  for (size_t k = 0; k < loop.num_forwarded(); ++k) {
    const ValueId output = loop.outputs()[k];
    if (uses_[output.index()] == 0) continue;
    point(output, state_.slot_for(loop.forwarded()[k], output).view.data);
  }
  return Status::ok();
}

Status ControlRecording::record_case(NodeId id) {
  const CaseView view(graph(), id);
  const Node& node = view.node();
  EDDY_ASSIGN_OR_RETURN(int64_t* const failure, host_words(2));
  CaseChoice choice;
  const ElementType element = graph().value(view.selector()).type.tensor.element;
  choice.type = element == ElementType::kBool    ? CaseChoice::Type::kBool
                : element == ElementType::kInt32 ? CaseChoice::Type::kInt32
                                                 : CaseChoice::Type::kInt64;
  EDDY_ASSIGN_OR_RETURN(choice.selector, decision_address(view.selector()));
  const auto num_regions = static_cast<int32_t>(node.regions.size());
  const bool has_pass_through = view.has_pass_through();
  choice.num_choices = num_regions;
  choice.fallback = node.default_region >= 0 ? node.default_region
                    : has_pass_through       ? num_regions
                                             : CaseChoice::kFail;
  choice.stop = state_.stop_word();
  choice.failure = failure;
  cases_.push_back({id, failure});
  const auto num_branches = static_cast<uint32_t>(num_regions + (has_pass_through ? 1 : 0));
  EDDY_RETURN_IF_ERROR(capture_.begin_case(choice, num_branches));
  for (uint32_t branch = 0; branch < num_branches; ++branch) {
    EDDY_RETURN_IF_ERROR(capture_.begin_branch());
    const bool is_region = branch < node.regions.size();
    if (is_region) EDDY_RETURN_IF_ERROR(record_region(node.regions[branch], nullptr));
    std::vector<MemoryCopy> copies;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId output = node.outputs[k];
      if (uses_[output.index()] == 0) continue;
      const ValueId from = is_region ? view.results(branch)[k] : view.pass_through()[k];
      const size_t size_bytes = bytes_of(output);
      EDDY_ASSIGN_OR_RETURN(void* const to, home(output, size_bytes));
      copies.push_back({to, state_.slot_for(from, output).view.data, size_bytes});
    }
    EDDY_RETURN_IF_ERROR(copy_all(std::move(copies)));
  }
  EDDY_RETURN_IF_ERROR(capture_.end_case());
  for (const ValueId output : node.outputs) {
    const auto at = homes_.find(output.index());
    if (at != homes_.end()) point(output, at->second.data());
  }
  return Status::ok();
}

// The block's steps, each stream a capture stream. A decision joins all; behind it they begin anew,
// and events that were recorded before it have passed. Steps of another launch come at its end.
// long: one kind of step after the other.
Status ControlRecording::record_region(RegionId id, Addresses* log) {
  const Program& program = state_.executable().plan().program;
  const Program::Block& block = program.blocks[id.index()];
  const auto num_streams = static_cast<uint32_t>(block.streams.size());
  std::vector<bool> is_open(num_streams, false);
  std::map<uint32_t, uint32_t> events;  // by operand
  std::optional<uint32_t> start;        // behind the last decision
  const RecordedScalars scalars(state_, capture_, uses_, id);
  std::vector<NodeId> at_end;
  const auto join = [&]() -> Status {
    for (uint32_t stream = 1; stream < num_streams; ++stream) {
      if (!is_open[stream]) continue;
      is_open[stream] = false;
      EDDY_ASSIGN_OR_RETURN(const uint32_t event, capture_.record(stream));
      EDDY_RETURN_IF_ERROR(capture_.wait(0, event));
    }
    return Status::ok();
  };
  // Before the first decision a stream begins with its first wait.
  const auto open = [&](uint32_t stream) -> Status {
    if (stream == 0 || is_open[stream]) return Status::ok();
    is_open[stream] = true;
    return start ? capture_.wait(stream, *start) : Status::ok();
  };
  for (const Program::Step& step : block.steps) {
    const uint32_t stream = local_stream(block, step.stream);
    const bool is_passed = step.op == Program::Op::kWait && !events.contains(step.operand);
    const bool is_idle =
        step.op == Program::Op::kRecord && start && stream != 0 && !is_open[stream];
    if (is_passed || is_idle) continue;
    switch (step.op) {
      case Program::Op::kRecord: {
        EDDY_ASSIGN_OR_RETURN(events[step.operand], capture_.record(stream));
        break;
      }
      case Program::Op::kWait:
        EDDY_RETURN_IF_ERROR(open(stream));
        EDDY_RETURN_IF_ERROR(capture_.wait(stream, events[step.operand]));
        break;
      case Program::Op::kLaunch:
        if (scalars.expression_or_null(node_of(program, step)) != nullptr) {
          at_end.push_back(node_of(program, step));
          break;
        }
        EDDY_RETURN_IF_ERROR(open(stream));
        EDDY_RETURN_IF_ERROR(record_exec(node_of(program, step), stream, scalars, log));
        break;
      case Program::Op::kLoop:
      case Program::Op::kCase: {
        const NodeId node = node_of(program, step);
        EDDY_RETURN_IF_ERROR(join());
        EDDY_RETURN_IF_ERROR(step.op == Program::Op::kLoop ? record_loop(node) : record_case(node));
        events.clear();
        if (num_streams == 1) break;
        EDDY_ASSIGN_OR_RETURN(start, capture_.record(0));
        break;
      }
      default:
        break;
    }
  }
  // Those of a pipelined loop's `after` end without a wait of the block.
  if (is_pipelined(program, block)) EDDY_RETURN_IF_ERROR(join());
  for (const NodeId node : at_end) EDDY_RETURN_IF_ERROR(record_steps(node, scalars, log));
  return Status::ok();
}

// A node that is a part of the launch at the end of its region.
Status ControlRecording::record_steps(NodeId id, const RecordedScalars& scalars, Addresses* log) {
  EDDY_RETURN_IF_ERROR(record_exec(id, kNoStream, scalars, log));
  const ExecNode& exec = state_.exec_node(id);
  const Expression& expression = *scalars.expression_or_null(id);
  const TensorView& result = exec.outputs()[0];
  const auto count = static_cast<size_t>(result.count());
  std::vector<const void*> inputs;
  std::vector<bool> are_single;
  for (const TensorView& input : exec.inputs) {
    inputs.push_back(input.data);
    are_single.push_back(input.count() == 1);
  }
  std::vector<void*> made(expression.steps.size());
  for (size_t k = 0; k < expression.num_results(); ++k) {
    made[expression.result(k) - expression.num_inputs] = exec.outputs()[k].data;
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i] != nullptr) continue;
    void*& step = step_results_[{id.index(), i}];
    if (step == nullptr) {
      EDDY_ASSIGN_OR_RETURN(step, device_memory(count * kElementBytes));
    }
    made[i] = step;
  }
  if (count == 1) return scalars.steps().compute(expression, inputs, made);
  return scalars.steps().compute_all(expression, inputs, {count, are_single}, made);
}

Status ControlRecording::record_exec(NodeId id, uint32_t stream, const RecordedScalars& scalars,
                                     Addresses* log) {
  const Node& node = graph().node(id);
  ExecNode& exec = state_.exec_node(id);
  // What the host would read is copied elsewhere: decisions and rows.
  const bool is_hosts = copy_to_host_or_null(graph(), node.outputs[0]) != nullptr ||
                        row_copy_or_null(graph(), node.outputs[0]) != nullptr;
  if (is_hosts) return Status::ok();
  if (is_iteration(graph(), node.inputs.empty() ? node.outputs[0] : node.inputs[0])) {
    const NodeId owner = graph().region(graph().value(node.inputs[0]).region).owner;
    for (const Loop& loop : loops_) {
      if (loop.id == owner) point(node.outputs[0], loop.words.counter);
    }
    return Status::ok();
  }
  if (node.op->is_view) {
    pointed_.push_back(node.outputs[0]);
    return run_view(&exec) ? Status::ok() : internal_error("a view fails");
  }
  // Memory of the recording's own for each value: the plan's blocks are shared by where carried
  // values stand, and here they stand in homes.
  for (const ExecNode::Output& output : exec.out) {
    const ValueId value = node.outputs[static_cast<size_t>(&output - exec.out.data())];
    if (const ValueId parameter = scalars.written_home(value); !parameter.is_none()) {
      point(value, homes_.at(parameter.index()).data());
      continue;
    }
    BufferRef& memory = made_[value.index()];
    if (!memory) {
      const size_t size_bytes = std::max<size_t>(output.slot->view.size_bytes(), 1);
      EDDY_ASSIGN_OR_RETURN(memory, memory_.allocate(size_bytes));
    }
    point(value, memory.data());
  }
  exec.bind();
  bound_.push_back(&exec);
  if (log != nullptr) {
    for (const TensorView& output : exec.outputs()) log->push_back(output.data);
  }
  if (stream == kNoStream) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(void* const native, capture_.stream(stream));
  if (exec.enqueue(native, true)) return Status::ok();
  Status error = std::move(exec.error);
  exec.forget_error();
  return error.is_ok() ? internal_error("a kernel refuses to be recorded") : error;
}

}  // namespace eddy
