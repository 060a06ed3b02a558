// The routes: who may ask, how much, and what answers.  Knows no socket; the transport calls it on its one thread, and
// what takes time goes to a slot.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "server/host/host.h"
#include "server/host/live_admission.h"
#include "server/host/metrics.h"
#include "server/host/modules.h"
#include "server/host/request_log.h"
#include "server/host/slots.h"
#include "server/host/upload_room.h"
#include "server/http/http_server.h"
#include "server/openapi.h"
#include "server/settings/access.h"
#include "server/settings/settings.h"

namespace syrinx::server::realtime {
class Ear;
class ReplySource;
struct Handshake;
}  // namespace syrinx::server::realtime

namespace syrinx::server {

class Service final : public HttpService, public Host {
 public:
  // The log (null: none) must outlive it.
  Service(const Settings& settings, ApiKeys keys, RequestLog* log);
  // Cancelled answers must have been given up by the transport: waits for what the slots still do.
  ~Service() override;

  // Makes the slots' threads, before the first request.  Errors: SlotPool::start().
  Status start();
  // Until one of these, /ready and the models' routes answer 503.  The models are those of the first modules; a kind
  // without one is then switched off.
  void ready();
  void ready(std::shared_ptr<const SpeechModel> speech, std::shared_ptr<const RecognitionModel> recognition = {},
             std::shared_ptr<const ChatModel> chat = {});
  Modules& modules() { return modules_; }
  // Source of replies in sessions of /v1/realtime, to speech too; before the first request.  Without it, the client's
  // own text is read aloud.
  void answer_by(std::shared_ptr<realtime::ReplySource> replies);
  void drain();  // from now on /ready and new work are refused

  StartedSpeech start_speech(SpeechOrder order, std::unique_ptr<SpeechAnswer> answer) override;
  tl::expected<std::shared_ptr<ReplyStream>, HttpError> start_recognition(const MakeJob& make) override;
  StartedChat start_chat(ChatOrder order, std::unique_ptr<ChatSink> sink) override;
  tl::expected<Models, HttpError> loaded_models() override;
  size_t max_text_characters() const override { return static_cast<size_t>(settings_.max_text_characters); }
  double text_timeout_s() const override { return settings_.text_timeout_s; }
  double max_utterance_s() const override { return settings_.max_utterance_s; }
  size_t max_body_bytes() const override { return static_cast<size_t>(settings_.max_body_kb) * 1024; }
  void answered(const Asked& asked, const Answered& answered) override;

  Admission admit(const HttpRequest& head) override;
  HttpReply answer(HttpRequest& request) override;
  void answered(const HttpRequest& request, const Answered& answered) override;
  void refused() override;
  void handshake_failed() override;

  static std::vector<RoutePolicy> policies();  // of every route

 private:
  enum class State { kLoading, kReady, kDraining };
  enum class Body { kNone, kJson, kUpload, kVoice, kSound };
  using Handler = HttpReply (Service::*)(HttpRequest&);
  struct Route {
    const char* method;
    const char* path;
    Handler handler;
    bool needs_key;
    Body body;
    ErrorForm error_form = error_body;
    bool is_at(std::string_view asked) const;  // whether it answers for that path
  };
  static std::span<const Route> routes();
  static const Route* find_route(const HttpRequest& request);
  static const Route* find_path(std::string_view path);  // whatever the method

  HttpReply health(HttpRequest& request);
  HttpReply ready_or_not(HttpRequest& request);
  HttpReply metrics_page(HttpRequest& request);
  HttpReply openapi(HttpRequest& request);
  HttpReply page(HttpRequest& request);
  HttpReply models(HttpRequest& request);
  HttpReply model(HttpRequest& request);
  HttpReply speaking_models(HttpRequest& request);
  HttpReply voices(HttpRequest& request);
  HttpReply voice(HttpRequest& request);
  HttpReply upload_voice(HttpRequest& request);
  HttpReply delete_voice(HttpRequest& request);
  HttpReply speech(HttpRequest& request);
  HttpReply chat(HttpRequest& request);
  HttpReply realtime(HttpRequest& request);
  HttpReply decode_stream(HttpRequest& request);
  HttpReply decode_batch(HttpRequest& request);
  HttpReply transcription(HttpRequest& request);
  HttpReply translation(HttpRequest& request);
  HttpReply transcribe(HttpRequest& request, bool translated);

  std::unique_ptr<HttpReply> refuse_early(const HttpRequest& head) const;
  static std::unique_ptr<HttpReply> wrong_method(const HttpRequest& head);
  void admit_json(const HttpRequest& head, Admission& admission);
  void admit_upload(const HttpRequest& head, Body body, Admission& admission);
  // Long messages of the client take room beside uploads.
  void give_room(MessageStream& messages, const HttpRequest& request);
  std::optional<HttpError> upload_misuse(const HttpRequest& head, Body body);
  static std::optional<HttpError> voice_misuse(const SpeechModel* speech);
  HttpError uploads_full(size_t bytes);
  HttpError all_busy(size_t count, const char* what, const char* of = "");  // "slot", " for recordings"
  HttpError all_busy(const SlotPool& slots, SlotPool::Work work = SlotPool::Work::kLive);
  tl::expected<SlotPool::Lease, HttpError> take_slot(Module* module);  // null: there is none
  std::optional<HttpError> decode_misuse(const HttpRequest& head);
  void measure_load(const Module& module, const Models& models);
  // Has `take` take a slot where there is room for one more live stream; else the reason of the refusal.
  std::optional<HttpError> admit_live(Module& module, const std::function<bool()>& take);
  std::optional<HttpError> start_live(Module& module, SlotPool::Job job, SlotPool::Done done);
  std::optional<HttpError> start_live(Module& module, const std::shared_ptr<SlotJob>& job);
  HttpError overloaded(const Module& module, const LiveAdmission::Refusal& refused);
  bool has_room(const Module& module);
  // A module with its model, for a request.
  struct Offer {
    Module* module;
    Models models;
  };
  std::optional<HttpError> why_closed(bool to_new_work);  // while there is nothing to offer
  // The reply where the model is not there: that there is none of that name, or that it is waited for.
  tl::expected<Offer, HttpReply> offer(ModuleKind kind, std::string_view name);
  tl::expected<Offer, HttpReply> offer_to_new(ModuleKind kind, std::string_view name);  // 503 while draining
  static HttpReply not_offered(HttpRequest& request, HttpReply reply);
  tl::expected<Offer, HttpError> offer_now(ModuleKind kind, std::string_view name);  // 503 instead of waiting
  tl::expected<Offer, HttpReply> offer_of_query(ModuleKind kind, const HttpRequest& request);
  bool has_choice(ModuleKind kind) const;
  std::string named_model(ModuleKind kind, const HttpRequest& request) const;
  struct SessionModules {
    Module *speech = nullptr, *recognition = nullptr, *chat = nullptr;
    bool is_spoken = false, is_heard = false, is_local = false;  // by the model that the handshake names
    bool is_transcription = false;
  };
  SessionModules session_modules(const realtime::Handshake& handshake);
  std::optional<HttpReply> load_for_session(const SessionModules& found, Models& models, HttpRequest& request);
  std::optional<HttpError> start_ear(Module* module, const std::shared_ptr<realtime::Ear>& ear);
  HttpError no_module(ModuleKind kind, std::string_view name) const;
  tl::expected<Module*, HttpError> decoding_module(const HttpRequest& request);
  // The reason of a refusal.
  std::optional<HttpError> start_job(SlotPool& slots, const std::shared_ptr<SlotJob>& job, SlotPool::Work work);
  JobReports reports();
  bool bears_key(const HttpRequest& head) const;
  HttpError unavailable(const char* reason, std::string message);
  Json::Array listed_models(std::optional<ModuleKind> kind = {}) const;
  void model_loaded(Module& module, const Models& models);
  void model_unloads(const Module& module);
  void log_module(const char* event, const Module& module, double ms, uint64_t memory_bytes);
  void begin_counters();
  void begin_model_counters(const std::string& id, ModuleKind kind);
  void set_gauges();
  void set_module_gauges(const Module& module);
  void set_slot_gauges(const std::string& id, const SlotPool& slots);
  void set_engine_figures(const std::string& id, const StepFigures& steps, size_t waiting);
  void set_live_load(const std::string& id, const SlotPool& slots);

  const Settings settings_;
  const ApiKeys keys_;
  RequestLog* const log_;
  const double started_s_;
  std::atomic<State> state_{State::kLoading};
  Metrics metrics_;
  std::atomic<int64_t> waiting_samples_{0};  // JobReports::waiting_samples
  UploadRoom upload_room_;
  std::shared_ptr<realtime::ReplySource> replies_;
  bool answers_turns_ = false;
  LiveAdmission live_;   // of speech and recognition
  Modules modules_;      // their jobs use the above
  SlotPool voice_slot_;  // one: uploads and deletions never meet
  SlotPool sessions_;    // last: they use the slots
};

}  // namespace syrinx::server
