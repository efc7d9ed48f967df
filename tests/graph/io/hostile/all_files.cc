#include "tests/graph/io/hostile/hostile_files.h"

namespace eddy::hostile {

HostileFiles all_files() {
  HostileFiles all;
  for (HostileFiles (*make)() :
       {wire_files, tensor_files, external_files, graph_files, operator_files, control_files}) {
    for (HostileFile& file : make()) all.push_back(std::move(file));
  }
  return all;
}

}  // namespace eddy::hostile
