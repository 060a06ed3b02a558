#include "audio/guards/vorbis_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ogg/ogg.h>

#include "audio/decode/recording.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

using testing::HasSubstr;

const std::string kData = std::string(SYRINX_TEST_DATA) + "/audio/";

struct Book {
  uint32_t dims = 1, entries = 255;
  int kind = 0;  // of its values: none, a lattice, all
  bool is_ordered = true;
};

// Numbers as Vorbis packs them, the lowest bit first.
class Writer {
 public:
  Writer() { oggpack_writeinit(&buffer_); }
  ~Writer() { oggpack_writeclear(&buffer_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  Writer& text(std::string_view text) {
    for (const char c : text) oggpack_write(&buffer_, static_cast<unsigned char>(c), 8);
    return *this;
  }
  Writer& put(uint32_t number, int bits) {
    oggpack_write(&buffer_, number, bits);
    return *this;
  }
  std::string bytes() {
    return {reinterpret_cast<char*>(buffer_.buffer), static_cast<size_t>(oggpack_bytes(&buffer_))};
  }

 private:
  oggpack_buffer buffer_;
};

void put_book(const Book& book, Writer& out) {
  const int width = 32 - __builtin_clz(book.entries | 1);
  out.put(0x564342, 24).put(book.dims, 16).put(book.entries, 24).put(book.is_ordered ? 1 : 0, 1);
  if (book.is_ordered) {
    out.put(static_cast<uint32_t>(width - 1), 5).put(book.entries, width);
  } else {
    out.put(1, 1);
    for (uint32_t i = 0; i < book.entries; ++i) out.put(1, 1).put(static_cast<uint32_t>(width - 1), 5);
  }
  out.put(static_cast<uint32_t>(book.kind), 4);
  if (book.kind == 0) return;
  out.put(0, 32).put(0, 32).put(2, 4).put(0, 1);  // values of three bits
  uint32_t values = book.entries * book.dims;
  if (book.kind == 1) values = book.dims == 1 ? book.entries : 2;  // the books of two dimensions have four entries
  for (uint32_t i = 0; i < values; ++i) out.put(i % 8, 3);
}

// A setup with one floor, residue, mapping and mode of each, the smallest that there are.
std::string setup(const std::vector<Book>& books) {
  Writer out;
  out.text("\x05vorbis").put(static_cast<uint32_t>(books.size() - 1), 8);
  for (const Book& book : books) put_book(book, out);
  out.put(0, 6).put(0, 16);
  out.put(0, 6).put(1, 16).put(0, 5).put(0, 2).put(5, 4);
  out.put(0, 6).put(0, 16).put(0, 24).put(0, 24).put(0, 24).put(0, 6).put(0, 8).put(0, 3).put(0, 1);
  out.put(0, 6).put(0, 16).put(0, 1).put(0, 1).put(0, 2).put(0, 8).put(0, 8).put(0, 8);
  out.put(0, 6).put(0, 1).put(0, 16).put(0, 16).put(0, 8).put(1, 1);
  return out.bytes();
}

std::string vorbis_file(const std::string& setup_packet, int serial = 1, uint32_t channels = 1) {
  Writer head, comment;
  head.text("\x01vorbis")
      .put(0, 32)
      .put(channels, 8)
      .put(8000, 32)
      .put(0, 32)
      .put(0, 32)
      .put(0, 32)
      .put(0x66, 8)
      .put(1, 8);
  comment.text("\x03vorbis").put(0, 32).put(0, 32).put(1, 8);
  const std::string packets[] = {head.bytes(),         comment.bytes(),      setup_packet,
                                 std::string(2, '\0'), std::string(2, '\0'), std::string(2, '\0')};
  ogg_stream_state stream;
  ogg_stream_init(&stream, serial);
  std::string file;
  for (size_t i = 0; i < std::size(packets); ++i) {
    std::string bytes = packets[i];
    ogg_packet packet{};
    packet.packet = reinterpret_cast<unsigned char*>(bytes.data());
    packet.bytes = static_cast<long>(bytes.size());
    packet.b_o_s = i == 0 ? 1 : 0;
    packet.packetno = static_cast<ogg_int64_t>(i);
    packet.granulepos = i < 4 ? 0 : static_cast<ogg_int64_t>(i - 3) * 32;
    packet.e_o_s = i + 1 == std::size(packets) ? 1 : 0;
    ogg_stream_packetin(&stream, &packet);
    for (ogg_page page; ogg_stream_flush(&stream, &page) != 0;) {
      file.append(reinterpret_cast<char*>(page.header), static_cast<size_t>(page.header_len));
      file.append(reinterpret_cast<char*>(page.body), static_cast<size_t>(page.body_len));
    }
  }
  ogg_stream_clear(&stream);
  return file;
}

std::string vorbis_file(const std::vector<Book>& books, int serial = 1) { return vorbis_file(setup(books), serial); }

Status check(const std::string& file) { return check_vorbis_setup(std::as_bytes(std::span(file)), "me"); }
void expect_too_large(const std::vector<Book>& books) {
  const std::string file = vorbis_file(books);
  const Status checked = check(file);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::kLimitExceeded);
  EXPECT_THAT(checked.error().message, HasSubstr("'me' has Vorbis codebooks"));
  const auto read = read_recording(std::as_bytes(std::span(file)), "me", {});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, checked.error().message);
}

TEST(VorbisSetup, LargeBooksAreRefusedBeforeTheyAreMade) {
  expect_too_large({{.entries = 65537}});
  expect_too_large({{.entries = 8388607}});                                   // 12 bytes, 100 MB on the stack
  expect_too_large(std::vector<Book>(256, {.dims = 255, .entries = 65535}));  // 3 kB, 16 GB
  expect_too_large(std::vector<Book>(17, {.entries = 65535}));                // none of which is too large
}

// Behind books of every kind, which have to be read to the bit.
TEST(VorbisSetup, TheLastBookIsFound) {
  const std::vector<Book> kinds = {{},
                                   {.entries = 9, .is_ordered = false},
                                   {.entries = 40, .kind = 1},
                                   {.dims = 2, .entries = 4, .kind = 1, .is_ordered = false},
                                   {.dims = 3, .entries = 5, .kind = 2}};
  EXPECT_TRUE(check(vorbis_file(kinds)));
  for (size_t count = 0; count <= kinds.size(); ++count) {
    std::vector<Book> books(kinds.begin(), kinds.begin() + static_cast<ptrdiff_t>(count));
    books.push_back({.entries = 70000});
    expect_too_large(books);
  }
}

TEST(VorbisSetup, EveryStreamIsLookedAt) {
  const std::string good = vorbis_file(std::vector<Book>{{}}),
                    bad = vorbis_file(std::vector<Book>{{.entries = 70000}}, 2);
  EXPECT_TRUE(check(good));
  EXPECT_FALSE(check(good + bad));
  EXPECT_FALSE(check(good + "something" + bad));
  std::string many;
  for (int serial = 0; serial < 17; ++serial) many += vorbis_file(std::vector<Book>{{}}, serial);
  const Status checked = check(many);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("more than 16 streams"));
}

void expect_damaged(const std::string& file, const std::string& sentence) {
  const Status checked = check(file);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::kDataLoss);
  EXPECT_THAT(checked.error().message, HasSubstr(sentence));
  const auto read = read_recording(std::as_bytes(std::span(file)), "me", {});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, checked.error().message);
}

// libvorbis would look for the values of the lattice for ever.
TEST(VorbisSetup, BooksWithoutDimensionsAreRefused) {
  for (const int kind : {0, 1, 2}) {
    const std::string file = vorbis_file({{}, {.dims = 0, .entries = 2, .kind = kind}});
    expect_damaged(file, "'me' is damaged: a codebook of its Vorbis stream has no dimension");
  }
}

// Page by page: where a stream that has begun begins again, what is there of a packet is dropped by some and kept by
// others, and a large book may lie on both pages.
TEST(VorbisSetup, AStreamBeginsOnce) {
  const std::string good = vorbis_file(std::vector<Book>{{}});
  EXPECT_TRUE(check(good));
  for (const auto& second : {good, vorbis_file(std::vector<Book>{{.entries = 70000}})}) {
    const Status checked = check(good + second);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().message, HasSubstr("'me' is damaged: a stream of it begins twice"));
  }
}

TEST(VorbisSetup, HeadersThatEndEarlyAreLeftToTheLibrary) {
  const std::string whole = setup({{.entries = 9, .is_ordered = false}, {.dims = 3, .entries = 5, .kind = 2}});
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_TRUE(check(vorbis_file(whole.substr(0, bytes)))) << bytes;
  for (const char* const name : {"vorbis_22050.ogg", "vorbis_stereo_48000.ogg", "opus_48000.opus"}) {
    std::string file = read_text(kData + name);
    EXPECT_TRUE(check(file)) << name;
  }
  EXPECT_TRUE(check(""));
}

}  // namespace
}  // namespace syrinx
