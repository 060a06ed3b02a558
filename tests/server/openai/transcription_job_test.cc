// Recordings that are heard, and those that are not: what the client is told, and what the log is.
#include "server/openai/transcription_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "base/json.h"
#include "server/service.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/recognition/fake_recogniser.h"
#include "tests/server/host/recognition_job_fixture.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kRateHz = 16000;
constexpr const char* kType = "multipart/form-data; boundary=b";

std::string number(uint32_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

std::string wav(const std::vector<float>& sound) {
  std::string samples;
  for (const float sample : sound) samples += number(static_cast<uint32_t>(static_cast<int>(sample * 32767)), 2);
  const auto bytes = static_cast<uint32_t>(samples.size());
  return "RIFF" + number(36 + bytes, 4) + "WAVEfmt " + number(16, 4) + number(1, 2) + number(1, 2) +
         number(kRateHz, 4) + number(2 * kRateHz, 4) + number(2, 2) + number(16, 2) + "data" + number(bytes, 4) +
         samples;
}

// The samples alternate between two channels.
std::string stereo_wav(const std::vector<float>& both) {
  return wav(both).replace(22, 2, number(2, 2)).replace(28, 4, number(4 * kRateHz, 4)).replace(32, 2, number(4, 2));
}

std::string part(const std::string& name, const std::string& content) {
  return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + content + "\r\n";
}

class TranscriptionJobTest : public RecognitionJobTest {
 protected:
  // The whole life of a job; what it has sent as a stream is in sent_.
  ReplyStream::News run(const std::string& parts, bool translated = false) {
    run_job<TranscriptionJob>(TranscriptionOrder{.type = kType,
                                                 .body = parts + "--b--\r\n",
                                                 .translated = translated,
                                                 .strict = strict_,
                                                 .max_recording_s = 10,
                                                 .id = "1"});
    sent_ = sent_bytes(*reply_);
    return reply_->pop_news();
  }
  Json answer(const std::string& parts) {
    const ReplyStream::News news = run(parts);
    EXPECT_EQ(news.head->status, 200) << news.head->body;
    return parse_json(news.head->body, "the answer").value_or(Json());
  }

  // Two channels; the second beeps between the beeps of the first.
  static std::string by_turns() {
    const std::vector<float> first = beeps({0.5, 1.5}, 2, kRateHz), second = beeps({1.0}, 2, kRateHz);
    std::vector<float> both;
    for (size_t i = 0; i < first.size(); ++i) both.insert(both.end(), {first[i], second[i]});
    return part("file", stereo_wav(both)) + part("channels", "separate");
  }
  // The channels of the items of `kind`; their beginnings must rise.
  static std::vector<int64_t> channels_in_time(const Json& answer, const std::string& kind) {
    std::vector<int64_t> channels;
    double last_s = 0;
    for (const Json& item : *answer.find(kind)->array()) {
      EXPECT_GT(*item.find("start")->real(), last_s) << kind;
      last_s = *item.find("start")->real();
      channels.push_back(*item.find("channel")->whole());
    }
    return channels;
  }

  const std::string file_ = part("file", wav(beeps({0.5, 1.5}, 2, kRateHz)));
  std::string sent_;
  bool strict_ = false;
};

TEST_F(TranscriptionJobTest, EveryFormat) {
  const Json json = answer(file_);
  EXPECT_EQ(json.dump(), R"({"text":"beep beep","usage":{"type":"duration","seconds":2.0}})");
  EXPECT_EQ(run(file_ + part("response_format", "text")).head->body, "beep beep\n");
  EXPECT_THAT(run(file_ + part("response_format", "srt")).head->body,
              HasSubstr("1\n00:00:00,500 --> 00:00:00,700\nbeep\n"));
  const ReplyStream::News vtt = run(file_ + part("response_format", "vtt"));
  EXPECT_THAT(vtt.head->body, testing::StartsWith("WEBVTT\n\n"));
  EXPECT_EQ(vtt.head->type, "text/vtt; charset=utf-8");
  const Json verbose = answer(file_ + part("response_format", "verbose_json"));
  EXPECT_EQ(*verbose.find("task")->string(), "transcribe");
  EXPECT_EQ(*verbose.find("language")->string(), "en");
  EXPECT_EQ(*verbose.find("duration")->real(), 2.0);
  EXPECT_EQ(verbose.find("words"), nullptr);
  const Json::Array& segments = *verbose.find("segments")->array();
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(*segments[1].find("id")->whole(), 1);
  EXPECT_EQ(*segments[1].find("start")->real(), 1.5);
  EXPECT_NEAR(*segments[1].find("avg_logprob")->real(), std::log(0.5), 1e-6);
  // Numbers in every client's type, also of what knows none.
  EXPECT_EQ(*segments[1].find("temperature")->real(), 0);
  EXPECT_EQ(*segments[1].find("compression_ratio")->real(), 1);
  EXPECT_EQ(*segments[1].find("no_speech_prob")->real(), 0);
  const Json words =
      answer(file_ + part("response_format", "verbose_json") + part("timestamp_granularities[]", "word"));
  EXPECT_EQ(words.find("segments"), nullptr);
  EXPECT_EQ((*words.find("words")->array())[0].dump(), R"({"word":"beep","start":0.5,"end":0.7})");
  EXPECT_THAT(log_, HasSubstr("\"event\":\"transcription\""));
  EXPECT_THAT(log_, HasSubstr("\"audio_seconds\":2.0"));
  EXPECT_THAT(log_, Not(HasSubstr("beep")));
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_audio_seconds_total{model=\"fake\",direction=\"in\"} 12\n"));
}

TEST_F(TranscriptionJobTest, EventsTellSegmentsAsTheyAreFound) {
  const ReplyStream::News news = run(file_ + part("stream", "true"));
  EXPECT_EQ(news.head->type, "text/event-stream");
  EXPECT_EQ(news.end, ReplyStream::End::kFinished);
  EXPECT_EQ(sent_,
            "data: {\"type\":\"transcript.text.delta\",\"delta\":\"beep\"}\n\n"
            "data: {\"type\":\"transcript.text.delta\",\"delta\":\" beep\"}\n\n"
            "data: {\"type\":\"transcript.text.done\",\"text\":\"beep beep\"}\n\n");
  run(part("file", wav(beeps({}, 1, kRateHz))) + part("stream", "true"));
  EXPECT_THAT(sent_, HasSubstr("data: {\"type\":\"transcript.text.done\",\"text\":\"\""));
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_time_to_first_word_seconds_count{model=\"fake\"} 1\n"));
}

TEST_F(TranscriptionJobTest, RecordingsThatAreNoneAreTheClientsFault) {
  const auto check = [this](const std::string& content, int status, const char* words) {
    const ReplyStream::News news = run(part("file", content));
    EXPECT_EQ(news.head->status, status);
    EXPECT_THAT(news.head->body, HasSubstr(words));
    EXPECT_THAT(news.head->body, HasSubstr("\"param\":\"file\""));
    EXPECT_THAT(log_, Not(HasSubstr("\"error\":")));
  };
  check("hello", 415, "WAV, FLAC, MP3, Ogg with Vorbis, Opus or FLAC");
  check(wav(beeps({}, 11, kRateHz)), 413, "10");
  check(wav(beeps({}, 1, kRateHz)).substr(0, 30), 400, "file");
}

TEST_F(TranscriptionJobTest, CutRecordingIsAnsweredWithAWarning) {
  const std::string cut = part("file", wav(beeps({0.5, 1.5}, 2, kRateHz)).substr(0, 44 + 2 * kRateHz));
  EXPECT_EQ(*answer(cut).find("text")->string(), "beep");
  const Json verbose = answer(cut + part("response_format", "verbose_json"));
  EXPECT_EQ(*verbose.find("duration")->real(), 1.0);
  EXPECT_EQ((*verbose.find("warnings")->array())[0].dump(),
            "\"'file' is cut off: it announces 64000 bytes of sound and holds 32000; only the first 1.0 s were read\"");
  EXPECT_EQ(answer(file_ + part("response_format", "verbose_json")).find("warnings"), nullptr);
}

// Mono is a single channel.
TEST_F(TranscriptionJobTest, SeparateChannelsAreLabelled) {
  const std::string separate = file_ + part("channels", "separate");
  const Json verbose = answer(separate + part("response_format", "verbose_json"));
  EXPECT_EQ(*(*verbose.find("segments")->array())[1].find("channel")->whole(), 0);
  EXPECT_EQ(run(separate + part("response_format", "text")).head->body, "channel 0: beep\nchannel 0: beep\n");
  const Json words =
      answer(separate + part("response_format", "verbose_json") + part("timestamp_granularities[]", "word"));
  EXPECT_EQ((*words.find("words")->array())[0].dump(), R"({"word":"beep","start":0.5,"end":0.7,"channel":0})");
  const Json mixed = answer(file_ + part("channels", "mixed") + part("response_format", "verbose_json"));
  EXPECT_EQ((*mixed.find("segments")->array())[1].find("channel"), nullptr);
  EXPECT_THAT(run(separate + part("stream", "true")).head->body, HasSubstr("\"param\":\"stream\""));
  EXPECT_THAT(run(file_ + part("channels", "all")).head->body, HasSubstr("choose mixed or separate"));
}

// The parties of a call speak by turns.
TEST_F(TranscriptionJobTest, ChannelsAreInOrderOfTime) {
  const std::string verbose = by_turns() + part("response_format", "verbose_json");
  for (const std::string kind : {"word", "segment"})
    EXPECT_EQ(channels_in_time(answer(verbose + part("timestamp_granularities[]", kind)), kind + "s"),
              std::vector<int64_t>({0, 1, 0}));
  EXPECT_EQ(run(by_turns() + part("response_format", "text")).head->body,
            "channel 0: beep\nchannel 1: beep\nchannel 0: beep\n");
  EXPECT_THAT(run(by_turns() + part("response_format", "srt")).head->body,
              HasSubstr("2\n00:00:01,000 --> 00:00:01,200\n[1] beep\n"));
}

TEST_F(TranscriptionJobTest, WordsOfOverlappingSegmentsAlternate) {
  recogniser_->is_one_segment = true;
  const Json words = answer(by_turns() + part("response_format", "verbose_json") +
                            part("timestamp_granularities[]", "word") + part("timestamp_granularities[]", "segment"));
  EXPECT_EQ(words.find("segments")->array()->size(), 2U);
  EXPECT_EQ(channels_in_time(words, "words"), std::vector<int64_t>({0, 1, 0}));
}

// All channels together are the work.
TEST_F(TranscriptionJobTest, SeparateChannelsCountEach) {
  const std::string stereo = stereo_wav(beeps({0.5}, 12, kRateHz));
  EXPECT_EQ(run(part("file", stereo)).head->status, 200);  // 6 s
  const ReplyStream::News refused = run(part("file", stereo) + part("channels", "separate"));
  EXPECT_EQ(refused.head->status, 413);
  EXPECT_THAT(refused.head->body, HasSubstr("6.0 s of sound in each of 2 channels; at most 10 s are read"));
}

TEST_F(TranscriptionJobTest, OtherMisusesAndFaults) {
  EXPECT_EQ(run("").head->status, 400);
  EXPECT_THAT(run(file_ + part("model", "gpt-9")).head->body, HasSubstr("model_not_found"));
  EXPECT_THAT(run(file_ + part("language", "en"), /*translated=*/true).head->body, HasSubstr("unknown_parameter"));
  const std::string loud = part("chunking_strategy", R"({"type": "server_vad", "threshold": 7})");
  EXPECT_THAT(run(file_ + loud).head->body, HasSubstr("\"param\":\"chunking_strategy\""));
  // A fault that is visible at once is not reported behind the file.
  EXPECT_THAT(run(part("file", "GIF89a") + part("language", "xx")).head->body, HasSubstr("\"param\":\"language\""));
  recogniser_->throws_at = 2;
  EXPECT_EQ(run(file_).head->status, 503);
  const ReplyStream::News failed = run(file_ + part("stream", "true"));
  EXPECT_EQ(failed.end, ReplyStream::End::kFinished);
  EXPECT_EQ(failed.failure, 503);
  EXPECT_THAT(sent_, HasSubstr("event: error\ndata: {\"error\":"));
  EXPECT_THAT(log_, HasSubstr("out of memory in a transcription"));
}

TEST_F(TranscriptionJobTest, UnfavouredWordsAreIgnoredUnlessStrict) {
  recogniser_->favours_words = false;
  SetUp();
  const std::string words = file_ + part("keywords[]", "Syrinx");
  EXPECT_EQ(*answer(words).find("text")->string(), "beep beep");
  EXPECT_THAT(run(words).head->headers, testing::Contains(testing::Field(&HttpHeader::name, "X-Syrinx-Ignored")));
  strict_ = true;
  const ReplyStream::News refused = run(words);
  EXPECT_EQ(refused.head->status, 400);
  EXPECT_THAT(refused.head->body, HasSubstr("'keywords' is not supported: the model cannot favour words; leave it out, "
                                            "or have the operator switch strict off"));
}

TEST_F(TranscriptionJobTest, ALanguageIsTheModelsOrListed) {
  const auto told = [&](const char* language) {
    const ReplyStream::News news = run(file_ + part("language", language));
    if (news.head->status == 200) return "'" + recogniser_->last_language + "'";
    EXPECT_EQ(news.head->status, 400) << language;
    EXPECT_THAT(news.head->body, HasSubstr(R"("param":"language","code":null)"));
    return news.head->body;
  };
  EXPECT_EQ(told("en"), "'en'");
  EXPECT_EQ(told("en-US"), "'en'");
  EXPECT_EQ(told("DE_at"), "'de'");
  EXPECT_EQ(told(""), "''");
  EXPECT_EQ(told("auto"), "''");  // as over other protocols
  EXPECT_THAT(told("tlh"), HasSubstr("does not recognise 'tlh'; leave the language out, or name one of 2"));
  // A transducer without a prompt: it cannot be told one, and needs none.
  recogniser_->known_languages.clear();
  SetUp();
  EXPECT_THAT(told("en"), HasSubstr("have the operator list them in recognition_languages"));
  settings_.recognition_languages = {"en"};
  SetUp();
  EXPECT_EQ(told("en-US"), "''");
  EXPECT_THAT(told("de"), HasSubstr("does not recognise 'de'"));
}

TEST_F(TranscriptionJobTest, AClientThatLeavesEndsIt) {
  cancelled_ = true;
  const int before = recogniser_->calls;
  run(file_);
  EXPECT_EQ(recogniser_->calls, before);  // it is asked between stretches, before any is heard
  EXPECT_THAT(log_, HasSubstr("\"stopped\":\"cancelled\""));
}

TEST_F(TranscriptionJobTest, SlowReaderIsNoEngineWait) {
  TranscriptionJob job(model_,
                       {.type = kType, .body = file_ + part("stream", "true") + "--b--\r\n", .max_recording_s = 10},
                       {.metrics = metrics_});
  SlotWatch watch(system_clock());
  std::optional<bool> waits;
  job.reply()->on_news([&] { waits = watch.waits_since_ns().has_value(); });
  job.run(watch);
  EXPECT_EQ(waits, false);
  EXPECT_GT(watch.last_given_ns(), INT64_MIN);  // it has waited, too
  job.end();
}

TEST_F(TranscriptionJobTest, ItsRoomIsFreeOnceTheClientHearsOfTheEnd) {
  auto hold = std::make_shared<int>(0);
  const std::weak_ptr<int> held = hold;
  TranscriptionJob job(model_,
                       {.type = kType, .body = file_ + "--b--\r\n", .hold = std::move(hold), .max_recording_s = 10},
                       {.metrics = metrics_});
  SlotWatch watch(system_clock());
  job.run(watch);
  EXPECT_FALSE(held.expired());
  bool free_then = false;
  job.reply()->pop_news();
  job.reply()->on_news([&] { free_then = held.expired(); });
  job.end();
  EXPECT_TRUE(free_then);
}

TEST_F(TranscriptionJobTest, TheServiceTakesRoomAsAnUploadComes) {
  settings_.max_upload_mb = 1;
  settings_.max_uploads_mb = 1;
  Service service(settings_, *ApiKeys::load({}), nullptr);
  HttpRequest head;
  head.method = "POST";
  head.path = "/v1/audio/transcriptions";
  head.headers = {{"Host", "localhost"}, {"Content-Type", kType}, {"Content-Length", "600000"}};
  EXPECT_THAT(service.admit(head).refusal->body, HasSubstr("loading"));  // before any of it is sent
  service.ready(nullptr, model_);
  HttpService::Admission first = service.admit(head);
  EXPECT_EQ(first.refusal, nullptr);
  EXPECT_EQ(first.max_body_bytes, size_t{1} << 20);
  EXPECT_EQ(first.body_setting, "max_upload_mb");
  EXPECT_NE(first.hold, nullptr);
  EXPECT_EQ(first.body_timeout_s, settings_.upload_timeout_s);
  HttpService::Admission second = service.admit(head);
  EXPECT_EQ(second.refusal, nullptr);  // nothing has come yet
  EXPECT_EQ(first.grow(600000), nullptr);
  EXPECT_THAT(service.admit(head).refusal->body, HasSubstr("uploads_full"));
  EXPECT_EQ(second.grow(400000), nullptr);
  EXPECT_THAT(second.grow(600000)->body, HasSubstr("uploads_full"));
  first = {};
  EXPECT_EQ(second.grow(600000), nullptr);
  head.headers[1].value = "text/plain";
  EXPECT_EQ(service.admit(head).refusal->status, 415);
  service.drain();
  ASSERT_TRUE(service.start());
  head.headers[1].value = kType;
  head.body = "no form";
  EXPECT_NE(service.answer(head).stream, nullptr);  // admitted before
  EXPECT_THAT(service.admit(head).refusal->body, HasSubstr("draining"));
}

}  // namespace
}  // namespace syrinx::server
