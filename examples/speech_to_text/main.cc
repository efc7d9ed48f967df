// speech_to_text --encoder encoder_model.onnx --decoder decoder_model_merged.onnx
//                --vocabulary tokens.txt --wav FILE [--wav FILE ...]
// Prints the words of each recording, how many steps the decoder took, and how long.
//
// Exit codes: 0; 2 usage; 3 a file is bad; 4 the run failed.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "examples/report.h"
#include "examples/speech_to_text/timing.h"
#include "examples/speech_to_text/transcriber.h"
#include "examples/voice_activity/resample.h"
#include "examples/voice_activity/wav.h"

namespace eddy::speech {
namespace {

constexpr int kRuns = 3;  // the fastest counts

struct Options {
  MoonshineFiles files;
  std::string vocabulary;
  std::vector<std::string> wavs;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--encoder") == 0) {
      options.files.encoder = argv[i + 1];
    } else if (std::strcmp(argv[i], "--decoder") == 0) {
      options.files.decoder = argv[i + 1];
    } else if (std::strcmp(argv[i], "--vocabulary") == 0) {
      options.vocabulary = argv[i + 1];
    } else if (std::strcmp(argv[i], "--wav") == 0) {
      options.wavs.push_back(argv[i + 1]);
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && !options.files.encoder.empty() && !options.files.decoder.empty() &&
         !options.vocabulary.empty() && !options.wavs.empty();
}

Result<double> time_ms(Transcriber& transcriber, std::span<const float> samples, int64_t limit) {
  const auto start = std::chrono::steady_clock::now();
  EDDY_RETURN_IF_ERROR(transcriber.transcribe(samples, limit).status());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Whole runs and runs that stop after the first token take turns, so that both see the same
// machine.
Result<Timing> measure(Transcriber& transcriber, std::span<const float> samples, int64_t limit) {
  Timing timing;
  for (int i = 0; i < kRuns; ++i) {
    EDDY_ASSIGN_OR_RETURN(timing.whole_ms.emplace_back(), time_ms(transcriber, samples, limit));
    EDDY_ASSIGN_OR_RETURN(timing.first_token_ms.emplace_back(), time_ms(transcriber, samples, 1));
  }
  return timing;
}

Status print_words(Transcriber& transcriber, const std::string& path) {
  EDDY_ASSIGN_OR_RETURN(const voice::Recording recording, voice::read_wav(path));
  const std::vector<float> samples =
      voice::resample(recording.samples, recording.sample_rate, kSampleRate);
  const int64_t limit = Transcriber::token_limit(samples.size());
  Result<Transcript> transcript = transcriber.transcribe(samples, limit);
  if (!transcript.is_ok()) return std::move(transcript.take_status().prepend_message(path));
  EDDY_ASSIGN_OR_RETURN(const Timing timing, measure(transcriber, samples, limit));
  const std::string& text = transcript->text;
  const double sound_s = static_cast<double>(samples.size()) / kSampleRate;
  std::printf("%s: %s\n", path.substr(path.rfind('/') + 1).c_str(),
              text.empty() ? "no speech" : text.c_str());
  std::printf("  %s\n", describe(timing, transcript->tokens.size(), sound_s).c_str());
  return Status::ok();
}

Status run(const Options& options) {
  EDDY_ASSIGN_OR_RETURN(const auto transcriber,
                        Transcriber::create(options.files, options.vocabulary, {.num_threads = 1}));
  for (const std::string& wav : options.wavs) {
    EDDY_RETURN_IF_ERROR(print_words(*transcriber, wav));
  }
  return Status::ok();
}

}  // namespace
}  // namespace eddy::speech

int main(int argc, char** argv) {
  eddy::speech::Options options;
  if (!eddy::speech::parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: speech_to_text --encoder encoder_model.onnx --decoder "
                 "decoder_model_merged.onnx --vocabulary tokens.txt --wav FILE [--wav FILE ...]\n");
    return 2;
  }
  return eddy::report(eddy::speech::run(options));
}
