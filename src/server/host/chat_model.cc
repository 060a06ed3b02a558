#include "server/host/chat_model.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/memory.h"
#include "engine/chat/chat_family.h"
#include "engine/families/families.h"
#include "engine/families/find_chat_files.h"
#include "server/settings/model_id.h"

namespace syrinx::server {
namespace {

// All that loading needs of the settings.
Result<ChatEngineOptions> engine_options(const Settings& settings) {
  SYRINX_TRY(const UserPaths paths, user_paths());
  ChatEngineOptions options;
  SYRINX_TRY(options.files, find_chat_files(settings.chat_model, models_folder(paths)));
  if (!settings.chat_precision.empty()) {
    SYRINX_TRY(options.precision, parse_precision(settings.chat_precision));
    SYRINX_TRY_VOID(check_precision(*options.files.family, *options.precision));
  }
  options.threads = static_cast<int>(settings.chat_threads);
  options.cache_folder = packed_folder(paths, options.files);
  options.context = static_cast<size_t>(settings.chat_context);
  options.conversations = static_cast<size_t>(settings.chat_slots);
  return options;
}

}  // namespace

Status ChatModel::check(const Settings& settings) {
  const auto options = engine_options(settings);
  if (!options) return tl::unexpected(options.error());
  return {};
}

Result<std::shared_ptr<const ChatModel>> ChatModel::load(const Settings& settings) {
  SYRINX_TRY(ChatEngineOptions options, engine_options(settings));
  ChatFiles files = options.files;
  options.files.name = ModelNames(settings, settings.chat_model, "").id();  // which its messages to clients name
  const uint64_t before_bytes = current_rss_bytes();
  SYRINX_TRY(std::shared_ptr<ChatEngine> engine, load_chat_engine(std::move(options)));
  SYRINX_TRY(const std::shared_ptr<ChatModel> model, warmed(settings, std::move(files), std::move(engine)));
  model->memory_bytes_ = std::max(current_rss_bytes(), before_bytes) - before_bytes;
  return std::shared_ptr<const ChatModel>(model);
}

Result<std::shared_ptr<const ChatModel>> ChatModel::of(const Settings& settings, ChatFiles files,
                                                       std::shared_ptr<ChatEngine> engine, uint64_t memory_bytes) {
  SYRINX_TRY(const std::shared_ptr<ChatModel> model, warmed(settings, std::move(files), std::move(engine)));
  model->memory_bytes_ = memory_bytes;
  return std::shared_ptr<const ChatModel>(model);
}

Result<std::shared_ptr<ChatModel>> ChatModel::warmed(const Settings& settings, ChatFiles files,
                                                     std::shared_ptr<ChatEngine> engine) {
  std::shared_ptr<ChatModel> model(new ChatModel(settings, std::move(files), std::move(engine)));
  const Stopwatch watch;
  SYRINX_TRY_VOID(model->warm_up());
  model->warm_up_ms_ = watch.elapsed_ms();
  model->before_requests_ = model->engine_->steps();
  return model;
}

ChatModel::ChatModel(const Settings& settings, ChatFiles files, std::shared_ptr<ChatEngine> engine)
    : files_(std::move(files)),
      called_(settings, settings.chat_model, "chat"),
      path_(settings.chat_model != id() ? settings.chat_model : ""),
      engine_(std::move(engine)) {}

Status ChatModel::warm_up() const {
  ChatRequest request;
  request.messages.push_back({.role = text::ChatRole::kUser, .content = "Hello."});
  request.max_tokens = 1;
  auto started = engine_->start(std::move(request));
  if (!started && started.error().code == Code::kLimitExceeded)
    return fail(Code::kLimitExceeded, "'chat_context' gives {} tokens, which have no room for a greeting; raise it",
                engine_->context());
  SYRINX_TRY(const std::unique_ptr<ChatAnswer> answer, std::move(started));
  std::string text;
  for (bool goes_on = true; goes_on;) {
    SYRINX_TRY(goes_on, answer->next(text));
  }
  return {};
}

bool ChatModel::is_called(std::string_view model) const { return called_.are_called(model); }

bool ChatModel::names_its_files(std::string_view sentence) const {
  return names_one_of(sentence, {files_.checkpoint, path_});
}

}  // namespace syrinx::server
