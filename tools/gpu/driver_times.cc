// Questions about what calls and words cost, and what waits for what.
#include <algorithm>
#include <thread>

#include "tools/gpu/driver_part.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Clock = DriverLab::Clock;
using cuda::ProbeOp;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}
CuDevicePointer address_of(const volatile void* word) {
  return reinterpret_cast<CuDevicePointer>(word);
}
uint64_t* result_in(volatile uint32_t* word) {
  return const_cast<uint64_t*>(reinterpret_cast<volatile uint64_t*>(word));
}

// A graph of one kernel that adds one to the word.
Result<CuGraphExec> graph_of_write(DriverLab& lab, volatile uint32_t* word) {
  EDDY_ASSIGN_OR_RETURN(const CuGraph graph, lab.graph());
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_RETURN_IF_ERROR(lab.begin_capture(stream, graph));
  EDDY_RETURN_IF_ERROR(lab.launch({.word = word}, stream));
  EDDY_RETURN_IF_ERROR(lab.end_capture(stream));
  return lab.executable(graph);
}

// ---------------------------------------------------------------- words

Status ask_reads(DriverLab& lab, Json& row) {
  constexpr uint64_t kReads = 1000;
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const on_host, lab.host_word());
  EDDY_ASSIGN_OR_RETURN(auto* const on_device, lab.device_word());
  EDDY_ASSIGN_OR_RETURN(auto* const result, lab.host_word());
  for (const auto& [name, word] :
       {std::pair{"ns_of_host_memory", on_host}, std::pair{"ns_of_device_memory", on_device}}) {
    for (int repeat = 0; repeat < 2; ++repeat) {  // the first loads the kernel
      EDDY_RETURN_IF_ERROR(lab.launch(
          {.op = ProbeOp::kRead, .word = word, .result = result_in(result), .most = kReads},
          stream));
      EDDY_RETURN_IF_ERROR(lab.finish(stream));
    }
    row[name] = static_cast<double>(*result_in(result)) / static_cast<double>(kReads);
  }
  return Status::ok();
}

// A spinning kernel in one stream, a word in device memory written by another one: by the call for
// words, or, where that does not take the memory of a pool (this is what it answers to be invalid),
// by a fill. Eddy's words of streams lie in host memory.
Status ask_device_word(DriverLab& lab, Json& row) {
  EDDY_ASSIGN_OR_RETURN(const CuStream spins, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(const CuStream writes, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const word, lab.device_word());
  EDDY_ASSIGN_OR_RETURN(auto* const result, lab.host_word());
  EDDY_RETURN_IF_ERROR(lab.launch(
      {.op = ProbeOp::kSpin, .word = word, .result = result_in(result), .most = 500'000'000},
      spins));
  const Clock::time_point start = Clock::now();
  const CuResult written =
      lab.api().stream_write_value32(writes, address_of(word), 1, kCuWriteValueDefault);
  const bool is_taken = written != CuResult::kInvalidValue;
  row["cuStreamWriteValue32_to_a_pools_memory"] = is_taken ? "taken" : "refused";
  if (is_taken) EDDY_RETURN_IF_ERROR(lab.check(written, "cuStreamWriteValue32"));
  if (!is_taken) {
    EDDY_RETURN_IF_ERROR(lab.check(lab.api().fill(address_of(word), 1, sizeof(uint32_t), writes),
                                   "cuMemsetD8Async"));
  }
  EDDY_RETURN_IF_ERROR(lab.finish(spins));
  row["us_to_the_end"] = us_since(start);
  if (*result_in(result) == 1) return Status::ok();
  return run_failed("a spinning kernel does not see what a stream writes to device memory");
}

// Neither behind a WHILE nor behind a copy may the word come first.
Status ask_early_words(DriverLab& lab, Json& row) {
  constexpr uint32_t kTries = 100, kRounds = 20;
  EDDY_ASSIGN_OR_RETURN(const CuGraph graph, lab.graph());
  EDDY_ASSIGN_OR_RETURN(const auto loop, lab.add_while(graph, nullptr));
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const counter, lab.device_word());
  EDDY_ASSIGN_OR_RETURN(auto* const copied, lab.host_word());
  EDDY_ASSIGN_OR_RETURN(auto* const total, lab.host_word());
  EDDY_ASSIGN_OR_RETURN(auto* const word, lab.host_word());
  EDDY_RETURN_IF_ERROR(lab.begin_capture(stream, loop.body));
  EDDY_RETURN_IF_ERROR(lab.launch({.word = total}, stream));
  EDDY_RETURN_IF_ERROR(lab.launch({.op = ProbeOp::kDecide,
                                   .most = kRounds,
                                   .handle = loop.handle,
                                   .counter = reinterpret_cast<int64_t*>(result_in(counter))},
                                  stream));
  EDDY_RETURN_IF_ERROR(lab.end_capture(stream));
  EDDY_ASSIGN_OR_RETURN(const CuGraphExec executable, lab.executable(graph));
  const CudaApi& api = lab.api();
  uint32_t num_early = 0;
  for (uint32_t i = 1; i <= kTries; ++i) {
    EDDY_RETURN_IF_ERROR(
        lab.check(api.fill(address_of(counter), 0, sizeof(int64_t), stream), "cuMemsetD8Async"));
    EDDY_RETURN_IF_ERROR(lab.check(api.graph_launch(executable, stream), "cuGraphLaunch"));
    EDDY_RETURN_IF_ERROR(
        lab.check(api.copy(address_of(copied), address_of(counter), sizeof(int64_t), stream),
                  "cuMemcpyAsync"));
    EDDY_RETURN_IF_ERROR(
        lab.check(api.stream_write_value32(stream, address_of(word), i, kCuWriteValueDefault),
                  "cuStreamWriteValue32"));
    EDDY_RETURN_IF_ERROR(lab.wait([&] { return DriverLab::seen(word) == i; }, "a written word"));
    const bool is_early =
        DriverLab::seen(total) != i * kRounds || DriverLab::seen(copied) != kRounds;
    num_early += is_early ? 1 : 0;
    DriverLab::tell(copied, 0);
  }
  row["tries"] = kTries;
  row["early"] = num_early;
  return num_early == 0 ? Status::ok() : run_failed("a word comes before what it stands behind");
}

// ---------------------------------------------------------------- calls

Status ask_calls(DriverLab& lab, Json& row) {
  constexpr int kCalls = 100;
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const on_device, lab.device_word());
  EDDY_ASSIGN_OR_RETURN(auto* const on_host, lab.host_word());
  EDDY_ASSIGN_OR_RETURN(const CuGraphExec executable, graph_of_write(lab, on_device));
  const CudaApi& api = lab.api();
  const std::pair<const char*, std::function<CuResult()>> calls[] = {
      {"us_of_cuGraphLaunch", [&] { return api.graph_launch(executable, stream); }},
      {"us_of_cuStreamWriteValue32",
       [&] {
         return api.stream_write_value32(stream, address_of(on_host), 1, kCuWriteValueDefault);
       }},
      {"us_of_cuStreamQuery",
       [&] {
         api.stream_query(stream);
         return CuResult::kSuccess;
       }},
      {"us_of_cuMemcpyAsync_8", [&] {
         return api.copy(address_of(on_device), address_of(on_host), sizeof(int64_t), stream);
       }}};
  for (const auto& [name, call] : calls) {
    std::vector<double> times_us;
    for (int i = 0; i < kCalls; ++i) {
      const Clock::time_point start = Clock::now();
      EDDY_RETURN_IF_ERROR(lab.check(call(), name));
      times_us.push_back(us_since(start));
    }
    EDDY_RETURN_IF_ERROR(lab.finish(stream));
    std::ranges::sort(times_us);
    row[name] = times_us[times_us.size() / 2];
  }
  return Status::ok();
}

// From the launch of one kernel until the host knows of its end, by each way to learn of it.
Status ask_ends(DriverLab& lab, Json& row) {
  constexpr uint32_t kTries = 50;
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const on_device, lab.device_word());
  EDDY_ASSIGN_OR_RETURN(auto* const by_kernel, lab.host_word());
  EDDY_ASSIGN_OR_RETURN(auto* const by_stream, lab.host_word());
  EDDY_ASSIGN_OR_RETURN(const CuGraphExec tells, graph_of_write(lab, by_kernel));
  EDDY_ASSIGN_OR_RETURN(const CuGraphExec is_told, graph_of_write(lab, on_device));
  const CudaApi& api = lab.api();
  CuEvent event = nullptr;
  EDDY_RETURN_IF_ERROR(lab.check(api.event_create(&event, kCuEventDisableTiming), "cuEventCreate"));
  struct Way {
    const char* name;
    std::function<CuResult(uint32_t)> issue;
    std::function<bool(uint32_t)> is_over;
  };
  const Way ways[] = {
      {"us_by_its_word", [&](uint32_t) { return api.graph_launch(tells, stream); },
       [&](uint32_t i) { return DriverLab::seen(by_kernel) == i; }},
      {"us_by_a_streams_word",
       [&](uint32_t i) {
         const CuResult result = api.graph_launch(is_told, stream);
         if (result != CuResult::kSuccess) return result;
         return api.stream_write_value32(stream, address_of(by_stream), i, kCuWriteValueDefault);
       },
       [&](uint32_t i) { return DriverLab::seen(by_stream) == i; }},
      {"us_by_an_event",
       [&](uint32_t) {
         const CuResult result = api.graph_launch(is_told, stream);
         return result != CuResult::kSuccess ? result : api.event_record(event, stream);
       },
       [&](uint32_t) { return api.event_query(event) == CuResult::kSuccess; }}};
  Status status;
  for (const Way& way : ways) {
    std::vector<double> times_us;
    for (uint32_t i = 1; i <= kTries && status.is_ok(); ++i) {
      const Clock::time_point start = Clock::now();
      status = lab.check(way.issue(i), way.name);
      if (status.is_ok()) status = lab.wait([&] { return way.is_over(i); }, way.name);
      times_us.push_back(us_since(start));
    }
    std::ranges::sort(times_us);
    row[way.name] = times_us[times_us.size() / 2];
  }
  api.event_destroy(event);
  return status;
}

// ---------------------------------------------------------------- what waits

// Nine streams beside one of an application that stands before a closed gate.
Status ask_gates(DriverLab& lab, Json& row) {
  constexpr size_t kStreams = 9;
  EDDY_ASSIGN_OR_RETURN(const CuStream waits, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const gate, lab.host_word());
  EDDY_RETURN_IF_ERROR(lab.check(
      lab.api().stream_wait_value32(waits, address_of(gate), 1, kCuWaitValueGreaterOrEqual),
      "cuStreamWaitValue32"));
  size_t num_of_eddy = 0;
  for (const bool is_of_eddy : {false, true}) {
    std::vector<volatile uint32_t*> words;
    std::vector<CuStream> of_eddy;
    for (size_t i = 0; i < kStreams; ++i) {
      EDDY_ASSIGN_OR_RETURN(words.emplace_back(), lab.host_word());
      EDDY_ASSIGN_OR_RETURN(const CuStream stream,
                            is_of_eddy ? lab.context().make_stream() : lab.stream(0));
      if (is_of_eddy) of_eddy.push_back(stream);
      EDDY_RETURN_IF_ERROR(lab.launch({.word = words.back()}, stream));
    }
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(100);
    size_t num_run = 0;
    while (num_run < kStreams && Clock::now() < end) {
      lab.progress();
      num_run = static_cast<size_t>(
          std::ranges::count_if(words, [](auto* word) { return DriverLab::seen(word) == 1; }));
    }
    row[is_of_eddy ? "of_eddys_nine" : "of_nine_alike"] = num_run;
    if (is_of_eddy) num_of_eddy = num_run;
    for (const CuStream stream : of_eddy) lab.api().stream_destroy(stream);
  }
  DriverLab::tell(gate, 1);
  EDDY_RETURN_IF_ERROR(lab.finish(waits));
  if (num_of_eddy == kStreams) return Status::ok();
  return run_failed("a caller's stream before a closed gate holds up streams of a higher priority");
}

// Calls of a thread while a kernel of another session spins.
Status ask_beside_a_loop(DriverLab& lab, Json& row) {
  constexpr uint64_t kSpinNs = 200'000'000;
  EDDY_ASSIGN_OR_RETURN(const CuStream spins, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const word, lab.host_word());
  EDDY_ASSIGN_OR_RETURN(auto* const result, lab.host_word());
  const CudaApi& api = lab.api();
  void* memory = nullptr;
  CuStream made = nullptr;
  const std::pair<const char*, std::function<CuResult()>> calls[] = {
      {"cuStreamCreateWithPriority",
       [&] { return api.stream_create(&made, kCuStreamNonBlocking, 0); }},
      {"cuStreamDestroy", [&] { return api.stream_destroy(made); }},
      {"cuMemHostAlloc", [&] { return api.host_allocate(&memory, 1 << 20, kCuHostAllocMapped); }},
      {"cuMemFreeHost", [&] { return api.host_free(memory); }},
      {"cuGraphInstantiate", [&] {
         return graph_of_write(lab, word).is_ok() ? CuResult::kSuccess : CuResult::kUnknown;
       }}};
  for (const auto& [name, call] : calls) {
    EDDY_RETURN_IF_ERROR(lab.launch(
        {.op = ProbeOp::kSpin, .word = word, .result = result_in(result), .most = kSpinNs}, spins));
    const Clock::time_point start = Clock::now();
    EDDY_RETURN_IF_ERROR(lab.check(call(), name));
    row[std::string("ms_of_") + name] = us_since(start) / 1000;
    EDDY_RETURN_IF_ERROR(lab.finish(spins));
  }
  row["ms_of_the_spin"] = static_cast<double>(kSpinNs) / 1e6;
  return Status::ok();
}

// Launches behind a closed gate; another thread opens it, should one of them wait for that.
Status ask_many_launches(DriverLab& lab, Json& row) {
  constexpr int kLaunches = 1200;
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const gate, lab.host_word());
  EDDY_ASSIGN_OR_RETURN(auto* const word, lab.device_word());
  EDDY_ASSIGN_OR_RETURN(const CuGraphExec executable, graph_of_write(lab, word));
  EDDY_RETURN_IF_ERROR(lab.check(
      lab.api().stream_wait_value32(stream, address_of(gate), 1, kCuWaitValueGreaterOrEqual),
      "cuStreamWaitValue32"));
  std::thread opens([&] {
    for (const auto end = Clock::now() + std::chrono::seconds(1); Clock::now() < end;) {
      if (DriverLab::seen(gate) != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    DriverLab::tell(gate, 1);
  });
  int first_that_waits = 0;
  Status status;
  for (int i = 1; i <= kLaunches && status.is_ok() && first_that_waits == 0; ++i) {
    const Clock::time_point start = Clock::now();
    status = lab.check(lab.api().graph_launch(executable, stream), "cuGraphLaunch");
    if (us_since(start) > 100'000) first_that_waits = i;
  }
  DriverLab::tell(gate, 1);
  opens.join();
  row["first_that_waits"] = first_that_waits;
  row["launches"] = kLaunches;
  EDDY_RETURN_IF_ERROR(status);
  return lab.finish(stream);
}

Status ask_after_a_trap(DriverLab& lab, Json& row) {
  EDDY_ASSIGN_OR_RETURN(const CuStream stream, lab.stream(0));
  EDDY_ASSIGN_OR_RETURN(auto* const word, lab.host_word());
  EDDY_RETURN_IF_ERROR(lab.launch({.word = word}, stream));
  EDDY_RETURN_IF_ERROR(lab.launch({.op = ProbeOp::kTrap}, stream));
  CuResult answer = CuResult::kNotReady;
  const auto is_over = [&] {
    answer = lab.api().stream_query(stream);
    return answer != CuResult::kNotReady;
  };
  EDDY_RETURN_IF_ERROR(lab.wait(is_over, "a trap"));
  row["first_answer"] = static_cast<int>(answer);
  row["next_answer"] = static_cast<int>(lab.api().context_synchronize());
  row["host_word"] = DriverLab::seen(word);
  if (answer == CuResult::kSuccess) return run_failed("a trap is forgotten");
  return DriverLab::seen(word) == 1 ? Status::ok() : run_failed("a host word is lost with the GPU");
}

}  // namespace

void add_time_questions(std::vector<DriverQuestion>& questions) {
  questions.push_back({"reads", "ns that a kernel takes to read a word", ask_reads});
  questions.push_back(
      {"device_word", "does a spinning kernel see a word of a stream", ask_device_word});
  questions.push_back(
      {"early_words", "a word behind a WHILE and a copy, is it early", ask_early_words});
  questions.push_back({"calls", "µs of the calls of a round", ask_calls});
  questions.push_back({"ends", "µs from a launch to the host's knowing of its end", ask_ends});
  questions.push_back({"gates", "what runs beside a stream before a closed gate", ask_gates});
  questions.push_back(
      {"beside_a_loop", "which calls wait for a kernel of another session", ask_beside_a_loop});
  questions.push_back(
      {"many_launches", "from which launch on cuGraphLaunch waits", ask_many_launches});
  questions.push_back({"after_a_trap", "what a lost device answers", ask_after_a_trap});
}

}  // namespace eddy
