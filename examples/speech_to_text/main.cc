// speech_to_text --detector silero_vad.onnx --encoder encoder_model.onnx
//                --decoder decoder_model_merged.onnx --vocabulary tokens.txt
//                --wav FILE [--wav FILE ...]
// Prints the words of each piece of speech in the recordings with its time, how many steps the
// decoder took, and how long.
//
// Exit codes: 0; 2 usage; 3 a file is bad; 4 the run failed.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "examples/report.h"
#include "examples/speech_to_text/pieces.h"
#include "examples/speech_to_text/timing.h"
#include "examples/speech_to_text/transcriber.h"
#include "examples/voice_activity/find_speech.h"

namespace eddy::speech {
namespace {

constexpr int kRuns = 3;            // of a measured piece; the fastest counts
constexpr int kMeasuredPieces = 8;  // the first ones; the rest runs once

struct Options {
  std::string detector;
  MoonshineFiles files;
  std::string vocabulary;
  std::vector<std::string> wavs;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--detector") == 0) {
      options.detector = argv[i + 1];
    } else if (std::strcmp(argv[i], "--encoder") == 0) {
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
  return argc % 2 == 1 && !options.detector.empty() && !options.files.encoder.empty() &&
         !options.files.decoder.empty() && !options.vocabulary.empty() && !options.wavs.empty();
}

class Printer {
 public:
  explicit Printer(Transcriber& transcriber) : transcriber_(transcriber) {}

  Status print_words(const voice::Speech& speech) {
    const voice::Part& recording = speech.recording;
    const auto pieces = cut_pieces(speech.segments, speech.probabilities, voice::kChunkSeconds,
                                   recording.seconds());
    std::printf("%s%s\n", recording.name.c_str(), pieces.empty() ? ": no speech" : "");
    EDDY_ASSIGN_OR_RETURN(auto sound, voice::SoundFile::open(recording.path));
    for (const Piece& piece : pieces) {
      EDDY_ASSIGN_OR_RETURN(const std::vector<float> samples,
                            sound.read_between(piece.sound.start_s, piece.sound.end_s));
      Status status = print_piece(piece, samples);
      if (!status.is_ok()) return std::move(status.prepend_message(recording.path));
    }
    return Status::ok();
  }
  std::string totals() const { return totals_.describe(); }

 private:
  Status print_piece(const Piece& piece, std::span<const float> samples) {
    const int64_t limit = Transcriber::token_limit(samples.size());
    Timing timing;
    Transcript transcript;
    const bool is_measured = num_pieces_++ < kMeasuredPieces;
    for (int i = 0; i < (is_measured ? kRuns : 1); ++i) {
      EDDY_ASSIGN_OR_RETURN(transcript, timed(samples, limit, timing.whole_ms));
      if (is_measured) {
        EDDY_RETURN_IF_ERROR(timed(samples, 1, timing.first_token_ms).take_status());
      }
    }
    const size_t num_steps = transcript.tokens.size();
    std::printf("%7.2f s to %6.2f s  %s  (%zu step%s%s)\n", piece.speech.start_s,
                piece.speech.end_s, transcript.text.empty() ? "-" : transcript.text.c_str(),
                num_steps, num_steps == 1 ? "" : "s",
                transcript.has_ended ? "" : ": the limit, so the text may go on");
    std::fflush(stdout);
    totals_.add(timing, count_words(transcript.text), num_steps,
                static_cast<double>(samples.size()) / kSampleRate);
    return Status::ok();
  }

  // Whole runs and runs that stop after the first token take turns, so that both see the same
  // machine.
  Result<Transcript> timed(std::span<const float> samples, int64_t limit,
                           std::vector<double>& times_ms) {
    const auto start = std::chrono::steady_clock::now();
    EDDY_ASSIGN_OR_RETURN(Transcript transcript, transcriber_.transcribe(samples, limit));
    const auto took = std::chrono::steady_clock::now() - start;
    times_ms.push_back(std::chrono::duration<double, std::milli>(took).count());
    return transcript;
  }

  Transcriber& transcriber_;
  Totals totals_;
  int num_pieces_ = 0;
};

Status run(const Options& options) {
  EDDY_ASSIGN_OR_RETURN(const auto transcriber,
                        Transcriber::create(options.files, options.vocabulary, {.num_threads = 1}));
  EDDY_RETURN_IF_ERROR(voice::check_wavs(options.wavs));
  EDDY_ASSIGN_OR_RETURN(const auto detector,
                        voice::Detector::create(options.detector, {.num_threads = 1}));
  EDDY_ASSIGN_OR_RETURN(const auto found, voice::find_speech(*detector, options.wavs));
  Printer printer(*transcriber);
  for (const voice::Speech& speech : found.recordings) {
    EDDY_RETURN_IF_ERROR(printer.print_words(speech));
  }
  std::printf("%s\n", printer.totals().c_str());
  return Status::ok();
}

}  // namespace
}  // namespace eddy::speech

int main(int argc, char** argv) {
  eddy::speech::Options options;
  if (!eddy::speech::parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: speech_to_text --detector silero_vad.onnx --encoder encoder_model.onnx "
                 "--decoder decoder_model_merged.onnx --vocabulary tokens.txt --wav FILE "
                 "[--wav FILE ...]\n");
    return 2;
  }
  return eddy::report(eddy::speech::run(options));
}
