#include "examples/voice_activity/join.h"

#include <filesystem>

#include "examples/voice_activity/detector.h"
#include "examples/voice_activity/resample.h"
#include "examples/voice_activity/wav.h"

namespace eddy::voice {

double Joined::seconds() const { return static_cast<double>(samples.size()) / kSampleRate; }

Result<Joined> join(const std::vector<std::string>& paths) {
  constexpr size_t kGap = static_cast<size_t>(kGapSeconds * kSampleRate);
  if (paths.empty()) return invalid_argument("there is no recording; name at least one WAV file");
  Joined joined;
  joined.samples.resize(kGap);
  for (const std::string& path : paths) {
    EDDY_ASSIGN_OR_RETURN(const Recording recording, read_wav(path));
    const auto samples = resample(recording.samples, recording.sample_rate, kSampleRate);
    Part part{std::filesystem::path(path).filename().string(), joined.seconds()};
    joined.samples.insert(joined.samples.end(), samples.begin(), samples.end());
    part.end_s = joined.seconds();
    joined.parts.push_back(std::move(part));
    joined.samples.resize(joined.samples.size() + kGap);
  }
  return joined;
}

}  // namespace eddy::voice
