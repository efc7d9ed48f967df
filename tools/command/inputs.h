// The values a run starts from: from files, test data folders, the command line or a seed.
//
// What gives an input, first that applies: --input, --set, --inputs, --random-inputs. An input that
// nothing gives is an error that names the options. Dimensions that the model leaves open count as
// 1 where values are made up (--dim fixes them before).
//
// Errors: kInvalidArgument and kNotFound, naming the option or file; kResourceExhausted for values
// larger than the machine's memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "graph/io/host_value.h"
#include "runtime/api/session.h"

namespace eddy {

// Of a session, or of a model that has none yet. Borrows.
struct ModelValues {
  ModelValues(const Session& session)  // NOLINT(google-explicit-constructor): what a session has
      : inputs(session.inputs()), outputs(session.outputs()) {}
  ModelValues(const std::vector<ValueDescription>& inputs,
              const std::vector<ValueDescription>& outputs)
      : inputs(inputs), outputs(outputs) {}
  const std::vector<ValueDescription>& inputs;
  const std::vector<ValueDescription>& outputs;
};

struct InputArguments {
  std::vector<std::string> files;   // NAME=FILE
  std::vector<std::string> values;  // NAME=VALUE
  std::string folder;               // a test_data_set
  std::optional<uint64_t> seed;
  // One of several models: --input and --set may name inputs of others.
  bool may_lack_inputs = false;
};

// The model's, those that the arguments name and those of their folder: nothing may be written over
// them.
std::vector<std::string> files_read(const std::string& model, const InputArguments& arguments);

// A folder with input_N.pb and output_N.pb. Absent files leave a gap.
struct DataSet {
  std::vector<std::optional<HostValue>> inputs;   // by graph input
  std::vector<std::optional<HostValue>> outputs;  // by graph output

  bool has_inputs() const;
};
Result<DataSet> read_data_set(const std::string& folder, const ModelValues& model);
// The data set of arguments.folder, if one is named.
Result<std::optional<DataSet>> read_data_set(const InputArguments& arguments,
                                             const ModelValues& model);

// One value for each input of the model. `data_set_or_null` is that of arguments.folder.
Result<std::vector<HostValue>> make_inputs(const InputArguments& arguments,
                                           const ModelValues& model,
                                           const DataSet* data_set_or_null);

// Which of the inputs that --set and --random-inputs made up had open dimensions, and what fixes
// them: for runs that fail on them. Empty without any.
std::string open_inputs_text(const InputArguments& arguments, const ModelValues& model,
                             const DataSet* data_set_or_null);

// Borrows.
NamedTensors name_inputs(const ModelValues& model, const std::vector<HostValue>& values);

// Floats uniform in -1..1, integers 0..9, bools true.
Result<HostValue> random_value(const ValueDescription& input, Random& random);
// The scalar, or a full tensor of it.
Result<HostValue> filled_value(const ValueDescription& input, const std::string& text);

}  // namespace eddy
