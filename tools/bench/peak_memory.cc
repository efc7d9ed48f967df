#include "tools/bench/peak_memory.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/io/tensor_file.h"
#include "runtime/api/session.h"
#include "tools/bench/ort_rival.h"
#include "tools/bench/scratch_folder.h"

extern char** environ;

namespace eddy {
namespace {

struct Feed {
  std::vector<std::string> names;
  std::vector<HostValue> values;
};

Result<Feed> read_feed(const std::vector<std::string>& inputs) {
  Feed feed;
  for (const std::string& input : inputs) {
    const size_t equals = input.rfind('=');
    if (equals == std::string::npos) {
      return invalid_argument(fmt::format("--input {}: write NAME=FILE", input));
    }
    feed.names.push_back(input.substr(0, equals));
    EDDY_ASSIGN_OR_RETURN(feed.values.emplace_back(),
                          read_value(input.substr(equals + 1), ValueType(TensorType())));
  }
  return feed;
}

Status run_eddy(const PeakArguments& arguments) {
  const Library library;
  EDDY_ASSIGN_OR_RETURN(const Feed feed, read_feed(arguments.inputs));
  SessionOptions options;
  options.num_threads = 1;
  EDDY_ASSIGN_OR_RETURN(const auto session, Session::load(library, arguments.model, options));
  NamedTensors inputs;
  for (size_t i = 0; i < feed.names.size(); ++i) {
    inputs.emplace_back(feed.names[i], Tensor::borrow(feed.values[i].view()));
  }
  for (int i = 0; i < kPeakRuns; ++i) EDDY_RETURN_IF_ERROR(session->run(inputs).status());
  return Status::ok();
}

Status run_rival(const PeakArguments& arguments, const std::string& ort) {
  EDDY_ASSIGN_OR_RETURN(const Feed feed, read_feed(arguments.inputs));
  EDDY_ASSIGN_OR_RETURN(const auto library, OrtLibrary::open(ort));
  std::vector<std::pair<std::string, const HostValue*>> inputs;
  for (size_t i = 0; i < feed.names.size(); ++i) {
    inputs.emplace_back(feed.names[i], &feed.values[i]);
  }
  EDDY_ASSIGN_OR_RETURN(const auto model,
                        OrtModel::load(*library, arguments.model, 1, inputs, arguments.outputs));
  for (int i = 0; i < kPeakRuns; ++i) EDDY_RETURN_IF_ERROR(model->run());
  return Status::ok();
}

std::vector<std::string> command_line(const PeakArguments& arguments, const std::string& ort) {
  std::vector<std::string> words = {
      "eddy", "bench", "peak", "--model", arguments.model, "--contender", arguments.contender};
  for (const std::string& input : arguments.inputs) words.insert(words.end(), {"--input", input});
  for (const std::string& output : arguments.outputs) {
    words.insert(words.end(), {"--output", output});
  }
  if (!ort.empty()) words.insert(words.end(), {"--ort", ort});
  return words;
}

}  // namespace

uint64_t resident_peak_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    uint64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

Result<std::string> run_this_program(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return resource_exhausted(fmt::format("no pipe: {}", std::strerror(errno)));
  }
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  while (error == 0) {
    const ssize_t got = read(ends[0], buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  if (error != 0) {
    return run_failed(
        fmt::format("this program can't start itself again: {}", std::strerror(error)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return text;
  return run_failed(fmt::format("this program, run again as '{}', ended with status {}",
                                fmt::join(words, " "), status));
}

Outcome bench_peak(const PeakArguments& arguments, const std::string& ort, Console& console) {
  if (arguments.model.empty()) return Outcome::usage("bench peak wants --model FILE");
  const Status status =
      arguments.contender == "eddy" ? run_eddy(arguments) : run_rival(arguments, ort);
  if (!status.is_ok()) return Outcome::of_run(status);
  const uint64_t peak = resident_peak_bytes();
  if (console.is_json()) {
    console.print({{"peak_bytes", peak}});
  } else {
    console.say(std::to_string(peak));
  }
  return Outcome::success();
}

namespace {

// Starts the process of one contender and waits for it; bytes.
Result<uint64_t> measure_peak(const PeakArguments& arguments, const std::string& ort) {
  EDDY_ASSIGN_OR_RETURN(const std::string text, run_this_program(command_line(arguments, ort)));
  uint64_t peak = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), peak);
  if (parsed.ec == std::errc() && peak > 0) return peak;
  return run_failed(
      fmt::format("the process that measures {}'s peak memory said none", arguments.contender));
}

}  // namespace

Result<Peaks> measure_peaks(const std::string& model, EddyRun& run, bool has_rival,
                            const std::string& ort) {
  EDDY_ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make());
  PeakArguments arguments{.model = model};
  for (size_t i = 0; i < run.feed().size(); ++i) {
    const std::string path = folder->file(fmt::format("{}.npy", i));
    EDDY_RETURN_IF_ERROR(write_value(path, run.feed()[i]));
    arguments.inputs.push_back(run.session().inputs()[i].name + "=" + path);
  }
  for (const ValueDescription& output : run.session().outputs()) {
    arguments.outputs.push_back(output.name);
  }
  Peaks peaks;
  EDDY_ASSIGN_OR_RETURN(peaks.eddy_bytes, measure_peak(arguments, ort));
  if (!has_rival) return peaks;
  arguments.contender = "onnxruntime";
  EDDY_ASSIGN_OR_RETURN(peaks.rival_bytes, measure_peak(arguments, ort));
  return peaks;
}

std::string peaks_text(const Peaks& peaks) {
  const auto megabytes = [](uint64_t bytes) {
    return bytes == 0 ? std::string("-") : fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
  };
  return megabytes(peaks.eddy_bytes) + " / " + megabytes(peaks.rival_bytes);
}

void add_peaks(const Peaks& peaks, Json& row) {
  if (peaks.eddy_bytes > 0) row["eddy"]["peak_bytes"] = peaks.eddy_bytes;
  if (peaks.rival_bytes > 0) row["onnxruntime"]["peak_bytes"] = peaks.rival_bytes;
}

}  // namespace eddy
