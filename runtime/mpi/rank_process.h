// RankProcess: a rank's process, which may have gone while its number is another's by now.
//
// Where the system gives no handle of a process, as in some containers, its number has to do.
// Threads: one. Cost: a call to the system for each question.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

#include "graph/base/check.h"

namespace eddy {

class RankProcess {
 public:
  RankProcess() = default;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess() {
    if (handle_ >= 0) close(handle_);
  }

  bool is_known() const { return id_ > 0; }
  void know(pid_t id) {
    EDDY_DCHECK(!is_known() && id > 0) << "process " << id << " is told of twice, or is none";
    id_ = id;
    handle_ = static_cast<int>(syscall(SYS_pidfd_open, id, 0));
    has_gone_ = handle_ < 0 && errno == ESRCH;
  }
  bool has_ended() const {
    if (!is_known() || has_gone_) return is_known();
    if (handle_ < 0) return kill(id_, 0) != 0 && errno == ESRCH;
    pollfd ended = {handle_, POLLIN, 0};
    return poll(&ended, 1, 0) > 0;
  }
  void signal(int signal) const {
    if (!is_known() || has_gone_) return;
    if (handle_ >= 0) {
      syscall(SYS_pidfd_send_signal, handle_, signal, nullptr, 0);
    } else {
      kill(id_, signal);
    }
  }

 private:
  pid_t id_ = 0;     // 0: not known
  int handle_ = -1;  // none: it had gone, or the system gives none
  bool has_gone_ = false;
};

}  // namespace eddy
