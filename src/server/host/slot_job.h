// One request's work on a slot's thread, from its beginning to what the client, the metrics and the log are told: what
// every kind of work has in common.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "server/host/metrics.h"
#include "server/host/request_log.h"
#include "server/host/slots.h"
#include "server/http/reply_stream.h"

namespace syrinx::server {

// Receivers of a job's results; all must outlive the job.
struct JobReports {
  Metrics& metrics;
  RequestLog* log = nullptr;  // null: none
  bool faults_alone = false;  // nothing is logged but what the server is to blame for
  // Samples of sessions and streams at kRecognitionRateHz that wait for recognition, in all; null: not counted.
  std::atomic<int64_t>* waiting_samples = nullptr;
};

// The beginning of a line of the log; absent where none is to be written.  `fault` is the server's, in the engine's
// words; empty: none.
std::optional<Json> begin_log_line(const JobReports& reports, const std::string& fault, const char* event,
                                   const std::string& id, const std::string& model, const char* stopped);

class SlotJob {
 public:
  explicit SlotJob(JobReports reports) : reports_(reports) {}
  virtual ~SlotJob() = default;
  SlotJob(const SlotJob&) = delete;
  SlotJob& operator=(const SlotJob&) = delete;

  // The answer, which fills while run() works.  Cancelling it ends the work within the step that is being computed.
  virtual const std::shared_ptr<ReplyStream>& reply() const = 0;

  void run(SlotWatch& watch);
  // Says what run() has come to: after the slot is free.  Once.
  void end();

 protected:
  virtual Status work(SlotWatch& watch) = 0;
  virtual const char* what() const = 0;  // "a speech", in messages
  virtual HttpError told(const Error& error) const = 0;
  // The answer's end, in the words of its protocol: as in speech_answer.h.
  virtual bool fail_answer(const HttpError& error) = 0;
  virtual void end_answer(bool complete) = 0;
  virtual void report() const = 0;  // to metrics and log

  const char* outcome() const { return outcome_; }  // "done", "cancelled" or "error"
  std::optional<Json> log_line(const char* event, const std::string& id, const std::string& model,
                               const char* stopped) const {
    return begin_log_line(reports_, fault_, event, id, model, stopped);
  }
  const JobReports& reports() const { return reports_; }
  const std::string& fault() const { return fault_; }
  Metrics& metrics() const { return reports_.metrics; }
  void log(const Json& line) const { reports_.log->write(line.dump()); }

 private:
  Status work_without_throwing(SlotWatch& watch);

  const JobReports reports_;
  const char* outcome_ = "error";
  std::string fault_;      // the server's, in the engine's words: for the log alone
  bool complete_ = false;  // the client has been given all that it is to get, be it an error
};

}  // namespace syrinx::server
