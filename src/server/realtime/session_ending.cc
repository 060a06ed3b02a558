// How a session ends: by its client, by its time, or with the server.
#include <utility>

#include "server/realtime/session.h"

namespace syrinx::server::realtime {
namespace {

constexpr int kNormal = 1000, kViolation = 1008;

double seconds_since(int64_t then_ns, int64_t now_ns) { return static_cast<double>(now_ns - then_ns) * 1e-9; }

HttpError going_down() {
  return {.status = 503, .message = "the server is going down; connect again, or to another one", .code = "draining"};
}

}  // namespace

bool Session::is_over() {
  if (messages_->is_gone()) {
    end_ = {kNormal};
    return true;
  }
  return has_gone_down() || is_late();
}

// Messages that came before the server began to go down are handled, at most as many as can have been waiting: a client
// may send on and on.  Then the open turn is finished as far as it goes.
void Session::take_next() {
  if (!dropped_.empty() || !hearing_.is_quiet() || !events_.has_room()) return;
  const bool is_ending = messages_->is_ending();  // first: what came before that is heeded
  if ((!is_ending || begins_nothing_) && pace_.wait_s(clock_.now_ns()) > 0) return;
  MessageStream::Message message;
  if ((begins_nothing_ || left_to_heed_ > 0) && messages_->try_receive(message)) {
    take_message(std::move(message));
    if (is_ending && left_to_heed_ > 0) --left_to_heed_;
  } else if (is_ending && !begins_nothing_) {
    begins_nothing_ = did_something_ = true;
    is_cut_short_ = hearing_.finish();
  }
}

bool Session::begins_work(ClientEvent event) {
  return event == ClientEvent::kAudioAppend || event == ClientEvent::kAudioCommit ||
         event == ClientEvent::kResponseCreate;
}

// Audio may come many times a second: only the first refusal is sent.
Session::Handled Session::refuse_work(ClientEvent event) {
  if (event == ClientEvent::kAudioAppend && std::exchange(has_refused_sound_, true)) return {};
  return tl::unexpected(going_down());
}

// Once all has been told of what was under way.
bool Session::has_gone_down() {
  if (!begins_nothing_ || response_ || owes_answer_ || hearing_.waits_for_words()) return false;
  if (!dropped_.empty() || messages_->room() == 0) return false;
  events_.send_error({.error = going_down()});
  end_ = MessageStream::going_away();
  return true;
}

bool Session::is_late() {
  const int64_t now_ns = clock_.now_ns();
  const bool is_idle = !response_ && seconds_since(heard_ns_, now_ns) > order_.idle_s;
  if (!is_idle && seconds_since(began_ns_, now_ns) <= order_.max_session_s) return false;
  const std::string why = is_idle ? fmt::format("nothing has been asked for {} s", order_.idle_s)
                                  : fmt::format("a session takes at most {} s", order_.max_session_s);
  const HttpError expired{.status = 400, .message = why + "; connect again", .code = "session_expired"};
  if (response_ && messages_->room() >= EventSender::kAtOnce) response_->break_off(expired);
  if (messages_->room() > 0) events_.send_error({.error = expired});
  end_ = {kViolation, why};
  return true;
}

}  // namespace syrinx::server::realtime
