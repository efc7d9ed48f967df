// HttpServer: cpp-httplib's parser, router and writer behind connections of our own.
//
//   HttpServer http(limits, on_early_answer);
//   http.Get("/healthz", handler);                // routes and hooks, as of the library
//   EDDY_RETURN_IF_ERROR(http.open("127.0.0.1", 0));
//   ... http.stop_accepting(); http.wait_until_idle(deadline); http.shut();
//
// The library's own connections would be queued without bound, read heads without bound, and keep a
// stopping server waiting; so each connection here is a thread and an HttpStream. Those beyond
// max_connections are answered with 503, some at a time, and closed at once beyond that. What
// cannot be answered by a route, since there is no request, has 408 or 431.
//
// In a handler, request.progress(0, 0) says whether the client is still there. What a handler
// leaves unread of the body ends the connection, and so does an answer to one sent in chunks.
// Errors: of open(). An exception that the hooks let pass ends its connection and nothing else.
// Threads: open, stop_accepting and shut by one; the rest by any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "examples/server/http_stream.h"
#include "graph/base/status.h"

namespace eddy::server {

// Of the body; without a header 0, or none where the method has a body; none where it is damaged or
// given twice.
std::optional<uint64_t> content_length(const httplib::Request& request);

class HttpServer : private httplib::Server {
 public:
  // Called for each answer that no hook sees.
  using OnEarlyAnswer = std::function<void(int code, const std::string& message)>;

  HttpServer(const HttpLimits& limits, OnEarlyAnswer on_early_answer);
  ~HttpServer() override { shut(); }

  using Server::Get;
  using Server::Handler;
  using Server::HandlerResponse;
  using Server::Post;
  using Server::set_error_handler;
  using Server::set_exception_handler;
  using Server::set_expect_100_continue_handler;
  using Server::set_post_routing_handler;
  using Server::set_pre_routing_handler;

  // Listens, and accepts connections from now on. Port 0: any free one.
  Status open(const std::string& host, int port);
  int port() const { return port_; }
  size_t num_connections() const;

  // New connections are refused by the system; each answer ends its connection.
  void stop_accepting();
  // False: a request was still being read or answered at the deadline.
  bool wait_until_idle(std::chrono::steady_clock::time_point deadline);
  // Ends all connections.
  void shut();

 private:
  struct Connection {
    Connection(int socket, const HttpLimits& limits, bool refused)
        : stream(socket, limits), is_refused(refused) {}
    HttpStream stream;  // closed under the mutex
    const bool is_refused;
    bool has_ended = false;  // under the mutex
    std::thread thread;
  };
  using Connections = std::list<std::unique_ptr<Connection>>;
  class ActiveRequest;

  void accept_connections();
  void admit(int socket);
  void serve(Connection& connection);
  bool serve_one(Connection& connection);
  bool answer_request(HttpStream& stream);
  void answer_early(HttpStream& stream, int code, const char* reason, const std::string& message);
  void join_ended();

  const HttpLimits limits_;
  const OnEarlyAnswer on_early_answer_;
  int port_ = 0;
  int wake_ = -1;  // an eventfd, which stop_accepting() makes readable
  std::thread acceptor_;
  std::atomic<bool> is_stopping_{false};
  mutable std::mutex mutex_;
  std::condition_variable idle_;  // num_active_ has become 0
  // Under the mutex:
  Connections connections_;
  size_t num_served_ = 0;
  size_t num_refused_ = 0;
  size_t num_active_ = 0;  // requests whose head has been read
};

}  // namespace eddy::server
