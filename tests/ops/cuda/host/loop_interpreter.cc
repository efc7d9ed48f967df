#include "tests/ops/cuda/host/loop_interpreter.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sstream>

#include "ops/cuda/names/element_types.h"
#include "ops/cuda/text/persistent_text.h"

namespace eddy::testing {
namespace {

std::vector<uint32_t> read_numbers(std::istringstream& words) {
  std::vector<uint32_t> numbers;
  for (uint32_t number; words >> number;) numbers.push_back(number);
  return numbers;
}

// "5 of 1 2 = Add_f32 0 1", "6 of 5 = ReduceSum over 1".
Result<LoopProgram::Step> read_step(const std::string& line) {
  const size_t of = line.find(" of"), is = line.find(" = ");
  if (of == std::string::npos || is == std::string::npos) return invalid_argument("no step");
  LoopProgram::Step step;
  step.result = static_cast<uint32_t>(std::stoul(line));
  std::istringstream arguments(line.substr(of + 3, is - of - 3));
  step.arguments = read_numbers(arguments);
  const std::string what = line.substr(is + 3);
  const size_t over = what.find(" over ");
  if (over != std::string::npos) {
    step.reduction = what.substr(0, over);
    step.axes = static_cast<uint32_t>(std::stoul(what.substr(over + 6)));
    return step;
  }
  EDDY_ASSIGN_OR_RETURN(step.expression,
                        parse_expression(what, static_cast<uint32_t>(step.arguments.size())));
  return step;
}

Status read_line(const std::string& kind, const std::string& rest, LoopProgram& program) {
  std::istringstream words(rest);
  std::string word;
  if (kind == "loop") {
    int64_t iteration = 0;
    words >> word >> program.num_inputs >> word >> program.num_given >> word >> iteration >> word >>
        program.predicate;
    program.iteration = static_cast<uint32_t>(iteration);
  } else if (kind == "value") {
    LoopProgram::Value value;
    words >> word >> value.memory;
    value.element = cuda::element_type_of(word);
    for (int64_t dim; words >> dim;) value.dims.push_back(dim);
    program.values.push_back(value);
  } else if (kind == "carried") {
    const std::vector<uint32_t> numbers = read_numbers(words);
    if (numbers.size() != 3) return invalid_argument("carried: " + rest);
    program.carried.push_back({numbers[0], numbers[1], numbers[2]});
  } else if (kind == "results") {
    program.results = read_numbers(words);
  } else {
    EDDY_ASSIGN_OR_RETURN(LoopProgram::Step step, read_step(rest));
    (kind == "before" ? program.before : program.after).push_back(std::move(step));
  }
  return Status::ok();
}

}  // namespace

Result<LoopInterpreter> LoopInterpreter::read(const std::string& text, RowKernel run_rows) {
  LoopProgram program;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with("// ");) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) return invalid_argument("no line of a loop: " + line);
    EDDY_RETURN_IF_ERROR(read_line(line.substr(3, colon - 3), line.substr(colon + 1), program));
  }
  EDDY_ASSIGN_OR_RETURN(const cuda::KernelSource source, cuda::persistent_kernel_source(program));
  if (source.text != text) return invalid_argument("the source is not that of its loop");
  return LoopInterpreter(std::move(program), std::move(run_rows));
}

size_t LoopInterpreter::size_bytes(uint32_t value) const {
  const LoopProgram::Value& of = program_.values[value];
  return static_cast<size_t>(*of.dims.count()) * element_size_bytes(of.element);
}

const std::byte* LoopInterpreter::data(const cuda::LoopParams& params, const Memory& memory,
                                       uint32_t value) const {
  const uint32_t at = program_.values[value].memory;
  return at < program_.num_inputs ? static_cast<const std::byte*>(params.in[at])
                                  : memory[at].data();
}

void LoopInterpreter::run_step(const LoopProgram::Step& step, const cuda::LoopParams& params,
                               Memory& memory) const {
  if (!step.reduction.empty()) return reduce(step, params, memory);
  std::vector<ElementType> types;
  for (const uint32_t argument : step.arguments) {
    types.push_back(program_.values[argument].element);
  }
  const LoopProgram::Value& result = program_.values[step.result];
  const FusedInterpreter elements(step.expression, types, {result.element});
  for (int64_t i = 0; i < *result.dims.count(); ++i) {
    std::vector<const void*> inputs;
    for (const uint32_t argument : step.arguments) {
      const LoopProgram::Value& from = program_.values[argument];
      int64_t rest = i, place = 0, stride = 1;
      for (int d = result.dims.rank() - 1; d >= 0; --d) {
        const int axis = d - (result.dims.rank() - from.dims.rank());
        const int64_t size = axis >= 0 ? from.dims[axis] : 1;
        place += (size == 1 ? 0 : rest % result.dims[d]) * stride;
        stride *= size;
        rest /= result.dims[d];
      }
      inputs.push_back(data(params, memory, argument) +
                       static_cast<size_t>(place) * element_size_bytes(from.element));
    }
    void* const made =
        memory[step.result].data() + static_cast<size_t>(i) * element_size_bytes(result.element);
    elements.run_element(inputs.data(), &made);
  }
}

void LoopInterpreter::reduce(const LoopProgram::Step& step, const cuda::LoopParams& params,
                             Memory& memory) const {
  const uint32_t from = step.arguments[0];
  const Dims& dims = program_.values[from].dims;
  cuda::RowParams rows{};
  rows.in = data(params, memory, from);
  rows.out = memory[step.result].data();
  rows.count = rows.length = 1;
  int64_t stride = *dims.count();
  for (int d = 0; d < dims.rank(); ++d) {
    stride /= dims[d];
    const auto size = static_cast<uint64_t>(dims[d]);
    if ((step.axes >> d & 1) != 0) {
      rows.reduced_dims[rows.num_reduced] = size;
      rows.reduced_strides[rows.num_reduced++] = stride;
      rows.length *= size;
    } else {
      rows.kept_dims[rows.num_kept] = size;
      rows.kept_strides[rows.num_kept++] = stride;
      rows.count *= size;
    }
  }
  run_rows_(step.reduction + "_" + std::string(cuda::type_suffix(program_.values[from].element)),
            rows);
}

void LoopInterpreter::run(const cuda::LoopParams& params, const NextRound& next_round) const {
  Memory memory(program_.values.size());
  for (uint32_t v = program_.num_inputs; v < memory.size(); ++v) memory[v].resize(size_bytes(v));
  for (uint32_t g = 0; g < program_.num_given; ++g) {
    memory[program_.num_inputs + g][0] = static_cast<std::byte>(params.given >> g & 1);
  }
  for (const auto& each : program_.carried) {
    std::memcpy(memory[each.parameter].data(), data(params, memory, each.initial),
                size_bytes(each.parameter));
  }
  for (int64_t count = 0;; ++count) {
    std::atomic_ref(const_cast<int64_t&>(params.progress[0])).store(count);
    if (program_.iteration != LoopProgram::kNone) {
      std::memcpy(memory[program_.iteration].data(), &count, sizeof(count));
    }
    if (next_round && !next_round()) return;
    for (const auto& step : program_.before) run_step(step, params, memory);
    const bool is_stopped =
        std::atomic_ref(const_cast<uint32_t&>(*params.stop)).load(std::memory_order_acquire) != 0;
    const bool predicate = data(params, memory, program_.predicate)[0] != std::byte{0};
    if (is_stopped || count >= params.limit || !predicate) break;
    for (const auto& step : program_.after) run_step(step, params, memory);
    const Memory last = memory;
    for (const auto& each : program_.carried) {
      std::memcpy(memory[each.parameter].data(), data(params, last, each.next),
                  size_bytes(each.parameter));
    }
  }
  for (size_t r = 0; r < program_.results.size(); ++r) {
    std::memcpy(params.out[r], data(params, memory, program_.results[r]),
                size_bytes(program_.results[r]));
  }
  std::atomic_ref(const_cast<int64_t&>(params.progress[1])).store(1, std::memory_order_release);
}

}  // namespace eddy::testing
