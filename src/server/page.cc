#include "server/page.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/in_quotes.h"

namespace syrinx::server {
namespace {

// Nothing but this server's own files runs, is shown or is asked; the WebSocket is 'self', too.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const PageFile* find_file(std::string_view path) {
  const std::span<const PageFile> files(page_files, page_file_count);
  const std::string_view name = path.starts_with(kAssets) ? path.substr(kAssets.size()) : "index.html";
  const auto found = std::find_if(files.begin(), files.end(), [&](const PageFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

// Searches an If-None-Match: tags between commas, each maybe with W/ in front of it.
bool has_tag(std::string_view list, std::string_view tag) {
  return list == "*" || list.find(tag) != std::string_view::npos;
}

}  // namespace

HttpReply page_reply(const HttpRequest& request) {
  const PageFile* const file = find_file(request.path);
  if (file == nullptr)
    return error_reply({.status = 404,
                        .message = fmt::format("there is nothing at {}; the page is at /", in_quotes(request.path)),
                        .code = "unknown_url"});
  HttpReply reply;
  reply.headers = {{"ETag", file->etag},
                   {"Cache-Control", "no-cache"},  // kept, and asked about: another version has other files
                   {"Content-Security-Policy", kContentPolicy},
                   {"X-Content-Type-Options", "nosniff"},
                   {"X-Frame-Options", "DENY"},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cross-Origin-Opener-Policy", "same-origin"},
                   {"Cross-Origin-Resource-Policy", "same-origin"},
                   {"Permissions-Policy", "microphone=(self), camera=(), geolocation=()"}};
  if (has_tag(request.header("If-None-Match"), file->etag)) {
    reply.status = 304;
    reply.type.clear();
    return reply;
  }
  reply.type = file->type;
  reply.body = file->content;
  return reply;
}

}  // namespace syrinx::server
