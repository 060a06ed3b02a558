// The model that recognises speech, ready for requests: its recogniser, what it is called, and what finds speech in
// sound.  Immutable once loaded; any thread.
//
// A recording: transcribe_sound(model.recogniser(), ...) of engine/recognition/sound_transcription.h.  Sound as it
// comes: model.recogniser().start(options), a RecognitionStream (engine/recognition/recogniser.h) that ends utterances
// by its own rules (TranscribeOptions::voice, ::endpoints) or at commit().  Both go by the scheduler's order.  A job
// holds a slot of Service's recognition slots for as long as it may use either.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/recognition/recogniser.h"
#include "engine/recognition/recognition_family.h"
#include "server/http/http_message.h"
#include "server/settings/model_id.h"
#include "server/settings/settings.h"

namespace syrinx::silero {
class SileroVad;
}

namespace syrinx::server {

class RecognitionModel {
 public:
  // Loads the model of the settings, with as many streams as there are slots, and has it hear a second of sound, so
  // that the first request finds everything warm.  The engine's errors; kNotFound also says how to switch recognition
  // off.
  static Result<std::shared_ptr<const RecognitionModel>> load(const Settings& settings);
  // The same of files whose recogniser is there already.
  static Result<std::shared_ptr<const RecognitionModel>> of(const Settings& settings, RecognitionFiles files,
                                                            std::shared_ptr<Recogniser> recogniser);
  // The checks of load(), without loading.
  static Status check(const Settings& settings);

  Recogniser& recogniser() const { return *recogniser_; }
  StepFigures steps() const { return recogniser_->steps().since(before_requests_); }  // of requests alone
  uint64_t memory_bytes() const { return memory_bytes_; }  // by so much the process grew in load(); 0: not measured
  double warm_up_ms() const { return warm_up_ms_; }        // of the recogniser, and of that second
  // Work for a second of audio of a live stream: by the steps of a stream where load() has tried one.
  double stream_ms() const { return stream_ms_; }
  const RecognitionFamily& family() const { return *files_.family; }
  const std::string& id() const { return called_.id(); }
  // Whether a request may call the model so: by its id, or by a name of OpenAI's, with a date or without.
  bool is_called(std::string_view model) const;
  // Languages that it recognises, "en" or "en-US": what the operator says, else what the model does; empty: nobody
  // says.
  const std::vector<std::string>& languages() const { return languages_; }
  // Fields of a request of /v1/audio/transcriptions that it does not heed.
  const std::vector<std::string>& unheeded_fields() const { return unheeded_fields_; }
  // Whether words can be favoured.
  bool takes_keywords() const;
  // TranscribeOptions::language for a language of a request, by its code with or without a country, in any case: that
  // of the model's own, or none for another one that the operator has listed.  404 for any other.
  tl::expected<std::string, HttpError> language_called(std::string_view language) const;
  // Whether a sentence of the engine's names one of the model's files.
  bool names_its_files(std::string_view sentence) const;
  // For whoever must tell when speech begins and ends, which the recogniser's own streams do not: Recogniser's.
  const std::shared_ptr<const silero::SileroVad>& voice_activity() const { return voice_activity_; }

 private:
  RecognitionModel(const Settings& settings, RecognitionFiles files, std::shared_ptr<Recogniser> recogniser);
  static Result<std::shared_ptr<RecognitionModel>> warmed(const Settings& settings, RecognitionFiles files,
                                                          std::shared_ptr<Recogniser> recogniser);
  Status warm_up() const;
  Status measure_stream();

  const RecognitionFiles files_;
  const ModelNames called_;
  const std::string path_;  // of the settings; empty: the name of an installed model
  const std::shared_ptr<Recogniser> recogniser_;
  const std::vector<std::string> languages_;
  const std::vector<std::string> unheeded_fields_;
  const std::shared_ptr<const silero::SileroVad> voice_activity_;
  double warm_up_ms_ = 0, stream_ms_ = 0;
  StepFigures before_requests_ = {};  // the recogniser's steps when it was warm
  uint64_t memory_bytes_ = 0;
};

}  // namespace syrinx::server
