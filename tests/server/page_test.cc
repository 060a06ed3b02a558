// The page's files as they are served.
#include "server/page.h"

#include <gtest/gtest.h>

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace syrinx::server {
namespace {

HttpReply ask(std::string path, std::string tag = "") {
  HttpRequest request;
  request.method = "GET";
  request.path = std::move(path);
  if (!tag.empty()) request.headers.push_back({"If-None-Match", std::move(tag)});
  return page_reply(request);
}

std::string header(const HttpReply& reply, std::string_view name) {
  for (const HttpHeader& header : reply.headers)
    if (header.name == name) return header.value;
  return "";
}

TEST(Page, EachFileIsServedUnderItsNameAndItsTag) {
  std::set<std::string> tags;
  ASSERT_GT(page_file_count, 0u);
  for (const PageFile& file : std::span(page_files, page_file_count)) {
    SCOPED_TRACE(file.name);
    const std::string path = std::string(kAssets) + std::string(file.name);
    const HttpReply reply = ask(path);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.type, file.type);
    EXPECT_EQ(reply.body, file.content);
    EXPECT_EQ(header(reply, "ETag"), file.etag);
    EXPECT_TRUE(tags.insert(file.etag).second);
    EXPECT_EQ(header(reply, "Content-Security-Policy").find("unsafe"), std::string::npos);
    for (const std::string& known :
         {std::string(file.etag), "W/" + std::string(file.etag), "\"x\", " + std::string(file.etag)}) {
      const HttpReply same = ask(path, known);
      EXPECT_EQ(same.status, 304);
      EXPECT_EQ(same.body, "");
      EXPECT_EQ(header(same, "ETag"), file.etag);
    }
  }
  EXPECT_EQ(ask("/").body, ask("/assets/index.html").body);
}

TEST(Page, ItAsksForNoFileThatIsNotThere) {
  int named = 0;
  for (const PageFile& file : std::span(page_files, page_file_count)) {
    const std::string_view text = file.content;
    for (size_t at = text.find("\"assets/"); at != std::string_view::npos; at = text.find("\"assets/", at + 1)) {
      const std::string path = "/" + std::string(text.substr(at + 1, text.find('"', at + 1) - at - 1));
      EXPECT_EQ(ask(path).status, 200) << file.name << " names " << path;
      ++named;
    }
    for (size_t at = text.find(" from \"./"); at != std::string_view::npos; at = text.find(" from \"./", at + 1)) {
      const std::string_view name = text.substr(at + 9, text.find('"', at + 9) - at - 9);
      EXPECT_EQ(ask(std::string(kAssets) + std::string(name)).status, 200) << file.name << " imports " << name;
    }
  }
  EXPECT_GE(named, 3);
}

// Behind a proxy with a path prefix they would lead past the server.
TEST(Page, AddressesAreRelative) {
  for (const PageFile& file : std::span(page_files, page_file_count))
    for (const char* const absolute :
         {"\"/v1", "`/v1", "'/v1", "\"/ready", "\"/metrics", "\"/health", "\"/assets", "\"/openapi", "(/assets"})
      EXPECT_EQ(std::string_view(file.content).find(absolute), std::string_view::npos) << file.name << ": " << absolute;
}

TEST(Page, OtherNamesAreNotFound) {
  for (const char* name : {"", "x", "page.css/", "../page.css", "page.cs", "page.csss", "PAGE.CSS", "%70age.css"})
    EXPECT_EQ(ask(std::string(kAssets) + name).status, 404) << name;
}

}  // namespace
}  // namespace syrinx::server
