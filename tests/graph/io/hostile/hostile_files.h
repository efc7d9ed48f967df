// Hostile ONNX files: each holds one kind of false content, with the error that it must get.
//
// A file fails when it is read, when a session is made of it, or when that session runs; wherever
// it does, within a second of processor time and 256 MiB, with a message that describes the defect.
// Code makes the bytes, so that the tree holds no binary files and each defect can be read here;
// `write_hostile_files DIR` writes them out (for other programs, and as a corpus for fuzzers).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace eddy::hostile {

struct HostileFile {
  std::string name;   // unique: "loop_trip_int64_max"
  std::string bytes;  // of the model
  std::string says;   // part of the error's text
  // Puts other files into the model's folder; may be empty.
  std::function<void(const std::filesystem::path& folder)> prepare = {};
};

using HostileFiles = std::vector<HostileFile>;

// Everything below, in this order.
HostileFiles all_files();

HostileFiles wire_files();      // protobuf that is cut, nested, mistyped, or all messages
HostileFiles tensor_files();    // dimensions, sizes and encodings of constants
HostileFiles external_files();  // external data out of bounds, out of the folder, out of kind
HostileFiles graph_files();     // names, cycles, arities, attributes, types, functions
HostileFiles operator_files();  // operators given nonsense, and bombs of a hundred bytes
HostileFiles control_files();   // If, Loop, Scan, CaseOf: wrong arity, confused types, no end

}  // namespace eddy::hostile
