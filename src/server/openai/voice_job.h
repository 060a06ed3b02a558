// A voice that a client uploads or deletes, on the one slot that such work has: they never meet, and no stream loses a
// slot to them.  Cloning takes turns with what is being spoken, a second of sound at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/host/slot_job.h"
#include "server/host/speech_model.h"
#include "server/http/multipart.h"

namespace syrinx::server {

// Fields of `POST /v1/audio/voices`.
struct VoiceRequest {
  std::string name;
  std::string_view sample;  // into the form: a recording, or an exported voice
  std::string model = {};
};
// 400: a field is missing, unknown or given twice, or the name cannot be one.
tl::expected<VoiceRequest, HttpError> parse_voice_request(const std::vector<FormPart>& parts);
// The names of all fields that it knows, but for `file`, another name of `audio_sample`.
std::vector<std::string> voice_fields();

// 404 for a name that none has.
HttpError no_voice(const std::string& name);
// Refusal of a model that makes no voices of recordings.
HttpError no_cloning();

// As the routes of /v1/audio/voices tell of a voice.
Json voice_json(const SpeechModel& model, const ListedVoice& voice);

struct VoiceOrder {
  std::string deleted = {};  // the name of the voice that is to go; empty: the following is uploaded
  std::string type = {};     // the Content-Type
  std::string body = {};
  std::shared_ptr<const void> hold = {};  // of the room that the body takes, as long as the order lives
  size_t max_voices = 0;
  std::string id = {};  // of the HTTP request
};

class VoiceJob final : public SlotJob {
 public:
  VoiceJob(std::shared_ptr<const SpeechModel> model, VoiceOrder order, JobReports reports)
      : SlotJob(reports), model_(std::move(model)), order_(std::move(order)) {}

  const std::shared_ptr<ReplyStream>& reply() const override { return reply_; }

 private:
  Status work(SlotWatch& watch) override;
  const char* what() const override { return order_.deleted.empty() ? "an upload of a voice" : "a voice's deletion"; }
  HttpError told(const Error& error) const override;
  bool fail_answer(const HttpError& error) override;
  void end_answer(bool complete) override;
  void report() const override;

  Status upload();
  Status remove();
  std::optional<HttpError> cannot_add(const VoiceRequest& request) const;
  HttpError unfit(const Error& error) const;
  // The client is told `answer`, the log `error`.
  Status refused(HttpError answer, std::string error = {});

  const std::shared_ptr<const SpeechModel> model_;
  VoiceOrder order_;
  const std::shared_ptr<ReplyStream> reply_ = std::make_shared<ReplyStream>();
  std::optional<HttpError> refusal_;
  double took_ms_ = 0;
};

}  // namespace syrinx::server
