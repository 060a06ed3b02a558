#include "cli/transcribe_files.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "audio/decode/pcm_stream.h"
#include "audio/decode/sound_file.h"
#include "base/clock.h"
#include "base/in_quotes.h"
#include "base/scoped_file.h"
#include "base/signals.h"
#include "base/watched_file.h"
#include "cli/output.h"
#include "engine/recognition/sound_transcription.h"
#include "store/paths.h"

namespace syrinx::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr size_t kMaxPipeBytes = size_t{1} << 30;  // of a container that must be seen whole
constexpr double kShowEveryMs = 100;
const std::string kStandardInput = "standard input";

// Calls `take` with what comes, until the end.
template <class Take>
Status read_all(int descriptor, Take take) {
  std::vector<std::byte> bytes(kReadBytes);
  for (;;) {
    const ssize_t count = cancel_requested() ? -1 : ::read(descriptor, bytes.data(), bytes.size());
    if (cancel_requested()) return fail(Code::kCancelled, "stopped while reading");
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(Code::kIo, "cannot read {}: {}", kStandardInput, std::strerror(errno));
    if (count == 0) return {};
    SYRINX_TRY_VOID(take(std::span(bytes).first(static_cast<size_t>(count))));
  }
}

// Standard input may be any container, and those are known by what stands in several places of them.
Status read_standard_input(const std::optional<PcmFormat>& raw, const SoundSink& sink) {
  if (raw) return read_pipe(STDIN_FILENO, raw, sink);
  std::vector<std::byte> all;
  SYRINX_TRY_VOID(read_all(STDIN_FILENO, [&](std::span<const std::byte> bytes) -> Status {
    if (all.size() + bytes.size() > kMaxPipeBytes)
      return fail(Code::kLimitExceeded, "{} has more than {} bytes; give a file, or --stream", kStandardInput,
                  kMaxPipeBytes);
    all.insert(all.end(), bytes.begin(), bytes.end());
    return {};
  }));
  return read_sound(all, kStandardInput, kTranscribeLimits, sink);
}

// Ctrl-C ends what is read before anything is heard of it.
SoundSink stoppable(SoundSink sink) {
  sink.looked = [](uint64_t) -> Status {
    if (cancel_requested()) return fail(Code::kCancelled, "stopped while reading");
    return {};
  };
  return sink;
}

SoundSource source_of(const std::string& file, const std::optional<PcmFormat>& raw) {
  return [=](const SoundSink& sink) -> Status {
    if (file == "-") return read_standard_input(raw, stoppable(sink));
    return raw ? read_raw_file(file, *raw, sink) : read_sound(file, kTranscribeLimits, stoppable(sink));
  };
}

ChannelSource channels_of(const std::string& file) {
  return [=](int channel) -> SoundSource {
    return [=](const SoundSink& sink) {
      SoundLimits limits = kTranscribeLimits;
      limits.channel = channel;
      return read_sound(file, limits, stoppable(sink));
    };
  };
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

struct Item {
  std::string file;
  std::string output;
  uint64_t bytes = 0;
};

// One file's transcript as the content of its output; `warn` is told its warnings.
Result<std::string> transcribe_one(const TranscribeTask& task, const std::string& file, Recogniser& recogniser,
                                   const SoundProgress& progress, const std::function<void(const std::string&)>& warn) {
  const Stopwatch watch;
  SYRINX_TRY(const Transcript transcript,
             task.separate ? transcribe_channels(recogniser, channels_of(file), task.options, progress)
                           : transcribe_sound(recogniser, source_of(file, task.raw), task.options, progress));
  for (const std::string& sentence : transcript.warnings) warn("warning: " + sentence);
  if (task.format != TranscriptFormat::kJson) return format_transcript(transcript, task.format, task.times);
  const double seconds = watch.elapsed_ms() / 1000;
  Json json;
  json.set("file", file == "-" ? kStandardInput : file).set("model", recogniser.name());
  json.set("precision", precision_name(recogniser.precision())).set("threads", recogniser.threads());
  json.set("load_ms", rounded(recogniser.load_ms())).set("total_ms", rounded(seconds * 1000));
  json.set("rtf", transcript.audio_s > 0 ? rounded(seconds / transcript.audio_s) : 0.0);
  const Json content = to_json(transcript, task.times);
  for (const JsonMember& member : *content.object()) json.set(member.key, member.value);
  return json.dump() + "\n";
}

// A path's one spelling, links followed, so that two names of one file are seen.
std::string canonical(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path spelled = fs::weakly_canonical(absolute, error);
  return (error ? absolute.lexically_normal() : spelled).string();
}

// A file with something in it.
bool has_content(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) > 0 && !error;
}

tl::unexpected<Error> would_lose_recording(const std::string& file) {
  return fail(Code::kInvalidArgument, "the recording '{}' would be overwritten; choose another name, or --out-dir",
              file);
}

Status check_single_output(const TranscribeTask& task) {
  const std::string& file = task.files.front();
  if (file != "-" && canonical(task.out) == canonical(file)) return would_lose_recording(file);
  if (!task.force && has_content(task.out))
    return fail(Code::kInvalidArgument, "'{}' exists; --force overwrites it", task.out);
  return {};
}

Status transcribe_single(const TranscribeTask& task, const LoadRecogniser& load) {
  // An output that cannot be written is found now and not after hours.
  std::optional<ScopedFile> output;
  if (!task.out.empty() && task.out != "-") {
    SYRINX_TRY_VOID(check_single_output(task));
    SYRINX_TRY(output, ScopedFile::create(task.out));
  }
  SYRINX_TRY(const std::shared_ptr<Recogniser> recogniser, load());
  StatusLine line;
  const Stopwatch watch;
  const SoundProgress progress = [&](double done_s, std::optional<double> total_s) {
    const double pace = done_s / std::max(watch.elapsed_ms() / 1000, 1e-3);
    const std::string of = total_s ? fmt::format(" of {:.0f}", *total_s) : "";
    line.show(fmt::format("{:.0f}{} s, {:.1f} times faster than real time", done_s, of, pace));
    return !cancel_requested();
  };
  const auto warn = [&](const std::string& sentence) {
    line.clear();
    note(sentence);
  };
  SYRINX_TRY(const std::string content, transcribe_one(task, task.files.front(), *recogniser, progress, warn));
  line.clear();
  if (!output) return print_words(content);
  SYRINX_TRY_VOID(output->write(content));
  return output->commit();
}

// By how much the output is newer than its sound; nothing where one of them is not there.  What is in it is not read.
std::optional<fs::file_time_type::duration> newer_by(const Item& item) {
  std::error_code error;
  const auto written = fs::last_write_time(item.output, error);
  if (error) return std::nullopt;
  const auto recorded = fs::last_write_time(item.file, error);
  if (error) return std::nullopt;
  return written - recorded;
}

bool is_done(const Item& item) {
  const auto newer = newer_by(item);
  return newer && newer->count() >= 0;
}

// An output that is older than its recording may be the user's own notes.
Status check_nothing_is_lost(const std::vector<Item>& items) {
  for (const Item& item : items)
    if (newer_by(item) && !is_done(item) && has_content(item.output))
      return fail(Code::kInvalidArgument,
                  "'{}' exists and is older than '{}'; move it away, or overwrite it with --force", item.output,
                  item.file);
  return {};
}

Result<std::vector<Item>> plan(const TranscribeTask& task) {
  if (!task.out_dir.empty()) SYRINX_TRY_VOID(make_folders(task.out_dir));
  std::map<std::string, std::string> taken, recordings;  // by their one spelling
  std::vector<Item> items;
  for (const std::string& file : task.files) recordings.emplace(canonical(file), file);
  for (const std::string& file : task.files) {
    if (file == "-")
      return fail(Code::kInvalidArgument, "standard input cannot be one of several files; give it alone");
    const fs::path path(file);
    const fs::path folder = task.out_dir.empty() ? path.parent_path() : fs::path(task.out_dir);
    Item item{file, (folder / path.stem()).string() + transcript_ending(task.format), 0};
    const auto [place, is_new] = taken.emplace(canonical(item.output), file);
    if (!is_new)
      return fail(Code::kInvalidArgument, "'{}' and '{}' would both become '{}'; transcribe one of them apart",
                  place->second, file, item.output);
    const auto lost = recordings.find(place->first);
    if (lost != recordings.end()) return would_lose_recording(lost->second);
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    item.bytes = error ? 0 : bytes;
    items.push_back(std::move(item));
  }
  return items;
}

// Several files at once, one line of progress.
class Batch {
 public:
  Batch(const TranscribeTask& task, std::vector<Item> items) : task_(task), items_(std::move(items)) {
    for (const Item& item : items_) total_bytes_ += item.bytes;
    codes_.resize(items_.size());
    shares_.resize(items_.size());
  }

  Status run(const LoadRecogniser& load) {
    // The first is loaded before any file is touched: without a model there is nothing to do.
    SYRINX_TRY(std::shared_ptr<Recogniser> first, load());
    const size_t jobs = std::min(static_cast<size_t>(task_.jobs), items_.size());
    std::vector<std::jthread> others;  // joined on every way out
    try {
      for (size_t i = 1; i < jobs; ++i) others.emplace_back([&] { help(load); });
    } catch (const std::system_error&) {
      // The system gives no more threads: those that are there do the work.
    }
    work(*first);
    others.clear();
    return result();
  }

 private:
  // One that cannot load leaves the files to the others.
  void help(const LoadRecogniser& load) {
    try {
      if (auto recogniser = load()) work(**recogniser);
    } catch (const std::exception&) {
    }
  }

  void work(Recogniser& recogniser) {
    for (size_t i = next_++; i < items_.size() && !cancel_requested(); i = next_++) {
      const Status status = transcribe(i, recogniser);
      const std::lock_guard lock(mutex_);
      shares_[i] = 1;
      ++done_files_;
      if (status || status.error().code == Code::kCancelled) continue;
      codes_[i] = status.error().code;
      line_.clear();
      note(status.error().message);
    }
  }

  // An exception is an error of this file only.
  Status transcribe(size_t index, Recogniser& recogniser) {
    const std::string& file = items_[index].file;
    try {
      // An output that cannot be written is found before the work.
      SYRINX_TRY(ScopedFile output, ScopedFile::create(items_[index].output));
      double so_far = 0;  // of this file in all_seconds_
      const SoundProgress progress = [&](double done_s, std::optional<double> total_s) {
        show(index, done_s - std::exchange(so_far, done_s), total_s.value_or(0) > 0 ? done_s / *total_s : 0);
        return !cancel_requested();
      };
      const auto warn = [&](const std::string& sentence) {
        const std::lock_guard lock(mutex_);
        line_.clear();
        note(sentence);
      };
      SYRINX_TRY(const std::string content, transcribe_one(task_, file, recogniser, progress, warn));
      SYRINX_TRY_VOID(output.write(content));
      return output.commit();
    } catch (const std::bad_alloc&) {
      return fail(Code::kLimitExceeded, "out of memory at '{}'; give fewer --jobs", file);
    } catch (const std::exception& error) {
      return fail(Code::kInternal, "'{}': {}", file, error.what());
    }
  }

  void show(size_t index, double more_s, double share) {
    const std::lock_guard lock(mutex_);
    all_seconds_ += more_s;
    shares_[index] = share;
    if (since_shown_.elapsed_ms() < kShowEveryMs) return;
    since_shown_.restart();
    double bytes = 0;
    for (size_t i = 0; i < items_.size(); ++i) bytes += shares_[i] * static_cast<double>(items_[i].bytes);
    const double percent = total_bytes_ > 0 ? std::min(100.0, 100 * bytes / static_cast<double>(total_bytes_)) : 0;
    line_.show(fmt::format("{:.0f} %, {} of {} files, {:.1f} times faster than real time: {}", percent, done_files_,
                           items_.size(), all_seconds_ / std::max(watch_.elapsed_ms() / 1000, 1e-3),
                           shortened(fs::path(items_[index].file).filename().string())));
  }

  Status result() {
    line_.clear();
    if (cancel_requested()) return fail(Code::kCancelled, "stopped; the same command goes on where it was");
    const auto failed = std::find_if(codes_.begin(), codes_.end(), [](const auto& code) { return code.has_value(); });
    if (failed == codes_.end()) return {};
    const auto failures = std::count_if(failed, codes_.end(), [](const auto& code) { return code.has_value(); });
    return fail(**failed, "{} of {} files could not be transcribed", failures, items_.size());
  }

  const TranscribeTask& task_;
  const std::vector<Item> items_;
  std::atomic<size_t> next_{0};

  std::mutex mutex_;  // over what follows
  StatusLine line_;
  Stopwatch watch_, since_shown_;
  std::vector<std::optional<Code>> codes_;  // of the files that failed
  std::vector<double> shares_;              // how much of each file is done
  uint64_t total_bytes_ = 0;
  size_t done_files_ = 0;
  double all_seconds_ = 0;
};

}  // namespace

Status read_pipe(int descriptor, const std::optional<PcmFormat>& raw, const SoundSink& sink) {
  PcmStream stream(raw, kStandardInput, kTranscribeLimits, sink);
  SYRINX_TRY_VOID(read_all(descriptor, [&](std::span<const std::byte> bytes) { return stream.push(bytes); }));
  return stream.finish();
}

Status read_raw_file(const std::string& path, const PcmFormat& raw, const SoundSink& sink) {
  SYRINX_TRY(const WatchedFile file, WatchedFile::open(path));
  const SoundSink unchanged = while_unchanged(file, sink);
  PcmStream stream(raw, path, kTranscribeLimits, unchanged);
  for (auto rest = file.bytes(); !rest.empty();) {
    const size_t count = std::min(rest.size(), kReadBytes);
    SYRINX_TRY_VOID(stream.push(rest.first(count)));
    rest = rest.subspan(count);
  }
  Status status = stream.finish();
  SYRINX_TRY_VOID(file.check());
  return status;
}

Status transcribe_files(const TranscribeTask& task, const LoadRecogniser& load) {
  if (task.files.size() == 1 && task.out_dir.empty()) return transcribe_single(task, load);
  if (!task.out.empty() && !task.out_dir.empty())
    return fail(Code::kInvalidArgument, "--out names a file and --out-dir a folder; give one of them");
  if (!task.out.empty())
    return fail(Code::kInvalidArgument, "--out takes one file's transcript; use --out-dir for those of several");
  SYRINX_TRY(std::vector<Item> items, plan(task));
  const size_t all = items.size();
  if (!task.force) {
    SYRINX_TRY_VOID(check_nothing_is_lost(items));
    std::erase_if(items, is_done);
  }
  if (items.size() < all)
    note(fmt::format("{} of {} files are done already and are left alone; --force does them again", all - items.size(),
                     all));
  if (items.empty()) return {};
  return Batch(task, std::move(items)).run(load);
}

}  // namespace syrinx::cli
