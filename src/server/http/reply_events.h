// How an answer over HTTP goes on and ends, be it a whole one, a file's bytes or server-sent events.  Of the thread
// that fills the answer.
#pragma once

#include <string>

#include "base/json.h"
#include "server/http/http_message.h"
#include "server/http/reply_stream.h"

namespace syrinx::server {

HttpReply event_head();                    // of a stream of events
std::string event_text(const Json& json);  // "data: {...}" and an empty line

// Tells what went wrong, as a whole answer or, behind an `events` answer's beginning, as an event.  Whether the client
// is told all of it.
bool tell_failure(ReplyStream& reply, const HttpError& error, bool events);
// `complete`: the client has been given all that it is to get.  `what` was asked for, "the speech": where nothing could
// be told, it has been given up.
void end_reply(ReplyStream& reply, bool complete, const char* what);

}  // namespace syrinx::server
