#include "tools/bench/bench_speech.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "examples/speech_to_text/transcriber.h"
#include "examples/voice_activity/detector.h"
#include "examples/voice_activity/resample.h"
#include "examples/voice_activity/wav.h"
#include "tools/bench/peak_memory.h"
#include "tools/bench/speech_contenders.h"
#include "tools/command/cache_folder.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

constexpr const char* kRecordings[] = {"Rear_Left", "Side_Right", "Side_Left"};
constexpr const char* kRecordingsFolder = "/usr/share/sounds/alsa/";
constexpr int kMaxLoads = 9;   // fresh processes of each contender
constexpr int kFreshRuns = 3;  // in such a process

struct Paths {
  speech::MoonshineFiles moonshine;
  std::string silero;

  explicit Paths(const std::string& given_silero) {
    const std::string folder = cache_folder() + "/models/";
    moonshine.encoder = folder + "moonshine_tiny_encoder-0.1.29.onnx";
    moonshine.decoder = folder + "moonshine_tiny_decoder-0.1.29.onnx";
    silero = given_silero.empty() ? folder + "silero_vad-1.9.0.onnx" : given_silero;
  }
};

// The first file that can't be read, or "".
std::string missing_among(std::initializer_list<std::string> paths) {
  for (const std::string& path : paths) {
    if (access(path.c_str(), R_OK) != 0) return path;
  }
  return "";
}

Result<std::vector<float>> read_sound() {
  std::vector<float> joined;
  for (const char* name : kRecordings) {
    EDDY_ASSIGN_OR_RETURN(const voice::Recording recording,
                          voice::read_wav(kRecordingsFolder + std::string(name) + ".wav"));
    const auto samples =
        voice::resample(recording.samples, recording.sample_rate, speech::kSampleRate);
    joined.insert(joined.end(), samples.begin(), samples.end());
  }
  return speech::prepare_sound(joined);
}

std::vector<float> whole_chunks(std::vector<float> sound) {
  const auto chunk = static_cast<size_t>(voice::kChunkSamples);
  sound.resize(sound.size() / chunk * chunk);
  return sound;
}

// In the process that is measured: loads, runs, prints.
class FreshProcess {
 public:
  explicit FreshProcess(const BenchSpeechArguments& arguments)
      : arguments_(arguments), paths_(arguments.silero) {}

  Status run() {
    if (arguments_.contender == "eddy") return load_and_run(library_);
    EDDY_ASSIGN_OR_RETURN(const auto ort, OrtLibrary::open(arguments_.common.ort));
    return load_and_run(*ort);
  }
  std::string text() const { return fmt::format("{} {}", load_ns_, resident_peak_bytes()); }

 private:
  template <typename Engine>
  Status load_and_run(const Engine& engine) {
    if (arguments_.fresh == "decoder") return load_decoder(engine);
    EDDY_ASSIGN_OR_RETURN(const std::vector<float> sound, read_sound());
    if (arguments_.fresh == "moonshine") {
      const int64_t start_ns = now_ns();
      EDDY_ASSIGN_OR_RETURN(const auto model, load_moonshine(engine, paths_.moonshine));
      load_ns_ = now_ns() - start_ns;
      const int64_t limit = speech::Transcriber::token_limit(sound.size());
      for (int i = 0; i < kFreshRuns; ++i) {
        EDDY_RETURN_IF_ERROR(model->transcribe(sound, limit).status());
      }
      return Status::ok();
    }
    const int64_t start_ns = now_ns();
    EDDY_ASSIGN_OR_RETURN(const auto model, load_silero(engine, paths_.silero));
    load_ns_ = now_ns() - start_ns;
    const std::vector<float> chunks = whole_chunks(sound);
    for (int i = 0; i < kFreshRuns; ++i) EDDY_RETURN_IF_ERROR(model->detect(chunks).status());
    return Status::ok();
  }

  Status load_decoder(const Library& library) {
    const int64_t start_ns = now_ns();
    SessionOptions options;
    options.num_threads = 1;
    const auto session = Session::load(library, paths_.moonshine.decoder, options);
    load_ns_ = now_ns() - start_ns;
    return session.status();
  }
  Status load_decoder(const OrtLibrary& library) {
    const int64_t start_ns = now_ns();
    const auto session = OrtSession::load(library, paths_.moonshine.decoder, 1);
    load_ns_ = now_ns() - start_ns;
    return session.status();
  }

  const BenchSpeechArguments& arguments_;
  const Paths paths_;
  const Library library_;
  int64_t load_ns_ = 0;
};

struct Fresh {
  double load_ns = 0;
  uint64_t peak_bytes = 0;
};

Result<Fresh> run_fresh(const std::string& what, const std::string& contender,
                        const BenchSpeechArguments& arguments) {
  std::vector<std::string> words = {"eddy", "bench",       "speech", "--fresh",
                                    what,   "--contender", contender};
  if (!arguments.common.ort.empty()) {
    words.insert(words.end(), {"--ort", arguments.common.ort});
  }
  if (!arguments.silero.empty()) words.insert(words.end(), {"--silero", arguments.silero});
  EDDY_ASSIGN_OR_RETURN(const std::string text, run_this_program(words));
  Fresh fresh;
  int64_t load_ns = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, load_ns);
  if (error == std::errc() && at != end) {
    std::from_chars(at + 1, end, fresh.peak_bytes);
    fresh.load_ns = static_cast<double>(load_ns);
  }
  if (fresh.peak_bytes > 0) return fresh;
  return run_failed(fmt::format("the process that loads {} said '{}'", what, text));
}

// One figure: Eddy's, and the rival's where there is one.
struct Row {
  std::string name;
  std::string unit;
  double most_ns = 0;  // the limit for Eddy
  Samples eddy = {"Eddy", {}};
  Samples rival = {"ONNX Runtime", {}};
  uint64_t eddy_peak_bytes = 0, rival_peak_bytes = 0;  // 0: not measured
};

Samples sorted(Samples samples) {
  std::ranges::sort(samples.ns);
  return samples;
}

std::string megabytes(uint64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

// The reason for a missing rival has been printed before the first row.
std::string row_text(const Row& row) {
  const bool has_rival = !row.rival.ns.empty();
  std::string text =
      fmt::format("{}, per {}\n  Eddy          {}\n  ONNX Runtime  {}", row.name, row.unit,
                  samples_text(row.eddy), has_rival ? samples_text(row.rival) : "-");
  text += fmt::format("\n  median at most {}: {}", duration_text(row.most_ns),
                      row.eddy.median() <= row.most_ns ? "met" : "MISSED");
  if (has_rival) {
    text += fmt::format("; {:.2f} times ONNX Runtime's", row.eddy.median() / row.rival.median());
  }
  if (row.eddy_peak_bytes > 0) {
    text += fmt::format("\n  peak memory {} / {}", megabytes(row.eddy_peak_bytes),
                        megabytes(row.rival_peak_bytes));
  }
  return text;
}

Json row_json(const Row& row, const std::string& rival_missing) {
  Json json = {{"case", row.name}, {"unit", row.unit}, {"eddy", samples_json(row.eddy)}};
  const bool has_rival = !row.rival.ns.empty();
  json["onnxruntime"] = has_rival ? samples_json(row.rival) : Json{{"missing", rival_missing}};
  if (has_rival) json["ratio"] = row.eddy.median() / row.rival.median();
  json["target_ns"] = row.most_ns;
  if (row.eddy_peak_bytes > 0) json["eddy"]["peak_bytes"] = row.eddy_peak_bytes;
  if (row.rival_peak_bytes > 0) json["onnxruntime"]["peak_bytes"] = row.rival_peak_bytes;
  return json;
}

class SpeechBench {
 public:
  SpeechBench(const BenchSpeechArguments& arguments, Console& console, Interrupts& interrupts)
      : arguments_(arguments),
        paths_(arguments.silero),
        threads_(thread_counts(arguments.common.threads, {1})[0]),
        suite_("speech", arguments.common, console, interrupts) {}

  Outcome run() {
    EDDY_RETURN_IF_ERROR(suite_.open_rival());
    const std::string recording = kRecordingsFolder + std::string(kRecordings[0]) + ".wav";
    if (const std::string missing = missing_among({recording}); !missing.empty()) {
      return Status(not_found(missing + " is missing; install the package alsa-utils"));
    }
    EDDY_ASSIGN_OR_RETURN(sound_, read_sound());
    if (has("Moonshine", {paths_.moonshine.encoder, paths_.moonshine.decoder})) {
      if (Status status = moonshine_rows(); !status.is_ok()) return Outcome::of_run(status);
      // Fresh processes have one thread.
      if (threads_ == 1) {
        if (Status status = load_row(); !status.is_ok()) return Outcome::of_run(status);
      }
    }
    if (has("Silero", {paths_.silero})) {
      if (Status status = silero_row(); !status.is_ok()) return Outcome::of_run(status);
    }
    if (suite_.is_empty() && !left_out_.empty()) return Status(not_found(left_out_));
    return suite_.finish();
  }

 private:
  using Timed = std::function<Result<double>()>;  // ns of one run

  bool has(const std::string& name, std::initializer_list<std::string> files) {
    if (!suite_.is_wanted(name)) return false;
    const std::string missing = missing_among(files);
    if (missing.empty()) return true;
    left_out_ = fmt::format("{} is left out: {} is missing; run tools/demo once", name, missing);
    suite_.console().remark(left_out_);
    return false;
  }

  void add_row(Row row) {
    row.eddy = sorted(std::move(row.eddy));
    row.rival = sorted(std::move(row.rival));
    suite_.add_row(row_text(row), row_json(row, suite_.rival_missing()));
  }

  double pause_ns() const { return threads_ == 1 ? 0 : kThreadsPauseNs; }

  // Calls each in turn until rounds or budget are over; [contender][round].
  Result<std::vector<std::vector<double>>> take_turns(const std::vector<Timed>& contenders,
                                                      int max_rounds) {
    std::vector<std::vector<double>> ns(contenders.size());
    const int64_t start_ns = now_ns();
    for (int round = 0; round < max_rounds; ++round) {
      const auto spent_s = static_cast<double>(now_ns() - start_ns) / 1e9;
      if (round >= kMinRounds && spent_s > arguments_.common.budget_s) break;
      for (size_t i = 0; i < contenders.size(); ++i) {
        if (suite_.interrupts().is_interrupted()) return cancelled("interrupted");
        const Contender settling = {"", [&] { return contenders[i]().status(); }};
        EDDY_RETURN_IF_ERROR(settle(settling, pause_ns()));
        EDDY_ASSIGN_OR_RETURN(ns[i].emplace_back(), contenders[i]());
      }
    }
    return ns;
  }

  Timed transcription(Moonshine& model, int64_t limit, std::vector<int64_t>& tokens) const {
    return [this, &model, limit, &tokens]() -> Result<double> {
      const int64_t start_ns = now_ns();
      EDDY_ASSIGN_OR_RETURN(tokens, model.transcribe(sound_, limit));
      return static_cast<double>(now_ns() - start_ns);
    };
  }

  // Whole transcriptions and those that stop after the first token take turns: a further token
  // takes their difference, shared among the further tokens.
  Status moonshine_rows() {
    suite_.console().progress("measuring Moonshine");
    EDDY_ASSIGN_OR_RETURN(const auto eddy, load_moonshine(library_, paths_.moonshine, threads_));
    const Interrupts::Attachment attachment(suite_.interrupts(), *eddy->session_or_null());
    std::unique_ptr<Moonshine> rival;
    if (suite_.has_rival()) {
      EDDY_ASSIGN_OR_RETURN(rival, load_moonshine(suite_.rival(), paths_.moonshine, threads_));
    }
    const int64_t limit = speech::Transcriber::token_limit(sound_.size());
    std::vector<int64_t> tokens, rival_tokens, first;
    std::vector<Timed> contenders = {transcription(*eddy, limit, tokens),
                                     transcription(*eddy, 1, first)};
    if (rival) {
      contenders.push_back(transcription(*rival, limit, rival_tokens));
      contenders.push_back(transcription(*rival, 1, first));
    }
    for (const Timed& warm_up : contenders) EDDY_RETURN_IF_ERROR(warm_up().status());
    if (rival && tokens != rival_tokens) {
      suite_.differs(fmt::format("Moonshine: {} tokens, {} by ONNX Runtime, or others",
                                 tokens.size(), rival_tokens.size()));
    }
    EDDY_ASSIGN_OR_RETURN(const auto ns, take_turns(contenders, arguments_.common.rounds));
    return add_moonshine_rows(ns, tokens.size());
  }

  Status add_moonshine_rows(const std::vector<std::vector<double>>& ns, size_t num_tokens) {
    const double seconds = static_cast<double>(sound_.size()) / speech::kSampleRate;
    Row whole{
        fmt::format("Moonshine tiny int8, {:.1f} s of speech, {} tokens", seconds, num_tokens),
        "transcription", 86e6};
    Row further{"Moonshine decoder", "further token", 3.4e6};
    for (size_t i = 0; i < ns.size(); i += 2) {
      (i == 0 ? whole.eddy : whole.rival).ns = ns[i];
      if (num_tokens < 2) continue;
      Samples& each = i == 0 ? further.eddy : further.rival;
      for (size_t round = 0; round < ns[i].size(); ++round) {
        each.ns.push_back((ns[i][round] - ns[i + 1][round]) / static_cast<double>(num_tokens - 1));
      }
    }
    EDDY_RETURN_IF_ERROR(measure_peaks("moonshine", whole));
    add_row(std::move(whole));
    if (num_tokens > 1) add_row(std::move(further));
    return Status::ok();
  }

  Status load_row() {
    suite_.console().progress("measuring loads in fresh processes");
    Row row{"load of the Moonshine decoder", "fresh process", 110e6};
    const auto load = [this](const char* contender, uint64_t& peak_bytes) -> Timed {
      return [this, contender, &peak_bytes]() -> Result<double> {
        EDDY_ASSIGN_OR_RETURN(const Fresh fresh, run_fresh("decoder", contender, arguments_));
        peak_bytes = std::max(peak_bytes, fresh.peak_bytes);
        return fresh.load_ns;
      };
    };
    std::vector<Timed> contenders = {load("eddy", row.eddy_peak_bytes)};
    if (suite_.has_rival()) contenders.push_back(load("onnxruntime", row.rival_peak_bytes));
    EDDY_ASSIGN_OR_RETURN(const auto ns, take_turns(contenders, kMaxLoads));
    row.eddy.ns = ns[0];
    if (ns.size() > 1) row.rival.ns = ns[1];
    add_row(std::move(row));
    return Status::ok();
  }

  Status silero_row() {
    suite_.console().progress("measuring Silero");
    const std::vector<float> sound = whole_chunks(sound_);
    const auto num_chunks = sound.size() / static_cast<size_t>(voice::kChunkSamples);
    EDDY_ASSIGN_OR_RETURN(const auto eddy, load_silero(library_, paths_.silero, threads_));
    const Interrupts::Attachment attachment(suite_.interrupts(), *eddy->session_or_null());
    std::vector<float> found, expected;
    const auto detection = [&sound](Silero& model, std::vector<float>& result) {
      return [&sound, &model, &result] {
        auto detected = model.detect(sound);
        if (detected.is_ok()) result = std::move(*detected);
        return detected.status();
      };
    };
    std::vector<Contender> contenders = {{"Eddy", detection(*eddy, found)}};
    std::unique_ptr<Silero> rival;
    if (suite_.has_rival()) {
      EDDY_ASSIGN_OR_RETURN(rival, load_silero(suite_.rival(), paths_.silero, threads_));
      contenders.push_back({"ONNX Runtime", detection(*rival, expected)});
    }
    EDDY_ASSIGN_OR_RETURN(const auto samples,
                          suite_.measure(contenders, static_cast<double>(num_chunks),
                                         MeasureOptions().min_sample_ns, pause_ns()));
    for (size_t i = 0; i < expected.size(); ++i) {
      if (i < found.size() && std::abs(found[i] - expected[i]) < 1e-3f) continue;
      suite_.differs(fmt::format("Silero: chunk {} is another than ONNX Runtime's", i));
      break;
    }
    Row row{fmt::format("Silero v6 streaming loop, {} chunks", num_chunks), "chunk", 50'000};
    row.eddy = samples[0];
    if (rival) row.rival = samples[1];
    EDDY_RETURN_IF_ERROR(measure_peaks("silero", row));
    add_row(std::move(row));
    return Status::ok();
  }

  Status measure_peaks(const std::string& what, Row& row) {
    EDDY_ASSIGN_OR_RETURN(const Fresh eddy, run_fresh(what, "eddy", arguments_));
    row.eddy_peak_bytes = eddy.peak_bytes;
    if (!suite_.has_rival()) return Status::ok();
    EDDY_ASSIGN_OR_RETURN(const Fresh rival, run_fresh(what, "onnxruntime", arguments_));
    row.rival_peak_bytes = rival.peak_bytes;
    return Status::ok();
  }

  const BenchSpeechArguments& arguments_;
  const Paths paths_;
  const int threads_;  // of what is not loaded afresh
  BenchSuite suite_;
  const Library library_;
  std::vector<float> sound_;
  std::string left_out_;  // what is missing, of the last case left out
};

}  // namespace

Outcome bench_speech(const BenchSpeechArguments& arguments, Console& console,
                     Interrupts& interrupts) {
  if (arguments.fresh.empty()) return SpeechBench(arguments, console, interrupts).run();
  FreshProcess process(arguments);
  if (Status status = process.run(); !status.is_ok()) return Outcome::of_run(status);
  console.say(process.text());
  return Outcome::success();
}

}  // namespace eddy
