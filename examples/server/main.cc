// server MODEL.onnx [--port N ...]: serves a model over HTTP until SIGTERM or SIGINT.
//
// Exit codes: 0 after such a signal; 2 usage; 3 the model or the address is bad; 4 something else
// failed; 130 or 143 after a second signal.
#include <pthread.h>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>

#include "examples/report.h"
#include "examples/server/server.h"

namespace eddy::server {
namespace {

struct Arguments {
  std::string model;
  ServerOptions server;
  int num_threads = 0;
  uint32_t max_in_flight = 4;
  uint32_t max_waiting = 64;
  int64_t timeout_ms = 0;
  int64_t drain_ms = 10'000;
  Batching batching;  // no dimension: each request has a run of its own
  int64_t batch_wait_us = 0;
};

void log_line(std::string_view line) {
  std::fprintf(stderr, "server: %.*s\n", static_cast<int>(line.size()), line.data());
}

// SIGTERM and SIGINT, waited for by a thread of its own. Made before any other thread, which all
// block them then. The first one is what wait() waits for; the second ends the process.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this] { watch(); });
  }
  ~StopSignals() {
    is_ending_.store(true);
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  void wait() { first_.get_future().wait(); }
  Status check() const { return is_raised_.load() ? cancelled("a signal") : Status::ok(); }

 private:
  void watch() {
    int signal = 0;
    while (sigwait(&signals_, &signal) == 0 && !is_ending_.load()) {
      if (is_raised_.exchange(true)) {
        log_line("a second signal, not waiting any longer");
        std::_Exit(128 + signal);
      }
      first_.set_value();
    }
  }

  sigset_t signals_{};
  std::atomic<bool> is_raised_{false};
  std::atomic<bool> is_ending_{false};
  std::promise<void> first_;
  std::thread thread_;
};

void add_options(CLI::App& app, Arguments& given) {
  constexpr int64_t kMaxMs = 1'000'000'000;
  ServerOptions& server = given.server;
  app.add_option("MODEL", given.model, "an ONNX file")->required();
  app.add_option("--host", server.host, "the address to listen on")->capture_default_str();
  app.add_option("--port", server.port, "0: any free port, which is printed")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  app.add_option("--threads", given.num_threads, "CPU workers; 0: one for each processor")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  app.add_option("--max-in-flight", given.max_in_flight, "runs at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_option("--max-waiting", given.max_waiting, "runs that wait for their turn")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_option("--batch", given.batching.dimension,
                 "requests share runs along this dimension of the model's inputs");
  app.add_option("--max-batch", given.batching.max_samples, "samples in one such run")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app.add_option("--batch-wait-us", given.batch_wait_us,
                 "the longest that a request waits for others; 0: while it waits for its turn")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, 1000 * kMaxMs));
  app.add_option("--max-connections", server.http.max_connections, "further ones are refused")
      ->capture_default_str()
      ->check(CLI::Range(1, 800));
  app.add_option("--max-body-bytes", server.max_body_bytes, "of one request, decoded")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--timeout-ms", given.timeout_ms, "of a run and its wait for a turn; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, kMaxMs));
  app.add_option("--drain-ms", given.drain_ms, "what runs at the end may go on for so long")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, kMaxMs));
}

std::string url_of(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return "http://" + (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<std::unique_ptr<ModelServer>> make_server(const Library& library, Arguments& given,
                                                 const SessionOptions& session_options) {
  if (given.batching.dimension.empty()) {
    EDDY_ASSIGN_OR_RETURN(auto session, Session::load(library, given.model, session_options));
    return ModelServer::start(std::move(session), given.server);
  }
  const auto sizes = std::make_shared<BatchSizes>();
  given.server.batch_sizes = sizes;
  given.batching.on_batch = [sizes](size_t, int64_t num_samples) { sizes->add(num_samples); };
  given.batching.wait_limit = std::chrono::microseconds(given.batch_wait_us);
  given.batching.max_batches_in_flight = given.max_in_flight;
  EDDY_ASSIGN_OR_RETURN(
      auto session, BatchingSession::load(library, given.model, session_options, given.batching));
  return ModelServer::start(std::move(session), given.server);
}

Status serve(Arguments given, StopSignals& signals) {
  SessionOptions session_options;
  session_options.num_threads = given.num_threads;
  session_options.max_runs_in_flight = given.max_in_flight;
  session_options.max_runs_waiting = given.max_waiting;
  session_options.check = [&signals] { return signals.check(); };
  given.server.timeout = std::chrono::milliseconds(given.timeout_ms);
  given.server.log = log_line;
  const Library library;
  EDDY_ASSIGN_OR_RETURN(const auto server, make_server(library, given, session_options));
  const std::string url = url_of(given.server.host, server->port());
  log_line("serving " + given.model + " on " + url);
  std::printf("listening on %s\n", url.c_str());
  std::fflush(stdout);
  signals.wait();
  server->stop(std::chrono::milliseconds(given.drain_ms));
  log_line("stopped after " + std::to_string(server->metrics().num_responses()) + " requests");
  return Status::ok();
}

int run(int argc, char** argv) {
  Arguments given;
  CLI::App app("Serves an ONNX model over HTTP.", "server");
  add_options(app, given);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  StopSignals signals;
  const Status status = serve(std::move(given), signals);
  return status.code() == StatusCode::kCancelled ? 0 : report(status);
}

}  // namespace
}  // namespace eddy::server

int main(int argc, char** argv) {
  try {
    return eddy::server::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "server: unexpected failure: %s\n", error.what());
    return 4;
  }
}
