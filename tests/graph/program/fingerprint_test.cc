// Claim: two programs have one fingerprint exactly when they are equal: whatever of one is changed,
// a number, a flag or a list's length, it has another.
#include "graph/program/fingerprint.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace eddy {
namespace {

// Each list has an element.
Program full_program() {
  Program program;
  program.blocks.push_back({.streams = {0, 1},
                            .num_events = 3,
                            .first_machine_event = 4,
                            .num_machine_events = 5,
                            .steps = {{Program::Op::kBegin, 0, 0}, {Program::Op::kEnd, 0, 0}}});
  program.launches.push_back({.node = 1,
                              .reads = {2},
                              .writes = {3},
                              .aliases = {{4, 5}},
                              .overwritable = 1,
                              .escapes = {6}});
  program.rows.push_back({0, 0});
  program.loops.push_back({.node = 1,
                           .before = 2,
                           .after = 3,
                           .reads = {4},
                           .enter = {{5, 6}},
                           .tested = {7},
                           .forward = {{8, 9}},
                           .rows = {10},
                           .advance = {{11, 12}},
                           .leave = {{13, 14}},
                           .stacks = {15}});
  program.cases.push_back({.node = 1,
                           .reads = {2},
                           .blocks = {3, 4},
                           .results = {{{5, 6}}, {{7, 8}}},
                           .pass_through = {{9, 10}}});
  program.memory.push_back({.arena = 0, .size_bytes = 64, .offsets_bytes = {0, 64}, .loop = 1});
  program.block_of_name = {0};
  program.results = {0};
  program.arena_sizes_bytes = {128};
  program.asynchronous_streams = {1};
  return program;
}

using Change = std::function<void(Program&)>;

template <typename T>
Change more(T Program::*list) {
  return [list](Program& p) { (p.*list).push_back((p.*list).back()); };
}
template <typename Element, typename T>
Change more(std::vector<Element> Program::*list, std::vector<T> Element::*inner) {
  return [list, inner](Program& p) { ((p.*list)[0].*inner).push_back(((p.*list)[0].*inner)[0]); };
}
template <typename Element, typename T>
Change other(std::vector<Element> Program::*list, T Element::*member) {
  return [list, member](Program& p) {
    T& it = (p.*list)[0].*member;
    it = static_cast<T>(it + 1);
  };
}
template <typename Element>
Change other(std::vector<Element> Program::*list, std::vector<uint32_t> Element::*inner) {
  return [list, inner](Program& p) { ++((p.*list)[0].*inner)[0]; };
}
template <typename Element>
std::vector<Change> others(std::vector<Element> Program::*list,
                           std::vector<Program::Alias> Element::*inner) {
  return {[list, inner](Program& p) { ++((p.*list)[0].*inner)[0].to; },
          [list, inner](Program& p) { ++((p.*list)[0].*inner)[0].from; }};
}

std::vector<Change> changes() {
  using P = Program;
  std::vector<Change> all = {
      more(&P::blocks), more(&P::launches), more(&P::rows), more(&P::loops), more(&P::cases),
      more(&P::memory), more(&P::block_of_name), more(&P::results), more(&P::arena_sizes_bytes),
      more(&P::asynchronous_streams), [](P& p) { ++p.block_of_name[0]; },
      [](P& p) { ++p.results[0]; }, [](P& p) { ++p.arena_sizes_bytes[0]; },
      [](P& p) { ++p.asynchronous_streams[0]; }, [](P& p) { ++p.rows[0].loop; },
      [](P& p) { ++p.rows[0].index; },
      // Blocks.
      more(&P::blocks, &P::Block::streams), more(&P::blocks, &P::Block::steps),
      other(&P::blocks, &P::Block::streams), other(&P::blocks, &P::Block::num_events),
      other(&P::blocks, &P::Block::first_machine_event),
      other(&P::blocks, &P::Block::num_machine_events),
      [](P& p) { p.blocks[0].steps[0].op = P::Op::kWait; },
      [](P& p) { ++p.blocks[0].steps[0].stream; }, [](P& p) { ++p.blocks[0].steps[0].operand; },
      [](P& p) { std::swap(p.blocks[0].steps[0], p.blocks[0].steps[1]); },
      // Launches.
      other(&P::launches, &P::Launch::node), other(&P::launches, &P::Launch::overwritable),
      other(&P::launches, &P::Launch::reads), other(&P::launches, &P::Launch::writes),
      other(&P::launches, &P::Launch::escapes), more(&P::launches, &P::Launch::aliases),
      // What is read is written instead.
      [](P& p) { std::swap(p.launches[0].reads, p.launches[0].escapes); },
      [](P& p) {
        p.launches[0].writes.push_back(p.launches[0].reads[0]);
        p.launches[0].reads.clear();
      },
      // Loops.
      other(&P::loops, &P::Loop::node), other(&P::loops, &P::Loop::before),
      other(&P::loops, &P::Loop::after), other(&P::loops, &P::Loop::is_pipelined),
      other(&P::loops, &P::Loop::reads), other(&P::loops, &P::Loop::tested),
      other(&P::loops, &P::Loop::rows), other(&P::loops, &P::Loop::stacks),
      // Cases.
      other(&P::cases, &P::Case::node), other(&P::cases, &P::Case::reads),
      other(&P::cases, &P::Case::blocks), other(&P::cases, &P::Case::may_run_none),
      more(&P::cases, &P::Case::results), [](P& p) { ++p.cases[0].results[1][0].to; },
      [](P& p) { ++p.cases[0].results[1][0].from; },
      // Memory.
      other(&P::memory, &P::Memory::arena), other(&P::memory, &P::Memory::size_bytes),
      other(&P::memory, &P::Memory::loop), [](P& p) { ++p.memory[0].offsets_bytes[1]; },
      more(&P::memory, &P::Memory::offsets_bytes)};
  const auto add = [&](const std::vector<Change>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  add(others(&P::launches, &P::Launch::aliases));
  add(others(&P::loops, &P::Loop::enter));
  add(others(&P::loops, &P::Loop::forward));
  add(others(&P::loops, &P::Loop::advance));
  add(others(&P::loops, &P::Loop::leave));
  add(others(&P::cases, &P::Case::pass_through));
  return all;
}

TEST(ProgramFingerprintTest, EqualProgramsHaveOne) {
  EXPECT_EQ(fingerprint(full_program()), fingerprint(full_program()));
  EXPECT_EQ(fingerprint(Program()), fingerprint(Program()));
}

TEST(ProgramFingerprintTest, WhateverIsChangedItIsAnother) {
  const std::vector<Change> all = changes();
  std::vector<Fingerprint> seen = {fingerprint(full_program()), fingerprint(Program())};
  for (size_t i = 0; i < all.size(); ++i) {
    Program changed = full_program();
    all[i](changed);
    seen.push_back(fingerprint(changed));
    for (size_t k = 0; k + 1 < seen.size(); ++k) {
      EXPECT_FALSE(seen[k] == seen.back()) << "change " << i << " beside " << k;
    }
  }
}

}  // namespace
}  // namespace eddy
