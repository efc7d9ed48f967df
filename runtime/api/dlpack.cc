#include "runtime/api/dlpack.h"

#include <algorithm>

namespace eddy {
namespace {

constexpr uint8_t kDlBool = 6;  // newer than the header of Debian 12

struct KnownType {
  ElementType element;
  uint8_t code;
  uint8_t bits;
};
constexpr KnownType kTypes[] = {
    {ElementType::kFloat, kDLFloat, 32},   {ElementType::kDouble, kDLFloat, 64},
    {ElementType::kFloat16, kDLFloat, 16}, {ElementType::kBfloat16, kDLBfloat, 16},
    {ElementType::kInt8, kDLInt, 8},       {ElementType::kInt16, kDLInt, 16},
    {ElementType::kInt32, kDLInt, 32},     {ElementType::kInt64, kDLInt, 64},
    {ElementType::kUint8, kDLUInt, 8},     {ElementType::kUint16, kDLUInt, 16},
    {ElementType::kUint32, kDLUInt, 32},   {ElementType::kUint64, kDLUInt, 64},
    {ElementType::kBool, kDlBool, 8},
};

Result<ElementType> element_of(const DLDataType& type) {
  for (const KnownType& known : kTypes) {
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) {
      return known.element;
    }
  }
  return unsupported("a DLPack tensor of type code " + std::to_string(type.code) + ", " +
                     std::to_string(type.bits) + " bits, " + std::to_string(type.lanes) +
                     " lanes; hand over floats, integers or bools");
}

// Rows one behind the other.
bool is_compact(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] == 0) return true;
    if (tensor.shape[axis] > 1 && tensor.strides[axis] != expected) return false;
    if (__builtin_mul_overflow(expected, tensor.shape[axis], &expected)) return false;
  }
  return true;
}

Result<std::optional<int32_t>> gpu_of(const DLTensor& tensor) {
  switch (tensor.device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      return std::optional<int32_t>();
    case kDLCUDA:
    case kDLCUDAManaged:
      return std::optional<int32_t>(tensor.device.device_id);
    default:
      return unsupported("a DLPack tensor on a device of type " +
                         std::to_string(tensor.device.device_type) +
                         "; hand over one of the host's memory or a CUDA device's");
  }
}

// What tensor_to_dlpack hands out.
struct Lent {
  Tensor tensor;
  std::vector<int64_t> shape;
  DLManagedTensor managed = {};
};

}  // namespace

Result<Tensor> tensor_of(const DLTensor& from, std::shared_ptr<const void> owner) {
  EDDY_ASSIGN_OR_RETURN(const ElementType element, element_of(from.dtype));
  EDDY_ASSIGN_OR_RETURN(const std::optional<int32_t> gpu, gpu_of(from));
  if (gpu && *gpu < 0) {
    return invalid_argument("a DLPack tensor on GPU " + std::to_string(*gpu));
  }
  if (from.ndim < 0 || from.ndim > kMaxRank || (from.ndim > 0 && from.shape == nullptr)) {
    return unsupported("a DLPack tensor of rank " + std::to_string(from.ndim) + "; at most " +
                       std::to_string(kMaxRank));
  }
  const Dims dims(std::span(from.shape, static_cast<size_t>(from.ndim)));
  if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; })) {
    return invalid_argument("a DLPack tensor with a negative dimension");
  }
  const std::optional<int64_t> count = dims.count();
  if (!count) return invalid_argument("a DLPack tensor with more elements than can be counted");
  if (!is_compact(from)) {
    return unsupported("a DLPack tensor with strides; make it contiguous first");
  }
  if (from.data == nullptr && *count > 0) {
    return invalid_argument("a DLPack tensor without memory");
  }
  void* const data = static_cast<char*>(from.data) + from.byte_offset;
  return Tensor::adopt({data, dims.data(), dims.rank(), element}, std::move(owner), gpu);
}

Result<DLTensor> dl_tensor_of(const Tensor& tensor, std::vector<int64_t>& shape) {
  if (!tensor.is_tensor()) return unsupported("DLPack has tensors only");
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) {
    return known.element == tensor.element_type();
  });
  if (type == std::end(kTypes)) {
    return unsupported("DLPack has no " + std::string(element_type_name(tensor.element_type())));
  }
  shape.assign(tensor.dims().begin(), tensor.dims().end());
  DLTensor to = {};
  to.data = tensor.view().data;
  to.device = {tensor.gpu() ? kDLCUDA : kDLCPU, tensor.gpu().value_or(0)};
  to.ndim = tensor.dims().rank();
  to.dtype = {type->code, type->bits, 1};
  to.shape = shape.data();
  return to;
}

Result<Tensor> tensor_from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) return invalid_argument("there is no DLPack tensor");
  // The deleter is called once the result holds the tensor, and not before.
  const std::shared_ptr<DLManagedTensor*> kept(
      new DLManagedTensor*(nullptr), [](DLManagedTensor** tensor) {
        if (*tensor != nullptr && (*tensor)->deleter != nullptr) (*tensor)->deleter(*tensor);
        delete tensor;
      });
  Result<Tensor> made = tensor_of(managed->dl_tensor, kept);
  if (made.is_ok()) *kept = managed;
  return made;
}

Result<DLManagedTensor*> tensor_to_dlpack(const Tensor& tensor) {
  auto lent = std::make_unique<Lent>();
  lent->tensor = tensor;
  EDDY_ASSIGN_OR_RETURN(lent->managed.dl_tensor, dl_tensor_of(tensor, lent->shape));
  lent->managed.manager_ctx = lent.get();
  lent->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Lent*>(self->manager_ctx);
  };
  return &lent.release()->managed;
}

}  // namespace eddy
