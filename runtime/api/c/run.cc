#include "runtime/api/c/run.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/user_code.h"
#include "runtime/api/c/value.h"
#include "runtime/api/streamed_row.h"

namespace eddy::c {

Refusal RunObject::bind_input(size_t index, Tensor value) {
  EDDY_C_TRY(check_ended());
  if (index >= inputs_.size()) return call().bind_input(index, value);  // which says so
  EDDY_C_TRY(session_->check_gpu_of(value));
  // What was bound stays until the new one is.
  EDDY_C_TRY(call().bind_input(index, value));
  inputs_[index] = std::move(value);
  return call().bind_input(index, *inputs_[index]);
}

Refusal RunObject::bind_output(size_t index, const TensorView& view, bool is_on_device) {
  EDDY_C_TRY(check_ended());
  const auto is_placed = [&](const Placing& each) { return each.index == index; };
  if (std::ranges::any_of(placings_, is_placed)) {
    return {EDDY_INVALID_STATE, "output " + std::to_string(index) +
                                    " is placed by its caller; end that by run_place_output"};
  }
  const BoundOutput bound{view, Dims(view.shape()), is_on_device};
  EDDY_C_TRY(bound.bind(call(), index));
  outputs_[index] = bound;
  return {};
}

// What the other call has bound.
Refusal RunObject::bind_to(Call& call) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i]) EDDY_C_TRY(call.bind_input(i, *inputs_[i]));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i]) EDDY_C_TRY(outputs_[i]->bind(call, i));
  }
  return {};
}

Refusal RunObject::begin_run(uint64_t* submission_or_null) {
  if (!call().is_done()) return {};
  std::vector<MemoryCheck> checks;
  for (size_t i = 0; session_->own.checks_memory && i < inputs_.size(); ++i) {
    if (!inputs_[i] || inputs_[i]->kind() != ValueKind::kTensor) continue;
    const std::string name = "input '" + session().inputs()[i].name + "'";
    EDDY_C_TRY(MemoryCheck::begin(name, inputs_[i]->view(), checks.emplace_back()));
  }
  const std::lock_guard lock(mutex_);
  ++submission_;
  if (submission_or_null != nullptr) *submission_or_null = submission_;
  overdue_ = Status();
  checks_ = std::move(checks);
  is_placed_ = false;
  found_ = {};
  return {};
}

Refusal RunObject::end_run(const Status& status, uint64_t submission) {
  if (!is_watched()) return {};
  const std::lock_guard lock(mutex_);
  if (submission != submission_) return {};  // the next one has begun
  return finish(status);
}

uint64_t RunObject::submission() {
  const std::lock_guard lock(mutex_);
  return submission_;
}

Refusal RunObject::finish(const Status& status) {
  for (const MemoryCheck& each : std::exchange(checks_, {})) {
    if (found_.is_ok()) found_ = each.verify();
  }
  const bool is_first = !std::exchange(is_placed_, true);
  if (is_first && found_.is_ok() && status.is_ok()) found_ = copy_outputs();
  if (found_.is_ok()) return {};
  return {found_.code(), found_.reason()};
}

Refusal RunObject::copy_outputs() {
  for (Placing& each : placings_) {
    const TensorView from = call().output(each.index);
    const std::string name = "output '" + session().outputs()[each.index].name + "'";
    if (from.is_omitted()) return {EDDY_UNSUPPORTED, name + " is no tensor, and has no place"};
    const size_t size_bytes = from.size_bytes();
    eddy_tensor shape = as_c(from);
    shape.data = nullptr;
    void* to = nullptr;
    std::string thrown;
    if (!has_returned(thrown,
                      [&] { to = each.place(each.user, each.index, &shape, size_bytes); })) {
      return {EDDY_RUN_FAILED, name + ": the function that places it: " + thrown};
    }
    if (to == nullptr && size_bytes > 0) {
      return {EDDY_RESOURCE_EXHAUSTED,
              name + ": its caller has no place for " + std::to_string(size_bytes) + " bytes"};
    }
    if (reinterpret_cast<uintptr_t>(to) % element_size_bytes(from.element) != 0) {
      return {EDDY_INVALID_ARGUMENT, name + ": the place that its caller gives is not aligned to " +
                                         std::to_string(element_size_bytes(from.element)) +
                                         " bytes"};
    }
    if (size_bytes > 0) std::memcpy(to, from.data, size_bytes);
    each.made = {from, Dims(from.shape())};
    each.made.view.data = to;
  }
  return {};
}

Refusal RunObject::place_output(size_t index, eddy_output_place place, void* user) {
  const std::vector<ValueDescription>& all = session().outputs();
  if (index >= all.size()) {
    return {EDDY_INVALID_ARGUMENT, "there is no output " + std::to_string(index) +
                                       "; the graph has " + std::to_string(all.size())};
  }
  const ValueType& type = all[index].type;
  if (!type.is_tensor() || type.tensor.element == ElementType::kString) {
    return {EDDY_UNSUPPORTED, "output '" + all[index].name + "' is " + all[index].text +
                                  ", no tensor of fixed-size elements; take it by run_output"};
  }
  if (outputs_[index]) {
    return {EDDY_INVALID_STATE,
            "output '" + all[index].name + "' has memory bound; make another run for it"};
  }
  settle();
  const std::lock_guard lock(mutex_);
  std::erase_if(placings_, [&](const Placing& each) { return each.index == index; });
  if (place != nullptr) placings_.push_back({.index = index, .place = place, .user = user});
  has_placings_.store(!placings_.empty(), std::memory_order_relaxed);
  if (placings_.empty() && !session_->own.checks_memory) found_ = {};  // the last run's
  return {};
}

TensorView RunObject::output(size_t index) {
  const std::lock_guard lock(mutex_);
  for (Placing& each : placings_) {
    if (each.index != index || each.made.view.is_omitted()) continue;
    each.made.view.dims = each.made.dims.data();
    return each.made.view;
  }
  return call().output(index);
}

Refusal RunObject::stream_output(size_t index, std::shared_ptr<RowsObject> rows_or_null) {
  const size_t count = session().outputs().size();
  if (index >= count) {
    return {EDDY_INVALID_ARGUMENT, "there is no output " + std::to_string(index) +
                                       "; the graph has " + std::to_string(count)};
  }
  if (rows_or_null != nullptr) {
    EDDY_C_TRY(
        find_streamed_row(session().graph(), session().outputs(), session().outputs()[index].name)
            .status());
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(rows_, [&](const auto& each) { return each.first == index; });
  if (rows_or_null != nullptr) rows_.emplace_back(index, std::move(rows_or_null));
  plain_options_.streams.clear();
  for (const auto& [output, rows] : rows_) {
    plain_options_.streams.push_back({session().outputs()[output].name, rows->stream()});
  }
  return {};
}

Refusal RunObject::read_options(const eddy_run_options* given, RunOptions& options) const {
  EDDY_C_TRY(read_run_options(given, options));
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].second->is_closed()) options.streams.push_back(plain_options_.streams[i]);
  }
  return {};
}

Refusal RunObject::execute_as(const eddy_run_options* given) {
  RunOptions options;
  EDDY_C_TRY(read_options(given, options));
  return execute_with(options);
}

Refusal RunObject::execute_with(const RunOptions& options) {
  settle();
  const bool is_watched = this->is_watched();
  if (is_watched) EDDY_C_TRY(begin_run());
  const Status status = call().run(options);
  Refusal found;
  if (is_watched) found = end_run(status, submission());
  if (found.is_ok() && status.is_ok()) [[likely]] {
    tally_->store(tally_->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return {};
  }
  if (!call().is_done()) return check_ended();  // it was not begun
  if (found.is_ok()) found = status;
  session_->count(found.code());
  return found;
}

// The loop of a run waits while its rows do, which an executor brings one after the other.
Refusal RunObject::check_rows() {
  if (call().is_done()) return {};
  const std::lock_guard lock(mutex_);
  for (const auto& [index, rows] : rows_) {
    if (!rows->is_called_here()) continue;
    return {EDDY_WOULD_DEADLOCK, "the callback of a row of output '" +
                                     session().outputs()[index].name +
                                     "' may not wait for the run that makes the rows"};
  }
  return {};
}

Refusal RunObject::wait(int64_t limit_ns) {
  const bool has_limit = limit_ns >= 0;
  const std::chrono::nanoseconds limit(limit_ns);
  EDDY_C_TRY(check_rows());
  if (!session_->may_owe) {
    if (has_limit) EDDY_C_TRY(call().check_wait());
    if (has_limit && !call().wait_for(limit)) return {EDDY_NOT_DONE, ""};
    return result();
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point now = Clock::now();
  const bool has_end = has_limit && limit < Clock::time_point::max() - now;
  while (!call().is_done()) {
    std::unique_lock lock(mutex_);
    if (is_overdue()) return overdue_;
    EDDY_C_TRY(call().check_wait());
    const auto is_over = [this, of = submission_] {
      return submission_ != of || ended_ == of || is_overdue();
    };
    if (!has_end) changed_.wait(lock, is_over);
    if (has_end && !changed_.wait_until(lock, now + limit, is_over)) return {EDDY_NOT_DONE, ""};
  }
  return result();
}

Refusal RunObject::poll() {
  if (call().is_done()) return result();
  const std::lock_guard lock(mutex_);
  if (is_overdue()) return overdue_;
  return {EDDY_NOT_DONE, ""};
}

Refusal RunObject::check_ended() {
  if (call().is_done()) return {};
  const std::lock_guard lock(mutex_);
  if (!is_overdue()) return {EDDY_INVALID_STATE, "the run is under way; wait for it first"};
  return {EDDY_INVALID_STATE, "the run is under way still: " + overdue_.to_string()};
}

Refusal RunObject::result() {
  const uint64_t submission = this->submission();
  if (!call().has_run()) return {EDDY_INVALID_STATE, "no run was submitted yet"};
  const Status status = call().wait();
  if (!call().is_done()) return status;
  Refusal found = end_run(status, submission);
  count(found.is_ok() ? static_cast<eddy_code>(status.code()) : found.code());
  if (!found.is_ok()) return found;
  return status;
}

Refusal RunObject::fd(int* fd) {
  const std::lock_guard lock(mutex_);
  if (!file_.is_open()) {
    if (!call().is_done()) {
      return {EDDY_INVALID_STATE, "ask for the descriptor before the run is submitted"};
    }
    file_.open();
  }
  *fd = file_.fd();
  return {};
}

namespace {

// With the run to itself.
template <typename Body>
eddy_code with_run(eddy_run handle, eddy_error* error, Body body) {
  return enter_with<RunObject, Use::kAlone>(handle, error, body);
}

}  // namespace

eddy_code run_create(eddy_session session, eddy_run* run, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    EDDY_C_TRY(need(run, "place for the run"));
    EDDY_C_ASSIGN(std::unique_ptr<Call> call, s->session->prepare());
    *run = make_handle<eddy_run>(std::make_shared<RunObject>(s.share(), std::move(call)));
    return {};
  });
}

eddy_code run_bind_input(eddy_run run, size_t index, eddy_value value, eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    Refusal why;
    const Pin<ValueObject> given(value, why);
    if (!given) return why;
    return r->bind_input(index, given->tensor);
  });
}

eddy_code run_bind_input_memory(eddy_run run, size_t index, const eddy_tensor* tensor,
                                eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    TensorView view;
    EDDY_C_TRY(read_tensor(tensor, "the input", view));
    return r->bind_input(index, Tensor::borrow(view));
  });
}

namespace {

eddy_code bind_output(eddy_run run, size_t index, const eddy_tensor* tensor, bool is_on_device,
                      eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    TensorView view;
    EDDY_C_TRY(read_tensor(tensor, "the output", view));
    return r->bind_output(index, view, is_on_device);
  });
}

}  // namespace

eddy_code run_bind_output_memory(eddy_run run, size_t index, const eddy_tensor* tensor,
                                 eddy_error* error) {
  return bind_output(run, index, tensor, false, error);
}
eddy_code run_bind_output_device(eddy_run run, size_t index, const eddy_tensor* tensor,
                                 eddy_error* error) {
  return bind_output(run, index, tensor, true, error);
}

eddy_code run_place_output(eddy_run run, size_t index, eddy_output_place place, void* user,
                           eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    EDDY_C_TRY(r->check_ended());
    return r->place_output(index, place, user);
  });
}

eddy_code run_stream_output(eddy_run run, size_t index, eddy_rows rows, eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    EDDY_C_TRY(r->check_ended());
    if (rows == nullptr) return r->stream_output(index, nullptr);
    Refusal why;
    const Pin<RowsObject> given(rows, why);
    if (!given) return why;
    return r->stream_output(index, given.share());
  });
}

eddy_code run_execute(eddy_run run, const eddy_run_options* options, eddy_error* error) {
  return with_run(run, error, [&](const auto& r) {
    if (r->may_owe()) [[unlikely]]
      return RunObject::execute_owing(r.share(), options);
    return r->execute(options);
  });
}

namespace {

Refusal read_executor(eddy_executor executor, RunObject::Ending& ending) {
  if (executor == nullptr) return {};
  Refusal why;
  const Pin<ExecutorObject> given(executor, why);
  if (given) ending.executor_or_null = given.share();
  return why;
}

}  // namespace

eddy_code run_submit(eddy_run run, const eddy_run_options* options, eddy_executor executor,
                     eddy_run_callback callback, void* user, eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    RunObject::Ending ending{nullptr, callback, user, nullptr};
    EDDY_C_TRY(read_executor(executor, ending));
    return RunObject::submit(r.share(), run, options, std::move(ending),
                             [&r] { r.share_with_others(); });
  });
}

eddy_code run_submit_on(eddy_run run, eddy_stream stream, const eddy_run_options* options,
                        eddy_executor executor, eddy_run_callback callback, void* user,
                        eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    Refusal why;
    const Pin<StreamObject, Use::kAlone> given(stream, why);
    if (!given) return why;
    if (!r->is_of(*given->session)) {
      return {EDDY_INVALID_ARGUMENT, "the stream is of another session than the run"};
    }
    RunObject::Ending ending{nullptr, callback, user, given.share()};
    EDDY_C_TRY(read_executor(executor, ending));
    return RunObject::submit(r.share(), run, options, std::move(ending),
                             [&r] { r.share_with_others(); });
  });
}

eddy_code run_start_trace(eddy_run run, eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    EDDY_C_TRY(r->check_ended());
    return r->start_trace();
  });
}

eddy_code run_stop_trace(eddy_run run, eddy_value* json, eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    EDDY_C_TRY(need(json, "place for the trace"));
    EDDY_C_TRY(r->check_ended());
    std::string text;
    EDDY_C_TRY(r->stop_trace(text));
    return give_text(text, json);
  });
}

eddy_code run_wait(eddy_run run, int64_t timeout_ns, eddy_error* error) {
  return enter_with<RunObject>(run, error,
                               [&](const auto& r) -> Refusal { return r->wait(timeout_ns); });
}

eddy_code run_poll(eddy_run run, eddy_error* error) {
  return enter_with<RunObject>(run, error, [&](const auto& r) -> Refusal { return r->poll(); });
}

eddy_code run_fd(eddy_run run, int* fd, eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    EDDY_C_TRY(need(fd, "place for the descriptor"));
    return r->fd(fd);
  });
}

eddy_code run_cancel(eddy_run run, eddy_error* error) {
  return enter_with<RunObject>(run, error, [&](const auto& r) -> Refusal {
    r->call().cancel();
    return {};
  });
}

namespace {

// That the last run has made output `index`.
Refusal check_output(RunObject& run, size_t index) {
  const size_t count = run.session().outputs().size();
  if (index >= count) {
    return {EDDY_INVALID_ARGUMENT, "there is no output " + std::to_string(index) +
                                       "; the graph has " + std::to_string(count)};
  }
  EDDY_C_TRY(run.check_ended());
  const Refusal last = run.poll();
  if (last.is_ok()) return {};
  return {EDDY_INVALID_STATE, "there are no outputs: " + last.reason()};
}

}  // namespace

eddy_code run_output(eddy_run run, size_t index, eddy_value* value, eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    EDDY_C_TRY(need(value, "place for the value"));
    EDDY_C_TRY(check_output(*r, index));
    if (r->is_on_device(index)) {
      return {EDDY_UNSUPPORTED, "output " + std::to_string(index) +
                                    " is in the GPU's memory that is bound for it; "
                                    "run_output_memory names that"};
    }
    *value = make_handle<eddy_value>(std::make_shared<ValueObject>(r->call().value(index)));
    return {};
  });
}

eddy_code run_output_memory(eddy_run run, size_t index, eddy_tensor* tensor, eddy_error* error) {
  return with_run(run, error, [&](const auto& r) -> Refusal {
    EDDY_C_TRY(need(tensor, "place for the tensor"));
    EDDY_C_TRY(check_output(*r, index));
    const TensorView view = r->output(index);
    if (view.is_omitted() || view.element == ElementType::kString) {
      return {EDDY_UNSUPPORTED, "output " + std::to_string(index) +
                                    " is no tensor of fixed-size elements; take it by run_output"};
    }
    *tensor = as_c(view);
    return {};
  });
}

}  // namespace eddy::c
