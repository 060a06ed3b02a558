// Mutated recordings of each kind through the decoding child, for figures: decode_mutations COUNT [SEED [kill]].
// Prints for each kind what became of its files, the longest time, the longest processor time (the child's loading of
// libraries included), and this process's memory before and after; with `kill` a thread ends children at random
// moments.  Status 1: a signal came, a file took more than 2 s, or an error was ours.
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "audio/child/child_decoder.h"
#include "audio/decode/sound_file.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tests/audio/container_kinds.h"

namespace syrinx {
namespace {

std::atomic<int> signals = 0;

std::string mutate(std::string file, std::mt19937& random) {
  const auto place = [&](size_t size) { return random() % std::max<size_t>(1, size); };
  const size_t head = random() % 2 == 0 ? std::min<size_t>(file.size(), 1024) : file.size();
  switch (random() % 5) {
    case 0:
      for (int i = 0; i < 8; ++i) file[place(head)] = static_cast<char>(random());
      return file;
    case 1: {  // a number that is too large, or small
      constexpr const char* kNumbers[] = {"\xFF\xFF\xFF\xFF", "\x7F\xFF\xFF\xFF", "\x80\0\0\0", "\0\0\0\0",
                                          "\0\xFF\xFF\xFF"};
      return file.replace(std::min(place(head), file.size() - 4), 4, std::string(kNumbers[random() % 5], 4));
    }
    case 2: return file.substr(0, place(file.size()));
    case 3: {  // a part again, somewhere
      const std::string part = file.substr(place(file.size()), place(4096));
      return file.insert(place(file.size()), part);
    }
    default: return file.erase(place(file.size()), place(4096));
  }
}

// The children of all threads.
void kill_children() {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream children(task.path() / "children");
    for (pid_t pid = 0; children >> pid;) ::kill(pid, SIGKILL);
  }
}

struct Tally {
  int whole = 0, part = 0, refused = 0, internal = 0;
  double worst_ms = 0, worst_cpu_ms = 0;
};

// Processor time of this process and of the children that have ended; a busy machine does not change it.
double cpu_ms() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) * 1e-3;
  }
  return sum;
}

void read_one(const std::string& file, Tally& tally) {
  bool is_part = false;
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add = [](std::span<const float>) { return Status(); },
                       .warn = [&](const std::string&) { is_part = true; }};
  const double cpu_before = cpu_ms();
  const Stopwatch watch;
  const Status got = read_sound(std::as_bytes(std::span(file)), "me", {.max_seconds = 14400}, sink);
  tally.worst_ms = std::max(tally.worst_ms, watch.elapsed_ms());
  tally.worst_cpu_ms = std::max(tally.worst_cpu_ms, cpu_ms() - cpu_before);
  if (!got)
    ++tally.refused;
  else
    ++(is_part ? tally.part : tally.whole);
  if (!got && got.error().code == Code::kInternal) ++tally.internal;
}

std::jthread start_killer(unsigned seed) {
  return std::jthread([seed](const std::stop_token& stop) {
    std::mt19937 random(seed);
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
      kill_children();
    }
  });
}

bool run_kind(const ContainerKind& kind, int count, unsigned seed, bool kills) {
  const TempFolder folder;
  const std::string file = read_text(make_container(folder, kind, 3));
  std::jthread killer;
  if (kills) killer = start_killer(seed);
  std::mt19937 random(seed);
  const uint64_t before = current_rss_bytes();
  Tally tally;
  for (int i = 0; i < count; ++i) read_one(mutate(file, random), tally);
  std::printf("%-18s %d whole, %d in part, %d refused; longest %.0f ms, of processor %.0f ms; %.1f -> %.1f MB\n",
              kind.name, tally.whole, tally.part, tally.refused, tally.worst_ms, tally.worst_cpu_ms,
              static_cast<double>(before) * 1e-6, static_cast<double>(current_rss_bytes()) * 1e-6);
  std::fflush(stdout);
  return tally.internal == 0 && tally.worst_ms <= 2000;
}

int run(int count, unsigned seed, bool kills) {
  std::vector<ContainerKind> kinds(std::begin(kWholeKinds), std::end(kWholeKinds));
  kinds.insert(kinds.end(), std::begin(kLiveKinds), std::end(kLiveKinds));
  kinds.push_back({"ogg_flac", "-c:a flac", "ogg", 16000});
  bool is_good = true;
  for (const ContainerKind& kind : kinds) is_good = run_kind(kind, count, seed++, kills) && is_good;
  std::printf("%d signals\n", signals.load());
  return is_good && signals == 0 ? 0 : 1;
}

}  // namespace
}  // namespace syrinx

int main(int count, char** words) {
  if (count < 2) {
    std::fputs("usage: decode_mutations COUNT [SEED [kill]]\n", stderr);
    return 2;
  }
  for (const int number : {SIGPIPE, SIGPROF, SIGXCPU, SIGTERM}) ::signal(number, [](int) { ++syrinx::signals; });
  if (!syrinx::keep_spare_decoder()) return 2;
  const int status =
      syrinx::run(std::atoi(words[1]), count > 2 ? static_cast<unsigned>(std::atoi(words[2])) : 1, count > 3);
  syrinx::drop_spare_decoder();
  return status;
}
