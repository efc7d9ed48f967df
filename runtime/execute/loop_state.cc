#include "runtime/execute/loop_state.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "graph/base/check.h"
#include "graph/ir/aliases.h"
#include "graph/ir/control_view.h"
#include "graph/ir/node_facts.h"
#include "graph/loops/trip_rule.h"
#include "runtime/execute/executable.h"
#include "runtime/execute/values/string_charge.h"

namespace eddy {
namespace {

constexpr size_t kFirstStackBytes = 256;

}  // namespace

bool ScanStack::has_room(size_t size_bytes) const {
  if (!buffer.is_writable(size_bytes)) {
    if (targets_or_null == nullptr || element == ElementType::kString) return false;
    return std::ranges::any_of(targets_or_null->all, [&](const OutputTarget& target) {
      return target.memory->is_only_in(buffer) && target.memory->fits(size_bytes);
    });
  }
  if (element != ElementType::kString) return true;
  return buffer.get()->num_strings * sizeof(std::string) >= size_bytes;
}

LoopState::LoopState(RunSlots& run, NodeId id) : run_(run), id_(id) {}

void LoopState::connect() {
  EDDY_DCHECK(predicate_ == nullptr && stacks_.empty()) << "a loop is connected twice";
  const Graph& graph = run_.graph();
  const LoopView loop(graph, id_);
  if (!loop.trip_limit().is_none()) limit_slot_ = &run_.slot(loop.trip_limit());
  predicate_ = &run_.slot(loop.predicate());
  const ValueType& type = graph.value(loop.predicate()).type;
  is_predicate_fixed_ = type.tensor.is_static();
  find_settling_slots();
  for (size_t k = 0; k < loop.num_carried(); ++k) {
    const ValueId carried = loop.carried()[k], next = loop.next()[k];
    hand_on_initial(k);
    if (run_.hand_on(carried_, carried, next, Program::Moment::kAdvance, id_)) continue;
    Slot& from = run_.slot_for(next, carried);
    if (is_constant(graph, next) && is_static_pair(graph, carried, next)) {
      carried_.add_unchanging(run_.slot(carried), from);
      continue;
    }
    carried_.add(run_.slot(carried), from, is_region_local(graph, next, loop.after_id()),
                 is_static_pair(graph, carried, next), graph.value(next).type);
  }
  for (size_t k = 0; k < loop.num_forwarded(); ++k) {
    const ValueId output = loop.outputs()[k], from = loop.forwarded()[k];
    if (run_.hand_on(results_, output, from, Program::Moment::kWithin, id_)) continue;
    // The loop's own parameter is dead once the loop has ended.
    const bool is_own = std::ranges::find(loop.carried(), from) != loop.carried().end();
    results_.add(run_.slot(output), run_.slot_for(from, output),
                 is_own || is_region_local(graph, from, loop.before_id()),
                 is_static_pair(graph, output, from), graph.value(from).type);
  }
  for (size_t s = 0; s < loop.rows().size(); ++s) {
    const ValueId row = loop.rows()[s], output = loop.stacked()[s];
    stacks_.push_back({&run_.slot(row),
                       &run_.slot(output),
                       graph.value(row).type,
                       {},
                       {},
                       ElementType::kUndefined,
                       0,
                       nullptr,
                       run_.targets_or_null(output)});
  }
  initial_.finish();
  carried_.finish();
  results_.finish();
}

void LoopState::hand_on_initial(size_t k) {
  const Graph& graph = run_.graph();
  const LoopView loop(graph, id_);
  const ValueId carried = loop.carried()[k], initial = loop.initial()[k];
  if (!run_.hand_on(initial_, carried, initial, Program::Moment::kEnter, id_)) {
    initial_.add(run_.slot(carried), run_.slot_for(initial, carried), false, false,
                 graph.value(initial).type);
    return;
  }
  run_.start_turns(initial_, resolve_views(graph, loop.next()[k]), id_);
}

// Beside other devices a value of the host's may be a copy that is still on its way, so only
// constants are read here.
void LoopState::find_settling_slots() {
  const TripRule rule = find_trip_rule(run_.graph(), id_);
  is_settled_ = rule.is_settled;
  for (const auto& [value, slot] : {std::pair{rule.first, &first_}, {rule.bound, &bound_}}) {
    if (!is_settled_ || value.is_none()) continue;
    is_settled_ = is_constant(run_.graph(), value) || run_.executable().num_devices() == 1;
    *slot = &run_.slot(value);
  }
}

// Once the limit is read and the carried values have their first ones.
int64_t LoopState::settle_trips() const {
  if (!is_settled_) return -1;
  const auto is_one = [](const Slot* slot) {
    return slot->kind == ValueKind::kTensor && slot->view.data != nullptr &&
           slot->view.count() == 1;
  };
  if ((first_ != nullptr && !is_one(first_)) || (bound_ != nullptr && !is_one(bound_))) return -1;
  if (first_ != nullptr && *first_->view.as<uint8_t>() == 0) return 0;
  const int64_t bound = bound_ == nullptr ? INT64_MAX : *bound_->view.as<int64_t>();
  return std::max<int64_t>(std::min(limit_, bound), 0);
}

void LoopState::reset() {
  for (ScanStack& stack : stacks_) {
    stack.buffer.reset();
    stack.sink_or_null = nullptr;
  }
  let_go_of_takings();
}

void LoopState::let_go_of_takings() {
  for (const Taking& taking : takings_) {
    for (const Taking::Pair& pair : taking.pairs) {
      if (!pair.from->is_volatile) pair.to->release(0);  // what was copied is its own
    }
  }
}

bool LoopState::enter(void* loop) {
  LoopState& self = *static_cast<LoopState*>(loop);
  self.begin();
  self.limit_ = INT64_MAX;
  self.settled_trips_ = -1;
  if (self.limit_slot_ != nullptr) {
    const TensorView& limit = self.limit_slot_->view;
    if (self.limit_slot_->kind != ValueKind::kTensor || limit.count() != 1) {
      return self.run_.fail(self.id_, run_failed("the trip limit must be one int64, but has " +
                                                 std::to_string(limit.count()) + " elements"));
    }
    self.limit_ = *limit.as<int64_t>();
  }
  for (ScanStack& stack : self.stacks_) {
    take_back(stack);
    const bool may_leave =
        stack.targets_or_null != nullptr && stack.row_type.tensor.element != ElementType::kString;
    for (size_t t = 0; may_leave && t < stack.targets_or_null->all.size(); ++t) {
      const OutputTarget& target = stack.targets_or_null->all[t];
      target.memory->take_from(*stack.output);
      if (target.give_to(stack.buffer, 1)) break;
    }
    stack.num_rows = 0;
    stack.dims = Dims();
    stack.element = ElementType::kUndefined;
  }
  for (Tail& tail : self.tails_) tail.iteration.store(-1, std::memory_order_relaxed);
  Status status = self.initial_.run(self.run_.allocator());
  if (!status.is_ok()) return self.run_.fail(self.id_, std::move(status));
  self.settled_trips_ = self.settle_trips();
  return true;
}

// What the last time left in the output is stacked over, unless a reference to it is left.
void LoopState::take_back(ScanStack& stack) {
  BufferRef& last = stack.output->buffer;
  if (!stack.buffer && last.is_writable(0)) stack.buffer.swap(last);
}

bool LoopState::streams_rows() const {
  return std::ranges::any_of(stacks_,
                             [](const ScanStack& stack) { return stack.sink_or_null != nullptr; });
}

// Not in a caller's memory, which devices may not reach.
Status LoopState::make_room(int64_t num_rows) {
  for (ScanStack& stack : stacks_) {
    const TensorType& row = stack.row_type.tensor;
    Dims dims;
    dims.push_back(std::max<int64_t>(num_rows, 0));
    for (const int64_t dim : row.dims.span()) dims.push_back(dim);
    EDDY_ASSIGN_OR_RETURN(const size_t size_bytes, tensor_size_bytes(row.element, dims.span()));
    take_back(stack);
    stack.element = row.element;
    stack.dims = row.dims;
    stack.num_rows = 0;
    if (stack.buffer.is_writable(size_bytes) && !is_callers_memory(stack.buffer)) continue;
    stack.buffer.reset();
    EDDY_ASSIGN_OR_RETURN(stack.buffer, run_.allocator().allocate(std::max<size_t>(size_bytes, 1)));
  }
  return Status::ok();
}

void LoopState::leave_rows() {
  for (ScanStack& stack : stacks_) {
    stack.num_rows = iteration();
    finish_stack(stack);
  }
}

std::vector<RowSink* const*> LoopState::sinks(uint32_t index) {
  std::vector<RowSink* const*> sinks;
  if (index != kAllRows) return {&stack(index).sink_or_null};
  for (ScanStack& stack : stacks_) sinks.push_back(&stack.sink_or_null);
  return sinks;
}

int32_t LoopState::slow_test() {
  const bool is_one = predicate_->kind == ValueKind::kTensor && predicate_->view.count() == 1;
  if (is_one) return *predicate_->view.as<uint8_t>() != 0 ? 1 : 0;  // a caller's byte may be any
  run_.fail(id_, run_failed("the predicate must be one bool, but has shape " +
                            to_string(Dims(predicate_->view.shape()))));
  return -1;
}

int32_t LoopState::test(void* loop) {
  LoopState& self = *static_cast<LoopState*>(loop);
  const int64_t count = self.counter_.load(std::memory_order_relaxed);
  if (count >= self.limit_) return 0;
  if (!self.is_predicate_fixed_) [[unlikely]] {
    const int32_t goes_on = self.slow_test();
    if (goes_on > 0) self.begun_.store(count, std::memory_order_relaxed);
    return goes_on;
  }
  if (*self.predicate_->view.as<uint8_t>() == 0) return 0;
  self.begun_.store(count, std::memory_order_relaxed);
  return 1;
}

bool LoopState::advance(void* loop) {
  LoopState& self = *static_cast<LoopState*>(loop);
  if (!self.stacks_.empty() && !self.has_rows_apart_ && !self.push_rows()) return false;
  Status status = self.carried_.run(self.run_.allocator());
  if (!status.is_ok()) [[unlikely]]
    return self.run_.fail(self.id_, std::move(status));
  const int64_t count = self.counter_.load(std::memory_order_relaxed);
  EDDY_DCHECK(count < self.limit_) << "iteration " << count << " is beyond the limit";
  self.counter_.store(count + 1, std::memory_order_relaxed);
  return true;
}

bool LoopState::leave(void* loop) {
  LoopState& self = *static_cast<LoopState*>(loop);
  self.let_go_of_takings();
  Status status;
  for (const ScanStack& stack : self.stacks_) {  // first: results are given away only once
    if (status.is_ok() && stack.num_rows == 0) status = self.make_empty(stack);
  }
  if (status.is_ok()) status = self.results_.run(self.run_.allocator());
  if (!status.is_ok()) return self.run_.fail(self.id_, std::move(status));
  for (ScanStack& stack : self.stacks_) {
    if (stack.num_rows > 0) finish_stack(stack);
  }
  return true;
}

// What has its row already was stacked before another one was refused memory.
bool LoopState::push_rows() {
  const int64_t count = counter_.load(std::memory_order_relaxed);
  for (ScanStack& stack : stacks_) {
    if (stack.num_rows <= count && !push_row_or_fail(stack)) return false;
  }
  return true;
}

bool LoopState::push_row_or_fail(ScanStack& stack) {
  Status status = push_row(stack);
  if (status.is_ok()) return true;
  if (status.code() == StatusCode::kResourceExhausted) {
    status.prepend_message("the scan row of iteration " + std::to_string(stack.num_rows));
  }
  return run_.fail(id_, std::move(status));
}

bool LoopState::push_row_apart(void* row_push) {
  const RowPush& self = *static_cast<const RowPush*>(row_push);
  return self.owner->push_row_or_fail(*self.stack);
}

// The slots by which tails of a pipelined loop read what moves on with the iteration.
void LoopState::make_takings() {
  EDDY_DCHECK(takings_.empty()) << "a loop has its takings";
  const Program& program = run_.executable().plan().program;
  const RegionId after = LoopView(run_.graph(), id_).after_id();
  std::map<uint32_t, std::pair<ValueId, Slot*>> retained;  // by name
  for (const Program::Step& step : program.blocks[after.index()].steps) {
    if (step.op == Program::Op::kRetain) {
      Taking& taking = takings_.emplace_back(Taking{this, {}});
      for (const Program::Alias& alias : program.launches[step.operand].aliases) {
        const ValueId value(alias.from);
        Slot& own = run_.add_slot(value);
        taking.pairs.push_back({&own, &run_.slot(value), value});
        retained[alias.to] = {value, &own};
      }
    }
    if (step.op != Program::Op::kLaunch || retained.empty()) continue;
    const Program::Launch& launch = program.launches[step.operand];
    for (const uint32_t name : launch.reads) {
      const auto own = retained.find(name);
      if (own == retained.end()) continue;
      const auto& [value, own_slot] = own->second;
      run_.read_by(NodeId(launch.node), value, *own_slot);
    }
  }
}

LoopState::RowPush& LoopState::row_apart(size_t index) {
  has_rows_apart_ = true;
  return row_pushes_.emplace_back(RowPush{this, &stack(index)});
}

ScanStack& LoopState::stack(size_t index) {
  const size_t num_carried = LoopView(run_.graph(), id_).num_carried();
  EDDY_CHECK(index >= num_carried && index - num_carried < stacks_.size())
      << "result " << index << " of a loop with " << num_carried << " carried values and "
      << stacks_.size() << " scan outputs is no row";
  return stacks_[index - num_carried];
}

bool LoopState::begin_tail(void* tail) {
  static_cast<Tail*>(tail)->iteration.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool LoopState::take(void* taking) {
  const Taking& self = *static_cast<const Taking*>(taking);
  LoopState& loop = *self.owner;
  for (const Taking::Pair& pair : self.pairs) {
    Status status = pair.to->share(*pair.from, loop.run_.allocator());
    if (!status.is_ok()) return loop.run_.fail(loop.id_, std::move(status));
  }
  return true;
}

namespace {

Status charge(Buffer& strings, size_t more_bytes) {
  if (strings.owner->charge_strings(&strings, strings.charged_bytes + more_bytes)) {
    return Status::ok();
  }
  return resource_exhausted("no memory for stacked strings of " +
                            std::to_string(strings.charged_bytes + more_bytes) +
                            " bytes within the limit");
}

}  // namespace

Status LoopState::push_row(ScanStack& stack) {
  const TensorView& row = stack.row->view;
  if (stack.row->kind != ValueKind::kTensor) {
    return run_failed("a scan row must be a tensor");
  }
  if (stack.num_rows == 0) {
    stack.element = row.element;
    stack.dims = Dims(row.shape());
    if (row.rank >= kMaxRank) {
      return run_failed("a scan row of rank " + std::to_string(row.rank) +
                        " can't be stacked; at most " + std::to_string(kMaxRank - 1));
    }
  } else if (row.element != stack.element || !(stack.dims == Dims(row.shape()))) {
    return run_failed("the scan row of iteration " + std::to_string(stack.num_rows) +
                      " has shape " + to_string(Dims(row.shape())) + ", earlier rows have " +
                      to_string(stack.dims));
  }
  const size_t row_bytes = row.size_bytes();
  const size_t offset_bytes = static_cast<size_t>(stack.num_rows) * row_bytes;
  if (stack.num_rows == 0) give_up_small_block(stack, row_bytes);
  if (!stack.has_room(offset_bytes + row_bytes)) [[unlikely]] {
    EDDY_RETURN_IF_ERROR(grow(stack, row_bytes));
    EDDY_CHECK(stack.has_room(offset_bytes + row_bytes)) << "a stack has grown by too little";
  }
  char* to = static_cast<char*>(stack.buffer.data()) + offset_bytes;
  if (stack.element == ElementType::kString) {
    const std::span<const std::string> strings(row.as<std::string>(),
                                               static_cast<size_t>(row.count()));
    EDDY_RETURN_IF_ERROR(charge(*stack.buffer.get(), heap_bytes(strings)));
    std::copy(strings.begin(), strings.end(), reinterpret_cast<std::string*>(to));
  } else if (row_bytes > 0) {
    std::memcpy(to, row.data, row_bytes);
  }
  ++stack.num_rows;
  if (stack.sink_or_null != nullptr) [[unlikely]]
    stack.sink_or_null->push(row);
  return Status::ok();
}

// What the last time has left, where it is too small for the rows that will come: else it would
// stay beside the block that has room for them.
void LoopState::give_up_small_block(ScanStack& stack, size_t row_bytes) {
  size_t wanted_bytes = 0;
  if (settled_trips_ <= 1 || !stack.buffer || is_callers_memory(stack.buffer) ||
      stack.element == ElementType::kString ||
      __builtin_mul_overflow(static_cast<size_t>(settled_trips_), row_bytes, &wanted_bytes)) {
    return;
  }
  if (!stack.has_room(wanted_bytes)) stack.buffer.reset();
}

// Of plain bytes.
Status LoopState::move_rows(ScanStack& stack, BufferRef to, size_t used_bytes) {
  EDDY_DCHECK(stack.element != ElementType::kString) << "strings are no plain bytes";
  EDDY_DCHECK(used_bytes <= to.capacity_bytes()) << used_bytes << " bytes are moved";
  if (used_bytes > 0) std::memcpy(to.data(), stack.buffer.data(), used_bytes);
  stack.buffer = std::move(to);
  return Status::ok();
}

// Room for at least one row more than there are; keeps the rows stacked so far. Of a loop whose
// trips are settled, room for all that will come: memory that a stop leaves untouched costs
// nothing, while rows that move leave the blocks that they grew from behind. Else, and where there
// is no memory for all, twice as many: a loop may be stopped before.
Status LoopState::grow(ScanStack& stack, size_t row_bytes) {
  if (stack.num_rows > 0 && !stack.buffer) return internal_error("a stack has lost its rows");
  const size_t used_bytes = static_cast<size_t>(stack.num_rows) * row_bytes;
  size_t wanted_bytes = 0;
  int64_t rows = 0;
  const bool fits = !__builtin_mul_overflow(stack.num_rows + 1, 2, &rows);
  if (settled_trips_ > stack.num_rows) {
    rows = std::min(rows, settled_trips_);
    if (stack.element != ElementType::kString &&
        !__builtin_mul_overflow(static_cast<size_t>(settled_trips_), row_bytes, &wanted_bytes)) {
      Result<BufferRef> all = run_.allocator().allocate(wanted_bytes);
      if (all.is_ok()) return move_rows(stack, std::move(*all), used_bytes);
    }
  }
  if (!fits || __builtin_mul_overflow(static_cast<size_t>(rows), row_bytes, &wanted_bytes)) {
    return resource_exhausted("the stacked rows do not fit into memory");
  }
  if (settled_trips_ < 0) wanted_bytes = std::max(wanted_bytes, kFirstStackBytes);
  Allocator& allocator = run_.allocator();
  if (stack.element == ElementType::kString) {
    EDDY_ASSIGN_OR_RETURN(BufferRef larger,
                          allocator.allocate_strings(wanted_bytes / sizeof(std::string)));
    if (used_bytes > 0) {
      EDDY_RETURN_IF_ERROR(charge(*larger.get(), stack.buffer.get()->charged_bytes));
      std::copy_n(static_cast<const std::string*>(stack.buffer.data()),
                  used_bytes / sizeof(std::string), static_cast<std::string*>(larger.data()));
    }
    stack.buffer = std::move(larger);
    return Status::ok();
  }
  EDDY_ASSIGN_OR_RETURN(BufferRef larger, allocator.allocate(wanted_bytes));
  return move_rows(stack, std::move(larger), used_bytes);
}

// No row was made: inferred dimensions, unknown ones 0.
Status LoopState::make_empty(const ScanStack& stack) {
  Dims dims;
  dims.push_back(0);
  for (int64_t dim : stack.row_type.tensor.dims.span()) {
    if (stack.row_type.tensor.is_ranked) dims.push_back(std::max<int64_t>(dim, 0));
  }
  stack.output->set_tensor(stack.row_type.tensor.element, dims.span());
  return stack.output->make_writable(run_.allocator());
}

void LoopState::finish_stack(ScanStack& stack) {
  Dims dims;
  dims.push_back(stack.num_rows);
  for (int64_t dim : stack.dims.span()) dims.push_back(dim);
  stack.output->elements.clear();
  stack.output->set_tensor(stack.element, dims.span());
  stack.output->buffer.swap(stack.buffer);
  stack.output->view.data = stack.output->buffer.data();
}

}  // namespace eddy
