#include "runtime/batching/batching_session.h"

#include <system_error>
#include <utility>

#include "graph/io/import.h"
#include "runtime/batching/batch_queue.h"
#include "runtime/cpu/worker_pool.h"
#include "runtime/device/no_thread.h"

namespace eddy {
namespace {

Status check_options(const SessionOptions& options, const Batching& batching) {
  for (const auto& [name, size] : options.dims) {
    if (name != batching.dimension) continue;
    return invalid_argument("dimension '" + name + "' is fixed to " + std::to_string(size) +
                            "; leave it open to batch along it");
  }
  if (batching.max_samples < 1 || batching.max_batches_in_flight < 1) {
    return invalid_argument("a batch needs room for a sample, and a turn: max_samples is " +
                            std::to_string(batching.max_samples) + ", max_batches_in_flight " +
                            std::to_string(batching.max_batches_in_flight));
  }
  if (!options.make_device) return Status::ok();
  return unsupported(
      "batches run on the embedded CPU device, and on those of make_devices; leave "
      "make_device empty");
}

// The graph as it is before passes that other operators come from.
Result<BatchAxes> axes_of(const Library& library, const Graph& graph, SessionOptions options,
                          const std::string& dimension) {
  options.folds_norms = false;
  options.blocks_channels = false;
  options.log = {};
  EDDY_ASSIGN_OR_RETURN(const Graph simple, Session::graph_to_run(library, graph.copy(), options));
  return find_batch_axes(simple, dimension);
}

}  // namespace

Result<std::unique_ptr<BatchingSession>> BatchingSession::create(const Library& library,
                                                                 Graph graph,
                                                                 const SessionOptions& options,
                                                                 const Batching& batching) try {
  EDDY_RETURN_IF_ERROR(check_options(options, batching));
  EDDY_ASSIGN_OR_RETURN(BatchAxes axes, axes_of(library, graph, options, batching.dimension));
  SessionOptions own = options;
  if (own.threads == nullptr) {
    own.threads = std::make_shared<SharedThreads>(options.num_threads);
    own.num_threads = 0;
  }
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(graph), own));
  own.threads->workers()->prepare();
  if (batching.wait_limit.count() > 0) (void)own.threads->scheduler();
  BatchValues values(session->inputs(), std::move(axes));
  auto queue = std::make_shared<BatchQueue>(
      BatchQueue::Parts{own.threads, std::move(session), std::move(values), batching,
                        options.max_runs_waiting, options.log});
  return std::unique_ptr<BatchingSession>(new BatchingSession(std::move(queue)));
} catch (const std::system_error& error) {
  return no_thread(error);
}

Result<std::unique_ptr<BatchingSession>> BatchingSession::load(const Library& library,
                                                               const std::string& path,
                                                               const SessionOptions& options,
                                                               const Batching& batching) {
  ImportOptions import_options;
  import_options.warn = options.log;
  EDDY_ASSIGN_OR_RETURN(Graph graph, import_onnx(path, library.ops(), import_options));
  return create(library, std::move(graph), options, batching);
}

BatchingSession::BatchingSession(std::shared_ptr<BatchQueue> queue) : queue_(std::move(queue)) {}

BatchingSession::~BatchingSession() {
  if (!queue_->is_in_child()) {
    queue_->shut_down();
  } else {
    // Its threads are not here to be joined, and its locks may be taken for ever.
    [[maybe_unused]] const auto* left_alone = new std::shared_ptr<BatchQueue>(std::move(queue_));
  }
}

Session& BatchingSession::session() { return queue_->session(); }

Result<NamedTensors> BatchingSession::run(const NamedTensors& inputs, const RunOptions& options) {
  if (queue_->is_in_child()) return ForkGuard::error();
  const RequestRef request = queue_->make_request(options);
  request->inputs_or_null = &inputs;
  return queue_->run(request);
}

BatchHandle BatchingSession::run_async(NamedTensors inputs, RunCallback callback,
                                       const RunOptions& options) {
  const RequestRef request = queue_->make_request(options);
  request->owned = std::move(inputs);
  request->inputs_or_null = &request->owned;
  request->has_callback = callback != nullptr;
  request->callback = std::move(callback);
  queue_->submit(request);
  return BatchHandle(request);
}

void BatchingSession::cancel_all() {
  if (!queue_->is_in_child()) queue_->stop_all(false);
}

void BatchingSession::close() {
  if (!queue_->is_in_child()) queue_->close();
}

Status BatchHandle::wait() {
  EDDY_RETURN_IF_ERROR(request_->queue->check_wait(*request_));
  request_->signal.wait({});
  return request_->status;
}

bool BatchHandle::wait_for(std::chrono::nanoseconds timeout) {
  if (!request_->queue->check_wait(*request_).is_ok()) return is_done();
  const Deadline deadline = deadline_in(timeout);
  return request_->signal.wait({.deadline_or_null = deadline ? &*deadline : nullptr});
}

bool BatchHandle::is_done() const {
  return request_->queue->is_in_child() || request_->signal.is_set();
}

void BatchHandle::cancel() {
  if (!request_->queue->is_in_child()) request_->queue->stop(request_, StopReason::kCancelled);
}

}  // namespace eddy
