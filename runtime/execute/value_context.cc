#include "runtime/execute/value_context.h"

#include <algorithm>
#include <exception>
#include <span>
#include <string>

#include "runtime/execute/bound_kernels.h"
#include "runtime/execute/run_base.h"
#include "runtime/execute/values/string_charge.h"

namespace eddy {
namespace {

// What they take besides what an allocator counts stays below 256 MiB.
constexpr size_t kMaxNewElements = 400'000;

}  // namespace

ElementType SlotContext::element_type(size_t i) const {
  return in(i).kind == ValueKind::kSequence ? in(i).sequence_element : in(i).view.element;
}

void SlotContext::keep(Status status) {
  if (error_.is_ok()) error_ = std::move(status);
}

Result<TensorView> SlotContext::allocate(size_t o, ElementType element, const Dims& dims) {
  out(o).elements.clear();
  out(o).set_tensor(element, dims.span());
  EDDY_RETURN_IF_ERROR(out(o).make_writable(node_.owner->allocator()));
  note_strings(out(o).view, out(o).buffer);
  return out(o).view;
}

void SlotContext::note_strings(const TensorView& view, const BufferRef& holder) {
  if (view.element != ElementType::kString || !holder) return;
  strings_.push_back(view);
  holders_.push_back(holder);
}

// Once they are there: a kernel alone knows how long it makes them.
Status SlotContext::charge_strings() const {
  for (size_t i = 0; i < strings_.size(); ++i) {
    const auto count = static_cast<size_t>(strings_[i].count());
    const size_t bytes = heap_bytes(std::span(strings_[i].as<std::string>(), count));
    Buffer* const buffer = holders_[i].get();
    if (buffer->owner->charge_strings(buffer, bytes)) continue;
    return resource_exhausted("no memory for " + std::to_string(count) + " strings of " +
                              std::to_string(bytes) + " bytes within the limit");
  }
  return Status::ok();
}

void SlotContext::share(size_t o, size_t i) { keep(out(o).share(in(i), node_.owner->allocator())); }

void SlotContext::share_element(size_t o, size_t i, size_t position) {
  out(o).share_element(in(i).elements[position]);
}

void SlotContext::begin_sequence(size_t o, ElementType element) {
  Slot& slot = out(o);
  slot.kind = ValueKind::kSequence;
  slot.buffer.reset();
  slot.sequence_element = element;
  slot.elements.clear();
}

void SlotContext::append(size_t o, SequenceElement element) {
  keep(out(o).elements.push_back(std::move(element), node_.owner->allocator()));
}

void SlotContext::append_input(size_t o, size_t i) {
  if (!in(i).is_volatile) {
    append(o, in(i).as_element());
    return;
  }
  Slot copy;
  keep(copy.share(in(i), node_.owner->allocator()));
  append(o, copy.as_element());
}

void SlotContext::append_element(size_t o, size_t i, size_t position) {
  append(o, in(i).elements[position]);
}

Result<TensorView> SlotContext::append_new(size_t o, ElementType element, const Dims& dims) {
  // A session may have no limit that counts what elements without bytes cost.
  if (out(o).elements.size() >= kMaxNewElements) {
    return resource_exhausted("a node makes a sequence of more than " +
                              std::to_string(kMaxNewElements) + " tensors");
  }
  Slot fresh;
  fresh.set_tensor(element, dims.span());
  EDDY_RETURN_IF_ERROR(fresh.make_writable(node_.owner->allocator()));
  note_strings(fresh.view, fresh.buffer);
  EDDY_RETURN_IF_ERROR(out(o).elements.push_back(fresh.as_element(), node_.owner->allocator()));
  return out(o).elements.back().view();
}

// Other nodes count on what is declared, and, where two sizes have one symbol, on what the rule
// says of this call's.
Status SlotContext::check_type(size_t o, const TensorType& made) const {
  const OpDef& op = *node_.node->op;
  const bool is_callers = node_.kernel->provider == kCustomProvider;
  const ValueType& declared = node_.owner->graph().value(node_.node->outputs[o]).type;
  const ValueType& ruled = node_.changing->output_types[o];
  for (const TensorType& expected : {declared.tensor, ruled.tensor}) {
    if (is_compatible(made, expected)) continue;
    const std::string what = "output " + std::to_string(o) + " of " + op.name + " is declared " +
                             to_string(ValueType(expected)) + " but the kernel made " +
                             to_string(ValueType(made));
    return is_callers ? run_failed(what) : internal_error(what);
  }
  return Status::ok();
}

Status SlotContext::check_outputs() {
  EDDY_RETURN_IF_ERROR(error_);
  EDDY_RETURN_IF_ERROR(charge_strings());
  for (size_t o = 0; o < node_.out.size(); ++o) {
    const Slot& slot = out(o);
    const ValueType& declared = node_.owner->graph().value(node_.node->outputs[o]).type;
    if (slot.kind != ValueKind::kTensor || declared.is_sequence()) continue;
    EDDY_RETURN_IF_ERROR(check_type(o, TensorType(slot.view.element, Dims(slot.view.shape()))));
  }
  return Status::ok();
}

namespace {

// The operator's rule, by the shapes that have come: of tensors, that is; of what stands in
// sequences and optionals kernels see to themselves.
Status check_rule(const ExecNode& node) {
  ExecNode::Changing& changing = *node.changing;
  for (size_t i = 0; i < node.input_slots.size(); ++i) {
    const Slot* const slot = node.input_slots[i];
    if (slot == nullptr) continue;
    const bool is_tensor = slot->kind == ValueKind::kTensor;
    ValueType& type = changing.input_types[i];
    type = node.owner->graph().value(node.node->inputs[i]).type;
    if (is_tensor && type.is_tensor()) {
      type.tensor = TensorType(slot->view.element, Dims(slot->view.shape()));
    }
    const bool is_host = has_flag(node.node->op->input_flags(i), InputFlag::kHostValue);
    changing.input_type_pointers[i] = &type;
    changing.values[i] = is_tensor && is_host ? &slot->view : nullptr;
  }
  std::ranges::fill(changing.output_types, ValueType());
  InferContext context(node.node->attributes, changing.input_type_pointers, changing.values,
                       changing.output_types, node.node->opset_version);
  EDDY_RETURN_IF_ERROR(node.node->op->infer(context));
  if (node.kernel->provider != kCustomProvider) return Status::ok();
  for (size_t o = 0; o < changing.output_types.size(); ++o) {
    const ValueType& declared = node.owner->graph().value(node.node->outputs[o]).type;
    if (is_compatible(changing.output_types[o], declared)) continue;
    return run_failed("the shape function says " + to_string(changing.output_types[o]) +
                      " of output " + std::to_string(o) + ", and said " + to_string(declared) +
                      " when the graph was built");
  }
  return Status::ok();
}

Status call_value_kernel(const ExecNode& node, ValueContext& context) {
  try {
    return node.kernel->run_value(context);
  } catch (const std::exception& error) {
    return run_failed(std::string("the kernel threw: ") + error.what());
  } catch (...) {
    return run_failed("the kernel threw something");
  }
}

}  // namespace

bool run_value(void* exec_node) {
  ExecNode& node = *static_cast<ExecNode*>(exec_node);
  node.ExecNode::reach();
  SlotContext context(node);
  node.error = check_rule(node);
  if (node.error.is_ok()) node.error = call_value_kernel(node, context);
  if (node.error.is_ok()) node.error = context.check_outputs();
  return node.finish(node.error.is_ok());
}

}  // namespace eddy
