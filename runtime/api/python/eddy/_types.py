"""Types of tensors: a dtype and a shape."""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core

Dim = Union[int, str, None]


class UnknownDim(int):
    """A dimension that the graph has a number for, and Python no name: shown as ?."""

    def __repr__(self) -> str:
        return "?"


class TensorType(NamedTuple):
    """A dtype, and a shape of sizes, names (a size that is given later) and None (not known).

    shape None: not even how many axes there are. Outputs of an operator in Python are no
    strings and have sizes that follow from its inputs' shapes: None is for inputs whose sizes are
    not known yet.
    """

    dtype: Any
    shape: Optional[Tuple[Dim, ...]] = ()

    @property
    def element(self) -> int:
        """ONNX's number of the dtype."""
        return element_of(self.dtype)


def element_of(dtype: Any) -> int:
    """ONNX's number of a dtype."""
    if dtype is str:
        return 8
    made = _core.element_of(np.dtype(dtype))
    if made == 0:
        raise TypeError(f"Eddy has no elements of dtype {np.dtype(dtype)}")
    return made


def from_core(element: int, dims: Optional[Sequence[int]]) -> TensorType:
    shape = None if dims is None else tuple(d if d >= 0 else UnknownDim(d) for d in dims)
    return TensorType(_core.dtype_of(element), shape)


def to_core(type: TensorType) -> Tuple[int, Optional[List[int]]]:
    if type.shape is None:
        return element_of(type.dtype), None
    dims = [-1 if d is None or isinstance(d, str) else int(d) for d in type.shape]
    return element_of(type.dtype), dims
