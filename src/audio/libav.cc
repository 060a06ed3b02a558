#include "audio/libav.h"

#include <dlfcn.h>

#include <array>
#include <string_view>

namespace syrinx {
namespace {

// Debian's package has the library's name and its number: libavformat.so.59 is in libavformat59.
std::string package_of(std::string_view library) {
  const size_t dot = library.find(".so.");
  if (dot == std::string_view::npos) return std::string(library);
  return std::string(library.substr(0, dot)) + std::string(library.substr(dot + 4));
}

tl::unexpected<Error> missing(const std::string& library) {
  return fail(Code::kUnsupported, "{} cannot be loaded (Debian's package {} brings it)", library, package_of(library));
}

Result<void*> open_library(const std::string& name) {
  void* const library = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return missing(name);
  return library;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}
#define SYRINX_FIND(library, name) find(library, #name, libav.name)

bool find_util(void* library, Libav& libav) {
  return SYRINX_FIND(library, avutil_version) && SYRINX_FIND(library, av_log_set_level) &&
         SYRINX_FIND(library, av_max_alloc) && SYRINX_FIND(library, av_malloc) && SYRINX_FIND(library, av_freep) &&
         SYRINX_FIND(library, av_strerror) && SYRINX_FIND(library, av_channel_layout_default) &&
         SYRINX_FIND(library, av_frame_alloc) && SYRINX_FIND(library, av_frame_free) &&
         SYRINX_FIND(library, av_frame_unref) && SYRINX_FIND(library, av_frame_get_buffer) &&
         SYRINX_FIND(library, av_frame_make_writable);
}

bool find_codec(void* library, Libav& libav) {
  return SYRINX_FIND(library, avcodec_version) && SYRINX_FIND(library, avcodec_get_name) &&
         SYRINX_FIND(library, avcodec_find_decoder) && SYRINX_FIND(library, avcodec_find_encoder_by_name) &&
         SYRINX_FIND(library, avcodec_alloc_context3) && SYRINX_FIND(library, avcodec_free_context) &&
         SYRINX_FIND(library, avcodec_parameters_to_context) && SYRINX_FIND(library, avcodec_open2) &&
         SYRINX_FIND(library, avcodec_send_packet) && SYRINX_FIND(library, avcodec_receive_frame) &&
         SYRINX_FIND(library, avcodec_send_frame) && SYRINX_FIND(library, avcodec_receive_packet) &&
         SYRINX_FIND(library, av_packet_alloc) && SYRINX_FIND(library, av_packet_free) &&
         SYRINX_FIND(library, av_packet_unref);
}

bool find_format(void* library, Libav& libav) {
  return SYRINX_FIND(library, avformat_version) && SYRINX_FIND(library, av_find_input_format) &&
         SYRINX_FIND(library, avformat_alloc_context) && SYRINX_FIND(library, avformat_open_input) &&
         SYRINX_FIND(library, avformat_close_input) && SYRINX_FIND(library, avformat_free_context) &&
         SYRINX_FIND(library, av_read_frame) && SYRINX_FIND(library, avio_alloc_context) &&
         SYRINX_FIND(library, avio_context_free);
}
#undef SYRINX_FIND

// By the second number: the third tells of repairs.
bool is_older(unsigned have, unsigned need) { return have >> 8 < need >> 8; }

}  // namespace

std::string Libav::sentence(int error) const {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> words = {};
  av_strerror(error, words.data(), words.size());
  return words.data();
}

LibavNames libav_names() {
  return {fmt::format("libavutil.so.{}", LIBAVUTIL_VERSION_MAJOR),
          fmt::format("libavcodec.so.{}", LIBAVCODEC_VERSION_MAJOR),
          fmt::format("libavformat.so.{}", LIBAVFORMAT_VERSION_MAJOR)};
}

Result<Libav> load_libav(const LibavNames& names) {
  // The last one needs the others, so it is the one to name where none is there.
  SYRINX_TRY(void* const format, open_library(names.format));
  SYRINX_TRY(void* const codec, open_library(names.codec));
  SYRINX_TRY(void* const util, open_library(names.util));
  Libav libav;
  if (!find_util(util, libav)) return missing(names.util);
  if (!find_codec(codec, libav)) return missing(names.codec);
  if (!find_format(format, libav)) return missing(names.format);
  // Structures only grow at their ends: what is newer will do, what is older lacks members.
  if (is_older(libav.avutil_version(), LIBAVUTIL_VERSION_INT) ||
      is_older(libav.avcodec_version(), LIBAVCODEC_VERSION_INT) ||
      is_older(libav.avformat_version(), LIBAVFORMAT_VERSION_INT)) {
    return fail(Code::kUnsupported, "{} is older than this program was built for; bring {} up to date", names.format,
                package_of(names.format));
  }
  libav.av_log_set_level(AV_LOG_QUIET);
  libav.av_max_alloc(kMaxLibavBytes);  // the counts in a hostile header are not worth gigabytes
  return libav;
}

Result<const Libav*> find_libav() {
  static const Result<Libav> loaded = load_libav(libav_names());
  if (!loaded) return tl::unexpected(loaded.error());
  return &*loaded;
}

}  // namespace syrinx
