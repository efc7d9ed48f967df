#include "runtime/mpi/output_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "graph/base/check.h"

namespace eddy {
namespace {

// After the child's end: what its last write may take to come through.
constexpr int kLastMs = 500;
constexpr int kRoundMs = 20;

void close_once(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

}  // namespace

Result<std::unique_ptr<OutputRelay>> OutputRelay::open() {
  std::unique_ptr<OutputRelay> relay(new OutputRelay());
  for (int i = 0; i < 2; ++i) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return resource_exhausted(std::string("cannot start ranks: no pipe for what they say: ") +
                                std::strerror(errno));
    }
    relay->ways_[i] = {.from = ends[0], .into = ends[1], .to = i + 1};
  }
  return relay;
}

OutputRelay::~OutputRelay() {
  if (thread_.joinable()) finish();
  for (Way& way : ways_) {
    close_once(way.from);
    close_once(way.into);
  }
}

void OutputRelay::adopt() const {
  for (const Way& way : ways_) dup2(way.into, way.to);
}

void OutputRelay::start() {
  EDDY_CHECK(!thread_.joinable()) << "a relay starts twice";
  for (Way& way : ways_) close_once(way.into);
  thread_ = std::jthread([this](const std::stop_token& stop) { pass_on(stop); });
}

OutputRelay::Passed OutputRelay::finish() {
  EDDY_CHECK(thread_.joinable()) << "a relay ends that was not started, or ends twice";
  thread_.request_stop();
  thread_.join();
  return passed_;
}

void OutputRelay::pass_on(const std::stop_token& stop) {
  int quiet_ms = 0;  // since the child has ended
  while (ways_[0].from >= 0 || ways_[1].from >= 0) {
    std::array<pollfd, 2> files = {{{ways_[0].from, POLLIN, 0}, {ways_[1].from, POLLIN, 0}}};
    const int num_ready = poll(files.data(), files.size(), kRoundMs);
    if (num_ready == 0 && stop.stop_requested() && (quiet_ms += kRoundMs) > kLastMs) return;
    if (num_ready <= 0) continue;
    quiet_ms = 0;
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i].revents != 0) pass_some(ways_[i]);
    }
  }
}

void OutputRelay::pass_some(Way& way) {
  std::array<char, 16384> bytes;
  const ssize_t size = read(way.from, bytes.data(), bytes.size());
  if (size < 0 && errno == EINTR) return;
  if (size <= 0) return close_once(way.from);
  (&way == &ways_[0] ? passed_.out_bytes : passed_.err_bytes) += static_cast<uint64_t>(size);
  write_all(way, bytes.data(), static_cast<size_t>(size));
}

void OutputRelay::write_all(Way& way, const char* bytes, size_t size) {
  while (size > 0 && !way.is_broken) {
    const ssize_t written = write(way.to, bytes, size);
    if (written >= 0) {
      bytes += written;
      size -= static_cast<size_t>(written);
    } else if (errno == EAGAIN) {
      pollfd file = {way.to, POLLOUT, 0};
      poll(&file, 1, kRoundMs);
    } else if (errno != EINTR) {
      way.is_broken = true;
      if (&way == &ways_[0]) passed_.is_out_lost = errno != EPIPE;
    }
  }
}

}  // namespace eddy
