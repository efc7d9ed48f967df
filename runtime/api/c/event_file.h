// EventFile: an eventfd that is readable while it is set; made when it is first asked for.
//
// Internal to runtime/api/c. Errors: open() throws std::system_error where the system has no
// descriptor. Threads: set() and clear() by any once it is open; open() under the owner's lock.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace eddy::c {

class EventFile {
 public:
  EventFile() = default;
  ~EventFile() {
    if (is_open()) close(fd_);
  }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void open() {
    if (is_open()) return;
    fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Both can only fail by EAGAIN: it is set already, or it is clear.
  void set() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
  }
  void clear() const {
    uint64_t count;
    [[maybe_unused]] const ssize_t taken = read(fd_, &count, sizeof(count));
  }

 private:
  int fd_ = -1;
};

}  // namespace eddy::c
