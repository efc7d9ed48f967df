// NvrtcApi: the interface to NVRTC, NVIDIA's compiler as a library: the calls that making a kernel
// needs, in one table, as cublas_lt.h has them for products: nothing is linked, and a test puts a
// fake underneath.
//
// Source: NVIDIA, NVRTC user's guide.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "graph/base/status.h"

namespace eddy {

using NvrtcProgram = struct NvrtcProgramTag*;
constexpr int kNvrtcSuccess = 0;  // nvrtcResult

// X(entry, symbol, signature).
#define EDDY_NVRTC_CALLS(X)                                                            \
  X(version, "nvrtcVersion", int(int* major, int* minor))                              \
  X(error_text, "nvrtcGetErrorString", const char*(int result))                        \
  X(create, "nvrtcCreateProgram",                                                      \
    int(NvrtcProgram * program, const char* source, const char* name, int num_headers, \
        const char* const* headers, const char* const* include_names))                 \
  X(destroy, "nvrtcDestroyProgram", int(NvrtcProgram * program))                       \
  X(compile, "nvrtcCompileProgram",                                                    \
    int(NvrtcProgram program, int num_options, const char* const* options))            \
  X(code_bytes, "nvrtcGetCUBINSize", int(NvrtcProgram program, size_t * bytes))        \
  X(code, "nvrtcGetCUBIN", int(NvrtcProgram program, char* code))                      \
  X(text_bytes, "nvrtcGetPTXSize", int(NvrtcProgram program, size_t * bytes))          \
  X(text, "nvrtcGetPTX", int(NvrtcProgram program, char* text))                        \
  X(log_bytes, "nvrtcGetProgramLogSize", int(NvrtcProgram program, size_t * bytes))    \
  X(log, "nvrtcGetProgramLog", int(NvrtcProgram program, char* log))

struct NvrtcApi {
#define EDDY_NVRTC_ENTRY(entry, symbol, ...) std::function<__VA_ARGS__> entry;
  EDDY_NVRTC_CALLS(EDDY_NVRTC_ENTRY)
#undef EDDY_NVRTC_ENTRY
};

// Errors: kNotFound, saying what was looked for, and kUnsupported for a library that lacks a call;
// elementwise nodes then have a kernel each.
Result<std::shared_ptr<const NvrtcApi>> load_nvrtc();
// The same from another file; for tests.
Result<std::shared_ptr<const NvrtcApi>> load_nvrtc_from(const char* library);

}  // namespace eddy
