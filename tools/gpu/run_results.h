// RunResults: what the parts of one run have left in a folder, read back: Eddy's rows, and rivals
// by the line of the table (peers.h) that they belong to: its key, or its case.
//
// Errors: what cannot be read is named in unreadable(); the rest counts. Memory: the files'.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/gpu/peers.h"

namespace eddy {

struct RivalFigure {
  std::string name;
  double figure = 0;   // in the line's unit
  std::string source;  // the file that holds it
};

class RunResults {
 public:
  explicit RunResults(const std::string& folder);

  bool is_empty() const { return parts_.empty(); }
  const std::vector<std::string>& unreadable() const { return unreadable_; }
  // A line for each file whose part ended early: "/out/hand.json: device lost: …".
  const std::vector<std::string>& cut_short() const { return cut_short_; }
  // What the parts have said of the libraries, each line once: found, or what is missing.
  std::vector<std::string> libraries() const;
  // The GPU of the first part that names one; null.
  nlohmann::json gpu() const;
  // The row of a part in this way; null: there is none.
  nlohmann::json row(const EddyFigure& figure, const std::string& way) const;
  std::vector<RivalFigure> rivals(const TableLine& line) const;

 private:
  void read_parts(const std::string& folder);
  void read_networks(const std::string& folder);
  nlohmann::json read(const std::string& path);
  void add_end(const std::string& path, const nlohmann::json& report);
  void add_rival(const std::string& key, RivalFigure rival);
  void add_by_hand(const nlohmann::json& rows);
  void add_installed(const nlohmann::json& rows);
  void add_cpu(const nlohmann::json& rows);

  std::map<std::string, nlohmann::json> parts_;
  std::vector<std::string> unreadable_, cut_short_;
  std::multimap<std::string, RivalFigure> rivals_;
};

}  // namespace eddy
