// The language model, ready for requests: its engine and what it is called.  Immutable once loaded; any thread.
//
// An answer: model.engine().start(request), a ChatAnswer (engine/chat/chat_engine.h).  A job holds a slot of Service's
// chat slots for as long as it has one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/chat/chat_engine.h"
#include "server/settings/model_id.h"
#include "server/settings/settings.h"

namespace syrinx::server {

class ChatModel {
 public:
  // Loads the model of the settings, with as many conversations as there are slots, and has it answer with one token,
  // so that the first request finds everything warm.  The engine's errors.
  static Result<std::shared_ptr<const ChatModel>> load(const Settings& settings);
  // The same of files whose engine is there already, and takes so much memory.
  static Result<std::shared_ptr<const ChatModel>> of(const Settings& settings, ChatFiles files,
                                                     std::shared_ptr<ChatEngine> engine, uint64_t memory_bytes = 0);
  // The checks of load(), without loading.
  static Status check(const Settings& settings);

  ChatEngine& engine() const { return *engine_; }
  StepFigures steps() const { return engine_->steps().since(before_requests_); }  // of requests alone
  uint64_t memory_bytes() const { return memory_bytes_; }  // by so much the process grew in load(); 0: not measured
  double warm_up_ms() const { return warm_up_ms_; }
  const std::string& id() const { return called_.id(); }
  // Whether a request may call the model so: by its id, or by a name of OpenAI's, with a date or without.
  bool is_called(std::string_view model) const;
  // As the other models have them, for GET /v1/models: no file names its languages, and it heeds what a request of
  // openai/chat_request.h may say.
  const std::vector<std::string>& languages() const { return none_; }
  const std::vector<std::string>& unheeded_fields() const { return none_; }
  // Whether a sentence of the engine's names one of the model's files.
  bool names_its_files(std::string_view sentence) const;

 private:
  ChatModel(const Settings& settings, ChatFiles files, std::shared_ptr<ChatEngine> engine);
  static Result<std::shared_ptr<ChatModel>> warmed(const Settings& settings, ChatFiles files,
                                                   std::shared_ptr<ChatEngine> engine);
  Status warm_up() const;

  const ChatFiles files_;
  const ModelNames called_;
  const std::string path_;  // of the settings; empty: the name of an installed model
  const std::shared_ptr<ChatEngine> engine_;
  const std::vector<std::string> none_;
  double warm_up_ms_ = 0;
  StepFigures before_requests_ = {};  // the engine's steps when it was warm
  uint64_t memory_bytes_ = 0;
};

}  // namespace syrinx::server
