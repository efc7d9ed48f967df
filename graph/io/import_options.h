// ImportOptions: how a model is read (import.h), and a value by its name there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "graph/io/import_limits.h"
#include "graph/ir/builder.h"

namespace eddy {

struct ImportOptions {
  ImportLimits limits = {};
  int min_opset = kOldestOpset;  // of domain ""
  int max_opset = kNewestOpset;
  // Where external data of a model from memory lies; for files it is the file's own folder.
  std::string external_folder = {};
  // Where in the model's own bytes data lie that it calls external without a location
  // (ExportOptions::place); nullopt: nowhere, and such a tensor is an error.
  std::optional<uint64_t> data_begin = {};
  // Put before the names of nodes and values, so that one model can be imported twice.
  std::string name_prefix = {};
  // Called with what is wrong in the file but harms nothing: a graph output declared with another
  // shape than the nodes give it (the nodes count). One line a call; may be empty.
  std::function<void(std::string_view line)> warn = {};
};

struct NamedValue {
  std::string name;
  Value value;
};

}  // namespace eddy
