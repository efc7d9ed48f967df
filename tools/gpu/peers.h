// peers: the table that a GPU's figures are held against: each line a loop, model or network, what
// others take for the same, and how much Eddy may take.
//
// Rivals that were measured in the same run name the line by its `key`, or by Eddy's case.
// `earlier` are figures of other runs, which peer_figures.h keeps.
#pragma once

#include <string>
#include <vector>

namespace eddy {

// The competing system and the range of its figures: µs per iteration or ms per run.
struct PeerFigure {
  std::string name;
  double least = 0;
  double most = 0;
};

// Selects Eddy's figure: a part's row of this case with `size_says` in its size, driven in the
// first of `ways` that has passed.
struct EddyFigure {
  std::string part;
  std::string case_name;
  std::string size_says = {};
  std::vector<std::string> ways = {"auto"};
};

struct TableLimit {
  enum class Kind {
    kShown,       // none
    kAbsolute,    // `value`, in the line's unit
    kTimesRival,  // `value` times that of `rival`
    kTimesBest,   // `value` times the best of all
  };
  Kind kind = Kind::kShown;
  double value = 0;
  std::string rival = {};
};

struct TableLine {
  std::string key;   // "nested 100 x 100"
  std::string unit;  // "us", a round; "ms", a run
  EddyFigure eddy;
  TableLimit limit;
  std::vector<PeerFigure> earlier = {};
  // True for the dynamic models, of which some must be much faster than the best peer.
  bool is_model = false;
  // The required text of its first loop's report about its driver; empty: any.
  std::string driven_says = {};
};

// Names of rivals that this project measures itself, in the same run.
inline constexpr const char* kByHand = "by hand";
inline constexpr const char* kFloor = "floor";
inline constexpr const char* kCpu = "CPU";

inline constexpr const char* kTorchGraph = "PyTorch CUDA graph";

const std::vector<TableLine>& table_lines();
// The networks that tools/gpu/export_networks.py makes.
const std::vector<std::string>& network_names();

}  // namespace eddy
