// ModelServer: a session behind HTTP.
//
//   EDDY_ASSIGN_OR_RETURN(auto session, Session::load(library, "model.onnx", session_options));
//   EDDY_ASSIGN_OR_RETURN(auto server, ModelServer::start(std::move(session), {.port = 8080}));
//   ... server->stop(std::chrono::seconds(10));
//
// Or of a BatchingSession: requests that fit together share runs.
//
//   POST /v1/run     a run: inputs as JSON in, outputs as JSON out (json_values.h)
//   GET /v1/model    names, types and shapes of inputs and outputs
//   GET /healthz     200 "ok", or 503 "draining" once stop() was called
//   GET /metrics     Prometheus' text (metrics.h)
//
// Errors of requests are {"error": "one line"} and a code: 400 what was sent is wrong, 404, 405,
// 408 too slow, 411 no length, 413 too large, 415, 431, 500 the run failed (the line names the
// node), 503 too much at a time or stopping (with Retry-After), 504 past the deadline. The
// session's max_runs_in_flight and max_runs_waiting bound the runs. A client that closes its side
// of the connection before it was answered has its run cancelled. Errors of start(): kUnsupported
// for a model whose values have no JSON, kInvalidArgument for an address that cannot be listened
// on. Threads: one for each connection; start and stop by one.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "examples/server/http_server.h"
#include "examples/server/metrics.h"
#include "runtime/api/session.h"
#include "runtime/batching/batching_session.h"

namespace eddy::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free one
  size_t max_body_bytes = size_t{16} << 20;
  std::chrono::milliseconds timeout{0};  // of a run, with its wait for a turn; 0: none
  // What Batching::on_batch counts; shown with the metrics. Null: nothing is.
  std::shared_ptr<const BatchSizes> batch_sizes = {};
  HttpLimits http = {};  // max_request_bytes follows from max_body_bytes
  // One line for each failed request. Any thread; must not throw.
  std::function<void(std::string_view line)> log = {};
};

class ModelServer {
 public:
  // Requests are served from now on. What the session's library is must outlive the server.
  static Result<std::unique_ptr<ModelServer>> start(std::unique_ptr<Session> session,
                                                    const ServerOptions& options);
  static Result<std::unique_ptr<ModelServer>> start(std::unique_ptr<BatchingSession> session,
                                                    const ServerOptions& options);
  ~ModelServer() { stop(std::chrono::milliseconds(0)); }

  int port() const { return http_.port(); }
  Session& session() { return batching_ ? batching_->session() : *session_; }
  const Metrics& metrics() const { return metrics_; }

  // No connection and no run is accepted any more; what was begun may end within `drain`, and is
  // cancelled then. Returns when all has ended; a kernel or host function that never returns holds
  // it up.
  void stop(std::chrono::milliseconds drain);

 private:
  ModelServer(std::unique_ptr<Session> session, std::unique_ptr<BatchingSession> batching,
              const ServerOptions& options);
  Status open();
  struct Refusal {
    int code = 0;
    std::string message;
  };

  void add_hooks();
  void add_routes();
  std::optional<Refusal> refusal(const httplib::Request& request) const;
  std::optional<Refusal> body_refusal(const httplib::Request& request) const;
  bool refuse(const httplib::Request& request, httplib::Response& response) const;
  void answer_error(httplib::Response& response, int code, const std::string& message) const;
  void handle_run(const httplib::Request& request, httplib::Response& response,
                  const httplib::ContentReader& read_body);
  bool read_body(const httplib::ContentReader& read, httplib::Response& response,
                 std::string& body) const;
  Result<NamedTensors> run(NamedTensors inputs, const httplib::Request& request);
  std::string metrics_text();
  void note_response(const httplib::Request& request, httplib::Response& response);
  void log(const std::string& line) const;

  const ServerOptions options_;
  const std::unique_ptr<Session> session_;           // or
  const std::unique_ptr<BatchingSession> batching_;  // which has one
  Metrics metrics_;
  std::atomic<bool> is_draining_{false};
  HttpServer http_;  // last: its threads use all of the above
};

}  // namespace eddy::server
