// Saved plans: what making a session of a model has decided and packed, in a file, so that a second
// process starts in a fraction of the time.
//
//   save_plan(library, graph, options, "decoder.plan");       once
//   Session::load(library, "decoder.plan", {});               as often as one likes; or its bytes
//
// In the file (plan_file.h): the graph as it runs, after all passes, with its constants, equal ones
// once; what kernels have packed of them; and what both depend on. A session of it reads no model,
// folds and packs nothing: its constants and packings are the mapped file's bytes. Its results
// have the bits of a session of the model with the options that the plan was saved with, and so its
// fingerprint.
//
// The file is untrusted. Its graph goes through the importer and the builder, as any model's, and
// has to have the fingerprint noted. No program is in it: the graph is planned here, which fits
// this machine's workers and needs no validator. It says which program was proved; an equal one is
// not proved again, so a file that lies about that can only hide a defect of Eddy's own planner.
// Large constants and packings are taken as a model's weights are: other bytes change results.
//
// Errors: kUnsupported where version, compiler, kernels or vector instructions are not those that
// the plan was saved for, for options that make another graph (defaults take the plan's), devices
// beside the CPU, and ranks; kInvalidArgument: spoilt or cut off. Operators and host functions that
// the library lacks are named as for models. Threads: any. The mapped file must not change while a
// session lives; saving replaces it and leaves the old one to those that have it. Cost: of saving,
// that of making the session once more; of loading, import_onnx()'s, planning and binding.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "graph/base/status.h"
#include "graph/io/import_options.h"
#include "graph/ir/graph.h"
#include "runtime/api/library.h"
#include "runtime/api/session_options.h"

namespace eddy {

struct SessionCore;

// The plan of a session of this graph and options. The graph keeps no constants. `notes`: what the
// saver wants to read again.
Status save_plan(const Library& library, Graph graph, const SessionOptions& options,
                 const std::string& path, std::string notes = {});

Result<std::string> read_plan_notes(const std::string& path);
Result<std::string> read_plan_notes(std::span<const std::byte> plan);

// Whether the plan was saved of this graph: kInvalidArgument, if the model has changed since.
Status check_plan_is_of(const std::string& path, const Graph& graph);

// The graph of a saved plan, for tools that look at one; options that say where data lie are the
// plan's.
Result<Graph> import_plan_graph(const Library& library, const std::string& path,
                                const ImportOptions& options = {});

// For Session::load, where is_plan_file(path), and load_bytes, which copies. Hooks of `options`
// that throw do so through it.
Result<std::unique_ptr<SessionCore>> load_plan_core(const Library& library, const std::string& path,
                                                    const SessionOptions& options);
Result<std::unique_ptr<SessionCore>> load_plan_core(const Library& library,
                                                    std::span<const std::byte> plan,
                                                    const SessionOptions& options);

}  // namespace eddy
