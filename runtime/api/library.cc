#include "runtime/api/library.h"

#include <exception>

#include "graph/base/check.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/schema/standard.h"
#include "runtime/api/shared_programs.h"
#include "runtime/execute/bound_kernels.h"

namespace eddy {

namespace {

Status thrown(const std::string& by, const char* what_or_null) {
  return run_failed(
      by + (what_or_null == nullptr ? " threw something" : std::string(" threw: ") + what_or_null));
}

// The same function, failing where that one throws. `by`: its name, for the message.
template <typename Returned, typename Argument>
std::function<Returned(Argument&)> without_throwing(std::string by,
                                                    std::function<Returned(Argument&)> function) {
  return [by = std::move(by), function = std::move(function)](Argument& argument) -> Returned {
    try {
      return function(argument);
    } catch (const std::exception& error) {
      return thrown(by, error.what());
    } catch (...) {
      return thrown(by, nullptr);
    }
  };
}

}  // namespace

Library::Library() : shared_programs_(std::make_unique<SharedPrograms>()) {
  const Status status = add_standard_schemas(ops_);
  EDDY_CHECK(status.is_ok()) << status.to_string();
  add_cpu_kernels(cpu_kernels_);
}

Library::~Library() = default;

const Library::NamedHostFunction* Library::host_function_or_null(const std::string& name) const {
  const auto it = host_functions_.find(name);
  return it == host_functions_.end() ? nullptr : &it->second;
}

Status Library::add_operator(OpDef def, BindFunction bind) {
  const std::string name = def.name;
  const std::string domain = def.domain;
  const int since_version = def.since_version;
  if (def.infer) def.infer = without_throwing("the shape rule of " + name, std::move(def.infer));
  EDDY_RETURN_IF_ERROR(ops_.add(std::move(def)));
  if (!bind) return Status::ok();
  // The registry keeps views of names: the table's own strings live as long as the library.
  const OpDef* kept = ops_.find_or_null(domain, name, since_version);
  cpu_kernels_.add({kept->name, since_version,
                    without_throwing("binding a kernel of " + name, std::move(bind)),
                    kCustomProvider, kept->domain});
  return Status::ok();
}

Status Library::add_host_function(std::string name, HostFunction function,
                                  HostFunctionOptions options) {
  if (!function) return invalid_argument("host function '" + name + "' is empty");
  NamedHostFunction named{std::move(function), {}, options};
  if (!host_functions_.emplace(name, std::move(named)).second) {
    return invalid_argument("host function '" + name + "' is added twice");
  }
  return Status::ok();
}

Status Library::add_async_host_function(std::string name, AsyncHostFunction function) {
  if (!function) return invalid_argument("host function '" + name + "' is empty");
  if (!host_functions_.emplace(name, NamedHostFunction{{}, std::move(function)}).second) {
    return invalid_argument("host function '" + name + "' is added twice");
  }
  return Status::ok();
}

}  // namespace eddy
