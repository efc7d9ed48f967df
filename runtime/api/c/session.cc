#include "runtime/api/c/session.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "graph/compile/plan_drawing.h"
#include "graph/compile/plan_svg.h"
#include "graph/compile/plan_text.h"
#include "graph/io/text.h"
#include "graph/ir/node_facts.h"
#include "graph/ir/symbols.h"
#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"
#include "runtime/api/c/graph.h"
#include "runtime/api/c/options.h"
#include "runtime/api/c/run.h"
#include "runtime/api/c/stack_list.h"
#include "runtime/api/c/value.h"
#include "runtime/api/program_fingerprint.h"
#include "runtime/api/streamed_row.h"

namespace eddy::c {

SessionObject::Tally SessionObject::begin_tally() {
  const std::lock_guard lock(tallies_mutex);
  return tallies.emplace(tallies.end(), 0);
}

void SessionObject::end_tally(Tally tally) {
  const std::lock_guard lock(tallies_mutex);
  succeeded.fetch_add(*tally, std::memory_order_relaxed);
  tallies.erase(tally);
}

Refusal SessionObject::check_gpu_of(const Tensor& value) const {
  const std::optional<int32_t> gpu = value.gpu();
  if (!gpu || !own.accelerator.gpu || *gpu == *own.accelerator.gpu) return {};
  return {EDDY_INVALID_ARGUMENT, "the value is in the memory of GPU " + std::to_string(*gpu) +
                                     ", but the session is on GPU " +
                                     std::to_string(*own.accelerator.gpu) + "; copy it there"};
}

void SessionObject::find_owing_nodes() {
  const Graph& graph = session->graph();
  for (uint32_t n = 0; n < graph.num_nodes() && !may_owe; ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec || !node.op->may_wait) continue;
    const std::string name(node.attributes.get_string("name", ""));
    const Library::NamedHostFunction* const named =
        calls_host_function(node) ? library->library.host_function_or_null(name) : nullptr;
    may_owe = node.op->domain != "eddy" || (named != nullptr && named->async);
  }
}

eddy_metrics SessionObject::metrics() const {
  const auto read = [](const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  const MemoryStatistics memory = session->memory();
  eddy_metrics made = {};
  {
    const std::lock_guard lock(tallies_mutex);
    made.runs_succeeded = read(succeeded);
    for (const std::atomic<uint64_t>& tally : tallies) made.runs_succeeded += read(tally);
  }
  made.runs_failed = read(failed);
  made.runs_cancelled = read(cancelled);
  made.runs_late = read(late);
  made.memory_bytes = memory.used_bytes;
  made.memory_peak_bytes = memory.peak_bytes;
  made.plan_ns = session->plan_ns();
  const RunCounts counts = session->run_counts();
  made.runs_in_flight = counts.in_flight;
  made.runs_waiting = counts.waiting;
  made.iterations = session->num_iterations();
  return made;
}

Refusal read_run_options(const eddy_run_options* given, RunOptions& options) {
  if (given == nullptr) return {};
  eddy_run_options read;
  EDDY_C_TRY(
      read_struct(given, EDDY_C_UPTO(eddy_run_options, timeout_ns), "the run's options", read));
  if (read.timeout_ns < 0) {
    return {EDDY_INVALID_ARGUMENT,
            "timeout_ns is " + std::to_string(read.timeout_ns) + "; 0 is none"};
  }
  if (read.priority < -1 || read.priority > 1) {
    return {EDDY_INVALID_ARGUMENT,
            "priority is " + std::to_string(read.priority) + "; give -1, 0 or 1"};
  }
  if (read.timeout_ns > 0) options.timeout = std::chrono::nanoseconds(read.timeout_ns);
  options.priority = static_cast<Priority>(read.priority + 1);
  return {};
}

Refusal read_options(const LibraryObject& library, const eddy_option* given, size_t count,
                     SessionOptions& options, CallerOptions& own) {
  options.threads = library.context->threads;
  options.memory = library.context->memory_or_null();
  const std::shared_ptr<ContextObject> context = library.context;
  options.log = [context](std::string_view line) { context->log(line); };
  EDDY_C_TRY(read_session_options(given, count, options, own));
  AcceleratorOptions& wanted = own.accelerator;
  if (wanted.device != "cpu") return use_accelerator(wanted, library.accelerator_kernels, options);
  if (wanted.is_plain() && !options.locate_faults) return {};
  return {EDDY_INVALID_ARGUMENT,
          std::string("options 'tf32', 'channels_last', 'measure_convolutions' and 'locate_faults' "
                      "are for a GPU; give 'device', of which there are ") +
              devices_text()};
}

Refusal check_dims(const Graph& graph, const SessionOptions& options) {
  if (options.dims.empty()) return {};
  const std::set<std::string> names = symbolic_dims(graph);
  for (const auto& [name, size] : options.dims) {
    if (names.contains(name)) continue;
    std::string all;
    for (const std::string& each : names) all += (all.empty() ? "" : ", ") + each;
    return {EDDY_INVALID_ARGUMENT,
            "option 'dim." + name + "': the graph has no symbolic dimension of that name; it has " +
                (all.empty() ? "none" : all)};
  }
  return {};
}

namespace {

// Of a copy of the graph, whose constants are read once for all of its sessions.
Refusal make_session(GraphObject& source, const eddy_option* given, size_t count,
                     eddy_session* session) {
  const std::shared_ptr<LibraryObject>& library = source.library;
  Graph graph = source.finished->copy();
  EDDY_C_TRY(need(session, "place for the session"));
  SessionOptions options;
  CallerOptions own;
  EDDY_C_TRY(read_options(*library, given, count, options, own));
  EDDY_C_TRY(check_dims(graph, options));
  auto made = std::make_shared<SessionObject>();
  made->library = library;
  made->locations = source.locations;
  made->own = own;
  Fingerprint fingerprint;
  {
    const std::lock_guard lock(source.fingerprint_mutex);
    if (!source.fingerprint) {
      source.fingerprint = graph_fingerprint(graph, [&graph] { graph.release_constants({}); });
    }
    fingerprint = *source.fingerprint;
  }
  EDDY_C_ASSIGN(made->session,
                Session::create(library->use(), std::move(graph), fingerprint, options));
  made->find_owing_nodes();
  *session = make_handle<eddy_session>(std::move(made));
  return {};
}

// The place of a name among a session's inputs or outputs.
Refusal find_name(const std::vector<ValueDescription>& all, const char* what, const char* name,
                  size_t* index) {
  EDDY_C_TRY(need(name, "name"));
  EDDY_C_TRY(need(index, "place for the index"));
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name != name) continue;
    *index = i;
    return {};
  }
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(all.size(), 8); ++i) {
    names += (i == 0 ? "" : ", ") + all[i].name;
  }
  return {EDDY_NOT_FOUND, std::string("there is no ") + what + " '" + name + "'; there are " +
                              std::to_string(all.size()) + (all.empty() ? "" : ": ") + names};
}

Refusal describe(const std::vector<ValueDescription>& all, const char* what, size_t index,
                 const char** name, eddy_type* type) {
  if (index >= all.size()) {
    return {EDDY_INVALID_ARGUMENT, std::string("there is no ") + what + " " +
                                       std::to_string(index) + "; there are " +
                                       std::to_string(all.size())};
  }
  if (type != nullptr) EDDY_C_TRY(write_struct(as_c(all[index].type, false), "the type", type));
  if (name != nullptr) *name = all[index].name.c_str();
  return {};
}

Refusal count_of(const std::vector<ValueDescription>& all, size_t* count) {
  EDDY_C_TRY(need(count, "place for the count"));
  *count = all.size();
  return {};
}

}  // namespace

eddy_code session_create(eddy_graph graph, const eddy_option* options, size_t num_options,
                         eddy_session* session, eddy_error* error) {
  return with_finished(graph, error, [&](const auto& g) -> Refusal {
    return make_session(*g, options, num_options, session);
  });
}

eddy_code session_num_inputs(eddy_session session, size_t* count, eddy_error* error) {
  return enter_with<SessionObject>(
      session, error, [&](const auto& s) { return count_of(s->session->inputs(), count); });
}
eddy_code session_num_outputs(eddy_session session, size_t* count, eddy_error* error) {
  return enter_with<SessionObject>(
      session, error, [&](const auto& s) { return count_of(s->session->outputs(), count); });
}
eddy_code session_input(eddy_session session, size_t index, const char** name, eddy_type* type,
                        eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) {
    return describe(s->session->inputs(), "input", index, name, type);
  });
}
eddy_code session_output(eddy_session session, size_t index, const char** name, eddy_type* type,
                         eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) {
    return describe(s->session->outputs(), "output", index, name, type);
  });
}
eddy_code session_find_input(eddy_session session, const char* name, size_t* index,
                             eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) {
    return find_name(s->session->inputs(), "input", name, index);
  });
}
eddy_code session_find_output(eddy_session session, const char* name, size_t* index,
                              eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) {
    return find_name(s->session->outputs(), "output", name, index);
  });
}

namespace {

// The inputs of a run by names, pinned until it has ended.
struct GivenInputs {
  explicit GivenInputs(size_t count) : pins(count), places(count) {}
  StackList<Pin<ValueObject>> pins;
  StackList<Session::Given> places;
};

Refusal read_inputs(const SessionObject& session, const char* const* names,
                    const eddy_value* values, size_t count, GivenInputs& inputs) {
  if (count > 0) {
    EDDY_C_TRY(need(names, "list of input names"));
    EDDY_C_TRY(need(values, "list of inputs"));
  }
  for (size_t i = 0; i < count; ++i) {
    EDDY_C_TRY(need(names[i], "name of an input"));
    Refusal why;
    Pin<ValueObject> value(values[i], why);
    if (!value) return why;
    EDDY_C_ASSIGN(const size_t place, session.session->find_input(names[i]));
    EDDY_C_TRY(session.check_gpu_of(value->tensor));
    inputs.places.add(Session::Given{place, &value->tensor});
    inputs.pins.add(std::move(value));
  }
  return {};
}

// Handles of the outputs that are asked for, all or none.
Refusal give_outputs(std::span<Tensor> made, eddy_value* outputs) {
  StackList<eddy_value> handles(made.size());
  try {
    for (Tensor& each : made) {
      handles.add(make_handle<eddy_value>(std::make_shared<ValueObject>(std::move(each))));
    }
  } catch (...) {
    for (eddy_value each : handles.span()) release(each);
    throw;
  }
  std::ranges::copy(handles.span(), outputs);
  return {};
}

}  // namespace

namespace {

// In a session whose runs may be left before they have ended: by an object that keeps what the run
// uses until then.
[[gnu::noinline]] Refusal run_owing(std::shared_ptr<SessionObject> session,
                                    std::span<const Session::Given> inputs,
                                    std::span<const size_t> wanted, std::span<Tensor> into,
                                    const eddy_run_options* options) {
  Session& session_of = *session->session;
  EDDY_C_ASSIGN(std::unique_ptr<Call> call, session_of.prepare());
  const auto run = std::make_shared<RunObject>(std::move(session), std::move(call));
  std::vector<bool> is_given(session_of.inputs().size());
  for (const Session::Given& each : inputs) {
    if (is_given[each.input]) {
      return {EDDY_INVALID_ARGUMENT,
              "input '" + session_of.inputs()[each.input].name + "' is given twice; leave one out"};
    }
    is_given[each.input] = true;
    EDDY_C_TRY(run->bind_input(each.input, *each.value));
  }
  EDDY_C_TRY(RunObject::execute_owing(run, options));
  for (size_t i = 0; i < wanted.size(); ++i) into[i] = run->call().value(wanted[i]);
  return {};
}

}  // namespace

eddy_code session_run(eddy_session session, const char* const* input_names,
                      const eddy_value* inputs, size_t num_inputs, const char* const* output_names,
                      eddy_value* outputs, size_t num_outputs, const eddy_run_options* options,
                      eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    GivenInputs given(num_inputs);
    EDDY_C_TRY(read_inputs(*s, input_names, inputs, num_inputs, given));
    if (num_outputs > 0) {
      EDDY_C_TRY(need(output_names, "list of output names"));
      EDDY_C_TRY(need(outputs, "place for the outputs"));
    }
    StackList<size_t> places(num_outputs);
    for (size_t i = 0; i < num_outputs; ++i) {
      EDDY_C_TRY(find_name(s->session->outputs(), "output", output_names[i], &places.add()));
    }
    RunOptions run_options;
    EDDY_C_TRY(read_run_options(options, run_options));
    StackList<Tensor> made(num_outputs);
    for (size_t i = 0; i < num_outputs; ++i) made.add();
    if (s->may_owe) [[unlikely]] {
      EDDY_C_TRY(run_owing(s.share(), given.places.span(), places.span(), made.span(), options));
      return give_outputs(made.span(), outputs);
    }
    const Status status =
        s->session->run_at(given.places.span(), places.span(), made.span(), run_options);
    s->count(static_cast<eddy_code>(status.code()));
    EDDY_C_TRY(status);
    return give_outputs(made.span(), outputs);
  });
}

eddy_code session_cancel_all(eddy_session session, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    s->session->cancel_all();
    return {};
  });
}
eddy_code session_close(eddy_session session, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    s->session->close();
    if (s->session->run_counts().in_flight == 0) return {};
    return {EDDY_NOT_DONE, ""};
  });
}
eddy_code session_trim(eddy_session session, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    s->session->trim();
    return {};
  });
}

eddy_code session_metrics(eddy_session session, eddy_metrics* metrics, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    return write_struct(s->metrics(), "the metrics", metrics);
  });
}

eddy_code session_num_operators(eddy_session session, size_t* count, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    EDDY_C_TRY(need(count, "place for the count"));
    *count = s->session->operator_times().size();
    return {};
  });
}

eddy_code session_operator_metrics(eddy_session session, size_t index,
                                   eddy_operator_metrics* metrics, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    const std::vector<OperatorTime> times = s->session->operator_times();
    if (index >= times.size()) {
      return {EDDY_INVALID_ARGUMENT,
              "there is no operator " + std::to_string(index) + "; the session times " +
                  std::to_string(times.size()) +
                  (times.empty() ? ": set option time_operators to true" : "")};
    }
    const OperatorTime& of = times[index];
    return write_struct(eddy_operator_metrics{0, of.name, of.num_calls, of.time_ns},
                        "the operator's metrics", metrics);
  });
}

namespace {

// A label's value, as Prometheus' text form has it.
std::string quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// Prometheus counts time in seconds.
std::string seconds(uint64_t ns) {
  std::string digits = std::to_string(ns % 1'000'000'000);
  digits.insert(0, 9 - digits.size(), '0');
  return std::to_string(ns / 1'000'000'000) + "." + digits;
}

std::string metrics_text(const SessionObject& session, const std::string& name) {
  const eddy_metrics m = session.metrics();
  const std::string label = "session=" + quoted(as_clean_utf8(one_line(name)));
  std::string text;
  const auto head = [&](const char* metric, const char* type, const char* help) {
    text += std::string("# HELP ") + metric + " " + help + "\n# TYPE " + metric + " " + type + "\n";
  };
  const auto write = [&](const char* metric, const std::string& more, const std::string& value) {
    text += metric + ("{" + label + more + "} ") + value + "\n";
  };
  const auto row = [&](const char* metric, const char* more, uint64_t value) {
    write(metric, more, std::to_string(value));
  };
  head("eddy_runs_total", "counter", "Runs that have ended, by how they ended.");
  row("eddy_runs_total", ",end=\"ok\"", m.runs_succeeded);
  row("eddy_runs_total", ",end=\"failed\"", m.runs_failed);
  row("eddy_runs_total", ",end=\"cancelled\"", m.runs_cancelled);
  row("eddy_runs_total", ",end=\"late\"", m.runs_late);
  head("eddy_runs_in_flight", "gauge", "Runs under way.");
  row("eddy_runs_in_flight", "", m.runs_in_flight);
  head("eddy_runs_waiting", "gauge", "Runs that wait for their turn, or behind their stream.");
  row("eddy_runs_waiting", "", m.runs_waiting);
  head("eddy_memory_bytes", "gauge", "Bytes of tensors in use.");
  row("eddy_memory_bytes", "", m.memory_bytes);
  head("eddy_memory_peak_bytes", "gauge", "The most bytes of tensors that were in use.");
  row("eddy_memory_peak_bytes", "", m.memory_peak_bytes);
  head("eddy_loop_iterations_total", "counter", "Iterations of loops, in runs that have ended.");
  row("eddy_loop_iterations_total", "", m.iterations);
  const std::vector<OperatorTime> times = session.session->operator_times();
  if (times.empty()) return text;
  const auto of = [](const OperatorTime& each) { return ",operator=" + quoted(each.name); };
  head("eddy_operator_calls_total", "counter", "Calls of operators.");
  for (const OperatorTime& each : times) {
    write("eddy_operator_calls_total", of(each), std::to_string(each.num_calls));
  }
  head("eddy_operator_seconds_total", "counter", "Time in calls of operators.");
  for (const OperatorTime& each : times) {
    write("eddy_operator_seconds_total", of(each), seconds(each.time_ns));
  }
  return text;
}

}  // namespace

eddy_code session_metrics_text(eddy_session session, const char* name, eddy_value* text,
                               eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    return give_text(metrics_text(*s, name == nullptr ? "" : name), text);
  });
}

namespace {

DrawnRegion drawn_plan(const Session& session) {
  return draw_plan(session.graph(), session.plan(), [](NodeId) { return std::string(); });
}

}  // namespace

eddy_code session_plan_text(eddy_session session, eddy_value* text, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) {
    return give_text(plan_text(drawn_plan(*s->session)), text);
  });
}
eddy_code session_plan_svg(eddy_session session, eddy_value* svg, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) {
    const DrawnRegion plan = drawn_plan(*s->session);
    return give_text(plan_svg(plan, plan.name), svg);
  });
}

eddy_code session_can_stream(eddy_session session, size_t index, int32_t* can, eddy_error* error) {
  return enter_with<SessionObject>(session, error, [&](const auto& s) -> Refusal {
    EDDY_C_TRY(need(can, "place for the answer"));
    const Session& of = *s->session;
    EDDY_C_TRY(describe(of.outputs(), "output", index, nullptr, nullptr));
    *can = find_streamed_row(of.graph(), of.outputs(), of.outputs()[index].name).is_ok() ? 1 : 0;
    return {};
  });
}

}  // namespace eddy::c
