// Custom operators of the caller's: C functions behind Eddy's contract of kernels.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "graph/base/check.h"
#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/calling.h"
#include "runtime/api/c/context.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"
#include "runtime/api/c/operator_values.h"
#include "runtime/api/c/user_code.h"

namespace eddy::c {
namespace {

// The caller's table, destroyed with the last kernel or definition that uses it.
struct UserOperator {
  explicit UserOperator(const eddy_operator& t) : table(t), name(t.name), domain(t.domain) {}
  ~UserOperator() {
    if (table.destroy != nullptr) call_and_forget([this] { table.destroy(table.user); });
  }
  UserOperator(const UserOperator&) = delete;
  UserOperator& operator=(const UserOperator&) = delete;
  eddy_operator table;
  const std::string name, domain;
};

struct UserState : KernelState {
  explicit UserState(std::shared_ptr<const UserOperator> o) : op(std::move(o)) {}
  ~UserState() override {
    if (op->table.unbind == nullptr) return;
    call_and_forget([this] { op->table.unbind(op->table.user, state); });
  }
  const std::shared_ptr<const UserOperator> op;
  void* state = nullptr;
  DeclaredTypes declared;  // of an operator of values
};

// What begin_run() has made for a node in a run.
struct UserRunState : KernelState {
  explicit UserRunState(const UserState& of) : op(of.op), state(of.state) {}
  ~UserRunState() override {
    if (op->table.end_run == nullptr || !has_begun) return;
    const UserCodeScope scope;
    call_and_forget([this] { op->table.end_run(op->table.user, state, run_state); });
  }
  const std::shared_ptr<const UserOperator> op;
  void* const state;
  void* run_state = nullptr;
  bool has_begun = false;
};

struct KernelCall {
  explicit KernelCall(const KernelArgs& args)
      : state(static_cast<const UserState&>(*args.state)),
        table(state.op->table),
        calling{.scratch = args.scratch},
        call(make_call(calling, args.inputs, args.num_inputs, args.outputs, args.num_outputs,
                       state.state)) {}
  // How a call ends that answers at once.
  bool end(const KernelArgs& args, eddy_code code) const {
    if (code == EDDY_OK) [[likely]]
      return true;
    return fail(args, code);
  }
  [[gnu::cold, gnu::noinline]] bool fail(const KernelArgs& args, eddy_code code) const {
    if (code != EDDY_LATER) return args.fail(as_status(code, calling.said));
    return args.fail(run_failed("it returned EDDY_LATER without the flag EDDY_ANSWERS_LATER"));
  }
  const UserState& state;
  const eddy_operator& table;
  Calling calling;
  eddy_call call;
};

// Made with the node's first call in a run, and shown to this one.
eddy_code begin_run(RunKeep& keep, const UserState& node, std::string& said, void** run_state) {
  const eddy_operator& table = node.op->table;
  if (keep.state == nullptr) {
    auto made = std::make_unique<UserRunState>(node);
    const eddy_code code = code_of(said, [&]() -> eddy_code {
      if (table.begin_run == nullptr) return EDDY_OK;
      return table.begin_run(table.user, node.state, &made->run_state);
    });
    if (code != EDDY_OK) {
      if (said.empty()) said = "begin_run returned " + std::to_string(code);
      return code == EDDY_LATER ? EDDY_RUN_FAILED : code;
    }
    made->has_begun = true;
    keep.state = std::move(made);
  }
  *run_state = static_cast<const UserRunState&>(*keep.state).run_state;
  return EDDY_OK;
}
eddy_code begin_run(const KernelArgs& args, KernelCall& kernel) {
  EDDY_DCHECK(args.keep != nullptr) << "the run keeps nothing for the operator";
  return begin_run(*args.keep, kernel.state, kernel.calling.said, &kernel.call.run_state);
}

eddy_code run_in(KernelCall& kernel) {
  return code_of(kernel.calling.said,
                 [&] { return kernel.table.run(kernel.table.user, &kernel.call); });
}

bool run(const KernelArgs& args) {
  KernelCall kernel(args);
  const UserCodeScope scope;
  const eddy_code code = run_in(kernel);
  return kernel.end(args, code);
}

bool run_in_state(const KernelArgs& args) {
  KernelCall kernel(args);
  const UserCodeScope scope;
  eddy_code code = begin_run(args, kernel);
  if (code == EDDY_OK) code = run_in(kernel);
  return kernel.end(args, code);
}

Status run_values(ValueContext& context) {
  const auto& node = static_cast<const UserState&>(*context.state());
  const eddy_operator& table = node.op->table;
  ValueCalling calling(context, node.declared);
  RunKeep* const keep = context.keep_or_null();
  const UserCodeScope scope;
  void* run_state = nullptr;
  eddy_code code = EDDY_OK;
  if (keep != nullptr) code = begin_run(*keep, node, calling.said(), &run_state);
  if (code != EDDY_OK) return as_status(code, calling.said());
  const eddy_value_call call = calling.show(node.state, run_state);
  return calling.end(code_of(calling.said(), [&] { return table.run_values(table.user, &call); }));
}

bool run_tile(const KernelArgs& args, uint32_t tile) {
  KernelCall kernel(args);
  if (args.keep != nullptr && args.keep->state != nullptr) {
    kernel.call.run_state = static_cast<const UserRunState&>(*args.keep->state).run_state;
  }
  const UserCodeScope scope;
  const eddy_code code = code_of(kernel.calling.said, [&] {
    return kernel.table.run_tile(kernel.table.user, &kernel.call, tile);
  });
  return kernel.end(args, code);
}

// Of a GPU's stream.
bool enqueue(const KernelArgs& args) {
  KernelCall kernel(args);
  const UserCodeScope scope;
  const eddy_code code = code_of(kernel.calling.said, [&] {
    return kernel.table.enqueue(kernel.table.user, &kernel.call, args.stream);
  });
  return kernel.end(args, code);
}

// Where the run's state cannot be made, the whole call says so.
uint32_t count_tiles(const KernelArgs& args) {
  KernelCall kernel(args);
  const UserCodeScope scope;
  if (args.keep != nullptr && begin_run(args, kernel) != EDDY_OK) return 1;
  return kernel.table.count_tiles(kernel.table.user, &kernel.call);
}

CallOutcome start(const KernelArgs& args, PendingCall& pending) {
  KernelCall kernel(args);
  kernel.calling.call = &pending;
  const UserCodeScope scope;
  eddy_code code = args.keep == nullptr ? EDDY_OK : begin_run(args, kernel);
  if (code == EDDY_OK) code = run_in(kernel);
  if (kernel.calling.pending != nullptr) {
    return settle(kernel.calling, code,
                  code == EDDY_LATER ? Status::ok() : as_status(code, kernel.calling.said), 0);
  }
  if (code == EDDY_OK) return CallOutcome::kDone;
  args.fail(code == EDDY_LATER ? run_failed("it returned EDDY_LATER, but has not called defer()")
                               : as_status(code, kernel.calling.said));
  return CallOutcome::kFailed;
}

// What eddy_shapes::impl points to, and what it has shown of an attribute.
struct Asking {
  explicit Asking(const Attributes& of) : attributes(of) {}
  const Attributes& attributes;
  std::string said;
  std::vector<const char*> strings;
  eddy_tensor tensor = {};
  eddy_type type = {};

  eddy_attribute show(const char* name, const AttributeValue& value);
};

eddy_attribute Asking::show(const char* name, const AttributeValue& value) {
  eddy_attribute made = {};
  made.name = name;
  made.kind = static_cast<int32_t>(value.index());
  const auto list = [&made](const auto& items) {
    made.count = items.size();
    return items.data();
  };
  if (const auto* i = std::get_if<int64_t>(&value)) made.i = *i;
  if (const auto* f = std::get_if<float>(&value)) made.f = *f;
  if (const auto* s = std::get_if<std::string>(&value)) made.s = s->c_str();
  if (const auto* all = std::get_if<std::vector<int64_t>>(&value)) made.ints = list(*all);
  if (const auto* all = std::get_if<std::vector<float>>(&value)) made.floats = list(*all);
  if (const auto* all = std::get_if<std::vector<std::string>>(&value)) {
    strings.clear();
    for (const std::string& each : *all) strings.push_back(each.c_str());
    made.strings = list(strings);
  }
  if (const auto* constant = std::get_if<Constant>(&value)) {
    tensor = as_c(constant->view());
    if (tensor.element == EDDY_STRING) tensor.data = nullptr;  // as value_tensor() shows them
    made.tensor = &tensor;
  }
  if (const auto* of = std::get_if<ValueType>(&value)) {
    type = as_c(*of, false);
    made.type = &type;
  }
  return made;
}
static_assert(
    std::is_same_v<std::variant_alternative_t<EDDY_ATTRIBUTE_TENSOR, AttributeValue>, Constant> &&
    std::is_same_v<std::variant_alternative_t<EDDY_ATTRIBUTE_TYPE, AttributeValue>, ValueType>);

int64_t attribute_int(void* impl, const char* name, int64_t fallback) {
  return static_cast<Asking*>(impl)->attributes.get_int(name, fallback);
}
float attribute_float(void* impl, const char* name, float fallback) {
  return static_cast<Asking*>(impl)->attributes.get_float(name, fallback);
}
const char* attribute_string(void* impl, const char* name, const char* fallback) {
  const AttributeValue* const found = static_cast<Asking*>(impl)->attributes.find_or_null(name);
  const auto* const text = found == nullptr ? nullptr : std::get_if<std::string>(found);
  return text == nullptr ? fallback : text->c_str();
}
eddy_code attribute_of(void* impl, const char* name, eddy_attribute* attribute) {
  auto& asking = *static_cast<Asking*>(impl);
  const eddy_code code = code_of(asking.said, [&]() -> eddy_code {
    if (name == nullptr || attribute == nullptr) return EDDY_INVALID_ARGUMENT;
    const AttributeValue* const found = asking.attributes.find_or_null(name);
    if (found == nullptr) return EDDY_NOT_FOUND;
    const Refusal why = write_struct(asking.show(name, *found), "the attribute", attribute);
    if (!why.is_ok()) asking.said = why.reason();
    return why.code();
  });
  return code;
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
          fail_shapes,
          attribute_of};
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
  Asking asking(context.attributes());
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
    // Sizes of what stands in a sequence or optional are looked at one by one (operator_values.h).
    for (int axis = 0; !type.is_tensor() && axis < type.tensor.dims.rank(); ++axis) {
      type.tensor.dims[axis] = std::max(type.tensor.dims[axis], kUnknownDim);
    }
    context.set_output(i, type);
  }
  return Status::ok();
}

// What the caller's bind() makes of the node.
Status bind_state(const std::shared_ptr<const UserOperator>& op, const KernelInit& init,
                  BoundKernel& bound) {
  const bool is_of_values = op->table.run_values != nullptr;
  const auto is_unseen = [](const ValueType& type) {
    return !type.is_tensor() || type.tensor.element == ElementType::kString;
  };
  if (!is_of_values && (std::ranges::any_of(init.inputs, is_unseen) ||
                        std::ranges::any_of(init.outputs, is_unseen))) {
    return unsupported("operator '" + op->domain + "." + op->name +
                       "' of the caller's has strings, sequences or optionals, which only a "
                       "function `run_values` can see");
  }
  void* made = nullptr;
  if (op->table.bind != nullptr) {
    Asking asking(init.attributes);
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
  if (is_of_values) {
    state->declared.inputs.assign(init.inputs.begin(), init.inputs.end());
    state->declared.outputs.assign(init.outputs.begin(), init.outputs.end());
  }
  bound.state = std::move(state);
  return Status::ok();
}

Result<BoundKernel> bind_for_gpu(const std::shared_ptr<const UserOperator>& op,
                                 const KernelInit& init) {
  BoundKernel bound;
  EDDY_RETURN_IF_ERROR(bind_state(op, init, bound));
  bound.run = enqueue;
  return bound;
}

Result<BoundKernel> bind_kernel(const std::shared_ptr<const UserOperator>& op,
                                const KernelInit& init) {
  BoundKernel bound;
  EDDY_RETURN_IF_ERROR(bind_state(op, init, bound));
  bound.keeps_of_runs = op->table.begin_run != nullptr || op->table.end_run != nullptr;
  if (op->table.run_values != nullptr) {
    bound.run_value = run_values;
    return bound;
  }
  if ((op->table.flags & EDDY_ANSWERS_LATER) != 0) {
    bound.start = start;
    return bound;
  }
  bound.run = bound.keeps_of_runs ? run_in_state : run;
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
  if (op.run_values != nullptr) {
    const bool is_alone = op.run == nullptr && op.enqueue == nullptr && op.run_tile == nullptr &&
                          op.count_tiles == nullptr && op.flags == 0;
    if (!is_alone) return bad("has `run_values` beside flags or other functions that run it");
  } else if (op.run == nullptr && op.enqueue == nullptr) {
    return bad("has no function `run`");
  }
  if (op.run == nullptr && op.run_tile != nullptr) return bad("has tiles, but no function `run`");
  if ((op.count_tiles == nullptr) != (op.run_tile == nullptr)) {
    return bad("has one of count_tiles and run_tile; give both or neither");
  }
  if ((op.run_tile != nullptr || op.enqueue != nullptr) && (op.flags & EDDY_ANSWERS_LATER) != 0) {
    return bad("has EDDY_ANSWERS_LATER beside tiles or `enqueue`; one of the two");
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
    if (kind < EDDY_ATTRIBUTE_INT || kind > EDDY_ATTRIBUTE_TYPE) {
      return {EDDY_INVALID_ARGUMENT,
              "attribute '" + std::string(table.attribute_names[i]) + "' has no kind of eddy.h"};
    }
    def.attributes.push_back({table.attribute_names[i], static_cast<AttributeKind>(kind)});
  }
  def.infer = [op](InferContext& context) { return infer(*op, context); };
  def.may_wait = (table.flags & EDDY_ANSWERS_LATER) != 0;
  def.is_value_op = table.run_values != nullptr;
  return {};
}
static_assert(static_cast<int>(AttributeKind::kTensor) == EDDY_ATTRIBUTE_TENSOR &&
              static_cast<int>(AttributeKind::kType) == EDDY_ATTRIBUTE_TYPE &&
              static_cast<int>(AttributeKind::kInts) == EDDY_ATTRIBUTE_INTS);

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
      BindFunction bind;
      if (table.run != nullptr || table.run_values != nullptr) {
        bind = [kept](const KernelInit& init) { return bind_kernel(kept, init); };
      }
      status = l->library.add_operator(std::move(def), std::move(bind));
    }
    if (why.is_ok() && status.is_ok() && table.enqueue != nullptr) {
      l->accelerator_kernels.push_back(
          {.op = kept->name,
           .since_version = table.since_version,
           .bind = [kept](const KernelInit& init) { return bind_for_gpu(kept, init); },
           .provider = "caller",
           .domain = kept->domain});
    }
    // A refusal leaves `user` with the caller.
    if (!why.is_ok() || !status.is_ok()) kept->table.destroy = nullptr;
    EDDY_C_TRY(status);
    return why;
  });
}

}  // namespace eddy::c
