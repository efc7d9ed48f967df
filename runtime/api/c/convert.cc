#include "runtime/api/c/convert.h"

#include <algorithm>
#include <cstring>

#include "graph/io/import_limits.h"
#include "graph/io/text.h"
#include "runtime/api/bound_memory.h"

namespace eddy::c {

Refusal is_missing(const char* what) {
  constexpr std::string_view kThe = "the ";
  std::string_view name = what;
  if (name.starts_with(kThe)) name.remove_prefix(kThe.size());
  return {EDDY_INVALID_ARGUMENT, "there is no " + std::string(name) + ": it is null"};
}

// By what model files may have: a graph with it could be exported, but not read again.
Refusal check_name(const char* name, const char* what) {
  if (name == nullptr) return {};
  const size_t most = ImportLimits().max_name_bytes;
  if (strnlen(name, most + 1) > most) {
    return {EDDY_INVALID_ARGUMENT, std::string("the ") + what + " '" + std::string(name, 32) +
                                       "...' is longer than " + std::to_string(most) + " bytes"};
  }
  if (is_clean_utf8(name)) return {};
  return {EDDY_INVALID_ARGUMENT, std::string("the ") + what + " '" + name +
                                     "' is no UTF-8 or has control characters; give another"};
}

Refusal check_given_name(const char* name, const char* what) {
  EDDY_C_TRY(need(name, what));
  if (name[0] == '\0') return {EDDY_INVALID_ARGUMENT, std::string("the ") + what + " is empty"};
  return check_name(name, what);
}

Refusal read_dims(const int64_t* given, int32_t rank, const char* what, Dims& dims) {
  const auto bad = [&](const std::string& reason) {
    return Refusal(EDDY_INVALID_ARGUMENT, std::string(what) + " " + reason);
  };
  if (rank < 0 || rank > kMaxRank) {
    return bad("has rank " + std::to_string(rank) + "; 0 to " + std::to_string(kMaxRank));
  }
  if (rank > 0 && given == nullptr) return bad("has a rank, but dims is null");
  dims = Dims(std::span(given, static_cast<size_t>(rank)));
  for (const int64_t dim : dims) {
    if (dim < 0) return bad("has a dimension of " + std::to_string(dim));
  }
  if (!dims.count()) return bad("has more elements than can be counted");
  return {};
}

Refusal read_strings(const int64_t* given, int32_t rank, const int64_t* offsets, const char* bytes,
                     Dims& dims, std::vector<std::string>& strings) {
  EDDY_C_TRY(need(offsets, "list of offsets"));
  EDDY_C_TRY(read_dims(given, rank, "the tensor of strings", dims));
  for (int64_t i = 0; i < *dims.count(); ++i) {
    if (offsets[i] < 0 || offsets[i + 1] < offsets[i]) {
      return {EDDY_INVALID_ARGUMENT,
              "offset " + std::to_string(i + 1) + " is below the one before it, or negative"};
    }
    if (offsets[i + 1] > 0) EDDY_C_TRY(need(bytes, "memory of the strings"));
    const size_t size = static_cast<size_t>(offsets[i + 1] - offsets[i]);
    strings.emplace_back(size == 0 ? "" : bytes + offsets[i], size);
  }
  return {};
}

Refusal read_tensor(const eddy_tensor* given, const char* what, TensorView& view) {
  EDDY_C_TRY(need(given, what));
  const auto bad = [&](const std::string& reason) {
    return Refusal(EDDY_INVALID_ARGUMENT, std::string(what) + " " + reason);
  };
  if (given->element == EDDY_UNDEFINED || given->element >= kNumElementTypes) {
    return bad("has the element type " + std::to_string(given->element) + ", which is none");
  }
  const auto element = static_cast<ElementType>(given->element);
  if (element == ElementType::kString) {
    return bad("is of strings, which have no memory here; make a value by value_from_strings");
  }
  Dims dims;
  EDDY_C_TRY(read_dims(given->dims, given->rank, what, dims));
  view = {given->data, given->dims, given->rank, element};
  if (given->data == nullptr && view.count() > 0) return bad("has elements, but data is null");
  return {};
}

Refusal read_type(const eddy_type* given, const char* what, size_t num_symbols, ValueType& type) {
  eddy_type read;
  EDDY_C_TRY(read_struct(given, sizeof(eddy_type), what, read));
  const auto bad = [&](const std::string& reason) {
    return Refusal(EDDY_INVALID_ARGUMENT, std::string(what) + " " + reason);
  };
  if (read.element == EDDY_UNDEFINED || read.element >= kNumElementTypes) {
    return bad("has the element type " + std::to_string(read.element) + ", which is none");
  }
  TensorType tensor(static_cast<ElementType>(read.element));
  if (read.rank != EDDY_UNRANKED) {
    if (read.rank < 0 || read.rank > kMaxRank) {
      return bad("has rank " + std::to_string(read.rank) + "; EDDY_UNRANKED, or 0 to " +
                 std::to_string(kMaxRank));
    }
    tensor.is_ranked = true;
    for (int32_t axis = 0; axis < read.rank; ++axis) {
      const int64_t dim = read.dims[axis];
      if (dim < kUnknownDim && static_cast<uint64_t>(-2 - dim) >= num_symbols) {
        return bad("has the dimension " + std::to_string(dim) +
                   ", which graph_symbol did not give");
      }
      tensor.dims.push_back(dim);
    }
  }
  type = tensor;
  for (int layer = kMaxWrappers - 1; layer >= 0; --layer) {
    switch (read.wrappers[layer]) {
      case 0:
        if (type.num_wrappers > 0) return bad("has a wrapper inside none");
        break;
      case 1:
        type = ValueType::sequence_of(type);
        break;
      case 2:
        type = ValueType::optional_of(type);
        break;
      default:
        return bad("has the wrapper " + std::to_string(read.wrappers[layer]) + "; 0, 1 or 2");
    }
  }
  return {};
}

eddy_type as_c(const ValueType& type, bool keeps_symbols) {
  eddy_type made = {};
  made.struct_size = sizeof(eddy_type);
  made.element = static_cast<eddy_element>(type.tensor.element);
  for (size_t i = 0; i < type.num_wrappers; ++i) {
    made.wrappers[i] = type.wrappers[i] == Wrapper::kSequence ? 1 : 2;
  }
  made.rank = type.tensor.is_ranked ? type.tensor.dims.rank() : EDDY_UNRANKED;
  for (int axis = 0; axis < made.rank; ++axis) {
    const int64_t dim = type.tensor.dims[axis];
    made.dims[axis] = dim < 0 && !keeps_symbols ? EDDY_UNKNOWN_DIM : dim;
  }
  return made;
}

namespace {

Refusal read_attribute(const eddy_attribute& given, AttributeValue& value,
                       const std::function<Constant(const TensorView&)>& keep) {
  const std::string what = "attribute '" + std::string(given.name) + "'";
  const auto list = [&](const void* items) {
    if (given.count == 0 || items != nullptr) return Refusal();
    return Refusal(EDDY_INVALID_ARGUMENT, what + " has a count, but its list is null");
  };
  switch (given.kind) {
    case EDDY_ATTRIBUTE_INT:
      value = given.i;
      return {};
    case EDDY_ATTRIBUTE_FLOAT:
      value = given.f;
      return {};
    case EDDY_ATTRIBUTE_STRING:
      EDDY_C_TRY(need(given.s, (what + "'s text").c_str()));
      value = std::string(given.s);
      return {};
    case EDDY_ATTRIBUTE_INTS:
      EDDY_C_TRY(list(given.ints));
      value = std::vector<int64_t>(given.ints, given.ints + given.count);
      return {};
    case EDDY_ATTRIBUTE_FLOATS:
      EDDY_C_TRY(list(given.floats));
      value = std::vector<float>(given.floats, given.floats + given.count);
      return {};
    case EDDY_ATTRIBUTE_STRINGS: {
      EDDY_C_TRY(list(given.strings));
      std::vector<std::string> strings;
      for (size_t i = 0; i < given.count; ++i) {
        EDDY_C_TRY(need(given.strings[i], (what + "'s text").c_str()));
        strings.emplace_back(given.strings[i]);
      }
      value = std::move(strings);
      return {};
    }
    case EDDY_ATTRIBUTE_TENSOR: {
      TensorView view;
      EDDY_C_TRY(read_tensor(given.tensor, what.c_str(), view));
      value = keep(view);
      return {};
    }
    case EDDY_ATTRIBUTE_TYPE: {
      ValueType type;
      EDDY_C_TRY(read_type(given.type, what.c_str(), 0, type));
      value = type;
      return {};
    }
    default:
      return {EDDY_INVALID_ARGUMENT,
              what + " has the kind " + std::to_string(given.kind) + ", which is none"};
  }
}

}  // namespace

Refusal read_attributes(const eddy_attribute* given, size_t count, Attributes& attributes,
                        const std::function<Constant(const TensorView&)>& keep) {
  if (count > 0) EDDY_C_TRY(need(given, "list of attributes"));
  const char* next = reinterpret_cast<const char*>(given);
  for (size_t i = 0; i < count; ++i) {
    // The caller's array, in steps of the caller's structs.
    const auto* each = reinterpret_cast<const eddy_attribute*>(next);
    eddy_attribute read;
    EDDY_C_TRY(read_struct(each, EDDY_C_UPTO(eddy_attribute, tensor), "an attribute", read));
    next += each->struct_size;
    EDDY_C_TRY(need(read.name, "name of an attribute"));
    AttributeValue value;
    EDDY_C_TRY(read_attribute(read, value, keep));
    attributes.set(read.name, std::move(value));
  }
  return {};
}

Tensor text_value(const std::string& text) {
  const int64_t size = static_cast<int64_t>(text.size());
  return Tensor::copy_of({const_cast<char*>(text.data()), &size, 1, ElementType::kUint8});
}

}  // namespace eddy::c
