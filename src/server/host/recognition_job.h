// A recording or an utterance that is transcribed, on a slot's thread: what all protocols have in common.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/recognition/sound_transcription.h"
#include "server/host/recognition_model.h"
#include "server/host/slot_job.h"

namespace syrinx::server {

class RecognitionJob : public SlotJob {
 public:
  const std::shared_ptr<ReplyStream>& reply() const final { return reply_; }

 protected:
  // `id`: of the request, for the log.
  RecognitionJob(std::shared_ptr<const RecognitionModel> model, std::string id, JobReports reports);

  const char* what() const final { return "a transcription"; }
  void report() const final;

  const RecognitionModel& model() const { return *model_; }
  // As transcribe_sound() takes it: batch work, before which the engine has live streams go.
  SoundProgress progress(SlotWatch& watch);
  // TranscribeOptions::is_wanted
  std::function<bool()> is_wanted() const {
    return [reply = reply_.get()] { return !reply->cancelled(); };
  }
  // Words have come, and how long they were waited for: counts once.
  void note_first_word(double waited_s);
  void log_first_word(double waited_s) { first_word_s_ = waited_s; }  // which has been counted
  void note_took(double ms) { took_ms_ = ms; }
  void note_audio(double seconds) { audio_s_ = seconds; }
  void note_ignored(std::vector<std::string> fields) { ignored_ = std::move(fields); }

 private:
  const std::shared_ptr<const RecognitionModel> model_;
  const std::string id_;
  const std::shared_ptr<ReplyStream> reply_ = std::make_shared<ReplyStream>();
  std::optional<double> first_word_s_;
  double audio_s_ = 0, took_ms_ = 0;
  std::vector<std::string> ignored_;  // fields of the request that the model lacks
};

}  // namespace syrinx::server
