// Zip and gzipped tar archives made in a test, harmless and hostile ones.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <string>
#include <vector>

#include "tests/store/files.h"

namespace syrinx::testing {

struct ArchiveItem {
  std::string path;
  std::string content;
  std::string link;        // not empty: a symbolic link to there
  bool hard_link = false;  // `link` is a hard one
};

inline void write_archive(const std::string& path, bool zip, const std::vector<ArchiveItem>& items) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  archive* const writer = archive_write_new();
  if (zip) {
    archive_write_set_format_zip(writer);
  } else {
    archive_write_add_filter_gzip(writer);
    archive_write_set_format_pax_restricted(writer);
  }
  if (archive_write_open_filename(writer, path.c_str()) != ARCHIVE_OK) std::abort();
  for (const auto& item : items) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, item.path.c_str());
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_filetype(entry, item.link.empty() || item.hard_link ? AE_IFREG : AE_IFLNK);
    archive_entry_set_size(entry, static_cast<la_int64_t>(item.content.size()));
    if (!item.link.empty() && item.hard_link) archive_entry_set_hardlink(entry, item.link.c_str());
    if (!item.link.empty() && !item.hard_link) archive_entry_set_symlink(entry, item.link.c_str());
    archive_write_header(writer, entry);
    archive_write_data(writer, item.content.data(), item.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
}

}  // namespace syrinx::testing
