#include "runtime/execute/value_context.h"

#include <algorithm>
#include <exception>
#include <string>

#include "runtime/execute/run_base.h"

namespace eddy {
namespace {

constexpr size_t kMaxNewElements = size_t{1} << 19;

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
  return out(o).view;
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
  EDDY_RETURN_IF_ERROR(out(o).elements.push_back(fresh.as_element(), node_.owner->allocator()));
  return out(o).elements.back().view();
}

Status SlotContext::check_outputs() {
  EDDY_RETURN_IF_ERROR(error_);
  for (size_t o = 0; o < node_.out.size(); ++o) {
    const Slot& slot = out(o);
    const ValueType& declared = node_.owner->graph().value(node_.node->outputs[o]).type;
    if (slot.kind != ValueKind::kTensor || declared.is_sequence()) continue;
    const ValueType actual(TensorType(slot.view.element, Dims(slot.view.shape())));
    // By the sizes of this call, which other nodes may count on where two have one symbol.
    const ValueType& ruled = node_.changing->output_types[o];
    for (const TensorType& expected : {declared.tensor, ruled.tensor}) {
      if (is_compatible(actual, expected)) continue;
      return internal_error("output " + std::to_string(o) + " of " + node_.node->op->name +
                            " is declared " + to_string(ValueType(expected)) +
                            " but the kernel made " + to_string(actual));
    }
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
  return node.node->op->infer(context);
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
