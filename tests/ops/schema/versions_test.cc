// Claim: the standard's versions of each operator up to the newest opset are accounted for: one
// that changed an operator's rule has a definition, and one that brought an attribute or a type
// admits it from then on and not before. What a version brought stands in onnx_versions.txt; so a
// version of the standard that nobody looked at is a line missing there.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "graph/ir/opset.h"
#include "ops/schema/standard.h"

namespace eddy::testing {
namespace {

struct Version {
  int number = 0;
  bool is_definition = false;
  std::vector<std::string> brought;
};
struct Facts {
  int newest = 0;
  std::map<std::string, std::vector<Version>> operators;
};

Version parse_version(const std::string& text) {
  Version version;
  size_t end = 0;
  version.number = std::stoi(text, &end);
  version.is_definition = end < text.size() && text[end] == '!';
  if (version.is_definition) ++end;
  std::istringstream rest(text.substr(end));
  for (std::string name; std::getline(rest, name, ':');) {
    if (!name.empty()) version.brought.push_back(name);
  }
  return version;
}

Facts read_facts() {
  Facts facts;
  std::ifstream file("tests/ops/schema/onnx_versions.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "newest") {
      words >> facts.newest;
      continue;
    }
    for (std::string word; words >> word;) {
      facts.operators[name].push_back(parse_version(word));
    }
  }
  return facts;
}

bool has_attribute(const OpDef& def, const std::string& name, int opset) {
  return std::ranges::any_of(def.attributes, [&](const FormalAttribute& attribute) {
    return attribute.name == name && attribute.since_version <= opset &&
           attribute.last_version >= opset;
  });
}
bool takes_type(const OpDef& def, const std::string& name, int opset) {
  for (int i = 1; i < kNumElementTypes; ++i) {
    const auto element = static_cast<ElementType>(i);
    if (element_type_name(element) != name) continue;
    return std::ranges::any_of(
        def.inputs, [&](const FormalInput& input) { return input.takes(element, opset); });
  }
  return false;
}
bool admits(const OpDef* def, const std::string& name, int opset) {
  return def != nullptr && (has_attribute(*def, name, opset) || takes_type(*def, name, opset));
}

class VersionsTest : public ::testing::Test {
 protected:
  VersionsTest() : facts_(read_facts()) { EXPECT_TRUE(add_standard_schemas(table_).is_ok()); }
  const OpDef* find(const std::string& name, int opset) const {
    return table_.find_or_null("", name, opset);
  }
  OpTable table_;
  Facts facts_;
};

TEST_F(VersionsTest, TheFactsReachTheNewestOpset) {
  EXPECT_EQ(facts_.newest, kNewestOpset);
  for (const auto& [name, versions] : facts_.operators) {
    ASSERT_FALSE(versions.empty()) << name;
    for (size_t i = 0; i < versions.size(); ++i) {
      EXPECT_LE(versions[i].number, kNewestOpset) << name;
      if (i > 0) {
        EXPECT_GT(versions[i].number, std::max(versions[i - 1].number, kOldestOpset)) << name;
      }
    }
  }
}

TEST_F(VersionsTest, EveryDefinitionIsAVersionOfTheStandard) {
  for (const auto& def : table_.all()) {
    // ONNX Runtime's own, which files have in the standard's domain.
    if (!def->domain.empty() || def->name == "SimplifiedLayerNormalization") continue;
    const auto found = facts_.operators.find(def->name);
    ASSERT_NE(found, facts_.operators.end()) << def->name << " is not in onnx_versions.txt";
    const Version& first = found->second[0];
    if (def->since_version <= std::max(first.number, kOldestOpset)) continue;
    EXPECT_TRUE(std::ranges::any_of(found->second,
                                    [&](const Version& version) {
                                      return version.number == def->since_version &&
                                             version.is_definition;
                                    }))
        << def->name << " of opset " << def->since_version;
  }
}

TEST_F(VersionsTest, EveryVersionThatChangedSomethingIsThere) {
  size_t num_checked = 0;
  for (const auto& [name, versions] : facts_.operators) {
    if (!table_.knows("", name)) {  // the importer's
      EXPECT_TRUE(name == "If" || name == "Loop" || name == "Scan" || name == "SequenceMap")
          << name;
      continue;
    }
    EXPECT_NE(find(name, std::max(versions[0].number, kOldestOpset)), nullptr) << name;
    for (const Version& version : versions) {
      const OpDef* def = find(name, version.number);
      ASSERT_NE(def, nullptr) << name << " of opset " << version.number;
      if (version.is_definition) {
        EXPECT_EQ(def->since_version, version.number) << name;
      }
      for (const std::string& brought : version.brought) {
        EXPECT_TRUE(admits(def, brought, version.number))
            << name << " lacks '" << brought << "' in opset " << version.number;
        EXPECT_FALSE(admits(find(name, version.number - 1), brought, version.number - 1))
            << name << " has '" << brought << "' before opset " << version.number;
        ++num_checked;
      }
    }
  }
  EXPECT_GT(num_checked, 20u);
}

// The other way round: what Eddy ties to an opset is in the list.
TEST_F(VersionsTest, EveryAttributeThatCameLaterIsInTheList) {
  for (const auto& def : table_.all()) {
    if (!def->domain.empty()) continue;
    for (const FormalAttribute& attribute : def->attributes) {
      if (attribute.since_version <= std::max(def->since_version, kOldestOpset)) continue;
      bool is_listed = false;
      for (const Version& version : facts_.operators[def->name]) {
        if (version.number != attribute.since_version) continue;
        is_listed = version.is_definition ||
                    std::ranges::find(version.brought, attribute.name) != version.brought.end();
      }
      EXPECT_TRUE(is_listed) << def->name << " '" << attribute.name << "' of opset "
                             << attribute.since_version;
    }
  }
}

}  // namespace
}  // namespace eddy::testing
