#include "tests/tidy/includes.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>

namespace eddy::tidy {
namespace {

struct Include {
  std::string from;
  int line = 0;
  std::string to;
};

// Names and what they point at.
using Arrows = std::map<std::string, std::set<std::string>>;

std::vector<Include> includes_of(const Tree& tree) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*\"([^\"]+)\".*)");
  std::vector<Include> includes;
  for (const auto& [path, text] : tree.files) {
    if (!is_cpp(path)) continue;
    int number = 0;
    for (const std::string& line : lines_of(text)) {
      ++number;
      std::smatch match;
      if (line.find('#') != line.npos && std::regex_match(line, match, kInclude)) {
        includes.push_back({path, number, match[1]});
      }
    }
  }
  return includes;
}

// Higher may include lower and equal; nullopt for what is no part of the code base.
std::optional<int> height_of(const std::string& path) {
  static const std::map<std::string, int> kHeights = {{"graph", 0}, {"ops", 1},      {"runtime", 2},
                                                      {"tools", 3}, {"examples", 3}, {"tests", 3}};
  const auto at = kHeights.find(top_of(path));
  return at == kHeights.end() ? std::nullopt : std::optional(at->second);
}

// The shortest way from `start` back to itself, `start` first and last; empty if there is none.
std::vector<std::string> circle_through(const Arrows& arrows, const std::string& start) {
  std::map<std::string, std::string> came_from;
  std::deque<std::string> reached = {start};
  while (!reached.empty()) {
    const std::string at = reached.front();
    reached.pop_front();
    const auto next = arrows.find(at);
    if (next == arrows.end()) continue;
    for (const std::string& to : next->second) {
      if (!came_from.emplace(to, at).second) continue;
      if (to != start) {
        reached.push_back(to);
        continue;
      }
      std::vector<std::string> circle = {start};
      for (std::string back = at; back != start; back = came_from[back]) circle.push_back(back);
      circle.push_back(start);
      std::ranges::reverse(circle);
      return circle;
    }
  }
  return {};
}

void find_circles(const Arrows& arrows, const std::string& kind, std::vector<Finding>& findings) {
  std::set<std::string> reported;
  for (const auto& [start, _] : arrows) {
    if (reported.contains(start)) continue;
    const std::vector<std::string> circle = circle_through(arrows, start);
    if (circle.empty()) continue;
    if (std::ranges::any_of(circle, [&](const auto& name) { return reported.contains(name); })) {
      continue;
    }
    std::string what = kind + " include each other in a circle: ";
    for (size_t i = 0; i < circle.size(); ++i) what += (i > 0 ? " -> " : "") + circle[i];
    findings.push_back({start, 0, what});
    reported.insert(circle.begin(), circle.end());
  }
}

}  // namespace

std::vector<Finding> check_arrows(const Tree& tree) {
  std::vector<Finding> findings;
  for (const Include& include : includes_of(tree)) {
    if (!tree.files.contains(include.to)) {
      findings.push_back(
          {include.from, include.line,
           "includes \"" + include.to + "\", which is no file's path from the root"});
      continue;
    }
    const auto from = height_of(include.from);
    const auto to = height_of(include.to);
    if (from && to && *from < *to) {
      findings.push_back({include.from, include.line,
                          "includes \"" + include.to + "\": " + top_of(include.from) +
                              " must not know " + top_of(include.to)});
    }
  }
  return findings;
}

std::vector<Finding> check_circles(const Tree& tree) {
  Arrows files;
  Arrows folders;
  for (const Include& include : includes_of(tree)) {
    files[include.from].insert(include.to);
    if (folder_of(include.from) != folder_of(include.to)) {
      folders[folder_of(include.from)].insert(folder_of(include.to));
    }
  }
  std::vector<Finding> findings;
  find_circles(files, "files", findings);
  find_circles(folders, "folders", findings);
  return findings;
}

}  // namespace eddy::tidy
