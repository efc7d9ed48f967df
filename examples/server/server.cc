#include "examples/server/server.h"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <utility>

#include "examples/server/json_values.h"

namespace eddy::server {
namespace {

constexpr const char* kJsonType = "application/json";
constexpr const char* kRetryAfterS = "1";
constexpr auto kLookAtClient = std::chrono::milliseconds(20);
// For the answers of cancelled runs.
constexpr auto kLastAnswers = std::chrono::seconds(1);

struct Route {
  const char* path;
  const char* methods;  // as in the header Allow
};
constexpr std::array<Route, 4> kRoutes = {{{"/v1/run", "POST"},
                                           {"/v1/model", "GET, HEAD"},
                                           {"/healthz", "GET, HEAD"},
                                           {"/metrics", "GET, HEAD"}}};

const Route* find_route_or_null(const std::string& path) {
  const auto* const route =
      std::ranges::find_if(kRoutes, [&](const Route& known) { return path == known.path; });
  return route == kRoutes.end() ? nullptr : route;
}

bool allows(const Route& route, const std::string& method) {
  const bool takes_post = std::string_view(route.methods) == "POST";
  return takes_post ? method == "POST" : method == "GET" || method == "HEAD";
}

int code_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
      return status.path().empty() ? 400 : 500;  // with a path it is a node's
    case StatusCode::kResourceExhausted:
    case StatusCode::kCancelled:
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

void answer(httplib::Response& response, int code, std::string body, const char* type) {
  response.status = code;
  response.body = std::move(body);
  response.set_header("Content-Type", type);
}

HttpLimits limits_of(const ServerOptions& options) {
  HttpLimits limits = options.http;
  // Chunks of a few bytes each are as many bytes again.
  limits.max_request_bytes = 2 * options.max_body_bytes + 2 * limits.max_head_bytes;
  return limits;
}

std::string words_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something";
  }
}

bool is_no_memory(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

Result<std::unique_ptr<ModelServer>> ModelServer::start(std::unique_ptr<Session> session,
                                                        const ServerOptions& options) {
  EDDY_CHECK(session != nullptr) << "a server needs a session";
  std::unique_ptr<ModelServer> server(new ModelServer(std::move(session), nullptr, options));
  EDDY_RETURN_IF_ERROR(server->open());
  return server;
}

Result<std::unique_ptr<ModelServer>> ModelServer::start(std::unique_ptr<BatchingSession> session,
                                                        const ServerOptions& options) {
  EDDY_CHECK(session != nullptr) << "a server needs a session";
  std::unique_ptr<ModelServer> server(new ModelServer(nullptr, std::move(session), options));
  EDDY_RETURN_IF_ERROR(server->open());
  return server;
}

Status ModelServer::open() {
  EDDY_RETURN_IF_ERROR(check_have_json(session().inputs(), "input"));
  EDDY_RETURN_IF_ERROR(check_have_json(session().outputs(), "output"));
  return http_.open(options_.host, options_.port);
}

ModelServer::ModelServer(std::unique_ptr<Session> session,
                         std::unique_ptr<BatchingSession> batching, const ServerOptions& options)
    : options_(options),
      session_(std::move(session)),
      batching_(std::move(batching)),
      http_(limits_of(options), [this](int code, const std::string& message) {
        metrics_.add_response(code);
        log("a connection: " + std::to_string(code) + " " + message);
      }) {
  add_hooks();
  add_routes();
}

void ModelServer::stop(std::chrono::milliseconds drain) {
  const auto deadline = std::chrono::steady_clock::now() + drain;
  is_draining_.store(true);
  http_.stop_accepting();
  http_.wait_until_idle(deadline);
  batching_ ? batching_->close() : session_->close();
  http_.wait_until_idle(std::chrono::steady_clock::now() + kLastAnswers);
  http_.shut();
}

void ModelServer::add_hooks() {
  http_.set_pre_routing_handler([this](const auto& request, auto& response) {
    return refuse(request, response) ? HttpServer::HandlerResponse::Handled
                                     : HttpServer::HandlerResponse::Unhandled;
  });
  http_.set_expect_100_continue_handler([this](const auto& request, auto& response) {
    return refuse(request, response) ? response.status : 100;
  });
  http_.set_exception_handler([this](const auto&, auto& response, std::exception_ptr exception) {
    if (is_no_memory(exception)) {
      answer_error(response, 503, "there is no memory for the request; send less, or later");
    } else {
      answer_error(response, 500, "unexpected failure: " + words_of(exception));
    }
  });
  // What the library refuses by itself comes without a body.
  http_.set_error_handler([this](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    answer_error(response, response.status,
                 response.status == 414 ? "the request's target is too long"
                                        : "this is no request of HTTP/1.1 that the server knows");
  });
  http_.set_post_routing_handler(
      [this](const auto& request, auto& response) { note_response(request, response); });
}

void ModelServer::add_routes() {
  http_.Post("/v1/run", [this](const auto& request, auto& response, const auto& read_body) {
    handle_run(request, response, read_body);
  });
  http_.Get("/v1/model", [this](const auto&, auto& response) {
    answer(response, 200, model_json(session()), kJsonType);
  });
  http_.Get("/healthz", [this](const auto&, auto& response) {
    const bool is_draining = is_draining_.load();
    answer(response, is_draining ? 503 : 200, is_draining ? "draining\n" : "ok\n", "text/plain");
  });
  http_.Get("/metrics", [this](const auto&, auto& response) {
    answer(response, 200, metrics_text(), kMetricsType);
  });
}

void ModelServer::answer_error(httplib::Response& response, int code,
                               const std::string& message) const {
  answer(response, code, error_json(message), kJsonType);
  if (code == 503) response.set_header("Retry-After", kRetryAfterS);
}

std::optional<ModelServer::Refusal> ModelServer::refusal(const httplib::Request& request) const {
  const Route* const route = find_route_or_null(request.path);
  if (route == nullptr) {
    return Refusal{404, "there is no " + request.path +
                            "; there are POST /v1/run, GET /v1/model, GET /healthz, GET /metrics"};
  }
  if (!allows(*route, request.method)) {
    return Refusal{405, request.path + " has no " + request.method + "; use " + route->methods};
  }
  return request.method == "POST" ? body_refusal(request) : std::nullopt;
}

std::optional<ModelServer::Refusal> ModelServer::body_refusal(
    const httplib::Request& request) const {
  if (is_draining_.load()) return Refusal{503, "the server is stopping"};
  if (request.is_multipart_form_data()) {
    return Refusal{415, "a body of several parts; send JSON by itself"};
  }
  const bool has_length = request.has_header("Content-Length");
  if (request.has_header("Transfer-Encoding")) {
    if (!has_length && request.get_header_value("Transfer-Encoding") == "chunked") return {};
    return Refusal{400, "Transfer-Encoding has to be chunked, without Content-Length"};
  }
  if (!has_length) return Refusal{411, "Content-Length is missing; give the body's bytes"};
  const std::optional<uint64_t> length = content_length(request);
  if (!length) return Refusal{400, "Content-Length is no number; give the body's bytes"};
  if (*length <= options_.max_body_bytes) return {};
  return Refusal{413, "the body is larger than " + std::to_string(options_.max_body_bytes) +
                          " bytes (--max-body-bytes)"};
}

// True: answered, and the body is left unread.
bool ModelServer::refuse(const httplib::Request& request, httplib::Response& response) const {
  const std::optional<Refusal> why = refusal(request);
  if (!why) return false;
  answer_error(response, why->code, why->message);
  if (why->code == 405) response.set_header("Allow", find_route_or_null(request.path)->methods);
  if (content_length(request) != 0) response.set_header("Connection", "close");
  return true;
}

bool ModelServer::read_body(const httplib::ContentReader& read, httplib::Response& response,
                            std::string& body) const {
  bool is_too_large = false;
  const bool is_read = read([&](const char* data, size_t size) {
    is_too_large = size > options_.max_body_bytes - body.size();
    if (!is_too_large) body.append(data, size);
    return !is_too_large;
  });
  if (is_read) return true;
  if (is_too_large) {
    answer_error(response, 413,
                 "the body is larger than " + std::to_string(options_.max_body_bytes) +
                     " bytes (--max-body-bytes), decoded or in chunks");
  } else {
    answer_error(response, 400, "the body ends early, came too slowly, or is encoded wrongly");
  }
  response.set_header("Connection", "close");
  return false;
}

void ModelServer::handle_run(const httplib::Request& request, httplib::Response& response,
                             const httplib::ContentReader& read) {
  if (request.has_header("Transfer-Encoding")) response.set_header("Connection", "close");
  std::string body;
  if (!read_body(read, response, body)) return;
  Result<NamedTensors> inputs = read_inputs(body, session().inputs());
  std::string().swap(body);  // not kept while the run waits
  if (!inputs.is_ok()) return answer_error(response, 400, inputs.status().to_string());
  const Result<NamedTensors> outputs = run(std::move(*inputs), request);
  if (!outputs.is_ok()) {
    return answer_error(response, code_of(outputs.status()), outputs.status().to_string());
  }
  answer(response, 200, outputs_json(*outputs), kJsonType);
}

namespace {

// Until the run has ended; cancels it where its client has gone.
template <typename Handle>
Status await(Handle handle, const httplib::Request& request) {
  while (!handle.wait_for(kLookAtClient)) {
    if (!request.progress(0, 0)) handle.cancel();
  }
  return handle.wait();
}

}  // namespace

Result<NamedTensors> ModelServer::run(NamedTensors inputs, const httplib::Request& request) {
  RunOptions run_options;
  if (options_.timeout.count() > 0) run_options.timeout = options_.timeout;
  const auto outputs = std::make_shared<Result<NamedTensors>>(NamedTensors());
  const RunTimer timer(metrics_);
  // The callback has returned when the handle is done.
  const auto keep = [outputs](Result<NamedTensors> made) { *outputs = std::move(made); };
  const Status status =
      batching_ ? await(batching_->run_async(std::move(inputs), keep, run_options), request)
                : await(session_->run_async(std::move(inputs), keep, run_options), request);
  const int code = status.is_ok() ? 200 : code_of(status);
  const bool has_run = code != 400 && status.code() != StatusCode::kResourceExhausted;
  if (has_run) metrics_.add_duration(timer.elapsed());
  if (!status.is_ok()) return status;
  return std::move(*outputs);
}

std::string ModelServer::metrics_text() {
  const MemoryStatistics memory = session().memory();
  return metrics_.text({.tensor_bytes = memory.used_bytes,
                        .peak_tensor_bytes = memory.peak_bytes,
                        .num_connections = http_.num_connections(),
                        .batch_sizes_or_null = options_.batch_sizes.get()});
}

// Before the answer is written: a client that has it finds it counted.
void ModelServer::note_response(const httplib::Request& request, httplib::Response& response) {
  metrics_.add_response(response.status);
  response.headers.erase("Keep-Alive");  // the library's own numbers
  if (response.headers.erase("Connection") > 0) response.set_header("Connection", "close");
  if (response.status < 400) return;
  const std::string what =
      request.method.empty() ? "a request" : request.method + " " + request.path;
  log(what + ": " + std::to_string(response.status) + " " + response.body);
}

void ModelServer::log(const std::string& line) const {
  constexpr size_t kMaxLogBytes = 1000;
  if (!options_.log) return;
  const bool has_newline = !line.empty() && line.back() == '\n';
  options_.log(
      one_line(line.substr(0, std::min(kMaxLogBytes, line.size() - (has_newline ? 1 : 0)))));
}

}  // namespace eddy::server
