// Values as JSON: what a request gives to a model, and what it is answered.
//
//   {"inputs": {"x": {"type": "float", "shape": [2, 2], "data": [1, 2, 3, 4]}, "n": 5}}
//   {"outputs": {"y": {"type": "float", "shape": [2, 2], "data": [1, 2, 3, 4]}}}
//
// An input is an object or its data alone. Data are one element or lists of them, nested as the
// shape is; behind a "shape" they may be flat, row by row. "type" and "shape" may be left out; the
// type has Eddy's name, or is float32 or float64. Elements are numbers (integers where the type is
// one), true and false, or strings; not-a-number and the infinities, which JSON lacks, are the
// strings "NaN", "Infinity" and "-Infinity". Outputs have type and shape, and flat data.
//
// Errors (kInvalidArgument): no JSON, another form, an unknown input, an input or field given
// twice, lists of unequal length or nested more than kMaxRank deep, an element of another type or
// beyond the type's range. Missing inputs and wrong shapes are left to the run.
// Threads: pure. Cost: linear; no document is made of a request, so reading takes the tensors'
// memory, at most 32 bytes for each of the text's. Bytes that are no UTF-8 are written as U+FFFD.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/api/session.h"

namespace eddy::server {

// kUnsupported where one of the values has no form here: sequences, optionals, complex numbers,
// and floats and integers of less than 16 and 8 bits. `what`: "input", "output".
Status check_have_json(std::span<const ValueDescription> values, std::string_view what);

Result<NamedTensors> read_inputs(std::string_view text, std::span<const ValueDescription> inputs);

// Tensors of types that check_have_json() lets pass.
std::string outputs_json(const NamedTensors& outputs);

// {"inputs": [{"name": "x", "type": "float", "shape": ["batch", 4, null]}], "outputs": [...],
// "fingerprint": "..."}: a dimension is a size, a symbol's name, or null; a shape of unknown rank
// is null.
std::string model_json(const Session& session);

// {"error": "..."}, on one line; what is long is cut.
std::string error_json(const std::string& message);

}  // namespace eddy::server
