#include "runtime/api/c/operator_values.h"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/api/c/calling.h"
#include "runtime/api/c/convert.h"

namespace eddy::c {
namespace {

std::string output_name(uint32_t output) { return "output " + std::to_string(output); }
std::string input_name(uint32_t input) { return "input " + std::to_string(input); }

// Whether every tensor of `narrow` is one of `wide`, whose symbols are sizes that are not known.
bool is_within(const TensorType& narrow, const TensorType& wide) {
  if (narrow.element != wide.element) return false;
  if (!wide.is_ranked) return true;
  if (!narrow.is_ranked || narrow.dims.rank() != wide.dims.rank()) return false;
  for (int axis = 0; axis < wide.dims.rank(); ++axis) {
    if (wide.dims[axis] >= 0 && narrow.dims[axis] != wide.dims[axis]) return false;
  }
  return true;
}

TensorType type_of(const TensorView& view) { return TensorType(view.element, Dims(view.shape())); }

// An optional's type is that of what it may hold.
ValueType held(const ValueType& type) { return type.is_optional() ? type.unwrapped() : type; }

Status as_failure(const Refusal& refusal) {
  return refusal.is_ok() ? Status::ok() : run_failed(refusal.reason());
}

}  // namespace

template <typename Call>
eddy_code ValueCalling::checked(const Call& call) noexcept {
  Status status;
  try {
    status = call();
  } catch (const std::bad_alloc&) {
    status = Status(StatusCode::kResourceExhausted, {});
  }
  const auto code = static_cast<eddy_code>(status.code());
  if (refused_.is_ok()) refused_ = std::move(status);
  return code;
}

size_t ValueCalling::length(uint32_t input) const {
  if (!has_input(input) || context_.kind(input) == ValueKind::kNone) return 0;
  return context_.kind(input) == ValueKind::kTensor ? 1 : context_.length(input);
}

TensorView ValueCalling::tensor(uint32_t input, size_t position) const {
  return context_.kind(input) == ValueKind::kTensor ? context_.tensor(input)
                                                    : context_.element(input, position);
}

Status ValueCalling::check_position(uint32_t input, size_t position) const {
  if (!has_input(input)) return run_failed("there is no " + input_name(input));
  const size_t count = length(input);
  if (position < count) return Status::ok();
  return run_failed(input_name(input) + " has no tensor " + std::to_string(position) + "; it has " +
                    std::to_string(count));
}

Status ValueCalling::check_new(uint32_t output) const {
  if (output >= made_.size()) return run_failed("there is no " + output_name(output));
  if (made_[output] == Made::kNothing) return Status::ok();
  return run_failed(output_name(output) + " is made already");
}

Status ValueCalling::check_fits(uint32_t output, const TensorType& type) const {
  if (is_within(type, declared_.outputs[output].tensor)) return Status::ok();
  return run_failed(output_name(output) + " is declared " + to_string(declared_.outputs[output]) +
                    ", so it can't have " + to_string(ValueType(type)));
}

Result<TensorView> ValueCalling::make(uint32_t output, ElementType element, const Dims& dims) {
  EDDY_RETURN_IF_ERROR(check_fits(output, TensorType(element, dims)));
  if (made_[output] == Made::kSequence) return context_.append_new(output, element, dims);
  EDDY_RETURN_IF_ERROR(check_new(output));
  if (held(declared_.outputs[output]).is_sequence()) {
    return run_failed(output_name(output) + " is a sequence; make_sequence() comes first");
  }
  made_[output] = Made::kValue;
  return context_.allocate(output, element, dims);
}

Status ValueCalling::make_none(uint32_t output) {
  EDDY_RETURN_IF_ERROR(check_new(output));
  if (!declared_.outputs[output].is_optional()) {
    return run_failed(output_name(output) + " is declared " + to_string(declared_.outputs[output]) +
                      ", so it can't be nothing");
  }
  made_[output] = Made::kValue;
  context_.set_none(output);
  return Status::ok();
}

Status ValueCalling::make_sequence(uint32_t output) {
  EDDY_RETURN_IF_ERROR(check_new(output));
  const ValueType& type = declared_.outputs[output];
  if (!held(type).is_sequence()) {
    return run_failed(output_name(output) + " is declared " + to_string(type) +
                      ", so it can't be a sequence");
  }
  made_[output] = Made::kSequence;
  context_.begin_sequence(output, type.tensor.element);
  return Status::ok();
}

Status ValueCalling::share(uint32_t output, uint32_t input) {
  if (!has_input(input)) return run_failed("there is no " + input_name(input));
  EDDY_RETURN_IF_ERROR(check_new(output));
  const ValueType& type = declared_.outputs[output];
  const ValueKind kind = context_.kind(input);
  const ValueType wanted = held(type);
  const bool fits = kind == ValueKind::kNone       ? type.is_optional()
                    : kind == ValueKind::kSequence ? wanted.is_sequence()
                                                   : wanted.is_tensor();
  if (!fits) {
    return run_failed(output_name(output) + " is declared " + to_string(type) +
                      ", so it can't share " + input_name(input));
  }
  if (kind != ValueKind::kNone && context_.element_type(input) != type.tensor.element) {
    return run_failed(output_name(output) + " is declared " + to_string(type) + ", but " +
                      input_name(input) + " is of " +
                      std::string(element_type_name(context_.element_type(input))));
  }
  // Of a sequence whose type says enough nothing is looked at: it may be long.
  if (!is_within(declared_.inputs[input].tensor, type.tensor)) {
    for (size_t i = 0; i < length(input); ++i) {
      EDDY_RETURN_IF_ERROR(check_fits(output, type_of(tensor(input, i))));
    }
  }
  made_[output] = kind == ValueKind::kSequence ? Made::kSequence : Made::kValue;
  context_.share(output, input);
  return Status::ok();
}

Status ValueCalling::make_tensor(uint32_t output, const int64_t* dims, int32_t rank, void** data) {
  if (output >= made_.size()) return run_failed("there is no " + output_name(output));
  EDDY_RETURN_IF_ERROR(as_failure(need(data, "place for the tensor's memory")));
  const ElementType element = declared_.outputs[output].tensor.element;
  if (element == ElementType::kString) {
    return run_failed(output_name(output) + " is of strings; make_strings() makes them");
  }
  Dims sizes;
  EDDY_RETURN_IF_ERROR(as_failure(read_dims(dims, rank, output_name(output).c_str(), sizes)));
  EDDY_ASSIGN_OR_RETURN(const TensorView view, make(output, element, sizes));
  *data = view.data;
  return Status::ok();
}

Status ValueCalling::make_strings(uint32_t output, const int64_t* dims, int32_t rank,
                                  const int64_t* offsets, const char* bytes) {
  if (output >= made_.size()) return run_failed("there is no " + output_name(output));
  Dims sizes;
  std::vector<std::string> strings;
  EDDY_RETURN_IF_ERROR(as_failure(read_strings(dims, rank, offsets, bytes, sizes, strings)));
  EDDY_ASSIGN_OR_RETURN(const TensorView view, make(output, ElementType::kString, sizes));
  std::ranges::move(strings, view.mutable_as<std::string>());
  return Status::ok();
}

Status ValueCalling::share_tensor(uint32_t output, uint32_t input, size_t position) {
  EDDY_RETURN_IF_ERROR(check_position(input, position));
  const bool is_element = context_.kind(input) == ValueKind::kSequence;
  if (output < made_.size() && made_[output] == Made::kSequence) {
    EDDY_RETURN_IF_ERROR(check_fits(output, type_of(tensor(input, position))));
    if (is_element) context_.append_element(output, input, position);
    if (!is_element) context_.append_input(output, input);
    return Status::ok();
  }
  if (!is_element) return share(output, input);
  EDDY_RETURN_IF_ERROR(check_new(output));
  EDDY_RETURN_IF_ERROR(check_fits(output, type_of(tensor(input, position))));
  if (held(declared_.outputs[output]).is_sequence()) {
    return run_failed(output_name(output) + " is a sequence; make_sequence() comes first");
  }
  made_[output] = Made::kValue;
  context_.share_element(output, input, position);
  return Status::ok();
}

struct ValueCalling::Functions {
  static ValueCalling& of(void* impl) { return *static_cast<ValueCalling*>(impl); }

  static void* reserve(void* impl, size_t size_bytes) {
    return of(impl).context_.scratch().reserve(size_bytes);
  }
  static void fail(void* impl, const char* message) {
    of(impl).checked([&] {
      of(impl).said_ = message == nullptr ? "" : message;
      return Status::ok();
    });
  }
  static int32_t kind(void* impl, uint32_t input) {
    if (!of(impl).has_input(input)) return -1;
    return static_cast<int32_t>(of(impl).context_.kind(input));
  }
  static size_t length(void* impl, uint32_t input) { return of(impl).length(input); }
  static eddy_code tensor(void* impl, uint32_t input, size_t position, eddy_tensor* tensor) {
    return of(impl).checked([&]() -> Status {
      EDDY_RETURN_IF_ERROR(as_failure(need(tensor, "place for the tensor")));
      EDDY_RETURN_IF_ERROR(of(impl).check_position(input, position));
      *tensor = as_c(of(impl).tensor(input, position));
      if (tensor->element == EDDY_STRING) tensor->data = nullptr;
      return Status::ok();
    });
  }
  static const char* string(void* impl, uint32_t input, size_t position, int64_t index,
                            size_t* size_bytes) {
    if (size_bytes != nullptr) *size_bytes = 0;
    if (position >= of(impl).length(input)) return nullptr;
    const TensorView view = of(impl).tensor(input, position);
    if (view.element != ElementType::kString || index < 0 || index >= view.count()) return nullptr;
    const std::string& found = view.as<std::string>()[index];
    if (size_bytes != nullptr) *size_bytes = found.size();
    return found.data();
  }
  static eddy_code make_none(void* impl, uint32_t output) {
    return of(impl).checked([&] { return of(impl).make_none(output); });
  }
  static eddy_code make_sequence(void* impl, uint32_t output) {
    return of(impl).checked([&] { return of(impl).make_sequence(output); });
  }
  static eddy_code share(void* impl, uint32_t output, uint32_t input) {
    return of(impl).checked([&] { return of(impl).share(output, input); });
  }
  static eddy_code make_tensor(void* impl, uint32_t output, const int64_t* dims, int32_t rank,
                               void** data) {
    return of(impl).checked([&] { return of(impl).make_tensor(output, dims, rank, data); });
  }
  static eddy_code make_strings(void* impl, uint32_t output, const int64_t* dims, int32_t rank,
                                const int64_t* offsets, const char* bytes) {
    return of(impl).checked(
        [&] { return of(impl).make_strings(output, dims, rank, offsets, bytes); });
  }
  static eddy_code share_tensor(void* impl, uint32_t output, uint32_t input, size_t position) {
    return of(impl).checked([&] { return of(impl).share_tensor(output, input, position); });
  }
};

eddy_value_call ValueCalling::show(void* state, void* run_state) {
  using F = Functions;
  return {sizeof(eddy_value_call),
          static_cast<uint32_t>(context_.num_inputs()),
          static_cast<uint32_t>(made_.size()),
          state,
          run_state,
          this,
          F::reserve,
          F::fail,
          F::kind,
          F::length,
          F::tensor,
          F::string,
          F::make_none,
          F::make_sequence,
          F::share,
          F::make_tensor,
          F::make_strings,
          F::share_tensor};
}

Status ValueCalling::end(eddy_code code) {
  if (!refused_.is_ok()) return std::move(refused_);
  if (code == EDDY_LATER)
    return run_failed("it returned EDDY_LATER, but run_values answers at once");
  EDDY_RETURN_IF_ERROR(as_status(code, said_));
  const auto open = std::ranges::find(made_, Made::kNothing);
  if (open == made_.end()) return Status::ok();
  return run_failed("it has not made " + output_name(static_cast<uint32_t>(open - made_.begin())));
}

}  // namespace eddy::c
