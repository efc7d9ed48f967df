// GraphObject: a graph that a caller builds piece by piece, or imports; then what sessions copy.
//
// Internal to runtime/api/c. Threads: one at a time (Use::kAlone).
// Errors: the builder's first one sticks; that of the call that made it carries its location.
#pragma once

#include <memory>
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
      : library(std::move(l)), finished(std::move(g)) {}

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
  std::optional<Fingerprint> fingerprint;  // of `finished`, since its first session
};

}  // namespace eddy::c
