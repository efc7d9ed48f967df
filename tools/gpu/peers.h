// peers: the table that a GPU's figures are held against: each line a loop, model or network, what
// others take for the same, and how much Eddy may take.
//
// Rivals that were measured in the same run name the line by its `key`, or by Eddy's case.
// `earlier` are figures of one H200 in a VM (driver 580.159, CUDA 13.0, 2026-11; JAX 0.11.2,
// PyTorch), fp32 with TF32: medians of runs of that day, no others.
#pragma once

#include <string>
#include <vector>

namespace eddy {

// The other systems, and the range of their figures: µs a round or ms a run.
struct PeerFigure {
  std::string name;
  double least = 0;
  double most = 0;
};

// Where Eddy's figure stands: a part's row of this case whose size contains `size_says`, driven in
// the first of `ways` that has passed.
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
  // What its first loop must say of how it was driven; empty: anything.
  std::string driven_says = {};
};

// Names of rivals that this project measures itself, in the same run.
inline constexpr const char* kByHand = "by hand";
inline constexpr const char* kFloor = "floor";
inline constexpr const char* kCpu = "CPU";

// The networks that tools/gpu/export_networks.py makes.
struct NetworkPeers {
  std::string name;
  std::vector<PeerFigure> earlier;
};
inline constexpr const char* kTorchGraph = "PyTorch CUDA graph";

const std::vector<TableLine>& table_lines();
const std::vector<NetworkPeers>& network_peers();

}  // namespace eddy
