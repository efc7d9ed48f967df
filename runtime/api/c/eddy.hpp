// long: header-only, which a program includes as one.
// eddy.hpp: the C interface for C++17 and later: handles that release themselves, errors as
// exceptions. Header-only; it adds nothing to the ABI, so any compiler may be on either side.
//
//   eddy::Context context(eddy::Options{{"threads", "2"}});
//   eddy::Library library(context);
//   eddy::Session session = eddy::Session::load(library, "model.onnx");
//   eddy::Run run(session);
//   run.bind_input(0, eddy::tensor(x.data(), dims));
//   run.execute();
//   eddy::Value y = run.output(0);
//
// Errors: every call throws eddy::Error, with the code, the line and the place in the caller's
// program, but for those that answer by false or nothing. No exception may leave a callback.
// Threads and lifetimes: those of eddy.h; handles keep alive what they need.
#ifndef EDDY_EDDY_HPP_
#define EDDY_EDDY_HPP_

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "eddy.h"

namespace eddy {
// Apart from the names inside the library, where a program links both.
inline namespace cpp_v1 {

inline const eddy_api& api() {
  static const eddy_api* const table = eddy_get_api(EDDY_API_VERSION);
  if (table == nullptr) throw std::runtime_error("this libeddy.so has another API version");
  return *table;
}

// A part of where in a graph an error is, outermost first.
struct Part {
  enum class Kind { kNode = EDDY_PART_NODE, kLoop = EDDY_PART_LOOP, kRegion = EDDY_PART_REGION };
  Kind kind;
  std::string name;
  int64_t iteration;  // of a loop; -1 where none is known
};

class Error : public std::runtime_error {
 public:
  // Takes the handle over.
  Error(eddy_code code, eddy_error error)
      : std::runtime_error(error == nullptr ? api().code_name(code) : api().error_message(error)),
        code_(code) {
    if (error == nullptr) {
      reason_ = what();
      return;
    }
    reason_ = api().error_reason(error);
    eddy_location at = {};
    at.struct_size = sizeof(at);
    if (api().error_location(error, &at) == EDDY_OK) {
      file_ = at.file;
      line_ = at.line;
      column_ = at.column;
      text_ = at.text;
    }
    for (size_t i = 0; i < api().error_num_parts(error); ++i) {
      eddy_path_part part = {};
      part.struct_size = sizeof(part);
      if (api().error_part(error, i, &part) != EDDY_OK) break;
      parts_.push_back({static_cast<Part::Kind>(part.kind), part.name, part.iteration});
    }
    api().release(error);
  }
  eddy_code code() const { return code_; }
  const std::string& reason() const { return reason_; }  // what() without place and path
  // Of the caller's program; may be empty.
  const std::string& file() const { return file_; }
  uint32_t line() const { return line_; }
  uint32_t column() const { return column_; }
  const std::string& text() const { return text_; }  // of that place: "while err > tol"
  // Where in the graph; empty where it is of no node.
  const std::vector<Part>& parts() const { return parts_; }
  // The innermost of its kind; null where there is none.
  const Part* loop() const { return last(Part::Kind::kLoop); }
  const Part* region() const { return last(Part::Kind::kRegion); }
  const Part* node() const { return last(Part::Kind::kNode); }

 private:
  const Part* last(Part::Kind kind) const {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
      if (part->kind == kind) return &*part;
    }
    return nullptr;
  }

  eddy_code code_;
  std::string reason_;
  std::string file_;
  uint32_t line_ = 0;
  uint32_t column_ = 0;
  std::string text_;
  std::vector<Part> parts_;
};

// Makes the call with a place for its error, and throws that.
template <typename Call>
void check(Call call) {
  eddy_error error = nullptr;
  const eddy_code code = call(&error);
  if (code != EDDY_OK) throw Error(code, error);
}

// One reference of a handle. Copies share the object.
template <typename T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T handle) : handle_(handle) {}
  Handle(const Handle& other) : handle_(other.handle_) {
    if (handle_ != nullptr) api().retain(handle_);
  }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != nullptr) api().release(handle_);
  }
  T get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 protected:
  T* out() { return &handle_; }

 private:
  T handle_ = nullptr;
};

template <typename T>
constexpr eddy_element element_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) return EDDY_FLOAT;
  if constexpr (std::is_same_v<U, double>) return EDDY_DOUBLE;
  if constexpr (std::is_same_v<U, bool>) return EDDY_BOOL;
  if constexpr (std::is_same_v<U, int8_t>) return EDDY_INT8;
  if constexpr (std::is_same_v<U, int16_t>) return EDDY_INT16;
  if constexpr (std::is_same_v<U, int32_t>) return EDDY_INT32;
  if constexpr (std::is_same_v<U, int64_t>) return EDDY_INT64;
  if constexpr (std::is_same_v<U, uint8_t>) return EDDY_UINT8;
  if constexpr (std::is_same_v<U, uint16_t>) return EDDY_UINT16;
  if constexpr (std::is_same_v<U, uint32_t>) return EDDY_UINT32;
  if constexpr (std::is_same_v<U, uint64_t>) return EDDY_UINT64;
  return EDDY_UNDEFINED;
}

// Shows the caller's memory and sizes, both of which must stay.
template <typename T>
eddy_tensor tensor(T* data, const std::vector<int64_t>& dims) {
  static_assert(element_of<T>() != EDDY_UNDEFINED, "this type has no element type");
  eddy_tensor made = {};
  made.data = const_cast<std::remove_cv_t<T>*>(data);
  made.dims = dims.data();
  made.rank = static_cast<int32_t>(dims.size());
  made.element = element_of<T>();
  return made;
}

inline eddy_type type(eddy_element element, const std::vector<int64_t>& dims) {
  eddy_type made = {};
  made.struct_size = sizeof(made);
  made.element = element;
  made.rank = static_cast<int32_t>(dims.size());
  for (size_t i = 0; i < dims.size() && i < EDDY_MAX_RANK; ++i) made.dims[i] = dims[i];
  return made;
}
inline eddy_type type(const eddy_tensor& of) {
  return type(of.element, {of.dims, of.dims + of.rank});
}

// "int[3, ?]", where the elements are called "int"; "int[...]" where the rank is unknown.
inline std::string print(const eddy_type& type, const std::string& element) {
  if (type.rank == EDDY_UNRANKED) return element + "[...]";
  std::string made = element;
  for (int32_t i = 0; i < type.rank; ++i) {
    made += i == 0 ? "[" : ", ";
    made += type.dims[i] < 0 ? "?" : std::to_string(type.dims[i]);
  }
  return made + (type.rank > 0 ? "]" : "");
}
// The narrowest type that is as wide as both, whose elements are the same: for eddy_while.types.
inline eddy_type join(const eddy_type& a, const eddy_type& b) {
  eddy_type made = a;
  if (a.rank != b.rank) made.rank = EDDY_UNRANKED;
  for (int32_t i = 0; i < made.rank; ++i) {
    if (a.dims[i] != b.dims[i]) made.dims[i] = EDDY_UNKNOWN_DIM;
  }
  return made;
}
// Whether each value of `narrow` is one of `wide`.
inline bool fits(const eddy_type& narrow, const eddy_type& wide) {
  if (narrow.element != wide.element) return false;
  if (wide.rank == EDDY_UNRANKED) return true;
  bool is_inside = narrow.rank == wide.rank;
  for (int32_t i = 0; is_inside && i < wide.rank; ++i) {
    is_inside = wide.dims[i] == EDDY_UNKNOWN_DIM || wide.dims[i] == narrow.dims[i];
  }
  return is_inside;
}

using Options = std::vector<std::pair<std::string, std::string>>;
inline std::vector<eddy_option> as_c(const Options& options) {
  std::vector<eddy_option> made;
  for (const auto& [key, value] : options) made.push_back({key.c_str(), value.c_str()});
  return made;
}

class Context : public Handle<eddy_context> {
 public:
  explicit Context(const Options& options = {}) {
    const auto given = as_c(options);
    check([&](auto e) { return api().context_create(given.data(), given.size(), out(), e); });
  }
  // Context context({{"threads", "1"}}), which could be the options of a context to be copied, too.
  explicit Context(std::initializer_list<Options::value_type> options)
      : Context(Options(options)) {}
  void set_log(eddy_log log, void* user) {
    check([&](auto e) { return api().context_set_log(get(), log, user, e); });
  }
  // Of tensors of sessions that are made with it from now on.
  void set_allocator(eddy_allocator allocator) {
    allocator.struct_size = sizeof(allocator);
    check([&](auto e) { return api().context_set_allocator(get(), &allocator, e); });
  }
};

class Library : public Handle<eddy_library> {
 public:
  explicit Library(const Context& context) {
    check([&](auto e) { return api().library_create(context.get(), out(), e); });
  }
  void add_operator(const eddy_operator& op) {
    check([&](auto e) { return api().library_add_operator(get(), &op, e); });
  }
  void add_host_function(const std::string& name, uint32_t flags, eddy_decide function, void* user,
                         void (*destroy)(void*) = nullptr) {
    check([&](auto e) {
      return api().library_add_host_function(get(), name.c_str(), flags, function, user, destroy,
                                             e);
    });
  }
};

class Value : public Handle<eddy_value> {
 public:
  Value() = default;
  explicit Value(eddy_value handle) : Handle(handle) {}
  static Value copy(const eddy_tensor& tensor) {
    Value made;
    check([&](auto e) { return api().value_copy(&tensor, made.out(), e); });
    return made;
  }
  // `release` is called once nothing reads the memory any more, also after a failure.
  static Value borrow(const eddy_tensor& tensor, eddy_function release, void* user) {
    Value made;
    check([&](auto e) { return api().value_borrow(&tensor, release, user, made.out(), e); });
    return made;
  }
  static Value of_strings(const std::vector<std::string>& strings,
                          const std::vector<int64_t>& dims) {
    size_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
    if (count != strings.size()) throw std::invalid_argument("as many strings as the shape has");
    std::string bytes;
    std::vector<int64_t> offsets = {0};
    for (const std::string& each : strings) {
      bytes += each;
      offsets.push_back(static_cast<int64_t>(bytes.size()));
    }
    Value made;
    check([&](auto e) {
      return api().value_from_strings(dims.data(), static_cast<int32_t>(dims.size()),
                                      offsets.data(), bytes.data(), made.out(), e);
    });
    return made;
  }
  static Value sequence(eddy_element element, const std::vector<Value>& values) {
    std::vector<eddy_value> handles;
    for (const Value& each : values) handles.push_back(each.get());
    Value made;
    check([&](auto e) {
      return api().value_sequence(element, handles.data(), handles.size(), made.out(), e);
    });
    return made;
  }
  static Value none() {
    Value made;
    check([&](auto e) { return api().value_none(made.out(), e); });
    return made;
  }
  // Takes the tensor over.
  static Value from_dlpack(DLManagedTensor* managed) {
    Value made;
    check([&](auto e) { return api().value_from_dlpack(managed, made.out(), e); });
    return made;
  }
  static Value from_dlpack(DLManagedTensorVersioned* managed) {
    Value made;
    check([&](auto e) { return api().value_from_dlpack_versioned(managed, made.out(), e); });
    return made;
  }
  DLManagedTensor* to_dlpack() const {
    DLManagedTensor* made = nullptr;
    check([&](auto e) { return api().value_to_dlpack(get(), &made, e); });
    return made;
  }
  DLManagedTensorVersioned* to_dlpack_versioned() const {
    DLManagedTensorVersioned* made = nullptr;
    check([&](auto e) { return api().value_to_dlpack_versioned(get(), &made, e); });
    return made;
  }
  // 0 nothing, 1 tensor, 2 sequence.
  int32_t kind() const {
    int32_t made = 0;
    check([&](auto e) { return api().value_kind(get(), &made, e); });
    return made;
  }
  size_t length() const {
    size_t made = 0;
    check([&](auto e) { return api().value_length(get(), &made, e); });
    return made;
  }
  Value at(size_t index) const {
    Value made;
    check([&](auto e) { return api().value_at(get(), index, made.out(), e); });
    return made;
  }
  std::vector<std::string> strings() const {
    size_t num_bytes = 0;
    check([&](auto e) { return api().value_strings(get(), nullptr, nullptr, &num_bytes, e); });
    const eddy_tensor of = view();
    size_t count = 1;
    for (int32_t i = 0; i < of.rank; ++i) count *= static_cast<size_t>(of.dims[i]);
    std::vector<int64_t> offsets(count + 1);
    std::string bytes(num_bytes, '\0');
    check([&](auto e) {
      return api().value_strings(get(), offsets.data(), &bytes[0], &num_bytes, e);
    });
    std::vector<std::string> made;
    for (size_t i = 0; i < count; ++i) {
      made.push_back(bytes.substr(static_cast<size_t>(offsets[i]),
                                  static_cast<size_t>(offsets[i + 1] - offsets[i])));
    }
    return made;
  }
  // Valid as long as the value.
  eddy_tensor view() const {
    eddy_tensor made = {};
    check([&](auto e) { return api().value_tensor(get(), &made, e); });
    return made;
  }
  template <typename T>
  std::vector<T> values() const {
    const eddy_tensor of = view();
    if (of.element != element_of<T>()) throw std::invalid_argument("elements of another type");
    size_t count = 1;
    for (int32_t i = 0; i < of.rank; ++i) count *= static_cast<size_t>(of.dims[i]);
    const T* const data = static_cast<const T*>(of.data);
    if (data == nullptr && count > 0) {
      throw std::invalid_argument("the elements are in a GPU's memory");
    }
    return std::vector<T>(data, data + count);
  }
  std::string text() const {
    const std::vector<uint8_t> bytes = values<uint8_t>();
    return std::string(bytes.begin(), bytes.end());
  }

 private:
  friend class Run;
  friend class Rows;
  friend class Graph;
  friend class Session;
};

using ValueId = eddy_value_id;

// Attributes of a node, kept for as long as this lives:
//   graph.op("Transpose", {x}, eddy::Attributes().set("perm", std::vector<int64_t>{1, 0}).node())
class Attributes {
 public:
  Attributes() = default;
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  template <typename Int, std::enable_if_t<std::is_integral_v<Int>, int> = 0>
  Attributes& set(const std::string& name, Int value) {
    add(name, EDDY_ATTRIBUTE_INT).i = static_cast<int64_t>(value);
    return *this;
  }
  Attributes& set(const std::string& name, float value) {
    add(name, EDDY_ATTRIBUTE_FLOAT).f = value;
    return *this;
  }
  Attributes& set(const std::string& name, double value) {
    return set(name, static_cast<float>(value));
  }
  Attributes& set(const std::string& name, const std::string& value) {
    add(name, EDDY_ATTRIBUTE_STRING).s = texts_.emplace_back(value).c_str();
    return *this;
  }
  Attributes& set(const std::string& name, const char* value) {
    return set(name, std::string(value));
  }
  Attributes& set(const std::string& name, const std::vector<int64_t>& values) {
    eddy_attribute& made = add(name, EDDY_ATTRIBUTE_INTS);
    made.ints = ints_.emplace_back(values).data();
    made.count = values.size();
    return *this;
  }
  Attributes& set(const std::string& name, const std::vector<float>& values) {
    eddy_attribute& made = add(name, EDDY_ATTRIBUTE_FLOATS);
    made.floats = floats_.emplace_back(values).data();
    made.count = values.size();
    return *this;
  }
  Attributes& set(const std::string& name, const std::vector<std::string>& values) {
    std::vector<const char*> pointers;
    for (const std::string& each : values) pointers.push_back(texts_.emplace_back(each).c_str());
    eddy_attribute& made = add(name, EDDY_ATTRIBUTE_STRINGS);
    made.strings = lists_.emplace_back(std::move(pointers)).data();
    made.count = values.size();
    return *this;
  }
  // Shows the caller's memory and sizes, which must stay until the node is added.
  Attributes& set(const std::string& name, const eddy_tensor& value) {
    add(name, EDDY_ATTRIBUTE_TENSOR).tensor = &tensors_.emplace_back(value);
    return *this;
  }
  // A node with these, and what `base` says besides.
  eddy_node node(eddy_node base = {}) const {
    base.attributes = made_.data();
    base.num_attributes = made_.size();
    return base;
  }

 private:
  eddy_attribute& add(const std::string& name, int32_t kind) {
    eddy_attribute& made = made_.emplace_back();
    made = {};
    made.struct_size = sizeof(made);
    made.name = texts_.emplace_back(name).c_str();
    made.kind = kind;
    return made;
  }

  std::vector<eddy_attribute> made_;
  // What is pointed to stays where it is.
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<const char*>> lists_;
  std::deque<eddy_tensor> tensors_;
};

class Graph : public Handle<eddy_graph> {
 public:
  explicit Graph(const Library& library, const std::string& name = "graph") {
    check([&](auto e) { return api().graph_create(library.get(), name.c_str(), out(), e); });
  }
  static Graph import(const Library& library, const std::string& path) {
    Graph made;
    check([&](auto e) {
      return api().graph_import_file(library.get(), path.c_str(), made.out(), e);
    });
    return made;
  }

  static Graph import_bytes(const Library& library, const void* bytes, size_t num_bytes) {
    Graph made;
    check([&](auto e) {
      return api().graph_import_bytes(library.get(), bytes, num_bytes, made.out(), e);
    });
    return made;
  }

  // Where the caller's program stands from now on: errors of all calls begin with it, and what is
  // added has it. Without: nowhere any more.
  void at(const std::string& file, uint32_t line, uint32_t column = 0,
          const std::string& text = "") {
    const eddy_location here = {sizeof(here), file.c_str(), line, column, text.c_str()};
    check([&](auto e) { return api().graph_set_location(get(), &here, e); });
  }
  void at_nowhere() {
    check([&](auto e) { return api().graph_set_location(get(), nullptr, e); });
  }

  // A dimension of a name, for types.
  int64_t symbol(const std::string& name) {
    int64_t made = 0;
    check([&](auto e) { return api().graph_symbol(get(), name.c_str(), &made, e); });
    return made;
  }
  ValueId input(const std::string& name, const eddy_type& type) {
    ValueId made = 0;
    check([&](auto e) { return api().graph_input(get(), name.c_str(), &type, &made, e); });
    return made;
  }
  void output(const std::string& name, ValueId value) {
    check([&](auto e) { return api().graph_output(get(), name.c_str(), value, e); });
  }
  template <typename T>
  ValueId constant(const T& number) {
    const std::vector<int64_t> dims;
    return constant(tensor(&number, dims));
  }
  ValueId constant(const eddy_tensor& of) {
    ValueId made = 0;
    check([&](auto e) { return api().graph_constant(get(), &of, nullptr, &made, e); });
    return made;
  }
  // `node` may say more (attributes, domain, location); its operator, inputs and outputs are set.
  std::vector<ValueId> ops(const std::string& name, const std::vector<ValueId>& inputs,
                           uint32_t num_outputs, eddy_node node = {}) {
    std::vector<ValueId> made(num_outputs);
    node.struct_size = sizeof(node);
    node.op = name.c_str();
    node.inputs = inputs.data();
    node.num_inputs = inputs.size();
    node.num_outputs = num_outputs;
    check([&](auto e) { return api().graph_node(get(), &node, made.data(), e); });
    return made;
  }
  ValueId op(const std::string& name, const std::vector<ValueId>& inputs, eddy_node node = {}) {
    return ops(name, inputs, 1, node)[0];
  }

  // before(iteration, carried) gives the test and what is forwarded; after(iteration, forwarded)
  // the next carried values, then `num_rows` rows. Outputs: the forwarded values, then the rows.
  struct Test {
    ValueId predicate;
    std::vector<ValueId> forwarded;
  };
  template <typename Before, typename After>
  std::vector<ValueId> while_loop(const std::vector<ValueId>& initial, Before before, After after,
                                  eddy_while loop = {}) {
    loop.struct_size = sizeof(loop);
    loop.initial = initial.data();
    loop.num_carried = initial.size();
    std::vector<ValueId> carried(initial.size() + 1);
    check([&](auto e) { return api().graph_begin_while(get(), &loop, carried.data(), e); });
    const Test test = before(carried[0], std::vector<ValueId>(carried.begin() + 1, carried.end()));
    std::vector<ValueId> forwarded(test.forwarded.size() + 1);
    check([&](auto e) {
      return api().graph_begin_after(get(), test.predicate, test.forwarded.data(),
                                     test.forwarded.size(), forwarded.data(), e);
    });
    const std::vector<ValueId> next =
        after(forwarded[0], std::vector<ValueId>(forwarded.begin() + 1, forwarded.end()));
    std::vector<ValueId> made(test.forwarded.size() + loop.num_rows);
    check([&](auto e) {
      return api().graph_end_while(get(), next.data(), next.size(), made.data(), made.size(), e);
    });
    return made;
  }
  // Branch 0 is taken where the selector is 0 or false.
  std::vector<ValueId> case_of(ValueId selector, size_t num_outputs,
                               const std::vector<std::function<std::vector<ValueId>()>>& branches,
                               eddy_case choice = no_default()) {
    choice.struct_size = sizeof(choice);
    choice.selector = selector;
    choice.num_branches = static_cast<uint32_t>(branches.size());
    check([&](auto e) { return api().graph_begin_case(get(), &choice, e); });
    for (const auto& branch : branches) {
      check([&](auto e) { return api().graph_begin_branch(get(), e); });
      const std::vector<ValueId> results = branch();
      check(
          [&](auto e) { return api().graph_end_branch(get(), results.data(), results.size(), e); });
    }
    std::vector<ValueId> made(num_outputs);
    check([&](auto e) { return api().graph_end_case(get(), made.data(), made.size(), e); });
    return made;
  }
  static eddy_case no_default() {
    eddy_case made = {};
    made.default_branch = -1;
    return made;
  }

  // What is known of a value so far; inside of a loop that may widen until the loop is ended.
  eddy_type type(ValueId value) const {
    eddy_type made = {};
    made.struct_size = sizeof(made);
    check([&](auto e) { return api().graph_type(get(), value, &made, e); });
    return made;
  }
  // A plan that Session::load() and load_bytes() take in the model's place (eddy.h).
  void save_plan(const std::string& path, const Options& options = {}) const {
    const auto given = as_c(options);
    check([&](auto e) {
      return api().graph_save_plan(get(), given.data(), given.size(), path.c_str(), e);
    });
  }
  void export_to(const std::string& path) const {
    check([&](auto e) { return api().graph_export_file(get(), path.c_str(), e); });
  }
  std::string export_bytes() const {
    Value made;
    check([&](auto e) { return api().graph_export_bytes(get(), made.out(), e); });
    return made.text();
  }
  std::string print() const {
    Value made;
    check([&](auto e) { return api().graph_print(get(), made.out(), e); });
    return made.text();
  }

 private:
  Graph() = default;
};

inline bool is_plan(const std::string& path) {
  int32_t is = 0;
  check([&](auto e) { return api().is_plan(path.c_str(), &is, e); });
  return is != 0;
}

class Session : public Handle<eddy_session> {
 public:
  explicit Session(const Graph& graph, const Options& options = {}) {
    const auto given = as_c(options);
    check([&](auto e) {
      return api().session_create(graph.get(), given.data(), given.size(), out(), e);
    });
  }
  // Of a model or a saved plan.
  static Session load(const Library& library, const std::string& path,
                      const Options& options = {}) {
    const auto given = as_c(options);
    Session made;
    check([&](auto e) {
      return api().session_load(library.get(), path.c_str(), given.data(), given.size(), made.out(),
                                e);
    });
    return made;
  }
  static Session load_bytes(const Library& library, const void* bytes, size_t num_bytes,
                            const Options& options = {}) {
    const auto given = as_c(options);
    Session made;
    check([&](auto e) {
      return api().session_load_bytes(library.get(), bytes, num_bytes, given.data(), given.size(),
                                      made.out(), e);
    });
    return made;
  }
  // By names, with the outputs that are asked for.
  std::vector<Value> run(const std::vector<std::pair<std::string, Value>>& inputs,
                         const std::vector<std::string>& outputs,
                         eddy_run_options options = {}) const {
    std::vector<const char*> names, wanted;
    std::vector<eddy_value> values, made(outputs.size());
    for (const auto& [name, value] : inputs) {
      names.push_back(name.c_str());
      values.push_back(value.get());
    }
    for (const std::string& name : outputs) wanted.push_back(name.c_str());
    options.struct_size = sizeof(options);
    check([&](auto e) {
      return api().session_run(get(), names.data(), values.data(), names.size(), wanted.data(),
                               made.data(), made.size(), &options, e);
    });
    return std::vector<Value>(made.begin(), made.end());
  }
  // False: a run goes on, as it waits for an answer that is owed.
  bool close() const {
    eddy_error error = nullptr;
    const eddy_code code = api().session_close(get(), &error);
    if (code != EDDY_OK && code != EDDY_NOT_DONE) throw Error(code, error);
    if (error != nullptr) api().release(error);
    return code == EDDY_OK;
  }
  void trim() const {
    check([&](auto e) { return api().session_trim(get(), e); });
  }
  size_t find_input(const std::string& name) const {
    size_t index = 0;
    check([&](auto e) { return api().session_find_input(get(), name.c_str(), &index, e); });
    return index;
  }
  size_t find_output(const std::string& name) const {
    size_t index = 0;
    check([&](auto e) { return api().session_find_output(get(), name.c_str(), &index, e); });
    return index;
  }
  std::string plan_text() const {
    Value made;
    check([&](auto e) { return api().session_plan_text(get(), made.out(), e); });
    return made.text();
  }
  std::string plan_svg() const {
    Value made;
    check([&](auto e) { return api().session_plan_svg(get(), made.out(), e); });
    return made.text();
  }
  // Whether Run::stream_output() takes the output.
  bool can_stream(size_t index) const {
    int32_t can = 0;
    check([&](auto e) { return api().session_can_stream(get(), index, &can, e); });
    return can != 0;
  }
  eddy_metrics metrics() const {
    eddy_metrics made = {};
    made.struct_size = sizeof(made);
    check([&](auto e) { return api().session_metrics(get(), &made, e); });
    return made;
  }
  // With option time_operators; their names are valid as long as the session.
  std::vector<eddy_operator_metrics> operator_metrics() const {
    size_t count = 0;
    check([&](auto e) { return api().session_num_operators(get(), &count, e); });
    std::vector<eddy_operator_metrics> made(count);
    for (size_t i = 0; i < count; ++i) {
      made[i].struct_size = sizeof(made[i]);
      check([&](auto e) { return api().session_operator_metrics(get(), i, &made[i], e); });
    }
    return made;
  }
  // As Prometheus reads them, with label session="NAME".
  std::string metrics_text(const char* name = "session") const {
    Value made;
    check([&](auto e) { return api().session_metrics_text(get(), name, made.out(), e); });
    return made.text();
  }

 private:
  Session() = default;
};

class Executor : public Handle<eddy_executor> {
 public:
  explicit Executor(int32_t kind) {
    check([&](auto e) { return api().executor_create(kind, out(), e); });
  }
  int fd() const {
    int made = -1;
    check([&](auto e) { return api().executor_fd(get(), &made, e); });
    return made;
  }
  size_t run(size_t max = SIZE_MAX) const {
    size_t count = 0;
    check([&](auto e) { return api().executor_run(get(), max, &count, e); });
    return count;
  }
};

// An order of runs; Run::submit_on().
class Stream : public Handle<eddy_stream> {
 public:
  explicit Stream(const Session& session) {
    check([&](auto e) { return api().session_create_stream(session.get(), out(), e); });
  }
  // A driver's, which stays the caller's (eddy.h).
  Stream(const Session& session, void* native) {
    check([&](auto e) { return api().session_adopt_stream(session.get(), native, out(), e); });
  }
};

class Rows : public Handle<eddy_rows> {
 public:
  explicit Rows(size_t max_waiting) {
    check([&](auto e) {
      return api().rows_create(max_waiting, nullptr, nullptr, nullptr, out(), e);
    });
  }
  // `function(Value)` is called for each row, in order, on the executor, and kept until then; on an
  // inline one in the loop itself, so that the first comes at once (eddy.h).
  template <typename Function>
  Rows(size_t max_waiting, const Executor& executor, Function function) {
    auto kept = std::make_unique<Function>(std::move(function));
    const eddy_row_callback callback = [](void* user, eddy_value row) {
      (*static_cast<Function*>(user))(Value(row));
    };
    const eddy_function destroy = [](void* user) { delete static_cast<Function*>(user); };
    void* const user = kept.release();
    check([&](auto e) {
      return api().rows_create_with(max_waiting, executor.get(), callback, user, destroy, out(), e);
    });
  }
  // No more are wanted; the loop goes on without.
  void close() const {
    check([&](auto e) { return api().rows_close(get(), e); });
  }
  // Waits; nothing: there will be no more.
  std::optional<Value> next() const {
    Value made;
    eddy_error error = nullptr;
    const eddy_code code = api().rows_next(get(), -1, made.out(), &error);
    if (code == EDDY_END) return std::nullopt;
    if (code != EDDY_OK) throw Error(code, error);
    return made;
  }
};

class Run : public Handle<eddy_run> {
 public:
  explicit Run(const Session& session) {
    check([&](auto e) { return api().run_create(session.get(), out(), e); });
  }
  void bind_input(size_t index, const Value& value) {
    check([&](auto e) { return api().run_bind_input(get(), index, value.get(), e); });
  }
  // Borrows the memory until it is bound anew.
  void bind_input(size_t index, const eddy_tensor& tensor) {
    check([&](auto e) { return api().run_bind_input_memory(get(), index, &tensor, e); });
  }
  void bind_output(size_t index, const eddy_tensor& tensor) {
    check([&](auto e) { return api().run_bind_output_memory(get(), index, &tensor, e); });
  }
  // In the memory of the session's GPU.
  void bind_device_output(size_t index, const eddy_tensor& tensor) {
    check([&](auto e) { return api().run_bind_output_device(get(), index, &tensor, e); });
  }
  // Copied, once its shape is known, to where `place` says.
  void place_output(size_t index, eddy_output_place place, void* user) {
    check([&](auto e) { return api().run_place_output(get(), index, place, user, e); });
  }
  void stream_output(size_t index, const Rows& rows) {
    check([&](auto e) { return api().run_stream_output(get(), index, rows.get(), e); });
  }
  void execute() {
    check([&](auto e) { return api().run_execute(get(), nullptr, e); });
  }
  void execute(eddy_run_options options) {
    options.struct_size = sizeof(options);
    check([&](auto e) { return api().run_execute(get(), &options, e); });
  }
  void submit() {
    check([&](auto e) { return api().run_submit(get(), nullptr, nullptr, nullptr, nullptr, e); });
  }
  void submit(eddy_run_options options) {
    options.struct_size = sizeof(options);
    check([&](auto e) { return api().run_submit(get(), &options, nullptr, nullptr, nullptr, e); });
  }
  // `function(eddy_code)` is called once, on the executor.
  template <typename Function>
  void submit(const Executor& executor, Function function, eddy_run_options options = {}) {
    options.struct_size = sizeof(options);
    submit_with(std::move(function), [&](eddy_run_callback callback, void* user, eddy_error* e) {
      return api().run_submit(get(), &options, executor.get(), callback, user, e);
    });
  }
  // Readable once a submitted run has ended; asked for before the first is.
  int fd() const {
    int made = -1;
    check([&](auto e) { return api().run_fd(get(), &made, e); });
    return made;
  }
  // In the order of a stream of the run's session.
  void submit_on(const Stream& stream) {
    check([&](auto e) {
      return api().run_submit_on(get(), stream.get(), nullptr, nullptr, nullptr, nullptr, e);
    });
  }
  template <typename Function>
  void submit_on(const Stream& stream, const Executor& executor, Function function) {
    submit_with(std::move(function), [&](eddy_run_callback callback, void* user, eddy_error* e) {
      return api().run_submit_on(get(), stream.get(), nullptr, executor.get(), callback, user, e);
    });
  }
  // The runs between start and stop, as Chrome's and Perfetto's viewers read them.
  void start_trace() {
    check([&](auto e) { return api().run_start_trace(get(), e); });
  }
  std::string stop_trace() {
    Value made;
    check([&](auto e) { return api().run_stop_trace(get(), made.out(), e); });
    return made.text();
  }
  void wait() const {
    check([&](auto e) { return api().run_wait(get(), -1, e); });
  }
  bool poll() const { return wait_for(0); }
  // False: it has not ended in time.
  bool wait_for(int64_t timeout_ns) const {
    eddy_error error = nullptr;
    const eddy_code code = api().run_wait(get(), timeout_ns, &error);
    if (code == EDDY_NOT_DONE) return false;
    if (code != EDDY_OK) throw Error(code, error);
    return true;
  }
  void cancel() const { api().run_cancel(get(), nullptr); }
  Value output(size_t index) const {
    Value made;
    check([&](auto e) { return api().run_output(get(), index, made.out(), e); });
    return made;
  }

 private:
  template <typename Function, typename Submit>
  static void submit_with(Function function, Submit submit) {
    auto kept = std::make_unique<Function>(std::move(function));
    const eddy_run_callback callback = [](void* user, eddy_run, eddy_code code) {
      const std::unique_ptr<Function> mine(static_cast<Function*>(user));
      (*mine)(code);
    };
    check([&](auto e) { return submit(callback, kept.get(), e); });
    kept.release();
  }
};

}  // namespace cpp_v1
}  // namespace eddy

#endif  // EDDY_EDDY_HPP_
