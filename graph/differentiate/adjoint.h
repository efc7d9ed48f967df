// Adjoints by the kind of their value: types, zeros, sums.
//
//   tensor                the same type
//   sequence of tensors   a sequence of as many
//   optional              what it may hold; a scalar zero where that is a tensor
//
// An element of a sequence's adjoint to which nothing has come back is a scalar zero, whatever the
// element's shape. So zeros need a sequence's length only, and adding is Add, which broadcasts;
// what takes an element out expands it to its shape.
//
// The shape of a sequence is its length, as int64[1]; an optional has none. Errors: the builder's.
// Cost: a sum of sequences is a loop over their elements, all else one to three nodes.
#pragma once

#include "graph/ir/builder.h"

namespace eddy {

// Sequences and optionals of tensors, and optionals of sequences, have adjoints; deeper ones don't.
bool has_adjoint(const ValueType& type);
ValueType adjoint_type(const ValueType& type);

Value shape_of(GraphBuilder& builder, Value value, OpOptions options);
// `shape` is the value's, as above.
Value zero_adjoint(GraphBuilder& builder, const ValueType& type, Value shape, OpOptions options);
Value add_adjoints(GraphBuilder& builder, Value a, Value b, OpOptions options);

// A tensor of zeros of that shape.
Value make_zeros(GraphBuilder& builder, ElementType element, Value shape, OpOptions options);

// A loop over the elements of a sequence whose results, element by element, are appended to
// `start`.
using MakeElement = std::function<Value(Value place)>;
Value for_each_element(GraphBuilder& builder, Value sequence, Value start, std::string name,
                       const MakeElement& make);

}  // namespace eddy
