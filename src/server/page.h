// The page of the server, for a browser: the files of web/, which the build puts into the program.  Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/http/http_message.h"

namespace syrinx::server {

struct PageFile {
  std::string_view name;  // "page.css"
  const char* type;
  const char* etag;  // with its quotation marks; another one for another content
  std::string_view content;
};
extern const PageFile page_files[];  // of the generated source
extern const size_t page_file_count;

inline constexpr std::string_view kAssets = "/assets/";  // what stands in front of a file's name in a path

// The file that the request's path names: `/`, or kAssets and a name.  304 where the browser has it already, 404 for
// any other name.  Has the headers that keep everything foreign out of the page, and the page out of others.
HttpReply page_reply(const HttpRequest& request);

}  // namespace syrinx::server
