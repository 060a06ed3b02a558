#include "server/http/reply_events.h"

#include <utility>

namespace syrinx::server {

HttpReply event_head() {
  HttpReply head{.type = "text/event-stream"};
  head.headers.push_back({"Cache-Control", "no-store"});
  return head;
}

std::string event_text(const Json& json) { return "data: " + json.dump() + "\n\n"; }

bool tell_failure(ReplyStream& reply, const HttpError& error, bool events) {
  HttpReply told = error_reply(error);
  if (!reply.begun()) {
    reply.begin(std::move(told), /*whole=*/true);
    return true;
  }
  if (!events) return false;
  reply.note_failure(error.status);
  return reply.write("event: error\ndata: " + told.body + "\n\n").has_value();
}

void end_reply(ReplyStream& reply, bool complete, const char* what) {
  if (!reply.begun()) {  // nothing could be told
    const HttpError lost{.status = 500, .message = fmt::format("{} was given up; the server's log says why", what)};
    reply.begin(error_reply(lost), /*whole=*/true);
    complete = true;
  }
  if (complete)
    reply.finish();
  else
    reply.abort();
}

}  // namespace syrinx::server
