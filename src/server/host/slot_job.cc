#include "server/host/slot_job.h"

#include <exception>
#include <new>

#include "base/log.h"

namespace syrinx::server {

void SlotJob::run(SlotWatch& watch) {
  const Status worked = work_without_throwing(watch);
  watch.wait_ends();
  if (worked || reply()->cancelled()) {
    outcome_ = worked ? "done" : "cancelled";
    complete_ = worked.has_value();
    return;
  }
  const HttpError answer = told(worked.error());
  if (answer.status >= 500) fault_ = worked.error().message;
  complete_ = fail_answer(answer);
}

// An exception of a library is an error like others, so that client and log are told.
Status SlotJob::work_without_throwing(SlotWatch& watch) {
  try {
    return work(watch);
  } catch (const std::bad_alloc&) {
    return fail(Code::kUnavailable, "out of memory in {}; ask again when the server has less to do", what());
  } catch (const std::exception& error) {
    return fail(Code::kInternal, "unexpected failure in {}: {}", what(), error.what());
  }
}

void SlotJob::end() {
  try {
    report();
  } catch (const std::exception& error) {  // the client hears the end all the same
    log_error("what became of {} could not be told: {}", what(), error.what());
  }
  end_answer(complete_);
}

std::optional<Json> begin_log_line(const JobReports& reports, const std::string& fault, const char* event,
                                   const std::string& id, const std::string& model, const char* stopped) {
  if (reports.log == nullptr || (reports.faults_alone && fault.empty())) return std::nullopt;
  Json line;
  line.set("time", utc_now());
  line.set("event", event);
  line.set("id", id);
  line.set("model", model);
  line.set("stopped", stopped);
  if (!fault.empty()) line.set("error", fault);
  return line;
}

}  // namespace syrinx::server
