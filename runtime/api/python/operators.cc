#include "runtime/api/python/operators.h"

#include <pybind11/stl.h>

#include <cstring>

#include "runtime/api/python/arrays.h"
#include "runtime/api/python/call_thread.h"
#include "runtime/api/python/collected.h"

namespace eddy::python {

// What an operator's table points to; destroyed by any thread.
struct UserFunction {
  std::string name;
  std::shared_ptr<CallThread> thread;
  std::vector<std::pair<std::string, int32_t>> attributes;
  // Borrowed from the PyLibrary, and null when that has gone; with the interpreter's lock.
  PyObject* function = nullptr;
  PyObject* shapes = nullptr;
};

namespace {

void destroy(void* user) { delete static_cast<UserFunction*>(user); }

// With the interpreter's lock.
py::object held(PyObject* function) {
  if (function == nullptr) throw std::runtime_error("its session and its graph have gone");
  return py::reinterpret_borrow<py::object>(function);
}

// A failure of a function, with what Python says of it.
std::string said(py::error_already_set& error) {
  std::string text = py::str(error.type().attr("__name__"));
  const std::string value = py::str(error.value());
  if (!value.empty()) text += ": " + value;
  // Where it was raised: the innermost frame.
  py::object trace = error.trace();
  while (trace && !trace.is_none() && !trace.attr("tb_next").is_none()) {
    trace = trace.attr("tb_next");
  }
  if (trace && !trace.is_none()) {
    const std::string file = py::str(trace.attr("tb_frame").attr("f_code").attr("co_filename"));
    text += " (" + file + ":" + std::string(py::str(trace.attr("tb_lineno"))) + ")";
  }
  return text;
}

// What went wrong, or "". With the interpreter's lock.
template <typename Body>
std::string guarded(Body body) {
  try {
    return body();
  } catch (py::error_already_set& error) {
    return said(error);
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string shape_text(const eddy_tensor& view) {
  std::string text;
  for (int32_t i = 0; i < view.rank; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(view.dims[i]);
  }
  return "(" + text + ")";
}

// Copies a result into the memory that the graph has for it.
std::string give(const py::handle& result, const eddy_tensor& to, size_t index) {
  const std::string what = "output " + std::to_string(index) + " ";
  if (result.is_none()) return what + "is None: the function returned no array for it";
  const py::module_ numpy = py::module_::import("numpy");
  const py::array array = dense(numpy.attr("asarray")(result));
  const py::dtype wanted = dtype_of(to.element);
  if (!numpy.attr("can_cast")(array.dtype(), wanted, "same_kind").cast<bool>()) {
    return what + "is of dtype " + py::cast<std::string>(array.dtype().attr("name")) + ", not " +
           py::cast<std::string>(wanted.attr("name"));
  }
  const py::array same = dense(array.attr("astype")(wanted, py::arg("copy") = false));
  const eddy_tensor from = view_of(same);
  if (from.rank != to.rank || !std::equal(from.dims, from.dims + from.rank, to.dims)) {
    return what + "has shape " + shape_text(from) + ", not " + shape_text(to);
  }
  if (const size_t size = size_bytes(to); size > 0) std::memcpy(to.data, from.data, size);
  return "";
}

py::tuple arguments_of(const eddy_tensor* inputs, size_t count) {
  py::tuple arguments(count);
  for (size_t i = 0; i < count; ++i) {
    const bool is_omitted = inputs[i].element == EDDY_UNDEFINED;
    arguments[i] = is_omitted ? py::object(py::none()) : py::object(copy_of(inputs[i]));
  }
  return arguments;
}

// A call as it is until it has been answered: the views' memory stays that long, the call does not.
struct Owed {
  eddy_pending pending = nullptr;
  std::vector<eddy_tensor> inputs, outputs;
  std::vector<std::vector<int64_t>> dims;

  void keep(const eddy_tensor* from, size_t count, std::vector<eddy_tensor>& to) {
    for (size_t i = 0; i < count; ++i) {
      to.push_back(from[i]);
      if (from[i].rank > 0) dims.emplace_back(from[i].dims, from[i].dims + from[i].rank);
      if (from[i].rank > 0) to.back().dims = dims.back().data();
    }
  }
};

void answer(const Owed& owed, const std::string& failure, int64_t decision) {
  const eddy_code code = failure.empty() ? EDDY_OK : EDDY_RUN_FAILED;
  api().pending_complete(owed.pending, code, decision, failure.c_str(), nullptr);
}

std::shared_ptr<Owed> defer(const eddy_call* call) {
  auto owed = std::make_shared<Owed>();
  owed->keep(call->inputs, call->num_inputs, owed->inputs);
  owed->keep(call->outputs, call->num_outputs, owed->outputs);
  owed->pending = call->defer(call->impl);
  return owed;
}

// Takes the interpreter's lock, unless the interpreter is gone.
template <typename Body>
std::string with_python(Body body) {
  if (!Py_IsInitialized()) return "Python has ended";
  const Locked locked;
  return guarded(body);
}

std::string compute(const UserFunction& user, PyObject* attributes, const Owed& owed) {
  const py::object function = held(user.function);
  const py::dict named = py::reinterpret_borrow<py::dict>(attributes);
  const py::object made = function(*arguments_of(owed.inputs.data(), owed.inputs.size()), **named);
  if (made.is_none()) return "the function returned None, not its outputs";
  if (owed.outputs.size() == 1 && !py::isinstance<py::tuple>(made)) {
    return give(made, owed.outputs[0], 0);
  }
  const size_t count = py::isinstance<py::tuple>(made) ? py::len(made) : 1;
  if (count != owed.outputs.size()) {
    return "the function gives " + std::to_string(count) + " outputs, not " +
           std::to_string(owed.outputs.size());
  }
  std::string failure;
  for (size_t i = 0; i < count && failure.empty(); ++i) {
    failure = give(made[py::int_(i)], owed.outputs[i], i);
  }
  return failure;
}

eddy_code run(void* user, const eddy_call* call) {
  try {
    auto* const mine = static_cast<UserFunction*>(user);
    auto* const attributes = static_cast<PyObject*>(call->state);
    const auto owed = defer(call);
    if (owed->pending == nullptr) return EDDY_RESOURCE_EXHAUSTED;
    mine->thread->post([mine, attributes, owed] {
      const std::string failure = with_python([&] { return compute(*mine, attributes, *owed); });
      answer(*owed, failure, 0);
    });
    return EDDY_LATER;
  } catch (const std::exception&) {
    return EDDY_RESOURCE_EXHAUSTED;
  }
}

eddy_code decide(void* user, const eddy_call* call, int64_t*) {
  try {
    auto* const mine = static_cast<UserFunction*>(user);
    const auto owed = defer(call);
    if (owed->pending == nullptr) return EDDY_RESOURCE_EXHAUSTED;
    mine->thread->post([mine, owed] {
      int64_t decision = 0;
      const std::string failure = with_python([&] {
        const py::object function = held(mine->function);
        decision = py::int_(function(*arguments_of(owed->inputs.data(), owed->inputs.size())))
                       .cast<int64_t>();
        return std::string();
      });
      answer(*owed, failure, decision);
    });
    return EDDY_LATER;
  } catch (const std::exception&) {
    return EDDY_RESOURCE_EXHAUSTED;
  }
}

// What the node has: one that it has not is the fallback, whichever that is. The function's own
// default stands for it then.
py::dict attributes_of(const UserFunction& user, const eddy_shapes* node) {
  py::dict made;
  for (const auto& [text, kind] : user.attributes) {
    const char* const name = text.c_str();
    if (kind == EDDY_ATTRIBUTE_INT) {
      const int64_t found = node->attribute_int(node->impl, name, 0);
      if (found != 0 || node->attribute_int(node->impl, name, 1) == 0) made[name] = found;
    } else if (kind == EDDY_ATTRIBUTE_FLOAT) {
      const float found = node->attribute_float(node->impl, name, 0);
      if (found != 0 || node->attribute_float(node->impl, name, 1) == 0) made[name] = found;
    } else if (const char* found = node->attribute_string(node->impl, name, nullptr)) {
      made[name] = found;
    }
  }
  return made;
}

py::object type_of(const eddy_type& type) {
  if (type.element == EDDY_UNDEFINED) return py::none();
  py::object dims = py::none();
  if (type.rank >= 0) dims = py::cast(std::vector<int64_t>(type.dims, type.dims + type.rank));
  return py::make_tuple(type.element, dims);
}

void set_type(const py::handle& given, eddy_type& type) {
  const auto pair = given.cast<py::tuple>();
  type.element = pair[0].cast<eddy_element>();
  type.rank = EDDY_UNRANKED;
  if (pair[1].is_none()) return;
  const auto dims = pair[1].cast<std::vector<int64_t>>();
  if (dims.size() > EDDY_MAX_RANK) throw std::runtime_error("more than 8 axes");
  type.rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), type.dims);
}

eddy_code shapes(void* user, const eddy_shapes* node) {
  const auto& mine = *static_cast<UserFunction*>(user);
  const std::string failure = with_python([&]() -> std::string {
    py::list inputs;
    for (uint32_t i = 0; i < node->num_inputs; ++i) inputs.append(type_of(node->inputs[i]));
    const py::object function = held(mine.shapes);
    const py::object given = function(inputs, **attributes_of(mine, node));
    if (py::isinstance<py::str>(given)) return given.cast<std::string>();  // what is wrong
    const py::list made = given;
    if (py::len(made) != node->num_outputs) {
      return "the shape function gives " + std::to_string(py::len(made)) + " types, not " +
             std::to_string(node->num_outputs);
    }
    for (uint32_t i = 0; i < node->num_outputs; ++i) set_type(made[i], node->outputs[i]);
    return "";
  });
  if (failure.empty()) return EDDY_OK;
  node->fail(node->impl, failure.c_str());
  return EDDY_INVALID_ARGUMENT;
}

// A node's state: its attributes, read once.
eddy_code bind(void* user, const eddy_shapes* node, void** state) {
  const auto& mine = *static_cast<UserFunction*>(user);
  const std::string failure = with_python([&] {
    *state = attributes_of(mine, node).release().ptr();
    return std::string();
  });
  if (failure.empty()) return EDDY_OK;
  node->fail(node->impl, failure.c_str());
  return EDDY_INVALID_ARGUMENT;
}

void unbind(void*, void* state) {
  if (!Py_IsInitialized()) return;
  const Locked locked;
  Py_XDECREF(static_cast<PyObject*>(state));
}

}  // namespace

bool is_inside_call() { return CallThread::is_this_thread(); }

PyLibrary::PyLibrary(const py::dict& context_options) {
  Options texts;
  for (const auto& [key, value] : context_options) {
    texts.emplace_back(py::str(key), py::str(value));
  }
  const auto given = as_c(texts);
  eddy_context context = nullptr;
  check([&](auto e) { return api().context_create(given.data(), given.size(), &context, e); });
  const Handle<eddy_context> owned(context);
  check([&](auto e) { return api().library_create(context, &library_, e); });
}

PyLibrary::~PyLibrary() {
  clear();
  release_unlocked(library_);
}

void PyLibrary::hold(UserFunction& user, const py::object& function, const py::object& shapes) {
  user.function = function.ptr();
  user.shapes = shapes.ptr();
  held_.push_back(function);
  if (shapes) held_.push_back(shapes);
  users_.push_back(&user);
}

void PyLibrary::clear() {
  for (UserFunction* const each : users_) each->function = each->shapes = nullptr;
  users_.clear();
  const std::vector<py::object> gone = std::exchange(held_, {});
}

std::shared_ptr<CallThread> PyLibrary::thread() {
  if (thread_ == nullptr) thread_ = std::make_shared<CallThread>();
  return thread_;
}

void PyLibrary::add_operator(const std::string& domain, const std::string& name,
                             uint32_t num_inputs, uint32_t num_outputs,
                             const py::dict& attribute_kinds, const py::object& function,
                             const py::object& shape_function) {
  auto user = std::make_unique<UserFunction>();
  user->name = name;
  user->thread = thread();
  std::vector<const char*> names;
  std::vector<int32_t> kinds;
  for (const auto& [key, kind] : attribute_kinds) {
    user->attributes.emplace_back(py::str(key), kind.cast<int32_t>());
  }
  for (const auto& [key, kind] : user->attributes) {
    names.push_back(key.c_str());
    kinds.push_back(kind);
  }
  eddy_operator table = {};
  table.struct_size = sizeof(table);
  table.name = name.c_str();
  table.domain = domain.c_str();
  table.since_version = 1;
  table.flags = EDDY_ANSWERS_LATER;
  table.min_inputs = table.max_inputs = num_inputs;
  table.num_outputs = num_outputs;
  table.user = user.get();
  table.destroy = destroy;
  table.attribute_names = names.data();
  table.attribute_kinds = kinds.data();
  table.num_attributes = names.size();
  table.shapes = shapes;
  table.bind = bind;
  table.unbind = unbind;
  table.run = run;
  check([&](auto e) { return api().library_add_operator(library_, &table, e); });
  hold(*user.release(), function, shape_function);
}

void PyLibrary::add_host_function(const std::string& name, const py::object& function) {
  auto user = std::make_unique<UserFunction>();
  user->name = name;
  user->thread = thread();
  check([&](auto e) {
    return api().library_add_host_function(library_, name.c_str(), EDDY_ANSWERS_LATER, decide,
                                           user.get(), destroy, e);
  });
  hold(*user.release(), function, {});
}

void add_operators(py::module_& m) {
  py::class_<PyLibrary, std::shared_ptr<PyLibrary>>(m, "Library", collected<PyLibrary>())
      .def(py::init<const py::dict&>(), py::arg("context_options") = py::dict())
      .def("add_operator", &PyLibrary::add_operator, py::arg("domain"), py::arg("name"),
           py::arg("num_inputs"), py::arg("num_outputs"), py::arg("attribute_kinds"),
           py::arg("function"), py::arg("shapes"))
      .def("add_host_function", &PyLibrary::add_host_function, py::arg("name"),
           py::arg("function"));
}

}  // namespace eddy::python
