// Locations: where in a caller's program the nodes of a graph come from, and how errors say it.
//
//   decode[17]/MatMul  +  {decode: prog.edy:11 "while err > tol", decode/MatMul: prog.edy:12}
//     = "prog.edy:12: in iteration 17 of 'while err > tol': MatMul: …"
//
// By the path of the node's name (Graph::path), which passes keep: a node that a pass has made is
// placed by the nearest loop or branch around it that has a location.
// Internal to runtime/api/c. Threads: immutable once its graph is finished. Cost: O(path) an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/api/c/refusal.h"

namespace eddy::c {

struct Location {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  std::string text;
  std::string start_of_line() const;  // "prog.edy:12:5: "
};

// A part of a path: "decode[17]" is {decode, 17}.
struct PathPart {
  std::string name;
  int64_t iteration = -1;
};
std::vector<PathPart> split_path(std::string_view path);
// Of the first `count` parts, without iterations: by which locations are found.
std::string join_path(const std::vector<PathPart>& parts, size_t count = SIZE_MAX);

// Of a caller's struct; none where it is null.
Refusal read_location(const eddy_location* given, std::optional<Location>& location);

class Locations {
 public:
  void set(std::string path, Location location) {
    by_path_.insert_or_assign(std::move(path), std::move(location));
  }
  // Of the node, or of the nearest around it that has one.
  const Location* find_or_null(const std::vector<PathPart>& parts) const;
  // For plans that are saved (runtime/api/saved_plan.h); what is no such text has no locations.
  std::string as_text() const;
  static Locations of_text(std::string_view text);
  // One line: location, iterations, node and reason.
  std::string line(const std::vector<PathPart>& parts, const std::string& reason) const;

 private:
  const Location* at_or_null(const std::vector<PathPart>& parts, size_t count) const;
  std::unordered_map<std::string, Location> by_path_;
};

}  // namespace eddy::c
