#include "server/host/recognition_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/in_quotes.h"
#include "base/log.h"
#include "base/memory.h"
#include "engine/families/families.h"
#include "engine/families/find_recognition_files.h"
#include "engine/speech/speech_engine.h"
#include "engine/speech/speech_files.h"
#include "server/settings/model_id.h"
#include "text/language.h"

namespace syrinx::server {
namespace {

constexpr const char* kKeywords = "keywords[]";

Result<RecognitionFiles> find_files(const Settings& settings, UserPaths& paths) {
  SYRINX_TRY(paths, user_paths());
  Result<RecognitionFiles> files = find_recognition_files(settings.recognition_model, models_folder(paths));
  if (files || files.error().code != Code::kNotFound) return files;
  return fail(Code::kNotFound, "{}; or switch recognition off with --recognition-model \"\"", files.error().message);
}

std::vector<float> second_of_tone() {
  std::vector<float> tone(kRecognitionRateHz);
  for (size_t i = 0; i < tone.size(); ++i) tone[i] = 0.1f * std::sin(0.05f * static_cast<float>(i));
  return tone;
}

// The fields that this model refuses.
std::vector<std::string> find_unheeded_fields(const Recogniser& recogniser, const RecognitionFamily* family) {
  std::vector<std::string> fields;
  for (const KnobHolder& other : recognition_knobs())
    for (const Knob& knob : other.knobs)
      if (family != nullptr && fits_form(knob) && !has_knob(*family, knob.name)) fields.emplace_back(knob.name);
  const auto add = [&](const char* field, Code code, const TranscribeOptions& options, bool of_recordings = false) {
    const Status checked = of_recordings ? recogniser.check_recording(options) : recogniser.check_stream(options);
    if (!checked && checked.error().code == code) fields.emplace_back(field);
  };
  add("language", Code::kUnsupported, {.language = "en"});
  add(kKeywords, Code::kUnsupported, {.knobs = {{"boost", std::vector<std::string>{"a"}}}});
  add("chunking_strategy", Code::kNotFound, {.voice = {.threshold = 0.5}});
  if (family != nullptr && has_knob(*family, "beam"))
    add("beam", Code::kUnsupported, {.knobs = {{"beam", 2.0}}}, /*of_recordings=*/true);
  return fields;
}

}  // namespace

Status RecognitionModel::check(const Settings& settings) {
  UserPaths paths;
  const auto files = find_files(settings, paths);
  if (!files) return tl::unexpected(files.error());
  if (settings.recognition_precision.empty()) return {};
  SYRINX_TRY(const Precision precision, parse_precision(settings.recognition_precision));
  return check_precision(*files->family, precision);
}

Result<std::shared_ptr<const RecognitionModel>> RecognitionModel::load(const Settings& settings) {
  UserPaths paths;
  RecogniserOptions options;
  SYRINX_TRY(options.files, find_files(settings, paths));
  if (!settings.recognition_precision.empty()) {
    SYRINX_TRY(options.precision, parse_precision(settings.recognition_precision));
  }
  options.threads = static_cast<int>(settings.recognition_threads);
  options.max_streams = static_cast<size_t>(settings.recognition_slots);
  options.heartbeat = settings.recognition_heartbeat;
  options.warm_up = true;
  options.cache_folder = packed_folder(paths, options.files);
  RecognitionFiles files = options.files;
  options.files.name = ModelNames(settings, settings.recognition_model, "").id();  // which its messages to clients name
  const uint64_t before_bytes = current_rss_bytes();
  SYRINX_TRY(std::shared_ptr<Recogniser> recogniser, load_recogniser(std::move(options)));
  SYRINX_TRY(const std::shared_ptr<RecognitionModel> model, warmed(settings, std::move(files), std::move(recogniser)));
  SYRINX_TRY_VOID(model->measure_stream());
  model->memory_bytes_ = std::max(current_rss_bytes(), before_bytes) - before_bytes;
  return std::shared_ptr<const RecognitionModel>(model);
}

Result<std::shared_ptr<const RecognitionModel>> RecognitionModel::of(const Settings& settings, RecognitionFiles files,
                                                                     std::shared_ptr<Recogniser> recogniser) {
  SYRINX_TRY(const std::shared_ptr<RecognitionModel> model, warmed(settings, std::move(files), std::move(recogniser)));
  return std::shared_ptr<const RecognitionModel>(model);
}

Result<std::shared_ptr<RecognitionModel>> RecognitionModel::warmed(const Settings& settings, RecognitionFiles files,
                                                                   std::shared_ptr<Recogniser> recogniser) {
  std::shared_ptr<RecognitionModel> model(new RecognitionModel(settings, std::move(files), std::move(recogniser)));
  const Stopwatch watch;
  SYRINX_TRY_VOID(model->warm_up());
  model->stream_ms_ = watch.elapsed_ms();
  model->warm_up_ms_ = model->recogniser_->warm_up_ms() + model->stream_ms_;
  return model;
}

RecognitionModel::RecognitionModel(const Settings& settings, RecognitionFiles files,
                                   std::shared_ptr<Recogniser> recogniser)
    : files_(std::move(files)),
      called_(settings, settings.recognition_model, "transcription"),
      path_(settings.recognition_model != id() ? settings.recognition_model : ""),
      recogniser_(std::move(recogniser)),
      languages_(settings.recognition_languages.empty() ? recogniser_->languages() : settings.recognition_languages),
      unheeded_fields_(find_unheeded_fields(*recogniser_, files_.family)),
      voice_activity_(recogniser_->voice_activity()) {}

// The whole way once; voice activity would leave out what is no speech.
Status RecognitionModel::warm_up() const {
  TranscribeOptions options;
  options.voice_activity = false;
  const auto heard = recogniser_->transcribe(second_of_tone(), options, {});
  if (!heard) return tl::unexpected(heard.error());
  return {};
}

// A recording costs far more for its first second: a whole window, with all its attempts.
Status RecognitionModel::measure_stream() {
  TranscribeOptions options;
  options.voice_activity = false;
  const StepFigures before = before_requests_ = recogniser_->steps();
  const auto stream = recogniser_->start(options);
  if (!stream) {
    log_warning("live streams are admitted by the cost of a recording, as none could be tried: {}",
                stream.error().message);
    return {};
  }
  std::vector<RecognitionEvent> events;
  SYRINX_TRY_VOID((*stream)->push(second_of_tone(), events));
  SYRINX_TRY_VOID((*stream)->finish(events));
  before_requests_ = recogniser_->steps();
  const StepFigures steps = before_requests_.since(before);
  if (steps.took_ns > 0) stream_ms_ = static_cast<double>(steps.took_ns) * 1e-6;
  return {};
}

bool RecognitionModel::is_called(std::string_view model) const { return called_.are_called(model); }

tl::expected<std::string, HttpError> RecognitionModel::language_called(std::string_view language) const {
  const std::vector<std::string> told = recogniser_->languages();
  if (const std::string* const found = text::closest_language(told, language)) return *found;
  if (text::closest_language(languages_, language) != nullptr) return std::string();
  std::string message =
      languages_.empty()
          ? fmt::format(
                "the files of {} do not tell which languages it recognises; leave the language out, or have the "
                "operator list them in recognition_languages",
                id())
          : fmt::format("{} does not recognise {}; leave the language out, or name one of {} that are listed, say {}",
                        id(), in_quotes(language), languages_.size(), in_quotes(languages_.front()));
  return tl::unexpected(
      HttpError{.status = 404, .message = std::move(message), .param = "language", .code = "language_not_found"});
}

bool RecognitionModel::takes_keywords() const {
  return std::find(unheeded_fields_.begin(), unheeded_fields_.end(), kKeywords) == unheeded_fields_.end();
}

bool RecognitionModel::names_its_files(std::string_view sentence) const {
  return names_one_of(sentence, {files_.checkpoint, files_.voice_activity, path_});
}

}  // namespace syrinx::server
