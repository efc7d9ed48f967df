// SplitModel: a model that several ranks run on a share of the samples each, every rank apart from
// the others.
//
//   EDDY_ASSIGN_OR_RETURN(SplitModel model, split_model(library, path, options, "batch"));
//   … inputs of all samples, described by model.inputs …
//   EDDY_RETURN_IF_ERROR(model.take_share(library, inputs, rank, num_ranks, options));
//   … model.run(*world, run_options) … rank 0 has the outputs of all samples
//
// The samples lie along a dimension of the model's inputs, where no sample has an influence on
// another (graph/compile/batch_axes.h), which proves it or says which node crosses them and how. A
// model for a fixed number of samples becomes one for any (graph/compile/open_samples.h).
// Where the samples can't be shared evenly, the last ranks have one less; a rank without any has no
// session. Each session is made for the number of samples that its rank has.
//
// Outputs that are the same for all samples are rank 0's. Errors: those of find_batch_axes;
// inputs of unequal numbers of samples, or none. Threads: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/compile/batch_axes.h"
#include "runtime/api/session.h"
#include "runtime/net/world.h"

namespace eddy {

struct SampleShare {
  int64_t begin = 0;
  int64_t count = 0;
};
SampleShare share_of(int64_t num_samples, uint32_t rank, uint32_t num_ranks);

struct SplitModel {
  std::string dimension;
  BatchAxes axes;
  // Of all samples: with the dimension's size where the options give it.
  std::vector<ValueDescription> inputs, outputs;
  std::optional<Graph> graph;  // until take_share
  std::vector<std::string> warnings;
  int64_t load_ns = 0;

  int64_t num_samples = 0;
  SampleShare own;
  std::unique_ptr<Session> session;  // null: no sample is this rank's
  NamedTensors share;                // the session's inputs

  Status take_share(const Library& library, const NamedTensors& whole, uint32_t rank,
                    uint32_t num_ranks, SessionOptions options);
  // One run of all ranks, each of its share. On rank 0: the outputs of all samples; elsewhere those
  // of its own. One status on all ranks.
  Result<NamedTensors> run(World& world, const RunOptions& options);
  // The same without handing anything over: each rank has its own outputs, none without a session.
  Result<NamedTensors> run_apart(World& world, const RunOptions& options);

 private:
  Result<NamedTensors> run_share(const RunOptions& options);
  Result<NamedTensors> join(const std::vector<NamedTensors>& parts) const;
};

// `dimension`: a symbolic one of the model; "batch" also stands for the first dimension of all
// inputs where that is one and the same, by name or by number. kUnsupported where the model can't
// be shared so. Options have no world.
Result<SplitModel> split_model(const Library& library, const std::string& path,
                               const SessionOptions& options, const std::string& dimension);

}  // namespace eddy
