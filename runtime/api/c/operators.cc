// Custom operators and host functions of the caller's: C functions behind Eddy's contracts.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/context.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"
#include "runtime/api/c/pending.h"
#include "runtime/api/c/user_code.h"

namespace eddy::c {
namespace {

// The caller's table, destroyed with the last kernel or definition that uses it.
struct UserOperator {
  explicit UserOperator(const eddy_operator& t) : table(t) {}
  ~UserOperator() {
    if (table.destroy != nullptr) call_and_forget([this] { table.destroy(table.user); });
  }
  UserOperator(const UserOperator&) = delete;
  UserOperator& operator=(const UserOperator&) = delete;
  eddy_operator table;
};

struct UserState : KernelState {
  explicit UserState(std::shared_ptr<const UserOperator> o) : op(std::move(o)) {}
  ~UserState() override {
    if (op->table.unbind == nullptr) return;
    call_and_forget([this] { op->table.unbind(op->table.user, state); });
  }
  const std::shared_ptr<const UserOperator> op;
  void* state = nullptr;
};

// One call of a user's function: what eddy_call::impl points to.
struct Calling {
  Scratch* scratch = nullptr;
  PendingCall* call = nullptr;          // of a kernel that may answer later
  PendingDecision* decision = nullptr;  // of a host function that may
  eddy_pending pending = nullptr;       // what defer() has made
  std::string said;
};

void* reserve(void* impl, size_t size_bytes) {
  Scratch* const scratch = static_cast<Calling*>(impl)->scratch;
  return scratch == nullptr ? nullptr : scratch->reserve(size_bytes);
}

void fail(void* impl, const char* message) {
  try {
    static_cast<Calling*>(impl)->said = message == nullptr ? "" : message;
  } catch (const std::bad_alloc&) {
    // The code says what can be said.
  }
}

eddy_pending defer(void* impl) {
  auto& calling = *static_cast<Calling*>(impl);
  if (calling.pending != nullptr) return calling.pending;
  try {
    std::shared_ptr<PendingObject> made;
    if (calling.call != nullptr) {
      made = std::make_shared<PendingObject>(std::move(*calling.call));
    } else if (calling.decision != nullptr) {
      made = std::make_shared<PendingObject>(std::move(*calling.decision));
    } else {
      return nullptr;
    }
    calling.pending = make_handle<eddy_pending>(std::move(made));
  } catch (const std::bad_alloc&) {
    return nullptr;  // what was moved has failed the run
  }
  return calling.pending;
}

eddy_call make_call(Calling& calling, const TensorView* inputs, size_t num_inputs,
                    const TensorView* outputs, size_t num_outputs, void* state) {
  return {sizeof(eddy_call),
          as_c(inputs),
          as_c(outputs),
          static_cast<uint32_t>(num_inputs),
          static_cast<uint32_t>(num_outputs),
          state,
          &calling,
          reserve,
          fail,
          defer};
}

struct KernelCall {
  explicit KernelCall(const KernelArgs& args)
      : state(static_cast<const UserState&>(*args.state)), table(state.op->table) {
    calling.scratch = args.scratch;
    call = make_call(calling, args.inputs, args.num_inputs, args.outputs, args.num_outputs,
                     state.state);
  }
  Status status(eddy_code code) const {
    if (code != EDDY_LATER) return as_status(code, calling.said);
    return run_failed("it returned EDDY_LATER without the flag EDDY_ANSWERS_LATER");
  }
  const UserState& state;
  const eddy_operator& table;
  Calling calling;
  eddy_call call;
};

bool run(const KernelArgs& args) {
  KernelCall kernel(args);
  const UserCodeScope scope;
  const eddy_code code = code_of(kernel.calling.said,
                                 [&] { return kernel.table.run(kernel.table.user, &kernel.call); });
  return code == EDDY_OK || args.fail(kernel.status(code));
}

bool run_tile(const KernelArgs& args, uint32_t tile) {
  KernelCall kernel(args);
  const UserCodeScope scope;
  const eddy_code code = code_of(kernel.calling.said, [&] {
    return kernel.table.run_tile(kernel.table.user, &kernel.call, tile);
  });
  return code == EDDY_OK || args.fail(kernel.status(code));
}

uint32_t count_tiles(const KernelArgs& args) {
  KernelCall kernel(args);
  return kernel.table.count_tiles(kernel.table.user, &kernel.call);
}

// What stands behind EDDY_LATER, or behind an answer that was given though one is owed.
CallOutcome settle(Calling& calling, eddy_code code, const Status& status, int64_t decision) {
  if (calling.pending == nullptr) return CallOutcome::kFailed;
  if (code == EDDY_LATER) return CallOutcome::kLater;
  Refusal why;
  if (const Pin<PendingObject> owed(calling.pending, why); owed) {
    [[maybe_unused]] const bool is_first = owed->complete(status, decision);
    [[maybe_unused]] const Refusal gone = HandleTable::get().release(calling.pending);
  }
  return CallOutcome::kLater;
}

CallOutcome start(const KernelArgs& args, PendingCall& pending) {
  KernelCall kernel(args);
  kernel.calling.call = &pending;
  const UserCodeScope scope;
  const eddy_code code = code_of(kernel.calling.said,
                                 [&] { return kernel.table.run(kernel.table.user, &kernel.call); });
  if (kernel.calling.pending != nullptr) {
    return settle(kernel.calling, code,
                  code == EDDY_LATER ? Status::ok() : as_status(code, kernel.calling.said), 0);
  }
  if (code == EDDY_OK) return CallOutcome::kDone;
  args.fail(code == EDDY_LATER ? run_failed("it returned EDDY_LATER, but has not called defer()")
                               : as_status(code, kernel.calling.said));
  return CallOutcome::kFailed;
}

// What eddy_shapes::impl points to.
struct Asking {
  const Attributes& attributes;
  std::string said;
  std::string text;
};

int64_t attribute_int(void* impl, const char* name, int64_t fallback) {
  return static_cast<Asking*>(impl)->attributes.get_int(name, fallback);
}
float attribute_float(void* impl, const char* name, float fallback) {
  return static_cast<Asking*>(impl)->attributes.get_float(name, fallback);
}
// Ends in a zero, as texts of attributes do: they are std::strings.
const char* attribute_string(void* impl, const char* name, const char* fallback) {
  const auto& attributes = static_cast<Asking*>(impl)->attributes;
  return attributes.has(name) ? attributes.get_string(name, "").data() : fallback;
}
void fail_shapes(void* impl, const char* message) {
  static_cast<Asking*>(impl)->said = message == nullptr ? "" : message;
}

eddy_shapes make_shapes(Asking& asking, const std::vector<eddy_type>& inputs,
                        std::vector<eddy_type>& outputs) {
  return {sizeof(eddy_shapes),
          inputs.data(),
          static_cast<uint32_t>(inputs.size()),
          static_cast<uint32_t>(outputs.size()),
          outputs.data(),
          &asking,
          attribute_int,
          attribute_float,
          attribute_string,
          fail_shapes};
}

// How many of the graph's symbols the types make known: outputs may use those, and no others.
size_t known_symbols(const std::vector<eddy_type>& types) {
  size_t known = 0;
  for (const eddy_type& type : types) {
    for (int32_t axis = 0; axis < type.rank; ++axis) {
      const int64_t dim = type.dims[axis];
      if (dim < EDDY_UNKNOWN_DIM) known = std::max(known, static_cast<size_t>(-1 - dim));
    }
  }
  return known;
}

Status infer(const UserOperator& op, InferContext& context) {
  Asking asking{context.attributes(), {}, {}};
  std::vector<eddy_type> inputs(context.num_inputs());
  std::vector<eddy_type> outputs(context.num_outputs());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (context.has_input(i)) inputs[i] = as_c(context.input(i), true);
  }
  for (eddy_type& each : outputs) {
    each.struct_size = sizeof(eddy_type);
    each.rank = EDDY_UNRANKED;
  }
  const eddy_shapes shapes = make_shapes(asking, inputs, outputs);
  const eddy_code code =
      code_of(asking.said, [&] { return op.table.shapes(op.table.user, &shapes); });
  if (code != EDDY_OK) {
    const Status status = as_status(code, asking.said);
    return invalid_argument(status.message());
  }
  const size_t known = known_symbols(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    ValueType type;
    const std::string what = "the type of output " + std::to_string(i);
    const Refusal bad = read_type(&outputs[i], what.c_str(), known, type);
    if (!bad.is_ok()) return invalid_argument("the shape function: " + bad.reason());
    context.set_output(i, type);
  }
  return Status::ok();
}

Result<BoundKernel> bind_kernel(const std::shared_ptr<const UserOperator>& op,
                                const KernelInit& init) {
  BoundKernel bound;
  void* made = nullptr;
  if (op->table.bind != nullptr) {
    Asking asking{init.attributes, {}, {}};
    std::vector<eddy_type> inputs;
    std::vector<eddy_type> outputs;
    for (const ValueType& each : init.inputs) inputs.push_back(as_c(each, true));
    for (const ValueType& each : init.outputs) outputs.push_back(as_c(each, true));
    const eddy_shapes node = make_shapes(asking, inputs, outputs);
    const eddy_code code =
        code_of(asking.said, [&] { return op->table.bind(op->table.user, &node, &made); });
    if (code != EDDY_OK) return as_status(code, asking.said);
  }
  auto state = std::make_unique<UserState>(op);  // unbinds what was bound
  state->state = made;
  bound.state = std::move(state);
  if ((op->table.flags & EDDY_ANSWERS_LATER) != 0) {
    bound.start = start;
    return bound;
  }
  bound.run = run;
  if (op->table.run_tile != nullptr) {
    bound.count_tiles = count_tiles;
    bound.run_tile = run_tile;
  }
  return bound;
}

Refusal check(const eddy_operator& op) {
  EDDY_C_TRY(check_given_name(op.name, "name of the operator"));
  EDDY_C_TRY(check_name(op.domain, "domain of the operator"));
  const std::string name = "operator '" + std::string(op.name) + "' ";
  const auto bad = [&](const char* reason) {
    return Refusal(EDDY_INVALID_ARGUMENT, name + reason);
  };
  if (op.domain == nullptr || op.domain[0] == '\0' || std::string_view(op.domain) == "ai.onnx") {
    return bad("stands in ONNX's own domain; give it a domain of yours");
  }
  if (op.shapes == nullptr) return bad("has no function `shapes`");
  if (op.run == nullptr) return bad("has no function `run`");
  if ((op.count_tiles == nullptr) != (op.run_tile == nullptr)) {
    return bad("has one of count_tiles and run_tile; give both or neither");
  }
  if (op.run_tile != nullptr && (op.flags & EDDY_ANSWERS_LATER) != 0) {
    return bad("has tiles and EDDY_ANSWERS_LATER; one of the two");
  }
  if ((op.flags & ~uint32_t{EDDY_ANSWERS_LATER}) != 0) return bad("has flags that are none");
  if (op.min_inputs > op.max_inputs) return bad("has min_inputs above max_inputs");
  if (op.max_inputs > 64 || op.num_outputs == 0 || op.num_outputs > 64) {
    return bad("has more than 64 inputs, or not 1 to 64 outputs");
  }
  if (op.since_version < 1) return bad("has a since_version below 1");
  if (op.num_attributes > 0) {
    EDDY_C_TRY(need(op.attribute_names, (name + "names of attributes").c_str()));
    EDDY_C_TRY(need(op.attribute_kinds, (name + "kinds of attributes").c_str()));
  }
  return {};
}

Refusal define(const eddy_operator& table, const std::shared_ptr<const UserOperator>& op,
               OpDef& def) {
  def.name = table.name;
  def.domain = table.domain;
  def.since_version = table.since_version;
  for (uint32_t i = 0; i < table.max_inputs; ++i) {
    FormalInput input{"x" + std::to_string(i)};
    if (i >= table.min_inputs) input.flags = InputFlag::kOptional;
    def.inputs.push_back(std::move(input));
  }
  def.min_outputs = def.max_outputs = static_cast<int>(table.num_outputs);
  for (size_t i = 0; i < table.num_attributes; ++i) {
    EDDY_C_TRY(check_given_name(table.attribute_names[i], "name of an attribute"));
    const int32_t kind = table.attribute_kinds[i];
    if (kind < EDDY_ATTRIBUTE_INT || kind > EDDY_ATTRIBUTE_TENSOR) {
      return {EDDY_INVALID_ARGUMENT,
              "attribute '" + std::string(table.attribute_names[i]) + "' has no kind of eddy.h"};
    }
    def.attributes.push_back({table.attribute_names[i], static_cast<AttributeKind>(kind)});
  }
  def.infer = [op](InferContext& context) { return infer(*op, context); };
  def.may_wait = (table.flags & EDDY_ANSWERS_LATER) != 0;
  return {};
}
static_assert(static_cast<int>(AttributeKind::kTensor) == EDDY_ATTRIBUTE_TENSOR &&
              static_cast<int>(AttributeKind::kInts) == EDDY_ATTRIBUTE_INTS);

// A host function of the caller's, destroyed with the library.
struct UserFunction {
  UserFunction(eddy_decide f, void* u, void (*d)(void*)) : function(f), user(u), destroy(d) {}
  ~UserFunction() {
    if (destroy != nullptr) call_and_forget([this] { destroy(user); });
  }
  UserFunction(const UserFunction&) = delete;
  UserFunction& operator=(const UserFunction&) = delete;
  const eddy_decide function;
  void* const user;
  void (*destroy)(void*);
};

Result<int64_t> decide(const UserFunction& named, std::span<const TensorView> inputs) {
  Calling calling;
  const eddy_call call = make_call(calling, inputs.data(), inputs.size(), nullptr, 0, nullptr);
  int64_t decision = 0;
  const UserCodeScope scope;
  const eddy_code code =
      code_of(calling.said, [&] { return named.function(named.user, &call, &decision); });
  if (code == EDDY_OK) return decision;
  if (code != EDDY_LATER) return as_status(code, calling.said);
  return run_failed("it returned EDDY_LATER without the flag EDDY_ANSWERS_LATER");
}

void decide_later(const UserFunction& named, std::span<const TensorView> inputs,
                  PendingDecision owed) {
  Calling calling;
  calling.decision = &owed;
  const eddy_call call = make_call(calling, inputs.data(), inputs.size(), nullptr, 0, nullptr);
  int64_t decision = 0;
  const UserCodeScope scope;
  const eddy_code code =
      code_of(calling.said, [&] { return named.function(named.user, &call, &decision); });
  const Status status =
      code == EDDY_LATER ? run_failed("it has not called defer()") : as_status(code, calling.said);
  if (calling.pending != nullptr) {
    settle(calling, code, status, decision);
  } else if (status.is_ok()) {
    owed.complete(decision);
  } else {
    owed.complete(status);
  }
}

}  // namespace

eddy_code library_add_operator(eddy_library library, const eddy_operator* op, eddy_error* error) {
  return enter_with<LibraryObject>(library, error, [&](const auto& l) -> Refusal {
    eddy_operator table;
    EDDY_C_TRY(read_struct(op, EDDY_C_UPTO(eddy_operator, run), "the operator", table));
    EDDY_C_TRY(l->check_open());
    EDDY_C_TRY(check(table));
    auto kept = std::make_shared<UserOperator>(table);
    OpDef def;
    Refusal why = define(table, kept, def);
    Status status;
    if (why.is_ok()) {
      status = l->library.add_operator(
          std::move(def), [kept](const KernelInit& init) { return bind_kernel(kept, init); });
    }
    // A refusal leaves `user` with the caller.
    if (!why.is_ok() || !status.is_ok()) kept->table.destroy = nullptr;
    EDDY_C_TRY(status);
    return why;
  });
}

eddy_code library_add_host_function(eddy_library library, const char* name, uint32_t flags,
                                    eddy_decide function, void* user, void (*destroy)(void* user),
                                    eddy_error* error) {
  return enter_with<LibraryObject>(library, error, [&](const auto& l) -> Refusal {
    EDDY_C_TRY(check_given_name(name, "name of the host function"));
    EDDY_C_TRY(need(reinterpret_cast<const void*>(function), "function"));
    EDDY_C_TRY(l->check_open());
    if (flags > EDDY_NON_BLOCKING) {
      return {EDDY_INVALID_ARGUMENT,
              "a host function has one flag of EDDY_ANSWERS_LATER and EDDY_NON_BLOCKING, or 0"};
    }
    if (l->library.host_function_or_null(name) != nullptr) {
      return {EDDY_INVALID_ARGUMENT, "host function '" + std::string(name) + "' is added twice"};
    }
    const auto kept = std::make_shared<UserFunction>(function, user, destroy);
    Status status;
    if (flags == EDDY_ANSWERS_LATER) {
      status = l->library.add_async_host_function(
          name, [kept](std::span<const TensorView> inputs, PendingDecision owed) {
            decide_later(*kept, inputs, std::move(owed));
          });
    } else {
      status = l->library.add_host_function(
          name, [kept](std::span<const TensorView> inputs) { return decide(*kept, inputs); },
          {.is_non_blocking = flags == EDDY_NON_BLOCKING});
    }
    // As of operators: a refusal leaves `user` with the caller.
    if (!status.is_ok()) kept->destroy = nullptr;
    return status;
  });
}

}  // namespace eddy::c
