// BorderReaders: which operators of a list read what stands outside it (operator_list.h), each
// thing once: who reads it twice alike, by whichever names, gets it once.
//
// What an operator reads and how its parts are cut is a BorderReading, kept in one place; a
// BorderReader, which goes from list to list outwards, borrows it.
//
// Errors: none. Threads: none. Cost: of add() O(log readers), and O(readings of the same thing by
// one operator).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/strategy/operator_list.h"

namespace eddy {

// How an operator reads a tensor from outside its list, or of a loop or branch of the list.
struct BorderReading {
  Dims shape;   // of the tensor; rank 0: not known
  Operator op;  // with this one input
  OperatorConfig config;
};

struct BorderReader {
  std::string from;
  const BorderReading* reading = nullptr;
  // By part: entries, of the list that the reader has come to, which wait for what is sent. One:
  // all parts are in that. Empty: none waits.
  std::vector<uint32_t> targets;

  uint32_t target(uint32_t part) const { return targets.size() == 1 ? targets[0] : targets[part]; }
};

class BorderReaders {
 public:
  // False where an equal one is there.
  bool add(BorderReader reader);
  // All are in one entry.
  void set_target(uint32_t entry);

  const std::vector<BorderReader>& all() const { return all_; }

 private:
  std::vector<BorderReader> all_;
  // By what is read and the operator's name, which borrows the reading's.
  std::map<std::pair<std::string, std::string_view>, std::vector<size_t>> by_ends_;
};

}  // namespace eddy
