#include "base/check.h"

#include <cstdio>
#include <cstdlib>

#include "base/result.h"

namespace syrinx {

void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "syrinx: internal check failed at %s:%d: %s%s%s\n", file, line, condition,
               values.empty() ? "" : ": ", values.c_str());
  std::abort();
}

const char* code_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return "invalid_argument";
    case Code::kNotFound: return "not_found";
    case Code::kDataLoss: return "data_loss";
    case Code::kUnsupported: return "unsupported";
    case Code::kLimitExceeded: return "limit_exceeded";
    case Code::kIo: return "io";
    case Code::kUnavailable: return "unavailable";
    case Code::kCancelled: return "cancelled";
    case Code::kInternal: return "internal";
  }
  return "internal";
}

int exit_status(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return 2;
    case Code::kNotFound: return 3;
    case Code::kDataLoss: return 4;
    case Code::kUnsupported: return 5;
    case Code::kLimitExceeded: return 6;
    case Code::kIo: return 7;
    case Code::kUnavailable: return 8;
    case Code::kCancelled: return 130;
    case Code::kInternal: return 70;
  }
  return 70;
}

}  // namespace syrinx
