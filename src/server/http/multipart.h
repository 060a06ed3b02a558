// multipart/form-data (RFC 7578 on RFC 2046, section 5.1): the fields and files of a form in a body.  Pure,
// thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_message.h"

namespace syrinx::server {

struct FormPart {
  std::string name = {};       // of the field
  std::string file_name = {};  // what the client calls its file; empty where it does not say
  std::string_view content = {};
};

struct FormLimits {
  static constexpr size_t kMaxParts = 64, kMaxHeaderBytes = 4096, kMaxNameBytes = 256;
};

// Boundary in the Content-Type of a form.  Errors: 415 for another type, 400 where it names no boundary.
tl::expected<std::string, HttpError> form_boundary(std::string_view type);

using FormPartsOrError = tl::expected<std::vector<FormPart>, HttpError>;

// The parts in their order, as views into `body`, none copied.  Errors: those of form_boundary(), 400 for a
// body that is no such form, that is cut off, or beyond the limits above.
FormPartsOrError parse_multipart(std::string_view type, std::string_view body);

}  // namespace syrinx::server
