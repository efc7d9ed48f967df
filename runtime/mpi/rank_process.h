// RankProcess: a rank's process, which may have gone while its number is another's by now.
//
// Threads: one. Cost: a call to the system for each question.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace eddy {

class RankProcess {
 public:
  RankProcess() = default;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess() {
    if (handle_ >= 0) close(handle_);
  }

  bool is_known() const { return is_known_; }
  void know(pid_t id) {
    is_known_ = true;
    handle_ = static_cast<int>(syscall(SYS_pidfd_open, id, 0));
  }
  bool has_ended() const {
    pollfd ended = {handle_, POLLIN, 0};
    return is_known_ && (handle_ < 0 || poll(&ended, 1, 0) > 0);
  }
  void signal(int signal) const {
    if (handle_ >= 0) syscall(SYS_pidfd_send_signal, handle_, signal, nullptr, 0);
  }

 private:
  bool is_known_ = false;
  int handle_ = -1;  // none: it has gone
};

}  // namespace eddy
