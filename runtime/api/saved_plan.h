// Saved plans: what making a session of a model has decided and packed, in a file, so that a second
// process starts in a fraction of the time.
//
//   save_plan(library, graph, options, "decoder.plan");       once
//   Session::load(library, "decoder.plan", {});               as often as one likes
//
// In the file (plan_file.h): the graph as it runs, after all passes, with its constants; what
// kernels have packed of them; and what both depend on. A session of it reads no model, folds
// nothing and packs nothing: its constants and packings are the mapped file's bytes. Its results
// have the bits of a session of the model with the options that the plan was saved with, and so its
// fingerprint.
//
// The file is untrusted. Its graph goes through the importer and the builder, as any model does, so
// types are inferred anew, and has to have the fingerprint that was noted. The program is not in
// the file: planning and proving a graph takes a tenth of what is saved, fits this machine's
// workers, and what is made here needs no validator of its own. Large constants and packings are
// taken as they are, as a model's weights are: bytes that were changed there change results, and
// nothing else.
//
// Refused, with the reason (kUnsupported): another version of Eddy, another compiler, other kernels
// or vector instructions than the plan was saved for; options that would have made another graph,
// unless they are left as they are by default; devices beside the CPU, and ranks. kInvalidArgument:
// spoilt or cut off. Operators and host functions that the library lacks are named as for models.
//
// The file is mapped as long as the session lives and must not change meanwhile; saving replaces a
// file and leaves the old one to those that have it. Threads: any. Cost of saving: that of making
// the session once more, and the file; of loading: see graph/io/README.md, planning and binding.
#pragma once

#include <memory>
#include <string>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/api/library.h"
#include "runtime/api/session_options.h"

namespace eddy {

struct SessionCore;

// The plan of a session of this graph and options. The graph keeps no constants.
Status save_plan(const Library& library, Graph graph, const SessionOptions& options,
                 const std::string& path);

// Whether the plan was saved of this graph: kInvalidArgument, if the model has changed since.
Status check_plan_is_of(const std::string& path, const Graph& graph);

// For Session::load, where is_plan_file(path). Hooks of `options` that throw do so through it.
Result<std::unique_ptr<SessionCore>> load_plan_core(const Library& library, const std::string& path,
                                                    const SessionOptions& options);

}  // namespace eddy
