#include "examples/server/http_stream.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace eddy::server {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr size_t kReceivedBytes = 16384;

// What of `events` there is, before the deadline; 0: nothing.
short await(int socket, short events, std::chrono::steady_clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waited{socket, events, 0};
    const int result = poll(&waited, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (result > 0) return waited.revents;
    if (result == 0 || errno != EINTR) return 0;
  }
}

bool is_there(int socket, short events) {
  return await(socket, events, std::chrono::steady_clock::time_point()) != 0;
}

bool is_range_line(std::string_view line) {
  constexpr std::string_view kName = "range:";
  return line.size() >= kName.size() &&
         std::ranges::equal(line.substr(0, kName.size()), kName, [](char given, char wanted) {
           return (given >= 'A' && given <= 'Z' ? given - 'A' + 'a' : given) == wanted;
         });
}

void name_address(const sockaddr_storage& address, socklen_t size, std::string& ip, int& port) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  if (getnameinfo(any, size, host.data(), host.size(), service.data(), service.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return;
  }
  ip = host.data();
  port = std::atoi(service.data());
}

}  // namespace

HttpStream::HttpStream(int socket, const HttpLimits& limits) : socket_(socket), limits_(limits) {}

HttpStream::Head HttpStream::read_head() {
  buffer_.erase(0, position_);
  position_ = 0;
  read_bytes_ = 0;
  request_bytes_.reset();
  deadline_ = Clock::now() + (buffer_.empty() ? limits_.idle_timeout : limits_.read_timeout);
  size_t searched = 0;
  while (true) {
    const size_t end = buffer_.find(kHeadEnd, searched);
    if (end != std::string::npos && end + kHeadEnd.size() <= limits_.max_head_bytes) {
      size_t head_size = end + kHeadEnd.size();
      leave_out_ranges(head_size);
      head_bytes_ = head_size;
      return Head::kComplete;
    }
    if (buffer_.size() >= limits_.max_head_bytes) return Head::kTooLarge;
    searched = buffer_.size() < kHeadEnd.size() ? 0 : buffer_.size() - kHeadEnd.size() + 1;
    const bool is_first = buffer_.empty();
    const ssize_t received = receive(deadline_);
    if (received <= 0) return is_first || received == 0 ? Head::kClosed : Head::kLate;
    if (is_first) deadline_ = Clock::now() + limits_.read_timeout;
  }
}

// Lines end as the library ends them: at any newline.
void HttpStream::leave_out_ranges(size_t& head_size) {
  size_t start = 0;
  while (start < head_size) {
    const size_t size = buffer_.find('\n', start) + 1 - start;
    if (is_range_line(std::string_view(buffer_).substr(start, size))) {
      buffer_.erase(start, size);
      head_size -= size;
    } else {
      start += size;
    }
  }
}

ssize_t HttpStream::receive(Clock::time_point deadline) {
  std::array<char, kReceivedBytes> bytes;
  while (true) {
    if (await(socket_, POLLIN, deadline) == 0) return -1;
    const ssize_t count = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) buffer_.append(bytes.data(), static_cast<size_t>(count));
    if (count >= 0) return count;
    if (errno != EINTR && errno != EAGAIN) return -1;
  }
}

ssize_t HttpStream::read(char* to, size_t size) {
  if (read_bytes_ >= limits_.max_request_bytes) return -1;
  if (position_ == buffer_.size()) {
    buffer_.clear();
    position_ = 0;
    const ssize_t received = receive(deadline_);
    if (received <= 0) return received;
  }
  const size_t count = std::min(size, buffer_.size() - position_);
  buffer_.copy(to, count, position_);
  position_ += count;
  read_bytes_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t HttpStream::write(const char* from, size_t size) {
  const Clock::time_point deadline = Clock::now() + limits_.write_timeout;
  while (true) {
    const ssize_t count = send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) return count;
    if (errno != EINTR && errno != EAGAIN) return -1;
    if (await(socket_, POLLOUT, deadline) == 0) return -1;
  }
}

bool HttpStream::is_client_gone() const {
  return is_there(socket_, POLLRDHUP);  // and POLLHUP and POLLERR, which always count
}
bool HttpStream::is_readable() const {
  return position_ < buffer_.size() || is_there(socket_, POLLIN);
}
bool HttpStream::is_writable() const { return is_there(socket_, POLLOUT); }

void HttpStream::finish() {
  if (shutdown(socket_, SHUT_WR) != 0) return;
  const Clock::time_point deadline = Clock::now() + limits_.finish_timeout;
  size_t left = limits_.max_finish_bytes;
  while (true) {
    const ssize_t count = receive(deadline);
    if (count <= 0 || static_cast<size_t>(count) >= left) return;
    left -= static_cast<size_t>(count);
    buffer_.clear();
  }
}

void HttpStream::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void HttpStream::shut_down() {
  if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
}

void HttpStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(socket_, any, &size) == 0) name_address(address, size, ip, port);
}

void HttpStream::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (getsockname(socket_, any, &size) == 0) name_address(address, size, ip, port);
}

}  // namespace eddy::server
