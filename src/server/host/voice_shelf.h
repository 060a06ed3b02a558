// The voices that clients have uploaded: NAME.safetensors each, exported for one model, in a folder of that model's.
// They survive the server; whatever else lies there is left alone.  Any thread; put() and remove() one at a time, since
// they wait for the disk, which nobody who asks for the list may have to.
//
// A name becomes part of a path only once voice_name_fault() has found nothing in it.  Two names that differ by the
// case of their letters alone are one, since some file systems hold them for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx::server {

struct UploadedVoice {
  std::string name;
  int64_t created_s = 0;  // since 1970: when its file was written
};

// The fault of a voice's name, in a sentence; empty for a valid name.
std::optional<std::string> voice_name_fault(std::string_view name);

class VoiceShelf {
 public:
  static constexpr size_t kMaxNameBytes = 64;
  static constexpr size_t kMaxLooked = 10000;  // entries of the folder

  explicit VoiceShelf(std::string folder);  // empty: none, and nobody uploads any
  VoiceShelf(const VoiceShelf&) = delete;
  VoiceShelf& operator=(const VoiceShelf&) = delete;

  // Lists what lies in the folder, before anything else; removes what an earlier server did not get to finish.
  void list();
  // Has `read`, given a name and the path of its file, look at each of them; what it cannot use is not listed any more
  // and stays where it is, with a line in the log.
  using Read = std::function<Status(const std::string& name, const std::string& path)>;
  void read(const Read& read);

  bool is_open() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }
  std::vector<UploadedVoice> voices() const;  // by name
  std::optional<UploadedVoice> find(std::string_view name) const;
  bool has_alike(std::string_view name) const;  // whatever the case of its letters
  size_t size() const;
  // Whether a file lies there that is not listed and would be in the way: no voice of this model, or another server's.
  bool has_file(const std::string& name) const;
  uint64_t changes() const;  // of the list so far: whoever keeps something made of it looks whether it is old

  // Errors name the folder and not the voice, which is nobody's but its owner's.
  // Writes the voice's file, which is there whole or not at all, and lists it.  Errors: those of ScopedFile and
  // make_folders(); then nothing has changed.
  Result<UploadedVoice> put(const std::string& name, std::string_view content);
  // Errors: kNotFound; kIo, and the voice stays.  It is listed until its file is gone.
  Status remove(const std::string& name);

 private:
  Status write(const std::string& name, std::string_view content) const;
  void unlist(const std::string& name);
  tl::unexpected<Error> nameless(Error error, const std::string& name) const;
  std::string path_of(const std::string& name) const { return folder_ + "/" + name + ".safetensors"; }

  const std::string folder_;
  mutable std::mutex mutex_;
  std::vector<UploadedVoice> voices_;  // by mutex_, as is the following; sorted by name
  uint64_t changes_ = 0;
};

}  // namespace syrinx::server
