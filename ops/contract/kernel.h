// The kernel ABI: how a kernel is chosen for a node and how it is called.
//
// A kernel sees tensor views, its own immutable state, scratch memory and a native stream handle;
// nothing of the runtime. Two steps:
//
//   bind   once for each node of a program. Gets the node's attributes, its types as far as they
//          are known, and constant inputs; picks the fastest function that fits, packs constant
//          weights, creates library primitives. The result is immutable and shared by all runs.
//   run    once for each execution, from any one thread at a time per call; several calls on one
//          BoundKernel may overlap (state is const; scratch is the caller's stream's).
//   tiles  dense kernels of the CPU: count_tiles() gives, by the call's shapes alone, the number of
//          parts that read nothing of each other and write apart; run_tile() does one (README.md).
//   start  dense kernels of the CPU: may answer kLater, and complete the call from any thread.
//
// Dense kernels (most) get outputs whose shapes the operator's schema has computed and whose memory
// the executor has chosen; they fill every byte. An output may be the same memory as an input only
// where OpDef::in_place_inputs allows it: read an element before writing its place. Value kernels
// (sequences, optionals, shapes that depend on data) make their own outputs through ValueContext.
// On CPU streams run() does the work. On CUDA streams run() enqueues it on `stream`, must not
// block, and may read only host-value inputs on the host.
//
// Determinism: same inputs, same bits. Work is split by shape, never by thread count.
// Errors: return args.fail(status); the message names the fault of the values ("index 7 is out of
// range for axis 0 of size 5"), and the executor adds node and iteration path. A kernel checks
// every value that could lead it out of bounds. It throws nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "graph/base/call_outcome.h"
#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"
#include "ops/contract/device_fault.h"
#include "ops/contract/packed_constants.h"
#include "ops/contract/pending_call.h"

namespace eddy {

// What bind() made of constants and attributes. Const during run.
class KernelState {
 public:
  virtual ~KernelState() = default;
};

// What a kernel keeps for one run: empty when the run begins, gone before anyone learns of its end.
struct RunKeep {
  std::unique_ptr<KernelState> state;
};

// Growing scratch memory, one for each stream (or worker); contents do not survive the call.
class Scratch {
 public:
  virtual ~Scratch() = default;
  // At least size_bytes, aligned to 64; valid until the next reserve() or the end of the call.
  // Null when memory is out: fail with resource_exhausted.
  virtual void* reserve(size_t size_bytes) = 0;
};

// cudaStream_t on CUDA devices, null on the CPU.
using NativeStream = void*;

struct KernelArgs {
  const TensorView* inputs = nullptr;
  TensorView* outputs = nullptr;
  const KernelState* state = nullptr;
  Scratch* scratch = nullptr;
  NativeStream stream = nullptr;
  Status* error = nullptr;  // where fail() puts its message
  // Where a kernel on a device records a fault while it runs (device_fault.h); null unless the
  // bound kernel may_fault.
  DeviceFault* fault = nullptr;
  uint32_t num_inputs = 0;
  uint32_t num_outputs = 0;
  void* shared = nullptr;  // of a call in tiles: memory of all of them (BoundKernel::shared_bytes)
  // The node's in this run, one call at a time but for tiles; null unless the bound kernel
  // keeps_of_runs.
  RunKeep* keep = nullptr;

  bool fail(Status status) const {
    EDDY_DCHECK(error != nullptr && !status.is_ok()) << "a kernel fails without saying why";
    *error = std::move(status);
    return false;
  }
  bool has_input(uint32_t i) const { return i < num_inputs && !inputs[i].is_omitted(); }
};

// True on success; false after args.fail().
using KernelFunction = bool (*)(const KernelArgs& args);
// At most 1: the call does not fall apart, and run() is called.
using TileCountFunction = uint32_t (*)(const KernelArgs& args);
// As KernelFunction, at once with other tiles; args.scratch is of the thread that runs this one.
using TileFunction = bool (*)(const KernelArgs& args, uint32_t tile);
// Of a call that falls apart.
using SharedBytesFunction = size_t (*)(const KernelArgs& args);
// kFailed after args.fail(). kLater: `call` has been moved from, and args stays until it is
// complete. Not for operators that make strings or views.
using StartFunction = CallOutcome (*)(const KernelArgs& args, PendingCall& call);

// A runtime value: nothing (an empty optional), a tensor, or a sequence of tensors.
enum class ValueKind : uint8_t { kNone, kTensor, kSequence };

// What a value kernel sees and does. Sharing costs no copy: values are immutable once made.
class ValueContext {
 public:
  virtual ~ValueContext() = default;
  virtual size_t num_inputs() const = 0;
  virtual bool has_input(size_t i) const = 0;  // false: omitted
  virtual ValueKind kind(size_t i) const = 0;
  virtual TensorView tensor(size_t i) const = 0;                    // kTensor
  virtual size_t length(size_t i) const = 0;                        // kSequence
  virtual TensorView element(size_t i, size_t position) const = 0;  // kSequence
  virtual ElementType element_type(size_t i) const = 0;             // of the tensor or the sequence

  // Output o becomes a new tensor; fill the returned view. Fails when memory is out.
  virtual Result<TensorView> allocate(size_t o, ElementType element, const Dims& dims) = 0;
  // Output o becomes the same value as input i, or as one element of sequence i.
  virtual void share(size_t o, size_t i) = 0;
  virtual void share_element(size_t o, size_t i, size_t position) = 0;
  virtual void set_none(size_t o) = 0;
  // Output o becomes an empty sequence; then append to it. A sequence that it shares with an input
  // may be appended to and shortened, too, in O(1): the input stays what it is.
  virtual void begin_sequence(size_t o, ElementType element) = 0;
  virtual void append_input(size_t o, size_t i) = 0;
  virtual void append_element(size_t o, size_t i, size_t position) = 0;
  virtual Result<TensorView> append_new(size_t o, ElementType element, const Dims& dims) = 0;
  virtual void remove_last(size_t o) = 0;  // of one that is not empty

  virtual const KernelState* state() const = 0;
  virtual Scratch& scratch() = 0;
  // The node's in this run; null unless the bound kernel keeps_of_runs.
  virtual RunKeep* keep_or_null() { return nullptr; }
};
using ValueKernelFunction = Status (*)(ValueContext& context);

// Exactly one of the first three functions is set; beside run(), both of the tiles' or neither, and
// beside those what further ones say of them.
struct BoundKernel {
  KernelFunction run = nullptr;
  ValueKernelFunction run_value = nullptr;
  StartFunction start = nullptr;
  TileCountFunction count_tiles = nullptr;
  TileFunction run_tile = nullptr;
  // Of tiles that follow each other: how many, from the first on, run at once; the next as many
  // begin when these have ended, and see what they have written. Null: all run at once.
  TileCountFunction count_at_once = nullptr;
  SharedBytesFunction shared_bytes = nullptr;
  std::unique_ptr<KernelState> state;
  // Bit i: run() reads no bytes of constant input i, only its shape, because the state holds all
  // it needs. The executor may let the bytes go; the view's data is then null.
  uint64_t unread_constants = 0;
  // The entry it came from: its provider and version, and its place among the operator's. Set by
  // the registry, for reports and fingerprints.
  std::string_view provider = {};
  int since_version = 0;
  uint32_t place = 0;
  // What run() reserves of its scratch for the shapes known now; 0: nothing, or not known. The
  // executor has that much at hand before the first run; more is allocated on request.
  size_t scratch_bytes = 0;
  // run() enqueues a kernel that may write args.fault.
  bool may_fault = false;
  bool keeps_of_runs = false;  // its calls use args.keep
};

// What bind() gets. Borrowed for the call, except constants' bytes, which outlive the kernel.
struct KernelInit {
  const OpDef& op;
  const Attributes& attributes;
  int opset_version;
  std::string_view node_name;
  // Types as far as known when binding (dimensions may be unknown: then the kernel must handle
  // any). An omitted input has element kUndefined.
  std::span<const ValueType> inputs;
  std::span<const ValueType> outputs;
  // Per input: the constant's view, or an omitted view where it is not constant.
  std::span<const TensorView> constants;
  // Where packings are shared; null: this kernel packs for itself.
  PackedConstants* packed_or_null = nullptr;

  // What `make` packs of constant bytes, shared where it can be (packed_constants.h).
  template <typename T, typename Make>
  std::shared_ptr<const T> pack(const void* bytes, std::string layout, Make make) const {
    if (packed_or_null == nullptr) return make();
    return packed_or_null->get<T>(bytes, std::move(layout), make);
  }
  // Plain bytes of such a packing, which may come from an earlier process.
  PackedMemory pack_bytes(const void* constant, std::string_view layout, size_t size_bytes,
                          const std::function<void(std::byte* to)>& fill,
                          const std::function<bool(const std::byte* bytes)>& is_usable = {}) const {
    const PackedConstants none{};
    const PackedConstants& packed = packed_or_null == nullptr ? none : *packed_or_null;
    return packed.memory(constant, layout, size_bytes, fill, is_usable);
  }
};

// kUnsupported ("float16 is not supported by the CPU kernel of LSTM"): the next kernel for the
// operator is tried. Any other failure ends binding.
// A function object, so that a custom operator can hold what its kernels need.
using BindFunction = std::function<Result<BoundKernel>(const KernelInit& init)>;

}  // namespace eddy
