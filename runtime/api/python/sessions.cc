#include "runtime/api/python/sessions.h"

#include <pybind11/stl.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "runtime/api/python/collected.h"
#include "runtime/api/python/operators.h"
#include "runtime/api/python/runs.h"

namespace eddy::python {
namespace {

using Describe = eddy_code (*)(eddy_session, size_t, const char**, eddy_type*, eddy_error*);
using Count = eddy_code (*)(eddy_session, size_t*, eddy_error*);

std::vector<Description> describe(eddy_session session, Count count, Describe each) {
  size_t size = 0;
  check([&](auto e) { return count(session, &size, e); });
  std::vector<Description> made(size);
  for (size_t i = 0; i < size; ++i) {
    const char* name = nullptr;
    made[i].type.struct_size = sizeof(eddy_type);
    check([&](auto e) { return each(session, i, &name, &made[i].type, e); });
    made[i].name = name;
  }
  return made;
}

py::dict places_of(const std::vector<Description>& all) {
  py::dict made;
  for (size_t i = 0; i < all.size(); ++i) made[py::str(all[i].name)] = i;
  return made;
}

py::list as_python(const std::vector<Description>& all) {
  py::list made;
  for (const Description& each : all) {
    py::object dims = py::none();
    if (each.type.rank >= 0) {
      dims = py::cast(std::vector<int64_t>(each.type.dims, each.type.dims + each.type.rank));
    }
    made.append(py::make_tuple(each.name, each.type.element,
                               py::make_tuple(each.type.wrappers[0], each.type.wrappers[1]), dims));
  }
  return made;
}

py::object output_of(eddy_run run, size_t index, bool as_value) {
  if (!as_value) {
    eddy_tensor view = {};
    if (api().run_output_memory(run, index, &view, nullptr) == EDDY_OK) return copy_of(view);
  }
  eddy_value made = nullptr;
  check([&](auto e) { return api().run_output(run, index, &made, e); });
  const py::object value = py::cast(PyValue(made));
  return as_value ? value : PyValue::to_python(value, true);
}

// While the interpreter ends: cancels all runs of the sessions again and again, as operators in
// Python that go on may begin more. Threads: one of its own, which takes no lock of the
// interpreter.
class Ending {
 public:
  explicit Ending(const std::vector<std::shared_ptr<PySession>>& sessions) {
    begin_the_end();
    for (const auto& session : sessions) {
      if (session->is_closed()) continue;
      api().retain(session->get());
      handles_.push_back(session->get());
    }
    cancel();
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {  // once has to do
    }
  }
  ~Ending() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
    for (eddy_session& handle : handles_) release_unlocked(handle);
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  void cancel() const {
    for (const eddy_session handle : handles_) api().session_cancel_all(handle, nullptr);
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(5), [this] { return is_over_; })) {
      cancel();
    }
  }

  std::vector<eddy_session> handles_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace

// A run that is prepared, and what the call binds to it: read until the call ends, and bound anew
// before the next one.
struct PySession::Slot {
  explicit Slot(const PySession& session) : kept(session.inputs_.size()) {
    check([&](auto e) { return api().run_create(session.get(), &run, e); });
  }
  ~Slot() { release_unlocked(run); }
  eddy_run run = nullptr;
  std::vector<py::object> kept;
};

struct PySession::Borrowed {
  explicit Borrowed(PySession& of) : session(of) {
    if (session.slots_.empty()) {
      slot = std::make_unique<Slot>(session);
    } else {
      slot = std::move(session.slots_.back());
      session.slots_.pop_back();
    }
  }
  ~Borrowed() {
    for (py::object& each : slot->kept) each = py::object();
    if (session.handle_ != nullptr) session.slots_.push_back(std::move(slot));
  }
  PySession& session;
  std::unique_ptr<Slot> slot;
};

Options texts_of(const py::dict& options) {
  Options texts;
  for (const auto& [key, value] : options) texts.emplace_back(py::str(key), py::str(value));
  return texts;
}

PySession::PySession(eddy_session handle, py::object library, bool has_calls)
    : handle_(handle), library_(std::move(library)), has_calls_(has_calls) {
  inputs_ = describe(handle_, api().session_num_inputs, api().session_input);
  outputs_ = describe(handle_, api().session_num_outputs, api().session_output);
  input_places_ = places_of(inputs_);
  output_places_ = places_of(outputs_);
  for (size_t i = 0; i < outputs_.size(); ++i) all_outputs_.push_back(i);
}

PySession::~PySession() {
  slots_.clear();
  release_unlocked(handle_);
}

eddy_session PySession::get() const {
  if (handle_ == nullptr) raise(EDDY_INVALID_STATE, "the session is closed; make another one");
  return handle_;
}

size_t PySession::find_input(const py::handle& name) const {
  if (PyObject* const place = PyDict_GetItem(input_places_.ptr(), name.ptr())) {
    return PyLong_AsSize_t(place);
  }
  size_t index = 0;
  const std::string text = py::str(name);
  check([&](auto e) { return api().session_find_input(get(), text.c_str(), &index, e); });
  return index;
}

size_t PySession::find_output(const py::handle& name) const {
  if (PyObject* const place = PyDict_GetItem(output_places_.ptr(), name.ptr())) {
    return PyLong_AsSize_t(place);
  }
  size_t index = 0;
  const std::string text = py::str(name);
  check([&](auto e) { return api().session_find_output(get(), text.c_str(), &index, e); });
  return index;
}

void PySession::check_may_wait() const {
  if (!has_calls_ || !is_inside_call()) return;
  raise(EDDY_WOULD_DEADLOCK,
        "an operator in Python waits for a run that needs operators in Python, too; "
        "run it outside, or as a part of the graph");
}

void PySession::bind(Slot& slot, const py::dict& feeds) const {
  size_t count = 0;
  for (const auto& [name, object] : feeds) {
    const size_t index = find_input(name);
    count += slot.kept[index] ? 0 : 1;
    slot.kept[index] =
        bind_input(slot.run, index, inputs_[index], py::reinterpret_borrow<py::object>(object));
  }
  if (count == inputs_.size()) return;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (slot.kept[i]) continue;
    raise(EDDY_INVALID_ARGUMENT, "input '" + inputs_[i].name + "' is not given");
  }
}

py::list PySession::run(const py::object& names, const py::dict& feeds, double timeout,
                        int priority, bool as_values) {
  get();
  check_may_wait();
  std::vector<size_t> chosen;
  const bool takes_all = names.is_none();
  if (!takes_all) {
    if (py::isinstance<py::str>(names)) {
      throw py::type_error("output_names is a list of names, or None for all");
    }
    for (const py::handle& name : names) chosen.push_back(find_output(name));
  }
  const eddy_run_options options = run_options(timeout, priority);
  const Borrowed borrowed(*this);
  bind(*borrowed.slot, feeds);
  execute(borrowed.slot->run, options);
  const std::vector<size_t>& places = takes_all ? all_outputs_ : chosen;
  py::list made(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    PyList_SET_ITEM(made.ptr(), static_cast<py::ssize_t>(i),
                    output_of(borrowed.slot->run, places[i], as_values).release().ptr());
  }
  return made;
}

void PySession::close() {
  if (handle_ == nullptr) return;
  check_may_wait();
  // A run that waits for an answer goes on alone, and keeps what it uses.
  without_lock([](eddy_session session, eddy_error* error) -> eddy_code {
    const eddy_code code = api().session_close(session, error);
    return code == EDDY_NOT_DONE ? EDDY_OK : code;
  });
  // Another thread may have closed it meanwhile, or may look at it while a handle is released.
  std::vector<std::unique_ptr<Slot>> slots = std::exchange(slots_, {});
  eddy_session session = std::exchange(handle_, nullptr);
  slots.clear();
  release_unlocked(session);
}

void PySession::without_lock(eddy_code (*call)(eddy_session, eddy_error*)) const {
  const eddy_session session = get();
  api().retain(session);
  struct Owned {
    explicit Owned(eddy_session of) : handle(of) {}
    ~Owned() { release_unlocked(handle); }
    eddy_session handle;
  };
  const Owned owned(session);
  check_unlocked([&](auto e) { return call(session, e); });
}

std::string PySession::text(eddy_code (*call)(eddy_session, eddy_value*, eddy_error*)) const {
  eddy_value made = nullptr;
  check([&](auto e) { return call(get(), &made, e); });
  return Value(made).text();
}

namespace {

// Of what `call` makes with the options.
template <typename Call>
std::shared_ptr<PySession> make_session(const std::shared_ptr<PyLibrary>& library,
                                        const py::dict& options, const Call& call) {
  const Options texts = texts_of(options);
  const std::vector<eddy_option> given = as_c(texts);
  eddy_session made = nullptr;
  check_unlocked([&](auto e) { return call(given, &made, e); });
  return std::make_shared<PySession>(made, py::cast(library), library->has_calls());
}

std::shared_ptr<PySession> load_session(const std::shared_ptr<PyLibrary>& library,
                                        const std::string& path, const py::dict& options) {
  return make_session(library, options, [&](const auto& given, eddy_session* made, auto e) {
    return api().session_load(library->get(), path.c_str(), given.data(), given.size(), made, e);
  });
}

std::shared_ptr<PySession> parse_session(const std::shared_ptr<PyLibrary>& library,
                                         const py::bytes& bytes, const py::dict& options) {
  const auto view = static_cast<std::string_view>(bytes);
  return make_session(library, options, [&](const auto& given, eddy_session* made, auto e) {
    return api().session_load_bytes(library->get(), view.data(), view.size(), given.data(),
                                    given.size(), made, e);
  });
}

py::dict metrics_of(const PySession& session) {
  eddy_metrics m = {};
  m.struct_size = sizeof(m);
  check([&](auto e) { return api().session_metrics(session.get(), &m, e); });
  py::dict made;
  const auto add = [&](const char* name, const py::object& value) { made[name] = value; };
  add("runs_succeeded", py::int_(m.runs_succeeded));
  add("runs_failed", py::int_(m.runs_failed));
  add("runs_cancelled", py::int_(m.runs_cancelled));
  add("runs_late", py::int_(m.runs_late));
  add("runs_in_flight", py::int_(m.runs_in_flight));
  add("runs_waiting", py::int_(m.runs_waiting));
  add("iterations", py::int_(m.iterations));
  add("memory_bytes", py::int_(m.memory_bytes));
  add("memory_peak_bytes", py::int_(m.memory_peak_bytes));
  add("plan_seconds", py::float_(1e-9 * static_cast<double>(m.plan_ns)));
  return made;
}

// By name: calls and seconds.
py::dict operator_metrics_of(const PySession& session) {
  size_t count = 0;
  check([&](auto e) { return api().session_num_operators(session.get(), &count, e); });
  py::dict made;
  for (size_t i = 0; i < count; ++i) {
    eddy_operator_metrics of = {};
    of.struct_size = sizeof(of);
    check([&](auto e) { return api().session_operator_metrics(session.get(), i, &of, e); });
    made[of.name] = py::make_tuple(of.calls, 1e-9 * static_cast<double>(of.time_ns));
  }
  return made;
}

}  // namespace

void add_sessions(py::module_& m) {
  py::class_<PySession, std::shared_ptr<PySession>>(m, "Session", collected<PySession>())
      .def_static("load", load_session, py::arg("library"), py::arg("path"), py::arg("options"))
      .def_static("parse", parse_session, py::arg("library"), py::arg("data"), py::arg("options"))
      .def_property_readonly("inputs", [](const PySession& s) { return as_python(s.inputs()); })
      .def_property_readonly("outputs", [](const PySession& s) { return as_python(s.outputs()); })
      .def_property_readonly("is_closed", &PySession::is_closed)
      .def("find_input", &PySession::find_input, py::arg("name"))
      .def("find_output", &PySession::find_output, py::arg("name"))
      .def("run", &PySession::run, py::arg("names"), py::arg("feeds"), py::arg("timeout") = 0.0,
           py::arg("priority") = 0, py::arg("as_values") = false)
      .def("plan_text", [](const PySession& s) { return s.text(api().session_plan_text); })
      .def("plan_svg", [](const PySession& s) { return s.text(api().session_plan_svg); })
      .def(
          "can_stream",
          [](const PySession& s, size_t index) {
            int32_t can = 0;
            check([&](auto e) { return api().session_can_stream(s.get(), index, &can, e); });
            return can != 0;
          },
          py::arg("index"))
      .def("metrics", &metrics_of)
      .def("operator_metrics", &operator_metrics_of)
      .def("metrics_text",
           [](const PySession& s, const std::string& name) {
             eddy_value made = nullptr;
             check([&](auto e) {
               return api().session_metrics_text(s.get(), name.c_str(), &made, e);
             });
             return Value(made).text();
           })
      .def("cancel_all", [](const PySession& s) { s.without_lock(api().session_cancel_all); })
      .def("trim", [](const PySession& s) { s.without_lock(api().session_trim); })
      .def("close", &PySession::close);
  m.def(
      "is_plan", [](const std::string& path) { return is_plan(path); }, py::arg("path"));
  m.def(
      "close_all",
      [](const std::vector<std::shared_ptr<PySession>>& sessions) {
        const Ending ending(sessions);
        for (const auto& session : sessions) session->close();
      },
      py::arg("sessions"));
}

}  // namespace eddy::python
