#include "runtime/execute/upload.h"

#include <thread>

#include "graph/ir/op.h"

namespace eddy {
namespace {

// Then their staging memory is wanted back.
constexpr size_t kMostQueued = 64;

}  // namespace

// A stream must be idle when it goes, also after a failure.
Uploader::~Uploader() { (void)finish(); }

Status Uploader::start() {
  if (stream_ != nullptr) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(stream_, to_.device->create_stream());
  return Status::ok();
}

Result<const BoundKernel*> Uploader::kernel(ElementType element) {
  const auto known = kernels_.find(element);
  if (known != kernels_.end()) return &known->second;
  const OpDef op{.name = "ToDevice", .domain = "eddy"};
  const Attributes attributes;
  const ValueType type{TensorType(element)};
  const TensorView no_constant;
  const KernelInit init{op,         attributes,        1,      "upload", {&type, 1},
                        {&type, 1}, {&no_constant, 1}, nullptr};
  EDDY_ASSIGN_OR_RETURN(BoundKernel bound, to_.kernels->bind(init));
  return &kernels_.emplace(element, std::move(bound)).first->second;
}

Status Uploader::copy(const TensorView& from, Slot& to) {
  EDDY_RETURN_IF_ERROR(start());
  EDDY_ASSIGN_OR_RETURN(const BoundKernel* bound, kernel(from.element));
  EDDY_RETURN_IF_ERROR(to.make_writable(to_.device->allocator()));
  Copy& copy = copies_.emplace_back(Copy{*bound, from, to.view});
  copy.args.inputs = &copy.from;
  copy.args.outputs = &copy.to;
  copy.args.num_inputs = copy.args.num_outputs = 1;
  copy.args.state = bound->state.get();
  copy.args.stream = stream_->native();
  copy.args.error = &copy.error;
  if (!stream_->launch({Copy::run, &copy})) {
    return copy.error.is_ok() ? to_.device->health() : std::move(copy.error);
  }
  return copies_.size() < kMostQueued ? Status::ok() : finish();
}

Status Uploader::finish() {
  while (stream_ != nullptr && !stream_->is_idle()) {
    if (!to_.device->poll()) std::this_thread::yield();
  }
  Status first;
  for (Copy& copy : copies_) {
    if (first.is_ok()) first = std::move(copy.error);
  }
  copies_.clear();
  return first.is_ok() ? to_.device->health() : first;
}

}  // namespace eddy
