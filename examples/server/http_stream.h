// HttpStream: the bytes of one connection, as cpp-httplib reads and writes them, with limits of its
// own.
//
//   while (stream.read_head() == HttpStream::Head::kComplete) { the library reads, answers }
//   stream.finish();
//
// A request's head (its first line and headers) is read as a whole, within a size and a time,
// before the library sees any of it: the library itself bounds neither. Headers named Range are
// left out: no answer has parts, and the library matches them by recursion. The body is bounded by
// time and bytes, and the stream knows whether all of it was read, else the rest would be taken for
// the next request.
// Owns the socket. Errors: reads and writes return -1, as the library wants. Threads: one, but for
// shut_down(), which any other may call until close().
#pragma once

#include <httplib.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace eddy::server {

struct HttpLimits {
  size_t max_connections = 256;  // 900 at most: the library fails on descriptors above 1023
  size_t max_head_bytes = size_t{32} << 10;
  size_t max_request_bytes = size_t{64} << 20;      // with head, and chunks' own bytes
  size_t max_finish_bytes = size_t{16} << 20;       // taken from a client that goes on at the end
  std::chrono::milliseconds idle_timeout{5'000};    // between requests
  std::chrono::milliseconds read_timeout{30'000};   // of one request, from its first byte on
  std::chrono::milliseconds write_timeout{10'000};  // until the client takes some more
  std::chrono::milliseconds finish_timeout{1'000};  // until the client closes, too
};

class HttpStream : public httplib::Stream {
 public:
  HttpStream(int socket, const HttpLimits& limits);
  ~HttpStream() override { close(); }
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  enum class Head : uint8_t { kComplete, kClosed, kLate, kTooLarge };
  // The next request's; what the last one has left is lost. Closed: before its first byte, or
  // without one in time.
  Head read_head();
  // How many bytes follow the head. Without, is_at_end() stays false.
  void expect_body(uint64_t size_bytes) { request_bytes_ = head_bytes_ + size_bytes; }
  bool is_at_end() const { return request_bytes_ == read_bytes_; }
  // The client has closed its side, or the connection is broken.
  bool is_client_gone() const;

  // Says that nothing more comes, and takes what still arrives for a while: closed at once, the
  // last answer could be lost with it.
  void finish();
  void close();
  // Reads and writes end.
  void shut_down();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  using Stream::write;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Bytes that have come; 0 at the end, -1 when late or broken.
  ssize_t receive(Clock::time_point deadline);
  void leave_out_ranges(size_t& head_size);

  int socket_;
  const HttpLimits& limits_;
  std::string buffer_;
  size_t position_ = 0;  // in buffer_: what was read
  Clock::time_point deadline_;
  // Of this request:
  uint64_t head_bytes_ = 0;
  uint64_t read_bytes_ = 0;
  std::optional<uint64_t> request_bytes_;
};

}  // namespace eddy::server
