// Calls of `run_values`: what an eddy_value_call shows of a value kernel's call, and what its
// functions do.
//
// Each function checks what the caller's code gives it: places, kinds, and the types that `shapes`
// declared. What it refuses first fails the call, whatever the caller's code returns.
//
// Internal to runtime/api/c. Ownership: lives for one call. Errors: a function throws nothing.
#pragma once

#include <string>
#include <vector>

#include "ops/contract/kernel.h"
#include "runtime/api/c/eddy.h"

namespace eddy::c {

// Types that the graph declares of a node's values.
struct DeclaredTypes {
  std::vector<ValueType> inputs;
  std::vector<ValueType> outputs;
};

class ValueCalling {
 public:
  ValueCalling(ValueContext& context, const DeclaredTypes& declared)
      : context_(context), declared_(declared), made_(declared.outputs.size(), Made::kNothing) {}

  // What its `impl` points to is this.
  eddy_value_call show(void* state, void* run_state);
  std::string& said() { return said_; }
  // What the caller's code has returned, or what it was refused or has left undone.
  Status end(eddy_code code);

 private:
  enum class Made : uint8_t { kNothing, kValue, kSequence };
  struct Functions;  // of eddy_value_call

  template <typename Call>
  eddy_code checked(const Call& call) noexcept;
  bool has_input(uint32_t input) const {
    return input < context_.num_inputs() && context_.has_input(input);
  }
  size_t length(uint32_t input) const;
  TensorView tensor(uint32_t input, size_t position) const;
  Status check_position(uint32_t input, size_t position) const;
  Status check_new(uint32_t output) const;
  Status check_fits(uint32_t output, const TensorType& type) const;
  // Makes or appends a tensor of these sizes.
  Result<TensorView> make(uint32_t output, ElementType element, const Dims& dims);
  Status make_none(uint32_t output);
  Status make_sequence(uint32_t output);
  Status share(uint32_t output, uint32_t input);
  Status make_tensor(uint32_t output, const int64_t* dims, int32_t rank, void** data);
  Status make_strings(uint32_t output, const int64_t* dims, int32_t rank, const int64_t* offsets,
                      const char* bytes);
  Status share_tensor(uint32_t output, uint32_t input, size_t position);

  ValueContext& context_;
  const DeclaredTypes& declared_;
  std::vector<Made> made_;  // by output
  Status refused_;          // the first
  std::string said_;
};

}  // namespace eddy::c
