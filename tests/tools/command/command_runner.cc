#include "tests/tools/command/command_runner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

#include "tests/graph/io/model_writer.h"

namespace eddy::test {
namespace {

constexpr const char* kCommand = "tools/command/eddy";  // below the test's working folder

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string test_folder() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder =
      testing::TempDir() + "/" + info->test_suite_name() + "." + info->name();
  std::filesystem::create_directories(folder);
  return folder;
}

// The child's side of fork.
[[noreturn]] void become_eddy(const std::vector<std::string>& arguments, const std::string& out,
                              const std::string& err, const MemoryLimit& limit) {
  if (limit.address_space_kib > 0) {
    const rlimit bytes = {limit.address_space_kib * 1024, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &bytes);
  }
  std::vector<char*> argv = {const_cast<char*>(kCommand)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(out.c_str(), flags, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), flags, 0600), STDERR_FILENO);
  execv(kCommand, argv.data());
  _exit(127);
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_pid == child;
}

// Until the file holds something, or the command has ended.
void await_written(const std::string& path, pid_t child) {
  std::error_code none;
  for (;;) {
    const auto size = std::filesystem::file_size(path, none);
    if ((!none && size > 0) || has_ended(child)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

Finished run_eddy(const std::vector<std::string>& arguments, const std::vector<LateSignal>& signals,
                  const MemoryLimit& limit) {
  const std::string out = test_folder() + "/stdout";
  const std::string err = test_folder() + "/stderr";
  const pid_t child = fork();
  if (child == 0) become_eddy(arguments, out, err, limit);
  for (const LateSignal& signal : signals) {
    if (!signal.once_written.empty()) await_written(signal.once_written, child);
    std::this_thread::sleep_for(std::chrono::milliseconds(signal.after_ms));
    kill(child, signal.number);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Finished finished;
  if (WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
  finished.out = read_file(out);
  finished.err = read_file(err);
  return finished;
}

std::string fresh_folder(const std::string& name) {
  const std::string folder = test_folder() + "/" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

std::string write_test_file(const std::string& name, const std::string& bytes) {
  const std::filesystem::path path = std::filesystem::path(test_folder()) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

std::string counting_model() {
  const WireWriter body = graph({
      .nodes = {node("Add", {"x_in", "one"}, {"x_out"}, {}, "add"),
                node("Less", {"x_out", "limit"}, {"go_on"}, {}, "less")},
      .inputs = {info("i", int64s({})), info("cond_in", bools({})), info("x_in", floats({}))},
      .outputs = {info("go_on", bools({})), info("x_out", floats({}))},
      .name = "body",
  });
  return model(graph({
      .nodes = {node("Less", {"x", "limit"}, {"first"}, {}, "first_less"),
                node("Loop", {"trip", "first", "x"}, {"y"}, {graph_attribute("body", body)},
                     "count")},
      .inputs = {info("trip", int64s({})), info("x", floats({})), info("limit", floats({}))},
      .outputs = {info("y", floats({}))},
      .initializers = {tensor<float>("one", {}, {1.0f})},
  }));
}

std::string adding_model() {
  const int64_t batch = -7;  // any negative number is a symbol: "s7"
  return model(graph({
      .nodes = {node("Add", {"a", "b"}, {"y"}, {}, "sum")},
      .inputs = {info("a", floats({batch, 2})), info("b", floats({batch, 2}))},
      .outputs = {info("y", floats({batch, 2}))},
  }));
}

}  // namespace eddy::test
