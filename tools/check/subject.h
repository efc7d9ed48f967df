// Subject is one random graph that several campaigns share: it is built once, and the oracle runs
// once for each variant of its inputs.
//
//   Subject subject(library, make_recipe(seed));
//   const Subject::Expected& expected = subject.expected(0);  // inputs, and what they should give
//   EDDY_ASSIGN_OR_RETURN(Graph graph, subject.copy_graph());  // for a session
//
// Errors: of building (a defect of this folder), and of the oracle in Expected. Threads: one.
#pragma once

#include <map>
#include <optional>

#include "tools/check/oracle.h"
#include "tools/check/recipe.h"

namespace eddy::check {

class Subject {
 public:
  struct Expected {
    NamedTensors inputs;
    Status status;  // of the oracle
    OracleResult result;
  };

  // `library` must outlive it.
  Subject(const Library& library, Recipe recipe) : library_(library), recipe_(std::move(recipe)) {}

  const Library& library() const { return library_; }
  const Recipe& recipe() const { return recipe_; }

  // Null when it does not build: status() has the reason.
  const Graph* graph_or_null();
  const Status& status() const { return status_; }
  Result<Graph> copy_graph();

  const Expected& expected(uint64_t variant);

  // Events that its uses have met, so that a campaign can decide whether they have shown anything.
  struct Met {
    uint64_t num_fed_back = 0;     // inputs that were outputs of the run before
    uint64_t num_ended_early = 0;  // runs
  };
  Met met;

 private:
  const Library& library_;
  const Recipe recipe_;
  std::optional<Graph> graph_;
  Status status_;
  std::map<uint64_t, Expected> expected_;  // by variant; addresses are stable
};

}  // namespace eddy::check
