// A sequence of calls of the C interface, with handles of any kind or none, in any order: each ends
// in a code and, where it fails, in one line; nothing crashes, hangs or is lost.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "runtime/api/c/eddy.h"
#include "tests/fuzz/script_operator.h"

namespace {

constexpr size_t kMostHandles = 48;
constexpr int kMostCalls = 200;

// What a campaign is measured by: inputs are of any length.
struct Total {
  static constexpr uint64_t kShown = 10'000'000;
  uint64_t num_calls = 0;
  void add() {
    if (++num_calls % kShown == 0) show();
  }
  void show() const { std::printf("%llu calls\n", static_cast<unsigned long long>(num_calls)); }
  ~Total() { show(); }
};
Total total;

class Caller {
 public:
  Caller(const uint8_t* data, size_t size)
      : data_(data), size_(size), shares_(size % kOwn != kOwn - 1) {}
  ~Caller() {
    for (void* handle : handles_) api_.release(handle);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void run() {
    for (int i = 0; i < kMostCalls && at_ < size_; ++i) {
      eddy_error error = nullptr;
      check(call(byte() % kNumCalls, &error), error);
      total.add();
    }
  }

 private:
  static constexpr int kNumCalls = 48;
  // Contexts and libraries of one's own take as long as hundreds of other calls: inputs of one size
  // in so many make them.
  static constexpr size_t kOwn = 61;

  // Those of all other inputs.
  struct Shared {
    explicit Shared(const eddy_api& api) {
      EDDY_CHECK(api.context_create(nullptr, 0, &context, nullptr) == EDDY_OK);
      EDDY_CHECK(api.library_create(context, &library, nullptr) == EDDY_OK);
      eddy::ScriptOperator::add_to(api, library);
    }
    eddy_context context = nullptr;
    eddy_library library = nullptr;
  };
  template <typename T>
  eddy_code share(T Shared::*which) {
    static const Shared shared(api_);
    api_.retain(shared.*which);
    return keep(EDDY_OK, shared.*which);
  }

  uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  // One that was made, whatever it is of and whether it still is, or bits that are none.
  template <typename T>
  T any() {
    const uint8_t which = byte();
    if (handles_.empty() || which >= 250) {
      return reinterpret_cast<T>(static_cast<uintptr_t>(which * 0x10001u));
    }
    return static_cast<T>(static_cast<void*>(handles_[which % handles_.size()]));
  }
  template <typename T>
  eddy_code keep(eddy_code code, T handle) {
    if (code != EDDY_OK) return code;
    if (handles_.size() == kMostHandles) {
      api_.release(handles_.front());
      handles_.erase(handles_.begin());
    }
    handles_.push_back(handle);
    return code;
  }
  void check(eddy_code code, eddy_error error) {
    EDDY_CHECK(code >= EDDY_OK && code <= EDDY_LATER && code != EDDY_INTERNAL)
        << "code " << code << ": " << api_.error_message(error);
    if (error == nullptr) return;
    EDDY_CHECK(code != EDDY_OK) << "a success with an error";
    const std::string line = api_.error_message(error);
    EDDY_CHECK(!line.empty() && line.find('\n') == std::string::npos) << "not one line: " << line;
    api_.release(error);
  }
  eddy_value_id id() { return byte() % 24; }
  std::vector<eddy_value_id> ids() {
    std::vector<eddy_value_id> made(byte() % 4);
    for (eddy_value_id& each : made) each = id();
    return made;
  }
  eddy_tensor tensor() {
    dims_[0] = byte() % 4;
    return {numbers_,
            dims_,
            static_cast<int32_t>(byte() % 3) - (byte() == 255 ? 2 : 0),
            static_cast<eddy_element>(byte() % 4 == 0 ? EDDY_INT64 : EDDY_FLOAT),
            {}};
  }
  const char* op_name() {
    static const char* const names[] = {"Add",     "Mul", "Neg",    "Less",     "Not",
                                        "Greater", "Abs", "Gather", "Identity", "Nothing"};
    return names[byte() % 10];
  }
  eddy_code add_script(eddy_error* error) {
    const eddy_graph graph = any<eddy_graph>();
    const std::vector<eddy_value_id> inputs = ids();
    eddy_attribute script = {};
    script.struct_size = sizeof(script);
    script.name = "script";
    script.kind = EDDY_ATTRIBUTE_INT;
    script.i = byte() + 256 * byte();
    eddy_node node = {};
    node.struct_size = sizeof(node);
    node.op = "Script";
    node.domain = "fuzz";
    node.num_outputs = 2;
    node.inputs = inputs.data();
    node.num_inputs = inputs.size();
    node.attributes = &script;
    node.num_attributes = 1;
    eddy_value_id outputs[2];
    return api_.graph_node(graph, &node, outputs, error);
  }
  eddy_code add_node(eddy_error* error) {
    const eddy_graph graph = any<eddy_graph>();
    const std::vector<eddy_value_id> inputs = ids();
    eddy_node node = {};
    node.struct_size = sizeof(node);
    node.op = op_name();
    node.num_outputs = 1 + byte() % 2;
    node.inputs = inputs.data();
    node.num_inputs = inputs.size();
    eddy_value_id outputs[2];
    return api_.graph_node(graph, &node, outputs, error);
  }
  eddy_code begin_loop(eddy_error* error) {
    const eddy_graph graph = any<eddy_graph>();
    const std::vector<eddy_value_id> initial = ids();
    eddy_while loop = {};
    loop.struct_size = sizeof(loop);
    loop.initial = initial.data();
    loop.num_carried = initial.size();
    loop.trip_limit = byte() % 2 == 0 ? id() : 0;
    loop.num_rows = byte() % 2;
    eddy_value_id parameters[4];
    return api_.graph_begin_while(graph, &loop, parameters, error);
  }
  eddy_code begin_case(eddy_error* error) {
    const eddy_graph graph = any<eddy_graph>();
    eddy_case choice = {};
    choice.struct_size = sizeof(choice);
    choice.selector = id();
    choice.num_branches = byte() % 3;
    choice.default_branch = static_cast<int32_t>(byte() % 4) - 1;
    return api_.graph_begin_case(graph, &choice, error);
  }
  eddy_code make_session(eddy_error* error) {
    const eddy_graph graph = any<eddy_graph>();
    const eddy_option options[] = {
        {"threads", "1"}, {"loops", byte() % 2 == 0 ? "host" : "auto"}, {"check_memory", "true"}};
    eddy_session made = nullptr;
    return keep(api_.session_create(graph, options, byte() % 4, &made, error), made);
  }
  eddy_code build(int which, eddy_error* error);
  eddy_code use(int which, eddy_error* error);
  eddy_code show(int which, eddy_error* error);
  eddy_code call(int which, eddy_error* error) {
    return which < 18 ? build(which, error) : which < 40 ? use(which, error) : show(which, error);
  }

  const eddy_api& api_ = *eddy_get_api(EDDY_API_VERSION);
  const uint8_t* const data_;
  const size_t size_;
  const bool shares_;
  size_t at_ = 0;
  std::vector<void*> handles_;
  float numbers_[32] = {1, 2, 3, 4};
  float outputs_[4] = {};
  int64_t dims_[2] = {2, 2};
};

// long: a case for each call.
eddy_code Caller::build(int which, eddy_error* error) {
  switch (which) {
    case 0: {
      eddy_context made = nullptr;
      if (shares_) return share(&Shared::context);
      return keep(api_.context_create(nullptr, 0, &made, error), made);
    }
    case 1: {
      eddy_library made = nullptr;
      const auto context = any<eddy_context>();
      if (shares_) return share(&Shared::library);
      return keep(api_.library_create(context, &made, error), made);
    }
    case 2: {
      eddy_graph made = nullptr;
      const auto library = any<eddy_library>();
      return keep(api_.graph_create(library, "g", &made, error), made);
    }
    case 3: {
      eddy_type type = {};
      type.struct_size = sizeof(type);
      const uint8_t kind = byte();
      type.element = kind % 3 == 0 ? EDDY_BOOL : kind % 16 == 1 ? EDDY_STRING : EDDY_FLOAT;
      type.wrappers[0] = kind < 32 ? 1 : kind < 48 ? 2 : 0;
      type.rank = static_cast<int32_t>(byte() % 3);
      for (int64_t& dim : type.dims) dim = static_cast<int64_t>(byte() % 5) - 2;
      const char name[2] = {static_cast<char>('a' + byte() % 4), 0};
      eddy_value_id value = 0;
      const auto graph = any<eddy_graph>();
      return api_.graph_input(graph, name, &type, &value, error);
    }
    case 4: {
      const char name[2] = {static_cast<char>('a' + byte() % 4), 0};
      const auto graph = any<eddy_graph>();
      return api_.graph_output(graph, name, id(), error);
    }
    case 5: {
      const eddy_tensor of = tensor();
      eddy_value_id value = 0;
      const auto graph = any<eddy_graph>();
      return api_.graph_constant(graph, &of, nullptr, &value, error);
    }
    case 6:
    case 7:
      return add_node(error);
    case 8:
      return byte() % 2 == 0 ? add_node(error) : add_script(error);
    case 9:
      return begin_loop(error);
    case 10: {
      const std::vector<eddy_value_id> forwarded = ids();
      eddy_value_id parameters[4];
      const auto graph = any<eddy_graph>();
      return api_.graph_begin_after(graph, id(), forwarded.data(), forwarded.size(), parameters,
                                    error);
    }
    case 11: {
      const std::vector<eddy_value_id> next = ids();
      eddy_value_id outputs[4];
      const auto graph = any<eddy_graph>();
      return api_.graph_end_while(graph, next.data(), next.size(), outputs, byte() % 5, error);
    }
    case 12:
      return begin_case(error);
    case 13: {
      const auto graph = any<eddy_graph>();
      return api_.graph_begin_branch(graph, error);
    }
    case 14: {
      const std::vector<eddy_value_id> results = ids();
      const auto graph = any<eddy_graph>();
      return api_.graph_end_branch(graph, results.data(), results.size(), error);
    }
    case 15: {
      eddy_value_id outputs[4];
      const auto graph = any<eddy_graph>();
      return api_.graph_end_case(graph, outputs, byte() % 4, error);
    }
    case 16: {
      const auto graph = any<eddy_graph>();
      return api_.graph_finish(graph, error);
    }
    default:
      return make_session(error);
  }
}

// long: a case for each call.
eddy_code Caller::use(int which, eddy_error* error) {
  switch (which) {
    case 18:
    case 19: {
      eddy_run made = nullptr;
      const auto session = any<eddy_session>();
      return keep(api_.run_create(session, &made, error), made);
    }
    case 20: {
      const eddy_tensor of = tensor();
      eddy_value made = nullptr;
      if (byte() % 8 == 0) {
        const int64_t offsets[4] = {0, 3, 3, 20};
        return keep(api_.value_from_strings(of.dims, of.rank % 2, offsets, "one, and another text",
                                            &made, error),
                    made);
      }
      return keep(api_.value_copy(&of, &made, error), made);
    }
    case 21: {
      const auto run = any<eddy_run>();
      const auto value = any<eddy_value>();
      return api_.run_bind_input(run, byte() % 3, value, error);
    }
    case 22:
    case 23: {
      // Endless loops end.
      const eddy_run_options options = {sizeof(options), 2'000'000, 0};
      const auto run = any<eddy_run>();
      return api_.run_execute(run, &options, error);
    }
    case 24: {
      const eddy_run_options options = {sizeof(options), 2'000'000, byte() % 3 - 1};
      const auto run = any<eddy_run>();
      const auto executor = byte() % 2 == 0 ? any<eddy_executor>() : nullptr;
      const eddy_run_callback nothing = [](void*, eddy_run, eddy_code) {};
      return api_.run_submit(run, &options, executor, byte() % 2 == 0 ? nothing : nullptr, nullptr,
                             error);
    }
    case 25: {
      const auto run = any<eddy_run>();
      return api_.run_wait(run, byte() * 1000, error);
    }
    case 26: {
      const auto run = any<eddy_run>();
      return api_.run_cancel(run, error);
    }
    case 27: {
      eddy_value made = nullptr;
      const auto run = any<eddy_run>();
      return keep(api_.run_output(run, byte() % 3, &made, error), made);
    }
    case 28: {
      int fd = -1;
      const auto run = any<eddy_run>();
      return api_.run_fd(run, &fd, error);
    }
    case 29: {
      eddy_executor made = nullptr;
      return keep(api_.executor_create(byte() % 4, &made, error), made);
    }
    case 30: {
      const auto executor = any<eddy_executor>();
      return api_.executor_run(executor, byte() % 4, nullptr, error);
    }
    case 31: {
      eddy_rows made = nullptr;
      const uint8_t way = byte();
      const auto executor = way % 2 == 0 ? any<eddy_executor>() : nullptr;
      const eddy_row_callback drop = [](void*, eddy_value row) {
        eddy_get_api(EDDY_API_VERSION)->release(row);
      };
      const eddy_row_callback forget = [](void*, eddy_value row) {
        eddy_get_api(EDDY_API_VERSION)->release(row);
        throw 1;
      };
      const eddy_row_callback callbacks[] = {nullptr, drop, forget};
      return keep(
          api_.rows_create(way / 2 % 3, executor, callbacks[way / 6 % 3], nullptr, &made, error),
          made);
    }
    case 32: {
      const auto run = any<eddy_run>();
      const auto rows = any<eddy_rows>();
      return api_.run_stream_output(run, byte() % 3, rows, error);
    }
    case 33: {
      eddy_value made = nullptr;
      const auto rows = any<eddy_rows>();
      return keep(api_.rows_next(rows, 100'000, &made, error), made);
    }
    case 34: {
      const auto rows = any<eddy_rows>();
      return api_.rows_close(rows, error);
    }
    case 35: {
      const eddy_value two[] = {any<eddy_value>(), any<eddy_value>()};
      eddy_value made = nullptr;
      return keep(api_.value_sequence(EDDY_FLOAT, two, byte() % 3, &made, error), made);
    }
    case 36: {
      eddy_value made = nullptr;
      const auto session = any<eddy_session>();
      return keep(api_.session_plan_text(session, &made, error), made);
    }
    case 37: {
      const auto session = any<eddy_session>();
      return byte() % 2 == 0 ? api_.session_cancel_all(session, error)
                             : api_.session_trim(session, error);
    }
    // What is released stays in the list, as a handle that is none any more.
    default:
      return api_.release(any<void*>());
  }
}

// long: a case for each call.
eddy_code Caller::show(int which, eddy_error* error) {
  switch (which) {
    case 40: {
      const eddy_location at = {sizeof(at), "f", byte(), 0, ""};
      const auto graph = any<eddy_graph>();
      return api_.graph_set_location(graph, byte() % 2 == 0 ? &at : nullptr, error);
    }
    case 41: {
      eddy_value made = nullptr;
      const auto session = any<eddy_session>();
      return keep(api_.session_plan_svg(session, &made, error), made);
    }
    case 42: {
      int32_t can = 0;
      const auto session = any<eddy_session>();
      return api_.session_can_stream(session, byte() % 3, &can, error);
    }
    case 43: {
      eddy_stream made = nullptr;
      const auto session = any<eddy_session>();
      return keep(api_.session_create_stream(session, &made, error), made);
    }
    case 44: {
      const eddy_run_options options = {sizeof(options), 2'000'000, 0};
      const auto run = any<eddy_run>();
      const auto stream = any<eddy_stream>();
      const eddy_run_callback nothing = [](void*, eddy_run, eddy_code) {};
      return api_.run_submit_on(run, stream, &options, nullptr, byte() % 2 == 0 ? nothing : nullptr,
                                nullptr, error);
    }
    case 45: {
      const auto run = any<eddy_run>();
      return api_.run_start_trace(run, error);
    }
    case 46: {
      eddy_value made = nullptr;
      const auto run = any<eddy_run>();
      return keep(api_.run_stop_trace(run, &made, error), made);
    }
    default: {
      dims_[0] = 2;
      const eddy_tensor to = {outputs_, dims_, byte() % 2, EDDY_FLOAT, {}};
      const auto run = any<eddy_run>();
      return api_.run_bind_output_memory(run, byte() % 3, &to, error);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Caller(data, size).run();
  return 0;
}
