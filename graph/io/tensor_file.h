// Values in files: NumPy's .npy, and ONNX's .pb as its test data folders have them.
//
// .npy: versions 1 to 3, little-endian bools, integers, floats (f2, f4, f8) and complex numbers;
// column-major arrays are turned row-major. Strings, objects and structured types are not read.
// .pb: a TensorProto, SequenceProto or OptionalProto; the file does not name its type, so reading
// needs the type that is expected.
//
// Errors: kNotFound, kInvalidArgument (with the byte offset for .pb), kUnsupported,
// kResourceExhausted; messages name the file. Threads: pure. Cost: O(size).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "graph/base/status.h"
#include "graph/io/host_value.h"
#include "graph/io/import_limits.h"

namespace eddy {

// By the name's ending, .npy or .pb. `expected` distinguishes .pb files; element type and shape
// are those of the file.
Result<HostValue> read_value(const std::string& path, const ValueType& expected,
                             const ImportLimits& limits = {});
// By the name's ending; .npy takes only tensors of types that NumPy has.
Status write_value(const std::string& path, const HostValue& value);

Result<HostValue> parse_npy(std::span<const std::byte> bytes, const ImportLimits& limits = {});
Result<std::string> format_npy(const HostValue& value);

Result<HostValue> parse_pb(std::span<const std::byte> bytes, const ValueType& expected,
                           const ImportLimits& limits = {});
std::string format_pb(const HostValue& value, const std::string& name);

}  // namespace eddy
