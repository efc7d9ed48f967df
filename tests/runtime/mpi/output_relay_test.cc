// Claim: what a child writes to standard output and standard error comes to this process's own,
// all of it and in order; where the one is full or its reader has gone, the child goes on to its
// end, and what was lost is noted.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/mpi/output_relay.h"

namespace eddy {
namespace {

constexpr size_t kSize = 1 << 20;  // more than a pipe holds

// This process's standard output leads to `file` for a while, which it takes.
class Redirected {
 public:
  explicit Redirected(int file) : kept_(dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    dup2(file, STDOUT_FILENO);
    close(file);
  }
  ~Redirected() {
    dup2(kept_, STDOUT_FILENO);
    close(kept_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  const int kept_;
};

struct Passing {
  OutputRelay::Passed passed;
  int child_status = -1;
};

// A child that writes kSize bytes, and leaves a process behind that holds its output where
// `leaves_one`.
Passing pass(bool leaves_one = false) {
  auto relay = OutputRelay::open();
  EXPECT_TRUE(relay.is_ok());
  const pid_t child = fork();
  if (child == 0) {
    (*relay)->adopt();
    if (leaves_one && fork() == 0) {
      sleep(3);
      _exit(0);
    }
    std::array<char, 4096> bytes;
    size_t done = 0;
    while (done < kSize) {
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((done + i) / 1000);
      const ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (written != static_cast<ssize_t>(bytes.size())) _exit(1);
      done += bytes.size();
    }
    _exit(0);
  }
  (*relay)->start();
  Passing result;
  waitpid(child, &result.child_status, 0);
  result.passed = (*relay)->finish();
  return result;
}

TEST(OutputRelay, PassesAllOfItOn) {
  for (const bool leaves_one : {false, true}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::string came;
    std::thread reader([&] {
      std::array<char, 1000> bytes;
      for (ssize_t size = 0; (size = read(ends[0], bytes.data(), bytes.size())) > 0;) {
        came.append(bytes.data(), static_cast<size_t>(size));
      }
    });
    Passing result;
    {
      const Redirected redirected(ends[1]);
      result = pass(leaves_one);
    }
    reader.join();
    close(ends[0]);
    EXPECT_EQ(result.child_status, 0);
    EXPECT_EQ(result.passed.out_bytes, kSize);
    EXPECT_FALSE(result.passed.is_out_lost);
    ASSERT_EQ(came.size(), kSize);
    for (size_t i = 0; i < kSize; ++i) ASSERT_EQ(came[i], static_cast<char>(i / 1000)) << i;
  }
}

TEST(OutputRelay, NotesWhatAFullDiskHasLost) {
  Passing result;
  {
    const Redirected redirected(open("/dev/full", O_WRONLY));
    result = pass();
  }
  EXPECT_EQ(result.child_status, 0) << "the child sees nothing of it";
  EXPECT_EQ(result.passed.out_bytes, kSize);
  EXPECT_TRUE(result.passed.is_out_lost);
}

TEST(OutputRelay, AReaderThatHasGoneIsNoLoss) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  Passing result;
  {
    const Redirected redirected(ends[1]);
    result = pass();
  }
  EXPECT_EQ(result.child_status, 0);
  EXPECT_FALSE(result.passed.is_out_lost);
}

}  // namespace
}  // namespace eddy
