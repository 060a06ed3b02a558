#include "server/upstream/chat_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "server/http/waker.h"
#include "server/upstream/chat_stream.h"
#include "store/curl_session.h"

namespace syrinx::server::upstream {
namespace {

constexpr int kIdleMs = 60000, kMaxPollMs = 1000;
constexpr double kMaxConnectS = 10;
constexpr int64_t kEndingNs = 1'000'000'000;  // behind its last word, for what ends an answer on its connection
constexpr long kStatusOk = 200;

// Advice to the client: what to do, or whom to ask.
const char* remedy(long status) {
  if (status == 401 || status == 403) return "the operator of this server has to look at 'upstream_key_file'";
  if (status == 429) return "it is asked too much; ask again later";
  if (status >= 500) return "ask again later";
  return "the operator of this server has to look at 'upstream' and 'upstream_model'";
}

Error status_fault(long status) {
  return {Code::kUnavailable, fmt::format("the upstream answered with the status {}; {}", status, remedy(status))};
}

Error transfer_fault(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return {Code::kUnavailable,
              "the upstream's certificate is not trusted; the operator of this server has to look at "
              "'upstream_ca_file'"};
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
      return {Code::kUnavailable, fmt::format("the upstream cannot be reached ({}); ask again later, or tell the "
                                              "operator of this server",
                                              curl_easy_strerror(code))};
    case CURLE_OUT_OF_MEMORY: return {Code::kUnavailable, "the server is out of memory; ask again later"};
    default:
      return {Code::kUnavailable,
              fmt::format("the upstream's answer broke off ({}); ask again", curl_easy_strerror(code))};
  }
}

}  // namespace

// State shared by the client's thread and the caller.
struct Chat::Exchange {
  explicit Exchange(std::string asked) : body(std::move(asked)) {}

  void add(std::string_view more) {
    {
      const std::lock_guard lock(mutex);
      text += more;
    }
    waker.tell();
  }
  // The first one counts.
  void end(Status how, const char* cut) {
    {
      const std::lock_guard lock(mutex);
      if (ended) return;
      ended = true;
      outcome = std::move(how);
      cut_short = cut;
    }
    waker.tell();
  }

  const std::string body;
  Waker waker;
  std::atomic<bool> cancelled{false};
  std::mutex mutex;
  std::string text;  // the following by mutex
  bool ended = false;
  Status outcome;
  const char* cut_short = nullptr;
};

// Requests from callers to the client's thread; it may outlive the client, and then takes nothing.
struct Chat::Line {
  Line() : multi_(curl_multi_init()) {}
  ~Line() { curl_multi_cleanup(multi_); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  void wake() {
    const std::lock_guard lock(mutex);
    curl_multi_wakeup(multi_);
  }
  CURLM* multi() const { return multi_; }  // of the client's thread, as is the following
  // Closes the connections that are kept, by no transfer under way: libcurl looks at their age only when it needs one.
  // A request made meanwhile may have woken the old handle.
  void renew() {
    CURLM* other = curl_multi_init();
    if (other == nullptr) return;
    {
      const std::lock_guard lock(mutex);
      std::swap(multi_, other);
    }
    curl_multi_cleanup(other);
  }

  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> asked;  // the following by mutex
  bool closing = false;

 private:
  CURLM* multi_;  // others than the client's thread by mutex
};

Chat::Chat(std::shared_ptr<Exchange> exchange, std::shared_ptr<Line> line)
    : exchange_(std::move(exchange)), line_(std::move(line)) {}

Chat::~Chat() {
  exchange_->waker.set({});
  exchange_->cancelled = true;
  line_->wake();
}

Result<bool> Chat::take(std::string& text) {
  exchange_->waker.taken();
  const std::lock_guard lock(exchange_->mutex);
  text += std::exchange(exchange_->text, {});
  if (!exchange_->ended) return true;
  if (!exchange_->outcome) return tl::unexpected(exchange_->outcome.error());
  return false;
}

const char* Chat::cut_short() const {
  const std::lock_guard lock(exchange_->mutex);
  return exchange_->cut_short;
}

struct ChatClient::Impl {
  // For the client's thread.
  struct Transfer {
    Transfer(std::shared_ptr<Chat::Exchange> asked, const Endpoint& of) : exchange(std::move(asked)), endpoint(of) {}

    const std::shared_ptr<Chat::Exchange> exchange;
    const Endpoint& endpoint;
    int64_t heard_ns = system_clock().now_ns();  // the last word, its end, or the beginning
    size_t bytes = 0, text_bytes = 0;
    bool is_repeated = false;
    Status fault = {};  // why a callback has ended it
    ChatStream stream = {};
    std::string fresh = {};
    CurlSession session = {};

    long status() const {
      long status = 0;
      curl_easy_getinfo(session.handle(), CURLINFO_RESPONSE_CODE, &status);
      return status;
    }
    Status take(std::string_view more);
    Status outcome(CURLcode code);
    static size_t take_bytes(char* data, size_t one, size_t size, void* of);
  };

  explicit Impl(Endpoint asked) : endpoint(std::move(asked)) {}
  void run();
  bool step();
  bool take_asked();
  void begin(std::shared_ptr<Chat::Exchange> exchange);
  void set_options(Transfer& transfer) const;
  int64_t due_ns(const Transfer& transfer) const;
  Error late_fault(const Transfer& transfer) const;
  void drop_late();
  void take_done();
  static bool is_met_closed(const Transfer& transfer, CURLcode code);
  bool repeat(Transfer& transfer) const;
  void forget(const Transfer* transfer);
  bool renew_connections();
  int64_t kept_until_ns() const { return *kept_ns + static_cast<int64_t>(endpoint.keep_s * 1e9); }
  int next_ms() const;

  const Endpoint endpoint;
  const std::shared_ptr<Chat::Line> line = std::make_shared<Chat::Line>();
  std::vector<std::unique_ptr<Transfer>> transfers;
  std::optional<int64_t> kept_ns;  // since when no answer is under way; none: no connection is kept
  std::thread thread;
};

Status ChatClient::Impl::Transfer::take(std::string_view more) {
  if (const long now = status(); now != kStatusOk) return tl::unexpected(status_fault(now));
  if (bytes += more.size(); bytes > endpoint.max_answer_bytes)
    return fail(Code::kUnavailable,
                "the upstream's answer has more than {} kB; ask for a shorter one, or the operator of this server for "
                "a larger 'upstream_max_answer_kb'",
                endpoint.max_answer_bytes / 1024);
  fresh.clear();
  const bool was_over = stream.is_over();
  Status fed = stream.feed(more, fresh);
  const bool is_over = fed && stream.is_over() && !was_over;
  if (!fresh.empty() || is_over) heard_ns = system_clock().now_ns();
  if (!fresh.empty()) exchange->add(fresh);
  if (is_over) exchange->end({}, stream.cut_short());
  if (text_bytes += fresh.size(); text_bytes <= endpoint.max_text_bytes) return fed;
  exchange->end({}, nullptr);  // who asked takes no more of it
  return fail(Code::kLimitExceeded, "the answer is longer than anybody takes");
}

Status ChatClient::Impl::Transfer::outcome(CURLcode code) {
  if (!fault) return fault;
  if (code == CURLE_OK && status() != kStatusOk) return tl::unexpected(status_fault(status()));
  if (stream.is_whole()) return {};
  if (code != CURLE_OK) return tl::unexpected(transfer_fault(code));
  return fail(Code::kUnavailable,
              "the upstream's answer ended before its end, or is not a stream of chat completions; ask again");
}

// Callback of libcurl; no exception may go through it.
size_t ChatClient::Impl::Transfer::take_bytes(char* data, size_t /*one*/, size_t size, void* of) {
  auto& transfer = *static_cast<Transfer*>(of);
  try {
    transfer.fault = transfer.take({data, size});
  } catch (const std::exception&) {
    transfer.fault = tl::unexpected(transfer_fault(CURLE_OUT_OF_MEMORY));
  }
  return transfer.fault ? size : 0;
}

void ChatClient::Impl::set_options(Transfer& transfer) const {
  CurlSession& session = transfer.session;
  session.prepare(endpoint.url, endpoint.key, "",
                  {.connect_timeout_ms = static_cast<int64_t>(std::min(endpoint.timeout_s, kMaxConnectS) * 1000)});
  session.add_header("Content-Type: application/json");
  session.add_header("Accept: text/event-stream");
  session.add_header("Expect:");  // nothing is gained by asking first
  CURL* const handle = session.handle();
  const std::string& body = transfer.exchange->body;
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.c_str());                                // not copied
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // to be closed at once
  curl_easy_setopt(handle, CURLOPT_MAXAGE_CONN, static_cast<long>(endpoint.keep_s));
  curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);  // a name that is still being looked up is not waited for
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Transfer::take_bytes);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_PRIVATE, &transfer);
  if (endpoint.ca_file.empty()) return;
  curl_easy_setopt(handle, CURLOPT_CAINFO, endpoint.ca_file.c_str());
  curl_easy_setopt(handle, CURLOPT_CAPATH, nullptr);  // else the system's folder of certificates vouches, too
}

void ChatClient::Impl::begin(std::shared_ptr<Chat::Exchange> exchange) {
  auto transfer = std::make_unique<Transfer>(std::move(exchange), endpoint);
  if (transfer->session.handle() == nullptr) throw std::bad_alloc();
  set_options(*transfer);
  transfers.push_back(std::move(transfer));
  if (curl_multi_add_handle(line->multi(), transfers.back()->session.handle()) == CURLM_OK) return;
  transfers.back()->exchange->end(tl::unexpected(transfer_fault(CURLE_OUT_OF_MEMORY)), nullptr);
  transfers.pop_back();
}

// False: nothing is asked any more.
bool ChatClient::Impl::take_asked() {
  std::vector<std::shared_ptr<Chat::Exchange>> asked;
  {
    const std::lock_guard lock(line->mutex);
    if (line->closing) return false;
    asked.swap(line->asked);
  }
  for (auto& exchange : asked) {
    if (exchange->cancelled) continue;
    try {
      begin(exchange);
    } catch (const std::exception&) {
      exchange->end(tl::unexpected(transfer_fault(CURLE_OUT_OF_MEMORY)), nullptr);
    }
  }
  return true;
}

void ChatClient::Impl::forget(const Transfer* transfer) {
  curl_multi_remove_handle(line->multi(), transfer->session.handle());  // closes a connection that is not done
  std::erase_if(transfers, [&](const auto& each) { return each.get() == transfer; });
  if (transfers.empty()) kept_ns = system_clock().now_ns();
}

// True: they are closed, and a request made meanwhile has not woken the thread.
bool ChatClient::Impl::renew_connections() {
  if (!transfers.empty() || !kept_ns || system_clock().now_ns() < kept_until_ns()) return false;
  kept_ns.reset();
  line->renew();
  return true;
}

// When its next word is too late; or, behind the last one, what ends it.
int64_t ChatClient::Impl::due_ns(const Transfer& transfer) const {
  return transfer.heard_ns + (transfer.stream.is_over() ? kEndingNs : static_cast<int64_t>(endpoint.timeout_s * 1e9));
}

// A status that is none of an answer has said what it has to say.
Error ChatClient::Impl::late_fault(const Transfer& transfer) const {
  if (const long status = transfer.status(); status != 0 && status != kStatusOk) return status_fault(status);
  return {Code::kUnavailable,
          fmt::format("the upstream has said nothing for {} s ('upstream_timeout_s'); ask again later",
                      endpoint.timeout_s)};
}

// Drops abandoned transfers and those silent for too long.  A transfer whose last word has come is no longer waited
// for, but its connection can be used again once the endpoint has ended it.
void ChatClient::Impl::drop_late() {
  const int64_t now_ns = system_clock().now_ns();
  for (size_t i = transfers.size(); i-- > 0;) {
    const Transfer& transfer = *transfers[i];
    const bool is_late = now_ns > due_ns(transfer);
    const bool is_left = transfer.exchange->cancelled && !transfer.stream.is_over();
    if (!is_left && !is_late) continue;
    if (is_late && transfer.stream.is_whole())
      transfer.exchange->end({}, transfer.stream.cut_short());  // the endpoint alone has not ended it
    else if (is_late)
      transfer.exchange->end(tl::unexpected(late_fault(transfer)), nullptr);
    forget(&transfer);
  }
}

// The endpoint has closed the connection just as the question came.  Libcurl asks again by itself where it notices
// before the body, or as it looks for the answer; not where a long body cannot be sent.
bool ChatClient::Impl::is_met_closed(const Transfer& transfer, CURLcode code) {
  long made = 0;  // connections
  curl_easy_getinfo(transfer.session.handle(), CURLINFO_NUM_CONNECTS, &made);
  return code == CURLE_SEND_ERROR && made == 0 && transfer.status() == 0 && transfer.bytes == 0;
}

bool ChatClient::Impl::repeat(Transfer& transfer) const {
  if (std::exchange(transfer.is_repeated, true)) return false;
  CURL* const handle = transfer.session.handle();
  curl_multi_remove_handle(line->multi(), handle);
  curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, 1L);
  return curl_multi_add_handle(line->multi(), handle) == CURLM_OK;
}

void ChatClient::Impl::take_done() {
  int waiting = 0;
  while (const CURLMsg* const message = curl_multi_info_read(line->multi(), &waiting)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    if (is_met_closed(*transfer, code) && repeat(*transfer)) continue;
    transfer->exchange->end(transfer->outcome(code), transfer->stream.cut_short());
    forget(transfer);
  }
}

int ChatClient::Impl::next_ms() const {
  if (transfers.empty() && !kept_ns) return kIdleMs;
  int64_t first_ns = transfers.empty() ? kept_until_ns() : INT64_MAX;
  for (const auto& each : transfers) first_ns = std::min(first_ns, due_ns(*each));
  const int64_t left_ms = (first_ns - system_clock().now_ns()) / 1'000'000 + 1;
  return static_cast<int>(std::clamp<int64_t>(left_ms, 1, kMaxPollMs));
}

bool ChatClient::Impl::step() {
  if (!take_asked()) return false;
  int running = 0;
  curl_multi_perform(line->multi(), &running);
  take_done();
  drop_late();
  if (renew_connections()) return true;
  curl_multi_poll(line->multi(), nullptr, 0, next_ms(), nullptr);
  return true;
}

// The thread's entry: what is thrown ends here, and the others' answers go on.
void ChatClient::Impl::run() {
  for (bool goes_on = true; goes_on;) {
    try {
      goes_on = step();
    } catch (const std::exception& error) {
      log_error("the upstream's client goes on after an exception: {}", error.what());
    }
  }
  const auto given_up = [] { return fail(Code::kCancelled, "the server is going down"); };
  while (!transfers.empty()) {
    transfers.back()->exchange->end(given_up(), nullptr);
    forget(transfers.back().get());
  }
  const std::lock_guard lock(line->mutex);
  for (const auto& exchange : line->asked) exchange->end(given_up(), nullptr);
  line->asked.clear();
}

Result<std::unique_ptr<ChatClient>> ChatClient::start(Endpoint endpoint) {
  const CurlSession before_any_thread;  // what libcurl prepares once for the process
  std::unique_ptr<ChatClient> client(new ChatClient);
  client->impl_ = std::make_unique<Impl>(std::move(endpoint));
  Impl& impl = *client->impl_;
  if (impl.line->multi() == nullptr) return fail(Code::kUnavailable, "libcurl cannot be used: it has no memory");
  try {
    impl.thread = std::thread([&impl] { impl.run(); });
  } catch (const std::system_error& error) {
    return fail(Code::kUnavailable, "no thread can be made for the upstream: {}; raise the limit of threads",
                error.what());
  }
  return client;
}

ChatClient::~ChatClient() {
  if (!impl_ || !impl_->thread.joinable()) return;
  {
    const std::lock_guard lock(impl_->line->mutex);
    impl_->line->closing = true;
  }
  impl_->line->wake();
  impl_->thread.join();
}

std::unique_ptr<Chat> ChatClient::ask(std::string body, std::function<void()> wake) {
  auto exchange = std::make_shared<Chat::Exchange>(std::move(body));
  exchange->waker.set(std::move(wake));
  std::unique_ptr<Chat> chat(new Chat(exchange, impl_->line));
  {
    const std::lock_guard lock(impl_->line->mutex);
    std::erase_if(impl_->line->asked, [](const auto& each) { return each->cancelled.load(); });  // so it is bounded
    impl_->line->asked.push_back(std::move(exchange));
  }
  impl_->line->wake();
  return chat;
}

}  // namespace syrinx::server::upstream
