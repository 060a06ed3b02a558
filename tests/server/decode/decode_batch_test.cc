// Recordings of the transducer profile: what their requests may say, and what is answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "audio/pcm.h"
#include "base/json.h"
#include "server/decode/batch_job.h"
#include "server/service.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/recognition/fake_recogniser.h"
#include "tests/server/host/recognition_job_fixture.h"

namespace syrinx::server::decode {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char *kJson = "application/json", *kBytes = "application/octet-stream";

std::string beeping(const std::vector<double>& at_s, double length_s) {
  const std::vector<float> sound = beeps(at_s, length_s, kRecognitionRateHz);
  std::vector<int16_t> samples(sound.size());
  PcmQuantizer().convert(sound, samples);
  return {reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(int16_t)};
}

std::string as_numbers(const std::string& bytes) {
  std::string list;
  for (const char byte : bytes) list += fmt::format("{}{}", list.empty() ? "" : ", ", static_cast<unsigned char>(byte));
  return "[" + list + "]";
}

std::string fault(const std::string& body, const char* type = kJson, double max_s = 1) {
  const auto request = parse_batch_request(type, body, max_s);
  if (!request && request.error().status != 400) return "another status";
  return request ? "" : request.error().message;
}

TEST(DecodeRequest, SoundIsOfNumbersOrOfBytes) {
  const auto numbers = parse_batch_request("Application/JSON; charset=utf-8",
                                           R"({"_model": "x", "audio_buffer": [0, 1, 127, 255], "_incremental": false,)"
                                           R"( "opaque": "é", "_description": null})",
                                           1);
  ASSERT_TRUE(numbers) << numbers.error().message;
  EXPECT_EQ(numbers->sound, std::string("\x00\x01\x7F\xFF", 4));
  EXPECT_EQ(numbers->opaque, "é");
  const auto bytes = parse_batch_request(kBytes, std::string("\x00\x01\x7F\xFF", 4), 1);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->sound, numbers->sound);
  EXPECT_FALSE(bytes->opaque);
  EXPECT_FALSE(parse_batch_request(kJson, R"({"audio_buffer": [1, 2], "opaque": null})", 1)->opaque);
  // Ignored fields may have any value: openapi_decode.json says so.
  for (const std::string value : {"7", "1.5", "\"yes\"", "true", "null"})
    for (const std::string field : {"_description", "_incremental", "_model"})
      EXPECT_EQ(fault(R"({"audio_buffer": [1, 2], ")" + field + "\": " + value + "}"), "") << field << value;
}

// The parser's copies and its message about a fault would be many times as long.
TEST(DecodeRequest, LongPiecesAreNotParsed) {
  const std::string kept = R"({"audio_buffer": [1, 2], "opaque": ")", blanks(size_t{1} << 20, '\n');
  for (const std::string& body : {blanks + "x", kept + blanks, kept + std::string(size_t{1} << 20, 'a') + "\"}",
                                  "{\"audio_buffer\": [" + std::string(size_t{1} << 20, '1') + "]}"})
    EXPECT_THAT(fault(body), HasSubstr("more than 131072 bytes"));
  std::string opaque;
  for (int i = 0; i < 10000; ++i) opaque += "\\u4e16";
  EXPECT_TRUE(parse_batch_request(kJson, kept + opaque + "\"}", 1));
}

TEST(DecodeRequest, FaultsAreNamed) {
  EXPECT_THAT(fault(""), HasSubstr("give a JSON object with 'audio_buffer'"));
  EXPECT_THAT(fault("[1, 2]"), HasSubstr("JSON"));
  EXPECT_THAT(fault("7"), HasSubstr("the body is not an object"));
  EXPECT_THAT(fault("{}"), HasSubstr("'audio_buffer' must be a list of bytes"));
  EXPECT_THAT(fault(R"({"audio_buffer": "AAAA"})"), HasSubstr("'audio_buffer' must be a list of bytes"));
  for (const char* element : {"256", "-1", "1.5", "null", "true", "\"1\"", "[1]", "{}"})
    EXPECT_THAT(fault(std::string(R"({"audio_buffer": [1, )") + element + "]}"),
                HasSubstr("element 1 of 'audio_buffer' is not a whole number from 0 to 255"))
        << element;
  EXPECT_THAT(fault(R"({"audio_buffer": []})"), HasSubstr("no sound"));
  EXPECT_THAT(fault("", kBytes), HasSubstr("no sound"));
  EXPECT_THAT(fault(R"({"audio_buffer": [1, 2, 3]})"), HasSubstr("3 bytes, and a sample has 2"));
  EXPECT_THAT(fault("abc", kBytes), HasSubstr("3 bytes, and a sample has 2"));
  EXPECT_EQ(fault(std::string(32000, 'x'), kBytes), "");
  EXPECT_THAT(fault(std::string(32002, 'x'), kBytes), HasSubstr("longer than 1 s, which are 32000 bytes"));
  EXPECT_EQ(fault(R"({"audio_buffer": )" + as_numbers(std::string(32000, 'x')) + "}"), "");
  EXPECT_THAT(fault(R"({"audio_buffer": )" + as_numbers(std::string(32002, 'x')) + "}"), HasSubstr("longer than 1 s"));
  EXPECT_THAT(fault(R"({"audio_buffer": [1, 2], "opaque": 7})"), HasSubstr("'opaque' must be a text"));
  EXPECT_THAT(fault(R"({"audio_buffer": [1, 2], "opaque": ")" + std::string(10001, 'x') + "\"}"), HasSubstr("10001"));
  EXPECT_THAT(fault(R"({"audio_buffer": [1, 2], "model": "x"})"), HasSubstr("there is no field 'model'"));
  EXPECT_THAT(fault(R"({"audio_buffer": [1, 2], "_model": ["x"]})"), HasSubstr("nested deeper"));
  EXPECT_THAT(fault(R"({"audio_buffer": [1, 2], "audio_buffer": [1, 2]})"), HasSubstr("twice"));
  std::string members;
  for (int i = 0; i < 20; ++i) members += fmt::format(R"("x{}": 1, )", i);
  EXPECT_THAT(fault("{" + members + R"("audio_buffer": [1, 2]})"), HasSubstr("more than 16 values"));
}

TEST(DecodeRequest, Types) {
  for (const char* type : {"application/json", "APPLICATION/OCTET-STREAM ; x=y"})
    EXPECT_FALSE(batch_type_fault(type)) << type;
  for (const char* type : {"", "text/plain", "application/json2", "multipart/form-data; boundary=b"})
    EXPECT_EQ(batch_type_fault(type)->status, 415) << type;
}

class DecodeBatch : public RecognitionJobTest {
 protected:
  ReplyStream::News run(const std::string& type, std::string body, Opaque opaque = {}) {
    run_job<BatchJob>(
        BatchOrder{.type = type, .body = std::move(body), .opaque = std::move(opaque), .max_s = 3, .id = "1"});
    return reply_->pop_news();
  }
};

TEST_F(DecodeBatch, ARecordingIsAnsweredWhole) {
  const std::string sound = beeping({0.5, 1.5}, 2);
  const ReplyStream::News numbers =
      run(kJson, R"({"audio_buffer": )" + as_numbers(sound) + R"(, "opaque": "own"})", "of the query");
  EXPECT_EQ(numbers.head->status, 200);
  EXPECT_TRUE(numbers.whole);
  EXPECT_EQ(numbers.head->body, R"({"transcription":"beep beep","status":"COMPLETE",)"
                                R"("metadata":{"audio_length_samples":32000,"features_length":200,"encoded_length":25,)"
                                R"("tokens":2},"opaque":"own"})");
  EXPECT_EQ(run(kBytes, sound, "of the query").head->body,
            R"({"transcription":"beep beep","status":"COMPLETE",)"
            R"("metadata":{"audio_length_samples":32000,"features_length":200,"encoded_length":25,)"
            R"("tokens":2},"opaque":"of the query"})");
  EXPECT_THAT(run(kBytes, sound).head->body, Not(HasSubstr("opaque")));
  EXPECT_THAT(log_, HasSubstr(R"("event":"transcription","id":"1")"));
  EXPECT_THAT(log_, HasSubstr(R"("stopped":"done","audio_seconds":2.0)"));
  EXPECT_THAT(log_, Not(HasSubstr("beep")));
  EXPECT_THAT(metrics_.text(), HasSubstr("direction=\"in\"} 6\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_time_to_first_word_seconds_count{model=\"fake\"} 3\n"));
}

TEST_F(DecodeBatch, MisusesAndFaults) {
  EXPECT_EQ(run(kBytes, "abc").head->status, 400);
  EXPECT_THAT(log_, Not(HasSubstr("\"error\":")));
  recogniser_->throws_at = 1;
  const ReplyStream::News busy = run(kBytes, beeping({0.5}, 1));
  EXPECT_EQ(busy.head->status, 503);
  ASSERT_NE(busy.head->error, nullptr);
  EXPECT_THAT(decode::error_body(*busy.head->error), HasSubstr(R"("error_type":"overloaded_error")"));
  EXPECT_THAT(log_, HasSubstr("out of memory in a transcription"));
  recogniser_->throws_at = 0;
  recogniser_->fault = "'/secret/place/model.bin' is broken";
  const ReplyStream::News broken = run(kBytes, beeping({0.5}, 1));
  EXPECT_EQ(broken.head->status, 502);  // where it would be 500: the engine stands for the original's other server
  EXPECT_THAT(decode::error_body(*broken.head->error), Not(HasSubstr("secret")));
  EXPECT_THAT(log_, HasSubstr("/secret/place/model.bin"));
  recogniser_->fault.clear();
  cancelled_ = true;
  const int before = recogniser_->calls;
  run(kBytes, beeping({0.5}, 1));
  EXPECT_EQ(recogniser_->calls, before);
  EXPECT_THAT(log_, HasSubstr("\"stopped\":\"cancelled\""));
}

TEST_F(DecodeBatch, ServiceAdmitsRecordingsWithinItsLimits) {
  settings_.max_upload_mb = 200;
  settings_.max_uploads_mb = 200;
  settings_.recognition_slots = 1;
  Service service(settings_, *ApiKeys::load({}), nullptr);
  ASSERT_TRUE(service.start());
  HttpRequest head;
  head.method = "POST";
  head.path = "/v2/decode/batch/fake";
  head.headers = {{"Host", "localhost"}, {"Content-Type", kBytes}, {"Content-Length", "1000"}};
  const auto refusal = [&] {
    const HttpService::Admission admission = service.admit(head);
    if (!admission.refusal) return std::string();
    return fmt::format("{} {}", admission.refusal->status, admission.error_form(*admission.refusal->error));
  };
  EXPECT_THAT(refusal(), HasSubstr(R"("error_type":"loading")"));
  service.ready(nullptr, model_);
  EXPECT_EQ(refusal(), "");
  const HttpService::Admission admission = service.admit(head);
  EXPECT_EQ(admission.max_body_bytes, 960000U);  // of decode_max_batch_s: more would come for nothing
  EXPECT_EQ(admission.body_setting, "decode_max_batch_s");
  EXPECT_EQ(admission.body_timeout_s, settings_.upload_timeout_s);
  EXPECT_NE(admission.hold, nullptr);
  head.headers[1].value = kJson;
  EXPECT_EQ(service.admit(head).max_body_bytes, size_t{100} << 20);
  EXPECT_EQ(service.admit(head).body_setting, "");  // a constant
  head.headers[1].value = kBytes;
  head.path = "/v2/decode/batch/other";
  EXPECT_THAT(refusal(), HasSubstr("404 {\"error\":\"there is no model 'other'"));
  head.path = "/v2/decode/batch/fake";
  head.query = "opaque=%";
  EXPECT_THAT(refusal(), HasSubstr("400 "));
  head.query = "";
  head.headers[1].value = "text/plain";
  EXPECT_THAT(refusal(), HasSubstr("415 "));
  head.headers[1].value = kBytes;
  service.drain();
  EXPECT_THAT(refusal(), HasSubstr(R"("error_type":"draining")"));
  head.body = beeping({0.1}, 0.5);
  EXPECT_NE(service.answer(head).stream, nullptr);  // admitted before
}

}  // namespace
}  // namespace syrinx::server::decode
