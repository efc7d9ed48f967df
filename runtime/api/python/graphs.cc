#include "runtime/api/python/graphs.h"

#include <pybind11/stl.h>

#include <deque>
#include <optional>

#include "runtime/api/python/collected.h"
#include "runtime/api/python/operators.h"
#include "runtime/api/python/sessions.h"

namespace eddy::python {
namespace {

using Ids = std::vector<eddy_value_id>;
using OptionalDims = std::optional<std::vector<int64_t>>;

// A place of the caller's, as the C interface reads it.
struct Place {
  explicit Place(const py::object& given) {
    if (given.is_none()) return;
    const auto parts = given.cast<py::tuple>();
    file = parts[0].cast<std::string>();
    text = parts[3].cast<std::string>();
    at = {sizeof(at), file.c_str(), parts[1].cast<uint32_t>(), parts[2].cast<uint32_t>(),
          text.c_str()};
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  const eddy_location* get_or_null() const { return at.struct_size == 0 ? nullptr : &at; }
  std::string file, text;
  eddy_location at = {};
};

eddy_type type_of(int element, const OptionalDims& dims) {
  eddy_type made = {};
  made.struct_size = sizeof(made);
  made.element = static_cast<eddy_element>(element);
  made.rank = EDDY_UNRANKED;
  if (!dims) return made;
  if (dims->size() > EDDY_MAX_RANK) {
    raise(EDDY_INVALID_ARGUMENT, "a tensor has at most " + std::to_string(EDDY_MAX_RANK) +
                                     " axes, not " + std::to_string(dims->size()));
  }
  made.rank = static_cast<int32_t>(dims->size());
  std::copy(dims->begin(), dims->end(), made.dims);
  return made;
}

// Attributes of Python's as the C interface has them: numbers, texts, lists of one kind, arrays,
// a TensorType.
class AttributeList {
 public:
  explicit AttributeList(const py::dict& given) {
    for (const auto& [name, value] : given) add(py::str(name), value);
  }
  AttributeList(const AttributeList&) = delete;
  AttributeList& operator=(const AttributeList&) = delete;
  const std::vector<eddy_attribute>& get() const { return made_; }

 private:
  void add(const std::string& name, const py::handle& value) {
    eddy_attribute made = {};
    made.struct_size = sizeof(made);
    made.name = names_.emplace_back(name).c_str();
    if (py::isinstance<py::array>(value)) {
      arrays_.push_back(dense(py::reinterpret_borrow<py::array>(value)));
      tensors_.push_back(view_of(arrays_.back()));
      made.kind = EDDY_ATTRIBUTE_TENSOR;
      made.tensor = &tensors_.back();
    } else if (py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value)) {
      made.kind = EDDY_ATTRIBUTE_STRING;
      made.s = names_.emplace_back(value.cast<std::string>()).c_str();
    } else if (py::isinstance<py::float_>(value)) {
      made.kind = EDDY_ATTRIBUTE_FLOAT;
      made.f = value.cast<float>();
    } else if (PyIndex_Check(value.ptr()) != 0) {
      made.kind = EDDY_ATTRIBUTE_INT;
      made.i = py::int_(py::reinterpret_borrow<py::object>(value)).cast<int64_t>();
    } else if (py::hasattr(value, "element")) {  // a TensorType
      const auto dims = value.attr("shape").cast<OptionalDims>();
      made.kind = EDDY_ATTRIBUTE_TYPE;
      made.type = &types_.emplace_back(type_of(value.attr("element").cast<int>(), dims));
    } else if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
      add_list(py::reinterpret_borrow<py::sequence>(value), made);
    } else {
      throw py::type_error("attribute '" + name +
                           "' is no number, text, array, or list of numbers or texts");
    }
    made_.push_back(made);
  }

  void add_list(const py::sequence& values, eddy_attribute& made) {
    made.count = py::len(values);
    const bool is_text = made.count > 0 && py::isinstance<py::str>(values[0]);
    bool has_float = false;
    for (const py::handle& each : values) has_float |= py::isinstance<py::float_>(each);
    if (is_text) {
      made.kind = EDDY_ATTRIBUTE_STRINGS;
      auto& texts = texts_.emplace_back();
      for (const py::handle& each : values) {
        texts.push_back(names_.emplace_back(each.cast<std::string>()).c_str());
      }
      made.strings = texts.data();
    } else if (has_float) {
      made.kind = EDDY_ATTRIBUTE_FLOATS;
      made.floats = floats_.emplace_back(values.cast<std::vector<float>>()).data();
    } else {
      made.kind = EDDY_ATTRIBUTE_INTS;
      made.ints = ints_.emplace_back(values.cast<std::vector<int64_t>>()).data();
    }
  }

  // Deques: what has been pointed to stays where it is.
  std::deque<std::string> names_;
  std::deque<py::array> arrays_;
  std::deque<eddy_tensor> tensors_;
  std::deque<eddy_type> types_;
  std::deque<std::vector<const char*>> texts_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<int64_t>> ints_;
  std::vector<eddy_attribute> made_;
};

class PyGraph {
 public:
  PyGraph(const std::shared_ptr<PyLibrary>& library, const std::string& name)
      : library_(py::cast(library)) {
    check([&](auto e) { return api().graph_create(library->get(), name.c_str(), &handle_, e); });
  }
  PyGraph(const std::shared_ptr<PyLibrary>& library, eddy_graph handle)
      : library_(py::cast(library)), handle_(handle) {}
  ~PyGraph() { release_unlocked(handle_); }
  PyGraph(const PyGraph&) = delete;
  PyGraph& operator=(const PyGraph&) = delete;

  static std::unique_ptr<PyGraph> load(const std::shared_ptr<PyLibrary>& library,
                                       const std::string& path) {
    eddy_graph made = nullptr;
    check_unlocked(
        [&](auto e) { return api().graph_import_file(library->get(), path.c_str(), &made, e); });
    return std::make_unique<PyGraph>(library, made);
  }
  static std::unique_ptr<PyGraph> parse(const std::shared_ptr<PyLibrary>& library,
                                        const py::bytes& bytes) {
    const auto view = static_cast<std::string_view>(bytes);
    eddy_graph made = nullptr;
    check_unlocked([&](auto e) {
      return api().graph_import_bytes(library->get(), view.data(), view.size(), &made, e);
    });
    return std::make_unique<PyGraph>(library, made);
  }

  int64_t symbol(const std::string& name) {
    int64_t made = 0;
    check([&](auto e) { return api().graph_symbol(handle_, name.c_str(), &made, e); });
    return made;
  }
  eddy_value_id input(const std::string& name, int element, const OptionalDims& dims) {
    const eddy_type type = type_of(element, dims);
    eddy_value_id made = 0;
    check([&](auto e) { return api().graph_input(handle_, name.c_str(), &type, &made, e); });
    return made;
  }
  void output(const std::string& name, eddy_value_id value) {
    check([&](auto e) { return api().graph_output(handle_, name.c_str(), value, e); });
  }
  eddy_value_id constant(const py::array& array, const std::string& name) {
    const py::array kept = dense(array);
    const eddy_tensor view = view_of(kept);
    eddy_value_id made = 0;
    check([&](auto e) { return api().graph_constant(handle_, &view, name.c_str(), &made, e); });
    return made;
  }
  Ids node(const std::string& op, const std::string& domain, int opset, const Ids& inputs,
           uint32_t num_outputs, const py::dict& attributes, const std::string& name,
           const py::object& at) {
    const AttributeList list(attributes);
    const Place place(at);
    eddy_node node = {};
    node.struct_size = sizeof(node);
    node.op = op.c_str();
    node.domain = domain.c_str();
    node.opset = opset;
    node.num_outputs = num_outputs;
    node.inputs = inputs.data();
    node.num_inputs = inputs.size();
    node.attributes = list.get().data();
    node.num_attributes = list.get().size();
    node.name = name.empty() ? nullptr : name.c_str();
    node.location = place.get_or_null();
    Ids made(num_outputs);
    check_unlocked([&](auto e) { return api().graph_node(handle_, &node, made.data(), e); });
    return made;
  }
  Ids begin_while(const Ids& initial, eddy_value_id trip_limit, uint32_t num_rows,
                  const std::string& name, const py::object& at) {
    const Place place(at);
    eddy_while loop = {};
    loop.struct_size = sizeof(loop);
    loop.name = name.empty() ? nullptr : name.c_str();
    loop.initial = initial.data();
    loop.num_carried = initial.size();
    loop.trip_limit = trip_limit;
    loop.num_rows = num_rows;
    loop.location = place.get_or_null();
    Ids made(initial.size() + 1);
    check([&](auto e) { return api().graph_begin_while(handle_, &loop, made.data(), e); });
    return made;
  }
  Ids begin_after(eddy_value_id predicate, const Ids& forwarded) {
    Ids made(forwarded.size() + 1);
    check([&](auto e) {
      return api().graph_begin_after(handle_, predicate, forwarded.data(), forwarded.size(),
                                     made.data(), e);
    });
    return made;
  }
  Ids end_while(const Ids& next, size_t num_outputs) {
    Ids made(num_outputs);
    check_unlocked([&](auto e) {  // may infer the loop's types again
      return api().graph_end_while(handle_, next.data(), next.size(), made.data(), made.size(), e);
    });
    return made;
  }
  void begin_case(eddy_value_id selector, uint32_t num_branches, int default_branch,
                  const std::string& name, const py::object& at) {
    const Place place(at);
    eddy_case choice = {};
    choice.struct_size = sizeof(choice);
    choice.name = name.empty() ? nullptr : name.c_str();
    choice.selector = selector;
    choice.num_branches = num_branches;
    choice.default_branch = default_branch;
    choice.location = place.get_or_null();
    check([&](auto e) { return api().graph_begin_case(handle_, &choice, e); });
  }
  void begin_branch() {
    check([&](auto e) { return api().graph_begin_branch(handle_, e); });
  }
  void end_branch(const Ids& results) {
    check(
        [&](auto e) { return api().graph_end_branch(handle_, results.data(), results.size(), e); });
  }
  Ids end_case(size_t num_outputs) {
    Ids made(num_outputs);
    check([&](auto e) { return api().graph_end_case(handle_, made.data(), made.size(), e); });
    return made;
  }
  py::tuple type(eddy_value_id value) const {
    eddy_type made = {};
    made.struct_size = sizeof(made);
    check([&](auto e) { return api().graph_type(handle_, value, &made, e); });
    py::object dims = py::none();
    if (made.rank >= 0) dims = py::cast(std::vector<int64_t>(made.dims, made.dims + made.rank));
    return py::make_tuple(made.element, dims);
  }
  void finish() {
    check_unlocked([&](auto e) { return api().graph_finish(handle_, e); });
  }
  void save(const std::string& path) const {
    check_unlocked([&](auto e) { return api().graph_export_file(handle_, path.c_str(), e); });
  }
  std::string print() const { return text(api().graph_print); }
  py::bytes to_bytes() const { return text(api().graph_export_bytes); }

  void save_plan(const std::string& path, const py::dict& options) const {
    const Options texts = texts_of(options);
    const auto given = as_c(texts);
    check_unlocked([&](auto e) {
      return api().graph_save_plan(handle_, given.data(), given.size(), path.c_str(), e);
    });
  }

  std::shared_ptr<PySession> session(const py::dict& options) const {
    const Options texts = texts_of(options);
    const auto given = as_c(texts);
    eddy_session made = nullptr;
    check_unlocked([&](auto e) {
      return api().session_create(handle_, given.data(), given.size(), &made, e);
    });
    const bool has_calls = library_.cast<const PyLibrary&>().has_calls();
    return std::make_shared<PySession>(made, library_, has_calls);
  }

  template <typename Visit>
  void traverse(Visit visit) const {
    visit(library_.ptr());
  }

 private:
  std::string text(eddy_code (*call)(eddy_graph, eddy_value*, eddy_error*)) const {
    eddy_value made = nullptr;
    check_unlocked([&](auto e) { return call(handle_, &made, e); });
    return Value(made).text();
  }

  const py::object library_;
  eddy_graph handle_ = nullptr;
};

}  // namespace

void add_graphs(py::module_& m) {
  py::class_<PyGraph>(m, "Graph", collected<PyGraph>())
      .def(py::init<const std::shared_ptr<PyLibrary>&, const std::string&>(), py::arg("library"),
           py::arg("name"))
      .def_static("load", &PyGraph::load, py::arg("library"), py::arg("path"))
      .def_static("parse", &PyGraph::parse, py::arg("library"), py::arg("data"))
      .def("symbol", &PyGraph::symbol, py::arg("name"))
      .def("input", &PyGraph::input, py::arg("name"), py::arg("element"), py::arg("dims"))
      .def("output", &PyGraph::output, py::arg("name"), py::arg("value"))
      .def("constant", &PyGraph::constant, py::arg("array"), py::arg("name") = "")
      .def("node", &PyGraph::node, py::arg("op"), py::arg("domain"), py::arg("opset"),
           py::arg("inputs"), py::arg("num_outputs"), py::arg("attributes"), py::arg("name"),
           py::arg("at"))
      .def("begin_while", &PyGraph::begin_while, py::arg("initial"), py::arg("trip_limit"),
           py::arg("num_rows"), py::arg("name"), py::arg("at"))
      .def("begin_after", &PyGraph::begin_after, py::arg("predicate"), py::arg("forwarded"))
      .def("end_while", &PyGraph::end_while, py::arg("next"), py::arg("num_outputs"))
      .def("begin_case", &PyGraph::begin_case, py::arg("selector"), py::arg("num_branches"),
           py::arg("default_branch"), py::arg("name"), py::arg("at"))
      .def("begin_branch", &PyGraph::begin_branch)
      .def("end_branch", &PyGraph::end_branch, py::arg("results"))
      .def("end_case", &PyGraph::end_case, py::arg("num_outputs"))
      .def("type", &PyGraph::type, py::arg("value"))
      .def("finish", &PyGraph::finish)
      .def("save", &PyGraph::save, py::arg("path"))
      .def("print", &PyGraph::print)
      .def("to_bytes", &PyGraph::to_bytes)
      .def("save_plan", &PyGraph::save_plan, py::arg("path"), py::arg("options"))
      .def("session", &PyGraph::session, py::arg("options"));
}

}  // namespace eddy::python
