// Reading fields of a JSON object, each with a one-line error that names place and fault.
//
//   JsonFields fields(entry, "operator 'conv1'");
//   EDDY_ASSIGN_OR_RETURN(int64_t kernel, fields.integer_or("kernel", 1));
//
// Errors (invalid argument): a missing field, a value of the wrong kind, an integer beyond int64.
// A JsonFields borrows its object and lives for one function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "graph/base/status.h"

namespace eddy {

class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  Status fail(const std::string& what) const { return invalid_argument(where_ + ": " + what); }
  Status check_object() const;
  const nlohmann::json* find_or_null(const char* key) const;

  Result<std::string> text(const char* key) const;
  Result<double> number_or(const char* key, double fallback) const;
  Result<int64_t> integer_or(const char* key, int64_t fallback) const;
  Result<bool> flag_or(const char* key, bool fallback) const;
  // Empty when absent. One integer where `may_be_single` counts as a list of it.
  Result<std::vector<int64_t>> integers(const char* key, bool may_be_single = false) const;
  // The list under the key; an empty one when it is absent and not needed.
  Result<const nlohmann::json*> list(const char* key, bool is_needed) const;

  // A name: a string, or an integer as its digits.
  static Result<std::string> name_of(const nlohmann::json& value, const std::string& where);

 private:
  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace eddy
