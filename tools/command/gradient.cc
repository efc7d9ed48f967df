// eddy gradient: a model with its gradient, written as a model.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "graph/compile/plain_control.h"
#include "graph/differentiate/differentiate.h"
#include "graph/io/export.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/api/library.h"
#include "tools/command/counted.h"
#include "tools/command/model.h"
#include "tools/command/output_paths.h"
#include "tools/command/saving.h"
#include "tools/command/subcommand.h"

namespace eddy {
namespace {

struct GradientArguments {
  std::string model;
  std::string output;
  DifferentiateOptions options;
  SavingArguments saving;
  bool is_plain = false;
};

Json to_json(const GradientReport& report) {
  Json gradients = Json::array();
  for (const GradientOutput& gradient : report.gradients) {
    gradients.push_back({{"of", gradient.parameter},
                         {"output", gradient.output},
                         {"initializer", gradient.is_initializer}});
  }
  Json json = saving_to_json(report);
  json["gradients"] = gradients;
  json["forward_nodes"] = report.num_forward_nodes;
  json["backward_nodes"] = report.num_backward_nodes;
  return json;
}

void print(const GradientReport& report, const GradientArguments& arguments, Console& console) {
  if (console.is_json()) return console.print(to_json(report));
  for (const GradientOutput& gradient : report.gradients) {
    console.say(fmt::format("{}: of {} {}", gradient.output,
                            gradient.is_initializer ? "initializer" : "input", gradient.parameter));
  }
  print_saving(report, arguments.saving.explains, console);
  console.say(fmt::format("{}: {} forward, {} backward", arguments.output,
                          counted(report.num_forward_nodes, "node"),
                          counted(report.num_backward_nodes, "node")));
}

Outcome write_gradient(const GradientArguments& arguments, Console& console) {
  const Status paths = check_output_paths({{"-o", arguments.output}}, {arguments.model});
  if (!paths.is_ok()) return Outcome::usage(paths.message());
  DifferentiateOptions options = arguments.options;
  auto policies = arguments.saving.policies();
  if (!policies.is_ok()) return Outcome::usage(policies.status().message());
  options.save = std::move(*policies);
  if (options.wrt == std::vector<std::string>{"all"}) options.wrt.clear();
  const Library library;
  GradientTable rules;
  if (Status status = add_standard_gradients(rules); !status.is_ok()) return status;
  ImportOptions import_options;
  import_options.warn = [&](std::string_view line) {
    console.remark(fmt::format("warning: {}: {}", arguments.model, line));
  };
  auto graph = import_file(library, arguments.model, import_options);
  if (!graph.is_ok()) return graph.take_status();
  auto made = differentiate(std::move(*graph), library.ops(), rules, options);
  if (!made.is_ok()) {
    Status status = made.take_status();
    status.prepend_message(arguments.model);
    return status;
  }
  if (arguments.is_plain) {
    auto plain = plain_control(std::move(made->graph), library.ops());
    if (!plain.is_ok()) return plain.take_status();
    made->graph = std::move(*plain);
  }
  if (Status status = export_onnx(made->graph, arguments.output); !status.is_ok()) return status;
  print(made->report, arguments, console);
  return Outcome::success();
}

}  // namespace

Action add_gradient(CLI::App& app) {
  auto arguments = std::make_shared<GradientArguments>();
  DifferentiateOptions& options = arguments->options;
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  app.add_option("--loss", options.loss, "the output whose gradient is taken")->required();
  app.add_option("--wrt", options.wrt,
                 "inputs and initializers to take it for, with commas between; all: those on which "
                 "the loss depends (without this option, too)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--seed", options.seed,
                 "an input with the adjoint of the loss, added if there is none of that name; by "
                 "default it is 1, and the loss has one element");
  app.add_option("--stop", options.stop, "values that count as constants, with commas between")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_saving_options(app, arguments->saving);
  app.add_option("--suffix", options.suffix,
                 "of the gradients' names; another one for a second derivative")
      ->capture_default_str();
  app.add_flag("--exact", options.exact,
               "the same bits whatever loops save: gradients of matrices are added up in each "
               "iteration, even where one product behind the loop takes less time");
  app.add_flag("--plain", arguments->is_plain,
               "write every loop as Loop and every branch as If, so that other runtimes run it");
  app.add_option("-o,--output", arguments->output, "the ONNX file to write")
      ->required()
      ->check(check_file_name);
  return [arguments](Console& console, Interrupts&) { return write_gradient(*arguments, console); };
}

}  // namespace eddy
