// RawClient: a connection to a port of this machine that sends any bytes, for what a client library
// would not send.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::server {

inline std::string post_request(const std::string& body) {
  return "POST /v1/run HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

class RawClient {
 public:
  explicit RawClient(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ =
        connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawClient() { close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool is_connected() const { return is_connected_; }

  // False: the server has closed before all was sent.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }
  // Nothing more comes from here.
  void end() { shutdown(socket_, SHUT_WR); }

  // All that comes until the server closes.
  std::string receive_all() { return receive_until(""); }
  // Until the words have come; empty: until the end.
  std::string receive_until(std::string_view words) {
    std::string text;
    std::array<char, 4096> bytes;
    while (words.empty() || text.find(words) == text.npos) {
      const ssize_t count = recv(socket_, bytes.data(), bytes.size(), 0);
      if (count <= 0) break;
      text.append(bytes.data(), static_cast<size_t>(count));
    }
    return text;
  }

 private:
  int socket_;
  bool is_connected_ = false;
};

}  // namespace eddy::server
