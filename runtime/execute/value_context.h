// SlotContext: what a value kernel sees: the slots of its node.
//
// Lives for one call. Everything is shared, nothing copied, except volatile inputs.
#pragma once

#include <vector>

#include "runtime/execute/exec_node.h"

namespace eddy {

class SlotContext : public ValueContext {
 public:
  explicit SlotContext(ExecNode& node) : node_(node) {}

  size_t num_inputs() const override { return node_.input_slots.size(); }
  bool has_input(size_t i) const override {
    return i < num_inputs() && node_.input_slots[i] != nullptr;
  }
  ValueKind kind(size_t i) const override { return in(i).kind; }
  TensorView tensor(size_t i) const override { return in(i).view; }
  size_t length(size_t i) const override { return in(i).elements.size(); }
  TensorView element(size_t i, size_t position) const override {
    return in(i).elements[position].view();
  }
  ElementType element_type(size_t i) const override;

  Result<TensorView> allocate(size_t o, ElementType element, const Dims& dims) override;
  void share(size_t o, size_t i) override;
  void share_element(size_t o, size_t i, size_t position) override;
  void set_none(size_t o) override { out(o).set_none(); }
  void begin_sequence(size_t o, ElementType element) override;
  void append_input(size_t o, size_t i) override;
  void append_element(size_t o, size_t i, size_t position) override;
  Result<TensorView> append_new(size_t o, ElementType element, const Dims& dims) override;
  void remove_last(size_t o) override { out(o).elements.pop_back(); }

  const KernelState* state() const override { return node_.args.state; }
  Scratch& scratch() override { return *node_.args.scratch; }
  RunKeep* keep_or_null() override { return node_.args.keep; }

  // What the kernel made fits what the graph says of its outputs, and its strings within the limit;
  // the first failure of a share.
  Status check_outputs();

 private:
  Slot& in(size_t i) const { return *node_.input_slots[i]; }
  Slot& out(size_t o) const { return *node_.out[o].slot; }
  void keep(Status status);
  void append(size_t o, SequenceElement element);
  void note_strings(const TensorView& view, const BufferRef& holder);
  Status charge_strings() const;
  Status check_type(size_t o, const TensorType& made) const;

  ExecNode& node_;
  Status error_;
  std::vector<TensorView> strings_;  // that the kernel fills
  std::vector<BufferRef> holders_;   // of those
};

// A WorkFunction, as those of exec_node.h.
bool run_value(void* exec_node);

}  // namespace eddy
