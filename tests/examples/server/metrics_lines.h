// A page of metrics, checked line by line against Prometheus' text format, as numbers by their name
// and labels. Fails the test where a line has another form, a sample has no HELP and TYPE before
// it, or comes twice.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <sstream>
#include <string>

namespace eddy::server {

inline std::string family_of(const std::string& name,
                             const std::map<std::string, std::string>& types) {
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    const size_t at = name.rfind(suffix);
    if (at == name.npos || at + std::string(suffix).size() != name.size()) continue;
    const auto type = types.find(name.substr(0, at));
    if (type != types.end() && type->second == "histogram") return type->first;
  }
  return name;
}

inline std::map<std::string, double> metrics_lines(const std::string& page) {
  static const std::regex kHelp("# HELP ([a-z_]+) [^\\n]+");
  static const std::regex kType("# TYPE ([a-z_]+) (counter|gauge|histogram)");
  static const std::regex kSample(
      "([a-z_]+)(\\{[a-z]+=\"[^\"\\\\]*\"\\})? ([0-9]+(\\.[0-9]+)?(e[+-]?[0-9]+)?)");
  std::map<std::string, double> samples;
  std::map<std::string, std::string> types;
  std::string helped;
  std::string current;
  EXPECT_TRUE(!page.empty() && page.back() == '\n') << "the last line has no end";
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      helped = match[1];
    } else if (std::regex_match(line, match, kType)) {
      current = match[1];
      EXPECT_EQ(helped, current) << line;
      EXPECT_TRUE(types.emplace(current, match[2]).second) << "twice: " << line;
    } else if (std::regex_match(line, match, kSample)) {
      EXPECT_EQ(family_of(match[1], types), current) << line;
      EXPECT_TRUE(types[current] != "counter" || current.ends_with("_total")) << line;
      const bool is_new =
          samples.emplace(match[1].str() + match[2].str(), std::stod(match[3])).second;
      EXPECT_TRUE(is_new) << "twice: " << line;
    } else {
      ADD_FAILURE() << "no line of the format: " << line;
    }
  }
  return samples;
}

}  // namespace eddy::server
