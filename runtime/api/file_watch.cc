#include "runtime/api/file_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

namespace eddy {
namespace {

Status refused(const char* what) {
  return resource_exhausted(std::string("the system gives no ") + what + ": " +
                            std::strerror(errno));
}

}  // namespace

FileWatch::~FileWatch() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    while (write(end_, &one, sizeof one) < 0 && errno == EINTR) continue;
    thread_.join();
  }
  if (end_ >= 0) close(end_);
  if (epoll_ >= 0) close(epoll_);
}

Status FileWatch::start() {
  if (thread_.joinable()) return Status::ok();
  if (epoll_ < 0) epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return refused("epoll");
  if (end_ < 0) {
    end_ = eventfd(0, EFD_CLOEXEC);
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = 0}};
    if (end_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, end_, &event) != 0) return refused("eventfd");
  }
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::system_error& error) {
    return resource_exhausted(std::string("the system gives no thread: ") + error.what());
  }
  return Status::ok();
}

Result<uint64_t> FileWatch::add(int file, std::function<void()> ready) {
  const std::lock_guard lock(mutex_);
  EDDY_RETURN_IF_ERROR(start());
  const uint64_t wait = ++last_wait_;
  epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = wait}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &event) != 0) {
    return invalid_argument("file " + std::to_string(file) +
                            " cannot be waited for: " + std::strerror(errno));
  }
  waits_[wait] = {file, std::move(ready)};
  return wait;
}

bool FileWatch::remove(uint64_t wait) {
  std::function<void()> ready;  // goes after the lock
  const std::lock_guard lock(mutex_);
  const auto found = waits_.find(wait);
  if (found == waits_.end()) return false;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, found->second.file, nullptr);
  ready = std::move(found->second.ready);
  waits_.erase(found);
  return true;
}

void FileWatch::loop() {
  for (;;) {
    epoll_event event = {};
    const int count = epoll_wait(epoll_, &event, 1, -1);
    if (count < 0) continue;  // a signal
    const uint64_t wait = event.data.u64;  // the event is packed
    if (wait == 0) return;
    std::function<void()> ready;
    {
      const std::lock_guard lock(mutex_);
      const auto found = waits_.find(wait);
      if (found == waits_.end()) continue;  // removed meanwhile
      epoll_ctl(epoll_, EPOLL_CTL_DEL, found->second.file, nullptr);
      ready = std::move(found->second.ready);
      waits_.erase(found);
    }
    ready();
  }
}

}  // namespace eddy
