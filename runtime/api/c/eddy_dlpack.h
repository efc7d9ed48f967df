/* eddy_dlpack.h: DLPack's structs, so that C programs need no other header.
 *
 * They are an ABI that many libraries share (dmlc.github.io/dlpack): the unversioned struct of
 * before 1.0, which numpy 1.x makes, and the versioned one of 1.x. A program may include
 * dlpack.h before this; the layouts are the same.
 */
#ifndef EDDY_EDDY_DLPACK_H_
#define EDDY_EDDY_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

typedef struct {
  int32_t device_type; /* 1 host, 2 CUDA, 3 host memory that CUDA has pinned, 13 CUDA managed */
  int32_t device_id;
} DLDevice;

typedef struct {
  uint8_t code; /* 0 int, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool */
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; null: dense, row-major */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

#endif /* DLPACK_DLPACK_H_ */

#ifndef DLPACK_MAJOR_VERSION /* no dlpack.h of 1.x */

typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

#define DLPACK_FLAG_BITMASK_READ_ONLY (UINT64_C(1) << 0)

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif /* DLPACK_MAJOR_VERSION */

#ifdef __cplusplus
}
#endif

#endif /* EDDY_EDDY_DLPACK_H_ */
