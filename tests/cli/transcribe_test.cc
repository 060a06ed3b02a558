#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "../base/temp_folder.h"
#include "audio/wav.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/live_line.h"
#include "cli/transcribe_files.h"
#include "cli/transcribe_live.h"
#include "tests/engine/recognition/fake_recogniser.h"

namespace syrinx::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

void write_wav(const std::string& path, const std::vector<float>& sound, int rate_hz) {
  const auto head = wav_header(rate_hz, sound.size() * 2);
  std::string file(reinterpret_cast<const char*>(head.data()), head.size());
  for (const float value : sound) {
    const auto sample = static_cast<int16_t>(value * 32767);
    file += {static_cast<char>(sample & 255), static_cast<char>(sample >> 8)};
  }
  write_text(path, file);
}

// Output of `run` on a terminal in place of standard output.  Short, as it is read only afterwards; no expectations.
std::string shown_by(const std::function<void()>& run) {
  int screen = -1, terminal = -1;
  EXPECT_EQ(::openpty(&screen, &terminal, nullptr, nullptr, nullptr), 0);
  const int before = ::dup(STDOUT_FILENO);
  ::dup2(terminal, STDOUT_FILENO);
  ::close(terminal);
  run();
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  std::string shown;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::read(screen, bytes, sizeof(bytes))) > 0;)
    shown.append(bytes, static_cast<size_t>(got));
  ::close(screen);
  return shown;
}

// Files: a, b and c have one, two and three beeps; "cut" is cut off, "none" is not there.
class TranscribeFiles : public testing::Test {
 protected:
  void SetUp() override {
    write_wav(file("a.wav"), beeps({0.5}, 1, 8000), 8000);
    write_wav(file("b.wav"), beeps({0.5, 1}, 2, 16000), 16000);
    write_wav(file("c.wav"), beeps({0.5, 1, 1.5}, 2, 44100), 44100);
    write_text(file("cut.wav"), read_text(file("c.wav")).substr(0, 30));
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  TranscribeTask task(const std::vector<std::string>& names) const {
    TranscribeTask task;
    for (const std::string& name : names) task.files.push_back(file(name));
    task.jobs = 2;
    return task;
  }
  Status run(const TranscribeTask& task) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    Status status = transcribe_files(task, [this]() -> Result<std::shared_ptr<Recogniser>> {
      ++loaded_;
      auto recogniser = std::make_shared<FakeRecogniser>();
      recogniser->throws_at = throws_at_;
      return recogniser;
    });
    errors_ = testing::internal::GetCapturedStderr();
    printed_ = testing::internal::GetCapturedStdout();
    return status;
  }

  TempFolder folder_;
  std::atomic<int> loaded_{0};
  size_t throws_at_ = 0;
  std::string errors_, printed_;
};

TEST_F(TranscribeFiles, OneFileGoesToStandardOutputOrAFile) {
  TranscribeTask one = task({"b.wav"});
  EXPECT_TRUE(run(one));
  EXPECT_EQ(printed_, "beep beep\n");
  one.out = file("out.srt");
  one.format = TranscriptFormat::kSrt;
  EXPECT_TRUE(run(one));
  EXPECT_EQ(printed_, "");
  EXPECT_THAT(read_text(one.out), testing::StartsWith("1\n00:00:00,500 --> 00:00:00,700\nbeep\n\n2\n"));
  one.format = TranscriptFormat::kJson;
  one.out = "-";
  EXPECT_TRUE(run(one));
  const auto json = parse_json(printed_, "printed");
  ASSERT_TRUE(json) << printed_;
  EXPECT_EQ(*json->find("model")->string(), "fake");
  EXPECT_EQ(*json->find("text")->string(), "beep beep");
  EXPECT_EQ(json->find("segments")->array()->size(), 2u);
}

TEST_F(TranscribeFiles, AModelsWordsGiveATerminalNoOrders) {
  TranscribeTask one = task({"b.wav"});
  const auto hostile = []() -> Result<std::shared_ptr<Recogniser>> {
    auto recogniser = std::make_shared<FakeRecogniser>();
    recogniser->word = "a\x1b]0;b\a\xC2\x9B\x7f";
    return recogniser;
  };
  EXPECT_EQ(shown_by([&] { (void)transcribe_files(one, hostile); }), "a ]0;b     a ]0;b    \r\n");
  one.format = TranscriptFormat::kJson;
  const std::string json = shown_by([&] { (void)transcribe_files(one, hostile); });
  EXPECT_THAT(json, HasSubstr(R"("text":"a\u001b]0;b\u0007\u009b  )"));
  one.format = TranscriptFormat::kText;
  one.out = file("out.txt");
  EXPECT_TRUE(transcribe_files(one, hostile));
  EXPECT_THAT(read_text(one.out), testing::StartsWith("a\x1b]0;b\a\xC2\x9B\x7f a"));  // a file has them as they are
  for (const TranscriptFormat format : {TranscriptFormat::kText, TranscriptFormat::kSrt, TranscriptFormat::kVtt})
    EXPECT_THAT(shown_by([&] { (void)live_output({.format = format}).write("a\x1b]0;b\a\xC2\x9B\x7f\n"); }),
                testing::EndsWith("a ]0;b    \r\n"));
}

TEST_F(TranscribeFiles, OneFileThatFailsIsTheResult) {
  EXPECT_EQ(run(task({"none.wav"})).error().code, Code::kNotFound);
  EXPECT_EQ(run(task({"cut.wav"})).error().code, Code::kDataLoss);
  EXPECT_EQ(errors_ + printed_, "");
}

TEST_F(TranscribeFiles, APartIsHeardWithAWarning) {
  const std::string whole = read_text(file("c.wav"));
  write_text(file("part.wav"), whole.substr(0, whole.size() * 5 / 8));
  EXPECT_TRUE(run(task({"part.wav"})));
  EXPECT_EQ(printed_, "beep beep\n");
  EXPECT_THAT(errors_,
              testing::MatchesRegex("syrinx: warning: '.*part.wav' is cut off: .*; only the first 1.2 s were read\n"));
  EXPECT_TRUE(run(task({"a.wav", "part.wav"})));
  EXPECT_EQ(read_text(file("part.txt")), "beep beep\n");
  EXPECT_THAT(errors_, HasSubstr("syrinx: warning: "));
  TranscribeTask json = task({"part.wav"});
  json.format = TranscriptFormat::kJson;
  EXPECT_TRUE(run(json));
  EXPECT_THAT(printed_, HasSubstr("\"warnings\":[\""));
}

TEST_F(TranscribeFiles, SeparateChannelsAreLabelled) {
  TranscribeTask call = task({"b.wav"});
  call.separate = true;
  EXPECT_TRUE(run(call));
  EXPECT_EQ(printed_, "channel 0: beep\nchannel 0: beep\n");
}

TEST_F(TranscribeFiles, TheOthersGoOn) {
  const TranscribeTask all = task({"a.wav", "cut.wav", "b.wav", "none.wav", "c.wav"});
  const Status status = run(all);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDataLoss);  // the first in the order of the arguments
  EXPECT_THAT(status.error().message, HasSubstr("2 of 5 files"));
  EXPECT_THAT(errors_, HasSubstr("cut.wav' is cut off"));
  EXPECT_THAT(errors_, HasSubstr("none.wav'"));
  EXPECT_EQ(read_text(file("a.txt")), "beep\n");
  EXPECT_EQ(read_text(file("b.txt")), "beep beep\n");
  EXPECT_EQ(read_text(file("c.txt")), "beep beep beep\n");
  EXPECT_FALSE(fs::exists(file("cut.txt")));
  EXPECT_LE(loaded_, 2);
}

TEST_F(TranscribeFiles, ExceptionFailsOnlyItsFile) {
  throws_at_ = 2;
  for (const int jobs : {1, 2}) {
    TranscribeTask all = task({"a.wav", "b.wav", "c.wav"});
    all.jobs = jobs;
    all.force = true;
    const Status status = run(all);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kLimitExceeded);
    EXPECT_THAT(status.error().message, HasSubstr("1 of 3 files"));
    EXPECT_THAT(errors_, HasSubstr("out of memory at '" + file("b.wav")));
    EXPECT_EQ(read_text(file("a.txt")), "beep\n");
    EXPECT_EQ(read_text(file("c.txt")), "beep beep beep\n");
    EXPECT_FALSE(fs::exists(file("b.txt")));
  }
}

TEST_F(TranscribeFiles, AnOutputThatCannotBeWrittenIsFoundFirst) {
  TranscribeTask one = task({"b.wav"});
  one.out = file("none/out.txt");
  EXPECT_EQ(run(one).error().code, Code::kIo);
  EXPECT_EQ(loaded_, 0);
  // With several files, before the work that would fail otherwise.
  throws_at_ = 1;
  fs::create_directory(file("a.txt"));
  EXPECT_EQ(run([this] {
              TranscribeTask both = task({"a.wav", "b.wav"});
              both.force = true;
              return both;
            }())
                .error()
                .code,
            Code::kIo);
  EXPECT_EQ(read_text(file("b.txt")), "beep beep\n");
}

TEST_F(TranscribeFiles, FinishedOutputsAreKept) {
  TranscribeTask all = task({"a.wav", "b.wav"});
  all.out_dir = file("texts/of/mine");
  ASSERT_TRUE(run(all));
  EXPECT_EQ(read_text(all.out_dir + "/b.txt"), "beep beep\n");
  write_text(all.out_dir + "/a.txt", "mine");
  loaded_ = 0;
  EXPECT_TRUE(run(all));
  EXPECT_EQ(loaded_, 0);
  EXPECT_THAT(errors_, HasSubstr("2 of 2 files are done already"));
  EXPECT_EQ(read_text(all.out_dir + "/a.txt"), "mine");
  all.force = true;
  EXPECT_TRUE(run(all));
  EXPECT_EQ(read_text(all.out_dir + "/a.txt"), "beep\n");
}

TEST_F(TranscribeFiles, OlderOutputsAreKept) {
  TranscribeTask both = task({"a.wav", "b.wav"});
  const auto age = [this] {
    fs::last_write_time(file("b.txt"), fs::last_write_time(file("b.wav")) - std::chrono::hours(1));
  };
  write_text(file("b.txt"), "notes");
  age();
  const Status refused = run(both);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("b.txt' exists and is older than"));
  EXPECT_EQ(loaded_, 0);
  EXPECT_EQ(read_text(file("b.txt")), "notes");
  EXPECT_FALSE(fs::exists(file("a.txt")));
  // Where there is no recording nothing is written.
  write_text(file("none.txt"), "notes");
  EXPECT_EQ(run(task({"a.wav", "none.wav"})).error().code, Code::kNotFound);
  EXPECT_EQ(read_text(file("none.txt")), "notes");
  both.force = true;
  EXPECT_TRUE(run(both));
  EXPECT_EQ(read_text(file("b.txt")), "beep beep\n");
  // An empty one holds nothing.
  both.force = false;
  write_text(file("b.txt"), "");
  age();
  EXPECT_TRUE(run(both));
  EXPECT_EQ(read_text(file("b.txt")), "beep beep\n");
}

TEST_F(TranscribeFiles, AnOutputThatIsThereIsNotLost) {
  TranscribeTask one = task({"b.wav"});
  one.out = file("notes");
  write_text(one.out, "mine");
  EXPECT_THAT(run(one).error().message, HasSubstr("exists; --force"));
  EXPECT_EQ(read_text(one.out), "mine");
  one.force = true;
  EXPECT_TRUE(run(one));
  EXPECT_EQ(read_text(one.out), "beep beep\n");
  one.force = false;
  write_text(one.out, "");
  EXPECT_TRUE(run(one));
  // --force does not overwrite the recording itself.
  one.force = true;
  const std::string recording = read_text(one.files[0]);
  fs::create_symlink(one.files[0], file("link"));
  for (const std::string& name : {file("b.wav"), folder_.path() + "/./b.wav", file("link")}) {
    one.out = name;
    EXPECT_THAT(run(one).error().message, HasSubstr("overwritten"));
  }
  EXPECT_EQ(read_text(one.files[0]), recording);
}

TEST_F(TranscribeFiles, RefusesOutputsThatCollide) {
  TranscribeTask twice = task({"a.wav", "sub/a.wav"});
  twice.out_dir = file("texts");
  EXPECT_THAT(run(twice).error().message, HasSubstr("would both become"));
  TranscribeTask raw = task({"x.txt", "y.txt"});
  EXPECT_THAT(run(raw).error().message, HasSubstr("overwritten"));
  raw.out_dir = folder_.path() + "/.";
  raw.force = true;
  EXPECT_THAT(run(raw).error().message, HasSubstr("overwritten"));
  EXPECT_THAT(run(task({"a.wav", "a.txt"})).error().message, HasSubstr("overwritten"));
  EXPECT_THAT(run(task({"a.wav", "./a.wav"})).error().message, HasSubstr("would both become"));
  TranscribeTask out = task({"a.wav", "b.wav"});
  out.out = "x";
  EXPECT_THAT(run(out).error().message, HasSubstr("use --out-dir"));
  TranscribeTask places = task({"a.wav"});
  places.out = file("x");
  places.out_dir = file("texts");
  EXPECT_THAT(run(places).error().message, HasSubstr("give one of them"));
  EXPECT_EQ(loaded_, 0);
}

TEST_F(TranscribeFiles, RawSamples) {
  TranscribeTask one = task({"b.wav"});
  write_text(one.files[0], read_text(one.files[0]).substr(kWavHeaderBytes));
  one.raw = PcmFormat{.rate_hz = 16000, .channels = 1, .bits = 16, .coding = PcmCoding::kInteger};
  EXPECT_TRUE(run(one));
  EXPECT_EQ(printed_, "beep beep\n");
}

// Output of a stream, and its display meanwhile.
struct Live {
  std::string written;
  std::vector<std::string> shown;
  Status status;
};

Live live(const LiveTask& task, const std::vector<float>& sound, int rate_hz, const Status& end = {}) {
  FakeRecogniser recogniser;
  Live result;
  const LiveOutput output{.write =
                              [&](std::string_view text) {
                                result.written += text;
                                return Status();
                              },
                          .show = [&](std::string_view text, size_t) { result.shown.emplace_back(text); }};
  const SoundSource source = [&](const SoundSink& sink) -> Status {
    SYRINX_TRY_VOID(sink.begin(rate_hz, {}));
    for (size_t at = 0; at < sound.size(); at += 333)
      SYRINX_TRY_VOID(sink.add(std::span(sound).subspan(at, std::min<size_t>(333, sound.size() - at))));
    return end;
  };
  result.status = transcribe_live(task, recogniser, source, output);
  return result;
}

TEST(TranscribeLive, FinalLinesStayPartialOnesAreShown) {
  for (const int rate_hz : {16000, 44100}) {
    const Live got = live({}, beeps({0.5, 1.5}, 2.5, rate_hz), rate_hz);
    ASSERT_TRUE(got.status) << got.status.error().message;
    EXPECT_EQ(got.written, "beep\nbeep\n");
    EXPECT_GE(got.shown.size(), 4u);
  }
  const Live srt = live({.format = TranscriptFormat::kSrt}, beeps({0.5, 1.5}, 2.5, 16000), 16000);
  EXPECT_THAT(srt.written, HasSubstr("2\n00:00:01,500 --> 00:00:01,700\nbeep\n\n"));
  const Live vtt = live({.format = TranscriptFormat::kVtt}, beeps({0.5}, 1, 16000), 16000);
  EXPECT_EQ(vtt.written, "WEBVTT\n\n00:00:00.500 --> 00:00:00.700\nbeep\n\n");
}

TEST(TranscribeLive, JsonHasALineAnEventAChunkAndTheEnd) {
  const Live got =
      live({.format = TranscriptFormat::kJson, .chunk_ms = 100, .chunks = true}, beeps({0.5}, 1.05, 16000), 16000);
  size_t chunks = 0, finals = 0;
  Json last;
  for (size_t begin = 0; begin < got.written.size();) {
    const size_t end = got.written.find('\n', begin);
    const auto line = parse_json(got.written.substr(begin, end - begin), "line");
    ASSERT_TRUE(line);
    if (line->find("chunk") != nullptr) ++chunks;
    if (line->find("final") != nullptr && *line->find("final")->boolean()) ++finals;
    last = *line;
    begin = end + 1;
  }
  EXPECT_EQ(chunks, 11u);  // ten, and the rest
  EXPECT_EQ(finals, 1u);
  EXPECT_EQ(*last.find("chunks")->whole(), 11);
  EXPECT_NE(last.find("latency_ms")->find("p99"), nullptr);
}

TEST(TranscribeLive, WordsBeforeAFaultAreWritten) {
  const Live got = live({}, beeps({0.5}, 0.75, 16000), 16000, fail(Code::kIo, "the microphone is gone"));
  EXPECT_EQ(got.written, "beep\n");
  ASSERT_FALSE(got.status);
  EXPECT_EQ(got.status.error().code, Code::kIo);
}

TEST(TranscribeLive, WordsBeforeControlCAreWritten) {
  const Live got = live({}, beeps({0.5}, 0.75, 16000), 16000, fail(Code::kCancelled, "stopped while reading"));
  EXPECT_EQ(got.written, "beep\n");
  ASSERT_FALSE(got.status);
  EXPECT_EQ(got.status.error().code, Code::kCancelled);
}

TEST(TranscribeLive, RealTimeTakesItsTime) {
  const Stopwatch watch;
  const Live got = live({.realtime = true}, beeps({0.1}, 0.4, 16000), 16000);
  EXPECT_GE(watch.elapsed_ms(), 400);
  EXPECT_EQ(got.written, "beep\n");
}

// Nothing that stands in place of what was cut off is heard: within the last page it is zeros that nobody misses.
TEST(TranscribeRaw, OfOneThatIsShortenedNothingMoreIsHeard) {
  const TempFolder folder;
  const std::string path = folder.file("a.raw");
  write_text(path, std::string(1 << 20, 'x'));
  int blocks = 0;
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add = [&](std::span<const float>) -> Status {
                         if (++blocks == 1) fs::resize_file(path, (1 << 20) - 2);
                         return {};
                       }};
  const PcmFormat raw{.rate_hz = 16000, .channels = 1, .bits = 16};
  const Status status = read_raw_file(path, raw, sink);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDataLoss);
  EXPECT_THAT(status.error().message, HasSubstr("became shorter"));
  EXPECT_EQ(blocks, 1);
}

TEST(LiveLine, IsWrittenOverWithoutErasingFirst) {
  EXPECT_EQ(live_line("so far", 6, 80), "\rso far\x1b[K");
  EXPECT_EQ(live_line("so far", 3, 80), "\rso \x1b[2mfar\x1b[22m\x1b[K");
  EXPECT_EQ(live_line("", 0, 80), "\r\x1b[K");
  EXPECT_EQ(live_line("one two three", 13, 9), "\r…o three\x1b[K");
  EXPECT_EQ(live_line("one two three", 10, 9), "\r…o th\x1b[2mree\x1b[22m\x1b[K");
  EXPECT_EQ(live_line("日本語です", 15, 8), "\r…語です\x1b[K");
  EXPECT_EQ(live_line("a\x1b[31m\nb", 8, 80), "\ra [31m b\x1b[K");
  for (size_t width = 0; width < 12; ++width) EXPECT_THAT(live_line("some words", 4, width), HasSubstr("\x1b[K"));
}

}  // namespace
}  // namespace syrinx::cli
