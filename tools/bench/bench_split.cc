#include "tools/bench/bench_split.h"

#include <algorithm>
#include <utility>

#include "graph/io/export.h"
#include "runtime/api/rank_values.h"
#include "runtime/api/session.h"
#include "tools/bench/scratch_folder.h"
#include "tools/command/compare.h"
#include "tools/command/model.h"
#include "tools/command/split_batch.h"
#include "tools/command/values.h"

namespace eddy {
namespace {

// Ranks that wait for one which measures alone leave it the machine.
constexpr std::chrono::milliseconds kNap{5};

SessionOptions one_thread() {
  SessionOptions options;
  options.num_threads = 1;
  return options;
}

// Other sizes of products sum in other orders.
Status check_equal(const std::string& name, const NamedTensors& shared, const NamedTensors& alone) {
  const Tolerance tolerance{.rtol = 1e-3, .atol = 1e-4};
  for (size_t o = 0; o < alone.size(); ++o) {
    const auto difference =
        find_difference(copy_value(shared[o].second), copy_value(alone[o].second), tolerance);
    if (!difference) continue;
    return run_failed(name + ": output " + alone[o].first + " of all ranks " + *difference);
  }
  return Status::ok();
}

}  // namespace

Status SplitBench::measure(const AddRow& add_row) {
  for (const auto make : {split_resnet50, split_lstm_loop}) {
    EDDY_ASSIGN_OR_RETURN(const SplitCase model, make(library_));
    if (!suite_.is_wanted("batch of 64: " + model.name)) continue;
    EDDY_RETURN_IF_ERROR(add_proved(model, add_row));
  }
  if (!suite_.is_wanted("batch of 64: seq2seq")) return Status::ok();
  return add_sentences(add_row);
}

Status SplitBench::add_proved(const SplitCase& model, const AddRow& add_row) {
  EDDY_ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make());
  const std::string path = folder->file(model.name + ".onnx");
  EDDY_RETURN_IF_ERROR(export_onnx(model.graph, path));
  EDDY_ASSIGN_OR_RETURN(SplitModel split, split_model(library_, path, one_thread(), "batch"));
  EDDY_RETURN_IF_ERROR(
      split.take_share(library_, model.inputs, world_.rank(), world_.num_ranks(), one_thread()));
  std::unique_ptr<Session> alone;
  if (world_.rank() == 0) {
    SessionOptions options = one_thread();
    options.dims.emplace_back("batch", kSplitSamples);
    EDDY_ASSIGN_OR_RETURN(alone, Session::create(library_, model.graph.copy(), options));
  }
  NamedTensors of_shared, of_one;
  const Run run_shared = [&]() -> Result<NamedTensors> {
    EDDY_ASSIGN_OR_RETURN(of_shared, split.run(world_, {}));
    return of_shared;
  };
  const Run run_alone = [&]() -> Result<NamedTensors> {
    EDDY_ASSIGN_OR_RETURN(of_one, alone->run(model.inputs));
    return of_one;
  };
  EDDY_ASSIGN_OR_RETURN(const auto all, sample(model.name, run_shared, run_alone));
  if (world_.rank() == 0) EDDY_RETURN_IF_ERROR(check_equal(model.name, of_shared, of_one));
  add_row("batch of 64: " + model.name, all[0], all[1]);
  return Status::ok();
}

Status SplitBench::add_sentences(const AddRow& add_row) {
  EDDY_ASSIGN_OR_RETURN(SplitCase own,
                        split_sentences(library_, world_.rank(), world_.num_ranks()));
  EDDY_ASSIGN_OR_RETURN(const auto session,
                        Session::create(library_, std::move(own.graph), one_thread()));
  EDDY_ASSIGN_OR_RETURN(SplitCase whole, split_sentences(library_, 0, 1));
  EDDY_ASSIGN_OR_RETURN(const auto alone,
                        Session::create(library_, std::move(whole.graph), one_thread()));
  const Run run_shared = [&]() -> Result<NamedTensors> {
    EDDY_ASSIGN_OR_RETURN(const auto parts, gather_values(world_, session->run(own.inputs)));
    return parts.empty() ? NamedTensors() : parts[0];
  };
  EDDY_ASSIGN_OR_RETURN(const auto all,
                        sample(own.name, run_shared, [&] { return alone->run(whole.inputs); }));
  add_row("batch of 64: " + own.name, all[0], all[1]);
  return Status::ok();
}

Result<std::vector<Samples>> SplitBench::sample(const std::string& name, const Run& shared,
                                                const Run& alone) {
  std::vector<Samples> all = {{name, {}}, {"one rank", {}}};
  // The first round is for what only a first run does.
  for (int round = -1; round < rounds_; ++round) {
    suite_.console().progress("measuring a batch of 64: " + name);
    EDDY_RETURN_IF_ERROR(meet_({}));
    int64_t start_ns = now_ns();
    EDDY_RETURN_IF_ERROR(shared().status());
    if (round >= 0) all[0].ns.push_back(static_cast<double>(now_ns() - start_ns));
    start_ns = now_ns();
    if (world_.rank() == 0) EDDY_RETURN_IF_ERROR(alone().status());
    if (round >= 0) all[1].ns.push_back(static_cast<double>(now_ns() - start_ns));
    EDDY_RETURN_IF_ERROR(meet_(kNap));
  }
  for (Samples& each : all) std::ranges::sort(each.ns);
  return all;
}

}  // namespace eddy
