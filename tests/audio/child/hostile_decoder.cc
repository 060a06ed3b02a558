// In place of syrinx-decode: does what its argument says once it is in the sandbox, as code would that a file took
// over.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "audio/sandbox/run_decoder.h"

namespace syrinx {
namespace {

DecodeEnd told(const char* what, bool is_refused) {
  return {DecodeFault::kDamaged, std::string(what) + (is_refused ? " refused" : " ALLOWED")};
}

DecodeEnd open_a_file() { return told("open", ::open("/etc/hostname", O_RDONLY) < 0); }
DecodeEnd open_a_socket() { return told("socket", ::socket(AF_INET, SOCK_STREAM, 0) < 0); }
DecodeEnd start_a_process() { return told("fork", ::fork() < 0); }
DecodeEnd run_a_program() {
  char name[] = "/bin/true";
  std::array<char*, 2> arguments = {name, nullptr};
  ::execve(name, arguments.data(), nullptr);
  return told("exec", true);  // else nobody says so
}
DecodeEnd make_code() {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return told("code", page == MAP_FAILED);
}
DecodeEnd raise_a_limit() {
  const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
  return told("limit", ::setrlimit(RLIMIT_AS, &all) < 0);
}
DecodeEnd take_memory() {
  size_t taken = 0;
  static void* volatile kept;  // else the compiler leaves the memory out
  constexpr size_t kBlock = size_t{16} << 20;
  while (void* const block = std::malloc(kBlock)) {
    kept = std::memset(block, 1, kBlock);
    taken += kBlock;
    if (taken > size_t{1} << 30 && kept != nullptr) return told("memory", false);
  }
  return {DecodeFault::kNoMemory};
}
DecodeEnd inherit() {  // nothing above the socket is open
  for (int descriptor = kDecodeSocket + 1; descriptor < 1024; ++descriptor)
    if (::read(descriptor, nullptr, 0) == 0 || errno != EBADF) return told("inherited", false);
  return told("inherited", std::getenv("SYRINX_SECRET") == nullptr);
}
DecodeEnd spin() {
  for (volatile bool goes_on = true; goes_on;) {
  }
  return told("loop", false);
}
DecodeEnd burn(ParentLink& parent) {  // until the end of all its time
  parent.set_processor_time(1000);
  return spin();
}
DecodeEnd compute_first(ParentLink& parent) {
  timespec used{};
  do ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  while (used.tv_sec == 0 && used.tv_nsec < 500000000);
  parent.give_format(8000, 1);
  parent.give_samples(std::vector<float>(1000, 0.5f));
  return {};
}
DecodeEnd hang() {
  for (;;) ::sleep(3600);
}
DecodeEnd crash() {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
  return {};
}
DecodeEnd read_beyond(const DecodeOrder& order, ParentLink& parent) {
  std::array<std::byte, 16> bytes;
  parent.read(order.file_bytes - 8, bytes);
  return {};
}
DecodeEnd read_for_ever(const DecodeOrder& order, ParentLink& parent) {
  std::vector<std::byte> bytes(order.file_bytes);
  while (parent.read(0, bytes)) parent.set_processor_time(1);
  return {};
}
DecodeEnd play_slowly(ParentLink& parent) {  // in the middle of which a test ends it
  const std::vector<float> block(1000, 0.5f);
  parent.give_format(8000, 1);
  for (int i = 0; i < 600 && parent.give_samples(block); ++i) ::usleep(10000);
  return {};
}
DecodeEnd say_nonsense() {
  std::vector<char> noise(100000, '\x5A');
  static_cast<void>(::send(kDecodeSocket, noise.data(), noise.size(), MSG_NOSIGNAL));
  return {};
}

DecodeEnd behave(const std::string& how, const DecodeOrder& order, ParentLink& parent) {
  if (how == "file") return open_a_file();
  if (how == "socket") return open_a_socket();
  if (how == "fork") return start_a_process();
  if (how == "exec") return run_a_program();
  if (how == "code") return make_code();
  if (how == "limit") return raise_a_limit();
  if (how == "memory") return take_memory();
  if (how == "inherit") return inherit();
  if (how == "spin") return spin();
  if (how == "burn") return burn(parent);
  if (how == "compute") return compute_first(parent);
  if (how == "hang") return hang();
  if (how == "crash") return crash();
  if (how == "beyond") return read_beyond(order, parent);
  if (how == "reads") return read_for_ever(order, parent);
  if (how == "slow") return play_slowly(parent);
  if (how == "nonsense") return say_nonsense();
  return {DecodeFault::kDamaged, "unknown behaviour"};
}

}  // namespace
}  // namespace syrinx

int main(int count, char** words) {
  if (count != 2) return 1;
  const std::string how = words[1];
  if (how == "exit") return 9;
  const uint64_t least_cpu_s = how == "burn" ? 1 : syrinx::kLeastCpuS;
  ::_exit(syrinx::run_decoder([&how](const syrinx::Libav&, const syrinx::DecodeOrder& order,
                                     syrinx::ParentLink& parent) { return syrinx::behave(how, order, parent); },
                              least_cpu_s));
}
