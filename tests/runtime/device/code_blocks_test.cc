// Claim: blocks read back from flat code do what the code does. Random programs come back as they
// were recorded; of spoilt code, whatever is not refused still runs as the code would, step by
// step, and what no recording makes is refused by its command.
//
// EDDY_CODE_SEEDS=N tries N programs.
#include "runtime/device/code_blocks.h"

#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

#include "graph/base/random.h"

namespace eddy {
namespace {

using Kind = CodeItem::Kind;
using Op = CommandCode::Op;

class Code : public CommandCode {
 public:
  void start(RunControl&) override {}
  void run_here(RunControl&) override {}
  StrandState strand_state(uint32_t) const override { return StrandState::kIdle; }
};

int32_t decide(void*) { return 0; }
uint64_t mixed(uint64_t seed, uint64_t with) { return Random(seed * 1'000'003 + with).next(); }

bool work(void*) { return true; }

// What a recording was asked for, as text; and what was read.
class Author {
 public:
  Author(Code& code, uint64_t seed) : code_(code), random_(seed) {}

  std::string run() {
    const auto num_events = random_.below(4);
    for (uint64_t i = 0; i < num_events; ++i) events_.push_back(code_.add_event());
    block(0);
    code_.finish();
    return text_;
  }

 private:
  void block(int depth) {
    const auto num_items = random_.below(depth == 0 ? 12 : 4);
    for (uint64_t i = 0; i < num_items; ++i) item(depth);
  }
  void item(int depth) {
    switch (random_.below(depth < 4 ? 7 : 4)) {
      case 0:
        text_ += "launch ";
        return code_.launch(work, nullptr);
      case 1:
        return event("reset ", &Code::reset);
      case 2:
        return event("record ", &Code::record);
      case 3:
        return event("wait ", &Code::wait);
      case 4:
        return loop(depth);
      case 5:
        return choice(depth);
      default:
        text_ += "fork" + std::to_string(num_forks_++) + "{ ";
        code_.begin_fork(CommandBuffer::kNewStream);
        block(depth + 1);
        code_.end_fork();
        text_ += "} ";
    }
  }
  void event(const char* name, void (CommandCode::*call)(uint32_t)) {
    if (events_.empty()) return;
    const uint32_t event = events_[random_.below(events_.size())];
    text_ += name + std::to_string(event) + " ";
    (code_.*call)(event);
  }
  void loop(int depth) {
    text_ += "while{ ";
    code_.begin_while();
    block(depth + 1);
    const auto num_tests = 1 + random_.below(2);
    for (uint64_t i = 0; i < num_tests; ++i) {
      text_ += "test ";
      code_.test_while(decide, nullptr);
      block(depth + 1);
    }
    code_.end_while();
    text_ += "} ";
  }
  void choice(int depth) {
    const auto num_branches = static_cast<uint32_t>(1 + random_.below(3));
    text_ += "case{ ";
    code_.begin_case(decide, nullptr, num_branches);
    for (uint32_t i = 0; i < num_branches; ++i) {
      text_ += "branch ";
      code_.begin_branch();
      block(depth + 1);
    }
    code_.end_case();
    text_ += "} ";
  }

  Code& code_;
  Random random_;
  std::vector<uint32_t> events_;
  uint32_t num_forks_ = 1;  // the main strand is 0
  std::string text_;
};

std::string text_of(const CodeBlock& block) {
  static const char* const kNames[] = {"launch ", "reset ", "record ", "wait "};
  std::string text;
  for (const CodeItem& item : block) {
    switch (item.kind) {
      case Kind::kLaunch:
        text += kNames[0];
        break;
      case Kind::kReset:
      case Kind::kRecord:
      case Kind::kWait:
        text += kNames[static_cast<int>(item.kind)] + std::to_string(item.id) + " ";
        break;
      case Kind::kFork:
        text += "fork" + std::to_string(item.id) + "{ " + text_of(item.blocks[0]) + "} ";
        break;
      case Kind::kWhile:
        text += "while{ " + text_of(item.blocks[0]);
        for (size_t i = 1; i < item.blocks.size(); ++i) text += "test " + text_of(item.blocks[i]);
        text += "} ";
        break;
      case Kind::kCase:
        text += "case{ ";
        for (const CodeBlock& branch : item.blocks) text += "branch " + text_of(branch);
        text += "} ";
        break;
    }
  }
  return text;
}

// Decides by command and by how often it was asked. A forked strand runs where it is forked.
class Runner {
 public:
  Runner(const CommandCode::View& view, uint64_t seed) : view_(view), seed_(seed) {}

  void flat(uint32_t at) {
    while (!is_over()) {
      const CommandCode::Command& command = view_.code.at(at);
      switch (command.op) {
        case Op::kEnd:
          return;
        case Op::kTest:
          at = leaves(at) ? command.target : at + 1;
          continue;
        case Op::kRepeat:
        case Op::kJump:
          at = command.target;
          continue;
        case Op::kSwitch:
          at = view_.targets.at(command.target + branch(at, num_branches[at]));
          continue;
        case Op::kFork:
          step(at, command.target);
          flat(view_.strand_entries.at(command.target));
          break;
        default:
          step(at, command.target);
      }
      ++at;
    }
  }

  void blocks(const CodeBlock& block) {
    for (const CodeItem& item : block) {
      if (is_over()) return;
      switch (item.kind) {
        case Kind::kWhile:
          loop(item);
          break;
        case Kind::kCase:
          blocks(item.blocks[branch(item.command, static_cast<uint32_t>(item.blocks.size()))]);
          break;
        case Kind::kFork:
          step(item.command, item.id);
          blocks(item.blocks[0]);
          break;
        default:
          step(item.command, item.id);
      }
    }
  }

  std::map<uint32_t, uint32_t> num_branches;  // by switch, for flat()
  std::vector<uint64_t> steps;

 private:
  static constexpr size_t kMaxSteps = 400;

  void loop(const CodeItem& item) {
    while (!is_over()) {
      for (size_t i = 0; i < item.blocks.size(); ++i) {
        blocks(item.blocks[i]);
        if (i < item.tests.size() && leaves(item.tests[i])) return;
      }
    }
  }
  bool is_over() const { return steps.size() >= kMaxSteps; }
  void step(uint32_t at, uint64_t what) {
    if (!is_over()) steps.push_back(uint64_t{at} << 32 | what);
  }
  uint64_t draw(uint32_t at) {
    const uint64_t drawn = mixed(mixed(seed_, at), num_asked_[at]++);
    step(at, drawn % 1000);
    return drawn;
  }
  bool leaves(uint32_t at) { return draw(at) % 3 == 0; }
  uint32_t branch(uint32_t at, uint32_t among) { return static_cast<uint32_t>(draw(at) % among); }

  const CommandCode::View& view_;
  uint64_t seed_;
  std::map<uint32_t, uint64_t> num_asked_;
};

void note_branches(const CodeBlock& block, std::map<uint32_t, uint32_t>& num_branches) {
  for (const CodeItem& item : block) {
    if (item.kind == Kind::kCase) {
      num_branches[item.command] = static_cast<uint32_t>(item.blocks.size());
    }
    for (const CodeBlock& inner : item.blocks) note_branches(inner, num_branches);
  }
}

void expect_same_steps(const CommandCode::View& view, const CodeBlock& root, uint64_t seed) {
  for (uint64_t way = 0; way < 3; ++way) {
    Runner flat(view, mixed(seed, way));
    Runner nested(view, mixed(seed, way));
    note_branches(root, flat.num_branches);
    flat.flat(0);
    nested.blocks(root);
    ASSERT_EQ(flat.steps, nested.steps) << "seed " << seed;
  }
}

uint64_t num_seeds() {
  const char* text = std::getenv("EDDY_CODE_SEEDS");
  return text == nullptr ? 2000 : std::strtoull(text, nullptr, 10);
}

TEST(code_blocks, random_programs_come_back_as_they_were_recorded) {
  for (uint64_t seed = 0; seed < num_seeds(); ++seed) {
    Code code;
    const std::string asked = Author(code, seed).run();
    const auto read = read_blocks(code.view());
    ASSERT_TRUE(read.is_ok()) << "seed " << seed << ": " << read.status().message();
    ASSERT_EQ(text_of(*read), asked) << "seed " << seed;
    expect_same_steps(code.view(), *read, seed);
  }
}

// A view of its own, to spoil.
struct Copy {
  explicit Copy(const CommandCode::View& view)
      : code(view.code),
        targets(view.targets),
        entries(view.strand_entries),
        streams(view.strand_streams),
        num_events(view.num_events) {}

  CommandCode::View view() const { return {code, targets, entries, streams, num_events}; }

  void spoil(Random& random) {
    const auto near = [&](uint32_t value) {
      if (random.below(8) == 0) return static_cast<uint32_t>(random.below(uint64_t{1} << 32));
      return value + static_cast<uint32_t>(random.below(7)) - 3;
    };
    CommandCode::Command& command = code[random.below(code.size())];
    switch (random.below(5)) {
      case 0:
        command.op = static_cast<Op>(random.below(static_cast<uint64_t>(Op::kEnd) + 1));
        break;
      case 1:
        if (targets.empty()) return;
        [[fallthrough]];
      case 2: {
        uint32_t& target = random.below(2) == 0 && !targets.empty()
                               ? targets[random.below(targets.size())]
                               : command.target;
        target = near(target);
        break;
      }
      case 3:
        entries[random.below(entries.size())] = near(static_cast<uint32_t>(random.below(9)));
        break;
      default:
        if (code.size() > 1)
          code.erase(code.begin() + static_cast<long>(random.below(code.size())));
    }
  }

  std::vector<CommandCode::Command> code;
  std::vector<uint32_t> targets, entries, streams;
  uint32_t num_events;
};

TEST(code_blocks, spoilt_code_is_refused_or_read_as_it_would_run) {
  uint64_t num_refused = 0;
  uint64_t num_read = 0;
  for (uint64_t seed = 0; seed < num_seeds(); ++seed) {
    Code code;
    Author(code, seed).run();
    Random random(mixed(seed, 77));
    for (int trial = 0; trial < 8; ++trial) {
      Copy copy(code.view());
      for (uint64_t n = random.below(3); n < 3; ++n) copy.spoil(random);
      const auto read = read_blocks(copy.view());
      ++(read.is_ok() ? num_read : num_refused);
      if (read.is_ok()) {
        expect_same_steps(copy.view(), *read, seed);
      } else {
        ASSERT_EQ(read.status().code(), StatusCode::kInternal);
      }
    }
  }
  EXPECT_GT(num_refused, num_read / 10) << "the spoiling spoils";
  EXPECT_GT(num_read, num_refused / 10) << "and is not only gross";
}

TEST(code_blocks, what_no_recording_makes_is_refused_by_its_command) {
  const auto refused = [](auto record, auto spoil) {
    Code code;
    record(code);
    code.finish();
    Copy copy(code.view());
    spoil(copy);
    const auto read = read_blocks(copy.view());
    return read.is_ok() ? "read" : read.status().message();
  };
  const auto launches = [](Code& code) {
    for (int i = 0; i < 3; ++i) code.launch(work, nullptr);
  };
  const auto loop = [&](Code& code) {
    code.begin_while();
    code.test_while(decide, nullptr);
    launches(code);
    code.end_while();
  };
  EXPECT_EQ(refused(launches, [](Copy& copy) { copy.code.pop_back(); }),
            "command 3 of a command buffer has no end");
  EXPECT_EQ(refused(launches, [](Copy& copy) { copy.code[1].op = Op::kJump; }),
            "command 1 of a command buffer is a jump that belongs to no while, case or fork");
  EXPECT_EQ(refused(launches, [](Copy& copy) { copy.code[1].op = Op::kWait; }),
            "command 1 of a command buffer names an event that is not there");
  EXPECT_EQ(refused(loop, [](Copy& copy) { copy.code[0].target = 2; }),
            "command 4 of a command buffer repeats for ever");
  const auto forked = [&](Code& code) {
    code.begin_fork(CommandBuffer::kNewStream);
    launches(code);
    code.end_fork();
  };
  EXPECT_EQ(refused(forked, [](Copy& copy) { copy.entries[1] = 3; }),
            "command 0 of a command buffer forks a strand that does not stand behind it");
  const auto choice = [&](Code& code) {
    code.begin_case(decide, nullptr, 2);
    for (int i = 0; i < 2; ++i) {
      code.begin_branch();
      launches(code);
    }
    code.end_case();
  };
  EXPECT_EQ(refused(choice, [](Copy& copy) { copy.code[4].target = 6; }),
            "command 4 of a command buffer does not leave its branch");
  EXPECT_EQ(refused(choice, [](Copy& copy) { copy.targets.back() = 50; }),
            "command 0 of a command buffer branches out of its block");
}

}  // namespace
}  // namespace eddy
