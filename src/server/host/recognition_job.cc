#include "server/host/recognition_job.h"

#include <cmath>
#include <utility>

namespace syrinx::server {

RecognitionJob::RecognitionJob(std::shared_ptr<const RecognitionModel> model, std::string id, JobReports reports)
    : SlotJob(reports), model_(std::move(model)), id_(std::move(id)) {}

SoundProgress RecognitionJob::progress(SlotWatch& watch) {
  return [this, &watch](double done_s, std::optional<double> /*total_s*/) {
    watch.wait_goes_on();  // for the next piece
    audio_s_ = done_s;
    return !reply_->cancelled();
  };
}

void RecognitionJob::note_first_word(double waited_s) {
  if (first_word_s_) return;
  first_word_s_ = waited_s;
  metrics().observe("syrinx_time_to_first_word_seconds", {{"model", model_->id()}}, *first_word_s_);
}

void RecognitionJob::report() const {
  metrics().add("syrinx_audio_seconds_total", {{"model", model_->id()}, {"direction", "in"}}, audio_s_);
  auto line = log_line("transcription", id_, model_->id(), outcome());
  if (!line) return;
  line->set("audio_seconds", std::round(audio_s_ * 1e3) / 1e3);
  line->set("first_word_ms", first_word_s_ ? Json(milliseconds(*first_word_s_)) : Json());
  line->set("took_ms", milliseconds(took_ms_ / 1000));
  if (!ignored_.empty()) line->set("ignored", Json::Array(ignored_.begin(), ignored_.end()));
  log(*line);
}

}  // namespace syrinx::server
