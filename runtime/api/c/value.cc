#include "runtime/api/c/value.h"

#include <dlpack/dlpack.h>

#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/eddy_dlpack.h"
#include "runtime/api/c/errors.h"
#include "runtime/api/c/user_code.h"
#include "runtime/api/dlpack.h"

namespace eddy::c {

Refusal give_text(const std::string& text, eddy_value* value) {
  EDDY_C_TRY(need(value, "place for the value"));
  *value = make_handle<eddy_value>(std::make_shared<ValueObject>(text_value(text)));
  return {};
}
namespace {

Refusal give(Tensor tensor, eddy_value* value) {
  *value = make_handle<eddy_value>(std::make_shared<ValueObject>(std::move(tensor)));
  return {};
}

Refusal check_kind(const ValueObject& value, ValueKind wanted, const char* name) {
  if (value.tensor.kind() == wanted) return {};
  const char* const is = value.tensor.kind() == ValueKind::kNone     ? "nothing"
                         : value.tensor.kind() == ValueKind::kTensor ? "a tensor"
                                                                     : "a sequence";
  return {EDDY_INVALID_ARGUMENT, std::string("the value is ") + is + ", not " + name};
}

}  // namespace

eddy_code value_copy(const eddy_tensor* tensor, eddy_value* value, eddy_error* error) {
  return enter(error, [&]() -> Refusal {
    EDDY_C_TRY(need(value, "place for the value"));
    TensorView view;
    EDDY_C_TRY(read_tensor(tensor, "the tensor", view));
    return give(Tensor::copy_of(view), value);
  });
}

eddy_code value_borrow(const eddy_tensor* tensor, eddy_function release_memory, void* user,
                       eddy_value* value, eddy_error* error) {
  // Called when the last that shares it goes, here where nothing has taken it.
  const auto let_go = [release_memory, user](const void*) {
    if (release_memory != nullptr) call_and_forget([&] { release_memory(user); });
  };
  std::shared_ptr<const void> owner;
  try {
    owner = std::shared_ptr<const void>(static_cast<const void*>(&owner), let_go);
  } catch (...) {
    return report(caught(), nullptr, nullptr, error);  // which has called it
  }
  return enter(error, [&]() -> Refusal {
    EDDY_C_TRY(need(value, "place for the value"));
    TensorView view;
    EDDY_C_TRY(read_tensor(tensor, "the tensor", view));
    return give(Tensor::adopt(view, std::move(owner)), value);
  });
}

eddy_code value_from_strings(const int64_t* dims, int32_t rank, const int64_t* offsets,
                             const char* bytes, eddy_value* value, eddy_error* error) {
  return enter(error, [&]() -> Refusal {
    EDDY_C_TRY(need(value, "place for the value"));
    Dims shape;
    std::vector<std::string> strings;
    EDDY_C_TRY(read_strings(dims, rank, offsets, bytes, shape, strings));
    return give(Tensor::copy_of({strings.data(), shape.data(), shape.rank(), ElementType::kString}),
                value);
  });
}

eddy_code value_sequence(eddy_element element, const eddy_value* values, size_t count,
                         eddy_value* value, eddy_error* error) {
  return enter(error, [&]() -> Refusal {
    EDDY_C_TRY(need(value, "place for the value"));
    if (count > 0) EDDY_C_TRY(need(values, "list of values"));
    if (element == EDDY_UNDEFINED || element >= kNumElementTypes) {
      return {EDDY_INVALID_ARGUMENT, "there is no element type " + std::to_string(element)};
    }
    std::vector<Tensor> elements;
    for (size_t i = 0; i < count; ++i) {
      Refusal why;
      const Pin<ValueObject> each(values[i], why);
      if (!each) return why;
      EDDY_C_TRY(check_kind(*each, ValueKind::kTensor, "a tensor of a sequence"));
      if (each->tensor.element_type() != static_cast<ElementType>(element)) {
        return {EDDY_INVALID_ARGUMENT,
                "element " + std::to_string(i) + " of the sequence is of another type: " +
                    std::string(element_type_name(each->tensor.element_type()))};
      }
      elements.push_back(each->tensor);
    }
    return give(Tensor::sequence(static_cast<ElementType>(element), std::move(elements)), value);
  });
}

eddy_code value_none(eddy_value* value, eddy_error* error) {
  return enter(error, [&]() -> Refusal {
    EDDY_C_TRY(need(value, "place for the value"));
    return give(Tensor(), value);
  });
}

eddy_code value_kind(eddy_value value, int32_t* kind, eddy_error* error) {
  return enter_with<ValueObject>(value, error, [&](const auto& v) -> Refusal {
    EDDY_C_TRY(need(kind, "place for the kind"));
    *kind = static_cast<int32_t>(v->tensor.kind());
    return {};
  });
}
static_assert(static_cast<int>(ValueKind::kNone) == 0 &&
              static_cast<int>(ValueKind::kTensor) == 1 &&
              static_cast<int>(ValueKind::kSequence) == 2);

eddy_code value_tensor(eddy_value value, eddy_tensor* tensor, eddy_error* error) {
  return enter_with<ValueObject>(value, error, [&](const auto& v) -> Refusal {
    EDDY_C_TRY(need(tensor, "place for the tensor"));
    EDDY_C_TRY(check_kind(*v, ValueKind::kTensor, "a tensor"));
    *tensor = as_c(v->tensor.view());
    if (tensor->element == EDDY_STRING || v->tensor.is_on_device()) tensor->data = nullptr;
    return {};
  });
}

eddy_code value_device(eddy_value value, int32_t* device_type, int32_t* device_id,
                       eddy_error* error) {
  return enter_with<ValueObject>(value, error, [&](const auto& v) -> Refusal {
    EDDY_C_TRY(need(device_type, "place for the type of the device"));
    EDDY_C_TRY(need(device_id, "place for the number of the device"));
    const std::optional<int32_t> gpu = v->tensor.gpu();
    *device_type = gpu ? kDLCUDA : kDLCPU;
    *device_id = gpu.value_or(0);
    return {};
  });
}

eddy_code value_strings(eddy_value value, int64_t* offsets, char* bytes, size_t* num_bytes,
                        eddy_error* error) {
  return enter_with<ValueObject>(value, error, [&](const auto& v) -> Refusal {
    EDDY_C_TRY(check_kind(*v, ValueKind::kTensor, "a tensor of strings"));
    if (v->tensor.element_type() != ElementType::kString) {
      return {EDDY_INVALID_ARGUMENT, "the value is of " +
                                         std::string(element_type_name(v->tensor.element_type())) +
                                         " elements, not of strings"};
    }
    const TensorView view = v->tensor.view();
    const auto* strings = view.template as<std::string>();
    int64_t at = 0;
    for (int64_t i = 0; i < view.count(); ++i) {
      if (offsets != nullptr) offsets[i] = at;
      if (bytes != nullptr) std::memcpy(bytes + at, strings[i].data(), strings[i].size());
      at += static_cast<int64_t>(strings[i].size());
    }
    if (offsets != nullptr) offsets[view.count()] = at;
    if (num_bytes != nullptr) *num_bytes = static_cast<size_t>(at);
    return {};
  });
}

eddy_code value_length(eddy_value value, size_t* length, eddy_error* error) {
  return enter_with<ValueObject>(value, error, [&](const auto& v) -> Refusal {
    EDDY_C_TRY(need(length, "place for the length"));
    EDDY_C_TRY(check_kind(*v, ValueKind::kSequence, "a sequence"));
    *length = v->tensor.elements().size();
    return {};
  });
}

eddy_code value_at(eddy_value value, size_t index, eddy_value* element, eddy_error* error) {
  return enter_with<ValueObject>(value, error, [&](const auto& v) -> Refusal {
    EDDY_C_TRY(need(element, "place for the element"));
    EDDY_C_TRY(check_kind(*v, ValueKind::kSequence, "a sequence"));
    if (index >= v->tensor.elements().size()) {
      return {EDDY_INVALID_ARGUMENT, "there is no element " + std::to_string(index) +
                                         "; the sequence has " +
                                         std::to_string(v->tensor.elements().size())};
    }
    return give(v->tensor.elements()[index], element);
  });
}

namespace {

// The caller's managed tensor, which the result takes over when `make` has succeeded.
template <typename Managed>
Refusal adopt(Managed* managed, eddy_value* value) {
  EDDY_C_TRY(need(managed, "DLPack tensor"));
  EDDY_C_TRY(need(value, "place for the value"));
  const std::shared_ptr<Managed*> kept(new Managed*(nullptr), [](Managed** tensor) {
    if (*tensor != nullptr && (*tensor)->deleter != nullptr) (*tensor)->deleter(*tensor);
    delete tensor;
  });
  EDDY_C_ASSIGN(Tensor tensor, tensor_of(managed->dl_tensor, kept));
  EDDY_C_TRY(give(std::move(tensor), value));
  *kept = managed;
  return {};
}

template <typename Managed>
struct Lent {
  Tensor tensor;
  std::vector<int64_t> shape;
  Managed managed = {};
};

template <typename Managed>
Refusal lend(const Tensor& tensor, Managed** managed) {
  EDDY_C_TRY(need(managed, "place for the DLPack tensor"));
  auto lent = std::make_unique<Lent<Managed>>();
  lent->tensor = tensor;
  EDDY_C_ASSIGN(lent->managed.dl_tensor, dl_tensor_of(tensor, lent->shape));
  lent->managed.manager_ctx = lent.get();
  lent->managed.deleter = [](Managed* self) {
    delete static_cast<Lent<Managed>*>(self->manager_ctx);
  };
  *managed = &lent.release()->managed;
  return {};
}

}  // namespace

eddy_code value_from_dlpack(DLManagedTensor* managed, eddy_value* value, eddy_error* error) {
  return enter(error, [&] { return adopt(managed, value); });
}

eddy_code value_from_dlpack_versioned(DLManagedTensorVersioned* managed, eddy_value* value,
                                      eddy_error* error) {
  return enter(error, [&]() -> Refusal {
    EDDY_C_TRY(need(managed, "DLPack tensor"));
    if (managed->version.major != 1) {
      return {EDDY_UNSUPPORTED,
              "a DLPack tensor of version " + std::to_string(managed->version.major) + "." +
                  std::to_string(managed->version.minor) + "; hand over one of 1.x"};
    }
    return adopt(managed, value);
  });
}

eddy_code value_to_dlpack(eddy_value value, DLManagedTensor** managed, eddy_error* error) {
  return enter_with<ValueObject>(value, error,
                                 [&](const auto& v) { return lend(v->tensor, managed); });
}

eddy_code value_to_dlpack_versioned(eddy_value value, DLManagedTensorVersioned** managed,
                                    eddy_error* error) {
  return enter_with<ValueObject>(value, error, [&](const auto& v) -> Refusal {
    DLManagedTensorVersioned* made = nullptr;
    EDDY_C_TRY(lend(v->tensor, managed == nullptr ? nullptr : &made));
    made->version = {1, 0};
    made->flags = DLPACK_FLAG_BITMASK_READ_ONLY;  // values are immutable, and may be shared
    *managed = made;
    return {};
  });
}

}  // namespace eddy::c
