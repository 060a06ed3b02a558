// FFmpeg's libraries (libavutil, libavcodec, libavformat), looked for at run time: the only door to them.
//
//   SYRINX_TRY(const Libav* const libav, find_libav());
//   AVFrame* const frame = libav->av_frame_alloc();
//
// The build needs their headers (SYRINX_LIBAV), the program starts without the libraries and is not linked to them: who
// needs neither WebM nor MP4 nor AAC pays nothing.  They are loaded when they are first asked for, and stay.  For the
// whole process, as FFmpeg has it no finer: their log is silent, and no allocation of theirs is larger than
// kMaxLibavBytes.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <cstddef>
#include <string>

#include "base/result.h"

namespace syrinx {

inline constexpr size_t kMaxLibavBytes = size_t{256} << 20;

// As the dynamic loader takes them: "libavutil.so.57".
struct LibavNames {
  std::string util, codec, format;
};

// FFmpeg's functions by their own names.
struct Libav {
  decltype(&::avutil_version) avutil_version = nullptr;
  decltype(&::av_log_set_level) av_log_set_level = nullptr;
  decltype(&::av_max_alloc) av_max_alloc = nullptr;
  decltype(&::av_malloc) av_malloc = nullptr;
  decltype(&::av_freep) av_freep = nullptr;
  decltype(&::av_strerror) av_strerror = nullptr;
  decltype(&::av_channel_layout_default) av_channel_layout_default = nullptr;
  decltype(&::av_frame_alloc) av_frame_alloc = nullptr;
  decltype(&::av_frame_free) av_frame_free = nullptr;
  decltype(&::av_frame_unref) av_frame_unref = nullptr;
  decltype(&::av_frame_get_buffer) av_frame_get_buffer = nullptr;
  decltype(&::av_frame_make_writable) av_frame_make_writable = nullptr;

  decltype(&::avcodec_version) avcodec_version = nullptr;
  decltype(&::avcodec_get_name) avcodec_get_name = nullptr;
  decltype(&::avcodec_find_decoder) avcodec_find_decoder = nullptr;
  decltype(&::avcodec_find_encoder_by_name) avcodec_find_encoder_by_name = nullptr;
  decltype(&::avcodec_alloc_context3) avcodec_alloc_context3 = nullptr;
  decltype(&::avcodec_free_context) avcodec_free_context = nullptr;
  decltype(&::avcodec_parameters_to_context) avcodec_parameters_to_context = nullptr;
  decltype(&::avcodec_open2) avcodec_open2 = nullptr;
  decltype(&::avcodec_send_packet) avcodec_send_packet = nullptr;
  decltype(&::avcodec_receive_frame) avcodec_receive_frame = nullptr;
  decltype(&::avcodec_send_frame) avcodec_send_frame = nullptr;
  decltype(&::avcodec_receive_packet) avcodec_receive_packet = nullptr;
  decltype(&::av_packet_alloc) av_packet_alloc = nullptr;
  decltype(&::av_packet_free) av_packet_free = nullptr;
  decltype(&::av_packet_unref) av_packet_unref = nullptr;

  decltype(&::avformat_version) avformat_version = nullptr;
  decltype(&::av_find_input_format) av_find_input_format = nullptr;
  decltype(&::avformat_alloc_context) avformat_alloc_context = nullptr;
  decltype(&::avformat_open_input) avformat_open_input = nullptr;
  decltype(&::avformat_close_input) avformat_close_input = nullptr;
  decltype(&::avformat_free_context) avformat_free_context = nullptr;
  decltype(&::av_read_frame) av_read_frame = nullptr;
  decltype(&::avio_alloc_context) avio_alloc_context = nullptr;
  decltype(&::avio_context_free) avio_context_free = nullptr;

  std::string sentence(int error) const;  // FFmpeg's words for an error code of its functions
};

// Those that the headers of this build go with.
LibavNames libav_names();

// kUnsupported, with the package that brings them: they are not there, or older than the headers of this build.
Result<Libav> load_libav(const LibavNames& names);

// load_libav(libav_names()), once; what came of it is kept as long as the process runs.  Thread-safe.
Result<const Libav*> find_libav();

}  // namespace syrinx
