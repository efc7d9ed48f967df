#include "runtime/api/python/runs.h"

#include <algorithm>

#include "runtime/api/python/collected.h"
#include "runtime/api/python/interrupt.h"
#include "runtime/api/python/operators.h"

namespace eddy::python {
namespace {

class PyRows {
 public:
  explicit PyRows(size_t max_waiting) {
    check([&](auto e) {
      return api().rows_create(max_waiting, nullptr, nullptr, nullptr, &handle_, e);
    });
  }
  ~PyRows() { release_unlocked(handle_); }
  PyRows(const PyRows&) = delete;
  PyRows& operator=(const PyRows&) = delete;
  eddy_rows get() const { return handle_; }

  // (state, value): 0 with a value, 1 none in time, 2 there will be no more.
  py::tuple next(double seconds) const {
    eddy_value made = nullptr;
    eddy_error error = nullptr;
    eddy_code code = EDDY_OK;
    {
      const Unlocked unlocked;
      code = api().rows_next(handle_, static_cast<int64_t>(seconds * 1e9), &made, &error);
    }
    if (code == EDDY_OK) return py::make_tuple(0, PyValue(made));
    if (code != EDDY_NOT_DONE && code != EDDY_END) raise(code, error);
    return py::make_tuple(code == EDDY_END ? 2 : 1, py::none());
  }
  int fd() const {
    int made = -1;
    check([&](auto e) { return api().rows_fd(handle_, &made, e); });
    return made;
  }
  void close() const {
    check_unlocked([&](auto e) { return api().rows_close(handle_, e); });
  }

 private:
  eddy_rows handle_ = nullptr;
};

class PyRun {
 public:
  explicit PyRun(const std::shared_ptr<PySession>& session)
      : wrapped_session_(py::cast(session)),
        session_(session.get()),
        inputs_(session_->inputs().size(), py::none()),
        outputs_(session_->outputs().size(), py::none()),
        rows_(session_->outputs().size(), py::none()) {
    check([&](auto e) { return api().run_create(session_->get(), &handle_, e); });
  }
  ~PyRun() {
    bool is_over = true;
    {
      const Unlocked unlocked;
      api().run_cancel(handle_, nullptr);
      is_over = api().run_wait(handle_, -1, nullptr) != EDDY_WOULD_DEADLOCK;
      api().release(handle_);
    }
    if (is_over) return;
    // It still uses what is bound, which therefore stays for good.
    for (auto* const all : {&inputs_, &outputs_, &rows_}) {
      for (py::object& each : *all) each.release();
    }
  }
  PyRun(const PyRun&) = delete;
  PyRun& operator=(const PyRun&) = delete;

  void bind_input(size_t index, const py::object& object) {
    if (index >= inputs_.size()) throw py::index_error("no such input");
    inputs_[index] = python::bind_input(handle_, index, session_->inputs()[index], object);
  }
  // Of a run that has ended: lets go of what it read, which must be bound anew before the next.
  void forget_inputs() { std::fill(inputs_.begin(), inputs_.end(), py::none()); }
  void bind_output(size_t index, const py::array& array) {
    if (index >= outputs_.size()) throw py::index_error("no such output");
    const std::string name = "output '" + session_->outputs()[index].name + "'";
    if (!array.writeable()) raise(EDDY_INVALID_ARGUMENT, name + " is bound to read-only memory");
    if (!dense(array).is(array)) {
      raise(EDDY_INVALID_ARGUMENT, name + " is bound to an array that is not dense (C order)");
    }
    const eddy_tensor view = view_of(array);
    if (view.element == EDDY_STRING) {
      raise(EDDY_INVALID_ARGUMENT, name + " is bound to strings, which have no fixed size");
    }
    check([&](auto e) { return api().run_bind_output_memory(handle_, index, &view, e); });
    outputs_[index] = array;
    may_share_ = true;
  }
  void stream(size_t index, const py::object& rows) {
    check([&](auto e) {
      return api().run_stream_output(handle_, index, rows.cast<const PyRows&>().get(), e);
    });
    rows_[index] = rows;
  }
  void execute(double timeout, int priority) {
    check_bound();
    session_->check_may_wait();
    python::execute(handle_, run_options(timeout, priority));
  }
  void submit(double timeout, int priority) {
    check_bound();
    const eddy_run_options options = run_options(timeout, priority);
    check_unlocked(
        [&](auto e) { return api().run_submit(handle_, &options, nullptr, nullptr, nullptr, e); });
  }
  // False: it has not ended in time.
  bool wait(double seconds) const {
    session_->check_may_wait();
    eddy_error error = nullptr;
    eddy_code code = EDDY_OK;
    {
      const Unlocked unlocked;
      code = api().run_wait(handle_, static_cast<int64_t>(seconds * 1e9), &error);
    }
    return ended(code, error);
  }
  bool poll() const {
    eddy_error error = nullptr;
    const eddy_code code = api().run_poll(handle_, &error);
    return ended(code, error);
  }
  void cancel() const {
    check_unlocked([&](auto e) { return api().run_cancel(handle_, e); });
  }
  int fd() const {
    int made = -1;
    check([&](auto e) { return api().run_fd(handle_, &made, e); });
    return made;
  }
  void start_trace() const {
    check_unlocked([&](auto e) { return api().run_start_trace(handle_, e); });
  }
  std::string stop_trace() const {
    eddy_value made = nullptr;
    check_unlocked([&](auto e) { return api().run_stop_trace(handle_, &made, e); });
    return Value(made).text();
  }
  // The array that is bound there, or the value.
  py::object output(size_t index) const {
    if (index < outputs_.size() && !outputs_[index].is_none()) return outputs_[index];
    eddy_value made = nullptr;
    check([&](auto e) { return api().run_output(handle_, index, &made, e); });
    return py::cast(PyValue(made));
  }

  template <typename Visit>
  void traverse(Visit visit) const {
    visit(wrapped_session_.ptr());
  }

 private:
  static bool ended(eddy_code code, eddy_error error) {
    if (code == EDDY_NOT_DONE) return false;
    if (code != EDDY_OK) raise(code, error);
    return true;
  }
  void check_bound() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].is_none()) continue;
      raise(EDDY_INVALID_ARGUMENT, "input '" + session_->inputs()[i].name + "' is not given");
    }
    if (!std::exchange(may_share_, false)) return;
    check_outputs_are_apart();
  }
  // Not before the run: two arrays may change places, one after the other.
  void check_outputs_are_apart() {
    struct Range {
      const char* begin;
      const char* end;
      size_t output;
    };
    std::vector<Range> ranges;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].is_none()) continue;
      const auto array = py::reinterpret_borrow<py::array>(outputs_[i]);
      const auto* const begin = static_cast<const char*>(array.data());
      if (array.nbytes() > 0) ranges.push_back({begin, begin + array.nbytes(), i});
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].begin >= ranges[i - 1].end) continue;
      may_share_ = true;
      const auto name = [&](size_t at) { return session_->outputs()[ranges[at].output].name; };
      raise(EDDY_INVALID_ARGUMENT, "outputs '" + name(i - 1) + "' and '" + name(i) +
                                       "' are bound to the same memory; give each an array of its "
                                       "own");
    }
  }

  const py::object wrapped_session_;
  PySession* const session_;  // that one
  eddy_run handle_ = nullptr;
  std::vector<py::object> inputs_, outputs_, rows_;  // what the run uses
  bool may_share_ = false;  // outputs have been bound since they were found to be apart
};

}  // namespace

eddy_run_options run_options(double timeout, int priority) {
  eddy_run_options options = {};
  options.struct_size = sizeof(options);
  if (timeout < 0 || timeout > 9e9) raise(EDDY_INVALID_ARGUMENT, "a timeout is 0 to 9e9 seconds");
  options.timeout_ns = static_cast<int64_t>(timeout * 1e9);
  options.priority = priority;
  return options;
}

py::object bind_input(eddy_run run, size_t index, const Description& input,
                      const py::object& object) {
  const bool is_tensor = input.type.wrappers[0] == 0 && input.type.element != EDDY_STRING;
  if (is_tensor && py::isinstance<py::array>(object)) [[likely]] {
    py::array array = dense(py::reinterpret_borrow<py::array>(object));
    const eddy_tensor view = view_of(array);
    if (view.element != EDDY_STRING) {
      check([&](auto e) { return api().run_bind_input_memory(run, index, &view, e); });
      return array;
    }
  }
  const bool is_list = input.type.wrappers[0] == 1 && py::isinstance<py::sequence>(object);
  const py::object value =
      is_list ? py::module_::import("eddy._core").attr("sequence")(object, input.type.element)
              : py::cast(PyValue::of(object, input.type.element));
  check([&](auto e) {
    return api().run_bind_input(run, index, value.cast<const PyValue&>().get(), e);
  });
  return value;
}

void execute(eddy_run run, const eddy_run_options& options) {
  eddy_error error = nullptr;
  eddy_code code = EDDY_OK;
  bool was_interrupted = false;
  {
    const Interruptible watch(run);
    // A signal from before the watch would cancel nothing; one from here on does.
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    const Unlocked unlocked;
    const bool is_plain = options.timeout_ns == 0 && options.priority == 0;
    code = api().run_execute(run, is_plain ? nullptr : &options, &error);
    was_interrupted = watch.was_interrupted();
  }
  if (was_interrupted && PyErr_CheckSignals() != 0) {
    if (error != nullptr) api().release(error);
    throw py::error_already_set();
  }
  if (code != EDDY_OK) [[unlikely]]
    raise(code, error);
}

void add_runs(py::module_& m) {
  py::class_<PyRows>(m, "Rows")
      .def(py::init<size_t>(), py::arg("max_waiting"))
      .def("next", &PyRows::next, py::arg("seconds"))
      .def("fd", &PyRows::fd)
      .def("close", &PyRows::close);
  py::class_<PyRun>(m, "Run", collected<PyRun>())
      .def(py::init<const std::shared_ptr<PySession>&>(), py::arg("session"))
      .def("bind_input", &PyRun::bind_input, py::arg("index"), py::arg("object"))
      .def("forget_inputs", &PyRun::forget_inputs)
      .def("bind_output", &PyRun::bind_output, py::arg("index"), py::arg("array"))
      .def("stream", &PyRun::stream, py::arg("index"), py::arg("rows"))
      .def("execute", &PyRun::execute, py::arg("timeout") = 0.0, py::arg("priority") = 0)
      .def("submit", &PyRun::submit, py::arg("timeout") = 0.0, py::arg("priority") = 0)
      .def("wait", &PyRun::wait, py::arg("seconds"))
      .def("poll", &PyRun::poll)
      .def("cancel", &PyRun::cancel)
      .def("start_trace", &PyRun::start_trace)
      .def("stop_trace", &PyRun::stop_trace)
      .def("fd", &PyRun::fd)
      .def("output", &PyRun::output, py::arg("index"));
}

}  // namespace eddy::python
