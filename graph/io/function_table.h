// The functions a model brings along, by domain, name and overload. Internal to graph/io.
#pragma once

#include <map>
#include <string_view>
#include <tuple>

#include "graph/base/status.h"
#include "graph/io/onnx_model.h"
#include "graph/io/text.h"

namespace eddy {

class FunctionTable {
 public:
  // The functions must outlive the table. Errors: one defined twice.
  Status add_all(const std::vector<OnnxFunction>& functions) {
    for (const OnnxFunction& function : functions) {
      const Key key{canonical_domain(function.domain), function.name, function.overload};
      if (!functions_.emplace(key, &function).second) {
        return invalid_argument("function " + quoted(function.name) + " is defined twice");
      }
    }
    return Status::ok();
  }
  const OnnxFunction* find_or_null(const OnnxNode& node) const {
    const auto it =
        functions_.find(Key{canonical_domain(node.domain), node.op_type, node.overload});
    return it == functions_.end() ? nullptr : it->second;
  }

 private:
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<Key, const OnnxFunction*> functions_;
};

}  // namespace eddy
