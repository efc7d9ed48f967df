#include "tools/gpu/speech_part.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "examples/speech_to_text/transcriber.h"
#include "examples/voice_activity/detector.h"
#include "examples/voice_activity/resample.h"
#include "examples/voice_activity/wav.h"
#include "tools/gpu/case_rows.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kSilero = "Silero";
constexpr const char* kMoonshine = "Moonshine tiny";
// Its state goes through every chunk, so sums in another order add up.
constexpr HostTolerance kStateTolerance = {1e-2, 1e-3};

// The files with names that begin and end so, in order.
std::vector<std::string> files_of(const std::string& folder, const std::string& begin,
                                  const std::string& end) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end)) found.push_back(entry.path().string());
  }
  std::ranges::sort(found);
  return found;
}

// Empty: there is none.
std::string model_file(const std::string& folder, const std::string& begin) {
  const std::vector<std::string> found = files_of(folder, begin, ".onnx");
  return found.empty() ? "" : found.front();
}

Result<std::vector<float>> read_sound(const std::string& folder) {
  std::vector<float> joined;
  for (const std::string& file : files_of(folder, "", ".wav")) {
    EDDY_ASSIGN_OR_RETURN(const voice::Recording recording, voice::read_wav(file));
    const auto samples =
        voice::resample(recording.samples, recording.sample_rate, speech::kSampleRate);
    joined.insert(joined.end(), samples.begin(), samples.end());
  }
  if (joined.empty()) return not_found("no recordings (.wav) in " + folder);
  joined.resize(std::min(joined.size(), size_t{speech::kMaxSeconds} * speech::kSampleRate));
  return speech::prepare_sound(joined);
}

double seconds_of(std::span<const float> sound) {
  return static_cast<double>(sound.size()) / speech::kSampleRate;
}

std::string length_text(std::span<const float> sound) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s of sound", seconds_of(sound));
  return text;
}

void add_ratios(double seconds, Json& row) {
  row["ms_per_second_of_sound"] = row["ms"].get<double>() / seconds;
  row["cpu_ms_per_second_of_sound"] = row["cpu_ms"].get<double>() / seconds;
  row["ratio_to_cpu"] = row["ms"].get<double>() / row["cpu_ms"].get<double>();
}

GpuCase silero_case(const std::string& file, std::vector<float> sound) {
  const double seconds = seconds_of(sound);
  constexpr auto kChunk = static_cast<size_t>(voice::kChunkSamples);
  const auto num_chunks = static_cast<int64_t>((sound.size() + kChunk - 1) / kChunk);
  sound.resize(static_cast<size_t>(num_chunks) * kChunk);
  const voice::DetectorMemory nothing;
  GpuCase one;
  one.name = kSilero;
  one.size = length_text(sound);
  one.build = [file](const OpTable& ops) { return voice::build_detector(ops, file); };
  one.inputs = {{"chunks", Tensor::of<float>({num_chunks, voice::kChunkSamples}, sound)},
                {"state", nothing.state},
                {"context", nothing.context}};
  one.counted_loop = "chunks";
  one.num_rounds = num_chunks;
  one.has_products = true;
  one.tolerance = kStateTolerance;
  one.is_timed_on_cpu = true;
  one.add_to_row = [seconds](Json& row) { add_ratios(seconds, row); };
  return one;
}

// No row with TF32: a token that is nearly another's equal would make it other words.
GpuCase moonshine_case(const speech::MoonshineFiles& files, const std::vector<float>& sound) {
  GpuCase one;
  one.name = kMoonshine;
  one.size = length_text(sound);
  one.build = [files](const OpTable& ops) { return speech::build_moonshine(ops, files); };
  one.inputs = {{"samples", Tensor::of<float>({1, static_cast<int64_t>(sound.size())}, sound)},
                {"token_limit", Tensor::scalar(speech::Transcriber::token_limit(sound.size()))}};
  one.counted_loop = "decode";
  one.is_timed_on_cpu = true;
  one.add_to_row = [seconds = seconds_of(sound)](Json& row) { add_ratios(seconds, row); };
  return one;
}

Json left_out(const char* name, const std::string& folder) {
  return {{"case", name}, {"status", "left out"}, {"reason", "its files are not in " + folder}};
}

}  // namespace

Json report_speech(const SessionsUnderReport& what, const std::string& folder) {
  PartReport report("speech", what.pace);
  const Library library;
  const std::string silero = model_file(folder, "silero_vad");
  const speech::MoonshineFiles moonshine = {model_file(folder, "moonshine_tiny_encoder"),
                                            model_file(folder, "moonshine_tiny_decoder")};
  const bool has_moonshine = !moonshine.encoder.empty() && !moonshine.decoder.empty();
  const Result<std::vector<float>> sound = read_sound(folder);
  report.end_with(sound.is_ok() ? Status::ok() : sound.status());
  if (silero.empty() && !has_moonshine) report.end_with(not_found("no speech models in " + folder));
  if (report.document().contains("error")) return report.take();

  std::vector<std::function<GpuCase()>> cases;
  if (!silero.empty()) cases.push_back([&] { return silero_case(silero, *sound); });
  if (has_moonshine) cases.push_back([&] { return moonshine_case(moonshine, *sound); });
  const CaseWay ways[] = {
      {"host", Loops::kHost}, {"auto", Loops::kAuto}, {.name = "auto, tf32", .allows_tf32 = true}};
  if (silero.empty()) report.add(left_out(kSilero, folder));
  if (!has_moonshine) report.add(left_out(kMoonshine, folder));
  report_cases(report, library, cases, ways, what);
  return report.take();
}

}  // namespace eddy
