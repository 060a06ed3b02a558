#include "tensor/npy.h"

#include "files.h"

namespace syrinx {
namespace {

std::string npy_with(const std::string& header, const std::string& data = "", char major = 1) {
  std::string out = "\x93NUMPY";
  out += major;
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  if (major > 1) out += std::string(2, '\0');
  return out + header + data;
}

void expect_array(const JsonMember& expected, const NpyArray& array) {
  SCOPED_TRACE(expected.key);
  if (!array.is_text) return test::expect_tensor(expected, array.dtype, array.dims, array.f32());
  EXPECT_EQ(*expected.value.find("dtype")->string(), "text");
  const Json::Array& want = *expected.value.find("values")->array();
  ASSERT_EQ(want.size(), array.texts.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(*want[i].string(), array.texts[i]);
}

TEST(Npz, ReadsFilesOfNumpy) {
  for (const char* name : {"arrays.npz", "deflated.npz"}) {
    SCOPED_TRACE(name);
    const std::string bytes = test::read_data(name);
    const auto file = NpzFile::parse(test::as_bytes(bytes), name);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    const Json expected = test::expected_tensors(name);
    EXPECT_EQ(file->names().size(), expected.object()->size());
    for (const JsonMember& member : *expected.object()) {
      EXPECT_TRUE(file->contains(member.key));
      const auto array = file->read(member.key);
      ASSERT_TRUE(array.has_value()) << array.error().message;
      expect_array(member, *array);
    }
    EXPECT_FALSE(file->contains("zzz"));
    EXPECT_EQ(file->read("zzz").error().code, Code::kNotFound);
    EXPECT_EQ(file->read("f32", 8).error().code, Code::kLimitExceeded);
  }
  EXPECT_FALSE(NpzFile::parse({}, "empty").has_value());
}

TEST(Npy, ReadsASingleArray) {
  const std::string bytes = test::read_data("single.npy");
  const auto array = parse_npy(test::as_bytes(bytes), "single");
  ASSERT_TRUE(array.has_value()) << array.error().message;
  expect_array((*test::expected_tensors("single.npy").object())[0], *array);
}

TEST(Npy, AcceptsTheOtherVersionsAndQuotes) {
  const std::string header = "{\"shape\": (2,), \"fortran_order\": False, \"descr\": \"|u1\"}\n";
  for (const char major : {1, 2, 3}) {
    const auto array = parse_npy(test::as_bytes(npy_with(header, "ab", major)), "v");
    ASSERT_TRUE(array.has_value()) << array.error().message;
    EXPECT_EQ(array->f32(), (std::vector<float>{97, 98}));
  }
}

TEST(Npy, ReplacesCodePointsThatAreNone) {
  const std::string header = "{'descr': '<U1', 'fortran_order': False, 'shape': (2,), }";
  const auto array = parse_npy(test::as_bytes(npy_with(header, std::string("\0\xd8\0\0\xff\xff\xff\xff", 8))), "v");
  ASSERT_TRUE(array.has_value());
  EXPECT_EQ(array->texts, (std::vector<std::string>{"\xef\xbf\xbd", "\xef\xbf\xbd"}));
}

TEST(Npy, RefusesMalformedFiles) {
  struct Case {
    std::string file;
    Code code;
  };
  const auto shape = [](const std::string& dims, const std::string& type = "<f4") {
    return npy_with("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + dims + ", }", "12345678");
  };
  EXPECT_TRUE(parse_npy(test::as_bytes(shape("(2,)")), "good").has_value());
  const Case cases[] = {
      {"", Code::kDataLoss},
      {"\x93NUMPZ....", Code::kDataLoss},
      {npy_with("{}", "", 4), Code::kDataLoss},
      {npy_with("{}").substr(0, 9), Code::kDataLoss},
      {npy_with("{}"), Code::kDataLoss},
      {npy_with(""), Code::kDataLoss},
      {npy_with("{'descr' '<f4'}"), Code::kDataLoss},
      {npy_with("{'descr': 4}"), Code::kDataLoss},
      {npy_with("{'descr': '<f4"), Code::kDataLoss},
      {npy_with("{'descr': '<f4', 'descr': '<f4'}"), Code::kDataLoss},
      {npy_with("{'other': '<f4'}"), Code::kDataLoss},
      {npy_with("{'descr': '<f4' 'shape': ()}"), Code::kDataLoss},
      {npy_with("{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}"), Code::kDataLoss},
      {npy_with("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x"), Code::kDataLoss},
      {npy_with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"), Code::kDataLoss},
      {shape("2"), Code::kDataLoss},
      {shape("(-2,)"), Code::kDataLoss},
      {shape("(2 2)"), Code::kDataLoss},
      {shape("(3,)"), Code::kDataLoss},
      {shape("(1,)"), Code::kDataLoss},
      {shape("(1,1,1,1,1,1,1,1,2)"), Code::kDataLoss},
      {shape("(4294967296, 4294967296)"), Code::kDataLoss},
      {shape("(99999999999999999999,)"), Code::kDataLoss},
      {shape("(281474976710656,)", "|S0"), Code::kDataLoss},
      {shape("(281474976710656,)", "<f8"), Code::kDataLoss},
      {shape("(2,)", ">f4"), Code::kUnsupported},
      {shape("(2,)", "<c8"), Code::kUnsupported},
      {shape("(2,)", "<f4x"), Code::kUnsupported},
      {shape("(2,)", "<f"), Code::kUnsupported},
      {shape("(2,)", "<U999999999"), Code::kUnsupported},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\x7f", 12), Code::kLimitExceeded},
      {test::read_data("object.npy"), Code::kUnsupported},
      {test::read_data("big_endian.npy"), Code::kUnsupported},
  };
  for (const Case& hostile : cases) {
    const auto array = parse_npy(test::as_bytes(hostile.file), "hostile");
    ASSERT_FALSE(array.has_value()) << hostile.file;
    EXPECT_EQ(array.error().code, hostile.code) << array.error().message;
  }
}

TEST(Npy, SurvivesEveryTruncationAndFlip) {
  test::sweep_hostile(test::read_data("single.npy"), [](auto bytes) { (void)parse_npy(bytes, "hostile"); });
  test::sweep_hostile(test::read_data("deflated.npz"), [](auto bytes) {
    const auto file = NpzFile::parse(bytes, "hostile");
    if (file)
      for (const std::string& name : file->names()) (void)file->read(name, 1 << 20);
  });
}

}  // namespace
}  // namespace syrinx
