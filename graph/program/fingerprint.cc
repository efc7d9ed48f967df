#include "graph/program/fingerprint.h"

#include <type_traits>

namespace eddy {
namespace {

// One function for each type of the program's: a list is its size and its elements.
class Adder {
 public:
  void add(const Program& program) {
    add(program.blocks);
    add(program.launches);
    add(program.rows);
    add(program.loops);
    add(program.cases);
    add(program.memory);
    add(program.block_of_name);
    add(program.results);
    add(program.arena_sizes_bytes);
    add(program.asynchronous_streams);
  }
  const Fingerprint& result() const { return result_; }

 private:
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void add(T number) { result_.add(static_cast<uint64_t>(number)); }
  template <typename T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& each : list) add(each);
  }
  template <typename... Parts>
  void add_all(const Parts&... parts) {
    (add(parts), ...);
  }

  void add(const Program::Step& of) { add_all(of.op, of.stream, of.operand); }
  void add(const Program::Block& of) {
    add_all(of.streams, of.num_events, of.first_machine_event, of.num_machine_events, of.steps);
  }
  void add(const Program::Alias& of) { add_all(of.to, of.from); }
  void add(const Program::Launch& of) {
    add_all(of.node, of.reads, of.writes, of.aliases, of.overwritable, of.escapes);
  }
  void add(const Program::Loop& of) {
    add_all(of.node, of.before, of.after, of.reads, of.enter, of.tested, of.forward, of.rows,
            of.advance, of.leave, of.stacks, of.is_pipelined);
  }
  void add(const Program::Row& of) { add_all(of.loop, of.index); }
  void add(const Program::Case& of) {
    add_all(of.node, of.reads, of.blocks, of.results, of.pass_through, of.may_run_none);
  }
  void add(const Program::Memory& of) {
    add_all(of.arena, of.size_bytes, of.offsets_bytes, of.loop);
  }

  Fingerprint result_;
};

}  // namespace

Fingerprint fingerprint(const Program& program) {
  Adder adder;
  adder.add(program);
  return adder.result();
}

}  // namespace eddy
