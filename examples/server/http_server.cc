#include "examples/server/http_server.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <system_error>

#include "examples/server/json_values.h"

namespace eddy::server {
namespace {

constexpr size_t kMaxRefused = 16;
constexpr int kBacklog = 128;  // the library's is 5
constexpr int kRetryAcceptMs = 10;

void set_option(int socket, int level, int option) {
  const int on = 1;
  setsockopt(socket, level, option, &on, sizeof(on));
}

}  // namespace

std::optional<uint64_t> content_length(const httplib::Request& request) {
  const size_t count = request.get_header_value_count("Content-Length");
  const bool has_body =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (count == 0) return has_body ? std::nullopt : std::optional<uint64_t>(0);
  const std::string text = request.get_header_value("Content-Length");
  uint64_t length = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), length);
  const bool is_length = end.ec == std::errc() && end.ptr == text.data() + text.size();
  if (count > 1 || !is_length) return std::nullopt;
  return length;
}

class HttpServer::ActiveRequest {
 public:
  explicit ActiveRequest(HttpServer& server) : server_(server) {
    const std::scoped_lock lock(server_.mutex_);
    ++server_.num_active_;
  }
  ~ActiveRequest() {
    const std::scoped_lock lock(server_.mutex_);
    if (--server_.num_active_ == 0) server_.idle_.notify_all();
  }
  ActiveRequest(const ActiveRequest&) = delete;
  ActiveRequest& operator=(const ActiveRequest&) = delete;

 private:
  HttpServer& server_;
};

HttpServer::HttpServer(const HttpLimits& limits, OnEarlyAnswer on_early_answer)
    : limits_(limits), on_early_answer_(std::move(on_early_answer)) {
  // Not the library's SO_REUSEPORT, with which two servers share a port unnoticed.
  set_socket_options([](socket_t socket) { set_option(socket, SOL_SOCKET, SO_REUSEADDR); });
}

Status HttpServer::open(const std::string& host, int port) {
  errno = 0;
  port_ = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  if (port_ < 0) {
    const std::string why = errno == 0 ? "there is no such address" : std::strerror(errno);
    return invalid_argument("cannot listen on " + host + ", port " + std::to_string(port) + ": " +
                            why + "; give another --host or --port");
  }
  wake_ = eventfd(0, EFD_CLOEXEC);
  // Not blocking: a connection may be gone before it is accepted.
  const bool is_ready = wake_ >= 0 && ::listen(svr_sock_, kBacklog) == 0 &&
                        fcntl(svr_sock_, F_SETFL, O_NONBLOCK) == 0;
  if (!is_ready) return resource_exhausted(std::string("cannot listen: ") + std::strerror(errno));
  try {
    acceptor_ = std::thread([this] { accept_connections(); });
  } catch (const std::system_error& error) {
    return resource_exhausted(std::string("no thread to accept connections: ") + error.what());
  }
  return Status::ok();
}

size_t HttpServer::num_connections() const {
  const std::scoped_lock lock(mutex_);
  return num_served_;
}

void HttpServer::accept_connections() {
  while (true) {
    pollfd waited[] = {{wake_, POLLIN, 0}, {svr_sock_, POLLIN, 0}};
    if (poll(waited, 2, -1) < 0) continue;
    if (waited[0].revents != 0) return;
    const int socket = accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) {
      admit(socket);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      poll(waited, 1, kRetryAcceptMs);  // until some connection ends
    }
  }
}

void HttpServer::admit(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY);  // head and body are written apart
  join_ended();
  const std::scoped_lock lock(mutex_);
  const bool is_refused = num_served_ >= limits_.max_connections;
  if (is_refused && num_refused_ >= kMaxRefused) {
    ::close(socket);
    return;
  }
  size_t& count = is_refused ? num_refused_ : num_served_;
  try {
    connections_.push_back(std::make_unique<Connection>(socket, limits_, is_refused));
  } catch (const std::bad_alloc&) {
    ::close(socket);
    return;
  }
  Connection& connection = *connections_.back();
  try {
    connection.thread = std::thread([this, &connection] { serve(connection); });
    ++count;
  } catch (const std::exception&) {  // no thread, or no memory for one
    connections_.pop_back();
  }
}

void HttpServer::serve(Connection& connection) {
  try {
    while (serve_one(connection)) {
    }
    connection.stream.finish();
  } catch (const std::exception&) {
    // The connection ends; whatever it was, the next one may fare better.
  }
  const std::scoped_lock lock(mutex_);
  --(connection.is_refused ? num_refused_ : num_served_);
  connection.stream.close();
  connection.has_ended = true;
}

bool HttpServer::serve_one(Connection& connection) {
  HttpStream& stream = connection.stream;
  switch (stream.read_head()) {
    case HttpStream::Head::kClosed:
      return false;
    case HttpStream::Head::kLate:
      answer_early(stream, 408, "Request Timeout", "the request did not come in time");
      return false;
    case HttpStream::Head::kTooLarge:
      answer_early(
          stream, 431, "Request Header Fields Too Large",
          "the request's head is larger than " + std::to_string(limits_.max_head_bytes) + " bytes");
      return false;
    case HttpStream::Head::kComplete:
      break;
  }
  if (connection.is_refused) {
    answer_early(
        stream, 503, "Service Unavailable",
        "more than " + std::to_string(limits_.max_connections) + " connections; try again later");
    return false;
  }
  const ActiveRequest active(*this);
  return answer_request(stream);
}

// False: it was the connection's last.
bool HttpServer::answer_request(HttpStream& stream) {
  const bool is_last = is_stopping_.load();
  bool is_closed = false;  // wanted by the client
  const bool is_written =
      process_request(stream, is_last, is_closed, [&stream](httplib::Request& request) {
        request.ranges.clear();
        request.progress = [&stream](uint64_t, uint64_t) { return !stream.is_client_gone(); };
        const auto length = content_length(request);
        if (length && !request.has_header("Transfer-Encoding")) stream.expect_body(*length);
      });
  return is_written && !is_last && !is_closed && stream.is_at_end();
}

void HttpServer::answer_early(HttpStream& stream, int code, const char* reason,
                              const std::string& message) {
  if (on_early_answer_) on_early_answer_(code, message);
  const std::string body = error_json(message);
  std::string text = "HTTP/1.1 " + std::to_string(code) + " " + reason + "\r\n";
  if (code == 503) text += "Retry-After: 1\r\n";
  text += "Connection: close\r\nContent-Type: application/json\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body;
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = stream.write(text.data() + written, text.size() - written);
    if (count <= 0) return;
    written += static_cast<size_t>(count);
  }
}

void HttpServer::join_ended() {
  Connections ended;
  {
    const std::scoped_lock lock(mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto next = std::next(it);
      if ((*it)->has_ended) ended.splice(ended.end(), connections_, it);
      it = next;
    }
  }
  for (const auto& connection : ended) connection->thread.join();
}

void HttpServer::stop_accepting() {
  is_stopping_.store(true);
  if (acceptor_.joinable()) {
    eventfd_write(wake_, 1);
    acceptor_.join();
  }
  const int listener = svr_sock_.exchange(INVALID_SOCKET);
  if (listener != INVALID_SOCKET) ::close(listener);
  if (wake_ >= 0) ::close(std::exchange(wake_, -1));
}

bool HttpServer::wait_until_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  while (num_active_ > 0) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    idle_.wait_for(lock, left);
  }
  return true;
}

void HttpServer::shut() {
  stop_accepting();
  Connections all;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& connection : connections_) connection->stream.shut_down();
    all.swap(connections_);
  }
  for (const auto& connection : all) connection->thread.join();
}

}  // namespace eddy::server
