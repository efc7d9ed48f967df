#include "tools/command/sudden_end.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <initializer_list>

#include "tools/command/outcome.h"

namespace eddy {
namespace {

bool is_json_wanted = false;
std::atomic_flag is_ending;

void put(int file, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    [[maybe_unused]] const ssize_t written = write(file, part.data(), part.size());
  }
}

}  // namespace

void sudden_ends_say_json(bool says_json) { is_json_wanted = says_json; }

void end_suddenly(std::string_view what, std::string_view why) {
  // Relaxed: whoever comes second reads nothing of what the first one wrote.
  if (is_ending.test_and_set(std::memory_order_relaxed)) {
    for (;;) pause();
  }
  put(STDERR_FILENO, {"eddy: ", what, why, "\n"});
  if (is_json_wanted) {
    put(STDOUT_FILENO, {"{\"error\": {\"code\": \"resource exhausted\", \"message\": \"", what,
                        "\", \"path\": \"\", \"exit\": 4}}\n"});
  }
  std::_Exit(static_cast<int>(ExitCode::kRunFailed));
}

void end_without_memory() {
  end_suddenly("out of memory",
               ": the system gives no more; use smaller inputs, or raise its "
               "limit (ulimit -v)");
}

}  // namespace eddy
