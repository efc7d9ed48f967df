// Runs the built eddy command and collects its output; holds the models that the tests run.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace eddy::test {

struct Finished {
  int exit_code = -1;  // -1: ended by a signal
  std::string out;
  std::string err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

// A signal to send while the command runs.
struct LateSignal {
  int number = 0;
  int after_ms = 0;
  std::string once_written = {};  // a file: the time counts once it holds something
};

// The memory limit of the command's process; 0: none.
struct MemoryLimit {
  size_t address_space_kib = 0;
};

Finished run_eddy(const std::vector<std::string>& arguments,
                  const std::vector<LateSignal>& signals = {}, const MemoryLimit& limit = {});

// A folder of the running test, empty at first.
std::string fresh_folder(const std::string& name);
// Writes bytes to a file of the running test's folder; returns its path.
std::string write_test_file(const std::string& name, const std::string& bytes);

// One line that ends with its newline.
bool is_one_line(const std::string& text);

// x counts up by one until it is no longer below `limit`; inputs trip, x, limit; output y.
std::string counting_model();
// y = a + b, floats [batch, 2].
std::string adding_model();

}  // namespace eddy::test
