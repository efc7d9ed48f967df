// Claim: every hostile file ends with its own one-line error, within a second of processor time
// and 256 MiB, in a process that goes on.
//
// EDDY_HOSTILE_FILE=name tries one file alone.
#include "tests/graph/io/hostile/hostile_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "graph/io/import.h"
#include "tests/graph/io/test_import.h"

extern char** environ;

namespace eddy::hostile {
namespace {

namespace fs = std::filesystem;

#if defined(EDDY_SANITIZER) || !defined(__OPTIMIZE__)
constexpr bool kIsMeasured = false;  // they cost time and memory of their own
#else
constexpr bool kIsMeasured = true;
#endif
constexpr long kMaxKib = 256 << 10;
constexpr double kMaxSeconds = 1.0;
constexpr auto kPatience = std::chrono::seconds(60);  // for a busy machine

std::string runner_path() {
  const char* const sources = std::getenv("TEST_SRCDIR");
  const char* const workspace = std::getenv("TEST_WORKSPACE");
  const fs::path base = sources == nullptr ? fs::path(".") : fs::path(sources) / workspace;
  return (base / "tests/graph/io/hostile/run_model").string();
}

struct Finished {
  bool has_exited = false;  // neither killed nor crashed
  std::string said;
  double seconds = 0;  // of processors
  long peak_kib = 0;
};

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(descriptor, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

// Ends the process once it has taken too long.
int wait_for(pid_t child, struct rusage* usage) {
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (wait4(child, &status, WNOHANG, usage) == 0) {
    if (std::chrono::steady_clock::now() > deadline) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return status;
}

Finished run(const fs::path& file, bool is_endless) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
  std::string runner = runner_path();
  std::string argument = file.string();
  // What never ends is ended soon; what ends by itself may wait for a busy machine.
  std::string timeout_ms = is_endless ? "300" : "30000";
  char* const arguments[] = {runner.data(), argument.data(), timeout_ms.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, runner.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  Finished finished;
  if (error == 0) {
    struct rusage usage {};
    const int status = wait_for(child, &usage);
    finished.has_exited = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    finished.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    finished.peak_kib = usage.ru_maxrss;
    finished.said = read_all(out[0]);
  }
  close(out[0]);
  return finished;
}

class HostileFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(::testing::TempDir()) / "hostile";
    fs::remove_all(base_);
  }
  void TearDown() override { fs::remove_all(base_); }

  fs::path write(const HostileFile& file) {
    const fs::path folder = base_ / file.name / "model";
    fs::create_directories(folder);
    if (file.prepare) file.prepare(folder);
    std::ofstream(folder / "m.onnx", std::ios::binary) << file.bytes;
    return folder / "m.onnx";
  }

  static void expect_refused(const HostileFile& file, const Finished& finished) {
    EXPECT_TRUE(finished.has_exited) << "crashed or hung: " << finished.said;
    EXPECT_NE(finished.said.find(file.says), std::string::npos)
        << "should say '" << file.says << "': " << finished.said;
    EXPECT_NE(finished.said, "no error\n");
    EXPECT_EQ(std::count(finished.said.begin(), finished.said.end(), '\n'), 1) << finished.said;
    EXPECT_LE(finished.said.size(), 8192u) << "a message this long is no message";
    if (!kIsMeasured) return;
    EXPECT_LE(finished.seconds, kMaxSeconds) << finished.said;
    EXPECT_LE(finished.peak_kib, kMaxKib) << finished.said;
  }

  fs::path base_;
};

TEST_F(HostileFilesTest, EachGetsItsOwnErrorInTimeAndMemory) {
  const char* const only = std::getenv("EDDY_HOSTILE_FILE");
  std::set<std::string> names;
  for (HostileFiles (*make)() :
       {wire_files, tensor_files, external_files, graph_files, operator_files, control_files}) {
    for (const HostileFile& file : make()) {
      EXPECT_TRUE(names.insert(file.name).second) << file.name << " is there twice";
      if (only != nullptr && file.name != only) continue;
      SCOPED_TRACE("EDDY_HOSTILE_FILE=" + file.name);
      const Finished finished = run(write(file), file.says == "deadline exceeded");
      expect_refused(file, finished);
      if (only != nullptr) {
        std::printf("%s: %.2f s, %ld KiB, %s", file.name.c_str(), finished.seconds,
                    finished.peak_kib, finished.said.c_str());
      }
      fs::remove_all(base_ / file.name);
    }
  }
  EXPECT_GE(names.size(), 270u) << "of those that there were";
}

// Wherever a file is cut, and whatever byte of it is turned, reading it ends in an error or a
// graph.
TEST_F(HostileFilesTest, CutAndTurnedBytesNeverCrashTheReader) {
  const OpTable& ops = test::standard_ops();
  for (const HostileFile& file : control_files()) {
    if (file.bytes.size() > 2000) continue;
    for (size_t length = 0; length < file.bytes.size(); length += 3) {
      (void)import_onnx_bytes(test::as_bytes(file.bytes.substr(0, length)), ops);
    }
    std::string turned = file.bytes;
    for (size_t at = 0; at < turned.size(); ++at) {
      for (const char bits : {'\x01', '\x80', '\xff'}) {
        turned[at] = static_cast<char>(file.bytes[at] ^ bits);
        (void)import_onnx_bytes(test::as_bytes(turned), ops);
      }
      turned[at] = file.bytes[at];
    }
  }
}

}  // namespace
}  // namespace eddy::hostile
