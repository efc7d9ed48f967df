#include "runtime/mpi/job_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/mpi/board_watch.h"
#include "runtime/mpi/rank_process.h"

namespace eddy {
namespace {

constexpr const char* kVariable = "EDDY_JOB_BOARD";
// Open MPI's own: a folder of the job's on this machine, and the job's name.
constexpr const char* kJobFolder = "OMPI_MCA_orte_jobfam_session_dir";
constexpr const char* kJobName = "OMPI_MCA_ess_base_jobid";
constexpr std::chrono::milliseconds kBeat{50};

size_t size_of(uint32_t num_ranks) { return num_ranks * sizeof(JobBoard::Rank); }

JobBoard::Rank* map(int file, uint32_t num_ranks) {
  void* const memory =
      mmap(nullptr, size_of(num_ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<JobBoard::Rank*>(memory);
}

}  // namespace

// A file of no folder, so nothing is left of it: ranks find it among those of their launcher.
Result<JobBoard> JobBoard::make(uint32_t num_ranks) {
  static_assert(std::atomic<Stage>::is_always_lock_free &&
                    std::atomic<int32_t>::is_always_lock_free &&
                    std::atomic<uint32_t>::is_always_lock_free,
                "processes share them");
  static_assert(static_cast<uint32_t>(Stage::kAbsent) == 0, "a new file is zeros");
  JobBoard board;
  board.file_ = memfd_create("eddy_job_board", MFD_CLOEXEC);
  const bool is_sized =
      board.file_ >= 0 && ftruncate(board.file_, static_cast<off_t>(size_of(num_ranks))) == 0;
  if (is_sized) board.ranks_ = map(board.file_, num_ranks);
  if (board.ranks_ == nullptr) {
    return resource_exhausted(std::string("cannot start ranks: no memory to share with them: ") +
                              std::strerror(errno));
  }
  board.num_ranks_ = num_ranks;
  return board;
}

// `num_ranks_or_0`: the file gets room for so many; 0: it has it.
void JobBoard::open_file(const std::string& path, int flags, uint32_t num_ranks_or_0) {
  file_ = open(path.c_str(), flags | O_RDWR | O_CLOEXEC, 0600);
  struct stat known {};
  if (file_ < 0 || fstat(file_, &known) != 0) return;
  const auto wanted = static_cast<off_t>(size_of(num_ranks_or_0));
  if (known.st_size < wanted && ftruncate(file_, wanted) != 0) return;
  const off_t size = std::max(known.st_size, wanted);
  num_ranks_ = static_cast<uint32_t>(static_cast<size_t>(size) / sizeof(Rank));
  if (num_ranks_ > 0) ranks_ = map(file_, num_ranks_);
}

JobBoard JobBoard::find() {
  JobBoard board;
  const char* const path = std::getenv(kVariable);
  if (path != nullptr) board.open_file(path, 0, 0);
  return board;
}

// Whichever rank comes first makes it; until a rank has begun its part is zeros, kAbsent.
JobBoard JobBoard::join(uint32_t num_ranks) {
  JobBoard board;
  const char* const folder = std::getenv(kJobFolder);
  const char* const job = std::getenv(kJobName);
  if (folder == nullptr || job == nullptr) return board;
  board.open_file(std::string(folder) + "/eddy_job_board." + job, O_CREAT, num_ranks);
  return board;
}

JobBoard::JobBoard(JobBoard&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      num_ranks_(other.num_ranks_),
      ranks_(std::exchange(other.ranks_, nullptr)) {}

JobBoard& JobBoard::operator=(JobBoard&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(num_ranks_, other.num_ranks_);
  std::swap(ranks_, other.ranks_);
  return *this;
}

JobBoard::~JobBoard() {
  if (ranks_ != nullptr) munmap(ranks_, size_of(num_ranks_));
  if (file_ >= 0) close(file_);
}

std::string JobBoard::variable() const {
  return std::string(kVariable) + "=/proc/" + std::to_string(getpid()) + "/fd/" +
         std::to_string(file_);
}

RankReport::RankReport(uint32_t rank, const PeerWatch& peers)
    : board_(JobBoard::find()), has_launcher_(board_.is_open()) {
  const bool watches = !board_.is_open() && peers.num_ranks > 0 && peers.lost != nullptr;
  if (watches) board_ = JobBoard::join(peers.num_ranks);
  if (!board_.is_open() || rank >= board_.num_ranks()) return;
  own_ = &board_.rank(rank);
  own_->process.store(getpid(), std::memory_order_relaxed);
  reach(JobBoard::Stage::kStarting);
  std::optional<BoardWatch> watch;
  if (watches) watch.emplace(board_, peers.stall, peers.are_all_here);
  const uint32_t next = watches && peers.are_all_here ? (rank + 1) % peers.num_ranks : rank;
  beats_ = std::jthread([this, own = own_, lost = peers.lost, watch = std::move(watch),
                         next_or_own = next, rank](const std::stop_token& stop) mutable {
    RankProcess process;
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      own->beats.fetch_add(1, std::memory_order_relaxed);
      std::string missed = watch ? watch->look(BoardWatch::Clock::now()) : "";
      if (watch && next_or_own != rank && has_ended_silently(next_or_own, process)) {
        missed = "rank " + std::to_string(next_or_own) + " has ended without a word";
      }
      if (!missed.empty()) {
        watch.reset();
        // Its own end, if that comes of it, is no news to others.
        own->exit_code.store(-1, std::memory_order_relaxed);
        lost(missed);
      }
      ended.wait_for(lock, stop, kBeat, [] { return false; });
    }
  });
}

// Each rank has one that watches its process. Once one has said why, others are ended.
bool RankReport::has_ended_silently(uint32_t rank, RankProcess& process) const {
  const JobBoard::Rank& other = board_.rank(rank);
  const auto stage = [&] { return other.stage.load(std::memory_order_acquire); };
  if (stage() == JobBoard::Stage::kAbsent || stage() >= JobBoard::Stage::kEnded) return false;
  if (!process.is_known()) process.know(other.process.load(std::memory_order_relaxed));
  // Its report may have come in between.
  if (!process.has_ended() || stage() >= JobBoard::Stage::kEnded) return false;
  for (uint32_t r = 0; r < board_.num_ranks(); ++r) {
    if (board_.rank(r).exit_code.load(std::memory_order_relaxed) != 0) return false;
  }
  return true;
}

RankReport::~RankReport() {
  if (own_ == nullptr) return;
  beats_ = {};
  reach(JobBoard::Stage::kGone);
}

void RankReport::reach(JobBoard::Stage stage) {
  if (own_ != nullptr) own_->stage.store(stage, std::memory_order_release);
}

void RankReport::end(int exit_code) {
  if (own_ == nullptr) return;
  own_->exit_code.store(exit_code, std::memory_order_relaxed);
  reach(JobBoard::Stage::kEnded);
}

}  // namespace eddy
