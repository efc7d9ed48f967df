#include "graph/simulate/fluid_machine.h"

#include <algorithm>
#include <cmath>

#include "graph/base/check.h"
#include "graph/base/json_document.h"
#include "graph/simulate/json_fields.h"

namespace eddy {
namespace {

using Json = nlohmann::json;

Status read_number(const JsonFields& fields, const char* key, double& number) {
  EDDY_ASSIGN_OR_RETURN(number, fields.number_or(key, number));
  if (std::isfinite(number) && number >= 0) return Status::ok();
  return fields.fail(std::string("\"") + key + "\" is no number from 0");
}

Status read_positive(const JsonFields& fields, const char* key, double& number) {
  if (fields.find_or_null(key) == nullptr) {
    return fields.fail(std::string("needs \"") + key + "\"");
  }
  EDDY_RETURN_IF_ERROR(read_number(fields, key, number));
  if (number > 0) return Status::ok();
  return fields.fail(std::string("\"") + key + "\" must be above 0");
}

Status read_count(const JsonFields& fields, const char* key, uint32_t& count) {
  constexpr int64_t kMost = 4096;
  EDDY_ASSIGN_OR_RETURN(const int64_t number, fields.integer_or(key, count));
  if (number < 0 || number > kMost) {
    return fields.fail(std::string("\"") + key + "\" must be from 0 to 4096");
  }
  count = static_cast<uint32_t>(number);
  return Status::ok();
}

Status read_costs(const JsonFields& machine, const char* key, FluidMachine::Costs& costs) {
  const Json* object = machine.find_or_null(key);
  if (object == nullptr) return Status::ok();
  const JsonFields fields(*object, machine.where() + ", \"" + key + "\"");
  EDDY_RETURN_IF_ERROR(fields.check_object());
  for (const auto& [name, number] : {std::pair{"launch_ns", &costs.launch_ns},
                                     {"record_ns", &costs.record_ns},
                                     {"wait_ns", &costs.wait_ns},
                                     {"fork_ns", &costs.fork_ns},
                                     {"decision_ns", &costs.decision_ns}}) {
    EDDY_RETURN_IF_ERROR(read_number(fields, name, *number));
  }
  return Status::ok();
}

}  // namespace

FluidMachine cpu_machine(uint32_t num_workers) {
  FluidMachine machine;
  machine.num_workers = std::max(1u, num_workers);
  machine.num_units = machine.num_workers;
  machine.stream = {.launch_ns = 2, .record_ns = 2, .wait_ns = 2, .fork_ns = 90};
  machine.handing_ns = 1'800;
  machine.handoff_ns = 1'500;
  machine.waking_ns = 12'000;
  machine.wake_ns = 15'000;
  machine.spin_ns = 96'000;
  machine.pickup_ns = 90;
  machine.run_ns = 56;
  machine.start_ns = 2'400;
  machine.sleeping_start_ns = 42'000;
  machine.caller_spin_ns = 160'000;
  return machine;
}

Result<FluidMachine> parse_fluid_machine(std::string_view json) {
  auto parsed = parse_json_document(json);
  if (!parsed.is_ok()) {
    return parsed.take_status().prepend_message("a machine is a JSON object");
  }
  const Json object = std::move(*parsed);
  const JsonFields fields(object, "machine");
  EDDY_RETURN_IF_ERROR(fields.check_object());
  FluidMachine machine;
  EDDY_ASSIGN_OR_RETURN(machine.name, fields.text("name"));
  EDDY_RETURN_IF_ERROR(read_positive(fields, "units", machine.num_units));
  EDDY_RETURN_IF_ERROR(read_positive(fields, "flops_per_ns", machine.flops_per_ns));
  EDDY_RETURN_IF_ERROR(read_positive(fields, "bytes_per_ns", machine.bytes_per_ns));
  EDDY_RETURN_IF_ERROR(read_count(fields, "workers", machine.num_workers));
  EDDY_RETURN_IF_ERROR(read_count(fields, "streams", machine.max_streams));
  EDDY_RETURN_IF_ERROR(read_costs(fields, "host", machine.host));
  EDDY_RETURN_IF_ERROR(read_costs(fields, "stream", machine.stream));
  for (const auto& [name, number] : {std::pair{"unit_bytes_per_ns", &machine.unit_bytes_per_ns},
                                     {"shortest_ns", &machine.shortest_ns},
                                     {"elements_per_unit", &machine.elements_per_unit},
                                     {"latency_ns", &machine.latency_ns},
                                     {"handoff_ns", &machine.handoff_ns},
                                     {"handing_ns", &machine.handing_ns},
                                     {"wake_ns", &machine.wake_ns},
                                     {"waking_ns", &machine.waking_ns},
                                     {"spin_ns", &machine.spin_ns},
                                     {"pickup_ns", &machine.pickup_ns},
                                     {"readback_ns", &machine.readback_ns},
                                     {"run_ns", &machine.run_ns},
                                     {"start_ns", &machine.start_ns},
                                     {"sleeping_start_ns", &machine.sleeping_start_ns},
                                     {"caller_spin_ns", &machine.caller_spin_ns}}) {
    EDDY_RETURN_IF_ERROR(read_number(fields, name, *number));
  }
  if (machine.elements_per_unit == 0) return fields.fail("\"elements_per_unit\" must be above 0");
  return machine;
}

FluidDemand fluid_demand(const FluidMachine& machine, double flops, double bytes,
                         double num_outputs) {
  EDDY_CHECK(machine.flops_per_ns > 0 && machine.bytes_per_ns > 0 && machine.elements_per_unit > 0)
      << machine.name << " does not say how fast it is";
  const double wanted = std::ceil(num_outputs / machine.elements_per_unit);
  const double units = std::min(std::max(wanted, 1.0), machine.num_units);  // which may be below 1
  const double unit_bytes = machine.unit_bytes_per_ns > 0
                                ? machine.unit_bytes_per_ns
                                : 2 * machine.bytes_per_ns / machine.num_units;
  const double reachable = std::min(machine.bytes_per_ns, units * unit_bytes);
  FluidDemand demand;
  demand.units = units;
  demand.solo_ns =
      std::max({machine.shortest_ns, flops / (machine.flops_per_ns * units / machine.num_units),
                bytes / reachable});
  if (demand.solo_ns > 0) {
    demand.bandwidth = std::min(1.0, bytes / demand.solo_ns / machine.bytes_per_ns);
  }
  return demand;
}

}  // namespace eddy
