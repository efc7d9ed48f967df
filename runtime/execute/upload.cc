#include "runtime/execute/upload.h"

#include <thread>

#include "graph/ir/op.h"

namespace eddy {
namespace {

// What a stream calls to enqueue one copy.
struct Copy {
  const BoundKernel& kernel;
  KernelArgs args;

  static bool run(void* copy) {
    const Copy& self = *static_cast<Copy*>(copy);
    return self.kernel.run(self.args);
  }
};

// Then their staging memory is wanted back.
constexpr int kMostQueued = 64;

}  // namespace

// A stream must be idle when it goes, also after a failure.
Uploader::~Uploader() { (void)finish(); }

Status Uploader::start() {
  if (stream_ != nullptr) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(stream_, accelerator_.device->create_stream());
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
  EDDY_ASSIGN_OR_RETURN(BoundKernel bound, accelerator_.kernels->bind(init));
  return &kernels_.emplace(element, std::move(bound)).first->second;
}

Status Uploader::copy(const TensorView& from, Slot& to) {
  EDDY_RETURN_IF_ERROR(start());
  EDDY_ASSIGN_OR_RETURN(const BoundKernel* bound, kernel(from.element));
  EDDY_RETURN_IF_ERROR(to.make_writable(accelerator_.device->allocator()));
  Status error;
  Copy copy{*bound, {}};
  copy.args.inputs = &from;
  copy.args.outputs = &to.view;
  copy.args.num_inputs = copy.args.num_outputs = 1;
  copy.args.state = bound->state.get();
  copy.args.stream = stream_->native();
  copy.args.error = &error;
  if (!stream_->launch({Copy::run, &copy}) || !error.is_ok()) {
    return error.is_ok() ? accelerator_.device->health() : error;
  }
  return ++num_queued_ < kMostQueued ? Status::ok() : finish();
}

Status Uploader::finish() {
  while (stream_ != nullptr && !stream_->is_idle()) {
    if (!accelerator_.device->poll()) std::this_thread::yield();
  }
  num_queued_ = 0;
  return accelerator_.device->health();
}

}  // namespace eddy
