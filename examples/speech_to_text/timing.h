// Totals: how much was said in all pieces, and how long that took, as a line of text.
//
//   "16 words, 40 decoding steps, 424.0 ms for 11.4 s of speech: 10.60 ms per token (45.2 ms to the
//   first, 1.98 ms for each further one)"
//
// The time per token is that of all runs over all steps. What stands behind it is of the pieces
// that were also run to the first token alone. Fastest runs count, and a further token takes the
// time of the whole less that to the first; a piece for which that difference drowns in the
// machine's noise (the middle one of the latter took as long as the fastest whole one) is left
// out. Where no piece is left, nothing stands behind it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace eddy::speech {

// The times of one piece.
struct Timing {
  std::vector<double> whole_ms;        // one for each run; at least one
  std::vector<double> first_token_ms;  // of runs that stop after the first token; may be none
};

size_t count_words(std::string_view text);

class Totals {
 public:
  void add(const Timing& timing, size_t num_words, size_t num_steps, double sound_s);
  std::string describe() const;

 private:
  size_t num_words_ = 0;
  size_t num_steps_ = 0;
  double sound_s_ = 0;
  double whole_ms_ = 0;
  // Counts the pieces whose further tokens are clear.
  size_t num_clear_ = 0;
  size_t num_further_ = 0;
  double first_ms_ = 0;
  double further_ms_ = 0;
};

}  // namespace eddy::speech
