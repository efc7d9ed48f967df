#include "ops/cuda/text/persistent_text.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "graph/base/fingerprint.h"
#include "ops/cuda/device/params.h"
#include "ops/cuda/names/element_types.h"
#include "ops/cuda/names/kernel_list.h"

namespace eddy::cuda {
namespace {

using Step = LoopProgram::Step;

uint64_t count_of(const Dims& dims) { return static_cast<uint64_t>(dims.count().value_or(0)); }

bool has_row_kernel(std::string_view name) {
#define EDDY_IS_REDUCE(op, type) || name == #op "_" #type
#define EDDY_IS_EXTREME EDDY_IS_REDUCE
#define EDDY_IS_ARG(op, type)
#define EDDY_IS_SOFTMAX(op, type)
  return false EDDY_CUDA_ROWS(EDDY_IS);
}

// Rows of an argument as RowParams has them, axes of one kind that stand side by side merged.
struct Rows {
  uint64_t count = 1, length = 1;
  struct Axis {
    uint64_t size;
    int64_t stride;
  };
  std::vector<Axis> kept, reduced;

  Rows(const Dims& dims, uint32_t axes) {
    int64_t stride = 1;
    bool was_reduced = false;
    for (int d = dims.rank() - 1; d >= 0; --d) {
      if (dims[d] == 1) continue;
      const bool is_reduced = (axes >> d & 1) != 0;
      std::vector<Axis>& to = is_reduced ? reduced : kept;
      const auto size = static_cast<uint64_t>(dims[d]);
      if (!to.empty() && is_reduced == was_reduced) {
        to.front().size *= size;
      } else {
        to.insert(to.begin(), {size, stride});
      }
      (is_reduced ? length : count) *= size;
      was_reduced = is_reduced;
      stride *= dims[d];
    }
  }
};

class Writer {
 public:
  explicit Writer(const LoopProgram& program) : program_(program) {}

  Result<std::string> body() {
    EDDY_RETURN_IF_ERROR(check_values());
    EDDY_RETURN_IF_ERROR(steps("before", program_.before));
    EDDY_RETURN_IF_ERROR(steps("after", program_.after));
    copies();
    return "struct Body {\n  struct Memory {\n" + members() +
           "  };\n  union Scratch {\n    int none;\n" + scratch_ + "  };\n" + functions_ + phases_ +
           "  EDDY_HD static bool goes_on([[maybe_unused]] const LoopParams& p, [[maybe_unused]] "
           "const "
           "Memory& m) {\n    return " +
           array(program_.predicate) +
           "[0];\n  }\n  EDDY_HD static void count([[maybe_unused]] Memory& m, [[maybe_unused]] "
           "int64_t number) {" +
           (program_.iteration == LoopProgram::kNone
                ? ""
                : " m.v" + std::to_string(program_.iteration) + "[0] = number; ") +
           "}\n};\n";
  }

 private:
  static constexpr const char* kPhaseArguments =
      "([[maybe_unused]] const LoopParams& p, [[maybe_unused]] const Block& block, "
      "[[maybe_unused]] Memory& m";

  uint32_t memory(uint32_t value) const { return program_.values[value].memory; }
  bool is_input(uint32_t value) const { return memory(value) < program_.num_inputs; }
  std::string type(uint32_t value) const {
    return std::string(type_suffix(program_.values[value].element));
  }
  // "m.v7", "input<f32>(p, 2)".
  std::string array(uint32_t value) const {
    const std::string number = std::to_string(memory(value));
    return is_input(value) ? "input<" + type(value) + ">(p, " + number + ")" : "m.v" + number;
  }

  Status check_values() const {
    for (const LoopProgram::Value& value : program_.values) {
      if (type_suffix(value.element).empty()) {
        return unsupported("no kernel of ours has " +
                           std::string(element_type_name(value.element)));
      }
      const uint64_t count = count_of(value.dims);
      if (count == 0) return unsupported("a value has no elements");
      if (count > kMostLoopElements) {
        return unsupported("a value has " + std::to_string(count) + " elements, a block takes " +
                           std::to_string(kMostLoopElements));
      }
    }
    if (loop_memory_bytes(program_) > kMostLoopBytes) {
      return unsupported("its values take " + std::to_string(loop_memory_bytes(program_)) +
                         " bytes, a block has " + std::to_string(kMostLoopBytes));
    }
    const bool fits = program_.num_inputs <= kMaxLoopInputs && program_.num_given <= 64 &&
                      program_.results.size() <= kMaxLoopOutputs;
    return fits ? Status::ok() : unsupported("it has more inputs or results than a kernel takes");
  }

  std::string members() const {
    std::string text;
    for (uint32_t v = program_.num_inputs; v < program_.values.size(); ++v) {
      if (memory(v) != v) continue;
      text += "    " + type(v) + " v" + std::to_string(v) + "[" +
              std::to_string(count_of(program_.values[v].dims)) + "];\n";
    }
    return text;
  }

  // ------------------------------------------------------------ phases

  void open_phase(uint64_t count) {
    phases_ +=
        "    block.each([&](int thread) {\n      for (uint64_t i = static_cast<uint64_t>("
        "thread); i < " +
        std::to_string(count) + "; i += kBlockThreads) {\n";
    open_count_ = count;
  }
  void close_phase() {
    if (open_count_ == 0) return;
    phases_ += "      }\n    });\n";
    open_count_ = 0;
    written_.clear();
  }

  Status steps(const std::string& name, const std::vector<Step>& steps) {
    phases_ += "  EDDY_HD static void " + name + kPhaseArguments +
               ", [[maybe_unused]] Scratch& scratch) {\n";
    for (const Step& step : steps) {
      EDDY_RETURN_IF_ERROR(step.reduction.empty() ? elementwise(step) : reduce(step));
    }
    close_phase();
    phases_ += "  }\n";
    return Status::ok();
  }

  Status elementwise(const Step& step) {
    std::vector<ElementType> types;
    for (uint32_t argument : step.arguments) types.push_back(program_.values[argument].element);
    const std::string function = "step" + std::to_string(step.result);
    EDDY_ASSIGN_OR_RETURN(std::string text,
                          expression_function(function, step.expression, types,
                                              {&program_.values[step.result].element, 1}));
    functions_ += text;
    const uint64_t count = count_of(program_.values[step.result].dims);
    // What another thread has written in this phase may not be there yet.
    const bool is_apart = std::ranges::any_of(step.arguments, [&](uint32_t argument) {
      return written_.count(memory(argument)) != 0 && place(argument, step.result) != "i";
    });
    if (open_count_ != count || is_apart) {
      close_phase();
      open_phase(count);
    }
    std::string call = "        " + function + "(";
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const uint32_t argument = step.arguments[i];
      call += array(argument) + "[" + place(argument, step.result) + "], ";
    }
    phases_ += call + "m.v" + std::to_string(step.result) + "[i]);\n";
    written_.insert(step.result);
    return Status::ok();
  }

  // Where element i of the result finds its element of the argument: "i", "0", or a sum over axes.
  std::string place(uint32_t argument, uint32_t result) const {
    const Dims& from = program_.values[argument].dims;
    const Dims& to = program_.values[result].dims;
    if (count_of(from) == 1) return "0";
    if (count_of(from) == count_of(to)) return "i";
    std::string text;
    uint64_t below = 1;  // elements of the result below the axis
    uint64_t stride = 1;
    for (int d = to.rank() - 1; d >= 0; --d) {
      const int axis = d - (to.rank() - from.rank());
      const int64_t size = axis >= 0 ? from[axis] : 1;
      if (size > 1) {
        const std::string at = "i / " + std::to_string(below) + " % " + std::to_string(size);
        text += (text.empty() ? "" : " + ") + ("(" + at + ") * ") + std::to_string(stride);
      }
      stride *= static_cast<uint64_t>(size);
      below *= static_cast<uint64_t>(to[d]);
    }
    return text;
  }

  Status reduce(const Step& step) {
    const uint32_t from = step.arguments[0];
    const std::string kernel = step.reduction + "_" + type(from);
    const bool has_other_bits = step.reduction == "ReduceLogSum" ||
                                (type(from) == "f64" && (step.reduction == "ReduceL2" ||
                                                         step.reduction == "ReduceSumSquare"));
    if (!has_row_kernel(kernel) || has_other_bits) {
      return unsupported(kernel + " is not done in a persistent loop");
    }
    close_phase();
    const Rows rows(program_.values[from].dims, step.axes);
    const std::string row = "r" + std::to_string(step.result);
    phases_ += "    RowParams " + row + "{};\n    " + row + ".out = m.v" +
               std::to_string(step.result) + ";\n    " + row + ".in = " + array(from) + ";\n    " +
               row + ".count = " + std::to_string(rows.count) + ";\n    " + row +
               ".length = " + std::to_string(rows.length) + ";\n";
    add_axes(row, "kept", rows.kept);
    add_axes(row, "reduced", rows.reduced);
    const bool is_extreme = step.reduction == "ReduceMax" || step.reduction == "ReduceMin";
    const std::string of = "<" + step.reduction + ", " + type(from) + ">";
    if (rows.length < kMiddlingRow) {
      phases_ += std::string("    block.each([&](int thread) { ") +
                 (is_extreme ? "run_extreme" : "run_reduce") + of + "(" + row +
                 ", static_cast<uint64_t>(thread), kBlockThreads); });\n";
      return Status::ok();
    }
    const std::string body = std::string(rows.length < kLongRow ? "Warp" : "Block") +
                             (is_extreme ? "Most" : "Reduce") + of;
    const std::string member = "s" + std::to_string(step.result);
    scratch_ += "    typename " + body + "::Shared " + member + ";\n";
    phases_ += "    " + body + "::run(" + row + ", block, scratch." + member + ");\n";
    return Status::ok();
  }

  void add_axes(const std::string& row, const std::string& kind,
                const std::vector<Rows::Axis>& axes) {
    phases_ += "    " + row + ".num_" + kind + " = " + std::to_string(axes.size()) + ";\n";
    for (size_t i = 0; i < axes.size(); ++i) {
      const std::string at = "[" + std::to_string(i) + "] = ";
      phases_ += "    " + row + "." + kind + "_dims" + at + std::to_string(axes[i].size) +
                 ";\n    " + row + "." + kind + "_strides" + at + std::to_string(axes[i].stride) +
                 ";\n";
    }
  }

  // ------------------------------------------------------------ copies

  void copy(const std::string& to, const std::string& from, uint64_t count) {
    phases_ += "      for (uint64_t i = static_cast<uint64_t>(thread); i < " +
               std::to_string(count) + "; i += kBlockThreads) " + to + "[i] = " + from + "[i];\n";
  }
  void phase(const std::function<void()>& write) {
    const std::string before = std::exchange(phases_, "");
    write();
    if (!phases_.empty()) phases_ = "    block.each([&](int thread) {\n" + phases_ + "    });\n";
    phases_ = before + phases_;
  }
  uint64_t size(uint32_t value) const { return count_of(program_.values[value].dims); }

  void copies() {
    phases_ += std::string("  EDDY_HD static void enter") + kPhaseArguments + ") {\n";
    phase([&] {
      for (uint32_t g = 0; g < program_.num_given; ++g) {
        phases_ += "      if (thread == 0) m.v" + std::to_string(program_.num_inputs + g) +
                   "[0] = (p.given >> " + std::to_string(g) + " & 1) != 0;\n";
      }
    });
    phase([&] {
      for (const auto& each : program_.carried) {
        copy(array(each.parameter), array(each.initial), size(each.parameter));
      }
    });
    phases_ += "  }\n";
    advance();
    phases_ += std::string("  EDDY_HD static void leave") + kPhaseArguments + ") {\n";
    phase([&] {
      for (size_t r = 0; r < program_.results.size(); ++r) {
        const uint32_t value = program_.results[r];
        copy("static_cast<" + type(value) + "*>(p.out[" + std::to_string(r) + "])", array(value),
             size(value));
      }
    });
    phases_ += "  }\n";
  }

  // All at once: a next value that is itself carried is kept by its thread, element for element,
  // until all have read.
  void advance() {
    std::set<uint32_t> parameters;
    for (const auto& each : program_.carried) parameters.insert(memory(each.parameter));
    const auto is_moved = [&](const LoopProgram::Carried& each) {
      return memory(each.next) != memory(each.parameter);
    };
    const auto is_round = [&](const LoopProgram::Carried& each) {
      return is_moved(each) && parameters.count(memory(each.next)) != 0;
    };
    phases_ += std::string("  EDDY_HD static void advance") + kPhaseArguments + ") {\n";
    for (const auto& each : program_.carried) {
      if (!is_round(each)) continue;
      phases_ += "    PerThread<" + type(each.parameter) + "[" +
                 std::to_string((size(each.parameter) + kBlockThreads - 1) / kBlockThreads) +
                 "]> k" + std::to_string(each.parameter) + ";\n";
    }
    const auto kept = [&](const LoopProgram::Carried& each, bool is_read) {
      const std::string slot = "k" + std::to_string(each.parameter) + "[thread][i / kBlockThreads]";
      phases_ += "      for (uint64_t i = static_cast<uint64_t>(thread); i < " +
                 std::to_string(size(each.parameter)) + "; i += kBlockThreads) " +
                 (is_read ? slot + " = " + array(each.next) + "[i];\n"
                          : array(each.parameter) + "[i] = " + slot + ";\n");
    };
    phase([&] {
      for (const auto& each : program_.carried) {
        if (is_round(each)) kept(each, true);
      }
    });
    phase([&] {
      for (const auto& each : program_.carried) {
        if (is_round(each)) kept(each, false);
        if (is_moved(each) && !is_round(each)) {
          copy(array(each.parameter), array(each.next), size(each.parameter));
        }
      }
    });
    phases_ += "  }\n";
  }

  const LoopProgram& program_;
  std::string scratch_;    // members for reductions of rows that are not short
  std::string functions_;  // of the steps' expressions
  std::string phases_;
  uint64_t open_count_ = 0;     // of the phase that steps may join; 0: none
  std::set<uint32_t> written_;  // in it
};

// The program as text, for people and for tests that run it without a compiler.
std::string program_text(const LoopProgram& program) {
  std::string text = "// loop: inputs " + std::to_string(program.num_inputs) + " given " +
                     std::to_string(program.num_given) + " iteration " +
                     std::to_string(static_cast<int32_t>(program.iteration)) + " predicate " +
                     std::to_string(program.predicate) + "\n";
  for (const auto& value : program.values) {
    text +=
        "// value: " + std::string(type_suffix(value.element)) + " " + std::to_string(value.memory);
    for (const int64_t dim : value.dims) text += " " + std::to_string(dim);
    text += "\n";
  }
  for (const auto& each : program.carried) {
    text += "// carried: " + std::to_string(each.parameter) + " " + std::to_string(each.initial) +
            " " + std::to_string(each.next) + "\n";
  }
  const auto add_steps = [&](const char* name, const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      text += std::string("// ") + name + ": " + std::to_string(step.result) + " of";
      for (const uint32_t argument : step.arguments) text += " " + std::to_string(argument);
      text += " = " +
              (step.reduction.empty() ? step.expression.text()
                                      : step.reduction + " over " + std::to_string(step.axes)) +
              "\n";
    }
  };
  add_steps("before", program.before);
  add_steps("after", program.after);
  text += "// results:";
  for (const uint32_t result : program.results) text += " " + std::to_string(result);
  return text + "\n";
}

}  // namespace

uint64_t loop_memory_bytes(const LoopProgram& program) {
  uint64_t bytes = 0;
  for (uint32_t v = program.num_inputs; v < program.values.size(); ++v) {
    const LoopProgram::Value& value = program.values[v];
    if (value.memory != v) continue;
    bytes += (count_of(value.dims) * element_size_bytes(value.element) + 7) / 8 * 8;
  }
  return bytes;
}

Result<KernelSource> persistent_kernel_source(const LoopProgram& program) {
  EDDY_ASSIGN_OR_RETURN(const std::string body, Writer(program).body());
  const std::string comment = program_text(program);
  Fingerprint fingerprint;
  fingerprint.add(comment);
  fingerprint.add(body);
  const std::string room = "persistent_" + fingerprint.text();
  KernelSource source;
  source.name = "eddy_" + room;
  source.text = comment +
                "#include \"ops/cuda/compiled/persistent_inl.h\"\n\nnamespace eddy::cuda::" + room +
                " {\n\n" + body + "\n}\n\nEDDY_PERSISTENT_KERNEL(" + source.name +
                ", eddy::cuda::" + room + "::Body)\n";
  return source;
}

}  // namespace eddy::cuda
