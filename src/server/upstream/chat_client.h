// Asks a chat endpoint of OpenAI's kind over HTTP, any number of questions at once, on one thread of its own; libcurl's
// header is included by this class's source alone.
//
// Proxies are those of the environment, as for `syrinx pull`; nothing is redirected.  A certificate is verified by the
// system's store, or the file of Endpoint.  Of the endpoint's own words nothing but the answer's text goes on, and no
// error holds the key or names the endpoint.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "base/result.h"

namespace syrinx::server::upstream {

struct Endpoint {
  std::string url = {};                                        // whole, of POST
  std::string key = {};                                        // empty: none is sent
  std::string ca_file = {};                                    // PEM; empty: the system's store
  double timeout_s = 30;                                       // without a word, the first one or a further one
  double keep_s = 60;                                          // a connection behind its answer, for the next one
  size_t max_answer_bytes = 0;                                 // as it comes, with all that surrounds its text
  size_t max_text_bytes = std::numeric_limits<size_t>::max();  // of its text; what is more ends it, well
};

// One answer.  Destroying it closes the connection, if the answer still comes by one; one whose answer has ended serves
// the next answer, if that is asked for within Endpoint::keep_s, and is closed when nothing has been asked for as long.
// Where the endpoint closes it as the question comes, that is asked once more, by another.  One thread.
class Chat {
 public:
  ~Chat();
  Chat(const Chat&) = delete;
  Chat& operator=(const Chat&) = delete;

  // Appends what has come since; false: that was the last of it.  Does not wait.  kUnavailable with a sentence for the
  // one who asked; kCancelled: the client has been destroyed.
  Result<bool> take(std::string& text);
  // Behind the last of it: ChatStream::cut_short().
  const char* cut_short() const;

 private:
  friend class ChatClient;
  struct Exchange;
  struct Line;
  Chat(std::shared_ptr<Exchange> exchange, std::shared_ptr<Line> line);

  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<Line> line_;
};

class ChatClient {
 public:
  // Makes the thread.  kUnavailable: it cannot.
  static Result<std::unique_ptr<ChatClient>> start(Endpoint endpoint);
  ~ChatClient();  // gives up what is under way
  ChatClient(const ChatClient&) = delete;
  ChatClient& operator=(const ChatClient&) = delete;

  // Sends the JSON.  `wake` is called, from the client's thread and until the answer is destroyed, when take() has
  // something new.  Any thread; does not wait.  What waits to be sent
  // is bounded by the answers that exist.
  std::unique_ptr<Chat> ask(std::string body, std::function<void()> wake);

 private:
  ChatClient() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace syrinx::server::upstream
