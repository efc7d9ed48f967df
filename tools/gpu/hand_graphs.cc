#include "tools/gpu/hand_graphs.h"

#include <cstring>
#include <limits>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr size_t kMostWords = 64;
constexpr int kOpset = 17;

}  // namespace

HandGraph::HandGraph(const ExecutionDevice& device, const OpTable& ops,
                     std::function<void()> progress)
    : device_(device), ops_(ops), progress_(std::move(progress)) {
  keep(set_up());
}

Status HandGraph::set_up() {
  capture_ = device_.device->create_capture_or_null();
  if (capture_ == nullptr || !capture_->can_decide()) {
    return unsupported("the device cannot decide loops by itself");
  }
  EDDY_ASSIGN_OR_RETURN(stream_, device_.device->create_stream());
  EDDY_ASSIGN_OR_RETURN(
      words_, device_.device->staging_or_null()->staging().allocate(kMostWords * sizeof(int64_t)));
  std::memset(words_.data(), 0, kMostWords * sizeof(int64_t));
  return Status::ok();
}

HandGraph::~HandGraph() {
  if (capture_ != nullptr) capture_->abandon();
}

void HandGraph::keep(Status status) {
  if (error_.is_ok()) error_ = std::move(status);
}

TensorView HandGraph::memory(ElementType element, const void* bytes, size_t size_bytes) {
  TensorView view{nullptr, nullptr, 0, element};
  if (!error_.is_ok()) return view;
  Result<BufferRef> buffer = device_.device->allocator().allocate(size_bytes);
  if (!buffer.is_ok()) {
    keep(buffer.take_status());
    return view;
  }
  view.data = buffer->data();
  keep(device_.device->staging_or_null()->write(view.data, bytes, size_bytes));
  memory_.push_back(std::move(*buffer));
  return view;
}

LoopWords HandGraph::loop_words() {
  const int64_t limit = std::numeric_limits<int64_t>::max();
  LoopWords words;
  words.counter = static_cast<int64_t*>(number(int64_t{0}).data);
  words.limit = static_cast<int64_t*>(number(limit).data);
  words.stop = stop_word();
  if (num_words_ + 2 > kMostWords) keep(internal_error("too many loops in one graph"));
  words.progress = static_cast<int64_t*>(words_.data()) + num_words_;
  num_words_ += 2;
  return words;
}

void HandGraph::begin() {
  if (error_.is_ok()) keep(capture_->begin());
}

Result<const BoundKernel*> HandGraph::kernel(const char* op, const std::vector<TensorView>& inputs,
                                             const TensorView& output) {
  const OpDef* def = ops_.find_or_null("", op, kOpset);
  if (def == nullptr) return internal_error(std::string("no operator ") + op);
  std::vector<ValueType> types;
  for (const TensorView& input : inputs) types.push_back(tensor_type(input.element, {}));
  const std::vector<ValueType> outputs = {tensor_type(output.element, {})};
  const std::vector<TensorView> constants(inputs.size());
  Attributes attributes;
  if (std::strcmp(op, "Cast") == 0) {
    attributes.set("to", output.element == ElementType::kInt64 ? int64_t{7} : int64_t{1});
  }
  EDDY_ASSIGN_OR_RETURN(BoundKernel bound, device_.kernels->bind({*def, attributes, kOpset, op,
                                                                  types, outputs, constants}));
  return &kernels_.emplace_back(std::move(bound));
}

void HandGraph::play(const char* op, std::vector<TensorView> inputs, TensorView output) {
  if (!error_.is_ok()) return;
  Result<const BoundKernel*> bound = kernel(op, inputs, output);
  if (!bound.is_ok()) return keep(bound.take_status());
  Result<void*> lane = capture_->stream(0);
  if (!lane.is_ok()) return keep(lane.take_status());
  Status failed;
  KernelArgs args;
  args.inputs = inputs.data();
  args.outputs = &output;
  args.state = (*bound)->state.get();
  args.stream = *lane;
  args.error = &failed;
  args.num_inputs = static_cast<uint32_t>(inputs.size());
  args.num_outputs = 1;
  if (!(*bound)->run(args)) keep(std::move(failed));
}

void HandGraph::copy(const TensorView& to, const TensorView& from) {
  EDDY_CHECK(to.size_bytes() == from.size_bytes()) << "a copy of " << from.size_bytes() << " bytes";
  if (error_.is_ok()) keep(capture_->copy(to.data, from.data, to.size_bytes()));
}

void HandGraph::repeat(const LoopWords& words, const TensorView& test,
                       const std::function<void()>& decide, const std::function<void()>& body) {
  if (error_.is_ok()) keep(capture_->start_counter(words));
  decide();
  if (error_.is_ok()) keep(capture_->begin_while({words, test.data}));
  body();
  if (error_.is_ok()) keep(capture_->advance_counter(words));
  decide();
  if (error_.is_ok()) keep(capture_->end_while());
}

Status HandGraph::finish() {
  EDDY_RETURN_IF_ERROR(error_);
  EDDY_ASSIGN_OR_RETURN(recording_, capture_->finish());
  return Status::ok();
}

bool HandGraph::launch(void* self) {
  HandGraph& graph = *static_cast<HandGraph*>(self);
  graph.keep(graph.recording_->launch(graph.stream_->native()));
  return graph.error_.is_ok();
}

Status HandGraph::start() {
  EDDY_RETURN_IF_ERROR(error_);
  EDDY_CHECK(recording_ != nullptr) << "start() follows finish()";
  if (!stream_->launch({&HandGraph::launch, this, false})) return device_.device->health();
  return error_;
}

Status HandGraph::wait() {
  while (!stream_->is_idle()) {
    progress_();
    device_.device->poll();
  }
  EDDY_RETURN_IF_ERROR(error_);
  return device_.device->health();
}

Result<float> HandGraph::read(const TensorView& number) {
  EDDY_RETURN_IF_ERROR(error_);
  EDDY_ASSIGN_OR_RETURN(const BufferRef on_host,
                        device_.device->staging_or_null()->staging().allocate(sizeof(float)));
  struct Copy {
    HandGraph* graph;
    void* to;
    const void* from;
  } copy{this, on_host.data(), number.data};
  const auto enqueue = [](void* context) {
    const Copy& self = *static_cast<Copy*>(context);
    HandGraph& graph = *self.graph;
    graph.keep(
        graph.capture_->copy_now(graph.stream_->native(), self.to, self.from, sizeof(float)));
    return graph.error_.is_ok();
  };
  if (!stream_->launch({enqueue, &copy, false})) return device_.device->health();
  EDDY_RETURN_IF_ERROR(wait());
  return *static_cast<const float*>(on_host.data());
}

}  // namespace eddy
