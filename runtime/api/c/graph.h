// GraphObject: a graph that a caller builds piece by piece, or imports; then what sessions copy.
//
// Internal to runtime/api/c. Threads: one at a time (Use::kAlone) until it is finished; then any,
// by with_finished(). Errors: the builder's first one sticks; that of the call that made it carries
// its location.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "graph/base/fingerprint.h"
#include "graph/ir/builder.h"
#include "runtime/api/c/context.h"
#include "runtime/api/c/errors.h"
#include "runtime/api/c/handles.h"
#include "runtime/api/c/locations.h"

namespace eddy::c {

struct GraphObject : Object {
  static constexpr Kind kKind = Kind::kGraph;

  // To be built.
  GraphObject(std::shared_ptr<LibraryObject> l, std::string name)
      : library(std::move(l)), builder(std::in_place, library->use().ops(), std::move(name)) {}
  // Imported.
  GraphObject(std::shared_ptr<LibraryObject> l, Graph g)
      : library(std::move(l)), finished(std::move(g)), is_finished(true) {}

  const Locations* locations_or_null() const { return locations.get(); }
  // Builds what was added; ok also when it is finished already.
  Refusal finish();
  Refusal check_building() const;

  const std::shared_ptr<LibraryObject> library;
  const std::shared_ptr<Locations> locations = std::make_shared<Locations>();
  std::optional<Location> here;         // what graph_set_location has said
  std::optional<Location> refused_at;   // where the builder's error was made
  std::optional<GraphBuilder> builder;  // until it is finished
  std::optional<Graph> finished;
  std::atomic<bool> is_finished{false};  // released with it
  std::mutex fingerprint_mutex;
  std::optional<Fingerprint>
      fingerprint;  // of `finished`, since its first session; under the mutex
};

inline eddy_code look_if_finished(eddy_graph graph, eddy_error* error, bool& is) {
  return enter_with<GraphObject>(graph, error, [&](const auto& g) -> Refusal {
    is = g->is_finished.load(std::memory_order_acquire);
    return {};
  });
}

// A call that reads a finished graph, beside others; finishes it first where it is not.
template <typename Body>
eddy_code with_finished(eddy_graph graph, eddy_error* error, Body body) {
  bool is_finished = false;
  eddy_code code = look_if_finished(graph, error, is_finished);
  if (code == EDDY_OK && !is_finished) {
    code = enter_with<GraphObject, Use::kAlone>(graph, error,
                                                [](const auto& g) { return g->finish(); });
  }
  return code == EDDY_OK ? enter_with<GraphObject>(graph, error, body) : code;
}

}  // namespace eddy::c
