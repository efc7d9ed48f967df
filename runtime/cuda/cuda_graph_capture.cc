#include "runtime/cuda/cuda_graph_capture.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/images/loop_control.h"
#include "runtime/cuda/cuda_captured_graph.h"
#include "runtime/cuda/cuda_launch.h"

namespace eddy {
namespace {

static_assert(sizeof(cuda::LoopCopyParams) <= 4096, "the driver takes no larger parameters");
static_assert(static_cast<int>(CaseChoice::Type::kBool) == 0 &&
                  static_cast<int>(CaseChoice::Type::kInt32) == 1 &&
                  static_cast<int>(CaseChoice::Type::kInt64) == 2,
              "CaseChoiceParams::type names them so");
static_assert(CaseChoice::kFail < 0, "case_choice fails the run for what is below 0");

}  // namespace

std::unique_ptr<CudaGraphCapture> CudaGraphCapture::create_or_null(CudaContext& context,
                                                                   const CudaLoopKernels& kernels) {
  if (!context.api().has_capture()) return nullptr;
  return std::unique_ptr<CudaGraphCapture>(new CudaGraphCapture(context, kernels));
}

CudaGraphCapture::~CudaGraphCapture() {
  abandon();
  const CudaContext::Use use(context_);
  for (CuEvent event : events_) context_.api().event_destroy(event);
  for (CuStream stream : streams_) {
    context_.stream_ends().tell(stream);
    context_.api().stream_destroy(stream);
  }
}

// ---------------------------------------------------------------- streams

Result<CuStream> CudaGraphCapture::native_stream(uint32_t index) {
  const CudaContext::Use use(context_);
  EDDY_DCHECK(has_begun_.size() == streams_.size()) << has_begun_.size() << " streams are known";
  while (streams_.size() <= index) {
    EDDY_ASSIGN_OR_RETURN(const CuStream made, context_.make_stream());
    streams_.push_back(made);
    has_begun_.push_back(false);
    if (!is_capturing_) context_.recording_streams().tell(made);
    if (is_in_loop()) context_.plain_order().add(made);
    if (is_watched()) watch(guard_flag() != 0 ? levels_.back().test.go_on : nullptr);
  }
  return streams_[index];
}

Status CudaGraphCapture::make_streams(uint32_t count) {
  if (!levels_.empty()) return internal_error("streams are made inside a capture");
  EDDY_RETURN_IF_ERROR(context_.health());
  return count == 0 ? Status::ok() : native_stream(count - 1).status();
}

Status CudaGraphCapture::begin() {
  if (!levels_.empty()) return internal_error("a capture begins inside another one");
  EDDY_RETURN_IF_ERROR(context_.health());
  const CudaContext::Use use(context_);
  CuGraph graph = nullptr;
  EDDY_RETURN_IF_ERROR(context_.check(context_.api().graph_create(&graph, 0), "cuGraphCreate"));
  levels_.push_back({});
  levels_.back().graph = graph;
  num_events_ = 0;
  is_graph_freed_ = false;
  told_ = nullptr;
  why_interpreted_.clear();
  return Status::ok();
}

Status CudaGraphCapture::open_capture() {
  if (is_capturing_) return Status::ok();
  if (levels_.empty()) return internal_error("a capture stream is used outside a capture");
  if (is_graph_freed_) return internal_error("a capture goes on after one of its pieces failed");
  EDDY_ASSIGN_OR_RETURN(const CuStream origin, native_stream(0));
  const CudaContext::Use use(context_);
  const Level& level = levels_.back();
  context_.capture_turns().begin_capture();
  const CuResult begun = context_.api().stream_begin_capture(
      origin, level.graph, level.last.data(), nullptr, level.last.size(), CuCaptureMode::kRelaxed);
  is_capturing_ = begun == CuResult::kSuccess;
  if (!is_capturing_) context_.capture_turns().end_capture();
  EDDY_RETURN_IF_ERROR(context_.check(begun, "cuStreamBeginCaptureToGraph"));
  context_.stream_tails().set_open_capture(origin, this);
  has_begun_.assign(streams_.size(), false);
  has_begun_[0] = true;
  return Status::ok();
}

Status CudaGraphCapture::close_capture() {
  EDDY_RETURN_IF_ERROR(flush());
  if (!is_capturing_) return Status::ok();
  EDDY_CHECK(!streams_.empty() && !levels_.empty()) << "nothing is open that could be closed";
  const CudaContext::Use use(context_);
  CuGraph graph = nullptr;
  is_capturing_ = false;
  context_.stream_tails().set_open_capture(streams_[0], nullptr);
  const CuResult ended = context_.api().stream_end_capture(streams_[0], &graph);
  context_.capture_turns().end_capture();
  is_graph_freed_ |= ended != CuResult::kSuccess;
  return context_.check(ended, "cuStreamEndCapture");
}

// A conditional node waits for a kernel's end where the capture would wait for its trigger alone.
Status CudaGraphCapture::find_last() {
  EDDY_RETURN_IF_ERROR(flush());
  if (!is_capturing_) return Status::ok();
  const CudaContext::Use use(context_);
  const CudaApi& api = context_.api();
  CuCaptureStatus status = CuCaptureStatus::kNone;
  uint64_t id = 0;
  CuGraph graph = nullptr;
  const CuGraphNode* last = nullptr;
  const CuGraphEdgeData* edges = nullptr;
  size_t num_last = 0;
  const CuResult asked =
      api.stream_capture_info_edges
          ? api.stream_capture_info_edges(streams_[0], &status, &id, &graph, &last, &edges,
                                          &num_last)
          : api.stream_capture_info(streams_[0], &status, &id, &graph, &last, &num_last);
  EDDY_RETURN_IF_ERROR(context_.check(asked, "cuStreamGetCaptureInfo"));
  std::vector<CuGraphNode>& nodes = levels_.back().last;
  nodes.assign(last, last + (last != nullptr ? num_last : 0));
  return Status::ok();
}

Result<void*> CudaGraphCapture::stream(uint32_t stream) {
  EDDY_RETURN_IF_ERROR(flush());
  return capturing_stream(stream);
}

Result<void*> CudaGraphCapture::capturing_stream(uint32_t index) {
  EDDY_ASSIGN_OR_RETURN(const CuStream native, native_stream(index));
  EDDY_RETURN_IF_ERROR(open_capture());
  EDDY_DCHECK(is_capturing_ && index < has_begun_.size()) << "capture stream " << index;
  if (!has_begun_[index]) {
    return internal_error("capture stream " + std::to_string(index) +
                          " is used before it waits for an event");
  }
  return static_cast<void*>(native);
}

Result<uint32_t> CudaGraphCapture::record(uint32_t stream) {
  EDDY_ASSIGN_OR_RETURN(void* const native, this->stream(stream));
  const CudaContext::Use use(context_);
  const CudaApi& api = context_.api();
  if (events_.size() == num_events_) {
    CuEvent made = nullptr;
    EDDY_RETURN_IF_ERROR(
        context_.check(api.event_create(&made, kCuEventDisableTiming), "cuEventCreate"));
    events_.push_back(made);
  }
  EDDY_RETURN_IF_ERROR(context_.check(
      api.event_record(events_[num_events_], static_cast<CuStream>(native)), "cuEventRecord"));
  return num_events_++;
}

Status CudaGraphCapture::wait(uint32_t stream, uint32_t event) {
  if (event >= num_events_) return internal_error("a capture stream waits for no event");
  EDDY_RETURN_IF_ERROR(flush());
  EDDY_ASSIGN_OR_RETURN(const CuStream native, native_stream(stream));
  EDDY_RETURN_IF_ERROR(open_capture());
  const CudaContext::Use use(context_);
  EDDY_DCHECK(num_events_ <= events_.size()) << num_events_ << " events of " << events_.size();
  EDDY_RETURN_IF_ERROR(context_.check(context_.api().stream_wait_event(native, events_[event], 0),
                                      "cuStreamWaitEvent"));
  has_begun_[stream] = true;
  return Status::ok();
}

Status CudaGraphCapture::copy(void* to, const void* from, size_t size_bytes) {
  const MemoryCopy one{to, from, size_bytes};
  return copy_all({&one, 1});
}

Status CudaGraphCapture::copy_all(std::span<const MemoryCopy> copies) {
  EDDY_DCHECK(std::ranges::all_of(copies, [](const MemoryCopy& each) {
    return each.to != nullptr && each.from != nullptr && each.size_bytes > 0;
  })) << "a copy of nothing is captured";
  if (kernels_.copy != nullptr) return copy_by_kernel(copies);
  const bool has_rows = std::ranges::any_of(
      copies, [](const MemoryCopy& each) { return each.kind != MemoryCopy::Kind::kWhole; });
  if (has_rows) return unsupported("no kernel stacks rows on this device");
  EDDY_ASSIGN_OR_RETURN(void* const native, stream(0));
  for (const MemoryCopy& each : copies) {
    EDDY_RETURN_IF_ERROR(copy_now(native, each.to, each.from, each.size_bytes));
  }
  return Status::ok();
}

Status CudaGraphCapture::copy_now(void* native_stream, void* to, const void* from,
                                  size_t size_bytes) {
  const CudaContext::Use use(context_);
  return context_.check(context_.api().copy(reinterpret_cast<CuDevicePointer>(to),
                                            reinterpret_cast<CuDevicePointer>(from), size_bytes,
                                            static_cast<CuStream>(native_stream)),
                        "cuMemcpyAsync");
}

void CudaGraphCapture::tell_end(void* native_stream) {
  const auto stream = static_cast<CuStream>(native_stream);
  const bool can_tell =
      kernels_.copy != nullptr && context_.stream_tails().word_or_null(stream) != 0;
  told_ = can_tell ? stream : nullptr;
}

std::string CudaGraphCapture::notice() const {
  return why_interpreted_.empty() ? "" : "its own launches are interpreted: " + why_interpreted_;
}

Result<std::unique_ptr<CapturedGraph>> CudaGraphCapture::finish() {
  if (levels_.size() != 1) return internal_error("a capture ends inside a loop or case");
  if (told_ != nullptr && !keep_end()) told_ = nullptr;
  EDDY_RETURN_IF_ERROR(close_capture());
  const CudaContext::Use use(context_);
  CuGraphExec executable = nullptr;
  EDDY_RETURN_IF_ERROR(context_.check(
      context_.api().graph_instantiate(&executable, levels_[0].graph, 0), "cuGraphInstantiate"));
  upload(executable);
  auto captured =
      std::make_unique<CudaCapturedGraph>(context_, levels_[0].graph, executable, told_);
  levels_.clear();
  return std::unique_ptr<CapturedGraph>(std::move(captured));
}

// Now, on a thread that may take its time; else its first launch would. That one does it where this
// is refused, so a refusal is nothing to fail by; a lost device says so there.
void CudaGraphCapture::upload(CuGraphExec executable) {
  if (!context_.api().graph_upload || streams_.empty()) return;
  (void)context_.check(context_.api().graph_upload(executable, streams_[0]), "cuGraphUpload");
}

void CudaGraphCapture::abandon() {
  kept_.reset();
  if (levels_.empty()) return;
  forget_watched();
  for (CuStream stream : streams_) context_.plain_order().remove(stream);
  (void)close_capture();
  const CudaContext::Use use(context_);
  if (!is_graph_freed_) context_.api().graph_destroy(levels_[0].graph);
  levels_.clear();
}

// ---------------------------------------------------------------- decisions

bool CudaGraphCapture::can_decide() const {
  return kernels_.step != nullptr && kernels_.choice != nullptr &&
         context_.facts().has_device_driven;
}

Status CudaGraphCapture::launch_one(CuFunction function, const void* params, uint32_t num_blocks,
                                    uint32_t num_threads) {
  EDDY_ASSIGN_OR_RETURN(void* const native, capturing_stream(0));
  const CudaContext::Use use(context_);
  return launch_grid(context_, function, num_blocks, num_threads, params,
                     static_cast<CuStream>(native));
}

Status CudaGraphCapture::count(const LoopWords& words, uint32_t flags) {
  if (levels_.empty()) return internal_error("a loop is counted outside a capture");
  return keep({0, words.counter, words.limit, nullptr, words.stop, words.progress,
               levels_.back().test.go_on, words.asked_ns, flags | guard_flag(), 0});
}

Status CudaGraphCapture::keep_test(const LoopTest& test, CuConditionalHandle handle,
                                   uint32_t more_flags) {
  const LoopWords& words = test.words;
  return keep({handle, words.counter, words.limit, static_cast<const uint8_t*>(test.predicate),
               words.stop, words.progress, test.go_on, words.asked_ns,
               cuda::LoopStepParams::kTest | more_flags, 0});
}

Status CudaGraphCapture::start_counter(const LoopWords& words) {
  using Step = cuda::LoopStepParams;
  const bool is_first = levels_.size() == 1 && words.asked_ns != nullptr;
  return count(words, Step::kStart | (is_first ? uint32_t{Step::kForget} : 0));
}

Status CudaGraphCapture::advance_counter(const LoopWords& words) {
  return count(words, cuda::LoopStepParams::kAdvance);
}

bool CudaGraphCapture::is_in_loop() const { return std::ranges::any_of(levels_, &Level::is_loop); }

// A conditional node has a kernel inside it.
Status CudaGraphCapture::fill_body() {
  const Level& body = levels_.back();
  size_t num_nodes = 0;
  if (context_.api().graph_nodes) {
    const CudaContext::Use use(context_);
    EDDY_RETURN_IF_ERROR(context_.check(context_.api().graph_nodes(body.graph, nullptr, &num_nodes),
                                        "cuGraphGetNodes"));
  }
  num_nodes += body.num_conditionals + (kept_ ? 1 : 0);
  for (; num_nodes < PlainOrder::kLeastKernels; ++num_nodes) {
    const cuda::LoopStepParams none{};
    EDDY_RETURN_IF_ERROR(launch_one(kernels_.step, &none));
  }
  return flush();
}

void CudaGraphCapture::watch(const uint32_t* guard_or_null) {
  for (CuStream stream : streams_) context_.launch_guards().watch(stream, guard_or_null);
}

void CudaGraphCapture::forget_watched() {
  for (CuStream stream : streams_) context_.launch_guards().forget(stream);
}

Result<CuConditionalHandle> CudaGraphCapture::make_handle() {
  if (!can_decide()) return unsupported("this device cannot decide loops and cases by itself");
  const CudaContext::Use use(context_);
  CuConditionalHandle handle = 0;
  EDDY_RETURN_IF_ERROR(context_.check(
      context_.api().graph_conditional_handle(&handle, levels_.back().graph, context_.handle(), 0,
                                              kCuConditionalAssignDefault),
      "cuGraphConditionalHandleCreate"));
  return handle;
}

Result<std::vector<CuGraph>> CudaGraphCapture::add_conditional(CuConditionalHandle handle,
                                                               CuConditionalType type,
                                                               uint32_t num_bodies) {
  EDDY_RETURN_IF_ERROR(find_last());
  EDDY_RETURN_IF_ERROR(close_capture());
  const CudaContext::Use use(context_);
  Level& level = levels_.back();
  CuGraphNodeParams params;
  EDDY_CHECK(num_bodies > 0) << "a conditional node has no body";
  params.type = CuGraphNodeType::kConditional;
  params.conditional = {};
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = num_bodies;
  params.conditional.context = context_.handle();
  CuGraphNode node = nullptr;
  EDDY_RETURN_IF_ERROR(
      context_.check(context_.api().graph_add_node(&node, level.graph, level.last.data(), nullptr,
                                                   level.last.size(), &params),
                     "cuGraphAddNode"));
  level.last = {node};
  ++level.num_conditionals;
  const CuGraph* const bodies = params.conditional.bodies_out;
  return std::vector<CuGraph>(bodies, bodies + num_bodies);
}

Status CudaGraphCapture::begin_while(const LoopTest& test) {
  if (is_watched()) return internal_error("a body of several iterations holds a loop");
  if (test.go_on != nullptr && (kernels_.copy == nullptr || !context_.api().graph_nodes)) {
    return unsupported("kernels or driver lack what it takes to call launches off");
  }
  EDDY_ASSIGN_OR_RETURN(const CuConditionalHandle handle, make_handle());
  EDDY_RETURN_IF_ERROR(keep_test(test, handle, 0));
  EDDY_ASSIGN_OR_RETURN(const std::vector<CuGraph> bodies,
                        add_conditional(handle, CuConditionalType::kWhile, 1));
  EDDY_CHECK(bodies.size() == 1) << "a loop has " << bodies.size() << " bodies";
  Level body;
  body.graph = bodies[0];
  body.handle = handle;
  body.is_loop = true;
  body.test = test;
  levels_.push_back(std::move(body));
  for (CuStream stream : streams_) context_.plain_order().add(stream);
  if (is_watched()) watch(nullptr);
  return Status::ok();
}

uint32_t CudaGraphCapture::least_launches() const {
  const bool calls_off = kernels_.copy != nullptr && context_.api().graph_nodes;
  return calls_off ? static_cast<uint32_t>(PlainOrder::kLeastKernels) : 1;
}

// What is kept will be one more.
Result<uint32_t> CudaGraphCapture::count_launches() {
  if (!is_watched()) return internal_error("launches are counted in a body of one iteration");
  const uint64_t num_kept = kept_ ? 1 : 0;
  uint64_t num_ours = num_kept;
  for (CuStream stream : streams_) num_ours += context_.launch_guards().num_launches(stream);
  const CudaContext::Use use(context_);
  size_t num_nodes = 0;
  EDDY_RETURN_IF_ERROR(context_.check(
      context_.api().graph_nodes(levels_.back().graph, nullptr, &num_nodes), "cuGraphGetNodes"));
  num_nodes += num_kept;
  if (num_nodes == num_ours) return static_cast<uint32_t>(num_nodes);
  return unsupported("of the " + std::to_string(num_nodes) + " pieces of work in its body only " +
                     std::to_string(num_ours) +
                     " can be called off; others are a library's, or no kernels");
}

Status CudaGraphCapture::begin_again() {
  if (!is_watched()) return internal_error("a body of one iteration begins again");
  Level& body = levels_.back();
  EDDY_RETURN_IF_ERROR(keep_test(body.test, body.handle, guard_flag()));
  EDDY_RETURN_IF_ERROR(flush());
  body.is_again = true;
  watch(body.test.go_on);
  return Status::ok();
}

Status CudaGraphCapture::end_while() {
  EDDY_CHECK(levels_.size() > 1 && levels_.back().branches.empty()) << "no loop is open";
  const Level& body = levels_.back();
  EDDY_RETURN_IF_ERROR(keep_test(body.test, body.handle, guard_flag()));
  EDDY_RETURN_IF_ERROR(fill_body());
  if (body.is_again) EDDY_RETURN_IF_ERROR(count_launches().status());
  if (is_watched()) forget_watched();
  EDDY_RETURN_IF_ERROR(close_capture());
  levels_.pop_back();
  if (is_in_loop()) return Status::ok();
  for (CuStream stream : streams_) context_.plain_order().remove(stream);
  return Status::ok();
}

Status CudaGraphCapture::begin_case(const CaseChoice& choice, uint32_t num_branches) {
  if (is_watched()) return internal_error("a body of several iterations holds a case");
  EDDY_RETURN_IF_ERROR(flush());
  EDDY_ASSIGN_OR_RETURN(const CuConditionalHandle handle, make_handle());
  const cuda::CaseChoiceParams params{handle,
                                      choice.selector,
                                      const_cast<uint32_t*>(choice.stop),
                                      choice.failure,
                                      static_cast<int32_t>(choice.type),
                                      choice.num_choices,
                                      choice.fallback,
                                      0};
  EDDY_RETURN_IF_ERROR(launch_one(kernels_.choice, &params));
  // An IF's first body runs when its value is not 0. It has no place for "none of the two".
  const bool is_if = choice.type == CaseChoice::Type::kBool && num_branches == 2;
  const CuConditionalType type = is_if ? CuConditionalType::kIf : CuConditionalType::kSwitch;
  EDDY_ASSIGN_OR_RETURN(std::vector<CuGraph> bodies, add_conditional(handle, type, num_branches));
  if (is_if) std::swap(bodies[0], bodies[1]);
  Level level;
  level.branches = std::move(bodies);
  levels_.push_back(std::move(level));
  return Status::ok();
}

Status CudaGraphCapture::begin_branch() {
  EDDY_RETURN_IF_ERROR(close_capture());
  EDDY_CHECK(levels_.size() > 1) << "a branch begins outside a case";
  Level& level = levels_.back();
  if (level.next_branch == level.branches.size()) {
    return internal_error("a case has more branches than announced");
  }
  level.graph = level.branches[level.next_branch++];
  level.last.clear();
  return Status::ok();
}

Status CudaGraphCapture::end_case() {
  EDDY_CHECK(levels_.size() > 1 && !levels_.back().branches.empty()) << "no case is open";
  EDDY_CHECK(levels_.back().next_branch == levels_.back().branches.size())
      << "a case ends behind branch " << levels_.back().next_branch;
  EDDY_RETURN_IF_ERROR(close_capture());
  levels_.pop_back();
  return Status::ok();
}

}  // namespace eddy
