// ScriptOperator: operator "Script" of values, in domain "fuzz", that calls what it is given by a
// script, which is its attribute: in any order, with places and sizes that may be wrong.
//
// What it reads is there: each element and string is looked at, so that sanitizers see it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "graph/base/check.h"
#include "runtime/api/c/eddy.h"

namespace eddy {

class ScriptOperator {
 public:
  static void add_to(const eddy_api& api, eddy_library library) {
    static const char* const attribute = "script";
    static const int32_t kind = EDDY_ATTRIBUTE_INT;
    eddy_operator op = {};
    op.struct_size = sizeof(op);
    op.name = "Script";
    op.domain = "fuzz";
    op.since_version = 1;
    op.max_inputs = 3;
    op.num_outputs = 2;
    op.attribute_names = &attribute;
    op.attribute_kinds = &kind;
    op.num_attributes = 1;
    op.shapes = shapes;
    op.bind = [](void*, const eddy_shapes* node, void** state) -> eddy_code {
      *state = reinterpret_cast<void*>(node->attribute_int(node->impl, "script", 0));
      return EDDY_OK;
    };
    op.run_values = [](void*, const eddy_value_call* call) -> eddy_code {
      return ScriptOperator(reinterpret_cast<uintptr_t>(call->state)).run(*call);
    };
    EDDY_CHECK(api.library_add_operator(library, &op, nullptr) == EDDY_OK);
  }

 private:
  explicit ScriptOperator(uint64_t seed) : state_(seed) {}

  // SplitMix64 (Steele et al. 2014).
  uint64_t next(uint64_t count) {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % count;
  }
  uint32_t place() { return static_cast<uint32_t>(next(16) == 0 ? next(5) : next(2)); }

  static eddy_code shapes(void*, const eddy_shapes* node) {
    ScriptOperator script(static_cast<uint64_t>(node->attribute_int(node->impl, "script", 0)));
    for (uint32_t o = 0; o < node->num_outputs; ++o) {
      eddy_type& type = node->outputs[o];
      const uint64_t like = script.next(4);
      if (like < node->num_inputs && node->inputs[like].element != EDDY_UNDEFINED) {
        type = node->inputs[like];
        continue;
      }
      type.element = script.next(3) == 0 ? EDDY_STRING : EDDY_FLOAT;
      type.rank = static_cast<int32_t>(script.next(3)) - 1;
      type.dims[0] = static_cast<int64_t>(script.next(4)) - 1;
      type.wrappers[0] = static_cast<uint8_t>(script.next(3));
    }
    return EDDY_OK;
  }

  void read(const eddy_value_call& call) {
    const uint32_t input = place();
    const int32_t kind = call.kind(call.impl, input);
    if (kind < 0 && next(4) != 0) return;
    const size_t length = call.length(call.impl, input);
    EDDY_CHECK(length == 0 || kind > 0) << "kind " << kind << " of " << length << " tensors";
    const size_t position = next(length + (next(8) == 0 ? 2 : 1));
    eddy_tensor view = {};
    if (position >= length && next(4) != 0) return;
    if (call.tensor(call.impl, input, position, &view) != EDDY_OK) return;
    int64_t count = 1;
    for (int32_t i = 0; i < view.rank; ++i) count *= view.dims[i];
    for (int64_t i = -1; i <= count; ++i) {
      size_t size = 0;
      const char* const text = call.string(call.impl, input, position, i, &size);
      const bool is_there = view.element == EDDY_STRING && i >= 0 && i < count;
      EDDY_CHECK((text != nullptr) == is_there) << "string " << i << " of " << count;
      sum_ += text == nullptr ? size : std::string(text, size).size();
    }
    if (view.element != EDDY_FLOAT) return;
    for (int64_t i = 0; i < count; ++i) sum_ += static_cast<const float*>(view.data)[i] > 0;
  }

  eddy_code make(const eddy_value_call& call) {
    const int64_t dims[2] = {static_cast<int64_t>(next(5)), static_cast<int64_t>(next(3))};
    const auto rank = static_cast<int32_t>(next(3));
    const uint32_t output = place();
    switch (next(6)) {
      case 0:
        return call.make_none(call.impl, output);
      case 1:
        return call.make_sequence(call.impl, output);
      case 2:
        return call.share(call.impl, output, place());
      case 3:
        return call.share_tensor(call.impl, output, place(), next(3));
      case 4: {
        void* data = nullptr;
        const eddy_code code = call.make_tensor(call.impl, output, dims, rank, &data);
        const int64_t count = rank == 0 ? 1 : rank == 1 ? dims[0] : dims[0] * dims[1];
        if (code == EDDY_OK && count > 0) std::memset(data, 1, static_cast<size_t>(count));
        return code;
      }
      default: {
        const int64_t offsets[9] = {0, 0, 1, 3, 30, 31, 31, 32, 32};
        return call.make_strings(call.impl, output, dims, rank, offsets,
                                 "words of which one is somewhat longer");
      }
    }
  }

  eddy_code run(const eddy_value_call& call) {
    const uint64_t ignores = next(4);  // it may go on behind a refusal, and say that all is well
    for (uint64_t i = next(7); i > 0; --i) {
      read(call);
      const eddy_code code = make(call);
      if (code != EDDY_OK && ignores != 0) return code;
    }
    return EDDY_OK;
  }

  uint64_t state_;
  size_t sum_ = 0;
};

}  // namespace eddy
