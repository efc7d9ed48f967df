#include "tools/bench/speech_contenders.h"

#include <algorithm>

#include "examples/voice_activity/detector.h"

namespace eddy {
namespace {

using speech::kHeads;
using speech::kHeadSize;

SessionOptions with_threads(int num_threads) {
  SessionOptions options;
  options.num_threads = num_threads;
  return options;
}

template <typename T>
TensorView view_of(const T* data, const Dims& dims, ElementType element) {
  return {const_cast<T*>(data), dims.data(), dims.rank(), element};
}

class EddyMoonshine : public Moonshine {
 public:
  explicit EddyMoonshine(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Result<std::vector<int64_t>> transcribe(std::span<const float> sound, int64_t limit) override {
    const Dims dims = {1, static_cast<int64_t>(sound.size())};
    const NamedTensors inputs = {
        {"samples", Tensor::borrow(view_of(sound.data(), dims, ElementType::kFloat))},
        {"token_limit", Tensor::scalar(limit)}};
    EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session_->run(inputs));
    const std::span<const int64_t> tokens = outputs[0].second.values<int64_t>();
    return std::vector<int64_t>(tokens.begin(), tokens.end());
  }
  Session* session_or_null() override { return session_.get(); }

 private:
  std::unique_ptr<Session> session_;
};

// One run of the merged decoder: what goes in and comes out, by name.
class DecoderStep {
 public:
  // The first step makes the caches of the sound too; further ones are given them.
  explicit DecoderStep(bool is_first) {
    input_names_ = {"input_ids", "encoder_hidden_states", "use_cache_branch"};
    output_names_ = {"logits"};
    for (const char* side : {"decoder", "encoder"}) {
      for (const std::string& name : speech::cache_names(side)) {
        input_names_.push_back("past_key_values." + name);
        if (is_first || side == std::string_view("decoder")) {
          output_names_.push_back("present." + name);
        }
      }
    }
    for (const std::string& name : input_names_) input_pointers_.push_back(name.c_str());
    for (const std::string& name : output_names_) output_pointers_.push_back(name.c_str());
  }

  size_t num_outputs() const { return output_names_.size(); }
  Status run(OrtSession& decoder, std::span<const OrtValue* const> inputs,
             std::span<OrtValue> outputs) const {
    return decoder.run(input_pointers_, inputs, output_pointers_, outputs);
  }

 private:
  std::vector<std::string> input_names_, output_names_;
  std::vector<const char*> input_pointers_, output_pointers_;
};

class RivalMoonshine : public Moonshine {
 public:
  RivalMoonshine(std::unique_ptr<OrtSession> encoder, std::unique_ptr<OrtSession> decoder)
      : encoder_(std::move(encoder)), decoder_(std::move(decoder)) {}

  Result<std::vector<int64_t>> transcribe(std::span<const float> sound, int64_t limit) override {
    EDDY_RETURN_IF_ERROR(encode(sound));
    EDDY_RETURN_IF_ERROR(clear_caches());
    std::vector<int64_t> tokens;
    int64_t token = speech::kStartOfText;
    for (int64_t step = 0; step < limit && token != speech::kEndOfText; ++step) {
      EDDY_ASSIGN_OR_RETURN(token, decode(token, step == 0));
      tokens.push_back(token);
    }
    return tokens;
  }

 private:
  Status encode(std::span<const float> sound) {
    const Dims dims = {1, static_cast<int64_t>(sound.size())};
    EDDY_ASSIGN_OR_RETURN(const OrtValue samples,
                          encoder_->tensor(view_of(sound.data(), dims, ElementType::kFloat)));
    const char* const input = "input_values";
    const char* const output = "last_hidden_state";
    const OrtValue* const given = &samples;
    return encoder_->run(std::span(&input, 1), std::span(&given, 1), std::span(&output, 1),
                         std::span(&sound_, 1));
  }

  Status clear_caches() {
    caches_.clear();
    const Dims dims = {1, kHeads, 0, kHeadSize};
    for (size_t i = 0; i < 2 * speech::cache_names("decoder").size(); ++i) {
      EDDY_ASSIGN_OR_RETURN(caches_.emplace_back(),
                            decoder_->tensor(view_of(&nothing_, dims, ElementType::kFloat)));
    }
    return Status::ok();
  }

  Result<int64_t> decode(int64_t token, bool is_first) {
    const bool has_caches = !is_first;
    const Dims one_by_one = {1, 1}, one = {1};
    EDDY_ASSIGN_OR_RETURN(const OrtValue ids,
                          decoder_->tensor(view_of(&token, one_by_one, ElementType::kInt64)));
    EDDY_ASSIGN_OR_RETURN(const OrtValue branch,
                          decoder_->tensor(view_of(&has_caches, one, ElementType::kBool)));
    std::vector<const OrtValue*> inputs = {&ids, &sound_, &branch};
    for (const OrtValue& cache : caches_) inputs.push_back(&cache);
    const DecoderStep& step = is_first ? first_ : further_;
    std::vector<OrtValue> outputs(step.num_outputs());
    EDDY_RETURN_IF_ERROR(step.run(*decoder_, inputs, outputs));
    // The first outputs after the logits are the decoder's caches, as in the inputs.
    for (size_t i = 1; i < outputs.size(); ++i) caches_[i - 1] = std::move(outputs[i]);
    Dims dims;
    EDDY_ASSIGN_OR_RETURN(const TensorView logits, outputs[0].view(dims));
    const float* const first = logits.as<float>();
    return std::max_element(first, first + logits.count()) - first;
  }

  std::unique_ptr<OrtSession> encoder_, decoder_;
  const DecoderStep first_{true}, further_{false};
  OrtValue sound_;
  std::vector<OrtValue> caches_;  // the decoder's, then those of the sound
  float nothing_ = 0;
};

class EddySilero : public Silero {
 public:
  explicit EddySilero(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Result<std::vector<float>> detect(std::span<const float> sound) override {
    const Dims dims = {static_cast<int64_t>(sound.size()) / voice::kChunkSamples,
                       voice::kChunkSamples};
    const Tensor chunks = Tensor::borrow(view_of(sound.data(), dims, ElementType::kFloat));
    EDDY_ASSIGN_OR_RETURN(
        const NamedTensors outputs,
        session_->run(
            {{"chunks", chunks}, {"state", before_.state}, {"context", before_.context}}));
    const std::span<const float> values = outputs[0].second.values<float>();
    return std::vector<float>(values.begin(), values.end());
  }
  Session* session_or_null() override { return session_.get(); }

 private:
  std::unique_ptr<Session> session_;
  const voice::DetectorMemory before_;
};

class RivalSilero : public Silero {
 public:
  explicit RivalSilero(std::unique_ptr<OrtSession> model) : model_(std::move(model)) {}

  Result<std::vector<float>> detect(std::span<const float> sound) override {
    constexpr int64_t kContext = 64, kChunk = voice::kChunkSamples;
    const int64_t rate = voice::kSampleRate;
    std::vector<float> input(kContext + kChunk), zeros(2 * 128);
    const Dims input_dims = {1, kContext + kChunk}, state_dims = {2, 1, 128}, none = {};
    EDDY_ASSIGN_OR_RETURN(const OrtValue chunk,
                          model_->tensor(view_of(input.data(), input_dims, ElementType::kFloat)));
    EDDY_ASSIGN_OR_RETURN(const OrtValue sr,
                          model_->tensor(view_of(&rate, none, ElementType::kInt64)));
    OrtValue outputs[2];
    EDDY_ASSIGN_OR_RETURN(OrtValue state,
                          model_->tensor(view_of(zeros.data(), state_dims, ElementType::kFloat)));
    const char* const input_names[] = {"input", "state", "sr"};
    const char* const output_names[] = {"output", "stateN"};
    std::vector<float> probabilities;
    for (size_t at = 0; at + kChunk <= sound.size(); at += kChunk) {
      std::copy_n(sound.begin() + static_cast<std::ptrdiff_t>(at), kChunk,
                  input.begin() + kContext);
      const OrtValue* const inputs[] = {&chunk, &state, &sr};
      EDDY_RETURN_IF_ERROR(model_->run(input_names, inputs, output_names, outputs));
      Dims dims;
      EDDY_ASSIGN_OR_RETURN(const TensorView probability, outputs[0].view(dims));
      probabilities.push_back(probability.as<float>()[0]);
      state = std::move(outputs[1]);
      std::copy(input.end() - kContext, input.end(), input.begin());
    }
    return probabilities;
  }

 private:
  std::unique_ptr<OrtSession> model_;
};

}  // namespace

Result<std::unique_ptr<Moonshine>> load_moonshine(const Library& library,
                                                  const speech::MoonshineFiles& files,
                                                  int num_threads) {
  EDDY_ASSIGN_OR_RETURN(Graph graph, speech::build_moonshine(library.ops(), files));
  EDDY_ASSIGN_OR_RETURN(auto session,
                        Session::create(library, std::move(graph), with_threads(num_threads)));
  return std::unique_ptr<Moonshine>(std::make_unique<EddyMoonshine>(std::move(session)));
}

Result<std::unique_ptr<Moonshine>> load_moonshine(const OrtLibrary& library,
                                                  const speech::MoonshineFiles& files,
                                                  int num_threads) {
  EDDY_ASSIGN_OR_RETURN(auto encoder, OrtSession::load(library, files.encoder, num_threads));
  EDDY_ASSIGN_OR_RETURN(auto decoder, OrtSession::load(library, files.decoder, num_threads));
  return std::unique_ptr<Moonshine>(
      std::make_unique<RivalMoonshine>(std::move(encoder), std::move(decoder)));
}

Result<std::unique_ptr<Silero>> load_silero(const Library& library, const std::string& path,
                                            int num_threads) {
  EDDY_ASSIGN_OR_RETURN(Graph graph, voice::build_detector(library.ops(), path));
  EDDY_ASSIGN_OR_RETURN(auto session,
                        Session::create(library, std::move(graph), with_threads(num_threads)));
  return std::unique_ptr<Silero>(std::make_unique<EddySilero>(std::move(session)));
}

Result<std::unique_ptr<Silero>> load_silero(const OrtLibrary& library, const std::string& path,
                                            int num_threads) {
  EDDY_ASSIGN_OR_RETURN(auto model, OrtSession::load(library, path, num_threads));
  return std::unique_ptr<Silero>(std::make_unique<RivalSilero>(std::move(model)));
}

}  // namespace eddy
