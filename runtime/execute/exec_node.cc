#include "runtime/execute/exec_node.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "graph/base/check.h"
#include "runtime/device/staging.h"
#include "runtime/execute/run_base.h"
#include "runtime/execute/values/stream_scratch.h"
#include "runtime/execute/values/string_charge.h"

namespace eddy {
namespace {

[[gnu::noinline]] bool fail(ExecNode& node, Status status) {
  return node.owner->fail(node.id, std::move(status));
}

[[gnu::noinline]] bool make_writable(ExecNode& node, const ExecNode::Output& output) {
  if (Status status = output.slot->make_writable(*node.output_memory); !status.is_ok()) {
    return fail(node, std::move(status));
  }
  return true;
}

// Output 0's slot gets input 0's buffer, grown to size_bytes with room to grow on. Its first
// bytes stay input 0's elements. False when that is not possible or not worth it.
bool append_in_place(ExecNode& node, Slot& output, size_t size_bytes) {
  Slot& input = *node.input_slots[0];
  const int rank = input.view.rank;
  int64_t axis = node.node->attributes.get_int("axis", 0);
  if (axis < 0) axis += rank;
  EDDY_DCHECK(axis >= 0 && axis < rank) << "axis " << axis << " of " << rank;
  for (int64_t i = 0; i < axis; ++i) {
    if (input.view.dims[i] != 1) return false;
  }
  if (input.view.element == ElementType::kString || !input.buffer.is_writable(0) ||
      input.view.data != input.buffer.data()) {
    return false;
  }
  if (!input.buffer.is_writable(size_bytes)) {
    Result<BufferRef> larger = node.owner->allocator().allocate(size_bytes + size_bytes / 2);
    if (!larger.is_ok()) return false;  // the exact size may still fit
    const size_t input_bytes = input.view.size_bytes();
    if (input_bytes > 0) std::memcpy(larger->data(), input.view.data, input_bytes);
    input.buffer = std::move(*larger);
    input.view.data = input.buffer.data();
    node.inputs[0].data = input.view.data;
  }
  output.buffer.swap(input.buffer);
  output.view.data = output.buffer.data();
  // The input's slot goes on to other values, by swaps: what it points to must be its own.
  input.view.data = input.buffer ? input.buffer.data() : nullptr;
  return true;
}

// Output 0's slot gets the memory of the input that ends here, which gets what the slot had.
[[gnu::noinline]] bool take_place(ExecNode& node, Slot& output, size_t size_bytes) {
  Slot& input = *node.in_place_or_null;
  EDDY_DCHECK(&input != &output) << "an input stands in the output's slot";
  if (!input.buffer.is_writable(size_bytes) || input.view.data != input.buffer.data() ||
      !std::ranges::equal(input.view.shape(), output.view.shape()) ||
      element_size_bytes(input.view.element) != element_size_bytes(output.view.element)) {
    return false;
  }
  output.swap_memory(input);
  return true;
}

bool same_shapes(const ExecNode& node) {
  if (!node.changing->are_types_known || node.has_host_values) return false;
  EDDY_DCHECK(node.inputs.size() == node.changing->input_types.size())
      << node.inputs.size() << " inputs, " << node.changing->input_types.size() << " types";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorView& view = node.inputs[i];
    if (view.is_omitted()) continue;
    const Dims& last = node.changing->input_types[i].tensor.dims;
    if (last.rank() != view.rank || !std::equal(last.begin(), last.end(), view.dims)) return false;
  }
  return true;
}

Status infer_outputs(ExecNode& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorView& view = node.inputs[i];
    if (!view.is_omitted())
      node.changing->input_types[i] = TensorType(view.element, Dims(view.shape()));
  }
  std::fill(node.changing->output_types.begin(), node.changing->output_types.end(), ValueType());
  InferContext context(node.node->attributes, node.changing->input_type_pointers,
                       node.changing->values, node.changing->output_types,
                       node.node->opset_version);
  EDDY_RETURN_IF_ERROR(node.node->op->infer(context));
  for (const ValueType& type : node.changing->output_types) {
    if (!type.tensor.is_static()) {
      return internal_error("the shape rule of " + node.node->op->name +
                            " left an output shape open: " + to_string(type));
    }
    // Views take no memory that would refuse the size.
    Result<size_t> bytes = tensor_size_bytes(type.tensor.element, type.tensor.dims.span());
    if (!bytes.is_ok()) return bytes.status();
  }
  node.changing->are_types_known = true;
  return Status::ok();
}

// Copies the views of all inputs; an input that holds no tensor fails.
bool read_inputs(ExecNode& node) {
  for (size_t i = 0; i < node.input_slots.size(); ++i) {
    const Slot* slot = node.input_slots[i];
    if (slot == nullptr) continue;
    if (slot->kind != ValueKind::kTensor) [[unlikely]] {
      return fail(node, run_failed("input " + std::to_string(i) + " of " + node.node->op->name +
                                   " is an empty optional"));
    }
    node.inputs[i] = slot->view;
  }
  return true;
}

void release_inputs(ExecNode& node) {
  if (node.changing == nullptr) return;
  for (Slot* slot : node.changing->release) slot->release(node.changing->min_released_bytes);
}

bool refresh_shapes(ExecNode& node) {
  if (same_shapes(node)) [[likely]]
    return true;
  Status status = infer_outputs(node);
  return status.is_ok() || fail(node, std::move(status));
}

[[gnu::cold, gnu::noinline]] bool has_thrown(ExecNode& node, const char* what_or_null) {
  node.error =
      run_failed(what_or_null == nullptr ? "the kernel threw something"
                                         : std::string("the kernel threw: ") + what_or_null);
  return false;
}

// Kernels are not to throw, but users write some, and no caller could report it to the run. Free
// where nothing is thrown.
inline bool call(ExecNode& node, const KernelArgs& args) {
  try {
    return node.run(args);
  } catch (const std::exception& error) {
    return has_thrown(node, error.what());
  } catch (...) {
    return has_thrown(node, nullptr);
  }
}

constexpr size_t kLongestNumber = 24;  // as text

std::span<const std::string> strings_of(const TensorView& view) {
  if (view.element != ElementType::kString || view.data == nullptr) return {};
  return {view.as<std::string>(), static_cast<size_t>(view.count())};
}

// Charges what the outputs may take at most: each string one of each input behind the other.
bool charge_strings(ExecNode& node) {
  size_t longest_made = 0;
  for (const TensorView& input : node.inputs) longest_made += longest(strings_of(input));
  const size_t bytes_each = heap_bytes(std::max(longest_made, kLongestNumber));
  for (size_t i = 0; i < node.out.size(); ++i) {
    if (node.args.outputs[i].element != ElementType::kString) continue;
    Buffer* const buffer = node.out[i].slot->buffer.get();
    size_t bytes = 0;
    const bool is_counted = !__builtin_mul_overflow(
        bytes_each, static_cast<size_t>(node.args.outputs[i].count()), &bytes);
    if (is_counted && (buffer == nullptr || buffer->owner->charge_strings(buffer, bytes))) continue;
    return fail(node,
                resource_exhausted("no memory for " + std::to_string(node.args.outputs[i].count()) +
                                   " strings of up to " + std::to_string(bytes_each) +
                                   " bytes each within the limit"));
  }
  return true;
}

// What they have taken in fact.
void settle_strings(const ExecNode& node) {
  for (size_t i = 0; i < node.out.size(); ++i) {
    Buffer* const buffer = node.out[i].slot->buffer.get();
    if (node.args.outputs[i].element != ElementType::kString || buffer == nullptr) continue;
    buffer->owner->charge_strings(buffer, heap_bytes(strings_of(node.args.outputs[i])));
  }
}

[[gnu::noinline]] bool run_for_strings(ExecNode& node) {
  if (!charge_strings(node)) return false;
  const bool is_fine = call(node, node.args);
  settle_strings(node);
  return is_fine || fail(node, std::move(node.error));
}

inline bool run_kernel(ExecNode& node) {
  if (node.makes_strings) [[unlikely]]
    return run_for_strings(node);
  if (call(node, node.args)) [[likely]]
    return true;
  return fail(node, std::move(node.error));
}

// Inlined into the shortest way of a node, which is most of what a small one costs.
[[gnu::always_inline]] inline bool prepare_fixed(ExecNode& node) {
  node.ExecNode::reach();
  for (const ExecNode::Refresh& each : node.refresh) each.to->data = each.from->view.data;
  for (const ExecNode::Output& output : node.moving()) {
    Slot& slot = *output.slot;
    if (output.is_planned) {
      output.view->data = slot.view.data;
      continue;
    }
    if (output.targets_or_null != nullptr) [[unlikely]] {
      if (output.targets_or_null->give_to(slot, output.size_bytes)) {
        output.view->data = slot.view.data;
        continue;
      }
    }
    const bool is_taken = node.in_place_or_null != nullptr && &output == node.out.data() &&
                          take_place(node, slot, output.size_bytes);
    if (!is_taken && !slot.buffer.is_writable(output.size_bytes)) [[unlikely]] {
      if (!make_writable(node, output)) return false;
    }
    output.view->data = slot.view.data;
  }
  return true;
}

}  // namespace

bool ExecNode::prepare() { return prepare_fixed(*this); }

void ExecNode::use(const BoundKernel& kernel) {
  EDDY_DCHECK((kernel.run != nullptr) + (kernel.run_value != nullptr) + (kernel.start != nullptr) ==
              1)
      << "a kernel is one function";
  this->kernel = &kernel;
  run = kernel.run;
  args.state = kernel.state.get();
}

void ExecNode::bind() {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (input_slots[i] != nullptr) inputs[i].data = input_slots[i]->view.data;
  }
  for (const Output& output : out) output.view->data = output.slot->view.data;
}

bool ExecNode::is_recordable() const {
  if (!may_be_recorded) return false;
  if (reads_staging_of_or_null == nullptr) return true;
  EDDY_DCHECK(!inputs.empty()) << "a node without inputs reads staging memory";
  return reads_staging_of_or_null->is_staging(inputs[0].data, inputs[0].size_bytes());
}

void ExecNode::add_addresses(std::vector<const void*>& addresses) const {
  for (const Refresh& each : refresh) addresses.push_back(each.to->data);
  for (const Output& output : moving()) addresses.push_back(output.view->data);
}

bool ExecNode::enqueue(NativeStream stream, bool is_recorded) {
  KernelArgs there = args;
  there.stream = stream;
  const bool is_fine = call(*this, there);
  if (is_recorded && args.scratch != nullptr) static_cast<StreamScratch*>(args.scratch)->keep();
  return is_fine;
}

bool ExecNode::tell_error() { return fail(*this, std::move(error)); }

bool run_fixed(void* exec_node) {
  ExecNode& node = *static_cast<ExecNode*>(exec_node);
  if (!prepare_fixed(node)) return false;
  return run_kernel(node);
}

namespace {

bool prepare_dynamic(ExecNode& node) {
  EDDY_DCHECK(node.changing != nullptr) << "a node of fixed shapes";
  node.reach();
  if (!read_inputs(node) || !refresh_shapes(node)) return false;
  for (size_t i = 0; i < node.out.size(); ++i) {
    Slot& slot = *node.out[i].slot;
    const TensorType& type = node.changing->output_types[i].tensor;
    slot.set_tensor(type.element, type.dims.span());
    const auto bytes = tensor_size_bytes(type.element, type.dims.span());
    if (!bytes.is_ok()) return fail(node, bytes.status());
    const bool is_planned = node.out[i].is_planned;
    OutputTargets* const targets = node.out[i].targets_or_null;
    if (is_planned && *bytes > node.out[i].size_bytes) {
      return fail(node, run_failed("output " + std::to_string(i) + " of " + node.node->op->name +
                                   " has shape " + to_string(type.dims) +
                                   ", more than was inferred for it"));
    }
    if (is_planned) {
      // Its slot stands there.
    } else if (targets == nullptr || !targets->give_to(slot, *bytes)) {
      const bool has_place =
          i == 0 && ((node.may_append && append_in_place(node, slot, *bytes)) ||
                     (node.in_place_or_null != nullptr && take_place(node, slot, *bytes)));
      if (!has_place && !make_writable(node, node.out[i])) return false;
    }
    node.args.outputs[i] = slot.view;
  }
  return true;
}

}  // namespace

bool ExecNode::begin() { return work == run_fixed ? ExecNode::prepare() : prepare_dynamic(*this); }

bool ExecNode::finish(bool is_ok) {
  if (!is_ok) return fail(*this, std::move(error));
  release_inputs(*this);
  return true;
}

bool run_dynamic(void* exec_node) {
  ExecNode& node = *static_cast<ExecNode*>(exec_node);
  if (!prepare_dynamic(node) || !run_kernel(node)) [[unlikely]]
    return false;
  release_inputs(node);
  return true;
}

bool run_view(void* exec_node) {
  ExecNode& node = *static_cast<ExecNode*>(exec_node);
  EDDY_DCHECK(node.changing != nullptr && node.out.size() == 1) << node.out.size() << " outputs";
  node.current_node->store(node.id.index(), std::memory_order_relaxed);
  Slot& input = *node.input_slots[0];
  Slot& output = *node.out[0].slot;
  if (input.kind == ValueKind::kTensor) {
    if (!read_inputs(node) || !refresh_shapes(node)) return false;
  }
  if (Status status = output.share(input, node.owner->allocator()); !status.is_ok()) {
    return fail(node, std::move(status));
  }
  if (output.kind == ValueKind::kTensor) {
    const TensorType& type = node.changing->output_types[0].tensor;
    output.set_tensor(type.element, type.dims.span());
  }
  release_inputs(node);
  return true;
}

bool run_still(void* exec_node) {
  static_cast<ExecNode*>(exec_node)->ExecNode::reach();
  return true;
}

}  // namespace eddy
