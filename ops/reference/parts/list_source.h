// ListSource: where a kernel finds a short list of integers. An attribute or a constant is read
// once when binding; any other input is read at each call.
//
// Not for lists longer than IntList::kCapacity: those are refused with a message.
#pragma once

#include <string_view>

#include "ops/contract/kernel.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {

class ListSource {
 public:
  // The attribute `name` where the node has it, else input `input` where it is given.
  static Result<ListSource> make(const KernelInit& init, size_t input, std::string_view name);

  bool is_given() const { return kind_ != Kind::kAbsent; }
  // The list (empty when absent), possibly read into `buffer`; null after args.fail().
  const IntList* read_or_null(const KernelArgs& args, IntList& buffer) const {
    return kind_ == Kind::kInput ? read_input_or_null(args, buffer) : &fixed_;
  }

 private:
  enum class Kind : uint8_t { kAbsent, kFixed, kInput };
  const IntList* read_input_or_null(const KernelArgs& args, IntList& buffer) const;

  Kind kind_ = Kind::kAbsent;
  uint32_t input_ = 0;
  IntList fixed_;
};

}  // namespace eddy
